//! The ledger: what is held of each epoch, and how a report changes it (DESIGN.md, section 7, the table).
//!
//! Pure. Every `now` is the wall clock of whoever keeps the ledger, at the moment of the call.
//!
//! Corners that the table leaves open, and what holds here:
//!
//! - The first report of an epoch is held against the counter 0: `rejected > 0` is rejected whatever the flag; counter 0
//!   with `clean: true` is clean; counter 0 with `clean: false` is rejected.
//! - *Identical* means all of it: epoch, sequence, counter, flag and replica. A newer report may name another replica.
//! - The greatest sequence is terminal: nothing newer can follow. After the greatest counter nothing can be clean, since
//!   a report with it cannot say so. Only an operator clears either.
//! - *Clear* keeps the record: sequence, counter, flag, replica and time of receipt. The report that was cleared, sent
//!   again, is identical and brings nothing back. The next report is judged by the table as ever: a higher counter,
//!   or the same one with `clean: false`, is rejected again.
//! - Nothing is in force in a record that is clean or cleared. Such a record, once stale, makes room for a new epoch
//!   when the ledger is full: the one that was received first, of several the one with the smallest epoch. Its process,
//!   should it still live, then reports as a first of its epoch, against the counter 0.
//! - An age is never negative: a record that was received after `now` (the clock jumped back) is of age 0, so fresh.
//!   [`Ledger::redate`] keeps such a record from being fresh until the clock is there again.
//! - A record is fresh up to and including [`FRESH`].

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::condition::Finding;
use super::{Epoch, Report};
use crate::words::Replica;

/// How many epochs are held at most.
pub const CAPACITY: usize = 64;

/// How old a fresh record is at most: 300 s.
pub const FRESH: Duration = Duration::from_secs(300);

/// What a record says against its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: its last report was clean.
    Clean,
    /// It rejected ingests. Does not age out.
    Rejected,
    /// It rejected ingests, and an operator cleared that.
    Cleared {
        /// When.
        at: Timestamp,
    },
}

/// What is held of one epoch.
///
/// Invariants: a clean record's report said clean; whatever said clean has neither the greatest sequence nor the
/// greatest counter ([`Report`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    report: Report,
    received: Timestamp,
    standing: Standing,
}

impl Record {
    /// A record as it was kept; `None`: a clean one whose report did not say clean.
    pub(super) fn kept(report: Report, received: Timestamp, standing: Standing) -> Option<Self> {
        let may_be = report.clean() || standing != Standing::Clean;
        may_be.then_some(Self {
            report,
            received,
            standing,
        })
    }

    /// The last report that was accepted: what the next one is held against.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// When that was.
    #[must_use]
    pub fn received(&self) -> Timestamp {
        self.received
    }

    /// What it says against the process.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// How long ago it was received; zero where the clock jumped back.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.received)).unwrap_or(Duration::ZERO)
    }

    /// Whether it is at most [`FRESH`] old.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.age(now) <= FRESH
    }

    /// Whether its evidence is in force.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.standing == Standing::Rejected
    }
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is held now. Once that is persisted: 204.
    Accepted {
        /// Whether the epoch stands otherwise than before; that of a new epoch does.
        changed: bool,
    },
    /// It is held already; nothing is written, nothing is fresher. 204.
    Identical,
    /// It contradicts what is held. 409.
    Conflict {
        /// How.
        why: Contradiction,
    },
    /// A new epoch, and no room for it. 507.
    Overflow,
}

impl Verdict {
    /// The HTTP status that says so.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Accepted { .. } | Self::Identical => 204,
            Self::Conflict { .. } => 409,
            Self::Overflow => 507,
        }
    }
}

/// How a report contradicts what is held of its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contradiction {
    /// The sequence that is held, with something else in it.
    Changed,
    /// A lower sequence: a replay.
    Replayed,
    /// A newer sequence, with a lower counter.
    Decreased,
}

/// What became of an operator's wish to clear an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// Its evidence is in force no more.
    Cleared,
    /// There was none in force.
    NothingInForce,
    /// No such epoch is held.
    Unknown,
}

/// What is held of each epoch: at most [`CAPACITY`] of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    records: BTreeMap<Epoch, Record>,
}

impl Ledger {
    /// Holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From records that were kept; `None`: two of one epoch, or more than [`CAPACITY`].
    pub(super) fn of(records: impl IntoIterator<Item = Record>) -> Option<Self> {
        let mut ledger = Self::new();
        for record in records {
            let epoch = record.report.epoch();
            if ledger.records.insert(epoch, record).is_some() || ledger.records.len() > CAPACITY {
                return None;
            }
        }
        Some(ledger)
    }

    /// The records, by epoch.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.records.values()
    }

    /// The record of `epoch`.
    #[must_use]
    pub fn record(&self, epoch: Epoch) -> Option<&Record> {
        self.records.get(&epoch)
    }

    /// Holds a report against what is held, and holds it from now on, if it is accepted.
    pub fn report(&mut self, report: &Report, now: Timestamp) -> Verdict {
        let held = self.records.get(&report.epoch());
        let counter = match held.map(Record::report) {
            Some(held) if report == held => return Verdict::Identical,
            Some(held) => {
                let why = if report.sequence() == held.sequence() {
                    Some(Contradiction::Changed)
                } else if report.sequence() < held.sequence() {
                    Some(Contradiction::Replayed)
                } else if report.rejected() < held.rejected() {
                    Some(Contradiction::Decreased)
                } else {
                    None
                };
                if let Some(why) = why {
                    return Verdict::Conflict { why };
                }
                held.rejected()
            }
            None => 0,
        };
        let standing = if report.rejected() > counter || !report.clean() {
            Standing::Rejected
        } else {
            Standing::Clean
        };
        let changed = held.is_none_or(|held| held.standing != standing);
        if held.is_none() && !self.makes_room(now) {
            return Verdict::Overflow;
        }
        let record = Record {
            report: report.clone(),
            received: now,
            standing,
        };
        self.records.insert(report.epoch(), record);
        Verdict::Accepted { changed }
    }

    /// Whether one more epoch has room now: at the capacity the oldest stale record without evidence in force goes.
    fn makes_room(&mut self, now: Timestamp) -> bool {
        if self.records.len() < CAPACITY {
            return true;
        }
        let goes = self
            .records
            .values()
            .filter(|record| !record.is_rejected() && !record.is_fresh(now))
            .map(|record| (record.received, record.report.epoch()))
            .min();
        goes.is_some_and(|(_, epoch)| self.records.remove(&epoch).is_some())
    }

    /// An operator's act: the evidence of `epoch` is in force no more. Sequence, counter and time of receipt stay.
    pub fn clear(&mut self, epoch: Epoch, now: Timestamp) -> Clearing {
        match self.records.get_mut(&epoch) {
            None => Clearing::Unknown,
            Some(record) if record.is_rejected() => {
                record.standing = Standing::Cleared { at: now };
                Clearing::Cleared
            }
            Some(_) => Clearing::NothingInForce,
        }
    }

    /// An operator's act: clears all evidence in force whose process has not reported for longer than [`FRESH`]. Says of
    /// which epochs.
    pub fn clear_stale(&mut self, now: Timestamp) -> Vec<Epoch> {
        let mut cleared = Vec::new();
        for (epoch, record) in &mut self.records {
            if record.is_rejected() && !record.is_fresh(now) {
                record.standing = Standing::Cleared { at: now };
                cleared.push(*epoch);
            }
        }
        cleared
    }

    /// What `GatewayIngest` is now.
    #[must_use]
    pub fn condition(&self, now: Timestamp) -> Finding {
        Finding::of(self, now)
    }

    /// After the clock jumped back: what was received after `now` counts as received now. Else a record that a wrong
    /// clock dated a year ahead would be fresh for a year. Says whether there was any.
    ///
    /// For the daemon alone, whose clock dates the records: an operator's machine, with a slow clock, would make them
    /// older than they are.
    pub fn redate(&mut self, now: Timestamp) -> bool {
        let mut any = false;
        for record in self.records.values_mut() {
            if record.received > now {
                record.received = now;
                any = true;
            }
        }
        any
    }

    /// Of the record that was received last: by whom, and when.
    pub(super) fn last(&self) -> Option<(&Replica, Timestamp)> {
        let last = self.records.values().max_by_key(|record| record.received)?;
        Some((last.report.replica(), last.received))
    }
}

#[cfg(test)]
mod tests;
