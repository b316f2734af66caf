//! The single writer: reports that wait together are applied in order, published by one write, and answered each
//! (DESIGN.md, section 7).
//!
//! Invariants:
//! - 204 is said of a report only once the home has shown a document that holds it. What was judged against something
//!   that was not published then is answered by 503, which means *unknown*; a reporter repeats the identical report.
//! - The home is read anew before each write, and the write is refused if it changed since: nothing is kept in memory
//!   from one batch to the next but one bit, below.
//! - After a start, and after a failed write, what the home shows may not be durable. Then an identical report alone
//!   does not get its 204 from there: the document is published once more, as it is.

use std::time::Duration;

use jiff::Timestamp;

use super::homes::{Home, HomeError, PublishError};
use super::{Clearing, Condition, Document, Epoch, Ledger, Reason, Report, Verdict};

/// How long an operation has in all: body, admission and writes included.
pub const BUDGET: Duration = Duration::from_secs(5);

/// How often a document is published against somebody else's.
const ATTEMPTS: u32 = 3;

/// An event of `grid_gateway_feedback_events_total{event}`. Nothing else is ever a label there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// Somebody else published in between; each time.
    Conflict,
    /// It happened at all three attempts.
    ConflictExhausted,
    /// A new epoch, and no room for it.
    Overflow,
    /// A caller that is not the site itself. For the listener to count.
    Unauthorized,
    /// The home could not be read or written, or showed something else than what was written.
    WriteFailure,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Conflict,
        Self::ConflictExhausted,
        Self::Overflow,
        Self::Unauthorized,
        Self::WriteFailure,
    ];

    /// The label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::ConflictExhausted => "conflict_exhausted",
            Self::Overflow => "overflow",
            Self::Unauthorized => "unauthorized",
            Self::WriteFailure => "write_failure",
        }
    }
}

/// The answer to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// What became of it; an accepted one is persisted, with the condition.
    Known(Verdict),
    /// Whether it was persisted is unknown. 503.
    Unknown,
}

impl Answer {
    /// The HTTP status that says so. A 204 echoes the report's epoch and sequence.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Known(verdict) => verdict.status(),
            Self::Unknown => 503,
        }
    }
}

/// Why nothing was published that should have been. Unknown whether it was written.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The time was up.
    #[error("the time was up before the status document was written")]
    Late,
    /// Others published first, three times.
    #[error("somebody else published the status document in between, {ATTEMPTS} times: try again")]
    Overtaken,
    /// The home took the document and showed another one.
    #[error("the home of the status document does not show what was written to it")]
    ShowsOther,
    /// The home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// What became of a batch.
#[derive(Debug)]
pub struct Outcome {
    /// An answer to each report, in order.
    pub answers: Vec<Answer>,
    /// What is to be counted.
    pub events: Vec<Event>,
    /// Why some answers are unknown, for the log.
    pub failure: Option<Failure>,
}

/// What a change to the ledger asks of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asks {
    /// Nothing.
    Nothing,
    /// To be certain that what the home shows is durable.
    Certainty,
    /// To publish the ledger.
    Publication,
}

/// The writer of one home.
#[derive(Debug)]
pub struct Writer<H> {
    home: H,
    /// Whether what the home shows may not be durable.
    unsure: bool,
    /// What the home showed last; to be shown only, never to be judged by.
    shown: Option<Reason>,
}

impl<H: Home> Writer<H> {
    /// The writer of `home`.
    #[must_use]
    pub fn new(home: H) -> Self {
        Self {
            home,
            unsure: true,
            shown: None,
        }
    }

    /// The reason of the condition that the home showed last; `None`: it showed none yet.
    #[must_use]
    pub fn shown(&self) -> Option<Reason> {
        self.shown
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> &H {
        &self.home
    }

    /// The home, to read it.
    pub fn home_mut(&mut self) -> &mut H {
        &mut self.home
    }

    /// Takes the reports that wait together. `now` is when they are received; `left` says how much time is left, and is
    /// asked before each step: give it the latest deadline of the batch, and leave out whose own has passed.
    pub fn take(
        &mut self,
        reports: &[Report],
        now: Timestamp,
        left: &dyn Fn() -> Duration,
    ) -> Outcome {
        let mut verdicts = Vec::new();
        // How many verdicts hold whether the write succeeds or not.
        let mut settled = 0;
        let mut events = Vec::new();
        let sure = !self.unsure;
        let written = self.change(now, left, &mut events, |ledger, _| {
            ledger.redate(now);
            let mut asks = Asks::Nothing;
            (verdicts, settled) = (Vec::new(), 0);
            for report in reports {
                let verdict = ledger.report(report, now);
                asks = asks.max(match verdict {
                    Verdict::Accepted { .. } => Asks::Publication,
                    Verdict::Identical if !sure => Asks::Certainty,
                    Verdict::Identical | Verdict::Conflict { .. } | Verdict::Overflow => {
                        Asks::Nothing
                    }
                });
                verdicts.push(verdict);
                if asks == Asks::Nothing {
                    settled = verdicts.len();
                }
            }
            asks
        });
        let known = match &written {
            Ok(()) => verdicts.len(),
            Err(_) => settled,
        };
        let mut answers: Vec<Answer> = verdicts
            .into_iter()
            .take(known)
            .map(Answer::Known)
            .collect();
        answers.resize(reports.len(), Answer::Unknown);
        let overflows = answers
            .iter()
            .filter(|answer| **answer == Answer::Known(Verdict::Overflow))
            .count();
        events.extend(std::iter::repeat_n(Event::Overflow, overflows));
        Outcome {
            answers,
            events,
            failure: written.err(),
        }
    }

    /// Brings the persisted condition up to date, as time passes without reports: publishes if its status or its reason
    /// changed, if there is no document yet, or if a record is dated after `now`. What is to be counted is added to
    /// `events`.
    ///
    /// # Errors
    /// When that was called for and failed.
    pub fn refresh(
        &mut self,
        now: Timestamp,
        left: &dyn Fn() -> Duration,
        events: &mut Vec<Event>,
    ) -> Result<(), Failure> {
        self.change(now, left, events, |ledger, persisted| {
            let redated = ledger.redate(now);
            let reason = ledger.condition(now).reason();
            let current = persisted.is_some_and(|persisted| persisted.reason() == reason);
            if current && !redated {
                Asks::Nothing
            } else {
                Asks::Publication
            }
        })
    }

    /// An operator's act: [`Ledger::clear`], persisted.
    ///
    /// # Errors
    /// When it could not be persisted; unknown then whether it was.
    pub fn clear(
        &mut self,
        epoch: Epoch,
        now: Timestamp,
        left: &dyn Fn() -> Duration,
    ) -> Result<Clearing, Failure> {
        let mut clearing = Clearing::Unknown;
        self.change(now, left, &mut Vec::new(), |ledger, _| {
            clearing = ledger.clear(epoch, now);
            match clearing {
                Clearing::Cleared => Asks::Publication,
                Clearing::NothingInForce | Clearing::Unknown => Asks::Nothing,
            }
        })?;
        Ok(clearing)
    }

    /// An operator's act: [`Ledger::clear_stale`], persisted. Says of which epochs.
    ///
    /// # Errors
    /// When it could not be persisted; unknown then whether it was.
    pub fn clear_stale(
        &mut self,
        now: Timestamp,
        left: &dyn Fn() -> Duration,
    ) -> Result<Vec<Epoch>, Failure> {
        let mut cleared = Vec::new();
        self.change(now, left, &mut Vec::new(), |ledger, _| {
            cleared = ledger.clear_stale(now);
            match cleared.as_slice() {
                [] => Asks::Nothing,
                _ => Asks::Publication,
            }
        })?;
        Ok(cleared)
    }

    /// Reads the home, changes what it holds, and publishes that if asked to; again from the start while others publish
    /// in between.
    fn change(
        &mut self,
        now: Timestamp,
        left: &dyn Fn() -> Duration,
        events: &mut Vec<Event>,
        mut change: impl FnMut(&mut Ledger, Option<&Condition>) -> Asks,
    ) -> Result<(), Failure> {
        let written = self.attempts(now, left, events, &mut change);
        match &written {
            Ok(()) => {}
            Err(failure) => {
                self.unsure = true;
                match failure {
                    Failure::Late => {}
                    Failure::Overtaken => events.push(Event::ConflictExhausted),
                    Failure::ShowsOther | Failure::Home(_) => events.push(Event::WriteFailure),
                }
            }
        }
        written
    }

    fn attempts(
        &mut self,
        now: Timestamp,
        left: &dyn Fn() -> Duration,
        events: &mut Vec<Event>,
        change: &mut dyn FnMut(&mut Ledger, Option<&Condition>) -> Asks,
    ) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let held = self.home.read(some(left)?)?;
            let persisted = held.document.as_ref().map(Document::condition);
            self.shown = persisted.map(Condition::reason);
            let mut ledger = held
                .document
                .as_ref()
                .map_or_else(Ledger::new, |document| document.ledger().clone());
            let document = match (change(&mut ledger, persisted), &held.document) {
                (Asks::Nothing, _) | (Asks::Certainty, None) => return Ok(()),
                (Asks::Certainty, Some(as_it_is)) => as_it_is.clone(),
                (Asks::Publication, _) => Document::new(ledger, persisted, now),
            };
            match self.home.publish(&document, &held.version, some(left)?) {
                Ok(shown) if shown.document.as_ref() == Some(&document) => {
                    self.unsure = false;
                    self.shown = Some(document.condition().reason());
                    return Ok(());
                }
                Ok(_) => return Err(Failure::ShowsOther),
                Err(PublishError::Conflict) => events.push(Event::Conflict),
                Err(PublishError::Home(error)) => return Err(error.into()),
            }
        }
        Err(Failure::Overtaken)
    }
}

/// How much time is left, if there is any.
fn some(left: &dyn Fn() -> Duration) -> Result<Duration, Failure> {
    let left = left();
    if left.is_zero() {
        return Err(Failure::Late);
    }
    Ok(left)
}

#[cfg(test)]
mod tests;
