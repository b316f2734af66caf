//! The store: what was sent, what was minted, and the journal (DESIGN.md, sections 4 and 6).
//!
//! Invariants, whatever the backend:
//! - A commit applies all of its changes or none, and is on disk when it returns. What is minted is therefore
//!   on disk before anything is sent.
//! - A damaged store is an error of its own, never an empty store. A store that is lost makes every machine
//!   behind, never none; the fence keeps a new one from overwriting what an old one sent.
//! - Only names, times and digests can be read without an identity that the store is sealed for.

mod chance;
mod database;
mod error;
mod identity;
mod journal;
mod lock;
mod many;
mod memory;
mod packed;
mod place;
mod plan;
mod recipients;
mod record;
mod seal;
mod sled;
mod transaction;
mod vault;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::compose::World;
use crate::compose::sent::{Fleet, Machine};
use crate::mesh::Mesh;
use crate::provision::{Authorities, Identities, Provision, ProvisionId, Provisions, SiteIdentity};
use crate::words::{Digest, Era, NodeName, StoreId};

pub use chance::SystemChance;
pub use error::StoreError;
pub use identity::{Identity, IdentityError, default_path, open_age_file};
pub use journal::{BrokenLink, Entry, Fence, GitCommit, JournalRecord, Outcome, Touch, Touched};
pub use lock::{Holder, LockError, LockRecord, MeshLock, Unlocked, running, unlock};
pub use memory::{Fault, MemoryStore};
pub use place::Place;
pub use sled::{Compacted, SledStore, newest_push};

/// The largest content that a store keeps, in bytes (DESIGN.md, section 6). Larger ones stay on their machine.
pub const CONTENT_MOST: usize = 64 * 1024;

/// Where a mesh's state is kept.
pub trait Store {
    /// Everything the rules need, read in one go.
    ///
    /// # Errors
    /// When the store is missing, damaged, sealed for somebody else, or held by a transaction for too long.
    fn load(&mut self) -> Result<State, StoreError>;

    /// Applies all changes or none, and is on disk (flushed) when it returns.
    ///
    /// # Errors
    /// Those of [`Store::load`]; [`StoreError::NotLocked`] without the mesh lock; a content that is too large or
    /// is not what its digest says. Then nothing was applied.
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError>;

    /// A stored content; `None`: it is not kept.
    ///
    /// # Errors
    /// Those of [`Store::load`].
    fn content(&mut self, digest: &Digest) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError>;

    /// Those of `digests` that are kept, read in one go.
    ///
    /// # Errors
    /// Those of [`Store::load`].
    fn contents(&mut self, digests: &BTreeSet<Digest>) -> Result<Contents, StoreError> {
        let mut found = Contents::new();
        for digest in digests {
            if let Some(bytes) = self.content(digest)? {
                found.insert(*digest, Arc::new(bytes));
            }
        }
        Ok(found)
    }

    /// The `last` newest entries of the journal, oldest first; at most [`JournalRecord::LISTED_MOST`].
    ///
    /// # Errors
    /// Those of [`Store::load`].
    fn journal(&mut self, last: usize) -> Result<Vec<JournalRecord>, StoreError>;

    /// Goes through the whole journal's chain; returns its first broken link, if there is one.
    ///
    /// # Errors
    /// Those of [`Store::load`].
    fn check_journal(&mut self) -> Result<Option<BrokenLink>, StoreError>;
}

/// Contents by digest.
pub type Contents = BTreeMap<Digest, Arc<Zeroizing<Vec<u8>>>>;

/// What a store holds, but for contents and the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Which store.
    pub id: StoreId,
    /// Its era: what is minted now carries it.
    pub era: Era,
    /// The number of the last push; 0: there was none.
    pub push: u64,
    /// All provisions.
    pub provisions: Provisions,
    /// The mesh's authorities, and the identities of its sites.
    pub identities: Identities,
    /// What machines hold.
    pub fleet: Fleet,
}

impl State {
    /// A store in which nothing has happened yet.
    #[must_use]
    pub fn new(id: StoreId, era: Era) -> Self {
        Self {
            id,
            era,
            push: 0,
            provisions: Provisions::default(),
            identities: Identities::default(),
            fleet: Fleet::new(),
        }
    }

    /// Every content that a last sent or an unsettled attempt of some machine mentions, wherever it lay: what
    /// [`Change::KeepContents`] has to name.
    #[must_use]
    pub fn contents(&self) -> BTreeSet<Digest> {
        self.fleet
            .values()
            .flat_map(Machine::releases)
            .flat_map(|manifest| manifest.files().map(|file| file.sha256))
            .collect()
    }

    /// What the rules are a function of, with a declaration.
    #[must_use]
    pub fn world<'a>(&'a self, mesh: &'a Mesh) -> World<'a> {
        World::new(mesh, &self.provisions, &self.fleet).with_identities(&self.identities)
    }

    /// The state after a change. Contents and the journal are no part of it.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Push(number) => self.push = *number,
            Change::Provision(id, provision) => {
                self.provisions.insert(id.clone(), provision.clone());
            }
            Change::Authorities(authorities) => {
                self.identities.set_authorities(authorities.clone());
            }
            Change::Identity(site, identity) => {
                self.identities.insert(site.clone(), identity.clone());
            }
            Change::ForgetIdentity(site) => self.identities.remove(site),
            Change::Machine(node, machine) => {
                self.fleet.insert(node.clone(), machine.clone());
            }
            Change::ForgetMachine(node) => {
                self.fleet.remove(node);
            }
            Change::Content(..) | Change::KeepContents(_) | Change::Journal(_) => {}
        }
    }
}

/// One change of a commit.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// The number of a push that begins.
    Push(u64),
    /// A provision as it is now.
    Provision(ProvisionId, Provision),
    /// All certificate authorities of the mesh, as they are now; at least one.
    Authorities(Authorities),
    /// A site's identity as it is now.
    Identity(NodeName, SiteIdentity),
    /// The identity of a site that left.
    ForgetIdentity(NodeName),
    /// What is known of a machine now.
    Machine(NodeName, Machine),
    /// `grid forget`, or the end of `grid retire`.
    ForgetMachine(NodeName),
    /// A content, at most [`CONTENT_MOST`] bytes; one that is kept already is not written again.
    Content(Digest, Arc<Zeroizing<Vec<u8>>>),
    /// Every other content goes (see [`State::contents`]).
    KeepContents(BTreeSet<Digest>),
    /// An entry of the journal; the store numbers and chains it.
    Journal(Entry),
}

/// Prints no secret: a provision's redact themselves, a content is its size.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Push(number) => write!(f, "Push({number})"),
            Self::Provision(id, provision) => write!(f, "Provision({id}, {provision:?})"),
            Self::Authorities(all) => write!(f, "Authorities({})", all.all().len()),
            Self::Identity(site, identity) => {
                write!(f, "Identity({site}, {})", identity.newest().number)
            }
            Self::ForgetIdentity(site) => write!(f, "ForgetIdentity({site})"),
            Self::Machine(node, machine) => write!(f, "Machine({node}, {machine:?})"),
            Self::ForgetMachine(node) => write!(f, "ForgetMachine({node})"),
            Self::Content(digest, bytes) => write!(f, "Content({digest:?}, {})", bytes.len()),
            Self::KeepContents(kept) => write!(f, "KeepContents({})", kept.len()),
            Self::Journal(entry) => write!(f, "Journal({entry:?})"),
        }
    }
}

/// Refuses a commit that carries a content it must not carry.
fn check_contents(changes: &[Change]) -> Result<(), StoreError> {
    for change in changes {
        let Change::Content(digest, bytes) = change else {
            continue;
        };
        if bytes.len() > CONTENT_MOST {
            return Err(StoreError::ContentTooLarge {
                digest: *digest,
                size: bytes.len(),
            });
        }
        if Digest::of(bytes) != *digest {
            return Err(StoreError::ContentDiffers { digest: *digest });
        }
    }
    Ok(())
}
