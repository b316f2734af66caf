//! Where the status document lives. A new home is one file behind [`Home`].

mod file;
mod kept;
#[cfg(test)]
mod memory;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::Document;
use super::document::DocumentError;

pub use file::FileHome;
pub use kept::{KeptFile, Lock};
#[cfg(test)]
pub use memory::{Fault, MemoryHome};

/// Which state of a home was read: a digest of a file's bytes, a resourceVersion of Kubernetes. Equal versions are one
/// state; nothing else is said by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// There is no document.
    Absent,
    /// The state with this mark.
    At(Box<str>),
}

/// What a home holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The document; `None`: none was ever published.
    pub document: Option<Document>,
    /// Which state that is.
    pub version: Version,
}

/// A home of the status document. Its calls block, for `within` at most as far as it is the home that waits: for a
/// lock, for an answer. A disk that hangs is beyond it, so the caller keeps its own deadline.
pub trait Home {
    /// What is there now. Never what was there before.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged, or of a newer format: then nothing may be written either.
    fn read(&mut self, within: Duration) -> Result<Held, HomeError>;

    /// Replaces, in one step, the state `expected` by `document`. Returns what the home then shows, once that is
    /// durable: the caller compares.
    ///
    /// # Errors
    /// When another state is there; when writing fails, after which it is *unknown* whether the document is there.
    fn publish(
        &mut self,
        document: &Document,
        expected: &Version,
        within: Duration,
    ) -> Result<Held, PublishError>;
}

/// Why a document was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Somebody else published in between. Nothing was written.
    #[error("somebody else published in between")]
    Conflict,
    /// It failed. Unknown whether something was written.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// Why a home could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// What is there is no document that this grid reads.
    #[error(
        "the status document {place} cannot be read: {source}{}",
        remedy(source)
    )]
    Document {
        /// Where.
        place: String,
        /// What is wrong with it.
        source: DocumentError,
    },
    /// No room for it.
    #[error("no room to write {}: the disk, or the quota, is full; make room, reporters repeat what was not acknowledged", path.display())]
    Full {
        /// What was to be written.
        path: PathBuf,
    },
    /// A file system that nobody can write to.
    #[error("cannot write {}: its file system is mounted read-only", path.display())]
    ReadOnly {
        /// What was to be written.
        path: PathBuf,
    },
    /// Somebody else holds the lock.
    #[error("another process held {} for {} ms", path.display(), waited.as_millis())]
    Locked {
        /// The file that is locked.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// The file system knows no locks.
    #[error("the file system of {} has no file locks, without which two writers could overwrite each other: keep the status file on another one", path.display())]
    NoLocks {
        /// The file that was to be locked.
        path: PathBuf,
    },
    /// Not a file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// What it is.
        path: PathBuf,
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
    /// A simulated failure.
    #[cfg(test)]
    #[error("the simulated home failed")]
    Simulated,
}

/// What to do about a document that cannot be read.
fn remedy(error: &DocumentError) -> &'static str {
    match error {
        DocumentError::Newer { .. } => "",
        DocumentError::Damaged { .. } | DocumentError::TooLarge => {
            "; look at it, and move it away: then gateways report anew, and what they reported before is lost"
        }
    }
}
