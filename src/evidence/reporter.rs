//! The reporter: what a gateway that is driven by scripts keeps between two reports (DESIGN.md, section 7).
//!
//! Pure: chance is an argument, and who keeps the state on disk stands elsewhere. The order is: change the state
//! ([`Reporter::observe`], [`Reporter::next`]), put it on disk, send the report, and tell the state what was answered. So
//! a process that dies repeats the identical report.
//!
//! # What follows a report that was not acknowledged
//!
//! It is repeated as it is until it is acknowledged, and only then is the next one sent. The table would let a later one
//! take its place: one with a higher sequence and no lower counter is never refused. But what that came to would hang on
//! whether the former had arrived:
//!
//! | the former, lost | the later one | arrived | did not arrive |
//! |---|---|---|---|
//! | counter 5 after 4 | counter 5, clean | rejected, then cleared | rejected: the later one is the increase |
//! | counter 4 again, not clean | counter 4, clean | rejected, then cleared | clean: nobody ever saw the rejection |
//!
//! In the first case a process that is clean stays rejected, in the second a rejection is lost. Settling the former first
//! leaves one outcome.
//!
//! What was observed meanwhile has no sequence yet and was never sent, so it may be drawn together: into the last count and
//! the last flag, and, where a rejection is followed by a clean report, into two reports, so that the rejection is seen and
//! then ends. There are never more than two.
//!
//! # Another process
//!
//! A process that starts has an epoch of its own. What the one before it did not get acknowledged stays its own, and is
//! sent first: as evidence of a process that is gone it is for an operator to clear.

mod answer;
mod state;

use serde::{Deserialize, Serialize};

use super::{Epoch, Report};
use crate::words::{Chance, Replica};

pub use answer::Meaning;
use state::Written;
pub use state::{STATE_MOST, StateError};

/// Of how many earlier processes something may wait.
const EARLIER_MOST: usize = 16;

/// The last sequence that is given. The greatest is for terminal rejected evidence, and nobody counts as far.
const LAST: u64 = u64::MAX - 1;

/// What a gateway's process has rejected in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many since it started.
    To(u64),
    /// So many more than last time.
    By(u64),
}

/// What a gateway keeps between two reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written", rename = "ReporterState")]
pub struct Reporter {
    current: Run,
    /// Processes that are gone, of which something waits; the oldest first.
    earlier: Vec<Run>,
}

/// Why an observation is not taken up. Nothing is changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReporterError {
    /// The count is lower than it was.
    #[error("{said} rejected in all is fewer than the {known} that this process counted before")]
    Decreased {
        /// What was counted before.
        known: u64,
        /// What is said now.
        said: u64,
    },
    /// The count would be past `u64::MAX`.
    #[error("the count of rejected ingests would be past {}", u64::MAX)]
    TooGreat,
    /// The greatest count cannot be clean.
    #[error("with a count of {} a process cannot be clean any more", u64::MAX)]
    Terminal,
    /// No sequence is left.
    #[error("this process has used up its sequences")]
    Exhausted,
    /// Too many processes left rejections behind.
    #[error(
        "rejections of {EARLIER_MOST} earlier processes wait to be acknowledged, and no more are kept"
    )]
    TooManyProcesses,
}

/// One run of a gateway's process, and what of it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    epoch: Epoch,
    replica: Replica,
    /// The last sequence that was given; 0: none yet.
    sequence: u64,
    /// What it has rejected in all.
    rejected: u64,
    /// The count of the last acknowledged report.
    acknowledged: u64,
    /// What may have been sent, with the last sequence.
    sent: Option<Report>,
    /// What was not: the flags of at most two reports, with the count as it is.
    unsent: Vec<bool>,
}

/// What waits to be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Of which process.
    pub epoch: Epoch,
    /// Its sequence; `None`: it was never sent.
    pub sequence: Option<u64>,
    /// The process's count.
    pub rejected: u64,
    /// Its flag.
    pub clean: bool,
}

impl Run {
    fn new(epoch: Epoch, replica: Replica) -> Self {
        Self {
            epoch,
            replica,
            sequence: 0,
            rejected: 0,
            acknowledged: 0,
            sent: None,
            unsent: Vec::new(),
        }
    }

    /// The count that the site holds once what may have been sent is acknowledged.
    fn base(&self) -> u64 {
        self.sent
            .as_ref()
            .map_or(self.acknowledged, Report::rejected)
    }

    /// Whether what was not sent begins with a rejection.
    fn unsent_rejects(&self) -> bool {
        let first = self.unsent.first();
        first.is_some_and(|clean| !clean || self.rejected > self.base())
    }

    fn sent_rejects(&self) -> bool {
        let sent = self.sent.as_ref();
        sent.is_some_and(|sent| !sent.clean() || sent.rejected() > self.acknowledged)
    }

    fn is_settled(&self) -> bool {
        self.sent.is_none() && self.unsent.is_empty()
    }

    fn observe(&mut self, count: Count, clean: bool) -> Result<(), ReporterError> {
        let rejected = match count {
            Count::To(said) => said,
            Count::By(more) => self
                .rejected
                .checked_add(more)
                .ok_or(ReporterError::TooGreat)?,
        };
        if rejected < self.rejected {
            return Err(ReporterError::Decreased {
                known: self.rejected,
                said: rejected,
            });
        }
        if clean && rejected == u64::MAX {
            return Err(ReporterError::Terminal);
        }
        // Room for the two that may wait.
        if self.sequence >= LAST.saturating_sub(1) {
            return Err(ReporterError::Exhausted);
        }
        if rejected > self.rejected || !clean {
            self.unsent = vec![clean];
        } else if self.unsent.is_empty() || (self.unsent.len() == 1 && self.unsent_rejects()) {
            self.unsent.push(true);
        }
        self.rejected = rejected;
        Ok(())
    }

    fn next(&mut self) -> Option<Report> {
        if self.sent.is_none() {
            let clean = *self.unsent.first()?;
            let sequence = self.sequence.checked_add(1)?;
            let replica = self.replica.clone();
            let report = Report::new(self.epoch, sequence, self.rejected, clean, replica).ok()?;
            self.unsent.remove(0);
            self.sequence = sequence;
            self.sent = Some(report);
        }
        self.sent.clone()
    }

    fn waiting(&self) -> impl Iterator<Item = Waiting> + '_ {
        let sent = self.sent.iter().map(|report| Waiting {
            epoch: self.epoch,
            sequence: Some(report.sequence()),
            rejected: report.rejected(),
            clean: report.clean(),
        });
        sent.chain(self.unsent.iter().map(|clean| Waiting {
            epoch: self.epoch,
            sequence: None,
            rejected: self.rejected,
            clean: *clean,
        }))
    }

    /// Why it cannot be what was kept; `None`: it can.
    fn contradiction(&self) -> Option<&'static str> {
        let is_one = |report: &Report| {
            report.sequence() == self.sequence
                && (self.acknowledged..=self.rejected).contains(&report.rejected())
        };
        if self.sequence > LAST {
            Some("its sequence is too great")
        } else if self.acknowledged > self.rejected {
            Some("its count is lower than what was acknowledged")
        } else if self.sequence == 0 && (self.sent.is_some() || self.acknowledged > 0) {
            Some("it has no sequence, and something was sent")
        } else if !self.sent.as_ref().is_none_or(is_one) {
            Some("what was sent is not the last report")
        } else if self.unsent.is_empty() && self.rejected > self.base() {
            Some("it counts more than it reports")
        } else if self.rejected == u64::MAX && self.unsent.contains(&true) {
            Some("with the greatest count it cannot be clean")
        } else if !matches!(self.unsent.as_slice(), [] | [_] | [_, true]) {
            Some("more waits than may")
        } else if self.unsent.len() == 2 && !self.unsent_rejects() {
            Some("two clean reports wait")
        } else {
            None
        }
    }
}

impl Reporter {
    /// The reporter of a process that starts.
    #[must_use]
    pub fn new(replica: Replica, chance: &mut dyn Chance) -> Self {
        Self {
            current: Run::new(Epoch::draw(chance), replica),
            earlier: Vec::new(),
        }
    }

    /// The run that reports now.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.current.epoch
    }

    /// What its process has rejected in all.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.current.rejected
    }

    /// Another process starts, with the name of the last one. Says whether it did: of one that never reported nothing is
    /// to be told apart.
    ///
    /// # Errors
    /// When rejections of too many earlier ones wait.
    pub fn start(&mut self, chance: &mut dyn Chance) -> Result<bool, ReporterError> {
        if self.current.sequence == 0 && self.current.is_settled() {
            return Ok(false);
        }
        if !self.current.is_settled() {
            if self.earlier.len() >= EARLIER_MOST {
                // What is merely clean is no evidence: without it that of its process stays, which is on the safe side.
                let idle = |run: &Run| !run.sent_rejects() && !run.unsent_rejects();
                let goes = self.earlier.iter().position(idle);
                self.earlier
                    .remove(goes.ok_or(ReporterError::TooManyProcesses)?);
            }
            self.earlier.push(self.current.clone());
        }
        let replica = self.current.replica.clone();
        self.current = Run::new(Epoch::draw(chance), replica);
        Ok(true)
    }

    /// The process calls itself something else from its next report on.
    pub fn rename(&mut self, replica: Replica) {
        self.current.replica = replica;
    }

    /// Takes up what the process says of itself.
    ///
    /// # Errors
    /// When that cannot be reported; nothing is changed then.
    pub fn observe(&mut self, count: Count, clean: bool) -> Result<(), ReporterError> {
        self.current.observe(count, clean)
    }

    /// The report that is to be sent next, of the processes that are not among `passed`; the same one until it is
    /// acknowledged. The state has to be on disk before it is sent. `None`: nothing waits.
    pub fn next(&mut self, passed: &[Epoch]) -> Option<Report> {
        self.runs_mut()
            .filter(|run| !passed.contains(&run.epoch))
            .find_map(Run::next)
    }

    fn runs_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.earlier
            .iter_mut()
            .chain(std::iter::once(&mut self.current))
    }

    /// The site has persisted `report`.
    pub fn acknowledged(&mut self, report: &Report) {
        for run in self.runs_mut() {
            if run.sent.as_ref() == Some(report) {
                run.acknowledged = report.rejected();
                run.sent = None;
            }
        }
        self.earlier.retain(|run| !run.is_settled());
    }

    /// The site refuses `report` for good. Of an earlier process nothing more can be done, and what waits of it is given
    /// up; says whether that was so. The present one's stays, until another process starts.
    pub fn refused(&mut self, report: &Report) -> bool {
        let before = self.earlier.len();
        self.earlier.retain(|run| run.epoch != report.epoch());
        self.earlier.len() < before
    }

    /// What waits to be acknowledged, in the order in which it is sent.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        let runs = self.earlier.iter().chain(std::iter::once(&self.current));
        runs.flat_map(Run::waiting).collect()
    }
}

#[cfg(test)]
mod tests;
