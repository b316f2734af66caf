//! Why a service waits, and what blocks whom it waits for; in `push --json` and `status --json`.

use std::collections::{BTreeMap, BTreeSet};

use crate::compose::services::Wait;
use crate::push::Blocker;
use crate::words::{NodeName, ServiceName};

/// Why a service waits.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "for")]
pub enum WaitView {
    /// For these providers to acknowledge a grant.
    Grant {
        /// Which.
        providers: BTreeSet<ServiceName>,
    },
    /// For these machines to acknowledge its removal.
    Removal {
        /// Which.
        nodes: BTreeSet<NodeName>,
    },
}

/// Why a service waits, down to what blocks it.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct WaitingView {
    /// For whom.
    pub wait: WaitView,
    /// What blocks each provider that it waits for.
    pub blocked: BTreeMap<ServiceName, Vec<BlockerView>>,
}

/// What keeps a provider from acknowledging a grant.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum BlockerView {
    /// It is on no machine.
    Unassigned,
    /// Its machine is on hold.
    OnHold {
        /// Which.
        node: NodeName,
        /// Why.
        reason: String,
    },
    /// Its machine failed.
    Failed {
        /// Which.
        node: NodeName,
    },
    /// Nobody knows what its machine holds.
    Uncertain {
        /// Which.
        node: NodeName,
    },
    /// It waits itself.
    Waits {
        /// On which machine.
        node: NodeName,
    },
    /// It has a revoked account itself.
    Revoked,
    /// Its machine has not acknowledged yet.
    Pending {
        /// Which.
        node: NodeName,
    },
}

impl WaitView {
    pub(super) fn all(waits: &BTreeMap<ServiceName, Wait>) -> BTreeMap<ServiceName, Self> {
        waits
            .iter()
            .map(|(service, wait)| (service.clone(), wait.into()))
            .collect()
    }
}

impl From<&Wait> for WaitView {
    fn from(wait: &Wait) -> Self {
        match wait {
            Wait::Grant(providers) => Self::Grant {
                providers: providers.clone(),
            },
            Wait::Removal(nodes) => Self::Removal {
                nodes: nodes.clone(),
            },
        }
    }
}

impl From<&Blocker> for BlockerView {
    fn from(blocker: &Blocker) -> Self {
        match blocker.clone() {
            Blocker::Unassigned => Self::Unassigned,
            Blocker::OnHold(node, reason) => Self::OnHold { node, reason },
            Blocker::Failed(node) => Self::Failed { node },
            Blocker::Uncertain(node) => Self::Uncertain { node },
            Blocker::Waits(node) => Self::Waits { node },
            Blocker::Revoked => Self::Revoked,
            Blocker::Pending(node) => Self::Pending { node },
        }
    }
}

impl WaitingView {
    /// From why a service waits, and what blocks each provider.
    #[must_use]
    pub fn new(wait: &Wait, blocked: &BTreeMap<ServiceName, BTreeSet<Blocker>>) -> Self {
        Self {
            wait: wait.into(),
            blocked: blocked
                .iter()
                .map(|(provider, blockers)| {
                    let blockers = blockers.iter().map(BlockerView::from).collect();
                    (provider.clone(), blockers)
                })
                .collect(),
        }
    }
}
