//! `grid push --json`: one event a line.

use std::collections::{BTreeMap, BTreeSet};

use super::ended::Ended;
use super::problem::ProblemView;
use super::waiting::WaitView;
use crate::delivery::{Applied, Progress};
use crate::push::{Event, Reason, Summons};
use crate::words::{MeshName, NodeName, ServiceName};

/// One event of a push.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum PushEvent {
    /// The push has its number.
    Began {
        /// Of which mesh.
        mesh: MeshName,
        /// Counted from 1 in a store.
        push: u64,
        /// Nothing is minted or sent.
        dry_run: bool,
    },
    /// An uncertain machine answered what it holds.
    Settled {
        /// Which.
        node: NodeName,
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
        waits: BTreeMap<ServiceName, WaitView>,
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
        waits: BTreeMap<ServiceName, WaitView>,
    },
    /// A connection is made again.
    Retrying {
        /// To which machine.
        node: NodeName,
        /// Counted from 1.
        attempt: u32,
        /// Why the last one failed.
        why: String,
    },
    /// A machine began a step.
    Step {
        /// Which.
        node: NodeName,
        /// Its name.
        step: String,
        /// Of which service.
        #[serde(skip_serializing_if = "Option::is_none")]
        service: Option<ServiceName>,
    },
    /// A line that a service's command printed.
    Output {
        /// On which machine.
        node: NodeName,
        /// Whose command.
        service: ServiceName,
        /// The line.
        line: String,
    },
    /// A machine acknowledged.
    Sent {
        /// Which.
        node: NodeName,
        /// In which round.
        round: usize,
        /// How long it took, from when it was its turn.
        milliseconds: u64,
        /// What it did.
        applied: AppliedView,
    },
    /// A named machine that was current was verified and checked.
    Contacted {
        /// Which.
        node: NodeName,
        /// What it mended, if anything.
        applied: AppliedView,
    },
    /// A machine holds nothing although it was sent to.
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
        problem: ProblemView,
    },
    /// The end.
    Ended(Box<Ended>),
}

/// What a machine did with what it was sent.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct AppliedView {
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// Files that were sent.
    pub files: u64,
    /// Services that were loaded or applied, in that order.
    pub applied: Vec<ServiceName>,
    /// What had drifted and was mended.
    pub mended: Vec<String>,
    /// Services that left.
    pub removed: Vec<ServiceName>,
    /// What deserves a word.
    pub notes: Vec<String>,
}

impl PushEvent {
    /// The event as it is printed; `None`: bytes that were sent so far, which are for progress bars only.
    #[must_use]
    pub fn of(event: &Event, milliseconds: u64, dry_run: bool) -> Option<Self> {
        Some(match event.clone() {
            Event::Began { mesh, push } => Self::Began {
                mesh,
                push,
                dry_run,
            },
            Event::SettledAs { node } => Self::Settled { node },
            Event::Minted {
                provider,
                consumer,
                generation,
            } => Self::Minted {
                provider,
                consumer,
                generation,
            },
            Event::Sending {
                node,
                round,
                summons,
                reasons,
                waits,
                revoked,
            } => Self::Sending {
                node,
                round,
                summons,
                reasons,
                waits: WaitView::all(&waits),
                revoked,
            },
            Event::Waits {
                node,
                round,
                summons,
                waits,
            } => Self::Waits {
                node,
                round,
                summons,
                waits: WaitView::all(&waits),
            },
            Event::Progress { node, progress } => match progress {
                Progress::Retrying { attempt, why } => Self::Retrying { node, attempt, why },
                Progress::Sent { .. } => return None,
                Progress::Step { step, service } => Self::Step {
                    node,
                    step,
                    service,
                },
                Progress::Output { service, line } => Self::Output {
                    node,
                    service,
                    line,
                },
            },
            Event::Sent {
                node,
                round,
                applied,
            } => Self::Sent {
                node,
                round,
                milliseconds,
                applied: applied.into(),
            },
            Event::Contacted { node, applied } => Self::Contacted {
                node,
                applied: applied.into(),
            },
            Event::Emptied { node } => Self::Emptied { node },
            Event::KeptBack { node } => Self::KeptBack { node },
            Event::Failed {
                node,
                round,
                problem,
            } => Self::Failed {
                node,
                round,
                problem: problem.into(),
            },
            Event::Ended(report) => Self::Ended(Box::new((*report).into())),
        })
    }
}

impl From<Applied> for AppliedView {
    fn from(applied: Applied) -> Self {
        let Applied {
            bytes,
            files,
            applied,
            mended,
            removed,
            notes,
        } = applied;
        Self {
            bytes,
            files,
            applied,
            mended,
            removed,
            notes,
        }
    }
}
