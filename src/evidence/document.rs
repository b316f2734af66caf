//! The status document: the ledger and the condition that follows from it, persisted together (DESIGN.md, section 7).
//!
//! One document with two homes. Its JSON is versioned: `format: 1`. Whoever rewrites a document would lose what it does
//! not know, so an unknown field and a newer format are refused, never dropped.
//! Threat: a document comes from a disk, a cluster or a pipe. Its size is bounded before it is parsed, what it says is
//! checked against the ledger's own invariants, and what is said of a damaged one is bounded and without control
//! characters. The same document has the same bytes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::decimal::Decimal;
use super::ledger::{CAPACITY, Ledger, Record, Standing};
use super::versioned::{self, Unreadable};
use super::{Condition, Epoch, Report};
use crate::words::Replica;

/// The format that this grid writes.
pub const FORMAT: u64 = 1;

/// The most bytes of a document: 1 MiB. One of 64 epochs has some 30 KiB.
pub const DOCUMENT_MOST: usize = 1024 * 1024;

/// The status document of a site: what gateways reported of their completed ingests, and what it amounts to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written", rename = "EvidenceStatus")]
pub struct Document {
    ledger: Ledger,
    condition: Condition,
}

/// Why a document was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not what grid writes.
    #[error("it is damaged: {why}")]
    Damaged {
        /// What was found.
        why: String,
    },
    /// A newer grid wrote it.
    #[error(
        "it has format {format}, this grid reads format {FORMAT}: a newer grid wrote it, use that one"
    )]
    Newer {
        /// Which format it has.
        format: u64,
    },
    /// More than [`DOCUMENT_MOST`] bytes.
    #[error("it has more than {DOCUMENT_MOST} bytes, which no status document has")]
    TooLarge,
}

impl Document {
    /// The document of a ledger, with the condition that it amounts to `now`. `previous` is the condition that was
    /// persisted before.
    #[must_use]
    pub fn new(ledger: Ledger, previous: Option<&Condition>, now: Timestamp) -> Self {
        let condition = Condition::following(previous, ledger.condition(now), now);
        Self { ledger, condition }
    }

    /// What is held of each epoch.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What that amounted to when it was written.
    #[must_use]
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Reads a document.
    ///
    /// # Errors
    /// When it is too large, of a newer format, or damaged. An empty text is damaged, not an empty document.
    pub fn from_json(json: &[u8]) -> Result<Self, DocumentError> {
        Ok(versioned::from_json(json, DOCUMENT_MOST, FORMAT)?)
    }

    /// Writes it: for people too, each field on a line.
    ///
    /// # Errors
    /// Never, but for a fault in the writer of JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        versioned::to_json(self)
    }
}

impl From<Unreadable> for DocumentError {
    fn from(why: Unreadable) -> Self {
        match why {
            Unreadable::Damaged(why) => Self::Damaged { why },
            Unreadable::Newer(format) => Self::Newer { format },
            Unreadable::TooLarge => Self::TooLarge,
        }
    }
}

/// The fields of a [`Document`].
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    /// 1. A grid that knows only lower ones refuses the document.
    #[schemars(range(min = 1, max = 1))]
    format: u64,
    /// `GatewayIngest`, as it was when the document was written.
    condition: Condition,
    /// What is held of each epoch, by epoch; at most 64.
    #[schemars(length(max = CAPACITY))]
    epochs: Vec<Entry>,
}

/// What is held of one run of a gateway's process.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EpochEvidence")]
struct Entry {
    /// The run: drawn at the process's start.
    epoch: Epoch,
    /// The sequence of its last accepted report, in decimal.
    sequence: Decimal,
    /// How many ingests it has rejected since its start, in decimal.
    rejected: Decimal,
    /// Whether that report called itself clean.
    clean: bool,
    /// What the process calls itself; diagnostic.
    replica: Replica,
    /// When the report was received.
    #[schemars(with = "String")]
    received: Timestamp,
    /// What that says against the process.
    standing: Word,
    /// When an operator cleared its evidence; only beside `cleared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    cleared: Option<Timestamp>,
}

/// What an epoch's evidence says against its process.
#[derive(Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Standing")]
enum Word {
    /// Nothing: its last report was clean.
    Clean,
    /// It rejected ingests; does not age out.
    Rejected,
    /// It rejected ingests, and an operator cleared that.
    Cleared,
}

impl From<Document> for Written {
    fn from(document: Document) -> Self {
        Self {
            format: FORMAT,
            epochs: document.ledger.records().map(Entry::from).collect(),
            condition: document.condition,
        }
    }
}

impl From<&Record> for Entry {
    fn from(record: &Record) -> Self {
        let report = record.report();
        let (standing, cleared) = match record.standing() {
            Standing::Clean => (Word::Clean, None),
            Standing::Rejected => (Word::Rejected, None),
            Standing::Cleared { at } => (Word::Cleared, Some(at)),
        };
        Self {
            epoch: report.epoch(),
            sequence: Decimal(report.sequence()),
            rejected: Decimal(report.rejected()),
            clean: report.clean(),
            replica: report.replica().clone(),
            received: record.received(),
            standing,
            cleared,
        }
    }
}

impl TryFrom<Entry> for Record {
    type Error = String;
    fn try_from(entry: Entry) -> Result<Self, String> {
        let Entry {
            epoch,
            sequence: Decimal(sequence),
            rejected: Decimal(rejected),
            clean,
            replica,
            received,
            standing,
            cleared,
        } = entry;
        let standing = match (standing, cleared) {
            (Word::Clean, None) => Standing::Clean,
            (Word::Rejected, None) => Standing::Rejected,
            (Word::Cleared, Some(at)) => Standing::Cleared { at },
            _ => {
                return Err(format!(
                    "epoch {epoch}: `cleared` stands beside `cleared`, and only there"
                ));
            }
        };
        let report = Report::new(epoch, sequence, rejected, clean, replica)
            .map_err(|refusal| format!("epoch {epoch}: {refusal}"))?;
        Self::kept(report, received, standing)
            .ok_or_else(|| format!("epoch {epoch}: clean, and its report was not"))
    }
}

impl TryFrom<Written> for Document {
    type Error = String;
    fn try_from(written: Written) -> Result<Self, String> {
        let Written {
            format,
            condition,
            epochs,
        } = written;
        if format != FORMAT {
            return Err(format!("there is no format {format}"));
        }
        let records: Result<Vec<Record>, String> =
            epochs.into_iter().map(Record::try_from).collect();
        let ledger = Ledger::of(records?)
            .ok_or_else(|| format!("an epoch stands twice, or there are more than {CAPACITY}"))?;
        if let Some(why) = condition.contradiction(&ledger) {
            return Err(why.to_owned());
        }
        Ok(Self { ledger, condition })
    }
}

#[cfg(test)]
mod tests;
