//! `--dry-run`: the same push against a copy of the store and machines that take everything, so that there
//! is one code path. Nothing of it is kept.

use std::collections::BTreeMap;

use crate::compose::sent::Fleet;
use crate::delivery::{Answer, Applied, Dispatch, Heard, Holding, Outcome, Parcel, Question};
use crate::words::NodeName;

/// Machines that take everything that is sent to them, and hold what they were last sent or attempted.
#[derive(Debug)]
pub struct Pretend {
    fleet: Fleet,
}

impl Pretend {
    /// Machines as the store knows them. An uncertain one is taken to have received its attempt.
    #[must_use]
    pub fn new(fleet: Fleet) -> Self {
        Self { fleet }
    }
}

impl Dispatch for Pretend {
    fn send(&mut self, parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for parcel in parcels {
            let applied = Applied {
                bytes: parcel.bundle.manifest.files().map(|file| file.size).sum(),
                ..Applied::default()
            };
            let node = &parcel.target.node.name;
            hear(node, Heard::Settled(Outcome::Applied(applied)));
        }
    }

    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for question in questions {
            let node = &question.target.node.name;
            let machine = self.fleet.get(node).cloned().unwrap_or_default();
            let sent = machine.sent.map(|sent| sent.manifest);
            let (token, manifest) = match machine.attempt {
                Some(attempt) => (Some(attempt.token), Some(attempt.manifest)),
                None => (machine.token, sent),
            };
            let holding = Holding {
                token,
                manifest,
                lists: BTreeMap::new(),
                log: Vec::new(),
            };
            hear(node, Heard::Answered(Answer::Holds(holding)));
        }
    }
}
