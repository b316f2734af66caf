//! `grid evidence clear`: an operator's act. What was cleared keeps its epoch, sequence and count, against which the next
//! report is held.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use jiff::Timestamp;

use super::machine::{Machine, Unclear};
use super::{missing, unreadable};
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::list;
use crate::cli::ui::Line;
use crate::cli::view::ClearedView;
use crate::evidence::homes::{FileHome, Home as _, HomeError};
use crate::evidence::{BUDGET, Clearing, Epoch, Failure, Writer};
use crate::store::{Change, Outcome, Store as _, Touch, Touched};

/// Arguments of `grid evidence clear`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("whose").args(["site", "file"]).required(true),
    group = ArgGroup::new("which").args(["epoch", "stale"]).required(true),
    after_help = "Examples:\n  \
        grid evidence clear atlas --epoch 0123456789abcdef0123456789abcdef\n  \
        grid evidence clear atlas --stale       of all processes that reported nothing for more than 300 s\n  \
        grid evidence clear --file /var/lib/grid-site/prod/evidence.json --stale       on the site's own machine\n\n\
        Evidence of rejected ingests stands until its process reports clean again; that of a process that is gone stands until \
        it is cleared here. Epoch, sequence and count stay as what the next report is held against, and a repeat of the report that \
        was cleared brings nothing back. Of a SITE the journal of the mesh keeps who cleared what."
)]
pub(super) struct Arguments {
    /// The site: a machine of the mesh
    #[arg(value_name = "SITE")]
    site: Option<String>,
    /// A status document of this machine, while its daemon runs or not
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The process: its epoch, as `grid evidence` shows it
    #[arg(long)]
    epoch: Option<Epoch>,
    /// Every process with evidence in force that has reported nothing for more than 300 s
    #[arg(long)]
    stale: bool,
}

/// Whose evidence is cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// One process's.
    Epoch(Epoch),
    /// That of all whose process is silent.
    Stale,
}

impl Which {
    /// As it is typed.
    pub(super) fn words(self) -> Vec<String> {
        match self {
            Self::Epoch(epoch) => vec!["--epoch".to_owned(), epoch.to_string()],
            Self::Stale => vec!["--stale".to_owned()],
        }
    }
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let which = arguments.epoch.map_or(Which::Stale, Which::Epoch);
    let view = match (&arguments.site, &arguments.file) {
        (Some(site), None) => on_machine(context, site, which)?,
        (None, Some(file)) => ClearedView {
            site: None,
            file: file.clone(),
            cleared: in_file(file, which)?,
        },
        _ => return Err(CommandError::usage("say either a site or --file")),
    };
    if context.ui.json {
        context.ui.json(&view, false)?;
        return Ok(Exit::Done);
    }
    let of = match &view.site {
        Some(site) => format!(" of {site}"),
        None => String::new(),
    };
    let lines: Vec<Line> = view
        .cleared
        .iter()
        .map(|epoch| Line::of(format!("cleared the evidence{of} from epoch {epoch}")))
        .collect();
    if lines.is_empty() {
        context.ui.chat(&Line::of(match which {
            Which::Epoch(epoch) => {
                format!("no evidence{of} is in force from epoch {epoch}: nothing was changed")
            }
            Which::Stale => format!(
                "no evidence{of} is in force from a process that is silent: nothing was changed"
            ),
        }));
    }
    context.ui.results(&lines)?;
    Ok(Exit::Done)
}

/// Clears in a file of this machine, through its lock.
fn in_file(path: &Path, which: Which) -> Result<Vec<Epoch>, CommandError> {
    let failed = |error: HomeError| match error {
        HomeError::Document { source, .. } => unreadable(source, &path.display().to_string()),
        error @ HomeError::Locked { .. } => {
            CommandError::new(Exit::Failed, error).hint("try again; the site daemon may be busy")
        }
        error => CommandError::new(Exit::Failed, error),
    };
    let mut home = FileHome::new(path);
    let held = home.read(BUDGET).map_err(failed)?;
    let ledger = match &held.document {
        Some(document) => document.ledger(),
        None => return Err(missing(path)),
    };
    let known: Vec<Epoch> = ledger
        .records()
        .map(|record| record.report().epoch())
        .collect();
    let until = Instant::now() + BUDGET;
    let left = || until.saturating_duration_since(Instant::now());
    let mut writer = Writer::new(home);
    loop {
        let cleared = match which {
            Which::Epoch(epoch) => writer
                .clear(epoch, Timestamp::now(), &left)
                .map(|clearing| match clearing {
                    Clearing::Cleared => Ok(vec![epoch]),
                    Clearing::NothingInForce => Ok(Vec::new()),
                    Clearing::Unknown => Err(unknown(epoch, &known)),
                }),
            Which::Stale => writer.clear_stale(Timestamp::now(), &left).map(Ok),
        };
        return match cleared {
            Ok(cleared) => cleared,
            // A daemon that takes reports all the while publishes between a reading and its writing.
            Err(Failure::Overtaken) if !left().is_zero() => continue,
            Err(Failure::Home(error)) => Err(failed(error)),
            Err(failure) => Err(CommandError::new(Exit::Failed, failure)),
        };
    }
}

fn unknown(epoch: Epoch, known: &[Epoch]) -> CommandError {
    let texts: Vec<String> = known.iter().map(ToString::to_string).collect();
    let nearest = crate::words::nearest(&epoch.to_string(), texts.iter().map(String::as_str));
    let suggestion = nearest.map(|name| format!("; did you mean {name}?"));
    CommandError::usage(format!(
        "no process with epoch {epoch} has reported{}",
        suggestion.unwrap_or_default()
    ))
    .hint("`grid evidence` shows the epochs that are held")
}

/// Has a site's machine clear, under the lock of the mesh. The journal has a word of it before anybody is reached.
fn on_machine(
    context: &mut Context,
    site: &str,
    which: Which,
) -> Result<ClearedView, CommandError> {
    let mut writing = context.writing("evidence clear", Duration::ZERO)?;
    let machine = Machine::find(context, &writing.folder, &writing.loaded.mesh, site)?;
    let mut begun = context.entry(&writing, Exit::Done);
    (begun.ended, begun.outcome) = (None, Outcome::Begun);
    writing.store.commit(&[Change::Journal(begun)])?;
    let cleared = machine.clear(which);
    let (exit, how, why) = match &cleared {
        Ok(view) if view.cleared.is_empty() => (Exit::Done, None, None),
        Ok(view) => (
            Exit::Done,
            Some(Touch::Cleared),
            Some(format!("epoch {}", list(&view.cleared))),
        ),
        Err(unclear) => {
            let (how, error) = match unclear {
                Unclear::NotReached(error) => (Touch::NotReached, error),
                Unclear::Refused(error) => (Touch::Refused, error),
                Unclear::Unknown(error) => (Touch::Uncertain, error),
            };
            (error.exit, Some(how), Some(error.cause.to_string()))
        }
    };
    let mut ended = context.entry(&writing, exit);
    ended.machines = how
        .map(|how| {
            let touched = Touched {
                why,
                ..Touched::new(how)
            };
            (machine.name().clone(), touched)
        })
        .into_iter()
        .collect::<BTreeMap<_, _>>();
    let kept = writing.store.commit(&[Change::Journal(ended)]);
    let cleared = cleared.map_err(|unclear| match unclear {
        Unclear::NotReached(error) | Unclear::Refused(error) | Unclear::Unknown(error) => error,
    })?;
    kept?;
    Ok(cleared)
}
