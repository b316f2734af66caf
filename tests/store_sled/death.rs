//! `kill -9` in the middle of commits: this test program runs itself again as the process that is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use grid::store::{Change, Holder, Identity, MeshLock, Place, SledStore, Store};

use crate::fixture::{Home, NOW, content, entry, holder, machine, node, push};

/// Names the folder of the store that a child writes to.
const FOLDER: &str = "GRID_TEST_CHILD_FOLDER";
/// The test that is the child's whole life.
const CHILD: &str = "death::the_child_of_the_other_tests";

/// A process that takes the mesh lock and commits push after push, saying the number of each once it is on disk.
fn child(home: &Home) -> Child {
    let key = home.path().join("identity.txt");
    if !key.exists() {
        home.identity.write_new(&key, NOW).unwrap();
    }
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CHILD, "--nocapture", "--test-threads=1"])
        .env(FOLDER, home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_child_of_the_other_tests() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let place = Place::beside(&folder);
    let identity = Identity::read(&folder.join("identity.txt")).unwrap();
    let who = Holder::here("otto", "push 7", NOW);
    let lock = MeshLock::take(&place, who, Duration::from_secs(5)).unwrap();
    let mut store = SledStore::open_or_create(lock, identity, &[], NOW).unwrap();
    let first = store.load().unwrap().push + 1;
    let mut out = std::io::stdout();
    for n in first..first + 1000 {
        store.commit(&push(n)).unwrap();
        writeln!(out, "committed {n}").unwrap();
        out.flush().unwrap();
    }
}

/// The number that a line of the child's ends in; libtest writes its own words before the first.
fn number(line: &str) -> Option<u64> {
    line.rsplit_once("committed ")?.1.parse().ok()
}

#[test]
fn fifty_deaths_in_the_middle_of_commits_lose_nothing_that_was_committed() {
    let home = Home::new();
    let mut committed = 0;
    for round in 0..50 {
        let mut child = child(&home);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stop_after = committed + 1 + round % 3;
        let said = lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| number(&line));
        committed = said
            .take_while(|&n| n < stop_after)
            .last()
            .unwrap_or(committed)
            .max(committed);
        // A different moment of the next commit each time.
        std::thread::sleep(Duration::from_micros(
            u64::from(u32::try_from(round).unwrap()) * 150,
        ));
        child.kill().unwrap();
        child.wait().unwrap();
        committed = lines
            .map_while(Result::ok)
            .filter_map(|line| number(&line))
            .last()
            .unwrap_or(committed)
            .max(committed);

        let mut store = home.read();
        let state = store.load().unwrap();
        assert!(
            state.push >= committed,
            "round {round}: {} of {committed}",
            state.push
        );
        assert_eq!(
            u64::try_from(state.fleet.len()).unwrap(),
            state.push,
            "round {round}"
        );
        assert_eq!(
            u64::try_from(state.provisions.len()).unwrap(),
            state.push,
            "round {round}"
        );
        assert_eq!(store.check_journal().unwrap(), None, "round {round}");
        assert_eq!(
            store.journal(1).unwrap()[0].number,
            state.push,
            "round {round}"
        );
        committed = state.push;
    }
    assert!(committed >= 50);
}

#[test]
fn a_lock_whose_holder_was_killed_is_free_and_the_death_is_told() {
    let home = Home::new();
    let mut child = child(&home);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| number(&line.unwrap()).is_some()));

    let held = MeshLock::take(&home.place(), holder("push 8"), Duration::ZERO).unwrap_err();
    let held = held.to_string();
    assert!(
        held.contains("otto@") && held.contains("push 7") && held.contains("2025-11-29"),
        "{held}"
    );
    let lives = grid::store::unlock(&home.place(), &holder("unlock")).unwrap_err();
    assert!(
        lives
            .to_string()
            .contains(&format!("process {},", child.id())),
        "{lives}"
    );

    child.kill().unwrap();
    child.wait().unwrap();
    let lock = MeshLock::take(&home.place(), holder("push 8"), Duration::ZERO).unwrap();
    let dead = lock.took_over_from_dead.clone().unwrap();
    assert_eq!(
        (dead.pid, dead.what.as_str(), dead.lives()),
        (child.id(), "push 7", Some(false))
    );
    let mut store = SledStore::open_locked(lock, home.identity.clone(), &[]);
    let next = store.load().unwrap().push + 1;
    let changes = [
        Change::Push(next),
        Change::Machine(node(next), machine(next, content(1).0)),
        Change::Journal(entry(next)),
    ];
    store.commit(&changes).unwrap();
}

#[test]
fn a_death_while_the_database_was_opened_costs_nothing() {
    let home = Home::filled();
    let torn = home
        .place()
        .path()
        .join("db/snap.7FFFFFFFFFFFFFFF.generating");
    std::fs::write(&torn, b"the beginning of a snapshot").unwrap();
    assert_eq!(home.read().load().unwrap().push, 20);
    assert!(!torn.exists());
}
