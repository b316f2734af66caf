//! One interleaving, through the ledger and through the model.

mod compared;

use grid::evidence::{
    Clearing, Condition, Contradiction, Document, Epoch, Ledger, Report, Standing, Status, Verdict,
};
use grid::words::Replica;
use jiff::Timestamp;
use proptest::prelude::*;

use compared::words;

use super::coverage::{Seen, of_row};
use super::model::{Model, Row, SECOND, Said, Stands};
use super::plan::{Change, Reported, Step, Way};

/// Where the clock begins.
const BEGIN: i128 = 1_800_000_000 * SECOND;

/// What a process knows of itself.
struct Reporter {
    epoch: u128,
    said: Vec<Said>,
}

impl Reporter {
    fn last(&self) -> Said {
        self.said.last().unwrap().clone()
    }
}

/// The condition as it was last written: its status, and since when.
struct Written {
    condition: Condition,
    status: Status,
    since: i128,
}

pub struct Interleaving {
    ledger: Ledger,
    model: Model,
    now: i128,
    reporters: Vec<Reporter>,
    /// Who made room once.
    gone: Vec<u128>,
    written: Option<Written>,
    pub seen: Seen,
}

/// Epochs in an order that is not the one in which they come.
fn epoch_of(number: usize) -> u128 {
    (number as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
}

fn stamp(at: i128) -> Timestamp {
    Timestamp::from_nanosecond(at).unwrap()
}

fn of(stands: Stands) -> Standing {
    match stands {
        Stands::Clean => Standing::Clean,
        Stands::Rejected => Standing::Rejected,
        Stands::Cleared(at) => Standing::Cleared { at: stamp(at) },
    }
}

impl Interleaving {
    pub fn new() -> Self {
        Self {
            ledger: Ledger::new(),
            model: Model::default(),
            now: BEGIN,
            reporters: Vec::new(),
            gone: Vec::new(),
            written: None,
            seen: Seen::new(),
        }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// What is held of who is asked for, counted round.
    fn who(&self, who: usize) -> Option<usize> {
        who.checked_rem(self.reporters.len())
    }

    pub fn goes_on(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Start { reported } => self.start(reported)?,
            Step::Crowd { many, rejected } => {
                for nth in 1..=*many {
                    let is_rejected = nth.checked_rem(*rejected) == Some(0);
                    self.start(&Reported {
                        rise: 1,
                        more: u64::from(is_rejected),
                        clean: true,
                        on_the_way: Way::Arrives,
                    })?;
                }
            }
            Step::Clock { by } => self.now += by,
            Step::ClearNobody => {
                let cleared = self
                    .ledger
                    .clear(Epoch::from_bytes([7; 16]), stamp(self.now));
                prop_assert_eq!(cleared, Clearing::Unknown);
                self.saw("clear: nobody");
            }
            Step::ClearStale => self.clear_stale()?,
            Step::Redate => {
                let any = self.model.redate(self.now);
                prop_assert_eq!(self.ledger.redate(stamp(self.now)), any);
                self.saw(if any { "redate: some" } else { "redate: none" });
            }
            Step::Restart => self.restart()?,
            Step::Look { by } => return self.look(self.now + by),
            Step::Report { who, reported } => {
                if let Some(who) = self.who(*who) {
                    self.report(who, reported)?;
                }
            }
            Step::Repeat { who }
            | Step::Replay { who, .. }
            | Step::ChangedDuplicate { who, .. }
            | Step::Decrease { who, .. }
            | Step::Greatest { who, .. }
            | Step::Clear { who } => {
                if let Some(who) = self.who(*who) {
                    self.of_one(who, step)?;
                }
            }
        }
        self.holds_the_same()?;
        self.look(self.now)
    }

    /// A step of one process, or of the operator with it.
    fn of_one(&mut self, who: usize, step: &Step) -> Result<(), TestCaseError> {
        let last = self.reporters[who].last();
        match step {
            Step::Replay { back, .. } => {
                let said = &self.reporters[who].said;
                let replayed = said[(said.len() - 1).saturating_sub(*back)].clone();
                self.deliver(&replayed)
            }
            Step::ChangedDuplicate { what, .. } => {
                let mut changed = last;
                match what {
                    Change::HigherCounter => changed.counter = changed.counter.saturating_add(1),
                    Change::LowerCounter => changed.counter = changed.counter.saturating_sub(1),
                    Change::Flag => changed.clean = !changed.clean,
                    Change::Replica => changed.replica += "-b",
                }
                self.deliver(&changed)
            }
            Step::Decrease { by, clean, .. } => self.deliver(&Said {
                sequence: last.sequence.saturating_add(1),
                counter: last.counter.saturating_sub(*by),
                clean: *clean,
                ..last
            }),
            Step::Greatest {
                sequence,
                counter,
                clean,
                ..
            } => {
                let greatest = Said {
                    sequence: match sequence {
                        true => u64::MAX,
                        false => last.sequence.saturating_add(1),
                    },
                    counter: if *counter { u64::MAX } else { last.counter },
                    clean: *clean,
                    ..last
                };
                let row = self.deliver_row(&greatest)?;
                if row.status() == 204 {
                    self.reporters[who].said.push(greatest);
                }
                Ok(())
            }
            Step::Clear { .. } => {
                let epoch = Epoch::from_bytes(last.epoch.to_be_bytes());
                let expected = match self.model.clear(last.epoch, self.now) {
                    None => Clearing::Unknown,
                    Some(true) => Clearing::Cleared,
                    Some(false) => Clearing::NothingInForce,
                };
                prop_assert_eq!(self.ledger.clear(epoch, stamp(self.now)), expected);
                self.saw(match expected {
                    Clearing::Unknown => "clear: nobody",
                    Clearing::Cleared => "clear: in force",
                    Clearing::NothingInForce => "clear: nothing in force",
                });
                Ok(())
            }
            _ => self.deliver(&last),
        }
    }

    fn start(&mut self, reported: &Reported) -> Result<(), TestCaseError> {
        let number = self.reporters.len();
        let first = Said {
            epoch: epoch_of(number),
            sequence: reported.rise,
            counter: reported.more,
            clean: reported.clean,
            replica: format!("gw-{}", number % 3),
        };
        self.reporters.push(Reporter {
            epoch: first.epoch,
            said: vec![first.clone()],
        });
        match reported.on_the_way {
            Way::Lost => Ok(()),
            Way::Arrives => self.deliver(&first),
            Way::AnswerLost => {
                self.deliver(&first)?;
                self.deliver(&first)
            }
        }
    }

    fn report(&mut self, who: usize, reported: &Reported) -> Result<(), TestCaseError> {
        let last = self.reporters[who].last();
        let next = Said {
            sequence: last.sequence.saturating_add(reported.rise),
            counter: last.counter.saturating_add(reported.more),
            clean: reported.clean,
            ..last
        };
        self.reporters[who].said.push(next.clone());
        match reported.on_the_way {
            Way::Lost => Ok(()),
            Way::Arrives => self.deliver(&next),
            Way::AnswerLost => {
                self.deliver(&next)?;
                self.deliver(&next)
            }
        }
    }

    fn deliver(&mut self, said: &Said) -> Result<(), TestCaseError> {
        self.deliver_row(said).map(|_| ())
    }

    /// A report arrives.
    fn deliver_row(&mut self, said: &Said) -> Result<Row, TestCaseError> {
        let held = self.model.processes.get(&said.epoch);
        let before = held.map(|process| (process.last().clone(), process.stands()));
        let was_fresh = held.is_some_and(|process| process.is_fresh(self.now));
        let all_stale = !self.model.processes.is_empty()
            && self.model.processes.values().all(|p| !p.is_fresh(self.now));
        let oldest = self.model.processes.values().map(|p| p.received).min();
        let at_once = self
            .model
            .processes
            .values()
            .filter(|p| Some(p.received) == oldest)
            .count();
        self.model.made_room = None;
        let row = self.model.take(said, self.now);
        let report = Report::new(
            Epoch::from_bytes(said.epoch.to_be_bytes()),
            said.sequence,
            said.counter,
            said.clean,
            Replica::new(&said.replica).unwrap(),
        );
        let Ok(report) = report else {
            prop_assert_eq!(row, Row::Refused, "{:?} is refused", said);
            prop_assert_eq!(report.unwrap_err().status(), row.status());
            if said.sequence == u64::MAX {
                self.saw("row: refused, greatest sequence and clean");
            }
            if said.counter == u64::MAX {
                self.saw("row: refused, greatest counter and clean");
            }
            return Ok(row);
        };
        let stands = |model: &Model| model.processes.get(&said.epoch).map(|p| p.stands());
        let expected = match row {
            Row::Refused => {
                return Err(TestCaseError::fail(format!("{said:?} is not refused")));
            }
            Row::First => Verdict::Accepted { changed: true },
            Row::HigherCounter | Row::Clears | Row::Unclean => Verdict::Accepted {
                changed: before.as_ref().map(|(_, stands)| *stands) != stands(&self.model),
            },
            Row::NoRoom => Verdict::Overflow,
            Row::Identical => Verdict::Identical,
            Row::Changed => Verdict::Conflict {
                why: Contradiction::Changed,
            },
            Row::LowerSequence => Verdict::Conflict {
                why: Contradiction::Replayed,
            },
            Row::LowerCounter => Verdict::Conflict {
                why: Contradiction::Decreased,
            },
        };
        let verdict = self.ledger.report(&report, stamp(self.now));
        prop_assert_eq!(verdict, expected, "{:?}", said);
        prop_assert_eq!(verdict.status(), row.status());
        if let Some((epoch, stood)) = self.model.made_room {
            self.gone.push(epoch);
            self.saw(match stood {
                Stands::Cleared(_) => "row: room made by a cleared record",
                _ => "row: room made by a clean record",
            });
            if at_once > 1 {
                self.saw("row: room made by one of several received at once");
            }
        }
        if row == Row::First && self.gone.contains(&said.epoch) {
            self.saw("row: first again, of who made room");
        }
        if row == Row::NoRoom && all_stale {
            self.saw("row: no room though all are stale");
        }
        if row == Row::Identical && !was_fresh {
            self.saw("row: identical, of a stale record");
        }
        for what in of_row(row, said, before.as_ref()) {
            self.saw(what);
        }
        Ok(row)
    }

    fn clear_stale(&mut self) -> Result<(), TestCaseError> {
        let expected = self.model.clear_stale(self.now);
        let cleared = self.ledger.clear_stale(stamp(self.now));
        let expected_epochs: Vec<Epoch> = expected
            .iter()
            .map(|epoch| Epoch::from_bytes(epoch.to_be_bytes()))
            .collect();
        prop_assert_eq!(cleared, expected_epochs);
        self.saw(match expected.is_empty() {
            true => "clear stale: none",
            false => "clear stale: some",
        });
        if self
            .model
            .processes
            .values()
            .any(|p| p.stands() == Stands::Rejected)
        {
            self.saw("clear stale: spares who is fresh");
        }
        Ok(())
    }

    /// What is written is read back: all of it, and the time of the last transition only moves with the status.
    fn restart(&mut self) -> Result<(), TestCaseError> {
        let previous = self.written.as_ref().map(|written| &written.condition);
        let document = Document::new(self.ledger.clone(), previous, stamp(self.now));
        let read = Document::from_json(&document.to_json().unwrap());
        let read = read.map_err(|e| TestCaseError::fail(format!("not read back: {e}")))?;
        prop_assert_eq!(&read, &document);
        self.ledger = read.ledger().clone();
        let condition = read.condition().clone();
        let (reason, status) = words(self.model.condition(self.now));
        prop_assert_eq!((condition.reason(), condition.status()), (reason, status));
        let stays = self.written.as_ref().filter(|w| w.status == status);
        let since = stays.map_or(self.now / SECOND * SECOND, |written| written.since);
        prop_assert_eq!(condition.last_transition_time(), stamp(since));
        match (&self.written, stays) {
            (Some(_), Some(_)) => self.saw("restart: the status stays"),
            (Some(_), None) => self.saw("restart: the status changes"),
            (None, _) => {}
        }
        self.written = Some(Written {
            condition,
            status,
            since,
        });
        Ok(())
    }
}
