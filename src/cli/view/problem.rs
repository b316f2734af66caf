//! Why a machine failed; in `push --json`.

use std::collections::BTreeSet;

use crate::delivery::{FailedStep, Failure};
use crate::push::{Problem, Whose};
use crate::words::ServiceName;

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
    /// It was named, holds what it should, and something of it could not be mended.
    Unwell(FailureView),
    /// It put the previous release back.
    RolledBack(FailureView),
    /// Nobody knows what it holds.
    Uncertain(FailureView),
    /// It does not hold the token of the send that this store knows of it.
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
    /// Whose it is.
    pub whose: Whose,
    /// The last lines of its own log.
    pub log: Vec<String>,
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
            Problem::Uncomposable(error) => Self::Uncomposable {
                cause: error.to_string(),
            },
            Problem::NotReached(failure) => Self::NotReached(failure.into()),
            Problem::Refused(failure) => Self::Refused(failure.into()),
            Problem::Unwell(failure) => Self::Unwell(failure.into()),
            Problem::RolledBack { failure, lists } => {
                let mut view = FailureView::from(failure);
                view.lists = lists;
                Self::RolledBack(view)
            }
            Problem::Uncertain(failure) => Self::Uncertain(failure.into()),
            Problem::Fenced { held, whose, log } => Self::Fenced(FenceView {
                held: held.map(String::from),
                whose,
                log,
            }),
        }
    }
}
