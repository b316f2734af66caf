//! `grid evidence`: what gateways reported of their completed ingests (DESIGN.md, section 7, "Ingest feedback").

mod clear;
mod machine;
mod report;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;

use self::machine::Machine;
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{EvidenceView, ProcessView, StandingView};
use crate::evidence::homes::{FileHome, Home as _, HomeError};
use crate::evidence::{DOCUMENT_MOST, Document, DocumentError, Status};

/// How standard input is named.
const STDIN: &str = "-";

/// Arguments of `grid evidence`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        grid evidence atlas                                            asks the machine of the site atlas\n  \
        grid evidence --file /var/lib/grid-site/prod/evidence.json     on a site's machine\n  \
        ssh atlas cat /var/lib/grid-site/prod/evidence.json | grid evidence -\n  \
        grid evidence --file evidence.json --exit-code                 for scripts: 6 when it is not clean\n\n\
        Shows, of each run of a gateway's process, what it reported last, how long ago, and whether evidence of rejected ingests stands \
        against it; and what that amounts to: the condition GatewayIngest. A process's own clean report, newer and with the \
        same count, ends its evidence; that of a process that is gone stays until `grid evidence clear`."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<EvidenceCommand>,
    /// The site: a machine of the mesh; `-`: standard input
    #[arg(value_name = "SITE", conflicts_with = "file")]
    site: Option<String>,
    /// Read this status document: evidence.json in a site's state folder; `-`: standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Exit with 6 when the condition is not clean: ingests were rejected, or nobody reported lately
    #[arg(long)]
    exit_code: bool,
}

#[derive(Debug, Subcommand)]
enum EvidenceCommand {
    /// End evidence that stands against a process
    Clear(clear::Arguments),
    /// Report to this machine's site what a gateway rejected
    Report(Box<report::Arguments>),
}

/// Where a status document is read from.
enum Source {
    Stdin,
    Site(String),
    File(PathBuf),
}

pub(super) fn run(context: &mut Context, arguments: Arguments) -> crate::cli::Result {
    match &arguments.command {
        Some(EvidenceCommand::Clear(arguments)) => return clear::run(context, arguments),
        Some(EvidenceCommand::Report(arguments)) => return report::run(context, arguments),
        None => {}
    }
    let view = match source(arguments.site, arguments.file)? {
        Source::Site(site) => {
            let (folder, loaded) = context.load()?;
            Machine::find(context, &folder, &loaded.mesh, &site)?.read()?
        }
        Source::Stdin => EvidenceView::new(&from_stdin()?, Timestamp::now()),
        Source::File(path) => {
            let mut view = EvidenceView::new(&from_file(&path)?, Timestamp::now());
            view.file = Some(path);
            view
        }
    };
    show(context, &view)?;
    let is_clean = view.condition.status() == Status::True;
    Ok(if arguments.exit_code && !is_clean {
        Exit::Behind
    } else {
        Exit::Done
    })
}

fn source(site: Option<String>, file: Option<PathBuf>) -> Result<Source, CommandError> {
    match (site.as_deref(), file) {
        (Some(STDIN), _) => Ok(Source::Stdin),
        (None, Some(path)) if path == Path::new(STDIN) => Ok(Source::Stdin),
        (None, Some(path)) => Ok(Source::File(path)),
        (Some(site), _) => Ok(Source::Site(site.to_owned())),
        (None, None) => Err(CommandError::usage(
            "say whose evidence: `grid evidence SITE` asks a site's machine, `--file FILE` reads a status document, and `-` \
             standard input",
        )),
    }
}

fn from_stdin() -> Result<Document, CommandError> {
    let most = u64::try_from(DOCUMENT_MOST).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| CommandError::failed(format!("cannot read standard input: {e}")))?;
    document(&bytes, "standard input")
}

/// Reads a document that came from `place`.
fn document(bytes: &[u8], place: &str) -> Result<Document, CommandError> {
    Document::from_json(bytes).map_err(|source| unreadable(source, place))
}

fn unreadable(source: DocumentError, place: &str) -> CommandError {
    let hint = match &source {
        DocumentError::Newer { .. } => None,
        DocumentError::Damaged { .. } | DocumentError::TooLarge => Some(
            "look at it: a status document is evidence.json in a site's state folder. A damaged one is to be moved away there; then \
             gateways report anew, and what they reported before is lost",
        ),
    };
    let text = format!("{place} holds no status document that can be read");
    let error = CommandError::new(Exit::Failed, source).context(text);
    hint.into_iter().fold(error, CommandError::hint)
}

fn from_file(path: &Path) -> Result<Document, CommandError> {
    let held = FileHome::new(path).read(Duration::ZERO);
    let held = held.map_err(|error| match error {
        HomeError::Document { source, .. } => unreadable(source, &path.display().to_string()),
        error @ HomeError::NotAFile { .. } => CommandError::new(Exit::Failed, error)
            .hint("what comes from a pipe is read by `grid evidence -`"),
        error => CommandError::new(Exit::Failed, error),
    })?;
    held.document.ok_or_else(|| missing(path))
}

/// What is said, here or by a grid elsewhere, where no file is at `path`.
fn no_file(path: &Path) -> String {
    format!("there is no file {}", path.display())
}

/// Whether a grid elsewhere says with these lines that there is no such file.
fn is_missing(path: &Path, said: &[String]) -> bool {
    let no_file = no_file(path);
    let errors = said.iter().filter_map(|line| line.strip_prefix("error: "));
    errors.into_iter().any(|error| error == no_file)
}

fn missing(path: &Path) -> CommandError {
    CommandError::failed(no_file(path)).hint(
        "a site daemon in poll mode writes evidence.json into its state folder as soon as it runs; under gossip there is no \
         listener to report to",
    )
}

fn show(context: &mut Context, view: &EvidenceView) -> Result<(), CommandError> {
    if context.ui.json {
        return context.ui.json(view, false);
    }
    context.ui.results(&table(view))?;
    if let Some(written) = &view.written {
        context.ui.note(&Line::note(format!(
            "the document itself says {:?}, as it was when it was written: no site daemon has brought it up to date since",
            written.reason()
        )));
    }
    let is_gone =
        |process: &&ProcessView| process.standing == StandingView::Rejected && !process.fresh;
    let gone = view.processes.iter().filter(is_gone).count();
    if gone > 0 && !context.ui.quiet {
        let whose = match (&view.site, &view.file) {
            (Some(site), _) => site.to_string(),
            (None, Some(file)) => format!("--file {}", file.display()),
            (None, None) => "SITE".to_owned(),
        };
        let are = if gone == 1 {
            "one process"
        } else {
            "processes"
        };
        context.ui.hint(&format!(
            "{are} with evidence in force reported nothing for more than 300 s: once it is seen to, `grid evidence clear {whose} \
             --stale` ends it"
        ));
    }
    Ok(())
}

/// What people see.
fn table(view: &EvidenceView) -> Vec<Line> {
    let condition = &view.condition;
    let look = match condition.status() {
        Status::True => Look::Good,
        Status::False => Look::Bad,
        Status::Unknown => Look::Warn,
    };
    let mut heading = Line::new();
    if let Some(site) = &view.site {
        heading = heading.look(Look::Strong, format!("{site}  "));
    }
    let mut lines = vec![
        heading
            .look(Look::Strong, "GatewayIngest")
            .plain("  ")
            .look(look, format!("{:?}", condition.status()))
            .plain(format!(
                "  {:?}  since {}",
                condition.reason(),
                condition.last_transition_time()
            )),
        Line::of(condition.message()),
    ];
    let rows: Vec<(Look, [String; 5])> = view.processes.iter().map(row).collect();
    let width = |cell: usize| {
        let widths = rows
            .iter()
            .filter_map(|(_, cells)| Some(cells.get(cell)?.chars().count()));
        widths.max().unwrap_or(0).saturating_add(2)
    };
    for (look, [replica, standing, rejected, report, epoch]) in &rows {
        lines.push(
            Line::new()
                .column(Look::Strong, replica, width(0))
                .column(*look, standing, width(1))
                .column(Look::Plain, rejected, width(2))
                .column(Look::Plain, report, width(3))
                .plain(epoch),
        );
    }
    lines
}

/// A process: its name, what stands against it, its count, its last report, its epoch.
fn row(process: &ProcessView) -> (Look, [String; 5]) {
    let look = match process.standing {
        StandingView::Rejected => Look::Bad,
        StandingView::Cleared => Look::Warn,
        StandingView::Clean => Look::Good,
    };
    let standing = match process.cleared {
        Some(at) => format!("{} {at:.0}", process.standing.word()),
        None => process.standing.word().to_owned(),
    };
    let said = if process.clean { "clean" } else { "not clean" };
    let stale = if process.fresh { "" } else { ", stale" };
    let report = format!(
        "report {}: {said}, {} ago{stale}",
        process.sequence,
        ago(process.age_seconds)
    );
    let cells = [
        process.replica.to_string(),
        standing,
        format!("{} rejected", process.rejected),
        report,
        format!("epoch {}", process.epoch),
    ];
    (look, cells)
}

/// A time in its largest unit of which there are at least two.
fn ago(seconds: u64) -> String {
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "min")] {
        if seconds >= 2 * unit {
            return format!("{} {name}", seconds / unit);
        }
    }
    format!("{seconds} s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Epoch, Ledger, Report};
    use crate::words::Replica;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// Three processes: one rejected and is silent, one was cleared, one is clean and reported last.
    fn three() -> Document {
        let mut ledger = Ledger::new();
        for (number, sequence, rejected, clean, second) in [
            (1, 2, 4, true, 10),
            (2, u64::MAX, u64::MAX, false, 20),
            (3, 7, 0, true, 390),
        ] {
            let replica = Replica::new(&format!("gw-{number}")).unwrap();
            let epoch = Epoch::from_bytes([number; 16]);
            let report = Report::new(epoch, sequence, rejected, clean, replica).unwrap();
            ledger.report(&report, at(second));
        }
        ledger.clear(Epoch::from_bytes([2; 16]), at(30));
        Document::new(ledger, None, at(390))
    }

    fn seen(lines: &[Line]) -> String {
        let text: String = lines.iter().map(|line| line.styled(None)).collect();
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn a_table_says_what_was_reported_how_old_it_is_and_what_the_condition_is() {
        let view = EvidenceView::new(&three(), at(400));
        assert_eq!(view.written, None);
        insta::assert_snapshot!(seen(&table(&view)), @"
        GatewayIngest  False  Rejected  since 2027-01-15T08:06:30Z
        rejected evidence is in force from gw-1 (epoch 01010101010101010101010101010101, 4 rejected in all), of 3 gateway processes
        gw-1  rejected                      4 rejected                     report 2: clean, 6 min ago, stale                         epoch 01010101010101010101010101010101
        gw-2  cleared 2027-01-15T08:00:30Z  18446744073709551615 rejected  report 18446744073709551615: not clean, 6 min ago, stale  epoch 02020202020202020202020202020202
        gw-3  clean                         0 rejected                     report 7: clean, 10 s ago                                 epoch 03030303030303030303030303030303
        ");
    }

    #[test]
    fn a_document_that_nobody_brought_up_to_date_is_shown_as_it_is_now() {
        let mut ledger = Ledger::new();
        let replica = Replica::new("gw-0").unwrap();
        let epoch = Epoch::from_bytes([1; 16]);
        ledger.report(&Report::new(epoch, 1, 0, true, replica).unwrap(), at(0));
        let view = EvidenceView::new(&Document::new(ledger, None, at(0)), at(100_000));
        assert!(view.written.is_some());
        insta::assert_snapshot!(seen(&table(&view)), @"
        GatewayIngest  Unknown  Stale  since 2027-01-16T11:46:40Z
        no gateway process reported within 300 s; the last one was gw-0, at 2027-01-15T08:00:00Z
        gw-0  clean  0 rejected  report 1: clean, 27 h ago, stale  epoch 01010101010101010101010101010101
        ");
    }

    #[test]
    fn an_age_is_in_its_largest_unit() {
        let told = [0, 59, 119, 120, 7_199, 7_200, 172_799, 172_800].map(ago);
        assert_eq!(
            told,
            [
                "0 s", "59 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"
            ]
        );
    }
}
