//! A provider whose host is declared moves from machine to machine, and its accounts go on there: what leaves closes none of
//! those that are in use at the same host.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test may fall"
)]

mod support;

use support::{Bench, with_billing};

/// One database, `db`, whose accounts are loaded from whatever machine the provider is on.
fn one_database() -> Bench {
    let bench = with_billing();
    let own = "machine=$(cd -P \"$GRID_RELEASE/../../../../..\" && pwd)\n";
    let shared =
        "machine=$(cd -P \"$GRID_RELEASE/../../../../../..\" && pwd)/db\nmkdir -p \"$machine\"\n";
    let script = bench.read("accounts.sh");
    assert!(script.contains(own));
    bench.file("accounts.sh", &script.replace(own, shared));
    bench.edit("port = 7000\n", "port = 7000\nhost = \"db\"\n");
    bench.grid(&["push", "--all"]).exits(0);
    assert_eq!(admitted(&bench), 1);
    bench
}

/// How many accounts of this mesh the database has.
fn admitted(bench: &Bench) -> usize {
    bench.read("machines/db/accounts").lines().count()
}

fn put_on(bench: &Bench, from: &str, to: &str) {
    let line = |nodes: &str| format!("[services.accounts]\n{nodes}\n");
    bench.edit(&line(from), &line(to));
}

#[test]
fn a_provider_that_moves_below_its_host_closes_no_account() {
    let bench = one_database();
    put_on(&bench, "node = \"atlas\"", "node = \"cygnus\"");
    let pushed = bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(admitted(&bench), 1, "{}", pushed.all());
    insta::assert_snapshot!(pushed.all(), @"
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  cygnus    flushed  accounts comes, 5 files               sent [TIME] s, loaded accounts
    round 1  borealis  flushed  billing gets other settings of accounts  sent [TIME] s
    round 2  atlas     flushed  accounts leaves                       sent [TIME] s, removed accounts
             accounts goes on at its host: its accounts there stay open
    done: 3 machines sent, 0 failed, 0 already current
    ");
    bench.grid(&["status", "--exit-code"]).exits(0);
    bench.grid(&["push", "--all"]).exits(0);
    // Off all machines, its accounts are closed: nobody uses them.
    bench.grid(&["unassign", "billing"]).exits(0);
    put_on(&bench, "node = \"cygnus\"", "nodes = []");
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(admitted(&bench), 0);
}

#[test]
fn one_of_several_machines_that_a_provider_leaves_closes_no_account() {
    let bench = one_database();
    put_on(
        &bench,
        "node = \"atlas\"",
        "nodes = [\"atlas\", \"cygnus\"]",
    );
    bench.grid(&["push", "--behind"]).exits(0);
    put_on(
        &bench,
        "nodes = [\"atlas\", \"cygnus\"]",
        "node = \"cygnus\"",
    );
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(admitted(&bench), 1);
    bench.grid(&["push", "borealis"]).exits(0);
}

/// The database is loaded from two machines, and admits somebody outside of the mesh and nobody else.
fn on_two_machines() -> Bench {
    let bench = one_database();
    put_on(
        &bench,
        "node = \"atlas\"",
        "nodes = [\"atlas\", \"cygnus\"]",
    );
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["unassign", "billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    let hand = ["issue", "accounts/report", "--outside"];
    bench.grid(&hand).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench
}

#[test]
fn a_provider_that_leaves_all_its_machines_at_once_closes_its_accounts() {
    let bench = on_two_machines();
    assert_eq!(admitted(&bench), 1);
    put_on(&bench, "nodes = [\"atlas\", \"cygnus\"]", "nodes = []");
    // One leaves them open for the other, which goes a round later.
    let pushed = bench.grid(&["push", "--behind"]).exits(0).all();
    assert_eq!(pushed.matches("round 1").count(), 1, "{pushed}");
    assert_eq!(admitted(&bench), 0, "{pushed}");
}

#[test]
fn a_provider_that_leaves_one_machine_while_the_other_is_on_hold_closes_nothing_until_that_goes_too()
 {
    let bench = on_two_machines();
    bench.grid(&["hold", "cygnus", "in the rack"]).exits(0);
    put_on(&bench, "nodes = [\"atlas\", \"cygnus\"]", "nodes = []");
    // The machine on hold owes somebody, so that it is not done.
    let is_on = |machine: &str| {
        let service = format!("machines/{machine}/grid/current/services/accounts");
        bench.path(&service).exists()
    };
    assert!(is_on("atlas") && is_on("cygnus"));
    bench.grid(&["push", "--behind"]).exits(0);
    assert!(!is_on("atlas") && is_on("cygnus"));
    assert_eq!(admitted(&bench), 1);
    // It comes back where it never left: what is admitted is what everybody believes.
    put_on(&bench, "nodes = []", "nodes = [\"cygnus\"]");
    bench.grid(&["unhold", "cygnus"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(admitted(&bench), 1);
    put_on(&bench, "nodes = [\"cygnus\"]", "nodes = []");
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(admitted(&bench), 0);
}

#[test]
fn a_provider_that_moves_to_another_host_closes_the_accounts_of_the_first() {
    let bench = one_database();
    bench.edit("host = \"db\"\n", "host = \"db2\"\n");
    bench.edit(
        "check = [\"sh\", \"{release}/login.sh\"]",
        "check = [\"true\"]",
    );
    put_on(&bench, "node = \"atlas\"", "node = \"cygnus\"");
    let pushed = bench.grid(&["push", "--behind"]).exits(0).all();
    assert!(!pushed.contains("goes on"), "{pushed}");
    // What both load here is one file, and the machine that is left came last.
    assert_eq!(admitted(&bench), 0);
}

#[test]
fn a_machine_that_is_put_back_closes_no_account_of_the_one_that_the_provider_comes_from() {
    let bench = one_database();
    put_on(&bench, "node = \"atlas\"", "node = \"cygnus\"");
    // Another service fails there, once the list was loaded.
    bench.edit(
        "[services.notice]\n",
        "[services.notice]\nconsumes = [\"accounts\"]\ncheck = [\"false\"]\nlimits = { check = \"1s\" }\n",
    );
    bench.grid(&["push", "--behind"]).exits(4);
    let accounts = bench.read("machines/db/accounts");
    assert!(accounts.contains("billing"), "{accounts}");
}
