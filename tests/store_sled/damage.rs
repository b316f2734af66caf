//! A damaged store is an error of its own, whatever happened to its bytes, and never an empty store.

use std::fs;
use std::path::{Path, PathBuf};

use grid::store::{Identity, SledStore, Store, StoreError};

use crate::fixture::{Home, holder, push};

/// The largest file of the database, and its other files.
fn files(home: &Home) -> Vec<PathBuf> {
    fn all(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                all(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    all(&home.place().path().join("db"), &mut found);
    found.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).unwrap().len()));
    found
}

/// Reading and writing both refuse, with the same error.
fn assert_damaged(home: &Home, what: &str) {
    let loaded = home
        .read()
        .load()
        .map(|state| (state.push, state.fleet.len()));
    assert!(
        matches!(loaded, Err(StoreError::Damaged { .. })),
        "{what}: {loaded:?}"
    );
    let written = home.write().commit(&push(21));
    assert!(
        matches!(written, Err(StoreError::Damaged { .. })),
        "{what}: {written:?}"
    );
    let made =
        SledStore::open_or_create(home.lock(), home.identity.clone(), &[], crate::fixture::NOW);
    assert!(
        matches!(made, Err(StoreError::Damaged { .. })),
        "{what}: {made:?}"
    );
}

#[test]
fn a_truncated_database_is_damaged() {
    // sled makes room for half a megabyte at a time: what lies behind the last byte does not matter.
    let filled = fs::read(&files(&Home::filled())[0]).unwrap();
    let used = filled.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    for keep in [0, 1, 1000, used / 2, used / 4 * 3] {
        let home = Home::filled();
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&files(&home)[0])
            .unwrap();
        assert!(file.metadata().unwrap().len() > keep);
        file.set_len(keep).unwrap();
        assert_damaged(&home, &format!("{keep} bytes kept"));
    }
}

#[test]
fn an_emptied_or_vanished_database_is_damaged() {
    let home = Home::filled();
    for file in files(&home) {
        fs::write(file, b"").unwrap();
    }
    assert_damaged(&home, "every file emptied");

    let home = Home::filled();
    for file in files(&home) {
        fs::remove_file(file).unwrap();
    }
    assert_damaged(&home, "every file removed");

    let home = Home::filled();
    fs::remove_dir_all(home.place().path().join("db")).unwrap();
    assert_damaged(&home, "the folder removed");
}

#[test]
fn a_database_that_lost_its_latest_commits_is_damaged() {
    let home = Home::filled();
    let copy = home.path().join("copy");
    copy_folder(&home.place().path().join("db"), &copy);
    home.write().commit(&push(21)).unwrap();
    fs::remove_dir_all(home.place().path().join("db")).unwrap();
    fs::rename(copy, home.place().path().join("db")).unwrap();
    let told = home.read().load().unwrap_err().to_string();
    assert!(told.contains("it took 21 commits and has 20"), "{told}");
    assert_damaged(&home, "an older database");
}

#[test]
fn a_database_of_another_store_is_damaged() {
    let (home, other) = (Home::filled(), Home::new());
    drop(
        SledStore::create(
            other.lock(),
            home.identity.clone(),
            &[],
            crate::fixture::NOW,
        )
        .unwrap(),
    );
    fs::remove_dir_all(home.place().path().join("db")).unwrap();
    copy_folder(
        &other.place().path().join("db"),
        &home.place().path().join("db"),
    );
    assert_damaged(&home, "another store's database");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Flips each of many bytes of the database, one at a time: the store is whole, or damaged; never another one, never
/// without what it had.
#[test]
fn flipped_bytes_are_damage_or_do_not_matter() {
    let home = Home::filled();
    let whole = home.read().load().unwrap();
    let database = home.place().path().join("db");
    let copy = home.path().join("copy");
    copy_folder(&database, &copy);
    let mut refused = 0;
    for file in files(&home) {
        let bytes = fs::read(&file).unwrap();
        let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        for at in used.iter().step_by((used.len() / 60).max(1)) {
            let mut flipped = bytes.clone();
            flipped[*at] ^= 0x55;
            fs::write(&file, &flipped).unwrap();
            match home.read().load() {
                Ok(state) => assert_eq!(state, whole, "{} at {at}", file.display()),
                Err(StoreError::Damaged { .. }) => refused += 1,
                Err(e) => panic!("{} at {at}: {e:?}", file.display()),
            }
            fs::remove_dir_all(&database).unwrap();
            copy_folder(&copy, &database);
        }
    }
    assert!(refused > 20, "only {refused} were found out");
    assert_eq!(home.read().load().unwrap(), whole);
}

#[test]
fn another_identity_is_told_for_whom_the_store_is_sealed() {
    let home = Home::filled();
    let eve = Identity::generate();
    let mut store = SledStore::open_reading(home.place(), eve.clone(), holder("status"));
    match store.load().unwrap_err() {
        StoreError::SealedForOthers {
            recipients,
            identity,
            ..
        } => {
            assert_eq!(identity, eve.public());
            assert!(
                recipients[0].ends_with(&home.identity.public()),
                "{recipients:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    let mut store = SledStore::open_locked(home.lock(), eve, &[]);
    assert!(matches!(
        store.commit(&push(21)),
        Err(StoreError::SealedForOthers { .. })
    ));
}

#[test]
fn damage_names_the_store_and_the_remedy() {
    let home = Home::filled();
    fs::remove_dir_all(home.place().path().join("db")).unwrap();
    let told = home.read().load().unwrap_err().to_string();
    let told = told.replace(home.path().to_str().unwrap(), "DIR");
    insta::assert_snapshot!(told, @"the store at DIR/.grid is damaged: its database is gone; restore the folder from a backup. Without one, move it away: the next push then starts a new store, for which every machine is behind and which needs --take-over to replace what the lost one sent");
}
