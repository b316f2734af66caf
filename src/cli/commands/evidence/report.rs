//! `grid evidence report`: the reporter of a gateway that is driven by scripts. What it keeps, and in which order it is
//! sent, is `evidence::reporter`; here is how long is tried, and in `kept` its file.

mod kept;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use rand::RngExt as _;

use self::kept::Kept;
use crate::cli::context::Context;
use crate::cli::duration::parse_limit;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{ReportView, Reported, ReportedView};
use crate::evidence::reporter::{Count, Meaning, ReporterError};
use crate::evidence::{Epoch, Report};
use crate::site::{Endpoint, Replied, SendError};
use crate::store::SystemChance;
use crate::words::{PeerHost, Replica, SIGNALS_PORT};

/// How long one attempt may take: the site's own five seconds, and the way there and back.
const ATTEMPT: Duration = Duration::from_secs(7);
/// The first pause between two attempts; each further one is twice as long, give or take a half.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Arguments of `grid evidence report`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("flag").args(["clean", "not_clean"]),
    group = ArgGroup::new("to").args(["config", "certificate"]).required(true),
    after_help = "Examples:\n  \
        grid evidence report --state gw.json --config site.toml --replica gw-0 --new-process --clean\n  \
        grid evidence report --state gw.json --config site.toml --add 1 --not-clean     one more ingest was rejected\n  \
        grid evidence report --state gw.json --config site.toml --rejected 7 --clean    seven in all, and it is clean now\n  \
        grid evidence report --state gw.json --config site.toml                         repeats what was not acknowledged\n\n\
        The state file keeps epoch, sequence, count and what the site has not acknowledged. It is on disk before anything is \
        sent, so that a crash or a lost answer loses no rejection: the identical report is repeated, and a later one follows \
        it. A count that rose is evidence of a rejection, whatever is said beside it; a clean report after it, with the same \
        count, ends that.\n\n\
        Exits with 0 when the site has acknowledged everything, with 4 when something waits for it (no listener, as under \
        gossip, an older site daemon, no answer, no room), and with 1 when it refused a report."
)]
pub(super) struct Arguments {
    /// The file of what is kept between two reports; made at the first
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    state: PathBuf,
    /// The site's own site.toml, which says where it listens and who it is
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Instead of --config: the site's own certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "key", value_hint = clap::ValueHint::FilePath)]
    certificate: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "certificate", conflicts_with = "config", value_hint = clap::ValueHint::FilePath)]
    key: Option<PathBuf>,
    /// Where the site listens; this machine, unless it is said
    #[arg(long, requires = "certificate", conflicts_with = "config", value_parser = |text: &str| PeerHost::new(text))]
    host: Option<PeerHost>,
    /// At which port; 9091, unless it is said
    #[arg(long, requires = "certificate", conflicts_with = "config", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// How many ingests the process has rejected since its start, in all
    #[arg(long, value_name = "N", requires = "flag", conflicts_with = "add")]
    rejected: Option<u64>,
    /// How many it has rejected since the last report
    #[arg(long, value_name = "N", requires = "flag")]
    add: Option<u64>,
    /// The process rejects no ingest now
    #[arg(long)]
    clean: bool,
    /// It does, or nobody can say that it does not
    #[arg(long)]
    not_clean: bool,
    /// What the process calls itself, a DNS label; kept from one report to the next
    #[arg(long, value_name = "NAME")]
    replica: Option<Replica>,
    /// The process has started anew: draw another epoch, and count from 0
    #[arg(long)]
    new_process: bool,
    /// How long to try
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_limit)]
    timeout: Duration,
}

impl Arguments {
    fn endpoint(&self) -> Result<Endpoint, CommandError> {
        match (&self.config, &self.certificate, &self.key) {
            (Some(config), None, None) => Ok(Endpoint::Config(config.clone())),
            (None, Some(certificate), Some(key)) => Ok(Endpoint::Named {
                host: match &self.host {
                    Some(host) => host.clone(),
                    None => PeerHost::Address(std::net::Ipv4Addr::LOCALHOST.into()),
                },
                port: self.port.unwrap_or(SIGNALS_PORT),
                certificate: certificate.clone(),
                key: key.clone(),
            }),
            _ => Err(CommandError::usage(
                "say either --config, or --certificate and --key",
            )),
        }
    }

    /// What the process says of itself, if anything.
    fn observed(&self) -> Option<(Count, bool)> {
        let count = match self.rejected {
            Some(rejected) => Count::To(rejected),
            None => Count::By(self.add.unwrap_or(0)),
        };
        (self.clean || self.not_clean).then_some((count, self.clean))
    }
}

impl From<ReporterError> for CommandError {
    fn from(error: ReporterError) -> Self {
        let (exit, hint) = match error {
            ReporterError::Decreased { .. } => (
                Exit::Usage,
                "a count only rises within a process; one that has started anew says --new-process",
            ),
            ReporterError::TooGreat | ReporterError::Terminal | ReporterError::Exhausted => {
                (Exit::Usage, "--new-process begins another epoch")
            }
            ReporterError::TooManyProcesses => (
                Exit::Failed,
                "have the site acknowledge them: without --new-process they are sent first",
            ),
        };
        Self::new(exit, error).hint(hint)
    }
}

/// Why reports wait, or were refused.
enum Stopped {
    /// The same will be sent again.
    Waits(String),
    /// The site will not take it.
    Refused(String),
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let endpoint = arguments.endpoint()?;
    let mut kept = Kept::open(arguments)?;
    if arguments.new_process && kept.written.is_some() {
        kept.reporter.start(&mut SystemChance)?;
    }
    if let Some(replica) = &arguments.replica {
        kept.reporter.rename(replica.clone());
    }
    if let Some((count, clean)) = arguments.observed() {
        kept.reporter.observe(count, clean)?;
    }
    let mut view = ReportView {
        epoch: kept.reporter.epoch(),
        reports: Vec::new(),
        why: None,
    };
    let stopped = send_all(&endpoint, &mut kept, arguments.timeout, &mut view)?;
    view.reports.extend(
        kept.reporter
            .waiting()
            .into_iter()
            .map(|waiting| ReportedView::waiting(&waiting)),
    );
    tell(context, &mut view, stopped, arguments)
}

/// Sends what waits, in its order; each report is on disk before.
fn send_all(
    endpoint: &Endpoint,
    kept: &mut Kept,
    timeout: Duration,
    view: &mut ReportView,
) -> Result<Option<Stopped>, CommandError> {
    let until = Instant::now() + timeout;
    let mut passed: Vec<Epoch> = Vec::new();
    let mut stopped = None;
    loop {
        let report = kept.reporter.next(&passed);
        kept.keep()?;
        let Some(report) = report else {
            return Ok(stopped);
        };
        let replied = match send(endpoint, &report, until) {
            Ok(replied) => replied,
            Err(why) => return Ok(Some(stopped.unwrap_or(Stopped::Waits(why.to_string())))),
        };
        let answer = match replied.said.as_str() {
            "" => replied.status.to_string(),
            said => format!("{} ({said})", replied.status),
        };
        match replied.meaning {
            Meaning::Acknowledged => {
                kept.reporter.acknowledged(&report);
                view.reports
                    .push(ReportedView::sent(&report, Reported::Acknowledged));
            }
            Meaning::Refused => {
                stopped = Some(Stopped::Refused(format!(
                    "the site refuses the report of epoch {}: {answer}",
                    report.epoch()
                )));
                if kept.reporter.refused(&report) {
                    view.reports
                        .push(ReportedView::sent(&report, Reported::GivenUp));
                } else {
                    passed.push(report.epoch());
                }
            }
            // Whoever has reported before may still.
            Meaning::NoRoom => {
                stopped.get_or_insert(Stopped::Waits(format!(
                    "the site has no room for another process's reports: {answer}"
                )));
                passed.push(report.epoch());
            }
            Meaning::NotLocal => {
                return Ok(Some(Stopped::Refused(format!(
                    "the site takes reports from its own certificate only: {answer}"
                ))));
            }
            Meaning::Unsupported => {
                return Ok(Some(Stopped::Waits(format!(
                    "the site's daemon takes no reports, it is an older one: {answer}"
                ))));
            }
            Meaning::NotEchoed => {
                return Ok(Some(Stopped::Waits(
                    "the answer does not echo the report, so it is not believed".to_owned(),
                )));
            }
            Meaning::Unknown | Meaning::Strange => {
                return Ok(Some(Stopped::Waits(format!(
                    "the site does not acknowledge it: {answer}"
                ))));
            }
        }
    }
}

/// Sends the identical report until its answer is known, or the time is up. Of several attempts the last one that was not
/// cut short tells why.
fn send(endpoint: &Endpoint, report: &Report, until: Instant) -> Result<Replied, SendError> {
    let mut pause = FIRST_PAUSE;
    let mut before = None;
    loop {
        let sent = endpoint.send(report, until.min(Instant::now() + ATTEMPT));
        let may_pass = match &sent {
            Ok(replied) => replied.meaning == Meaning::Unknown,
            Err(error) => error.may_pass(),
        };
        let jittered = pause.mul_f64(rand::rng().random_range(0.5..1.5));
        if !may_pass || Instant::now() + jittered >= until {
            return match (sent, before) {
                (Err(SendError::Late(_)), Some(before)) => before,
                (sent, _) => sent,
            };
        }
        before = Some(sent);
        std::thread::sleep(jittered);
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
    }
}

fn tell(
    context: &mut Context,
    view: &mut ReportView,
    stopped: Option<Stopped>,
    arguments: &Arguments,
) -> crate::cli::Result {
    view.why = stopped.as_ref().map(|stopped| match stopped {
        Stopped::Waits(why) | Stopped::Refused(why) => why.clone(),
    });
    if context.ui.json {
        context.ui.json(view, false)?;
    } else {
        let lines: Vec<Line> = view.reports.iter().map(line).collect();
        if lines.is_empty() {
            context
                .ui
                .chat(&Line::of("nothing waits to be acknowledged"));
        }
        context.ui.results(&lines)?;
    }
    let state = arguments.state.display();
    match stopped {
        None => Ok(Exit::Done),
        Some(Stopped::Waits(why)) => Err(CommandError::new(
            Exit::Incomplete,
            anyhow::anyhow!("{why}"),
        )
        .hint(format!(
            "it is kept in {state}; the next `grid evidence report` with this state repeats it"
        ))),
        Some(Stopped::Refused(why)) => Err(CommandError::failed(why).hint(format!(
            "{state} may be a copy or an older one, or the certificate another site's; --new-process reports as another process"
        ))),
    }
}

/// A report, and what became of it.
fn line(report: &ReportedView) -> Line {
    let (look, word) = match report.what {
        Reported::Acknowledged => (Look::Good, "acknowledged"),
        Reported::Waits => (Look::Warn, "waits"),
        Reported::GivenUp => (Look::Bad, "given up"),
    };
    let number = match &report.sequence {
        Some(sequence) => format!("report {sequence}"),
        None => "not sent yet".to_owned(),
    };
    let clean = if report.clean { "clean" } else { "not clean" };
    Line::new()
        .column(look, word, 14)
        .column(Look::Plain, number, 14)
        .plain(format!(
            "{} rejected, {clean}  epoch {}",
            report.rejected, report.epoch
        ))
}
