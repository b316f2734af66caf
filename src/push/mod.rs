//! The push: it finishes what it starts (DESIGN.md, section 4; seed "One push leaves the mesh consistent").
//!
//! Behind is measured against last sent, never against a snapshot of this push. Nothing here knows a special
//! case: what a machine should be is composition's business, and who is sent to follows from it.

mod behind;
mod blocker;
mod contact;
mod difference;
mod dry_run;
mod event;
mod fence;
mod identities;
mod known;
mod older;
mod report;
mod round;
mod run;
mod settle;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use behind::{Glance, Reason, Standing, Survey, standing, survey};
pub use blocker::{Blocker, blockers};
pub use difference::{Difference, SiteChange, differences};
pub use dry_run::Pretend;
pub use event::{Event, Summons};
pub use fence::{Whose, whose};
pub use older::{kept_admitted, shut_out};
pub use report::{Problem, Report, Verdict, Waiting, owes};

use crate::compose::sources::Sources;
use crate::delivery::{Dispatch, Gate};
use crate::mesh::Mesh;
use crate::provision::certificate::CertificateError;
use crate::store::{Store, StoreError};
use crate::words::{Chance, NodeName};
use run::{Run, Through};

/// Whom a push names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// These machines; each is contacted.
    Nodes(BTreeSet<NodeName>),
    /// Nobody: only machines that are behind are contacted.
    Behind,
}

/// What the operator asks for.
#[derive(Debug, Clone)]
pub struct Orders {
    /// Whom.
    pub named: Named,
    /// How many rounds may follow the first; absent: four more than twice the longest chain of consumers.
    pub max_rounds: Option<usize>,
    /// After so many failed machines only those are sent to whom somebody waits for; absent: all are.
    pub max_failures: Option<usize>,
    /// Replace whatever token a machine holds.
    pub take_over: bool,
    /// One line for each machine's own log: who pushes from where.
    pub sender: String,
    /// Holds end on their day.
    pub today: jiff::civil::Date,
}

/// What a push acts through: all I/O and chance.
pub struct Ports<'a> {
    /// Where last sent and provisions lie; the mesh lock is held.
    pub store: &'a mut dyn Store,
    /// Who delivers.
    pub couriers: &'a mut dyn Dispatch,
    /// The operator's sources.
    pub sources: Arc<dyn Sources>,
    /// For secrets, salts and tokens.
    pub chance: &'a mut dyn Chance,
    /// Whether further machines may be sent to; the push narrows it once too many have failed.
    pub gate: Gate,
    /// Who is told what happens.
    pub hear: &'a mut dyn FnMut(Event),
}

impl std::fmt::Debug for Ports<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}

/// Why a push stops before its end. Whatever it minted or heard until then is in the store.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An identity cannot be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A name that the declaration does not have.
    #[error("there is no machine {0} in the declaration")]
    UnknownNode(NodeName),
}

/// Pushes: sends to the named machines, then flushes every machine that is behind, until none is.
///
/// # Errors
/// When the store fails. A machine that fails is no error: it is named in the report.
pub fn push(mesh: &Mesh, orders: &Orders, ports: Ports<'_>) -> Result<Report, PushError> {
    let Ports {
        store,
        couriers,
        sources,
        chance,
        gate,
        hear,
    } = ports;
    let through = Through {
        store,
        chance,
        gate,
        hear,
    };
    let mut run = Run::begin(mesh, orders, sources, through)?;
    run.settle(couriers)?;
    run.mint_identities()?;
    let mut targets = run.first_targets();
    let mut rounds_left = run.rounds_after_the_first();
    loop {
        if run.is_stopped() {
            targets.clear();
            break;
        }
        run.mint_for(&targets)?;
        let parcels = run.compose(&targets)?;
        run.send(parcels, couriers)?;
        run.mint_identities()?; // a new authority issues once all have acknowledged it
        targets = run.behind_now();
        if targets.is_empty() && !run.is_stopped() {
            run.contact_the_named(couriers)?;
            targets = run.behind_now(); // a machine that holds nothing any more is behind
        }
        if targets.is_empty() || rounds_left == 0 || run.is_stopped() {
            break;
        }
        rounds_left -= 1;
        run.next_round();
    }
    run.contact_the_named(couriers)?;
    run.finish(&targets)
}
