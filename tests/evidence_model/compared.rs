//! What the ledger holds and finds, against the model.

use grid::evidence::{Epoch, MESSAGE_MOST, Reason, Record, Status};
use proptest::prelude::*;

use super::{Interleaving, of, stamp};
use crate::model::{FRESH_FOR, Said, Stands, Why};

impl Interleaving {
    /// Every record is the model's.
    pub(super) fn holds_the_same(&self) -> Result<(), TestCaseError> {
        let records: Vec<&Record> = self.ledger.records().collect();
        prop_assert_eq!(records.len(), self.model.processes.len());
        let now = stamp(self.now);
        for (record, (epoch, process)) in records.iter().zip(&self.model.processes) {
            let report = record.report();
            let held = Said {
                epoch: *epoch,
                sequence: report.sequence(),
                counter: report.rejected(),
                clean: report.clean(),
                replica: report.replica().to_string(),
            };
            prop_assert_eq!(report.epoch(), Epoch::from_bytes(epoch.to_be_bytes()));
            prop_assert_eq!(&held, process.last());
            prop_assert_eq!(record.received(), stamp(process.received));
            prop_assert_eq!(record.standing(), of(process.stands()));
            prop_assert_eq!(record.is_rejected(), process.stands() == Stands::Rejected);
            let age = i128::try_from(record.age(now).as_nanos()).unwrap();
            prop_assert_eq!(age, process.age(self.now));
            prop_assert_eq!(record.is_fresh(now), process.is_fresh(self.now));
            prop_assert_eq!(self.ledger.record(report.epoch()), Some(*record));
        }
        for reporter in &self.reporters {
            if !self.model.processes.contains_key(&reporter.epoch) {
                let epoch = Epoch::from_bytes(reporter.epoch.to_be_bytes());
                prop_assert_eq!(self.ledger.record(epoch), None);
            }
        }
        Ok(())
    }

    /// The condition is the model's.
    pub(super) fn look(&mut self, now: i128) -> Result<(), TestCaseError> {
        let why = self.model.condition(now);
        let finding = self.ledger.condition(stamp(now));
        prop_assert_eq!((finding.reason(), finding.status()), words(why));
        prop_assert!(!finding.message().is_empty() && finding.message().len() <= MESSAGE_MOST);
        let processes = self.model.processes.values();
        let fresh: Vec<_> = processes.clone().filter(|p| p.is_fresh(now)).collect();
        let nobody_is_fresh = fresh.is_empty();
        let at_the_bound = fresh.iter().all(|p| p.age(now) == FRESH_FOR);
        let of_the_future = fresh.iter().all(|p| p.received > now);
        let all_cleared = processes
            .clone()
            .all(|p| matches!(p.stands(), Stands::Cleared(_)));
        self.saw(match why {
            Why::Rejected => "condition: Rejected",
            Why::Clean => "condition: Clean",
            Why::Stale => "condition: Stale",
            Why::NoReports => "condition: NoReports",
        });
        match why {
            Why::Rejected if nobody_is_fresh => {
                self.saw("condition: Rejected, and nobody is fresh");
            }
            Why::Clean => {
                if at_the_bound {
                    self.saw("condition: Clean, by a record of exactly 300 s");
                }
                if of_the_future {
                    self.saw("condition: Clean, by a record of the future");
                }
                if all_cleared {
                    self.saw("condition: Clean, and all are cleared");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The reason and the status, as the text pairs them.
pub(super) fn words(why: Why) -> (Reason, Status) {
    match why {
        Why::Rejected => (Reason::Rejected, Status::False),
        Why::NoReports => (Reason::NoReports, Status::Unknown),
        Why::Stale => (Reason::Stale, Status::Unknown),
        Why::Clean => (Reason::Clean, Status::True),
    }
}
