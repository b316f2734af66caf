//! A bundle: a manifest and where each content comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use zeroize::Zeroizing;

use super::Release;
use crate::words::{Digest, ServiceName};

/// Where a content comes from.
#[derive(Clone)]
pub enum Content {
    /// Composed. May hold secrets, so it is wiped, and never printed.
    Bytes(Arc<Zeroizing<Vec<u8>>>),
    /// A source file of the operator's, streamed when it is sent and verified against its digest while it is.
    Source(Utf8PathBuf),
    /// Of a service that stays as last acknowledged: the machine has it, and the store too if it is at most
    /// 64 KiB.
    Kept,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Source(path) => write!(f, "Source({path})"),
            Self::Kept => f.write_str("Kept"),
        }
    }
}

/// All files and commands of one machine.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// What it holds.
    pub manifest: Arc<Release>,
    /// Its digest.
    pub digest: Digest,
    /// The content of every file of the manifest.
    pub contents: BTreeMap<Digest, Content>,
    /// The providers whose accounts are not closed when they leave the machine: they are in use elsewhere.
    pub goes_on: BTreeSet<ServiceName>,
    /// The services that leave whatever their `remove` says: the operator said that they are gone from the machine.
    pub said_gone: BTreeSet<ServiceName>,
}
