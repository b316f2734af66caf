//! A store that notes in the journal that a push began, with the push's first commit: on disk before any machine is
//! contacted, and at no cost of its own. A push that is killed leaves this entry, and no other one.

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use crate::store::{
    BrokenLink, Change, Contents, Entry, JournalRecord, Outcome, State, Store, StoreError,
};
use crate::words::Digest;

/// The store of a push.
pub(super) struct Begins<'a> {
    store: &'a mut dyn Store,
    entry: Option<Entry>,
}

impl<'a> Begins<'a> {
    /// The same store; `entry` is what the push is to be known by, should it not come to its end.
    pub fn new(store: &'a mut dyn Store, entry: Entry) -> Self {
        Self {
            store,
            entry: Some(entry),
        }
    }
}

impl Store for Begins<'_> {
    fn load(&mut self) -> Result<State, StoreError> {
        self.store.load()
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let number = changes.iter().find_map(|change| match change {
            Change::Push(number) => Some(*number),
            _ => None,
        });
        let (Some(number), Some(entry)) = (number, &self.entry) else {
            return self.store.commit(changes);
        };
        let began = Entry {
            ended: None,
            push: Some(number),
            outcome: Outcome::Begun,
            ..entry.clone()
        };
        let mut changes = changes.to_vec();
        changes.push(Change::Journal(began));
        self.store.commit(&changes)?;
        self.entry = None;
        Ok(())
    }

    fn content(&mut self, digest: &Digest) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        self.store.content(digest)
    }

    fn contents(&mut self, digests: &BTreeSet<Digest>) -> Result<Contents, StoreError> {
        self.store.contents(digests)
    }

    fn journal(&mut self, last: usize) -> Result<Vec<JournalRecord>, StoreError> {
        self.store.journal(last)
    }

    fn check_journal(&mut self) -> Result<Option<BrokenLink>, StoreError> {
        self.store.check_journal()
    }
}
