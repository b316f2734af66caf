//! Who may open the store, as recipients come and go.

use std::fs;
use std::path::Path;

use grid::mesh::Recipient;
use grid::store::{Identity, SledStore, Store, StoreError};

use crate::fixture::{Home, holder, push};
use crate::thief::everything;

pub fn recipient(name: &str, identity: &Identity) -> Recipient {
    Recipient {
        name: name.to_owned(),
        key: identity.public(),
    }
}

pub fn opens(home: &Home, identity: &Identity) -> bool {
    let mut store = SledStore::open_reading(home.place(), identity.clone(), holder("status"));
    match store.load() {
        Ok(_) => true,
        Err(StoreError::SealedForOthers { .. }) => false,
        Err(e) => panic!("{e}"),
    }
}

/// A store that is open for writing by `identity` under a declaration that names `declared`.
pub fn writing(home: &Home, identity: &Identity, declared: &[Recipient]) -> SledStore {
    let mut store = SledStore::open_locked(home.lock(), identity.clone(), declared);
    store.load().unwrap();
    store
}

fn names(people: &[Recipient]) -> Vec<&str> {
    people.iter().map(|one| one.name.as_str()).collect()
}

/// The data keys under age that stand anywhere in these bytes.
fn wrapped_keys(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let after = text.split("\"key\":\"").skip(1);
    let keys = after.filter_map(|rest| rest.split_once('"'));
    let wrapped = keys.filter(|(key, _)| !key.starts_with("age1"));
    wrapped.map(|(key, _)| key.to_owned()).collect()
}

/// Copies a folder with everything in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, to).unwrap();
        }
    }
}

#[test]
fn a_recipient_who_is_declared_opens_the_store_after_the_next_commit() {
    let (home, otto) = (Home::filled(), Identity::generate());
    let declared = [recipient("otto", &otto)];
    let mut store = writing(&home, &home.identity, &declared);
    assert!(store.take_out().unwrap().is_empty());
    assert!(!opens(&home, &otto));
    store.commit(&push(21)).unwrap();
    assert!(opens(&home, &otto) && opens(&home, &home.identity));
    assert_eq!(names(&store.sealed_for().unwrap())[1..], ["otto"]);
}

#[test]
fn who_is_declared_no_more_is_out_and_everything_else_is_as_it_was() {
    let (home, otto, eve) = (Home::filled(), Identity::generate(), Identity::generate());
    let declared = [recipient("otto", &otto), recipient("eve", &eve)];
    writing(&home, &home.identity, &declared)
        .commit(&push(21))
        .unwrap();
    assert!(opens(&home, &otto) && opens(&home, &eve));
    let read = || {
        let mut store = home.read();
        let state = store.load().unwrap();
        let contents = store.contents(&state.contents()).unwrap();
        (state, contents, store.journal(99).unwrap())
    };
    let before = read();
    assert_eq!((before.1.len(), before.2.len()), (21, 21));

    let mut store = writing(&home, &home.identity, &declared[..1]);
    assert_eq!(names(&store.to_be_taken_out(&declared[..1])), ["eve"]);
    assert!(opens(&home, &eve));
    assert_eq!(names(&store.take_out().unwrap()), ["eve"]);
    assert!(!opens(&home, &eve));
    assert!(opens(&home, &otto) && opens(&home, &home.identity));
    assert_eq!(read(), before);
    assert_eq!(home.read().check_journal().unwrap(), None);
    // Once, and the next commit does not let her in again.
    assert!(store.take_out().unwrap().is_empty());
    store.commit(&push(22)).unwrap();
    assert!(!opens(&home, &eve) && opens(&home, &otto));
    assert_eq!(store.load().unwrap().push, 22);
    for old in ["db.previous", "db.next"] {
        assert!(!home.place().path().join(old).exists(), "{old}");
    }
}

#[test]
fn who_was_out_and_is_declared_again_is_in_again() {
    let (home, eve) = (Home::filled(), Identity::generate());
    let declared = [recipient("eve", &eve)];
    for round in 0..3 {
        writing(&home, &home.identity, &declared)
            .commit(&push(100 + round))
            .unwrap();
        assert!(opens(&home, &eve));
        let mut store = writing(&home, &home.identity, &[]);
        assert_eq!(names(&store.take_out().unwrap()), ["eve"]);
        assert!(!opens(&home, &eve));
    }
}

#[test]
fn one_who_goes_as_another_comes_is_out_at_once_and_the_other_is_in() {
    let (home, otto, eve) = (Home::filled(), Identity::generate(), Identity::generate());
    let (otto_is, eve_is) = ([recipient("otto", &otto)], [recipient("eve", &eve)]);
    writing(&home, &home.identity, &eve_is)
        .commit(&push(21))
        .unwrap();
    let mut store = writing(&home, &home.identity, &otto_is);
    assert_eq!(names(&store.take_out().unwrap()), ["eve"]);
    assert!(opens(&home, &otto) && !opens(&home, &eve));
}

#[test]
fn another_operator_does_not_take_out_who_made_the_store_until_that_one_was_named_too() {
    let (home, otto) = (Home::filled(), Identity::generate());
    let maria = &home.identity;
    let others = [recipient("otto", &otto)];
    writing(&home, maria, &others).commit(&push(21)).unwrap();
    let mut store = writing(&home, &otto, &others);
    assert!(store.take_out().unwrap().is_empty());
    store.commit(&push(22)).unwrap();
    drop(store);
    assert!(opens(&home, maria));

    let all = [recipient("otto", &otto), recipient("maria", maria)];
    writing(&home, maria, &all).commit(&push(23)).unwrap();
    let mut store = writing(&home, &otto, &others);
    assert_eq!(names(&store.take_out().unwrap()), ["maria"]);
    assert!(!opens(&home, maria) && opens(&home, &otto));
    assert_eq!(names(&store.sealed_for().unwrap()), ["otto"]);
}

#[test]
fn a_writer_who_is_named_no_more_is_told_and_is_out_once_somebody_else_writes() {
    let (home, eve) = (Home::filled(), Identity::generate());
    writing(&home, &home.identity, &[recipient("eve", &eve)])
        .commit(&push(21))
        .unwrap();
    let mut store = writing(&home, &eve, &[]);
    assert!(store.is_not_named(&[]) && store.take_out().unwrap().is_empty());
    store.commit(&push(22)).unwrap();
    drop(store);
    assert!(opens(&home, &eve));
    let mut store = writing(&home, &home.identity, &[]);
    assert!(!store.is_not_named(&[]));
    assert_eq!(names(&store.take_out().unwrap()), ["eve"]);
    assert!(!opens(&home, &eve));
}

#[test]
fn the_key_that_she_kept_opens_nothing_of_what_is_there_and_a_copy_that_she_made_opens_still() {
    let (home, eve) = (Home::filled(), Identity::generate());
    let declared = [recipient("eve", &eve)];
    writing(&home, &home.identity, &declared)
        .commit(&push(21))
        .unwrap();
    // She has the store open, and with it its data key, while she is taken out.
    let mut hers = SledStore::open_reading(home.place(), eve.clone(), holder("status"));
    hers.load().unwrap();
    let of_hers = tempfile::tempdir().unwrap();
    let copied = of_hers.path().join(".grid");
    copy(home.place().path(), &copied);
    let mut store = writing(&home, &home.identity, &[]);
    store.take_out().unwrap();
    store.commit(&push(22)).unwrap();
    assert!(matches!(
        hers.load(),
        Err(StoreError::SealedForOthers { .. })
    ));
    // The data key that was wrapped for her lies in no file any more, nor does any record that it opens.
    let (mut before, mut now) = (Vec::new(), Vec::new());
    everything(&copied, &mut before);
    everything(home.place().path(), &mut now);
    let old = wrapped_keys(&before);
    assert!(old.len() > 1, "{old:?}");
    for key in wrapped_keys(&now) {
        assert!(!old.contains(&key), "{key}");
    }
    let at = grid::store::Place::at(copied);
    let mut hers = SledStore::open_reading(at, eve, holder("status"));
    assert_eq!(hers.load().unwrap().push, 21);
}

#[test]
fn nobody_is_taken_out_without_the_mesh_lock() {
    let (home, eve) = (Home::filled(), Identity::generate());
    writing(&home, &home.identity, &[recipient("eve", &eve)])
        .commit(&push(21))
        .unwrap();
    let mut store = writing(&home, &home.identity, &[]);
    fs::remove_file(home.place().path().join("lock")).unwrap();
    assert!(matches!(store.take_out(), Err(StoreError::NotLocked)));
    assert!(opens(&home, &eve));
    assert!(matches!(home.read().take_out(), Err(StoreError::NotLocked)));
}

#[test]
fn a_death_in_the_middle_of_a_replacement_leaves_a_whole_store() {
    let home = Home::filled();
    let folder = home.place().path().to_owned();
    // Between the two renamings, and before the first.
    fs::rename(folder.join("db"), folder.join("db.previous")).unwrap();
    fs::create_dir(folder.join("db.next")).unwrap();
    assert_eq!(home.read().load().unwrap().push, 20);
    fs::create_dir(folder.join("db.next")).unwrap();
    assert_eq!(home.read().load().unwrap().push, 20);
    assert!(!folder.join("db.next").exists() && !folder.join("db.previous").exists());
    let before = home.read().load().unwrap();
    let compacted = home.write().compact().unwrap();
    assert!(compacted.before > 0 && compacted.after > 0, "{compacted:?}");
    assert_eq!(home.read().load().unwrap(), before);
}
