//! `grid history`: the journal.

use std::collections::BTreeSet;

use clap::Args;

use crate::cli::context::{Context, is_missing};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::list;
use crate::cli::ui::{Line, Look};
use crate::cli::view::{HistoryEntry, HistoryView, Unended};
use crate::store::{Entry, Holder, JournalRecord, Outcome, Store as _, Touch};

/// Arguments of `grid history`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid history             the newest entries\n  \
        grid history 413         one push, machine by machine\n\n\
        The journal keeps who did what, from which commit, and how it ended. A push is noted before it sends anything; one that has no end \
        and does not run any more was killed, or its controller was lost.")]
pub struct Arguments {
    /// The number of a push
    #[arg(value_parser = parse_push)]
    push: Option<u64>,
    /// How many entries to list
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "push")]
    last: usize,
}

fn parse_push(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "say the number of a push, as `grid history` lists them".to_owned())
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let folder = context.folder()?;
    // Of a push there are two records, and the first is not listed once there is the second.
    let read = match arguments.push {
        Some(_) => JournalRecord::LISTED_MOST,
        None => arguments.last.saturating_mul(2),
    };
    let opened = context.open_reading(&folder, "history");
    let records = match opened.and_then(|mut store| Ok(store.journal(read)?)) {
        Err(error) if is_missing(&error) => Vec::new(),
        other => other?,
    };
    let last = records.iter().filter_map(|record| record.entry.push).max();
    let mut entries = listed(records, context.running(&folder).as_ref());
    match arguments.push {
        Some(push) => entries.retain(|entry| entry.entry.push == Some(push)),
        None => {
            let older = entries.len().saturating_sub(arguments.last);
            entries.drain(..older);
        }
    }
    if let (Some(push), true) = (arguments.push, entries.is_empty()) {
        let last = match last {
            Some(last) => format!("the last one is push {last}"),
            None => "there was none yet".to_owned(),
        };
        return Err(CommandError::usage(format!(
            "the journal has no push {push}; {last}"
        )));
    }
    if context.ui.json {
        context.ui.json(&HistoryView { entries }, false)?;
        return Ok(Exit::Done);
    }
    let mut lines = Vec::new();
    let widths = Widths::of(&entries);
    for entry in &entries {
        lines.push(headline(entry, widths));
        let taken_out = entry.entry.taken_out.iter();
        lines.extend(taken_out.map(|who| {
            let text = format!("      taken out of who may open the store: {who}");
            Line::of(text)
        }));
        if arguments.push.is_some() || context.ui.verbose {
            lines.extend(details(&entry.entry));
        }
    }
    if lines.is_empty() {
        context.ui.chat(&Line::of("nothing was done yet"));
    }
    context.ui.results(&lines)?;
    let lost = |entry: &HistoryEntry| entry.unended == Some(Unended::KilledOrLost);
    if arguments.push.is_some() && entries.iter().any(lost) {
        context.ui.hint(
            "what it sent is uncertain: `grid status` says where, and `grid push --behind` asks those machines first and goes on",
        );
    }
    Ok(Exit::Done)
}

/// The records that are listed: all but those that began a push which a later one ended.
fn listed(records: Vec<JournalRecord>, running: Option<&Holder>) -> Vec<HistoryEntry> {
    let ended: BTreeSet<u64> = records
        .iter()
        .filter(|record| record.entry.outcome != Outcome::Begun)
        .filter_map(|record| record.entry.push)
        .collect();
    // What is no push has no number; of its two entries the second was begun when the first was, by the same.
    let began = |entry: &Entry| (entry.started, entry.who.clone());
    let done: BTreeSet<_> = records
        .iter()
        .filter(|record| record.entry.outcome != Outcome::Begun && record.entry.push.is_none())
        // The same command wrote that too, and may have been killed since.
        .filter(|record| record.entry.taken_out.is_empty())
        .map(|record| began(&record.entry))
        .collect();
    records
        .into_iter()
        .filter_map(|record| {
            let entry = record.entry;
            let unended = match (entry.outcome, entry.push) {
                (Outcome::Exit(_), _) => None,
                (Outcome::Begun, Some(push)) if ended.contains(&push) => return None,
                (Outcome::Begun, None) if done.contains(&began(&entry)) => return None,
                (Outcome::Begun, _) => {
                    let runs = running.is_some_and(|holder| entry.is_begun_by(holder));
                    Some(if runs {
                        Unended::Runs
                    } else {
                        Unended::KilledOrLost
                    })
                }
            };
            Some(HistoryEntry {
                number: record.number,
                unended,
                entry,
            })
        })
        .collect()
}

/// How wide the columns are that differ.
#[derive(Clone, Copy)]
struct Widths {
    outcome: usize,
    push: usize,
}

impl Widths {
    fn of(entries: &[HistoryEntry]) -> Self {
        let widest = |text: &dyn Fn(&HistoryEntry) -> String| {
            let widths = entries.iter().map(|entry| text(entry).chars().count());
            widths.max().unwrap_or(0).saturating_add(2)
        };
        Self {
            outcome: widest(&|entry| outcome(entry).1),
            push: widest(&push),
        }
    }
}

fn push(entry: &HistoryEntry) -> String {
    let push = entry.entry.push;
    push.map(|push| format!("push {push}")).unwrap_or_default()
}

fn outcome(entry: &HistoryEntry) -> (Look, String) {
    match (entry.unended, entry.entry.outcome) {
        (Some(Unended::Runs), _) => (Look::Warn, "runs".to_owned()),
        (Some(Unended::KilledOrLost), _) | (None, Outcome::Begun) => {
            (Look::Bad, "killed or lost".to_owned())
        }
        (None, Outcome::Exit(0)) => (Look::Good, "ok".to_owned()),
        (None, Outcome::Exit(code)) => (Look::Bad, format!("exit {code}")),
    }
}

fn headline(entry: &HistoryEntry, widths: Widths) -> Line {
    let (look, outcome) = outcome(entry);
    Line::new()
        .column(Look::Plain, format!("{:.0}", entry.entry.started), 22)
        .column(look, outcome, widths.outcome)
        .column(Look::Strong, push(entry), widths.push)
        .column(Look::Plain, format!("{}  ", entry.entry.who), 0)
        .plain(match entry.entry.taken_out.is_empty() {
            true => format!("grid {}", entry.entry.command),
            // What became of the command itself, its own entry says.
            false => format!(
                "the store was sealed anew, as `grid {}` began",
                entry.entry.command
            ),
        })
}

fn details(entry: &Entry) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = |text: String| lines.push(Line::of(format!("      {text}")));
    if let Some(commit) = &entry.commit {
        let changes = if commit.dirty { ", with changes" } else { "" };
        line(format!("commit {}{changes}", commit.hash));
    }
    if let Some(identity) = &entry.identity {
        line(format!("identity {identity}"));
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
        Touch::Cleared,
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
            Touch::Cleared => "cleared",
        };
        let names = touched.iter().map(|(node, touched)| match &touched.why {
            Some(why) => format!("{node} ({why})"),
            None => node.to_string(),
        });
        line(format!("{word}: {}", list(names)));
        for (node, touched) in touched {
            for printed in &touched.output {
                line(format!("  {node} | {printed}"));
            }
        }
    }
    lines
}
