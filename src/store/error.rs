//! What a store refuses or fails at. Each variant is one thing for an operator to do.

use std::io;
use std::path::PathBuf;

use super::lock::{Holder, by};
use crate::words::Digest;

/// What to do about a damaged store.
const REMEDY: &str = "restore the folder from a backup. Without one, move it away: the next push then starts a new \
store, for which every machine is behind and which needs --take-over to replace what the lost one sent";

/// Why a store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none yet.
    #[error("there is no store at {}: the first push makes one", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// There is one where a new one was to be made.
    #[error("there is a store at {} already", path.display())]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// Its bytes are not what was written. Exit 8.
    #[error("the store at {} is damaged: {why}; {REMEDY}", path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// The identity at hand opens none of the store's seals. Exit 8.
    #[error(
        "the store at {} is sealed for somebody else ({}), and your identity is {identity}",
        path.display(),
        recipients.join(", ")
    )]
    SealedForOthers {
        /// Where.
        path: PathBuf,
        /// For whom, by name and public key.
        recipients: Vec<String>,
        /// The public key of the identity at hand.
        identity: String,
    },
    /// A record is whole, but this grid does not know its format. Exit 8.
    #[error(
        "{record} in the store has a format that this grid cannot read ({why}): a newer grid wrote it, use that one"
    )]
    Format {
        /// The record's name.
        record: String,
        /// Which format it has, or what does not fit.
        why: String,
    },
    /// Another process's transaction held the store too long.
    #[error("the store at {} is in use by {} and was not free within {seconds} s: try again", path.display(), by(holder.as_deref()))]
    Busy {
        /// Where.
        path: PathBuf,
        /// Who has it; `None`: it took it this instant.
        holder: Option<Box<Holder>>,
        /// How long was waited.
        seconds: u64,
    },
    /// A commit without the mesh lock, or after `grid unlock` took it away.
    #[error("nothing was written: the mesh lock is not held any more, somebody ran `grid unlock`")]
    NotLocked,
    /// A content beyond [`super::CONTENT_MOST`].
    #[error("content {} has {size} bytes, more than a store keeps", digest.short())]
    ContentTooLarge {
        /// Which.
        digest: Digest,
        /// Its size in bytes.
        size: usize,
    },
    /// A content whose bytes are not what its digest says.
    #[error("content {} does not have the bytes that its digest names", digest.short())]
    ContentDiffers {
        /// Which.
        digest: Digest,
    },
    /// A recipient's key is not an age public key.
    #[error("the key of recipient {name} is not an age public key (age1…)")]
    Recipient {
        /// Whose.
        name: String,
    },
    /// age could not seal the data key.
    #[error("the data key cannot be sealed for its recipients: {why}")]
    Wrap {
        /// What age says.
        why: String,
    },
    /// The system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A simulated failure: the commit was not applied.
    #[error("the simulated store failed")]
    Simulated,
    /// A simulated death of the controller: nothing works until the store is opened again.
    #[error("the simulated controller is dead")]
    SimulatedDeath,
}

impl StoreError {
    /// For `map_err` of a system call.
    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}
