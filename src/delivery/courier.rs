//! What the push asks of couriers.

use std::sync::Arc;

use super::receipt::{Answer, Outcome};
use super::redact::Secrets;
use crate::compose::Release;
use crate::compose::bundle::Bundle;
use crate::mesh::Node;
use crate::words::{MeshName, NodeName, ServiceName, Token};

/// A machine to be reached.
#[derive(Debug, Clone)]
pub struct Target {
    /// Of which mesh.
    pub mesh: MeshName,
    /// As declared; for an undeclared machine, as it was last reached.
    pub node: Arc<Node>,
}

/// One send.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// To whom.
    pub target: Target,
    /// What.
    pub bundle: Arc<Bundle>,
    /// The token of this send.
    pub token: Token,
    /// The tokens that the machine may hold: of last sent, and of the attempt that is not settled. Empty: it was
    /// never sent to, so it must hold none. Its own token is always accepted.
    pub replaces: Vec<Token>,
    /// `--take-over`: replace whatever is there.
    pub take_over: bool,
    /// What the machine is thought to hold: files equal there (path, hash, mode, owner) are not sent.
    pub base: Option<Arc<Release>>,
    /// One line for the machine's own log: who sent what from where. No secret, no control character.
    pub sender: String,
    /// Somebody waits for a provider on it: it is sent to even where too many have failed.
    pub awaited: bool,
    /// What its commands may know, and what is taken out of all that they print.
    pub secrets: Secrets,
}

/// How a machine is asked.
#[derive(Debug, Clone)]
pub enum Manner {
    /// What was cut short is finished first, under its lock; it answers what it [holds](Answer::Holds).
    Settle,
    /// It is only looked at, under no lock, and nothing is written there: whether this release, if there is one, lies there as
    /// it was sent. It answers what was [seen](Answer::Seen), which may be of a moment ago.
    Look(Option<Arc<Release>>),
}

/// Asks a machine what it holds.
#[derive(Debug, Clone)]
pub struct Question {
    /// Whom.
    pub target: Target,
    /// How.
    pub manner: Manner,
    /// What its commands may know, and what is taken out of all that they print.
    pub secrets: Secrets,
}

/// What happens while a send or a question is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A connection is being made again after a failure that a retry can help.
    Retrying {
        /// Counted from 1.
        attempt: u32,
        /// Why the last one failed.
        why: String,
    },
    /// Bytes of the tar that were written so far.
    Sent {
        /// So far.
        bytes: u64,
        /// In all.
        of: u64,
    },
    /// The machine began a step (`verify`, `test`, `switch`, `load`, `apply`, `check`, `remove`, …).
    Step {
        /// Its name.
        step: String,
        /// Of which service.
        service: Option<ServiceName>,
    },
    /// A line that a service's command printed; cleaned of control characters and bounded.
    Output {
        /// Whose command.
        service: ServiceName,
        /// The line.
        line: String,
    },
}

/// What the push hears from a machine.
#[derive(Debug)]
pub enum Heard {
    /// While it is under way.
    Progress(Progress),
    /// The end of a send.
    Settled(Outcome),
    /// The end of a question.
    Answered(Answer),
    /// Of a machine that has settled: for a short while nobody else may have anything to tell. What was put off until
    /// then is to be done now.
    Lull,
}

/// Sends to several machines at a time.
///
/// Every call returns once all machines have settled, each within its deadline. `hear` is called on
/// the caller's thread, so that it can record an acknowledgement before the next is looked at; exactly
/// one `Settled` (or `Answered`) a machine, and nothing of that machine after it but a `Lull`. A `Settled`
/// is followed within a short while by a `Lull`, or by the end of the call.
pub trait Dispatch {
    /// Sends each parcel.
    fn send(&mut self, parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard));

    /// Asks each machine what it holds. One whose release was not applied to its end (a crash in mid apply)
    /// first finishes it, or puts the previous one back, so that the answer is certain.
    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard));
}
