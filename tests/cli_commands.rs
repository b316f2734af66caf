//! What an operator sees of every other command.

mod support;

use support::{
    Bench, a_push_that_applies, all_current, go_on, kill_a_push_of_cygnus, three_machines, told,
};

#[test]
fn try_shows_the_main_job_and_leaves_the_mesh_to_play_with() {
    let bench = Bench::bare();
    let tried = bench.grid(&["try"]).exits(0);
    let folder = tried
        .stdout()
        .lines()
        .find_map(|line| line.trim().strip_prefix("export GRID_MESH="))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .unwrap();
    assert!(folder.starts_with("[DIR]/tmp/grid-try-"), "{folder}");
    let status = bench.grid(&["try", "again"]).exits(0);
    assert!(status.stdout().contains("flushed"));
    bench.grid(&["try", "again"]).exits(2);
}

#[test]
fn a_new_mesh_begins_with_files_that_are_never_overwritten() {
    let bench = Bench::bare();
    let first = bench.grid(&["init", "--name", "prod"]).exits(0);
    let identity = std::fs::metadata(bench.path("../config/grid/identity.txt")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&identity.permissions());
    assert_eq!(mode & 0o777, 0o600);
    bench.file("mesh.toml", "[mesh]\nname = \"mine\"\n");
    let second = bench.grid(&["init", "--name", "prod"]).exits(0);
    let check = bench.grid(&["check"]).exits(0);
    assert_eq!(bench.read("mesh.toml"), "[mesh]\nname = \"mine\"\n");
    insta::assert_snapshot!(first.all() + &second.all() + &check.all(), @r#"
    $ grid init --name prod
    wrote  mesh.toml
    wrote  .gitignore
    wrote  schemas/mesh.schema.json
    wrote  [DIR]/config/grid/identity.txt, your identity: what is stored from now on is sealed for it, so back it up
    ! next: write your machines into mesh.toml, then `grid check` says whether all is right
    ! next: `grid push --all` sends to all of them
    $ grid init --name prod
    kept   mesh.toml, which was there
    kept   .gitignore, which was there
    kept   schemas/mesh.schema.json, which was there
    kept   your identity, [KEY]
    ! next: write your machines into mesh.toml, then `grid check` says whether all is right
    ! next: `grid push --all` sends to all of them
    $ grid check
    mine: 0 machines and 0 services in 1 file, nothing wrong
    ! next: this mesh has no machine yet: write [nodes.NAME] into mesh.toml
    "#);
}

#[test]
fn all_errors_of_a_declaration_are_shown_at_once() {
    let bench = Bench::new(
        "[mesh]\nname = \"prod\"\n\n[nodes.atlas]\nadress = \"10.0.0.1\"\n\n[services.billing]\nnode = \"atals\"\nconsumes = [\"broker\"]\n",
    );
    let check = bench.grid(&["check"]).exits(3);
    let push = bench.grid(&["push", "--all"]).exits(3);
    assert_eq!(check.stderr(), push.stderr());
    assert!(!bench.path(".grid").exists());
    let json = bench.grid(&["check", "--json"]).exits(3);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    assert_eq!(view["result"], "wrong");
    insta::assert_snapshot!(check.all(), @r#"
    $ grid check
    ! error: mesh.toml:5:1: there is no key `adress` here
    !   5 | adress = "10.0.0.1"
    !     | ^^^^^^
    !     = did you mean `address`?
    ! 
    ! mesh.toml:8:8: there is no machine atals
    !   8 | node = "atals"
    !     |        ^^^^^^^
    !     = did you mean "atlas"? If atals is gone, take it out of `node` of billing
    ! 
    ! mesh.toml:9:13: there is no service broker
    !   9 | consumes = ["broker"]
    !     |             ^^^^^^^^
    !     = declare it as `[services.broker]`, or take it out of billing's `consumes`
    [exit 3]
    "#);
}

#[test]
fn a_declaration_for_another_version_of_grid_is_exit_3() {
    let bench = Bench::new("[mesh]\nname = \"prod\"\ngrid = \">=99\"\n");
    insta::assert_snapshot!(bench.grid(&["status"]).exits(3).all(), @r#"
    $ grid status
    ! error: mesh.toml:3:8: this declaration asks for grid >=99, and this is grid 0.1.0
    !   3 | grid = ">=99"
    !     |        ^^^^^^
    !     = install a version that it asks for, or change `grid` if this one may push it
    [exit 3]
    "#);
}

#[test]
fn what_nobody_could_have_meant_is_exit_2_with_a_suggestion() {
    let bench = three_machines();
    let mut all = String::new();
    for arguments in [
        &["push"][..],
        &["push", "borealsi"],
        &["push", "@eu"],
        &["push", "borealis", "--behind"],
        &["pusk"],
        &["status", "atals"],
        &["assign", "biling", "borealis"],
        &["assign", "billing", "boralis"],
        &["issue", "acounts/billing"],
        &["issue", "accounts/bill"],
        &["issue", "billing"],
        &["revoke", "accounts/billing"],
        &["rotate", "'*/x*'"],
        &["hold", "atlas", "x", "--until", "2001-01-01"],
        &["forget", "atlas", "--yes"],
        &["compose", "atlsa"],
        &["history", "7"],
    ] {
        all.push_str(&bench.grid(arguments).exits(2).all());
    }
    insta::assert_snapshot!(all, @r#"
    $ grid push
    ! error: say what to push: `grid push NODE…` names machines (or @TAG), `grid push --behind` takes those that are behind, `grid push --all` names all that are not on hold
    [exit 2]
    $ grid push borealsi
    ! error: there is no machine borealsi in this mesh; did you mean borealis?
    [exit 2]
    $ grid push @eu
    ! error: no machine carries the tag @eu
    ! next: `tags = ["eu"]` gives a machine that tag
    [exit 2]
    $ grid push borealis --behind
    ! error: the argument '[NODE]...' cannot be used with '--behind'
    ! 
    ! Usage: grid push [OPTIONS] <NODE>...
    !        grid push [OPTIONS] --behind
    !        grid push [OPTIONS] --all
    ! next: `grid push --help` says what it takes
    [exit 2]
    $ grid pusk
    ! error: unrecognized subcommand 'pusk'
    ! 
    !   tip: a similar subcommand exists: 'push'
    ! 
    ! Usage: grid [OPTIONS] <COMMAND>
    ! next: `grid --help` says what it takes
    [exit 2]
    $ grid status atals
    ! error: there is no machine atals in this mesh; did you mean atlas?
    [exit 2]
    $ grid assign biling borealis
    ! error: there is no service biling in this mesh; did you mean billing?
    [exit 2]
    $ grid assign billing boralis
    ! error: there is no machine boralis in this mesh; did you mean borealis?
    [exit 2]
    $ grid issue acounts/billing
    ! error: there is no provider acounts in this mesh; did you mean accounts?
    [exit 2]
    $ grid issue accounts/bill
    ! error: there is no service bill in this mesh
    ! next: `grid issue accounts/bill --outside` issues an account for a consumer outside the mesh
    [exit 2]
    $ grid issue billing
    ! error: "billing" names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'
    ! next: `'*/billing'` names all accounts of billing: accounts/billing
    [exit 2]
    $ grid revoke accounts/billing
    ! error: accounts/billing has no account yet
    ! next: `grid issue accounts/billing` gives it one, or the next push does
    [exit 2]
    $ grid rotate '*/x*'
    ! error: "'*/x*'" matches no account
    ! next: `grid provisions` lists those that there are
    [exit 2]
    $ grid hold atlas x --until 2001-01-01
    ! error: a hold until 2001-01-01 would have ended already
    [exit 2]
    $ grid forget atlas --yes
    ! error: nothing was ever sent to atlas: there is nothing to forget
    [exit 2]
    $ grid compose atlsa
    ! error: there is no machine atlsa in this mesh; did you mean atlas?
    [exit 2]
    $ grid history 7
    ! error: the journal has no push 7; there was none yet
    [exit 2]
    "#);
}

#[test]
fn whoever_names_a_provider_for_an_account_is_told_the_pattern_that_names_all_on_it() {
    let bench = three_machines();
    bench
        .grid(&["issue", "accounts/billing", "accounts/report", "--outside"])
        .exits(0);
    let mut all = String::new();
    for arguments in [
        &["rotate", "accounts"][..],
        &["revoke", "accounts"],
        &["issue", "accounts"],
        &["provisions", "accounts"],
        &["rotate", "report", "--cut"],
        &["rotate", "notice"],
    ] {
        all.push_str(&bench.grid(arguments).exits(2).all());
    }
    bench.grid(&["rotate", "accounts/*"]).exits(0);
    insta::assert_snapshot!(all, @r#"
    $ grid rotate accounts
    ! error: "accounts" names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'
    ! next: `'accounts/*'` names all accounts on accounts: accounts/billing, accounts/report
    [exit 2]
    $ grid revoke accounts
    ! error: "accounts" names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'
    ! next: `'accounts/*'` names all accounts on accounts: accounts/billing, accounts/report
    [exit 2]
    $ grid issue accounts
    ! error: "accounts" names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'
    ! next: `'accounts/*'` names all accounts on accounts: accounts/billing, accounts/report
    [exit 2]
    $ grid provisions accounts
    ! error: "accounts" names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'
    ! next: `'accounts/*'` names all accounts on accounts: accounts/billing, accounts/report
    [exit 2]
    $ grid rotate report --cut
    ! error: "report" names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'
    ! next: `'*/report'` names all accounts of report: accounts/report
    [exit 2]
    $ grid rotate notice
    ! error: "notice" names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'
    [exit 2]
    "#);
}

#[test]
fn whoever_means_another_command_is_told_which() {
    let bench = three_machines();
    bench.edit(
        "[services.notice]\nnode = \"cygnus\"",
        "[services.notice]\nnodes = [\"atlas\", \"cygnus\"]",
    );
    bench.grid(&["push", "cygnus"]).exits(0);
    let mut all = String::new();
    for arguments in [
        &["push", "accounts/billing"][..],
        &["unassign", "notice", "cygnus"],
        &["unassign", "notice", "atlas", "cygnus"],
        &["unassign", "nope"],
        &["assign", "nope", "atlas"],
        &["issue", "accounts/notice"],
        &["issue", "nope/billing"],
        &["rotate", "nope/billing"],
        &["forget", "h9"],
        &["forget", "cygnus/notice"],
        &["forget", "cygnus", "notice"],
    ] {
        all.push_str(&bench.grid(arguments).exits(2).all());
    }
    insta::assert_snapshot!(all, @r#"
    $ grid push accounts/billing
    ! error: there is no machine accounts/billing in this mesh
    ! next: a machine's name has no "/": PROVIDER/CONSUMER names an account, and `grid provisions` lists those
    [exit 2]
    $ grid unassign notice cygnus
    ! error: `grid unassign` takes a service from all of its machines, and from no fewer
    ! next: `grid assign notice atlas` leaves it there, and takes it from all others
    [exit 2]
    $ grid unassign notice atlas cygnus
    ! error: `grid unassign` takes a service from all of its machines, and from no fewer
    ! next: `grid unassign notice` takes it from wherever it is
    [exit 2]
    $ grid unassign nope
    ! error: there is no service nope in this mesh
    ! next: the services of this mesh: accounts, billing, notice; `[services.nope]` in mesh.toml declares another
    [exit 2]
    $ grid assign nope atlas
    ! error: there is no service nope in this mesh
    ! next: the services of this mesh: accounts, billing, notice; `[services.nope]` in mesh.toml declares another
    [exit 2]
    $ grid issue accounts/notice
    ! error: notice does not consume accounts, so no account on it would be delivered to notice
    ! next: add accounts to `consumes` of notice, and the next push gives it one; `grid issue accounts/notice --outside` issues one that is handed over by hand
    [exit 2]
    $ grid issue nope/billing
    ! error: there is no provider nope in this mesh
    ! next: the providers of this mesh: accounts
    [exit 2]
    $ grid rotate nope/billing
    ! error: there is no provider nope in this mesh
    ! next: the providers of this mesh: accounts
    [exit 2]
    $ grid forget h9
    ! error: the store knows no machine h9
    ! next: the store knows atlas, borealis, cygnus
    [exit 2]
    $ grid forget cygnus/notice
    ! error: `grid forget` takes one machine, or one @TAG
    ! next: `grid forget cygnus --service notice` is for a service on cygnus; of several machines, each in a command of its own
    [exit 2]
    $ grid forget cygnus notice
    ! error: `grid forget` takes one machine, or one @TAG
    ! next: `grid forget cygnus --service notice` is for a service on cygnus; of several machines, each in a command of its own
    [exit 2]
    "#);
    let by_hand = ["issue", "accounts/notice", "--outside"];
    bench.grid(&by_hand).exits(0);
    // Who had one may be given it again.
    bench.grid(&["issue", "accounts/notice"]).exits(0);
}

#[test]
fn an_assignment_says_from_where_the_service_is_taken() {
    let bench = three_machines();
    let seen = [
        bench
            .grid(&["assign", "notice", "atlas", "borealis"])
            .exits(0),
        bench
            .grid(&["assign", "notice", "atlas", "borealis"])
            .exits(0),
        bench.grid(&["assign", "notice", "borealis"]).exits(0),
        bench
            .grid(&["assign", "notice", "borealis", "cygnus"])
            .exits(0),
    ];
    insta::assert_snapshot!(told(&seen), @"
    $ grid assign notice atlas borealis
    assigned notice to atlas, borealis; taken from cygnus
    behind now: atlas, borealis, cygnus
    ! next: the next push carries it: `grid push --behind`
    $ grid assign notice atlas borealis
    notice is on atlas, borealis already
    nothing was changed; behind as before: atlas, borealis, cygnus
    ! next: `grid push --behind` sends to every machine that is behind
    $ grid assign notice borealis
    assigned notice to borealis; taken from atlas
    behind now: atlas, borealis, cygnus
    ! next: the next push carries it: `grid push --behind`
    $ grid assign notice borealis cygnus
    assigned notice to borealis, cygnus
    behind now: atlas, borealis, cygnus
    ! next: the next push carries it: `grid push --behind`
    ");
    let json = bench
        .grid(&["assign", "notice", "borealis", "--json"])
        .exits(0);
    let again = bench
        .grid(&["assign", "notice", "borealis", "--json"])
        .exits(0);
    let json = [json, again].map(|seen| serde_json::from_slice(seen.raw()).unwrap());
    support::schema::hold("change", &json);
    assert_eq!(json[0]["changed"][0]["taken_from"][0], "cygnus");
    assert_eq!(json[1]["changed"][0]["what"], "already-assigned");
}

#[test]
fn accounts_are_issued_rotated_and_revoked_and_the_next_push_carries_it() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    let mut all = bench.grid(&["issue", "accounts/billing"]).exits(0).all();
    all.push_str(
        &bench
            .grid(&["issue", "accounts/report", "--outside"])
            .exits(0)
            .all(),
    );
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    bench.grid(&["push", "borealis"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 2);
    for arguments in [
        &["provisions"][..],
        &["rotate", "accounts/*"],
        &["push", "--behind"],
        &["rotate", "accounts/billing", "--cut"],
        &["push", "--behind"],
        &["revoke", "*/billing"],
        &["provisions"],
        &["push", "--behind"],
        &["issue", "accounts/billing"],
        &["push", "--behind"],
    ] {
        let seen = bench.grid(arguments);
        all.push_str(&seen.all());
    }
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 2);
    insta::assert_snapshot!(all, @"
    $ grid issue accounts/billing
    minted accounts/billing, generation 1
    $ grid issue accounts/report --outside
    minted accounts/report, generation 1
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    $ grid provisions
    accounts/billing  generation 1  live  admitted on atlas  used on borealis
    accounts/report   generation 1  live  admitted on atlas  not used, by hand
    $ grid rotate accounts/*
    minted accounts/billing, generation 2; the older one goes once nobody uses it
    minted accounts/report, generation 2; no machine uses it, so the next push closes the older one: hand over the new secret before (`grid provisions accounts/report --show-secrets`)
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    $ grid push --behind
    try  push 3  maria@lap3
    round 0  atlas     flushed  grants of accounts: +billing (generation 2) +report (generation 2) -report (generation 1)  sent [TIME] s, loaded accounts
    round 1  borealis  flushed  billing gets generation 2 of accounts  sent [TIME] s, check ok
    round 2  atlas     flushed  grants of accounts: -billing (generation 1)  sent [TIME] s, loaded accounts
    done: 2 machines sent, 0 failed, 1 already current
    $ grid rotate accounts/billing --cut
    minted accounts/billing, generation 3; the next push closes the older ones at once
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    $ grid push --behind
    try  push 4  maria@lap3
    round 0  atlas     flushed  grants of accounts: +billing (generation 3) -billing (generation 2)  sent [TIME] s, loaded accounts
    round 1  borealis  flushed  billing gets generation 3 of accounts  sent [TIME] s, check ok
    done: 2 machines sent, 0 failed, 1 already current
    $ grid revoke */billing
    revoked accounts/billing: the next push closes the account and does not start billing again until `grid issue accounts/billing` gives it a new one
    behind now: atlas, borealis
    ! next: the next push carries it: `grid push --behind`
    $ grid provisions
    accounts/billing  generation 3  revoked  admitted on atlas  used on borealis
    accounts/report   generation 2  live     admitted on atlas  not used, by hand
    $ grid push --behind
    try  push 5  maria@lap3
    round 0  atlas     flushed  grants of accounts: -billing (generation 3)  sent [TIME] s, loaded accounts
    round 0  borealis  flushed  billing leaves; billing is revoked           sent [TIME] s, removed billing
    done: 2 machines sent, 0 failed, 1 already current
    revoked     borealis  billing revoked, so not started
    ! next: `grid issue accounts/billing` gives billing an account again
    $ grid issue accounts/billing
    minted accounts/billing, generation 4
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    $ grid push --behind
    try  push 6  maria@lap3
    round 0  atlas     flushed  grants of accounts: +billing (generation 4)  sent [TIME] s, loaded accounts
    round 1  borealis  flushed  billing comes, 8 files                sent [TIME] s, check ok
    done: 2 machines sent, 0 failed, 1 already current
    ");
}

#[test]
fn an_account_that_the_declaration_asks_for_is_not_kept_by_hand() {
    let bench = all_current();
    bench.grid(&["revoke", "accounts/billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["issue", "accounts/billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    let already = bench.grid(&["issue", "accounts/billing"]).exits(0);
    let provisions = bench.grid(&["provisions"]).exits(0);
    bench.grid(&["unassign", "billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts"), "");
    let outside = ["issue", "accounts/report", "--outside"];
    bench.grid(&outside).exits(0);
    let by_hand = bench.grid(&outside).exits(0);
    insta::assert_snapshot!(told(&[already, provisions, by_hand]), @r#"
    $ grid issue accounts/billing
    accounts/billing has an account already, generation 2; `grid rotate accounts/billing` mints another
    $ grid provisions
    accounts/billing  generation 2  live  admitted on atlas  used on borealis
    $ grid issue accounts/report --outside
    accounts/report has an account, generation 1; it is kept from now on, also while no service of the mesh consumes it, until `grid revoke accounts/report`
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    "#);
}

#[test]
fn a_service_leaves_and_a_machine_is_forgotten() {
    let bench = all_current();
    let mut all = bench.grid(&["unassign", "billing"]).exits(0).all();
    all.push_str(&bench.grid(&["push", "--behind"]).exits(0).all());
    assert_eq!(bench.read("machines/atlas/accounts"), "");
    bench.edit("[nodes.cygnus]\nroot = \"machines/cygnus/grid\"\n", "");
    bench.edit(
        "[services.notice]\nnode = \"cygnus\"\n",
        "[services.notice]\n",
    );
    for arguments in [
        &["status"][..],
        &["push", "--behind"],
        &["forget", "cygnus"],
        &["forget", "cygnus", "--service", "notize", "--yes"],
        &["forget", "cygnus", "--service", "notice", "--yes"],
        &["forget", "cygnus", "--yes"],
        &["status"],
        &["history"],
    ] {
        all.push_str(&bench.grid(arguments).all());
    }
    insta::assert_snapshot!(all, @"
    $ grid unassign billing
    took billing from borealis
    behind now: borealis
    ! next: the next push carries it: `grid push --behind`
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  borealis  flushed  billing leaves                        sent [TIME] s, removed billing
    round 1  atlas     flushed  grants of accounts: -billing          sent [TIME] s, loaded accounts
    done: 2 machines sent, 0 failed, 1 already current
    $ grid status
    try  last push 2
    atlas     current
    borealis  current
    cygnus    undeclared   holds notice; last reached at cygnus
    3 machines: 2 current, 1 undeclared
    ! next: cygnus holds notice: if it lives, declare cygnus again, give notice another `node` or none, and push: that closes the accounts there and takes all of it away; once cygnus is gone, `grid forget cygnus` has it named no more
    $ grid push --behind
    try  push 3  maria@lap3
    done: 0 machines sent, 0 failed, 2 already current, 1 undeclared
    undeclared  cygnus  it left the declaration, was last reached at cygnus, and holds notice
    ! next: cygnus holds notice: if it lives, declare cygnus again, give notice another `node` or none, and push: that closes the accounts there and takes all of it away; once cygnus is gone, `grid forget cygnus` has it named no more
    $ grid forget cygnus
    ! error: this cannot be taken back, and nobody can be asked here: say --yes
    ! next: to forget is for what is gone: a machine that lives is fenced then (exit 8). One that is to be emptied loses its services (`grid unassign`) and is pushed first
    [exit 2]
    $ grid forget cygnus --service notize --yes
    ! error: cygnus holds no service notize; did you mean notice?
    [exit 2]
    $ grid forget cygnus --service notice --yes
    forgot notice on cygnus: it is taken as gone from there
    $ grid forget cygnus --yes
    forgot cygnus: what it held is taken as gone
    $ grid status
    try  last push 3
    atlas     current
    borealis  current
    2 machines: 2 current
    $ grid history
    [WHEN]  ok  push 1  maria@lap3  grid push --all
    [WHEN]  ok          maria@lap3  grid unassign billing
    [WHEN]  ok  push 2  maria@lap3  grid push --behind
    [WHEN]  ok  push 3  maria@lap3  grid push --behind
    [WHEN]  ok          maria@lap3  grid forget cygnus --service notice --yes
    [WHEN]  ok          maria@lap3  grid forget cygnus --yes
    ");
}

#[test]
fn a_composed_machine_is_shown_by_hash_and_written_without_its_secrets() {
    let bench = all_current();
    bench
        .grid(&["compose", "borealis", "--out", "plain"])
        .exits(0);
    let password = "services/billing/bindings/accounts/password";
    assert_eq!(bench.read(&format!("plain/{password}")), "[redacted]\n");
    assert_eq!(
        bench.read("plain/services/billing/bindings/accounts/host"),
        "atlas"
    );
    bench
        .grid(&["compose", "borealis", "--out", "open", "--show-secrets"])
        .exits(0);
    assert_eq!(bench.read(&format!("open/{password}")).len(), 43);
    bench
        .grid(&["compose", "borealis", "--out", "open"])
        .exits(2);
    let history = bench.grid(&["history", "--last", "1"]).exits(0);
    assert!(
        history.stdout().contains("--show-secrets"),
        "{}",
        history.all()
    );
    let manifest: serde_json::Value =
        serde_json::from_slice(bench.grid(&["compose", "borealis"]).exits(0).raw()).unwrap();
    assert_eq!(manifest["node"], "borealis");
}

#[test]
fn a_held_lock_is_exit_7_and_names_its_holder() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    let mut push = a_push_that_applies(&bench);
    let refused = bench.grid(&["assign", "billing", "borealis"]).exits(7);
    let unlock = bench.grid(&["unlock"]).exits(7);
    // Reading waits for no push, and tells that one runs.
    let status = bench.grid(&["status", "atlas", "cygnus"]).exits(0);
    let history = bench.grid(&["history", "--last", "1"]).exits(0);
    let json = bench.grid(&["status", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    assert_eq!(view["running"]["pid"], push.id());
    assert_eq!(view["machines"][2]["sending"], true, "{view:#}");
    go_on(&bench);
    let waited = bench.grid(&["push", "--behind", "--wait=60s"]).exits(0);
    assert!(push.wait().unwrap().success());
    let free = bench.grid(&["unlock"]).exits(0);
    assert!(waited.stdout().contains("done"));
    let after = bench.grid(&["status", "atlas"]).exits(0);
    assert!(!after.stdout().contains("runs"), "{}", after.all());
    let seen = [refused, unlock, status, history, free].map(|seen| seen.all());
    insta::assert_snapshot!(seen.concat(), @"
    $ grid assign billing borealis
    ! error: maria@lap3 (push, process [PID], since [WHEN]) holds the lock of this mesh
    ! next: try again once that is done. If that process is gone for good, `grid unlock` takes the lock away
    [exit 7]
    $ grid unlock
    ! error: maria@lap3 (push, process [PID], since [WHEN]) holds the lock, and its process is running on this host
    ! next: wait for it, or end it: `kill [PID]`, which finishes the sends under way
    [exit 7]
    $ grid status atlas cygnus
    try  last push 2
    a push runs: maria@lap3, process [PID], since [WHEN]
    atlas   current
    cygnus  being sent   command of notice changed: apply
    2 machines: 1 current, 1 being sent
    ! next: a push runs: see what is left once it is done, or `grid push --behind --wait` waits for it and then sends that
    $ grid history --last 1
    [WHEN]  runs  push 2  maria@lap3  grid push cygnus
    $ grid unlock
    nobody held the lock
    ");
}

/// Development builds alone can be stopped there.
#[cfg(debug_assertions)]
#[test]
fn a_push_that_has_only_just_taken_the_lock_is_not_said_to_send_what_a_killed_one_left() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    kill_a_push_of_cygnus(&bench);
    let stopped = bench.path("stopped");
    let mut push = bench
        .command(&["push", "--behind"])
        .env("GRID_STOP_AFTER", "1")
        .env("GRID_STOP_FILE", &stopped)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !stopped.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(push.try_wait().unwrap().is_none(), "the push ended early");
    }
    let status = bench.grid(&["status", "cygnus"]);
    let json = bench.grid(&["status", "--json"]);
    push.kill().unwrap();
    push.wait().unwrap();
    let view: serde_json::Value = serde_json::from_slice(json.exits(0).raw()).unwrap();
    assert_eq!(view["running"]["pid"], push.id());
    assert_ne!(view["machines"][2]["sending"], true, "{view:#}");
    insta::assert_snapshot!(status.exits(0).all(), @"
    $ grid status cygnus
    try  last push 2
    a push runs: maria@lap3, process [PID], since [WHEN]
    cygnus  uncertain    command of notice changed: apply
    1 machine: 1 uncertain
    ! next: a push runs: see what is left once it is done, or `grid push --behind --wait` waits for it and then sends that
    ");
}

#[test]
fn a_push_that_is_killed_stands_in_the_journal_as_killed_or_lost() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    kill_a_push_of_cygnus(&bench);
    let mut all = bench.grid(&["history"]).exits(0).all();
    all.push_str(&bench.grid(&["history", "2"]).exits(0).all());
    bench.grid(&["push", "--behind"]).exits(0);
    all.push_str(&bench.grid(&["history", "--last", "2"]).exits(0).all());
    let json = bench.grid(&["history", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    let entries = view["entries"].as_array().unwrap().iter();
    let fates: Vec<_> = entries.map(|entry| entry["unended"].as_str()).collect();
    assert_eq!(fates, [None, Some("killed-or-lost"), None]);
    insta::assert_snapshot!(all, @"
    $ grid history
    [WHEN]  ok              push 1  maria@lap3  grid push --all
    [WHEN]  killed or lost  push 2  maria@lap3  grid push cygnus
    $ grid history 2
    [WHEN]  killed or lost  push 2  maria@lap3  grid push cygnus
          identity [KEY]
    ! next: what it sent is uncertain: `grid status` says where, and `grid push --behind` asks those machines first and goes on
    $ grid history --last 2
    [WHEN]  killed or lost  push 2  maria@lap3  grid push cygnus
    [WHEN]  ok              push 3  maria@lap3  grid push --behind
    ");
}

#[test]
fn a_store_that_is_damaged_or_sealed_for_somebody_else_is_exit_8() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    let other = Bench::new("[mesh]\nname = \"other\"\n");
    let identity = other.path("../config/grid/identity.txt");
    let sealed = bench
        .grid_with(("GRID_IDENTITY", identity.to_str().unwrap()), &["status"])
        .exits(8);
    std::fs::write(bench.path(".grid/witness"), "nonsense").unwrap();
    std::fs::remove_dir_all(bench.path(".grid/db")).unwrap();
    let damaged = bench.grid(&["status"]).exits(8);
    assert!(damaged.stderr().contains("damaged"), "{}", damaged.all());
    insta::assert_snapshot!(sealed.all(), @r#"
    $ grid status
    ! error: the store at ./.grid is sealed for somebody else (maria@lap3 [KEY]), and your identity is [KEY]
    ! next: if one of these keys was yours: put the backup of that identity back in its place, or name it with $GRID_IDENTITY
    ! next: if they are others': `recipients` in mesh.toml has to name your key too, and then one of them to push
    ! next: if nobody has such a key any more: move ./.grid away, then `grid push --all --take-over` makes all accounts anew
    [exit 8]
    "#);
}

#[test]
fn init_makes_the_identity_where_it_is_looked_for() {
    let bench = Bench::bare();
    let named = bench.path("keys/mine.txt");
    let variable = ("GRID_IDENTITY", named.to_str().unwrap());
    bench.grid_with(variable, &["init", "."]).exits(0);
    let mode = std::fs::metadata(&named).unwrap().permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
    let again = bench.grid_with(variable, &["init", "."]).exits(0).all();
    assert!(again.contains("kept   your identity"), "{again}");
}

#[test]
fn a_missing_identity_is_named_with_what_makes_one() {
    let bench = Bench::bare();
    bench.file("mesh.toml", "[mesh]\nname = \"prod\"\n");
    insta::assert_snapshot!(bench.grid(&["push", "--all"]).exits(1).all(), @r#"
    $ grid push --all
    ! error: there is no identity at [DIR]/config/grid/identity.txt
    ! next: `grid init` makes one, or name yours with $GRID_IDENTITY
    [exit 1]
    "#);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = three_machines();
    let mut command = bench.command(&["completions", "bash"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn what_was_never_sent_is_called_so_whatever_else_it_lacks() {
    let bench = support::with_billing();
    let seen = bench.grid(&["status"]).exits(0);
    insta::assert_snapshot!(seen.all(), @"
    $ grid status
    try  never pushed
    atlas     never sent
    borealis  never sent   to be minted: accounts/billing; billing waits for accounts on atlas: atlas has not acknowledged it yet
    cygnus    never sent
    3 machines: 3 never sent
    ! next: `grid push --behind` sends to every machine that is behind
    ");
}

#[test]
fn a_machine_that_no_send_ever_reached_has_nothing_to_be_forgotten() {
    let bench = three_machines();
    bench.edit("machines/cygnus/grid", "/proc/grid");
    bench.grid(&["push", "--all"]).exits(4);
    let seen = bench.grid(&["forget", "cygnus", "--yes"]).exits(2).all();
    assert!(
        seen.contains("nothing was ever sent to cygnus: there is nothing to forget"),
        "{seen}"
    );
    // Nor once it is declared no more; and it is not what somebody else's name was meant to be.
    bench.grid(&["unassign", "notice"]).exits(0);
    bench.edit("[nodes.cygnus]\nroot = \"/proc/grid\"\n", "");
    let seen = bench.grid(&["forget", "cygnus", "--yes"]).exits(2).all();
    assert!(seen.contains("the store knows no machine cygnus"), "{seen}");
    assert!(!seen.contains("mean cygnus"), "{seen}");
}
