//! `grid push --json`: one event a line.

use std::collections::{BTreeMap, BTreeSet};

use crate::compose::services::Wait;
use crate::delivery::{Applied, FailedStep, Failure, Progress};
use crate::push::{Blocker, Event, Problem, Reason, Report, Summons, Verdict};
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

/// Why a machine failed in a push.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum ProblemView {
    /// It was uncertain and could not be asked.
    Unsettled(FailureView),
    /// It cannot be composed.
    Uncomposable {
        /// Why.
        cause: String,
    },
    /// No connection was made.
    NotReached(FailureView),
    /// It refused before it changed anything.
    Refused(FailureView),
    /// It put the previous release back.
    RolledBack(FailureView),
    /// Nobody knows what it holds.
    Uncertain(FailureView),
    /// It holds the token of a send that this store knows nothing of.
    Fenced(FenceView),
}

/// Why a send failed.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct FailureView {
    /// At which step.
    pub step: FailedStep,
    /// Of which service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    /// The cause, one line.
    pub cause: String,
    /// The last lines that the step printed.
    pub output: Vec<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The providers whose newer list stayed when the rest was put back.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub lists: BTreeSet<ServiceName>,
}

/// What a fenced machine holds.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct FenceView {
    /// The token; absent: none, where one was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The last lines of its own log.
    pub log: Vec<String>,
}

/// A machine on hold.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct HeldView {
    /// Why.
    pub reason: String,
    /// The first day on which it is sent to again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether the operator named it.
    pub named: bool,
    /// Whether it is behind.
    pub behind: bool,
    /// Whether nobody knows what it holds.
    pub uncertain: bool,
    /// The providers on it whose list is not what it should be.
    pub owes: BTreeSet<ServiceName>,
}

/// How a push ended.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct Ended {
    /// Its number.
    pub push: u64,
    /// In one word.
    pub verdict: Verdict,
    /// The exit code.
    pub exit: u8,
    /// Rounds after the first.
    pub rounds: usize,
    /// How many accounts it minted.
    pub minted: usize,
    /// The machines that acknowledged a send.
    pub sent: BTreeSet<NodeName>,
    /// The machines that failed.
    pub failed: BTreeMap<NodeName, ProblemView>,
    /// Machines on hold.
    pub on_hold: BTreeMap<NodeName, HeldView>,
    /// What waits, by machine.
    pub waiting: BTreeMap<NodeName, BTreeMap<ServiceName, WaitingView>>,
    /// What is revoked, by machine.
    pub revoked: BTreeMap<NodeName, BTreeSet<ServiceName>>,
    /// Machines that are still behind and did not fail.
    pub behind: BTreeMap<NodeName, Vec<Reason>>,
    /// Machines that were rolled back from what they should be, before this push.
    pub rolled_back: BTreeSet<NodeName>,
    /// Machines that are behind because the rounds ran out.
    pub out_of_rounds: BTreeSet<NodeName>,
    /// Machines that left the declaration or changed their address, and where they were reached.
    pub undeclared: BTreeMap<NodeName, String>,
    /// How many machines are as they should be.
    pub current: usize,
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

impl WaitView {
    fn all(waits: &BTreeMap<ServiceName, Wait>) -> BTreeMap<ServiceName, Self> {
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

impl From<Failure> for FailureView {
    fn from(failure: Failure) -> Self {
        let Failure {
            step,
            service,
            cause,
            output,
            hint,
        } = failure;
        Self {
            step,
            service,
            cause,
            output,
            hint,
            lists: BTreeSet::new(),
        }
    }
}

impl From<Problem> for ProblemView {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Unsettled(failure) => Self::Unsettled(failure.into()),
            Problem::Uncomposable(cause) => Self::Uncomposable { cause },
            Problem::NotReached(failure) => Self::NotReached(failure.into()),
            Problem::Refused(failure) => Self::Refused(failure.into()),
            Problem::RolledBack { failure, lists } => {
                let mut view = FailureView::from(failure);
                view.lists = lists;
                Self::RolledBack(view)
            }
            Problem::Uncertain(failure) => Self::Uncertain(failure.into()),
            Problem::Fenced { held, log } => Self::Fenced(FenceView {
                held: held.map(String::from),
                log,
            }),
        }
    }
}

impl From<Report> for Ended {
    fn from(report: Report) -> Self {
        let verdict = report.verdict();
        let waiting = report
            .waiting
            .iter()
            .map(|(node, services)| {
                let services = services.iter().map(|(service, waiting)| {
                    let blocked = super::super::summary::blocked(&report, waiting);
                    (service.clone(), WaitingView::new(&waiting.wait, &blocked))
                });
                (node.clone(), services.collect())
            })
            .collect();
        Self {
            push: report.push,
            verdict,
            exit: super::super::exit::Exit::from(verdict).code(),
            rounds: report.rounds,
            minted: report.minted,
            sent: report.sent,
            failed: report
                .failed
                .into_iter()
                .map(|(node, problem)| (node, problem.into()))
                .collect(),
            on_hold: report
                .on_hold
                .into_iter()
                .map(|(node, held)| {
                    let view = HeldView {
                        reason: held.hold.reason,
                        until: held.hold.until.map(|until| until.to_string()),
                        named: held.named,
                        behind: held.behind,
                        uncertain: held.uncertain,
                        owes: held.owes,
                    };
                    (node, view)
                })
                .collect(),
            waiting,
            revoked: report.revoked,
            behind: report.behind,
            rolled_back: report.rolled_back,
            out_of_rounds: report.out_of_rounds,
            undeclared: report.undeclared,
            current: report.current,
        }
    }
}
