//! What is committed is what is loaded, whoever opens the store next.

use std::collections::BTreeSet;

use grid::store::{Change, MemoryStore, Store, StoreError};
use grid::words::{Digest, Era, StoreId};

use crate::fixture::{Home, content, entry, machine, node, push};

#[test]
fn what_was_committed_is_what_the_next_process_loads() {
    let home = Home::new();
    let changes: Vec<Change> = (1..=3).flat_map(push).collect();
    let mut store = home.create();
    store.commit(&changes).unwrap();
    drop(store);

    let loaded = home.read().load().unwrap();
    let mut memory = MemoryStore::new(loaded.id, loaded.era);
    memory.commit(&changes).unwrap();
    assert_eq!(&loaded, memory.peek());
    assert_eq!(loaded.push, 3);
    let journal = home.read().journal(2).unwrap();
    assert_eq!(journal, memory.journal(2).unwrap());
    assert_eq!(
        journal
            .iter()
            .map(|record| record.number)
            .collect::<Vec<_>>(),
        [2, 3]
    );
    assert_eq!(home.read().check_journal().unwrap(), None);
}

#[test]
fn a_machine_that_is_forgotten_takes_its_manifests_along() {
    let home = Home::filled();
    let mut store = home.write();
    store.commit(&[Change::ForgetMachine(node(3))]).unwrap();
    store.commit(&[Change::ForgetMachine(node(3))]).unwrap();
    let state = store.load().unwrap();
    assert_eq!(state.fleet.len(), 19);
    assert!(!state.fleet.contains_key(&node(3)));
    let again = machine(3, content(4).0);
    store
        .commit(&[
            Change::ForgetMachine(node(4)),
            Change::Machine(node(3), again.clone()),
        ])
        .unwrap();
    let state = store.load().unwrap();
    assert_eq!((state.fleet.len(), &state.fleet[&node(3)]), (19, &again));
}

#[test]
fn contents_are_kept_once_and_pruned_when_no_machine_mentions_them() {
    let home = Home::filled();
    let mut store = home.write();
    for n in [1, 20] {
        assert_eq!(
            store.content(&content(n).0).unwrap().unwrap().to_vec(),
            content(n).1
        );
    }
    let state = store.load().unwrap();
    assert_eq!(state.contents().len(), 20);
    store
        .commit(&[Change::KeepContents(state.contents())])
        .unwrap();
    assert!(store.content(&content(1).0).unwrap().is_some());
    store.commit(&[Change::ForgetMachine(node(1))]).unwrap();
    let keep: BTreeSet<Digest> = store.load().unwrap().contents();
    store.commit(&[Change::KeepContents(keep)]).unwrap();
    assert!(store.content(&content(1).0).unwrap().is_none());
    assert!(store.content(&content(2).0).unwrap().is_some());
}

#[test]
fn what_a_writer_knows_under_its_lock_is_what_a_reader_finds_on_disk() {
    let home = Home::filled();
    let mut store = home.write();
    assert_eq!(store.load().unwrap(), home.read().load().unwrap());
    let changes = [
        Change::Push(21),
        Change::ForgetMachine(node(4)),
        Change::Machine(node(3), machine(3, content(5).0)),
        Change::Journal(entry(21)),
    ];
    store.commit(&changes).unwrap();
    let known = store.load().unwrap();
    assert_eq!((known.push, known.fleet.len()), (21, 19));
    assert_eq!(known, home.read().load().unwrap());
    let wrong = Change::Content(
        Digest::of(b"other"),
        std::sync::Arc::new(zeroize::Zeroizing::new(b"another".to_vec())),
    );
    assert!(store.commit(&[Change::Push(99), wrong]).is_err());
    assert_eq!(store.load().unwrap(), known);
}

#[test]
fn a_commit_that_is_refused_leaves_nothing() {
    let home = Home::filled();
    let mut store = home.write();
    let before = store.load().unwrap();
    let (_, bytes) = content(1);
    let wrong = Change::Content(
        Digest::of(b"other"),
        std::sync::Arc::new(zeroize::Zeroizing::new(bytes)),
    );
    let refused = store.commit(&[Change::Push(99), Change::Journal(entry(99)), wrong]);
    assert!(matches!(refused, Err(StoreError::ContentDiffers { .. })));
    assert_eq!(store.load().unwrap(), before);
    assert_eq!(store.journal(1).unwrap()[0].number, 20);
}

#[test]
fn a_store_is_made_once_and_a_missing_one_is_told() {
    let home = Home::new();
    assert!(matches!(
        home.read().load(),
        Err(StoreError::Missing { .. })
    ));
    assert!(matches!(
        home.write().load(),
        Err(StoreError::Missing { .. })
    ));
    assert!(matches!(
        home.write().commit(&push(1)),
        Err(StoreError::Missing { .. })
    ));
    drop(home.create());
    let again = grid::store::SledStore::create(
        home.lock(),
        home.identity.clone(),
        &[],
        crate::fixture::NOW,
    );
    assert!(matches!(again, Err(StoreError::Exists { .. })));
    let state = home.read().load().unwrap();
    assert_eq!(
        (state.push, state.era, state.fleet.len()),
        (0, Era(1_764_444_387), 0)
    );
    assert_ne!(state.id, StoreId([0; 8]));
}

#[test]
fn threads_that_read_while_one_writes_wait_for_a_transaction_only() {
    let home = Home::filled();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let state = home.read().load().unwrap();
                        // Each commit below changes both in one step.
                        assert_eq!(u64::try_from(state.fleet.len()).unwrap(), state.push);
                    }
                })
            })
            .collect();
        let mut store = home.write();
        for n in 21..=40 {
            store.commit(&push(n)).unwrap();
        }
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(home.read().load().unwrap().push, 40);
}
