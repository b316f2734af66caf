//! What operators read of a machine that failed: at which step, why, and what it holds after it.

use super::list;
use crate::cli::ui::without_number;
use crate::delivery::{FailedStep, Failure};
use crate::push::{Problem, Whose};

/// A step, as part of a sentence.
pub(in crate::cli) fn step(step: FailedStep) -> &'static str {
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
    let cause = without_number(&failure.cause);
    match &failure.service {
        Some(service) => format!("{} of {service}: {cause}", step(failure.step)),
        None => format!("{}: {cause}", step(failure.step)),
    }
}

/// How a machine failed, in one line.
pub(in crate::cli) fn problem(problem: &Problem) -> String {
    match problem {
        Problem::Unsettled(why) => format!("could not be asked what it holds: {}", failure(why)),
        Problem::Uncomposable(why) => {
            format!("cannot be composed: {}", without_number(&why.to_string()))
        }
        Problem::NotReached(why) => format!("not reached, {}", failure(why)),
        Problem::Refused(why) | Problem::Unwell(why) => format!("failed at {}", failure(why)),
        Problem::RolledBack { failure: why, .. } => format!("failed at {}", failure(why)),
        Problem::Uncertain(why) => format!("uncertain after {}", failure(why)),
        Problem::Fenced { held, whose, .. } => {
            let push = held.as_ref().map(|held| held.push);
            format!("fenced: it holds {}", holds(whose, push))
        }
    }
}

/// What a fenced machine holds.
pub(in crate::cli) fn holds(whose: &Whose, push: Option<u64>) -> String {
    let push = push.map(|push| format!(" ({push})")).unwrap_or_default();
    match whose {
        Whose::Nobody => "nothing, though it was sent to".to_owned(),
        Whose::OtherStore => "what another store sent".to_owned(),
        Whose::OtherMachine(name) => format!("what this store sent to it as {name}"),
        Whose::LaterPush => format!("what a later push{push} of another copy of this store sent"),
        Whose::EarlierPush => {
            { format!("what an earlier push{push} of this store, or of a copy of it, sent") }
                .to_owned()
        }
    }
}

/// What the machine holds after a failure.
pub(in crate::cli) fn aftermath(problem: &Problem, first: bool) -> Option<String> {
    Some(match problem {
        Problem::Unsettled(_) | Problem::Uncomposable(_) => return None,
        Problem::NotReached(_) => "it received nothing".to_owned(),
        Problem::Refused(_) | Problem::Fenced { .. } => "nothing was changed there".to_owned(),
        Problem::Unwell(_) => {
            "it holds what it held; mending it was tried, and came as far as that".to_owned()
        }
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
pub(in crate::cli) fn failure_of(problem: &Problem) -> Option<&Failure> {
    match problem {
        Problem::Unsettled(failure)
        | Problem::NotReached(failure)
        | Problem::Refused(failure)
        | Problem::Unwell(failure)
        | Problem::RolledBack { failure, .. }
        | Problem::Uncertain(failure) => Some(failure),
        Problem::Uncomposable(_) | Problem::Fenced { .. } => None,
    }
}
