//! `--dry-run`: the same push against a copy of the store and machines that take everything, so that there
//! is one code path. Nothing of it is kept.

use crate::delivery::{Answer, Applied, Dispatch, Heard, Outcome, Parcel, Question, load_of};
use crate::words::NodeName;

/// Machines that take everything that is sent to them.
///
/// Nobody is asked what it holds: an uncertain machine stays uncertain until something is sent to it, so what is told
/// of it is the most that could be sent.
#[derive(Debug, Clone, Copy)]
pub struct Pretend;

impl Dispatch for Pretend {
    fn send(&mut self, parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for parcel in parcels {
            let outcome = match load_of(&parcel) {
                Ok((files, bytes)) => Outcome::Applied(Applied {
                    files,
                    bytes,
                    ..Applied::default()
                }),
                Err(failure) => Outcome::Refused(failure),
            };
            hear(&parcel.target.node.name, Heard::Settled(outcome));
        }
    }

    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for question in questions {
            let node = &question.target.node.name;
            hear(node, Heard::Answered(Answer::KeptBack));
        }
    }
}
