//! Machines that hold what another store, or another copy of this one, sent: what a push says of it, and a status after it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test may fall"
)]

mod support;

use support::schema::hold;
use support::{Bench, all_current, three_machines};

/// A mesh that was pushed, and whose store was lost then.
fn lost() -> Bench {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    std::fs::rename(bench.path(".grid"), bench.path("lost")).unwrap();
    bench
}

/// Puts another store in the place of this one, which is kept under that name.
fn put_in_place(bench: &Bench, store: &str, keep_as: &str) {
    std::fs::rename(bench.path(".grid"), bench.path(keep_as)).unwrap();
    std::fs::rename(bench.path(store), bench.path(".grid")).unwrap();
}

#[test]
fn a_status_after_a_push_that_a_fence_refused_says_who_was_there_and_what_to_do() {
    let bench = lost();
    bench.grid(&["push", "cygnus"]).exits(8);
    let seen = bench.grid(&["status", "--exit-code"]).exits(6);
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid status --exit-code
    try  last push 1
    atlas     fenced       never sent; it refused push 1: it holds what another store sent; its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
    borealis  fenced       never sent; it refused push 1: it holds what another store sent; its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
    cygnus    fenced       never sent; it refused push 1: it holds what another store sent; its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
    3 machines: 3 fenced
    ! next: atlas, borealis, cygnus hold what push 1 of store [STORE] sent: find out who that was (their logs are above) and push from that store; or `grid push atlas borealis cygnus --take-over` replaces it, and the other store is then fenced in its turn. If that was this mesh's own `.grid`, which is lost: put its backup back in its place, or `grid push --all --take-over`
    [exit 6]
    "#);
    let json = bench.grid(&["status", "--json"]).exits(0);
    hold("status", &[serde_json::from_slice(json.raw()).unwrap()]);
    // What a probe finds there is not told twice.
    let probed = bench.grid(&["status", "cygnus", "--probe"]).exits(0);
    insta::assert_snapshot!(probed.all(), @r#"
    $ grid status cygnus --probe
    try  last push 1
    cygnus  fenced       never sent; it refused push 1: it holds what another store sent; its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
    1 machine: 1 fenced
    ! next: cygnus holds what push 1 of store [STORE] sent: find out who that was (its log is above) and push from that store; or `grid push cygnus --take-over` replaces it, and the other store is then fenced in its turn. If that was this mesh's own `.grid`, which is lost: put its backup back in its place, or `grid push --all --take-over`
    "#);
    // Once it was taken over, nothing of it is said any more.
    bench.grid(&["push", "--all", "--take-over"]).exits(0);
    let seen = bench.grid(&["status", "--exit-code"]).exits(0);
    assert!(!seen.all().contains("store"), "{}", seen.all());
}

#[test]
fn of_a_long_log_the_last_lines_are_shown_and_where_the_rest_is() {
    let bench = three_machines();
    for text in ["1\n", "2\n", "3\n", "4\n", "5\n"] {
        bench.file("notice.txt", text);
        bench.grid(&["push", "--all"]).exits(0);
    }
    std::fs::rename(bench.path(".grid"), bench.path("lost")).unwrap();
    let seen = bench.grid(&["push", "cygnus"]).exits(8);
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid push cygnus
    try  push 1  maria@lap3
    round 0  cygnus    named    never sent                            fenced: it holds what another store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             what was before that stands in [DIR]/mesh/machines/cygnus/grid/log on cygnus
             nothing was changed there
    round 1  atlas     flushed  never sent                            fenced: it holds what another store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             what was before that stands in [DIR]/mesh/machines/atlas/grid/log on atlas
             nothing was changed there
    round 1  borealis  flushed  never sent                            fenced: it holds what another store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             what was before that stands in [DIR]/mesh/machines/borealis/grid/log on borealis
             nothing was changed there
    fenced: 0 machines sent, 3 failed, 0 already current
    failed      atlas     fenced: it holds what another store sent
    failed      borealis  fenced: it holds what another store sent
    failed      cygnus    fenced: it holds what another store sent
    ! exit 8: a machine does not hold what this store sent to it last
    ! next: atlas, borealis hold what push 1 of store [STORE] sent: find out who that was (their logs are above) and push from that store; or `grid push atlas borealis --take-over` replaces it, and the other store is then fenced in its turn. If that was this mesh's own `.grid`, which is lost: put its backup back in its place, or `grid push --all --take-over`
    ! next: cygnus holds what push 5 of store [STORE] sent: find out who that was (its log is above) and push from that store; or `grid push cygnus --take-over` replaces it, and the other store is then fenced in its turn. If that was this mesh's own `.grid`, which is lost: put its backup back in its place, or `grid push --all --take-over`
    [exit 8]
    "#);
    let json = bench.grid(&["push", "cygnus", "--json"]).exits(8);
    let events = support::events(&json);
    let failed = events.iter().find(|event| event["event"] == "failed");
    let log = failed.unwrap()["problem"]["log"].as_array().unwrap().len();
    assert!(log >= 5, "{log}");
}

#[test]
fn of_two_copies_of_a_store_that_both_rotate_the_second_is_fenced_and_closes_no_account() {
    let bench = all_current();
    bench.copy(".grid", "copy");
    let rotate = |code| {
        bench.grid(&["rotate", "accounts/billing"]).exits(0);
        bench.grid(&["push", "--behind"]).exits(code)
    };
    rotate(0);
    let admitted = bench.read("machines/atlas/accounts");
    put_in_place(&bench, "copy", "first");
    let seen = rotate(8);
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  atlas     flushed  grants of accounts: +billing (generation 2)  fenced: it holds what a later push (2) of another copy of this store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --behind: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push --behind: [SHORT] applied
             nothing was changed there
    fenced: 0 machines sent, 1 failed, 2 already current
    failed      atlas  fenced: it holds what a later push (2) of another copy of this store sent
    ! exit 8: a machine does not hold what this store sent to it last
    ! next: atlas holds what push 2 of this store sent, which this copy of the store does not know: it is an older one, or two are in use. Put the newest copy back in its place and push from that; or `grid push atlas --take-over` replaces it, and the other copy is then fenced in its turn
    [exit 8]
    "#);
    assert_eq!(bench.read("machines/atlas/accounts"), admitted);
    // The first copy goes on as if nothing had been.
    put_in_place(&bench, "first", "copy");
    bench.grid(&["push", "--all"]).exits(0);
    rotate(0);
}

#[test]
fn what_another_copy_rotated_is_not_taken_for_ours_and_no_consumer_starts_before_its_provider_has_heard()
 {
    let bench = all_current();
    bench.copy(".grid", "copy");
    // Both have a generation 2 then, each with a secret of its own.
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    put_in_place(&bench, "copy", "first");
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(8);
    let seen = bench.grid(&["push", "--all", "--take-over"]).exits(0).all();
    let line = |of: &str| {
        let found = seen.lines().find(|line| line.contains(of));
        found.unwrap_or_else(|| panic!("{of}: {seen}")).to_owned()
    };
    assert!(
        line("loaded accounts").starts_with("round 0  atlas"),
        "{seen}"
    );
    assert!(
        line("gets generation 2").starts_with("round 1  borealis"),
        "{seen}"
    );
}

#[test]
fn what_is_taken_over_refuses_the_other_store_also_where_both_sent_the_same() {
    let bench = lost();
    bench.grid(&["push", "cygnus"]).exits(8);
    let seen = bench.grid(&["push", "--all", "--take-over"]).exits(0).all();
    assert!(seen.contains("another store sent what it holds"), "{seen}");
    put_in_place(&bench, "lost", "new");
    bench.file("notice.txt", "changed\n");
    bench.grid(&["push", "cygnus"]).exits(8);
    put_in_place(&bench, "new", "lost");
    bench.grid(&["push", "--behind"]).exits(0);
}
