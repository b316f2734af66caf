//! `grid history`: the journal.

use clap::Args;

use crate::cli::context::{Context, is_missing};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::list;
use crate::cli::ui::{Line, Look};
use crate::cli::view::{HistoryEntry, HistoryView};
use crate::store::{Entry, JournalRecord, Outcome, Store as _, Touch};

/// Arguments of `grid history`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid history             the newest entries\n  \
        grid history 413         one push, machine by machine\n\n\
        The journal keeps who did what, from which commit, and how it ended.")]
pub struct Arguments {
    /// The number of a push
    push: Option<u64>,
    /// How many entries to list
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "push")]
    last: usize,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let folder = context.folder()?;
    let last = match arguments.push {
        Some(_) => JournalRecord::LISTED_MOST,
        None => arguments.last,
    };
    let opened = context.open_reading(&folder, "history");
    let records = match opened.and_then(|mut store| Ok(store.journal(last)?)) {
        Err(error) if is_missing(&error) => Vec::new(),
        other => other?,
    };
    let entries: Vec<HistoryEntry> = records
        .into_iter()
        .filter(|record| {
            arguments
                .push
                .is_none_or(|push| record.entry.push == Some(push))
        })
        .map(|record| HistoryEntry {
            number: record.number,
            entry: record.entry,
        })
        .collect();
    if let (Some(push), true) = (arguments.push, entries.is_empty()) {
        return Err(CommandError::usage(format!(
            "the journal has no push {push}"
        )));
    }
    if context.ui.json {
        context.ui.json(&HistoryView { entries }, false)?;
        return Ok(Exit::Done);
    }
    let mut lines = Vec::new();
    for entry in &entries {
        lines.push(headline(entry.number, &entry.entry));
        if arguments.push.is_some() || context.ui.verbose {
            lines.extend(details(&entry.entry));
        }
    }
    if lines.is_empty() {
        context.ui.chat(&Line::of("nothing was done yet"));
    }
    context.ui.results(&lines)?;
    Ok(Exit::Done)
}

fn headline(number: u64, entry: &Entry) -> Line {
    let (look, outcome) = match entry.outcome {
        Outcome::Begun => (Look::Warn, "not ended".to_owned()),
        Outcome::Exit(0) => (Look::Good, "ok".to_owned()),
        Outcome::Exit(code) => (Look::Bad, format!("exit {code}")),
    };
    let push = entry
        .push
        .map(|push| format!("push {push}"))
        .unwrap_or_default();
    Line::new()
        .column(Look::Faint, number, 6)
        .column(Look::Plain, format!("{:.0}", entry.started), 22)
        .column(look, outcome, 10)
        .column(Look::Strong, push, 12)
        .plain(format!("{}  grid {}", entry.who, entry.command))
}

fn details(entry: &Entry) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = |text: String| lines.push(Line::of(format!("      {text}")));
    if let Some(commit) = &entry.commit {
        let changes = if commit.dirty { ", with changes" } else { "" };
        line(format!("commit {}{changes}", commit.hash));
    }
    if let Some(job) = &entry.ci {
        line(format!("job {job}"));
    }
    for how in [
        Touch::Applied,
        Touch::Verified,
        Touch::NotReached,
        Touch::Refused,
        Touch::RolledBack,
        Touch::Uncertain,
        Touch::Fenced,
        Touch::Forgotten,
    ] {
        let touched: Vec<_> = entry
            .machines
            .iter()
            .filter(|(_, touched)| touched.how == how)
            .collect();
        if touched.is_empty() {
            continue;
        }
        let word = match how {
            Touch::Applied => "sent",
            Touch::Verified => "verified",
            Touch::NotReached => "not reached",
            Touch::Refused => "refused",
            Touch::RolledBack => "rolled back",
            Touch::Uncertain => "uncertain",
            Touch::Fenced => "fenced",
            Touch::Forgotten => "forgotten",
        };
        let names = touched.iter().map(|(node, touched)| match &touched.why {
            Some(why) => format!("{node} ({why})"),
            None => node.to_string(),
        });
        line(format!("{word}: {}", list(names)));
    }
    lines
}
