//! What is said of a push that failed by whoever asks later, and how a machine is freed of what cannot be mended there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test may fall"
)]

mod support;

use support::{all_current, kill_a_push_of_cygnus, three_machines};

const NOTICE: &str = "[services.notice]\n";

#[test]
fn the_journal_keeps_what_the_failed_step_printed_and_the_status_that_the_declaration_changed_since()
 {
    let bench = all_current();
    bench.edit(
        NOTICE,
        "[services.notice]\ncheck = [\"sh\", \"-c\", \"echo the reason is here; exit 3\"]\nlimits = { check = \"1s\" }\n",
    );
    bench.grid(&["push", "cygnus"]).exits(4);
    let history = bench.grid(&["history", "2"]).exits(0).all();
    assert!(
        history.contains("\n        cygnus | the reason is here\n"),
        "{history}"
    );
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    assert!(
        status.contains("push 2: failed at check of notice: "),
        "{status}"
    );
    assert!(!status.contains("changed since"), "{status}");
    bench.edit("exit 3", "exit 0");
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    assert!(
        status.contains("it exited with 3 (the declaration was changed since)"),
        "{status}"
    );
    bench.grid(&["push", "cygnus"]).exits(0);
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    assert!(!status.contains("push 2"), "{status}");
}

#[test]
fn what_an_older_push_found_is_not_told_of_a_machine_that_a_killed_one_left_uncertain() {
    let bench = all_current();
    bench.edit(
        NOTICE,
        "[services.notice]\ncheck = [\"false\"]\nlimits = { check = \"1s\" }\n",
    );
    bench.grid(&["push", "cygnus"]).exits(4);
    bench.edit("check = [\"false\"]", "check = [\"true\"]");
    kill_a_push_of_cygnus(&bench);
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    insta::assert_snapshot!(status, @"
    $ grid status cygnus
    try  last push 3
    cygnus  uncertain    commands of notice changed: apply, check; settings of notice changed: time limits
    1 machine: 1 uncertain
    ! next: `grid push --behind` sends to every machine that is behind
    ");
}

#[test]
fn a_remove_that_fails_is_told_to_be_of_an_earlier_push_and_forgetting_the_service_frees_the_machine()
 {
    let bench = three_machines();
    bench.edit(NOTICE, "[services.notice]\nremove = [\"false\"]\n");
    bench.grid(&["push", "--all"]).exits(0);
    let held = bench.path("machines/cygnus/grid/current/services/notice");
    assert!(held.exists());
    bench.grid(&["assign", "notice", "borealis"]).exits(0);
    // What would be right by now is not what was sent.
    bench.edit("remove = [\"false\"]", "remove = [\"true\"]");
    let pushed = bench.grid(&["push", "--behind"]).exits(4).all();
    assert!(pushed.contains("failed at remove of notice"), "{pushed}");
    assert!(
        pushed.contains("! next: cygnus: this `remove` came with an earlier push: give notice its machine back with one that works"),
        "{pushed}"
    );
    assert!(held.exists());
    bench
        .grid(&["forget", "cygnus", "--service", "notice", "--yes"])
        .exits(0);
    // What became of the push to the machine is told as before: it was not forgotten.
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    assert!(
        status.contains("push 2: failed at remove of notice"),
        "{status}"
    );
    let pushed = bench.grid(&["push", "--behind"]).exits(0).all();
    assert!(
        pushed
            .contains("notice was said to be gone, and goes: its remove failed (it exited with 1)"),
        "{pushed}"
    );
    assert!(!held.exists());
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_root_that_is_declared_again_is_not_to_be_removed() {
    let bench = all_current();
    let root = |from: &str, to: &str| {
        bench.edit(
            &format!("root = \"machines/cygnus/{from}\""),
            &format!("root = \"machines/cygnus/{to}\""),
        );
    };
    root("grid", "other");
    bench.grid(&["push", "--behind"]).exits(0);
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    assert!(status.contains("still lies at"), "{status}");
    root("other", "grid");
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    assert!(!status.contains("still lies at"), "{status}");
    bench.grid(&["push", "--behind"]).exits(0);
    let status = bench.grid(&["status", "cygnus"]).exits(0).all();
    assert!(status.contains("machines/cygnus/other"), "{status}");
}
