//! The reporter's state as it is kept: versioned JSON, bounded, and checked before it is believed.

use serde::{Deserialize, Serialize};

use super::{EARLIER_MOST, Reporter, Run};
use crate::evidence::decimal::Decimal;
use crate::evidence::versioned::{self, Unreadable};
use crate::evidence::{Epoch, Refusal, Report};
use crate::words::Replica;

/// The format that this grid writes.
pub const FORMAT: u64 = 1;

/// The most bytes of a state: 64 KiB. One of seventeen processes has some 9 KiB.
pub const STATE_MOST: usize = 64 * 1024;

/// A state that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Not what grid writes.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// A newer grid wrote it.
    #[error("it has format {0}, this grid reads format {FORMAT}: a newer grid wrote it")]
    Newer(u64),
    /// More than [`STATE_MOST`] bytes.
    #[error("it has more than {STATE_MOST} bytes, which no reporter's state has")]
    TooLarge,
}

impl Reporter {
    /// Reads a state.
    ///
    /// # Errors
    /// When it is too large, of a newer format, or damaged.
    pub fn from_json(json: &[u8]) -> Result<Self, StateError> {
        Ok(versioned::from_json(json, STATE_MOST, FORMAT)?)
    }

    /// Writes it, each field on a line.
    ///
    /// # Errors
    /// Never, but for a fault in the writer of JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        versioned::to_json(self)
    }
}

impl From<Unreadable> for StateError {
    fn from(why: Unreadable) -> Self {
        match why {
            Unreadable::Damaged(why) => Self::Damaged(why),
            Unreadable::Newer(format) => Self::Newer(format),
            Unreadable::TooLarge => Self::TooLarge,
        }
    }
}

/// The fields of a [`Reporter`].
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// 1. A grid that knows only lower ones refuses the state.
    #[schemars(range(min = 1, max = 1))]
    format: u64,
    /// The process that reports now.
    current: WrittenRun,
    /// Processes that are gone, of which something waits; the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = EARLIER_MOST))]
    earlier: Vec<WrittenRun>,
}

/// One run of a gateway's process.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReporterRun")]
struct WrittenRun {
    /// The run: drawn when it first reported.
    epoch: Epoch,
    /// What the process calls itself.
    replica: Replica,
    /// The last sequence that was given, in decimal; 0: none yet.
    sequence: Decimal,
    /// What it has rejected in all, in decimal.
    rejected: Decimal,
    /// The count that the site acknowledged last, in decimal.
    acknowledged: Decimal,
    /// The report with that sequence, as long as it is not acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent: Option<WrittenReport>,
    /// What was observed since: the flags of at most two reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    unsent: Vec<bool>,
}

/// A report that may have been sent.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SentReport")]
struct WrittenReport {
    /// Its count, in decimal.
    rejected: Decimal,
    /// Its flag.
    clean: bool,
    /// What the process called itself in it.
    replica: Replica,
}

impl From<Run> for WrittenRun {
    fn from(run: Run) -> Self {
        Self {
            epoch: run.epoch,
            replica: run.replica,
            sequence: Decimal(run.sequence),
            rejected: Decimal(run.rejected),
            acknowledged: Decimal(run.acknowledged),
            sent: run.sent.map(|report| WrittenReport {
                rejected: Decimal(report.rejected()),
                clean: report.clean(),
                replica: report.replica().clone(),
            }),
            unsent: run.unsent,
        }
    }
}

impl TryFrom<WrittenRun> for Run {
    type Error = String;
    fn try_from(written: WrittenRun) -> Result<Self, String> {
        let WrittenRun {
            epoch,
            replica,
            sequence: Decimal(sequence),
            rejected: Decimal(rejected),
            acknowledged: Decimal(acknowledged),
            sent,
            unsent,
        } = written;
        let sent = sent.map(|sent| {
            let Decimal(rejected) = sent.rejected;
            Report::new(epoch, sequence, rejected, sent.clean, sent.replica)
        });
        let sent = sent
            .transpose()
            .map_err(|refusal: Refusal| format!("epoch {epoch}: {refusal}"))?;
        let run = Self {
            epoch,
            replica,
            sequence,
            rejected,
            acknowledged,
            sent,
            unsent,
        };
        match run.contradiction() {
            Some(why) => Err(format!("epoch {epoch}: {why}")),
            None => Ok(run),
        }
    }
}

impl From<Reporter> for Written {
    fn from(reporter: Reporter) -> Self {
        Self {
            format: FORMAT,
            current: reporter.current.into(),
            earlier: reporter.earlier.into_iter().map(WrittenRun::from).collect(),
        }
    }
}

impl TryFrom<Written> for Reporter {
    type Error = String;
    fn try_from(written: Written) -> Result<Self, String> {
        if written.format != FORMAT {
            return Err(format!("there is no format {}", written.format));
        }
        let earlier: Result<Vec<Run>, String> =
            written.earlier.into_iter().map(Run::try_from).collect();
        let (current, earlier) = (Run::try_from(written.current)?, earlier?);
        let mut epochs: Vec<Epoch> = earlier.iter().map(|run| run.epoch).collect();
        epochs.push(current.epoch);
        epochs.sort();
        epochs.dedup();
        if epochs.len() <= earlier.len() || earlier.len() > EARLIER_MOST {
            return Err(format!(
                "an epoch stands twice, or there are more than {EARLIER_MOST} earlier processes"
            ));
        }
        if earlier.iter().any(Run::is_settled) {
            return Err("an earlier process of which nothing waits".to_owned());
        }
        Ok(Self { current, earlier })
    }
}
