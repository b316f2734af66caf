//! A store in memory, for simulated meshes and tests: it can be told to fail, or to die, at a commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::journal::{Head, Walk};
use super::{BrokenLink, Change, JournalRecord, State, Store, StoreError, check_contents};
use crate::words::{Digest, Era, StoreId};

/// What happens at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails and is not applied.
    Fail,
    /// The controller dies before it is applied.
    DieBefore,
    /// The controller dies after it was applied, and never hears of it.
    DieAfter,
}

/// A store in memory. A clone of it is a copy of the store: the same id, going its own way from there.
#[derive(Clone)]
pub struct MemoryStore {
    state: State,
    contents: BTreeMap<Digest, Arc<Zeroizing<Vec<u8>>>>,
    journal: Vec<Vec<u8>>,
    head: Head,
    commits: u64,
    faults: BTreeMap<u64, Fault>,
    dead: bool,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore")
            .field("state", &self.state)
            .field("contents", &self.contents.len())
            .field("commits", &self.commits)
            .field("dead", &self.dead)
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// A copy of what a store holds, all of it, but for contents and the journal.
    #[must_use]
    pub fn of(state: State) -> Self {
        let empty = Self::new(state.id, state.era);
        Self { state, ..empty }
    }

    /// An empty store.
    #[must_use]
    pub fn new(id: StoreId, era: Era) -> Self {
        Self {
            state: State::new(id, era),
            contents: BTreeMap::new(),
            journal: Vec::new(),
            head: Head::of_new(id),
            commits: 0,
            faults: BTreeMap::new(),
            dead: false,
        }
    }

    /// How many commits were asked for so far, failed ones included.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// What happens at the `nth` commit from the beginning, counted from 1. Each fault happens once.
    pub fn fault_at(&mut self, nth: u64, fault: Fault) {
        self.faults.insert(nth, fault);
    }

    /// What happens at the next commit.
    pub fn fault_next(&mut self, fault: Fault) {
        self.fault_at(self.commits.saturating_add(1), fault);
    }

    /// A new controller opens the store after a death. What was committed is there.
    pub fn revive(&mut self) {
        self.dead = false;
    }

    /// Draws a higher era, as `store import` does.
    pub fn set_era(&mut self, era: Era) {
        self.state.era = era;
    }

    /// What it holds, without asking whether the controller lives.
    #[must_use]
    pub fn peek(&self) -> &State {
        &self.state
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.dead {
            return Err(StoreError::SimulatedDeath);
        }
        Ok(())
    }

    fn apply(&mut self, change: &Change) {
        self.state.apply(change);
        match change {
            Change::Content(digest, bytes) => {
                self.contents
                    .entry(*digest)
                    .or_insert_with(|| Arc::clone(bytes));
            }
            Change::KeepContents(kept) => self.contents.retain(|digest, _| kept.contains(digest)),
            Change::Journal(entry) => {
                let (head, bytes) = self.head.chain(entry.clone());
                self.head = head;
                self.journal.push(bytes);
            }
            Change::Push(_)
            | Change::Provision(..)
            | Change::Authorities(_)
            | Change::Identity(..)
            | Change::ForgetIdentity(_)
            | Change::Machine(..)
            | Change::ForgetMachine(_) => {}
        }
    }
}

impl Store for MemoryStore {
    fn load(&mut self) -> Result<State, StoreError> {
        self.alive()?;
        Ok(self.state.clone())
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.alive()?;
        self.commits = self.commits.saturating_add(1);
        let fault = self.faults.remove(&self.commits);
        self.dead = matches!(fault, Some(Fault::DieBefore | Fault::DieAfter));
        match fault {
            Some(Fault::Fail) => return Err(StoreError::Simulated),
            Some(Fault::DieBefore) => return Err(StoreError::SimulatedDeath),
            Some(Fault::DieAfter) | None => {}
        }
        check_contents(changes)?;
        for change in changes {
            self.apply(change);
        }
        self.alive()
    }

    fn content(&mut self, digest: &Digest) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        self.alive()?;
        Ok(self
            .contents
            .get(digest)
            .map(|bytes| bytes.as_ref().clone()))
    }

    fn journal(&mut self, last: usize) -> Result<Vec<JournalRecord>, StoreError> {
        self.alive()?;
        let last = last.min(JournalRecord::LISTED_MOST);
        let skipped = self.journal.len().saturating_sub(last);
        Ok(self
            .journal
            .iter()
            .skip(skipped)
            .filter_map(|bytes| serde_json::from_slice(bytes).ok())
            .collect())
    }

    fn check_journal(&mut self) -> Result<Option<BrokenLink>, StoreError> {
        self.alive()?;
        let mut walk = Walk::of(self.state.id);
        for bytes in &self.journal {
            if let Err(broken) = walk.step(bytes) {
                return Ok(Some(broken));
            }
        }
        Ok(walk.end(self.head))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn store() -> MemoryStore {
        MemoryStore::new(StoreId([7; 8]), Era(1))
    }

    #[test]
    fn a_controller_that_dies_after_a_commit_finds_it_applied_when_it_comes_back() {
        let mut store = store();
        store.fault_at(1, Fault::DieBefore);
        store.fault_at(2, Fault::DieAfter);
        let died = |result| matches!(result, Err(StoreError::SimulatedDeath));
        assert!(died(store.commit(&[Change::Push(1)])));
        assert!(died(store.load().map(drop)));
        store.revive();
        assert_eq!(store.load().unwrap().push, 0);
        assert!(died(store.commit(&[Change::Push(2)])));
        store.revive();
        assert_eq!(store.load().unwrap().push, 2);
        store.fault_next(Fault::Fail);
        let failed = store.commit(&[Change::Push(3)]);
        assert!(matches!(failed, Err(StoreError::Simulated)));
        assert_eq!(store.load().unwrap().push, 2);
    }

    #[test]
    fn a_commit_with_a_wrong_content_applies_nothing() {
        let mut store = store();
        let content =
            |digest, bytes: Vec<u8>| Change::Content(digest, Arc::new(Zeroizing::new(bytes)));
        let large = vec![0; 64 * 1024 + 1];
        let refused = store.commit(&[Change::Push(1), content(Digest::of(&large), large)]);
        assert!(matches!(refused, Err(StoreError::ContentTooLarge { .. })));
        let refused = store.commit(&[Change::Push(1), content(Digest::of(b"a"), b"b".to_vec())]);
        assert!(matches!(refused, Err(StoreError::ContentDiffers { .. })));
        assert_eq!(store.load().unwrap().push, 0);
        let kept = Digest::of(b"a");
        store.commit(&[content(kept, b"a".to_vec())]).unwrap();
        assert_eq!(store.content(&kept).unwrap().unwrap().as_slice(), b"a");
        store
            .commit(&[Change::KeepContents(BTreeSet::new())])
            .unwrap();
        assert!(store.content(&kept).unwrap().is_none());
    }
}
