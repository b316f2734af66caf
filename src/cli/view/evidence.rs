//! What gateways reported, as `evidence --json` shows it.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::evidence::reporter::Waiting;
use crate::evidence::{Condition, Document, Epoch, Record, Report, Standing};
use crate::words::{NodeName, Replica};

/// The evidence of a site: what `grid evidence --json` prints.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct EvidenceView {
    /// The site whose machine was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<NodeName>,
    /// The file that was read, there or here; absent: standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The moment that ages are counted up to: by the clock of the site's machine, if one was asked.
    #[schemars(with = "String")]
    pub now: Timestamp,
    /// What the reports amount to now.
    pub condition: Condition,
    /// What the status document says instead, where it was not brought up to date since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Condition>,
    /// Whom evidence stands against first, then who reported last.
    pub processes: Vec<ProcessView>,
}

/// What one run of a gateway's process reported.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct ProcessView {
    /// The run: drawn at the process's start.
    pub epoch: Epoch,
    /// What the process calls itself; diagnostic.
    pub replica: Replica,
    /// The sequence of its last accepted report, in decimal.
    pub sequence: String,
    /// How many ingests it has rejected since its start, in decimal.
    pub rejected: String,
    /// Whether that report called itself clean.
    pub clean: bool,
    /// When the report was received.
    #[schemars(with = "String")]
    pub received: Timestamp,
    /// How long ago that was, in whole seconds.
    pub age_seconds: u64,
    /// Whether that is at most 300 seconds.
    pub fresh: bool,
    /// What it says against the process.
    pub standing: StandingView,
    /// When an operator cleared its evidence; only beside `cleared`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub cleared: Option<Timestamp>,
}

/// What an epoch's evidence says against its process.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StandingView {
    /// It rejected ingests; does not age out.
    Rejected,
    /// It rejected ingests, and an operator cleared that.
    Cleared,
    /// Nothing: its last report was clean.
    Clean,
}

impl StandingView {
    /// For people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Cleared => "cleared",
            Self::Clean => "clean",
        }
    }
}

impl EvidenceView {
    /// What a document amounts to at `now`.
    #[must_use]
    pub fn new(document: &Document, now: Timestamp) -> Self {
        let ledger = document.ledger();
        let written = document.condition();
        let condition = Condition::following(Some(written), ledger.condition(now), now);
        let mut processes: Vec<ProcessView> = ledger
            .records()
            .map(|record| ProcessView::new(record, now))
            .collect();
        processes.sort_by_key(|process| (process.standing, std::cmp::Reverse(process.received)));
        Self {
            site: None,
            file: None,
            now,
            written: (condition.reason() != written.reason()).then(|| written.clone()),
            condition,
            processes,
        }
    }
}

impl ProcessView {
    fn new(record: &Record, now: Timestamp) -> Self {
        let report = record.report();
        let (standing, cleared) = match record.standing() {
            Standing::Clean => (StandingView::Clean, None),
            Standing::Rejected => (StandingView::Rejected, None),
            Standing::Cleared { at } => (StandingView::Cleared, Some(at)),
        };
        Self {
            epoch: report.epoch(),
            replica: report.replica().clone(),
            sequence: report.sequence().to_string(),
            rejected: report.rejected().to_string(),
            clean: report.clean(),
            received: record.received(),
            age_seconds: record.age(now).as_secs(),
            fresh: record.is_fresh(now),
            standing,
            cleared,
        }
    }
}

/// What `grid evidence clear --json` prints. The controller reads it too, of the grid that it runs on a site's machine.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct ClearedView {
    /// The site on whose machine it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<NodeName>,
    /// The status document, there or here.
    pub file: PathBuf,
    /// The epochs whose evidence is in force no more. None: there was none to clear.
    pub cleared: Vec<Epoch>,
}

/// What `grid evidence report --json` prints.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct ReportView {
    /// The run of the process that reports now.
    pub epoch: Epoch,
    /// The reports that were acknowledged, given up or wait, of earlier runs too.
    pub reports: Vec<ReportedView>,
    /// Why some wait, or were refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A report.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct ReportedView {
    /// What became of it.
    pub what: Reported,
    /// The run that it is of.
    pub epoch: Epoch,
    /// Its sequence, in decimal; absent: it was never sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// Its count, in decimal.
    pub rejected: String,
    /// Its flag.
    pub clean: bool,
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reported {
    /// The site has persisted it.
    Acknowledged,
    /// It is kept, and sent again.
    Waits,
    /// The site refuses it, and its process is gone.
    GivenUp,
}

impl ReportedView {
    /// One that was sent.
    #[must_use]
    pub fn sent(report: &Report, what: Reported) -> Self {
        Self {
            what,
            epoch: report.epoch(),
            sequence: Some(report.sequence().to_string()),
            rejected: report.rejected().to_string(),
            clean: report.clean(),
        }
    }

    /// One that waits.
    #[must_use]
    pub fn waiting(waiting: &Waiting) -> Self {
        Self {
            what: Reported::Waits,
            epoch: waiting.epoch,
            sequence: waiting.sequence.map(|sequence| sequence.to_string()),
            rejected: waiting.rejected.to_string(),
            clean: waiting.clean,
        }
    }
}
