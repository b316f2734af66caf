//! Machines that are not what the store thinks: emptied, moved to another address, taken by another store.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod support;

use support::{Bench, three_machines};

/// All three are current, and billing has its account.
fn all_current() -> Bench {
    let bench = three_machines();
    bench.edit(
        "check = [\"sh\", \"{release}/login.sh\"]",
        "check = [\"true\"]",
    );
    bench.grid(&["push", "--all"]).exits(0);
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    bench.grid(&["push", "borealis"]).exits(0);
    bench
}

fn holds_a_release(bench: &Bench, root: &str) -> bool {
    bench.path(&format!("{root}/current/.applied")).exists()
}

#[test]
fn a_named_machine_that_was_made_anew_is_sent_all_of_it_by_the_same_push() {
    let bench = all_current();
    std::fs::remove_dir_all(bench.path("machines/cygnus")).unwrap();
    bench.grid(&["push", "cygnus"]).exits(0);
    assert!(holds_a_release(&bench, "machines/cygnus/grid"));
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_provider_at_another_address_is_told_of_its_consumers_before_they_are_sent_there() {
    let bench = all_current();
    bench.edit(
        "root = \"machines/atlas/grid\"",
        "root = \"machines/anew/grid\"\naddress = \"10.0.0.77\"",
    );
    bench.grid(&["status", "--exit-code"]).exits(6);
    let pushed = bench.grid(&["push", "borealis"]).exits(0);
    assert!(holds_a_release(&bench, "machines/anew/grid"));
    let all = pushed.all();
    let provider = all.find("round 1  atlas").or(all.find("round 0  atlas"));
    let consumer = all.rfind("borealis  named    billing gets other settings of accounts");
    assert!(provider.is_some() && provider < consumer, "{all}");
    assert_eq!(
        bench.read("machines/borealis/grid/current/services/billing/bindings/accounts/host"),
        "10.0.0.77"
    );
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn the_same_machine_at_another_address_is_asked_and_keeps_what_it_holds() {
    let bench = all_current();
    bench.edit("[nodes.cygnus]", "[nodes.cygnus]\naddress = \"10.9.9.9\"");
    bench.grid(&["status", "--exit-code"]).exits(6);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_machine_below_another_root_is_uncertain_and_is_sent_all_of_it_there() {
    let bench = all_current();
    bench.edit(
        "root = \"machines/cygnus/grid\"",
        "root = \"machines/cygnus/elsewhere\"",
    );
    let status = bench.grid(&["status", "--exit-code", "cygnus"]).exits(6);
    insta::assert_snapshot!(status.all(), @r#"
    $ grid status --exit-code cygnus
    try  last push 2
    cygnus  uncertain    last reached at cygnus:[DIR]/mesh/machines/cygnus/grid
    1 machine: 1 uncertain
    ! next: `grid push --behind` sends to every machine that is behind
    [exit 6]
    "#);
    bench.grid(&["push", "--behind"]).exits(0);
    assert!(holds_a_release(&bench, "machines/cygnus/elsewhere"));
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn take_over_takes_the_named_machine_only_and_the_fence_is_remembered() {
    let bench = all_current();
    let other = bench.path("other-store");
    let other = ("GRID_STORE", other.to_str().unwrap());
    let taken = bench.grid_with(other, &["push", "atlas", "--take-over"]);
    let taken = taken.exits(8).all();
    assert!(taken.contains("atlas"), "{taken}");
    let token = |node: &str| bench.read(&format!("machines/{node}/grid/token"));
    let store = |node: &str| token(node).split('-').next().unwrap_or_default().to_owned();
    assert_ne!(store("atlas"), store("cygnus"), "{taken}");
    assert_eq!(store("borealis"), store("cygnus"));
    // The first store learns of it, and does not forget.
    bench.grid(&["push", "atlas"]).exits(8);
    bench.grid(&["status", "--exit-code"]).exits(6);
    bench.grid(&["push", "--behind"]).exits(8);
    bench.grid(&["push", "atlas", "--take-over"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_command_of_a_local_machine_inherits_no_variable_that_may_hold_a_secret() {
    let bench = all_current();
    bench.edit(
        "[services.notice]",
        "[services.notice]\napply = [\"sh\", \"-c\", \"env >$GRID_RELEASE/../../../../../env\"]",
    );
    let planted = ("DATABASE_PASSWORD", "hunter2-in-a-variable");
    bench.grid_with(planted, &["push", "cygnus"]).exits(0);
    let seen = bench.read("machines/cygnus/env");
    assert!(seen.contains("GRID_RELEASE="), "{seen}");
    assert!(!seen.contains("hunter2"), "{seen}");
}

#[test]
fn a_large_source_is_found_wherever_the_push_is_typed() {
    let bench = all_current();
    bench.file("notice.txt", &"x".repeat(70_000));
    let mesh = bench.path("");
    let arguments = ["--mesh", mesh.to_str().unwrap(), "push", "cygnus"];
    let mut command = bench.command(&arguments);
    let output = command.current_dir("/").output().unwrap();
    bench.seen(output, &arguments).exits(0);
}

#[test]
fn a_store_that_cannot_be_looked_at_is_not_taken_for_none() {
    let bench = all_current();
    let seen = bench.grid_with(("GRID_STORE", "/dev/null"), &["status"]);
    assert_ne!(seen.code(), 0, "{}", seen.all());
}

#[test]
fn a_service_that_provides_no_more_closes_its_accounts_first() {
    let bench = all_current();
    assert!(
        bench
            .read("machines/atlas/accounts")
            .contains("try.billing.1")
    );
    bench
        .grid(&["issue", "accounts/report", "--outside"])
        .exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    assert!(
        bench
            .read("machines/atlas/accounts")
            .contains("try.report.1")
    );
    let declaration = bench.read("mesh.toml");
    let (before, rest) = declaration
        .split_once("[services.accounts.provides]\n")
        .unwrap();
    let (_, after) = rest.split_once("[[services.accounts.files]]").unwrap();
    let without = format!("{before}[[services.accounts.files]]{after}");
    bench.file(
        "mesh.toml",
        &without.replace("consumes = [\"accounts\"]\n", ""),
    );
    bench.grid(&["push", "--behind"]).exits(0);
    let accounts = bench.read("machines/atlas/accounts");
    assert!(!accounts.contains("try."), "{accounts}");
    let current = "machines/atlas/grid/current";
    assert!(
        !bench
            .path(&format!("{current}/commands/accounts/load"))
            .exists()
    );
    assert!(
        bench
            .path(&format!("{current}/services/accounts/accounts.sh"))
            .exists()
    );
    bench.grid(&["status", "--exit-code"]).exits(0);
}
