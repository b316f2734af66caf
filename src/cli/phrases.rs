//! What operators read of reasons, waits, blockers and failures: one phrase each, used wherever it is said.

use std::collections::{BTreeMap, BTreeSet};

use crate::compose::services::Wait;
use crate::delivery::{FailedStep, Failure};
use crate::mesh::{Hold, Mesh};
use crate::push::{Blocker, FencedBy, Problem, Reason};
use crate::words::ServiceName;

/// `2 machines`.
pub(super) fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// `a, b, c`.
pub(super) fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

/// Why a machine is behind.
pub(super) fn reasons(reasons: &[Reason]) -> String {
    let phrases: Vec<String> = reasons
        .iter()
        .map(|reason| match reason {
            Reason::Uncertain => "nobody knows what it holds".to_owned(),
            Reason::NeedsMint(ids) => format!("to be minted: {}", list(ids)),
            Reason::NeverSent => "never sent".to_owned(),
            Reason::Differs(differences) => differences
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
            Reason::Uncomposable(why) => format!("cannot be composed: {why}"),
        })
        .collect();
    phrases.join("; ")
}

/// `billing waits for broker on atlas`.
pub(super) fn wait(mesh: &Mesh, service: &ServiceName, wait: &Wait) -> String {
    match wait {
        Wait::Grant(providers) => {
            let providers = providers.iter().map(|provider| located(mesh, provider));
            format!("{service} waits for {}", list(providers))
        }
        Wait::Removal(nodes) => format!("{service} waits until it is removed from {}", list(nodes)),
    }
}

/// What waits on one machine.
pub(super) fn waits(mesh: &Mesh, waiting: &BTreeMap<ServiceName, Wait>) -> String {
    waiting
        .iter()
        .map(|(service, why)| wait(mesh, service, why))
        .collect::<Vec<_>>()
        .join("; ")
}

/// `broker on atlas`.
fn located(mesh: &Mesh, service: &ServiceName) -> String {
    match mesh.services.get(service).map(|service| &service.nodes) {
        Some(nodes) if !nodes.is_empty() => format!("{service} on {}", list(nodes)),
        _ => format!("{service}, which is on no machine"),
    }
}

/// What keeps a provider from acknowledging.
pub(super) fn blocker(provider: &ServiceName, blocker: &Blocker) -> String {
    match blocker {
        Blocker::Unassigned => format!("{provider} is on no machine"),
        Blocker::OnHold(node, reason) => format!("{node} is on hold ({reason})"),
        Blocker::Failed(node) => format!("{node} failed"),
        Blocker::Uncertain(node) => format!("nobody knows what {node} holds"),
        Blocker::Waits(node) => format!("{provider} waits itself on {node}"),
        Blocker::Revoked => format!("{provider} has a revoked account itself"),
        Blocker::Pending(node) => format!("{node} has not acknowledged it yet"),
    }
}

/// What blocks each provider of a waiting service.
pub(super) fn blocked(blocked: &BTreeMap<ServiceName, BTreeSet<Blocker>>) -> String {
    let phrases: BTreeSet<String> = blocked
        .iter()
        .flat_map(|(provider, blockers)| blockers.iter().map(|one| blocker(provider, one)))
        .collect();
    list(phrases)
}

/// `in the rack on Monday, until 2026-12-01`.
pub(super) fn hold(hold: &Hold) -> String {
    match hold.until {
        Some(until) => format!("{}, until {until}", hold.reason),
        None => hold.reason.clone(),
    }
}

/// A step, as part of a sentence.
pub(super) fn step(step: FailedStep) -> &'static str {
    match step {
        FailedStep::Resolve => "resolving its name",
        FailedStep::Connect => "connecting",
        FailedStep::HostKey => "checking its host key",
        FailedStep::Authenticate => "logging in",
        FailedStep::Start => "starting the machine side",
        FailedStep::Lock => "taking the machine's lock",
        FailedStep::Source => "reading the sources",
        FailedStep::Unpack => "unpacking",
        FailedStep::Verify => "verifying",
        FailedStep::Test => "test",
        FailedStep::Switch => "switching",
        FailedStep::Install => "installing",
        FailedStep::Load => "load",
        FailedStep::Apply => "apply",
        FailedStep::Check => "check",
        FailedStep::Remove => "remove",
        FailedStep::Receipt => "receiving its receipt",
    }
}

/// `load of broker: exit status 1`.
fn failure(failure: &Failure) -> String {
    match &failure.service {
        Some(service) => format!("{} of {service}: {}", step(failure.step), failure.cause),
        None => format!("{}: {}", step(failure.step), failure.cause),
    }
}

/// How a machine failed, in one line.
pub(super) fn problem(problem: &Problem) -> String {
    match problem {
        Problem::Unsettled(why) => format!("could not be asked what it holds: {}", failure(why)),
        Problem::Uncomposable(why) => format!("cannot be composed: {why}"),
        Problem::NotReached(why) => format!("not reached, {}", failure(why)),
        Problem::Refused(why) => format!("failed at {}", failure(why)),
        Problem::RolledBack { failure: why, .. } => format!("failed at {}", failure(why)),
        Problem::Uncertain(why) => format!("uncertain after {}", failure(why)),
        Problem::Fenced { by, .. } => match by {
            FencedBy::AnotherStore => "fenced: it holds what another store sent",
            FencedBy::ACopy => "fenced: it holds what another copy of this store sent",
            FencedBy::Nobody => "fenced: it holds nothing, though it was sent to",
        }
        .to_owned(),
    }
}

/// What the machine holds after a failure.
pub(super) fn aftermath(problem: &Problem, first: bool) -> Option<String> {
    Some(match problem {
        Problem::Unsettled(_) | Problem::Uncomposable(_) => return None,
        Problem::NotReached(_) => "it received nothing".to_owned(),
        Problem::Refused(_) | Problem::Fenced { .. } => "nothing was changed there".to_owned(),
        Problem::RolledBack { lists, .. } => {
            let back = if first {
                "taken away again; nothing was there before"
            } else {
                "put back: the previous release is in force again"
            };
            if lists.is_empty() {
                back.to_owned()
            } else {
                format!("{back}, but the newer list of {} stays loaded", list(lists))
            }
        }
        Problem::Uncertain(_) => {
            "nobody knows what it holds; the next push asks it first".to_owned()
        }
    })
}

/// The failure, for its output and its hint.
pub(super) fn failure_of(problem: &Problem) -> Option<&Failure> {
    match problem {
        Problem::Unsettled(failure)
        | Problem::NotReached(failure)
        | Problem::Refused(failure)
        | Problem::RolledBack { failure, .. }
        | Problem::Uncertain(failure) => Some(failure),
        Problem::Uncomposable(_) | Problem::Fenced { .. } => None,
    }
}
