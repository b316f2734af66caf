//! The embedded store: one sled database in a folder, opened for each transaction and closed again.
//!
//! Invariant: nothing but the names of records, and `meta`, reaches a file unsealed. What sled keeps of removed
//! records is sealed too.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use zeroize::Zeroizing;

use super::chance::SystemChance;
use super::lock::{Holder, MeshLock};
use super::place::Place;
use super::recipients::{self, Due};
use super::record::{self, Meta, SealedFor};
use super::seal::Sealer;
use super::transaction::{Transaction, Witness};
use super::vault::{self, Known, Vault, damaged};
use super::{BrokenLink, Change, Contents, Identity, JournalRecord, State, Store, StoreError};
use crate::mesh::Recipient;
use crate::words::{Digest, Era, StoreId};

/// Files smaller than this are not worth compacting, in bytes.
const COMPACT_FROM: u64 = 64 * 1024 * 1024;
/// How many times larger than its rows a database may be.
const COMPACT_RATIO: u64 = 4;

/// What the store was opened for.
#[derive(Debug)]
enum Access {
    /// Reading, by whom.
    Reading(Holder),
    /// Writing, under the mesh lock, for these declared recipients.
    Locked(MeshLock, Vec<Recipient>),
}

/// A store on this machine's disk.
#[derive(Debug)]
pub struct SledStore {
    place: Place,
    identity: Identity,
    access: Access,
    /// What it was when it was last opened.
    known: Option<Known>,
    /// What it holds, as it was last read or written under the mesh lock; nobody else changes it as long as that is held.
    held: Option<State>,
}

/// The number of the newest push of the store at `place`, as its witness says: without opening the store, so without a lock
/// and without an identity. `None`: there is no store, or it says nothing.
#[must_use]
pub fn newest_push(place: &Place) -> Option<u64> {
    let push = Witness::read(place)?.push;
    (push > 0).then_some(push)
}

/// What compacting did, in bytes of all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

impl SledStore {
    /// Makes a new store, sealed for `identity` and the declared recipients. Its era is the clock's second.
    ///
    /// # Errors
    /// [`StoreError::Exists`], also where a damaged store or what is left of one lies.
    pub fn create(
        lock: MeshLock,
        identity: Identity,
        declared: &[Recipient],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let id = StoreId::draw(&mut SystemChance);
        let mut sealed_for = vec![SealedFor {
            name: lock.holder.who.clone(),
            key: identity.public(),
        }];
        recipients::add(&mut sealed_for, declared);
        let sealer = Sealer::draw(&mut SystemChance);
        let meta = Meta {
            format: record::FORMAT,
            store: id.0,
            era: Era(u64::try_from(now.as_second()).unwrap_or(0)),
            created: now,
            recipients: sealed_for,
            all_are_named: false,
            key: Vec::new(),
            seal: Vec::new(),
        };
        let place = lock.place().clone();
        Transaction::create(&place, &lock.holder, vault::new_rows(meta, &sealer)?)?;
        let witness = Witness {
            store: id.to_string(),
            commits: 0,
            counted_at: 0,
            push: 0,
        };
        witness.write(&place)?;
        Ok(Self::over(
            place,
            identity,
            Access::Locked(lock, declared.to_vec()),
        ))
    }

    /// A store to read from; needs no mesh lock. `holder` is who others see while a transaction is open.
    #[must_use]
    pub fn open_reading(place: Place, identity: Identity, holder: Holder) -> Self {
        Self::over(place, identity, Access::Reading(holder))
    }

    /// A store to write to, under its mesh lock. With the first commit it is sealed for declared recipients who were
    /// added; one who was removed is out after [`SledStore::take_out`].
    #[must_use]
    pub fn open_locked(lock: MeshLock, identity: Identity, declared: &[Recipient]) -> Self {
        let place = lock.place().clone();
        Self::over(place, identity, Access::Locked(lock, declared.to_vec()))
    }

    /// [`SledStore::open_locked`], or [`SledStore::create`] where there is none.
    ///
    /// # Errors
    /// Those of [`SledStore::create`], and what opening an existing one says.
    pub fn open_or_create(
        lock: MeshLock,
        identity: Identity,
        declared: &[Recipient],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut store = Self::open_locked(lock, identity, declared);
        match store.load() {
            Ok(_) => Ok(store),
            Err(StoreError::Missing { .. }) => {
                let Self {
                    identity, access, ..
                } = store;
                match access {
                    Access::Locked(lock, declared) => Self::create(lock, identity, &declared, now),
                    Access::Reading(_) => Err(StoreError::NotLocked),
                }
            }
            Err(e) => Err(e),
        }
    }

    fn over(place: Place, identity: Identity, access: Access) -> Self {
        Self {
            place,
            identity,
            access,
            known: None,
            held: None,
        }
    }

    /// The mesh lock, if the store is open for writing.
    #[must_use]
    pub fn lock(&self) -> Option<&MeshLock> {
        match &self.access {
            Access::Locked(lock, _) => Some(lock),
            Access::Reading(_) => None,
        }
    }

    /// For whom the store is sealed now.
    ///
    /// # Errors
    /// Those of [`Store::load`].
    pub fn sealed_for(&mut self) -> Result<Vec<Recipient>, StoreError> {
        self.with(|_, vault| Ok(people(&vault.meta.recipients)))
    }

    /// Who may open the store as it was last opened, and is taken out once somebody writes under a declaration that names
    /// `declared`. Nobody before it was opened.
    #[must_use]
    pub fn to_be_taken_out(&self, declared: &[Recipient]) -> Vec<Recipient> {
        let due = self.due(declared);
        due.map_or_else(Vec::new, |due| people(&due.taken_out))
    }

    /// Whether the identity at hand opens the store only until somebody else writes to it: the declaration does not name it, and it
    /// did not make the store.
    #[must_use]
    pub fn is_not_named(&self, declared: &[Recipient]) -> bool {
        self.due(declared)
            .is_some_and(|due| due.writer_is_not_named)
    }

    /// Who may open the store once somebody wrote to it under a declaration that names `declared`, the user of this identity among
    /// them.
    #[must_use]
    pub fn to_be_sealed_for(&self, declared: &[Recipient]) -> Vec<Recipient> {
        let due = self.due(declared);
        due.map_or_else(|| declared.to_vec(), |due| people(&due.recipients))
    }

    fn due(&self, declared: &[Recipient]) -> Option<Due> {
        let known = self.known.as_ref()?;
        Some(Due::of(&known.meta, &self.identity.public(), declared))
    }

    /// Seals all of the store anew, under another data key, where somebody may open it whom the declaration names no more (see
    /// [`Self::to_be_taken_out`]), and says who they are: by then nothing in any of its files opens for them. Nobody: nothing was
    /// written.
    ///
    /// # Errors
    /// Those of [`Store::commit`]. Then the store is as it was.
    pub fn take_out(&mut self) -> Result<Vec<Recipient>, StoreError> {
        let holder = self.writer()?.clone();
        let Access::Locked(lock, declared) = &self.access else {
            return Err(StoreError::NotLocked);
        };
        let known = self.due(declared);
        if known.is_some_and(|due| due.taken_out.is_empty()) {
            return Ok(Vec::new()); // nobody else writes, so it is as it was opened
        }
        let transaction = Transaction::open(&self.place, &holder)?;
        let vault = self.vault(&transaction)?;
        let due = vault.due(declared);
        if due.taken_out.is_empty() {
            return Ok(Vec::new());
        }
        let resealing = vault.resealing(&due)?;
        // Asked again as late as can be: opening may have waited.
        if !lock.is_held() {
            return Err(StoreError::NotLocked);
        }
        transaction.rewrite(&mut |name, row| resealing.row(name, row))?;
        self.known = None;
        Ok(people(&due.taken_out))
    }

    /// Writes the store anew, without what was removed.
    ///
    /// # Errors
    /// Those of [`Store::commit`]. Then the store is as it was.
    pub fn compact(&mut self) -> Result<Compacted, StoreError> {
        let holder = self.writer()?.clone();
        let transaction = Transaction::open(&self.place, &holder)?;
        self.vault(&transaction)?;
        let before = transaction.files()?;
        transaction.rewrite(&mut |_, row| Ok(row.to_vec()))?;
        let transaction = Transaction::open(&self.place, &holder)?;
        let after = transaction.files()?;
        Ok(Compacted { before, after })
    }

    /// Who writes; refused without the mesh lock.
    fn writer(&self) -> Result<&Holder, StoreError> {
        match &self.access {
            Access::Locked(lock, _) if lock.is_held() => Ok(&lock.holder),
            Access::Locked(..) | Access::Reading(_) => Err(StoreError::NotLocked),
        }
    }

    fn holder(&self) -> &Holder {
        match &self.access {
            Access::Locked(lock, _) => &lock.holder,
            Access::Reading(holder) => holder,
        }
    }

    /// Opens the rows, and proves them to be this store's, whole and latest.
    fn vault<'a>(&'a self, transaction: &'a Transaction) -> Result<Vault<'a>, StoreError> {
        let path = self.place.path();
        let vault = Vault::open(
            transaction.rows(),
            path,
            &self.identity,
            self.known.as_ref(),
        )?;
        if let Some(witness) = Witness::read(&self.place) {
            let (id, commits) = (vault.meta.id().to_string(), vault.head()?.commits);
            if witness.store != id {
                let why = format!(
                    "its witness speaks of store {}, its database is {id}",
                    witness.store
                );
                return Err(damaged(path, why));
            }
            if witness.commits > commits {
                let why = format!("it took {} commits and has {commits}", witness.commits);
                return Err(damaged(path, why));
            }
        }
        Ok(vault)
    }

    fn with<T>(
        &mut self,
        act: impl FnOnce(&Transaction, &Vault<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = Transaction::open(&self.place, self.holder())?;
        let vault = self.vault(&transaction)?;
        let known = vault.known();
        let result = act(&transaction, &vault);
        self.known = Some(known);
        result
    }

    /// What a commit leaves to be done: the witness, and now and then a compaction.
    fn settle(
        &self,
        transaction: Transaction,
        store: String,
        commits: u64,
        push: u64,
    ) -> Result<(), StoreError> {
        let counted_at = Witness::read(&self.place).map_or(0, |witness| witness.counted_at);
        let mut witness = Witness {
            store,
            commits,
            counted_at,
            push,
        };
        witness.write(&self.place)?;
        if transaction.files()? <= COMPACT_FROM.max(counted_at.saturating_mul(2)) {
            return Ok(());
        }
        let (files, live) = transaction.sizes()?;
        witness.counted_at = files;
        if files > live.saturating_mul(COMPACT_RATIO) {
            transaction.rewrite(&mut |_, row| Ok(row.to_vec()))?;
            witness.counted_at = 0;
        }
        witness.write(&self.place)
    }
}

fn people(sealed_for: &[SealedFor]) -> Vec<Recipient> {
    let people = sealed_for.iter().map(|one| Recipient {
        name: one.name.clone(),
        key: one.key.clone(),
    });
    people.collect()
}

impl Store for SledStore {
    fn load(&mut self) -> Result<State, StoreError> {
        let is_alone = self.writer().is_ok();
        if let Some(held) = self.held.as_ref().filter(|_| is_alone) {
            return Ok(held.clone());
        }
        let state = self.with(|_, vault| vault.load())?;
        if is_alone {
            self.held = Some(state.clone());
        }
        Ok(state)
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        // Whatever goes wrong from here on, what it holds is read anew.
        let held = self.held.take();
        let holder = self.writer()?.clone();
        let transaction = Transaction::open(&self.place, &holder)?;
        let vault = self.vault(&transaction)?;
        let Access::Locked(lock, declared) = &self.access else {
            return Err(StoreError::NotLocked);
        };
        let changed = vault.plan(changes, declared)?;
        let head = vault.head()?;
        let push = changes.iter().fold(head.push, |push, change| match change {
            Change::Push(number) => *number,
            _ => push,
        });
        let (store, commits) = (vault.meta.id().to_string(), head.commits.saturating_add(1));
        let known = vault.known();
        // Asked again as late as can be: opening may have waited.
        if !lock.is_held() {
            return Err(StoreError::NotLocked);
        }
        transaction.apply(changed)?;
        self.settle(transaction, store, commits, push)?;
        self.known = Some(known);
        self.held = held.map(|mut held| {
            changes.iter().for_each(|change| held.apply(change));
            held
        });
        Ok(())
    }

    fn content(&mut self, digest: &Digest) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        self.with(|_, vault| vault.content(digest))
    }

    fn contents(&mut self, digests: &BTreeSet<Digest>) -> Result<Contents, StoreError> {
        if digests.is_empty() {
            return Ok(Contents::new());
        }
        self.with(|_, vault| {
            let found = digests.iter().filter_map(|digest| {
                let bytes = vault.content(digest).transpose()?;
                Some(bytes.map(|bytes| (*digest, Arc::new(bytes))))
            });
            found.collect()
        })
    }

    fn journal(&mut self, last: usize) -> Result<Vec<JournalRecord>, StoreError> {
        self.with(|_, vault| vault.journal(last))
    }

    fn check_journal(&mut self) -> Result<Option<BrokenLink>, StoreError> {
        self.with(|_, vault| vault.check_journal())
    }
}
