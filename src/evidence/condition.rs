//! The condition `GatewayIngest`: what the ledger amounts to, as Kubernetes conditions are.
//!
//! A reason has one status, so none is kept beside it. The time of the last transition is of the status, not of the
//! reason: it has to be carried from one condition to the next.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ledger::{FRESH, Ledger, Record};

/// The longest message, in bytes.
pub const MESSAGE_MOST: usize = 1024;

/// How many processes a message names at most.
const NAMED: usize = 3;

/// What is so: `status` of a Kubernetes condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Status {
    /// No evidence is in force, and some process reported lately.
    True,
    /// Some process rejected ingests.
    False,
    /// Nobody reported lately.
    Unknown,
}

/// Why it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Reason {
    /// `True`: no evidence is in force, and some record is fresh.
    Clean,
    /// `False`: the evidence of at least one epoch is in force, however old it is.
    Rejected,
    /// `Unknown`: nothing is held.
    NoReports,
    /// `Unknown`: no record is fresh.
    Stale,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Clean, Self::Rejected, Self::NoReports, Self::Stale];

    /// As the condition says it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Clean => "Clean",
            Self::Rejected => "Rejected",
            Self::NoReports => "NoReports",
            Self::Stale => "Stale",
        }
    }

    /// The status that it gives.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Clean => Status::True,
            Self::Rejected => Status::False,
            Self::NoReports | Self::Stale => Status::Unknown,
        }
    }
}

/// What a ledger amounts to at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    reason: Reason,
    message: String,
}

impl Finding {
    /// What `ledger` amounts to.
    pub(super) fn of(ledger: &Ledger, now: Timestamp) -> Self {
        let known = ledger.records().len();
        let rejected: Vec<&Record> = ledger.records().filter(|r| r.is_rejected()).collect();
        let fresh = ledger.records().filter(|r| r.is_fresh(now)).count();
        let last = ledger.last();
        let (reason, message) = match last {
            _ if !rejected.is_empty() => (Reason::Rejected, rejections(rejected, known)),
            None => (
                Reason::NoReports,
                "no gateway process has reported yet".to_owned(),
            ),
            Some((replica, received)) if fresh == 0 => (
                Reason::Stale,
                format!(
                    "no gateway process reported within {} s; the last one was {replica}, at {received:.0}",
                    FRESH.as_secs()
                ),
            ),
            Some(_) => (
                Reason::Clean,
                format!(
                    "no rejected evidence is in force; {fresh} of {known} gateway processes reported within {} s",
                    FRESH.as_secs()
                ),
            ),
        };
        Self { reason, message }
    }

    /// What is so.
    #[must_use]
    pub fn status(&self) -> Status {
        self.reason.status()
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The same for people; at most [`MESSAGE_MOST`] bytes.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Names the processes, who reported last first.
fn rejections(mut rejected: Vec<&Record>, known: usize) -> String {
    rejected.sort_by_key(|record| std::cmp::Reverse(record.received()));
    let named: Vec<String> = rejected
        .iter()
        .take(NAMED)
        .map(|record| {
            let report = record.report();
            format!(
                "{} (epoch {}, {} rejected in all)",
                report.replica(),
                report.epoch(),
                report.rejected()
            )
        })
        .collect();
    let more = match rejected.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "rejected evidence is in force from {}{more}, of {known} gateway processes",
        named.join(", ")
    )
}

/// The one type of condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
enum Type {
    GatewayIngest,
}

/// The condition `GatewayIngest`, in the words of a Kubernetes condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    /// `GatewayIngest`.
    #[serde(rename = "type")]
    kind: Type,
    /// What is so.
    status: Status,
    /// Why.
    reason: Reason,
    /// The same for people.
    #[schemars(length(max = MESSAGE_MOST))]
    message: String,
    /// Since when the status is what it is; whole seconds.
    #[schemars(with = "String")]
    last_transition_time: Timestamp,
}

impl Condition {
    /// The condition that follows `previous`: the time of the last transition stays unless the status changed.
    #[must_use]
    pub fn following(previous: Option<&Self>, finding: Finding, now: Timestamp) -> Self {
        let Finding { reason, message } = finding;
        let status = reason.status();
        let since = previous
            .filter(|previous| previous.status == status)
            .map(|previous| previous.last_transition_time);
        Self {
            kind: Type::GatewayIngest,
            status,
            reason,
            message,
            last_transition_time: since.unwrap_or_else(|| whole_seconds(now)),
        }
    }

    /// What is so.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The same for people; at most [`MESSAGE_MOST`] bytes, without control characters.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Since when the status is what it is.
    #[must_use]
    pub fn last_transition_time(&self) -> Timestamp {
        self.last_transition_time
    }

    /// Why it cannot have been written for `ledger`; `None`: it can.
    pub(super) fn contradiction(&self, ledger: &Ledger) -> Option<&'static str> {
        let rejected = ledger.records().any(Record::is_rejected);
        let empty = ledger.records().len() == 0;
        if self.status != self.reason.status() {
            Some("the condition's status is not that of its reason")
        } else if rejected != (self.reason == Reason::Rejected) {
            Some("the condition contradicts the evidence in force")
        } else if empty != (self.reason == Reason::NoReports) {
            Some("the condition contradicts which epochs are held")
        } else if self.message.len() > MESSAGE_MOST {
            Some("the condition's message is too long")
        } else if self.message.contains(char::is_control) {
            Some("the condition's message has control characters")
        } else {
            None
        }
    }
}

/// Kubernetes dates conditions in whole seconds.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Epoch, Report};
    use crate::words::Replica;

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

    fn said(ledger: &Ledger, second: i64) -> String {
        let finding = ledger.condition(at(second));
        format!(
            "{:?}/{:?}: {}",
            finding.status(),
            finding.reason(),
            finding.message()
        )
    }

    #[test]
    fn the_condition_says_what_is_so_and_why() {
        let mut ledger = Ledger::new();
        let mut story = vec![said(&ledger, 0)];
        ledger.report(&of(1, 1, 0, true), at(0));
        ledger.report(&of(2, 1, 0, true), at(10));
        story.push(said(&ledger, 300));
        story.push(said(&ledger, 310));
        story.push(said(&ledger, 311));
        ledger.report(&of(1, 2, 4, true), at(400));
        story.push(said(&ledger, 400));
        story.push(said(&ledger, 1_000_000));
        ledger.clear(Epoch::from_bytes([1; 16]), at(500));
        story.push(said(&ledger, 500));
        story.push(said(&ledger, 701));
        insta::assert_snapshot!(story.join("\n"), @"
        Unknown/NoReports: no gateway process has reported yet
        True/Clean: no rejected evidence is in force; 2 of 2 gateway processes reported within 300 s
        True/Clean: no rejected evidence is in force; 1 of 2 gateway processes reported within 300 s
        Unknown/Stale: no gateway process reported within 300 s; the last one was gw-2, at 2027-01-15T08:00:10Z
        False/Rejected: rejected evidence is in force from gw-1 (epoch 01010101010101010101010101010101, 4 rejected in all), of 2 gateway processes
        False/Rejected: rejected evidence is in force from gw-1 (epoch 01010101010101010101010101010101, 4 rejected in all), of 2 gateway processes
        True/Clean: no rejected evidence is in force; 1 of 2 gateway processes reported within 300 s
        Unknown/Stale: no gateway process reported within 300 s; the last one was gw-1, at 2027-01-15T08:06:40Z
        ");
    }

    #[test]
    fn rejected_evidence_is_never_stale_and_outweighs_whoever_is_clean() {
        let mut ledger = Ledger::new();
        ledger.report(&of(1, 1, 1, false), at(0));
        ledger.report(&of(2, 1, 0, true), at(100_000));
        assert_eq!(ledger.condition(at(100_000)).status(), Status::False);
        ledger.report(&of(1, 2, 1, true), at(100_001));
        assert_eq!(ledger.condition(at(100_001)).status(), Status::True);
    }

    #[test]
    fn the_longest_message_is_within_its_bound() {
        let mut ledger = Ledger::new();
        for number in 0..64 {
            let replica = Replica::new(&"a".repeat(63)).unwrap();
            let epoch = Epoch::from_bytes([number; 16]);
            let report = Report::new(epoch, u64::MAX, u64::MAX, false, replica).unwrap();
            ledger.report(&report, at(0));
        }
        let message = ledger.condition(at(0)).message;
        assert!(message.len() < MESSAGE_MOST, "{}", message.len());
        assert!(
            message.ends_with("and 61 more, of 64 gateway processes"),
            "{message}"
        );
    }

    #[test]
    fn who_reported_last_is_named_first() {
        let mut ledger = Ledger::new();
        for (number, second) in [(1, 10), (2, 30), (3, 20), (4, 5)] {
            ledger.report(&of(number, 1, 1, false), at(second));
        }
        let message = ledger.condition(at(30)).message;
        let places = ["gw-2", "gw-3", "gw-1", "1 more"].map(|name| message.find(name));
        assert!(places.is_sorted() && !places.contains(&None), "{message}");
    }

    #[test]
    fn the_time_of_the_last_transition_is_the_statuss() {
        let mut ledger = Ledger::new();
        let half = Timestamp::new(1_800_000_000, 500_000_000).unwrap();
        let none = Condition::following(None, ledger.condition(half), half);
        assert_eq!(none.last_transition_time(), at(0));
        ledger.report(&of(1, 1, 0, true), at(1));
        let clean = Condition::following(Some(&none), ledger.condition(at(1)), at(1));
        assert_eq!(clean.last_transition_time(), at(1));
        let still = Condition::following(Some(&clean), ledger.condition(at(200)), at(200));
        assert_eq!(still.last_transition_time(), at(1));
        let stale = Condition::following(Some(&still), ledger.condition(at(400)), at(400));
        assert_eq!(
            (stale.reason(), stale.last_transition_time()),
            (Reason::Stale, at(400))
        );
        // From one reason of `Unknown` to the other: no transition.
        let gone = Condition::following(Some(&stale), Ledger::new().condition(at(500)), at(500));
        assert_eq!(
            (gone.reason(), gone.last_transition_time()),
            (Reason::NoReports, at(400))
        );
    }
}
