//! `kill -9` at each system call by which somebody is taken out of the store: this test program runs itself again as the process
//! that is killed, under strace, which kills it at the chosen call before that call does anything.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use grid::mesh::Recipient;
use grid::store::{Change, Holder, Identity, MeshLock, Place, SledStore, State, Store, StoreError};

use crate::fixture::{Home, NOW, entry, holder, push};
use crate::resealing::{copy, recipient};

/// Names the folder of the store that the child writes to.
const FOLDER: &str = "GRID_TEST_TAKEN_OUT_FOLDER";
/// The test that is the child's whole life.
const CHILD: &str = "killed_while_taking_out::the_child_of_the_other_test";
/// The calls by which files come, go, and reach the disk, as strace is told them: some have other names on other processors.
const CALLS: [&str; 7] = [
    "/^mkdir",
    "pwrite64",
    "ftruncate",
    "fsync",
    "/^rename",
    "/^unlink",
    "flock",
];
const SIGKILL: i32 = 9;

fn writing(folder: &Path, identity: Identity) -> SledStore {
    let who = Holder::here("maria", "push", NOW);
    let lock = MeshLock::take(&Place::beside(folder), who, std::time::Duration::ZERO).unwrap();
    let mut store = SledStore::open_locked(lock, identity, &[]);
    store.load().unwrap();
    store
}

#[test]
fn the_child_of_the_other_test() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let identity = Identity::read(&folder.join("identity.txt")).unwrap();
    writing(&folder, identity).take_out().unwrap();
}

/// Whether the child was killed at the `nth` call; else it came to its end.
fn kill_at(folder: &Path, call: &str, nth: usize) -> bool {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-e", "signal=none", "-o", "/dev/null"]);
    traced
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:signal=KILL:when={nth}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", CHILD, "--test-threads=1"])
        .env(FOLDER, folder);
    let ended = traced.output().unwrap();
    let killed = ended.status.signal() == Some(SIGKILL);
    assert!(killed || ended.status.success(), "{call} {nth}: {ended:?}");
    killed
}

fn read(folder: &Path, identity: &Identity) -> Result<State, StoreError> {
    let place = Place::beside(folder);
    SledStore::open_reading(place, identity.clone(), holder("status")).load()
}

/// What is in the folder of a store.
fn files(folder: &Path) -> Vec<String> {
    let there = std::fs::read_dir(folder.join(".grid")).unwrap();
    let mut names: Vec<String> = there
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn whoever_is_killed_while_taking_somebody_out_leaves_a_whole_store_and_the_next_one_finishes() {
    let (home, eve) = (Home::filled(), Identity::generate());
    let hers: [Recipient; 1] = [recipient("eve", &eve)];
    let mut store = SledStore::open_locked(home.lock(), home.identity.clone(), &hers);
    store.commit(&push(21)).unwrap();
    drop(store);
    let before = read(home.path(), &home.identity).unwrap();
    let there = files(home.path());
    let (mut still_in, mut already_out) = (0, 0);
    for call in CALLS {
        for nth in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path();
            copy(home.place().path(), &folder.join(".grid"));
            home.identity
                .write_new(&folder.join("identity.txt"), NOW)
                .unwrap();
            if !kill_at(folder, call, nth) {
                assert!(nth > 1, "nothing was killed at {call}");
                break;
            }
            let at = format!("{call} {nth}");
            assert_eq!(read(folder, &home.identity).unwrap(), before, "{at}");
            match read(folder, &eve) {
                Ok(_) => still_in += 1,
                Err(StoreError::SealedForOthers { .. }) => already_out += 1,
                Err(e) => panic!("{at}: {e}"),
            }
            let mut store = writing(folder, home.identity.clone());
            store.take_out().unwrap();
            store
                .commit(&[Change::Push(22), Change::Journal(entry(22))])
                .unwrap();
            assert_eq!(store.check_journal().unwrap(), None, "{at}");
            let out = read(folder, &eve);
            assert!(
                matches!(out, Err(StoreError::SealedForOthers { .. })),
                "{at}: {out:?}"
            );
            // Neither the old database is left, nor half a new one.
            assert_eq!(files(folder), there, "{at}");
        }
    }
    println!(
        "killed {still_in} times before and {already_out} times after the new database was in its place"
    );
    assert!(still_in > 5 && already_out > 1, "{still_in} {already_out}");
}
