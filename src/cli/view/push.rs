//! `grid push --json`: one event a line.

use std::collections::{BTreeMap, BTreeSet};

use super::ended::Ended;
use super::problem::ProblemView;
use super::waiting::WaitView;
use crate::delivery::{Applied, Progress};
use crate::provision::Need;
use crate::push::{Event, Reason, Summons};
use crate::words::{MeshName, NodeName, ServiceName};

/// One event of a push. Those of a dry run that tell what a push would do are `would-…`.
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
    /// An uncertain machine is asked what it holds.
    Asking {
        /// Which.
        node: NodeName,
    },
    /// Of a dry run: an uncertain machine would be asked first what it holds. What is told of it besides is what
    /// would follow if it holds nothing of its last send: the most.
    WouldAsk {
        /// Which.
        node: NodeName,
    },
    /// An uncertain machine answered what it holds.
    Settled {
        /// Which.
        node: NodeName,
    },
    /// An account was minted, and is on disk.
    Minted(MintView),
    /// Of a dry run: an account would be minted.
    WouldMint(MintView),
    /// The mesh's next certificate authority was minted, since the one before ends; it is on disk.
    MintedAuthority {
        /// Which, counted from 1.
        number: u32,
    },
    /// Of a dry run: the mesh's next certificate authority would be minted.
    WouldMintAuthority {
        /// Which, counted from 1.
        number: u32,
    },
    /// A site's identity was minted, or its renewal goes on; it is on disk.
    MintedIdentity(IdentityView),
    /// Of a dry run: a site's identity would be minted.
    WouldMintIdentity(IdentityView),
    /// Of a dry run: a machine would be sent to.
    WouldSend(SendView),
    /// Of a dry run, after `would-send`: what the machine lacks.
    WouldTransfer {
        /// Which.
        node: NodeName,
        /// In which round.
        round: usize,
        /// Files that would be sent.
        files: u64,
        /// Bytes of their content.
        bytes: u64,
    },
    /// Of a dry run: a named machine would be contacted, its files verified, its checks run.
    WouldContact {
        /// Which.
        node: NodeName,
    },
    /// A machine is about to be sent to.
    Sending(SendView),
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
    /// A named machine was verified and checked: it was current, or was sent to and something there was left as it was.
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

/// A site's identity.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct IdentityView {
    /// Whose.
    site: NodeName,
    /// Which, counted from 1 for each site.
    number: u32,
    /// Why.
    need: Need,
}

/// An account that is minted, or would be.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct MintView {
    /// On which provider.
    pub provider: ServiceName,
    /// Whose.
    pub consumer: ServiceName,
    /// Which generation.
    pub generation: u32,
}

/// A machine that is sent to, or would be.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct SendView {
    /// Which.
    pub node: NodeName,
    /// In which round, counted from 0.
    pub round: usize,
    /// Named or flushed.
    pub summons: Summons,
    /// Why it is behind.
    pub reasons: Vec<Reason>,
    /// What waits on it.
    pub waits: BTreeMap<ServiceName, WaitView>,
    /// What is revoked on it.
    pub revoked: BTreeSet<ServiceName>,
}

/// What a machine did with what it was sent.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct AppliedView {
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// Files that were sent.
    pub files: u64,
    /// Providers whose list was loaded, in that order.
    pub loaded: Vec<ServiceName>,
    /// Services that took their files, in that order.
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
            Event::Asking { node } if dry_run => Self::WouldAsk { node },
            Event::Asking { node } => Self::Asking { node },
            Event::SettledAs { node, .. } => Self::Settled { node },
            Event::Minted {
                provider,
                consumer,
                generation,
            } => {
                let told = if dry_run {
                    Self::WouldMint
                } else {
                    Self::Minted
                };
                told(MintView {
                    provider,
                    consumer,
                    generation,
                })
            }
            Event::MintedAuthority { number } if dry_run => Self::WouldMintAuthority { number },
            Event::MintedAuthority { number } => Self::MintedAuthority { number },
            Event::MintedIdentity { site, number, need } => {
                let told = if dry_run {
                    Self::WouldMintIdentity
                } else {
                    Self::MintedIdentity
                };
                told(IdentityView { site, number, need })
            }
            Event::Sending {
                node,
                round,
                summons,
                reasons,
                waits,
                revoked,
            } => {
                let told = if dry_run {
                    Self::WouldSend
                } else {
                    Self::Sending
                };
                told(SendView {
                    node,
                    round,
                    summons,
                    reasons,
                    waits: WaitView::all(&waits),
                    revoked,
                })
            }
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
            } if dry_run => Self::WouldTransfer {
                node,
                round,
                files: applied.files,
                bytes: applied.bytes,
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
            Event::Contacted { node, .. } if dry_run => Self::WouldContact { node },
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
            Event::Ended(report) => Self::Ended(Box::new(Ended::of(*report, dry_run))),
        })
    }
}

impl From<Applied> for AppliedView {
    fn from(applied: Applied) -> Self {
        let Applied {
            bytes,
            files,
            loaded,
            applied,
            mended,
            removed,
            notes,
        } = applied;
        Self {
            bytes,
            files,
            loaded,
            applied,
            mended,
            removed,
            notes,
        }
    }
}
