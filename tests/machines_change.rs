//! Machines that are not what the store thinks: emptied, moved to another address, taken by another store.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod support;

use support::{Bench, three_machines, told};

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
fn a_provider_that_is_taken_away_while_it_is_used_is_said_to_stay_and_how_it_goes() {
    let bench = all_current();
    let unassigned = bench.grid(&["unassign", "accounts"]).exits(0);
    let pushed = bench.grid(&["push", "--behind"]).exits(4);
    let status = bench.grid(&["status"]).exits(0);
    let json = bench.grid(&["status", "atlas", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    assert_eq!(
        view["machines"][0]["keeps"],
        serde_json::json!({"accounts": ["billing"]})
    );
    assert!(
        bench
            .path("machines/atlas/grid/current/services/accounts")
            .exists()
    );
    // It is held where it was before, too.
    bench.grid(&["assign", "accounts", "cygnus"]).exits(0);
    let again = bench.grid(&["unassign", "accounts"]).exits(0);
    assert!(
        again.all().contains("accounts stays on atlas"),
        "{}",
        again.all()
    );
    let taken = bench.grid(&["unassign", "billing"]).exits(0);
    // Nothing is left to be said: the next push takes both away.
    let due = bench.grid(&["status"]).exits(0);
    assert!(!due.all().contains("stays on"), "{}", due.all());
    bench.grid(&["push", "--behind"]).exits(0);
    let emptied = bench.grid(&["status"]).exits(0);
    assert!(
        !bench
            .path("machines/atlas/grid/current/services/accounts")
            .exists()
    );
    insta::assert_snapshot!(told(&[unassigned, pushed, status, taken, emptied]), @"
    $ grid unassign accounts
    took accounts from atlas
    ! next: accounts stays on atlas while billing uses it there: `grid assign accounts NODE` gives accounts another machine; or `grid unassign billing` too, or take accounts out of `consumes`, and accounts goes after that
    $ grid push --behind
    try  push 3  maria@lap3
    incomplete: 0 machines sent, 0 failed, 2 already current, 1 waits
    waits       borealis  billing waits for accounts, which is on no machine
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: `grid assign accounts NODE` puts accounts on a machine, `grid push --behind` then goes on
    [exit 4]
    $ grid status
    try  last push 3
    atlas     current      keeps accounts, which billing uses
    borealis  waits        billing waits for accounts, which is on no machine
    cygnus    current
    3 machines: 2 current, 1 waits
    ! next: accounts stays on atlas while billing uses it there: `grid assign accounts NODE` gives accounts another machine; or `grid unassign billing` too, or take accounts out of `consumes`, and accounts goes after that
    $ grid unassign billing
    took billing from borealis
    behind now: borealis
    ! next: the next push carries it: `grid push --behind`
    $ grid status
    try  last push 4
    atlas     current
    borealis  current
    cygnus    current
    3 machines: 3 current
    ");
}

#[test]
fn a_named_machine_that_was_made_anew_is_sent_all_of_it_by_the_same_push() {
    let bench = all_current();
    std::fs::remove_dir_all(bench.path("machines/cygnus")).unwrap();
    let pushed = bench.grid(&["push", "cygnus"]).exits(0).all();
    assert!(
        pushed.contains("named    emptied: all of it again"),
        "{pushed}"
    );
    assert!(!pushed.contains("never sent"), "{pushed}");
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
    insta::assert_snapshot!(status.all(), @"
    $ grid status --exit-code cygnus
    try  last push 2
    cygnus  uncertain    last reached at cygnus:[DIR]/mesh/machines/cygnus/grid
    1 machine: 1 uncertain
    ! next: cygnus is declared elsewhere than it was last reached: if that is right, the next push asks there, and goes on; if it is wrong, put its `address` or `root` right; if the machine at cygnus:[DIR]/mesh/machines/cygnus/grid is gone, `grid forget cygnus` takes it as gone
    ! next: `grid push --behind` sends to every machine that is behind
    [exit 6]
    ");
    let pushed = bench.grid(&["push", "--behind"]).exits(0);
    assert!(holds_a_release(&bench, "machines/cygnus/elsewhere"));
    // What lies at the other place is named until somebody says that it is gone.
    let status = bench.grid(&["status", "--exit-code", "cygnus"]).exits(0);
    let forgotten = bench
        .grid(&["forget", "cygnus", "--left-behind", "--yes"])
        .exits(0);
    let again = bench
        .grid(&["forget", "cygnus", "--left-behind", "--yes"])
        .exits(2);
    insta::assert_snapshot!(told(&[pushed, status, forgotten, again]), @"
    $ grid push --behind
    try  push 3  maria@lap3
    settled  cygnus    it was asked where it is declared now: it holds nothing there
    round 0  cygnus    flushed  nothing was delivered yet where it is declared now  sent [TIME] s
    done: 1 machine sent, 0 failed, 2 already current
    moved       cygnus  what it was sent before still lies at cygnus:[DIR]/mesh/machines/cygnus/grid, secrets too
    ! next: remove what lies at cygnus:[DIR]/mesh/machines/cygnus/grid, then `grid forget cygnus --left-behind` has nobody name it any more
    $ grid status --exit-code cygnus
    try  last push 3
    cygnus  current      what it was sent before still lies at cygnus:[DIR]/mesh/machines/cygnus/grid, secrets too
    1 machine: 1 current
    ! next: remove what lies at cygnus:[DIR]/mesh/machines/cygnus/grid, then `grid forget cygnus --left-behind` has nobody name it any more
    $ grid forget cygnus --left-behind --yes
    forgot what cygnus left behind: it is taken as gone
    $ grid forget cygnus --left-behind --yes
    ! error: cygnus left nothing behind that grid knows of
    [exit 2]
    ");
    bench.grid(&["push", "cygnus"]).exits(0);
}

#[test]
fn a_root_that_was_mistyped_and_put_right_needs_nothing_to_be_taken_over() {
    let bench = all_current();
    let there = "root = \"machines/borealis/grid\"";
    bench.edit(there, "root = \"/proc/grid\"");
    let refused = bench.grid(&["push", "--behind"]).exits(4);
    let status = bench.grid(&["status", "--exit-code", "borealis"]).exits(6);
    // Its account is rotated meanwhile, and the secret that it has where it lies stays admitted.
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    bench.grid(&["push", "atlas"]).exits(4);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 2);
    bench.edit("root = \"/proc/grid\"", there);
    let pushed = bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 1);
    insta::assert_snapshot!(told(&[refused, status, pushed]), @r#"
    $ grid push --behind
    try  push 3  maria@lap3
    settled  borealis  it was asked where it is declared now: it holds nothing there
    round 0  borealis  flushed  nothing was delivered yet where it is declared now  failed at starting the machine side: /proc/grid cannot be used: mkdir: cannot create directory ‘/proc/grid’: No such file or directory
             nothing was changed there
    incomplete: 0 machines sent, 1 failed, 2 already current, 1 moved
    failed      borealis  failed at starting the machine side: /proc/grid cannot be used: mkdir: cannot create directory ‘/proc/grid’: No such file or directory
    moved       borealis  it may still hold what it was sent at borealis:[DIR]/mesh/machines/borealis/grid, where it was last reached
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: borealis: `root` of the machine, in the declaration, names that folder; its login must be able to write there, or be made root by `become = "sudo"`
    ! next: borealis is declared elsewhere than it was last reached: if that is right, the next push asks there, and goes on; if it is wrong, put its `address` or `root` right; if the machine at borealis:[DIR]/mesh/machines/borealis/grid is gone, `grid forget borealis` takes it as gone
    ! next: mend what is wrong on borealis, then `grid push --behind` finishes this
    [exit 4]
    $ grid status --exit-code borealis
    try  last push 3
    borealis  uncertain    nothing was delivered yet where it is declared now; push 3: failed at starting the machine side: /proc/grid cannot be used: mkdir: cannot create directory ‘/proc/grid’: No such file or directory; last reached at borealis:[DIR]/mesh/machines/borealis/grid
    1 machine: 1 uncertain
    ! next: borealis: `root` of the machine, in the declaration, names that folder; its login must be able to write there, or be made root by `become = "sudo"`
    ! next: borealis is declared elsewhere than it was last reached: if that is right, the next push asks there, and goes on; if it is wrong, put its `address` or `root` right; if the machine at borealis:[DIR]/mesh/machines/borealis/grid is gone, `grid forget borealis` takes it as gone
    ! next: `grid push --behind` sends to every machine that is behind
    [exit 6]
    $ grid push --behind
    try  push 5  maria@lap3
    settled  borealis  it was uncertain, and has told what it holds
    round 0  borealis  flushed  billing gets generation 2 of accounts  sent [TIME] s, check ok
    round 1  atlas     flushed  grants of accounts: -billing (generation 1)  sent [TIME] s, loaded accounts
    done: 2 machines sent, 0 failed, 1 already current
    "#);
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
