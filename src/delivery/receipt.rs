//! What comes back from a machine. All of it is data from outside: bounded, cleaned of control
//! characters, and checked before it is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::compose::Release;
use crate::compose::manifest::Grants;
use crate::words::{Digest, ServiceName, Token};

/// The step at which a send failed. Each is a message and, in JSON, a stable label of its own.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FailedStep {
    /// The name does not resolve.
    Resolve,
    /// No connection: refused, unreachable, timed out.
    Connect,
    /// The host key is unknown, changed or revoked.
    HostKey,
    /// Nobody logged in.
    Authenticate,
    /// The machine side did not start: no POSIX shell, sudo wants a password, a tool is missing.
    Start,
    /// Another send holds the machine's lock.
    Lock,
    /// A source file changed or vanished while it was sent.
    Source,
    /// Files did not arrive whole: the connection broke, the disk is full.
    Unpack,
    /// A hash is not what it should be.
    Verify,
    /// A service's `test`.
    Test,
    /// `current` could not be switched.
    Switch,
    /// A file could not be installed.
    Install,
    /// A provider refused its list.
    Load,
    /// A service's `apply`.
    Apply,
    /// A service's `check`, or the reading back of a list.
    Check,
    /// A service's `remove`.
    Remove,
    /// The connection broke, or what came back made no sense, after the machine side was started.
    Receipt,
}

/// How the machine side says that a command of a service had no more time.
pub(super) const NOT_DONE: &str = "it was not done within ";

/// Why a send failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// At which step.
    pub step: FailedStep,
    /// Of which service, if it is a service's step.
    pub service: Option<ServiceName>,
    /// The cause, one line.
    pub cause: String,
    /// The last lines that the step printed; at most 20 of at most 500 characters.
    pub output: Vec<String>,
    /// What to type or to do next, if there is something.
    pub hint: Option<String>,
}

impl Failure {
    /// Whether a command of a service had not ended when its time was up.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.service.is_some() && self.cause.contains(NOT_DONE)
    }
}

/// A send that the machine acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Bytes of content that were sent; 0: the machine had every file.
    pub bytes: u64,
    /// Files that were sent.
    pub files: u64,
    /// Providers whose list was loaded, in that order.
    pub loaded: Vec<ServiceName>,
    /// Services that took their files, in that order.
    pub applied: Vec<ServiceName>,
    /// What was found to have drifted and was mended: one line each.
    pub mended: Vec<String>,
    /// Services that left.
    pub removed: Vec<ServiceName>,
    /// What deserves a word: one line each.
    pub notes: Vec<String>,
}

/// How a send ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The bundle is in force, every list loaded, every check held.
    Applied(Applied),
    /// It was not its turn before the [`Gate`](super::Gate) closed: nobody tried to reach it.
    KeptBack,
    /// No connection was made: the machine received nothing.
    NotReached(Failure),
    /// The machine refused before it changed anything: it holds what it held.
    Refused(Failure),
    /// The previous release is in force again; the lists of these providers, which were there before, are the new ones.
    RolledBack {
        /// What failed.
        failure: Failure,
        /// The providers whose newer list stayed loaded.
        lists: BTreeSet<ServiceName>,
    },
    /// Nobody knows what the machine holds: the connection broke, or the roll-back failed.
    Uncertain(Failure),
    /// The fence: the machine holds the token of another send. Nothing was changed.
    Fenced {
        /// What it holds; `None`: nothing, where something was expected.
        held: Option<Token>,
        /// The last lines of the machine's own log: who was there.
        log: Vec<String>,
    },
}

/// What a machine holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The token of the send that it last took; `None`: never any.
    pub token: Option<Token>,
    /// The manifest of its current release; `None`: it has none.
    pub manifest: Option<Arc<Release>>,
    /// Lists newer than the manifest's, kept from a send that was rolled back.
    pub lists: BTreeMap<ServiceName, Grants>,
    /// The last lines of the machine's own log.
    pub log: Vec<String>,
}

/// What was seen of a machine that was only looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// The token of the send that it last took; `None`: never any.
    pub token: Option<Token>,
    /// The digest of its current release; `None`: it has none.
    pub current: Option<Digest>,
    /// What stands where its `current` should lead to a release.
    pub odd: Option<String>,
    /// A send is under way there: nobody looked at its files.
    pub busy: bool,
    /// How many files of the release that was asked for are not as they were sent.
    pub differing: u64,
    /// The first of them, by path; at most 20. One that is installed has its absolute path.
    pub differs: Vec<String>,
}

impl Sight {
    /// The most files that are named.
    pub(super) const DIFFERING: usize = 20;
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What it holds.
    Holds(Holding),
    /// What was seen there.
    Seen(Sight),
    /// Nobody tried to ask it: the [`Gate`](super::Gate) was shut before.
    KeptBack,
    /// It could not be asked.
    Unknown(Failure),
}
