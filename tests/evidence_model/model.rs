//! What the ledger has to do, read out of DESIGN.md, section 7 ("Ingest feedback"), a second time and apart from
//! `src/evidence/`: whole numbers, no type of the package, and instead of a state that is changed the whole history of a
//! process, out of which everything is read.
//!
//! What the text leaves open, and what is held here:
//!
//! - *Which* stale clean record makes room. Held: the one that was received first; of several the smallest epoch.
//! - Whether a *cleared* record is a clean one there. "It keeps epoch, sequence and counter as the baseline" speaks
//!   against it. Held: it is. Otherwise 64 processes that died rejected would leave no room for ever, and nothing that an
//!   operator could do about it. What is lost with the baseline errs to the safe side: a process that still lives is a
//!   first of its epoch, and its counter is held against 0.
//! - Whether a record is fresh at 300 s, to the nanosecond. Held: yes.
//! - What a record is that was received after now, because the clock jumped back. Held: it has no age, so it is fresh;
//!   after [`Model::redate`] it was received at that moment.
//! - Whether a process that was cleared is *fresh*. Held: by its last report, as any other; a clear is not one. So a
//!   ledger of cleared records alone is `Clean` while one is fresh and `Stale` after.
//! - What a cleared process has to say next. Held: the table, as if nothing was cleared. The cleared report again is
//!   identical, and brings nothing back; a newer one at the same counter that does not say clean is rejected.
//! - Whether clearing again moves the time of the clearing. Held: no, nothing was in force.
//! - A lower counter in the *same* sequence stands in two rows, both 409. Held: it is a changed duplicate. So does a
//!   lower sequence with a lower counter. Held: it is a replay.

use std::collections::BTreeMap;

/// A second, in the unit of every time here.
pub const SECOND: i128 = 1_000_000_000;

/// How many epochs are held.
pub const HELD_MOST: usize = 64;

/// How old a fresh record is at most.
pub const FRESH_FOR: i128 = 300 * SECOND;

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub epoch: u128,
    pub sequence: u64,
    pub counter: u64,
    pub clean: bool,
    pub replica: String,
}

/// A row of the table, or what comes before the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// 400: the greatest sequence or counter, and clean.
    Refused,
    /// 204, of its epoch the first, and held.
    First,
    /// 507.
    NoRoom,
    /// 204, and nothing is written.
    Identical,
    /// 409: the same sequence, anything else different.
    Changed,
    /// 409: a lower sequence.
    LowerSequence,
    /// 409: a lower counter.
    LowerCounter,
    /// 204: a higher counter.
    HigherCounter,
    /// 204: the same counter, `clean: true`.
    Clears,
    /// 204: the same counter, `clean: false`.
    Unclean,
}

impl Row {
    /// What the reporter gets.
    pub fn status(self) -> u16 {
        match self {
            Self::Refused => 400,
            Self::NoRoom => 507,
            Self::Changed | Self::LowerSequence | Self::LowerCounter => 409,
            Self::First | Self::Identical => 204,
            Self::HigherCounter | Self::Clears | Self::Unclean => 204,
        }
    }
}

/// How a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    Clean,
    Rejected,
    Cleared(i128),
}

/// The condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    Rejected,
    NoReports,
    Stale,
    Clean,
}

/// One run of a process: all that it said and that was accepted.
#[derive(Debug, Clone)]
pub struct Process {
    accepted: Vec<Said>,
    pub received: i128,
    /// After how many reports an operator cleared it, and when.
    cleared: Option<(usize, i128)>,
}

impl Process {
    pub fn last(&self) -> &Said {
        self.accepted.last().expect("it said something")
    }

    /// The last report is evidence against the process if it counts more than the one before, or does not say clean.
    pub fn stands(&self) -> Stands {
        let (last, before) = self.accepted.split_last().expect("it said something");
        let counted = before.last().map_or(0, |report| report.counter);
        if last.clean && last.counter == counted {
            return Stands::Clean;
        }
        match self.cleared {
            Some((after, at)) if after == self.accepted.len() => Stands::Cleared(at),
            _ => Stands::Rejected,
        }
    }

    pub fn age(&self, now: i128) -> i128 {
        (now - self.received).max(0)
    }

    pub fn is_fresh(&self, now: i128) -> bool {
        self.age(now) <= FRESH_FOR
    }
}

/// Everything that was accepted.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub processes: BTreeMap<u128, Process>,
    /// Who made room last.
    pub made_room: Option<(u128, Stands)>,
}

impl Model {
    /// The row that a report is in; it has its effect.
    pub fn take(&mut self, said: &Said, now: i128) -> Row {
        if said.clean && (said.sequence == u64::MAX || said.counter == u64::MAX) {
            return Row::Refused;
        }
        let Some(process) = self.processes.get_mut(&said.epoch) else {
            if self.processes.len() >= HELD_MOST && !self.makes_room(now) {
                return Row::NoRoom;
            }
            let process = Process {
                accepted: vec![said.clone()],
                received: now,
                cleared: None,
            };
            self.processes.insert(said.epoch, process);
            return Row::First;
        };
        let held = process.last();
        let row = if said == held {
            Row::Identical
        } else if said.sequence == held.sequence {
            Row::Changed
        } else if said.sequence < held.sequence {
            Row::LowerSequence
        } else if said.counter < held.counter {
            Row::LowerCounter
        } else if said.counter > held.counter {
            Row::HigherCounter
        } else if said.clean {
            Row::Clears
        } else {
            Row::Unclean
        };
        if matches!(row, Row::HigherCounter | Row::Clears | Row::Unclean) {
            process.accepted.push(said.clone());
            process.received = now;
        }
        row
    }

    fn makes_room(&mut self, now: i128) -> bool {
        let stale = self
            .processes
            .iter()
            .filter(|(_, process)| !process.is_fresh(now) && process.stands() != Stands::Rejected);
        let first = stale.min_by_key(|(epoch, process)| (process.received, **epoch));
        let Some((epoch, stands)) = first.map(|(epoch, process)| (*epoch, process.stands())) else {
            return false;
        };
        self.processes.remove(&epoch);
        self.made_room = Some((epoch, stands));
        true
    }

    /// Whether it was in force; `None`: nobody is there.
    pub fn clear(&mut self, epoch: u128, now: i128) -> Option<bool> {
        let process = self.processes.get_mut(&epoch)?;
        let in_force = process.stands() == Stands::Rejected;
        if in_force {
            process.cleared = Some((process.accepted.len(), now));
        }
        Some(in_force)
    }

    /// Of whom it was in force, in the order of the epochs.
    pub fn clear_stale(&mut self, now: i128) -> Vec<u128> {
        let epochs: Vec<u128> = self.processes.keys().copied().collect();
        let stale = |model: &Self, epoch: &u128| !model.processes[epoch].is_fresh(now);
        epochs
            .into_iter()
            .filter(|epoch| stale(self, epoch) && self.clear(*epoch, now) == Some(true))
            .collect()
    }

    /// What was received after now was received now. Whether there was any.
    pub fn redate(&mut self, now: i128) -> bool {
        let later = self
            .processes
            .values_mut()
            .filter(|process| process.received > now);
        later.map(|process| process.received = now).count() > 0
    }

    pub fn condition(&self, now: i128) -> Why {
        let mut processes = self.processes.values();
        if processes
            .clone()
            .any(|process| process.stands() == Stands::Rejected)
        {
            Why::Rejected
        } else if processes.any(|process| process.is_fresh(now)) {
            Why::Clean
        } else if self.processes.is_empty() {
            Why::NoReports
        } else {
            Why::Stale
        }
    }
}
