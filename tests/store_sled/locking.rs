//! Who may write, and who waits for whom.

use std::time::Duration;

use grid::store::{LockError, MeshLock, Store, StoreError, Unlocked, unlock};

use crate::fixture::{Home, holder, push};

#[test]
fn a_store_that_was_opened_to_read_writes_nothing() {
    let home = Home::filled();
    let mut store = home.read();
    assert!(matches!(
        store.commit(&push(21)),
        Err(StoreError::NotLocked)
    ));
    assert_eq!(store.load().unwrap().push, 20);
}

#[test]
fn the_lock_has_one_holder_and_names_it() {
    let home = Home::new();
    let lock = home.lock();
    let refused = MeshLock::take(&home.place(), holder("assign"), Duration::ZERO);
    let Err(LockError::Held { holder: Some(by) }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(*by, lock.holder);
    assert_eq!(
        by.to_string(),
        format!(
            "{} (push 1, process {}, since 2025-11-29T19:26:27Z)",
            by.who,
            std::process::id()
        )
    );
    assert!(lock.took_over_from_dead.is_none());
    drop(lock);
    let next = MeshLock::take(&home.place(), holder("assign"), Duration::ZERO).unwrap();
    // Who lets go leaves no record behind, and so is not taken for dead.
    assert!(next.took_over_from_dead.is_none());
}

#[test]
fn whoever_waits_gets_the_lock_when_it_is_free() {
    let home = Home::new();
    let lock = home.lock();
    std::thread::scope(|scope| {
        let waiting = scope
            .spawn(|| MeshLock::take(&home.place(), holder("push 2"), Duration::from_secs(60)));
        drop(lock);
        assert!(waiting.join().unwrap().is_ok());
    });
}

#[test]
fn a_reader_never_waits_for_a_push() {
    let home = Home::filled();
    let _push = home.lock();
    assert_eq!(home.read().load().unwrap().push, 20);
}

#[test]
fn unlocking_takes_the_lock_from_a_holder_elsewhere_and_what_it_still_commits_is_refused() {
    let home = Home::filled();
    assert_eq!(
        unlock(&home.place(), &holder("unlock")).unwrap(),
        Unlocked::WasFree
    );
    let mut elsewhere = holder("push 1");
    elsewhere.host = "runner-7.example".to_owned();
    let lock = MeshLock::take(&home.place(), elsewhere.clone(), Duration::ZERO).unwrap();
    let mut store = grid::store::SledStore::open_locked(lock, home.identity.clone(), &[]);
    store.commit(&push(21)).unwrap();
    let taken = unlock(&home.place(), &holder("unlock")).unwrap();
    assert_eq!(taken, Unlocked::TakenAway(Some(elsewhere)));
    assert!(!store.lock().unwrap().is_held());
    assert!(matches!(
        store.commit(&push(22)),
        Err(StoreError::NotLocked)
    ));
    home.write().commit(&push(22)).unwrap();
}
