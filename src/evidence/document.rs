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
use super::{Condition, Epoch, Report};
use crate::words::Replica;

/// The format that this grid writes.
pub const FORMAT: u64 = 1;

/// The most bytes of a document: 1 MiB. One of 64 epochs has some 30 KiB.
pub const DOCUMENT_MOST: usize = 1024 * 1024;

/// How much of a parser's words is repeated, in characters.
const WHY_MOST: usize = 200;

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
        #[derive(Deserialize)]
        struct Head {
            format: u64,
        }
        if json.len() > DOCUMENT_MOST {
            return Err(DocumentError::TooLarge);
        }
        let head: Head = serde_json::from_slice(json).map_err(damaged)?;
        if head.format > FORMAT {
            return Err(DocumentError::Newer {
                format: head.format,
            });
        }
        serde_json::from_slice(json).map_err(damaged)
    }

    /// Writes it: for people too, each field on a line.
    ///
    /// # Errors
    /// Never, but for a fault in the writer of JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        Ok(json)
    }
}

/// What a parser says repeats what it read.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn damaged(error: serde_json::Error) -> DocumentError {
    let said = error.to_string();
    let why = said
        .chars()
        .take(WHY_MOST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    DocumentError::Damaged { why }
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn of(number: u8, sequence: u64, rejected: u64, clean: bool) -> Report {
        let replica = Replica::new(&format!("gw-{number}")).unwrap();
        Report::new(
            Epoch::from_bytes([number; 16]),
            sequence,
            rejected,
            clean,
            replica,
        )
        .unwrap()
    }

    /// A clean one, a rejected one with the greatest numbers, one that was cleared.
    fn document() -> Document {
        let mut ledger = Ledger::new();
        ledger.report(&of(1, 1, 0, true), at(0));
        ledger.report(&of(2, u64::MAX, u64::MAX, false), at(1));
        ledger.report(&of(3, 7, 2, true), at(2));
        ledger.clear(Epoch::from_bytes([3; 16]), at(3));
        Document::new(ledger, None, at(4))
    }

    fn text() -> String {
        String::from_utf8(document().to_json().unwrap()).unwrap()
    }

    fn why(json: &str) -> String {
        Document::from_json(json.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_document_is_json_for_people_too_and_is_read_back() {
        insta::assert_snapshot!(text(), @r#"
        {
          "format": 1,
          "condition": {
            "type": "GatewayIngest",
            "status": "False",
            "reason": "Rejected",
            "message": "rejected evidence is in force from gw-2 (epoch 02020202020202020202020202020202, 18446744073709551615 rejected in all), of 3 gateway processes",
            "lastTransitionTime": "2027-01-15T08:00:04Z"
          },
          "epochs": [
            {
              "epoch": "01010101010101010101010101010101",
              "sequence": "1",
              "rejected": "0",
              "clean": true,
              "replica": "gw-1",
              "received": "2027-01-15T08:00:00Z",
              "standing": "clean"
            },
            {
              "epoch": "02020202020202020202020202020202",
              "sequence": "18446744073709551615",
              "rejected": "18446744073709551615",
              "clean": false,
              "replica": "gw-2",
              "received": "2027-01-15T08:00:01Z",
              "standing": "rejected"
            },
            {
              "epoch": "03030303030303030303030303030303",
              "sequence": "7",
              "rejected": "2",
              "clean": true,
              "replica": "gw-3",
              "received": "2027-01-15T08:00:02Z",
              "standing": "cleared",
              "cleared": "2027-01-15T08:00:03Z"
            }
          ]
        }
        "#);
        assert_eq!(Document::from_json(text().as_bytes()), Ok(document()));
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let newer = text().replace("\"format\": 1", "\"format\": 2");
        assert_eq!(
            Document::from_json(newer.as_bytes()),
            Err(DocumentError::Newer { format: 2 })
        );
        let strange = r#"{ "format": 7, "ledger": [] }"#;
        insta::assert_snapshot!(why(strange), @"it has format 7, this grid reads format 1: a newer grid wrote it, use that one");
    }

    #[test]
    fn a_damaged_document_is_refused_and_never_taken_for_an_empty_one() {
        let whole = text();
        for end in (0..whole.trim_end().len()).step_by(7) {
            let refused = Document::from_json(&whole.as_bytes()[..end]);
            assert!(
                matches!(refused, Err(DocumentError::Damaged { .. })),
                "{end}"
            );
        }
        for (old, new) in [
            ("\"format\": 1", "\"format\": 0"),
            ("\"format\": 1", "\"format\": \"1\""),
            ("\"format\": 1", "\"format\": 1, \"mood\": 1"),
            ("\"sequence\": \"7\"", "\"sequence\": 7"),
            ("\"sequence\": \"7\"", "\"sequence\": \"07\""),
            (
                "\"sequence\": \"7\"",
                "\"sequence\": \"18446744073709551616\"",
            ),
            ("\"replica\": \"gw-1\"", "\"replica\": \"GW\""),
            ("\"epoch\": \"0101", "\"epoch\": \"0X01"),
            // Three of them now.
            (
                "\"epoch\": \"01010101010101010101010101010101\"",
                "\"epoch\": \"03030303030303030303030303030303\"",
            ),
            // Evidence that is in force, without the condition that says so, and the reverse.
            ("\"standing\": \"clean\"", "\"standing\": \"cleared\""),
            ("\"standing\": \"rejected\"", "\"standing\": \"clean\""),
            ("\"status\": \"False\"", "\"status\": \"True\""),
            ("\"reason\": \"Rejected\"", "\"reason\": \"Stale\""),
            ("\"clean\": false", "\"clean\": true"),
            ("\"message\": \"", "\"message\": \"\\u001b[2J"),
            ("\"type\": \"GatewayIngest\"", "\"type\": \"Ready\""),
        ] {
            let wrong = whole.replace(old, new);
            assert_ne!(wrong, whole, "{old}");
            let refused = Document::from_json(wrong.as_bytes());
            assert!(
                matches!(refused, Err(DocumentError::Damaged { .. })),
                "{new}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_document_is_bounded() {
        let mut large = document().to_json().unwrap();
        large.resize(DOCUMENT_MOST, b' ');
        assert_eq!(Document::from_json(&large), Ok(document()));
        large.push(b' ');
        assert_eq!(Document::from_json(&large), Err(DocumentError::TooLarge));

        let mut json: serde_json::Value = serde_json::from_str(&text()).unwrap();
        let entry = json["epochs"][1].clone();
        let entries = json["epochs"].as_array_mut().unwrap();
        for number in 3..=64 {
            let mut one = entry.clone();
            one["epoch"] = format!("{number:032x}").into();
            entries.push(one);
        }
        assert_eq!(entries.len(), 65);
        insta::assert_snapshot!(why(&json.to_string()), @"it is damaged: an epoch stands twice, or there are more than 64");
        json["epochs"].as_array_mut().unwrap().pop();
        assert!(Document::from_json(json.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn the_words_about_a_damaged_document_are_bounded_and_clean() {
        let field = format!("\\u001b[2J{}", "a".repeat(5000));
        let wrong = text().replace("\"format\": 1", &format!("\"format\": 1, \"{field}\": 1"));
        let why = why(&wrong);
        assert!(!why.contains(char::is_control), "{why:?}");
        assert!(why.chars().count() < 300, "{why}");
    }

    #[test]
    fn the_fullest_document_is_far_below_its_bound() {
        let mut ledger = Ledger::new();
        for number in 0..64 {
            let replica = Replica::new(&"a".repeat(63)).unwrap();
            let epoch = Epoch::from_bytes([number; 16]);
            let report = Report::new(epoch, u64::MAX, u64::MAX, false, replica).unwrap();
            ledger.report(&report, at(0));
            ledger.clear(epoch, at(0));
        }
        let json = Document::new(ledger, None, at(0)).to_json().unwrap();
        assert!(json.len() < DOCUMENT_MOST / 16, "{}", json.len());
    }

    proptest! {
        #[test]
        fn every_ledger_is_read_back_as_it_was(
            steps in proptest::collection::vec((0_u8..70, any::<u64>(), 0_u64..3, any::<bool>(), any::<bool>()), 0..80),
            nanosecond in 0_i32..1_000_000_000
        ) {
            let now = Timestamp::new(1_800_000_000, nanosecond).unwrap();
            let mut ledger = Ledger::new();
            for (number, sequence, rejected, clean, clears) in steps {
                let replica = Replica::new("gw-0").unwrap();
                let epoch = Epoch::from_bytes([number; 16]);
                if let Ok(report) = Report::new(epoch, sequence, rejected, clean, replica) {
                    ledger.report(&report, now);
                }
                if clears {
                    ledger.clear(epoch, now);
                }
            }
            let document = Document::new(ledger, None, now);
            let json = document.to_json().unwrap();
            prop_assert_eq!(Document::from_json(&json), Ok(document));
        }
    }
}
