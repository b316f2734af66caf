//! What a push tells while it goes on. The terminal, the lines of CI and `--json` are drawn from these.

use std::collections::{BTreeMap, BTreeSet};

use super::behind::Reason;
use super::report::{Problem, Report};
use crate::compose::services::Wait;
use crate::delivery::{Applied, Progress};
use crate::provision::Need;
use crate::words::{MeshName, NodeName, ServiceName};

/// Why a machine is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Summons {
    /// The operator named it.
    Named,
    /// Nobody named it: it is behind.
    Flushed,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The push has its number.
    Began {
        /// Of which mesh.
        mesh: MeshName,
        /// Counted from 1 in a store.
        push: u64,
    },
    /// An uncertain machine is asked what it holds, before anything else is done.
    Asking {
        /// Which.
        node: NodeName,
    },
    /// A machine that was asked answered what it holds.
    SettledAs {
        /// Which.
        node: NodeName,
        /// Where it is declared elsewhere than it was last reached, so that it was asked there: whether it holds anything.
        elsewhere: Option<bool>,
    },
    /// An account was minted, and is on disk.
    Minted {
        /// On which provider.
        provider: ServiceName,
        /// Whose.
        consumer: ServiceName,
        /// Which generation.
        generation: u32,
    },
    /// The mesh's next certificate authority was minted, since the one before ends; it is on disk.
    MintedAuthority {
        /// Which, counted from 1.
        number: u32,
    },
    /// A site's identity was minted, or its renewal goes on; it is on disk.
    MintedIdentity {
        /// Whose.
        site: NodeName,
        /// Which, counted from 1 for each site.
        number: u32,
        /// Why.
        need: Need,
    },
    /// A machine is about to be sent to.
    Sending {
        /// Which.
        node: NodeName,
        /// In which round, counted from 0.
        round: usize,
        /// Named or flushed.
        summons: Summons,
        /// Why it is behind.
        reasons: Vec<Reason>,
        /// What waits on it.
        waits: BTreeMap<ServiceName, Wait>,
        /// What is revoked on it.
        revoked: BTreeSet<ServiceName>,
    },
    /// A target is not sent to: it holds all that it can have for now, and the rest waits.
    Waits {
        /// Which.
        node: NodeName,
        /// In which round.
        round: usize,
        /// Named or flushed.
        summons: Summons,
        /// What waits on it.
        waits: BTreeMap<ServiceName, Wait>,
    },
    /// While a machine is sent to or asked.
    Progress {
        /// Which.
        node: NodeName,
        /// What.
        progress: Progress,
    },
    /// A machine acknowledged.
    Sent {
        /// Which.
        node: NodeName,
        /// In which round.
        round: usize,
        /// What it did.
        applied: Applied,
    },
    /// A named machine was verified and checked: it was current, or was sent to and something there was left as it was.
    Contacted {
        /// Which.
        node: NodeName,
        /// What it mended, if anything.
        applied: Applied,
    },
    /// A machine holds nothing although it was sent to: it was emptied or made anew.
    Emptied {
        /// Which.
        node: NodeName,
    },
    /// A machine was about to be sent to or contacted, and was not: somebody interrupted, or too many have failed.
    KeptBack {
        /// Which.
        node: NodeName,
    },
    /// A machine failed in this push.
    Failed {
        /// Which.
        node: NodeName,
        /// In which round.
        round: usize,
        /// How.
        problem: Problem,
    },
    /// The end.
    Ended(Box<Report>),
}
