//! What an operator reads where something is refused, odd or left undone: why, and what to type.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test may fall"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use support::{
    Bench, Seen, all_current, events, kill_a_push_of_cygnus, three_machines, told, with_billing,
};

#[test]
fn a_dry_run_says_of_an_uncertain_machine_that_it_would_be_asked_and_claims_nothing_was_done() {
    let bench = all_current();
    kill_a_push_of_cygnus(&bench);
    let dry = bench.grid(&["push", "atlas", "--dry-run"]).exits(0);
    for wrong in ["settled", "verified,", "sent 0", "minted acc"] {
        assert!(!dry.all().contains(wrong), "{}", dry.all());
    }
    let json = bench
        .grid(&["push", "atlas", "--dry-run", "--json"])
        .exits(0);
    let names: Vec<String> = events(&json)
        .iter()
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "began",
            "would-ask",
            "would-send",
            "would-transfer",
            "would-contact",
            "ended"
        ]
    );
    assert_eq!(events(&json).last().unwrap()["dry_run"], true);
    insta::assert_snapshot!(dry.all(), @r#"
    $ grid push atlas --dry-run
    try  dry run of push 3  maria@lap3
    to ask   cygnus    nobody knows what it holds: a push asks it first, and then may have less to do than follows
    round 1  cygnus    flushed  nobody knows what it holds; command of notice changed: apply  would be sent 1 file, 102 bytes
    contact  atlas     named    would be verified and checked
    dry run: 1 machine to send, 0 failed, 2 already current
    ! nothing was minted, sent or written
    "#);
}

#[test]
fn a_real_push_sends_the_files_and_bytes_that_the_dry_run_told() {
    let bench = all_current();
    bench.file("notice.txt", "changed\n");
    let dry = events(
        &bench
            .grid(&["push", "cygnus", "--dry-run", "--json"])
            .exits(0),
    );
    let real = events(&bench.grid(&["push", "cygnus", "--json"]).exits(0));
    let of = |events: &[serde_json::Value], name: &str| {
        let event = events.iter().find(|event| event["event"] == name).unwrap();
        let at = event.get("applied").unwrap_or(event);
        (at["files"].clone(), at["bytes"].clone())
    };
    assert_eq!(of(&dry, "would-transfer"), of(&real, "sent"));
    assert_eq!(of(&real, "sent"), (1.into(), 8.into()));
}

#[test]
fn machines_are_named_by_tag_wherever_they_are_named() {
    let bench = all_current();
    bench.edit("[nodes.cygnus]", "[nodes.cygnus]\ntags = [\"eu\"]");
    bench.edit("[nodes.borealis]", "[nodes.borealis]\ntags = [\"eu\"]");
    let before = bench.read("mesh.toml");
    let mut all = told(&[
        bench.grid(&["hold", "@eu", "moving house"]).exits(0),
        bench.grid(&["status"]).exits(0),
        bench.grid(&["unhold", "@eu"]).exits(0),
        bench.grid(&["unhold", "@eu"]).exits(0),
        bench.grid(&["unhold", "@us"]).exits(2),
    ]);
    assert_eq!(bench.read("mesh.toml"), before);
    bench.grid(&["compose", "@eu", "--out", "out"]).exits(0);
    for node in ["borealis", "cygnus"] {
        assert!(bench.path(&format!("out/{node}/manifest.json")).exists());
    }
    all.push_str(&told(&[
        bench
            .grid(&[
                "trust",
                "@eu",
                "SHA256:8ca2+Wap+5kV5tTAnBkyoCtb9zAVQ2qpdBZ4L2L8fyQ",
            ])
            .exits(2),
        bench.grid(&["forget", "@eu", "--yes"]).exits(0),
    ]));
    insta::assert_snapshot!(all, @r#"
    $ grid hold @eu moving house
    borealis is on hold: moving house
    cygnus is on hold: moving house
    ! next: nothing goes to borealis, cygnus until `grid unhold NODE`
    $ grid status
    try  last push 1
    atlas     current
    borealis  on hold      moving house
    cygnus    on hold      moving house
    3 machines: 1 current, 2 on hold
    ! next: `grid unhold NODE` ends a hold
    $ grid unhold @eu
    borealis is not on hold any more
    cygnus is not on hold any more
    $ grid unhold @eu
    borealis was not on hold
    cygnus was not on hold
    $ grid unhold @us
    ! error: no machine carries the tag @us
    ! next: the tags of this mesh: eu
    [exit 2]
    $ grid trust @eu SHA256:8ca2+Wap+5kV5tTAnBkyoCtb9zAVQ2qpdBZ4L2L8fyQ
    ! error: a key is one machine's, and @eu are borealis, cygnus: name one
    [exit 2]
    $ grid forget @eu --yes
    forgot borealis: what it held is taken as gone
    forgot cygnus: what it held is taken as gone
    behind now: borealis, cygnus
    ! next: the next push carries it: `grid push --behind`
    ! next: to forget is for a machine that is gone, and the next push takes borealis, cygnus for new. One that lives and holds what it was sent is fenced (exit 8), until `grid push borealis cygnus --take-over` replaces that
    "#);
}

#[test]
fn a_hold_says_why_in_one_line_and_one_that_is_not_there_is_told() {
    let bench = three_machines();
    let before = bench.read("mesh.toml");
    let seen = [
        bench.grid(&["hold", "atlas", ""]).exits(2),
        bench.grid(&["hold", "atlas", " \t"]).exits(2),
        bench.grid(&["hold", "atlas", "two\nlines"]).exits(2),
        bench.grid(&["unhold", "atlas"]).exits(0),
    ];
    assert_eq!(bench.read("mesh.toml"), before);
    insta::assert_snapshot!(told(&seen), @r#"
    $ grid hold atlas 
    ! error: "" is no reason: say why, for whoever reads the status
    [exit 2]
    $ grid hold atlas  	
    ! error: " \t" is no reason: say why, for whoever reads the status
    [exit 2]
    $ grid hold atlas two
    lines
    ! error: "two\nlines" is no reason: a reason is one line without control characters
    [exit 2]
    $ grid unhold atlas
    atlas was not on hold
    nothing was changed; behind as before: atlas, borealis, cygnus
    ! next: `grid push --behind` sends to every machine that is behind
    "#);
}

#[test]
fn a_hold_of_the_defaults_has_a_hint_that_fits() {
    let bench = three_machines();
    bench.edit("[defaults]\n", "[defaults]\nhold = \"holidays\"\n");
    let seen = [
        bench.grid(&["push", "atlas"]).exits(4),
        bench.grid(&["unhold", "atlas"]).exits(1),
    ];
    insta::assert_snapshot!(told(&seen), @r#"
    $ grid push atlas
    try  push 1  maria@lap3
    incomplete: 0 machines sent, 0 failed, 0 already current, 3 on hold: atlas (holidays), borealis (holidays), cygnus (holidays)
    on hold     atlas  it was named, and not sent to
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: atlas is on hold by `[defaults]`: take `hold` out there, or give the others one of their own; `grid push --behind` then sends what it lacks
    [exit 4]
    $ grid unhold atlas
    ! error: atlas is on hold by `[defaults]`, as is every machine that has no `hold` of its own: take `hold` out there
    [exit 1]
    "#);
}

#[test]
fn a_machine_that_was_renamed_is_told_apart_from_another_store() {
    let bench = all_current();
    bench.edit("[nodes.cygnus]", "[nodes.dorado]");
    bench.edit("node = \"cygnus\"\n", "");
    let renamed = bench.grid(&["push", "dorado"]).exits(8);
    let forgotten = bench.grid(&["forget", "cygnus", "--yes"]).exits(0);
    let fenced = bench.grid(&["push", "dorado"]).exits(8);
    bench.grid(&["push", "dorado", "--take-over"]).exits(0);
    let status = bench.grid(&["status", "--exit-code"]).exits(0);
    insta::assert_snapshot!(told(&[renamed, forgotten, fenced, status]), @"
    $ grid push dorado
    try  push 2  maria@lap3
    round 0  dorado    named    never sent                            fenced: it holds what this store sent to it as cygnus
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             nothing was changed there
    fenced: 0 machines sent, 1 failed, 2 already current, 1 undeclared
    failed      dorado  fenced: it holds what this store sent to it as cygnus
    undeclared  cygnus  it left the declaration, was last reached at cygnus, and holds notice
    ! exit 8: a machine does not hold what this store sent to it last
    ! next: dorado is the machine that was cygnus: `grid forget cygnus`, then `grid push dorado --take-over`, take it under its new name; or call it cygnus again
    [exit 8]
    $ grid forget cygnus --yes
    forgot cygnus: what it held is taken as gone
    behind now: dorado
    ! next: the next push carries it: `grid push --behind`
    $ grid push dorado
    try  push 3  maria@lap3
    round 0  dorado    fenced: it holds what an earlier push (1) of this store, or of a copy of it, sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push dorado: [SHORT] fenced
             nothing was changed there
    fenced: 0 machines sent, 1 failed, 2 already current
    failed      dorado  fenced: it holds what an earlier push (1) of this store, or of a copy of it, sent
    ! exit 8: a machine does not hold what this store sent to it last
    ! next: if dorado had another name, had its `address` or `root` changed and changed back, or was put back from a backup or a snapshot, `grid push dorado --take-over` sends to it again; if not, this `.grid` is an older copy (put the newest one back in its place), or another copy of it pushes too (its log is above): find it, and keep one of the two
    [exit 8]
    $ grid status --exit-code
    try  last push 4
    atlas     current
    borealis  current
    dorado    current
    3 machines: 3 current
    ");
}

#[test]
fn a_copy_of_the_store_is_told_apart_and_so_is_a_machine_that_was_put_back() {
    let bench = all_current();
    bench.copy(".grid", "copy");
    bench.copy("machines/cygnus", "backup");
    bench.file("notice.txt", "changed\n");
    bench.grid(&["push", "cygnus"]).exits(0);
    bench.file("notice.txt", "changed again\n");
    let store = bench.path("copy");
    let store = ("GRID_STORE", store.to_str().unwrap());
    let older = bench.grid_with(store, &["push", "cygnus"]).exits(8);
    bench.copy("backup", "machines/cygnus");
    let put_back = bench.grid(&["push", "cygnus"]).exits(8);
    insta::assert_snapshot!(told(&[older, put_back]), @r#"
    $ grid push cygnus
    try  push 2  maria@lap3
    round 0  cygnus    named    1 file of notice changed              fenced: it holds what a later push (2) of another copy of this store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             its log | [WHEN] maria@lap3 grid 0.1.0 push cygnus: [SHORT] applied
             nothing was changed there
    fenced: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  fenced: it holds what a later push (2) of another copy of this store sent
    ! exit 8: a machine does not hold what this store sent to it last
    ! next: cygnus holds what push 2 of this store sent, which this copy of the store does not know: it is an older one, or two are in use. Put the newest copy back in its place and push from that; or `grid push cygnus --take-over` replaces it, and the other copy is then fenced in its turn
    [exit 8]
    $ grid push cygnus
    try  push 3  maria@lap3
    round 0  cygnus    named    1 file of notice changed              fenced: it holds what an earlier push (1) of this store, or of a copy of it, sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             nothing was changed there
    fenced: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  fenced: it holds what an earlier push (1) of this store, or of a copy of it, sent
    ! exit 8: a machine does not hold what this store sent to it last
    ! next: if cygnus had another name, had its `address` or `root` changed and changed back, or was put back from a backup or a snapshot, `grid push cygnus --take-over` sends to it again; if not, this `.grid` is an older copy (put the newest one back in its place), or another copy of it pushes too (its log is above): find it, and keep one of the two
    [exit 8]
    "#);
}

#[test]
fn a_mesh_that_was_renamed_is_refused_before_an_account_is_left_open() {
    let bench = all_current();
    bench.edit("name = \"try\"", "name = \"prod\"");
    let seen = [
        bench.grid(&["push", "--all"]).exits(3),
        bench.grid(&["status", "atlas"]).exits(0),
        bench.grid(&["rotate", "accounts/billing"]).exits(0),
    ];
    bench.grid(&["push", "--all", "--dry-run"]).exits(3);
    insta::assert_snapshot!(told(&seen), @r#"
    $ grid push --all
    ! error: this mesh was called try when it was last sent to atlas, borealis, cygnus, and is called prod now: accounts carry the mesh's name, and those of try would stay open on their providers
    ! next: `name = "try"` in mesh.toml goes on as before
    ! next: to rename it, first take everything away as try: `grid unassign` each service, then `grid push --behind`, which closes the accounts; with the new name, assign them again
    [exit 3]
    $ grid status atlas
    prod  last push 1
    atlas  behind       it was sent to as part of the mesh try; the list of accounts is written otherwise
    1 machine: 1 behind
    ! note: this mesh was called try when it was last sent to atlas, borealis, cygnus, and is called prod now: a push refuses, since accounts carry the mesh's name, and those of try would stay open on their providers
    ! next: `name = "try"` in mesh.toml goes on as before
    ! next: to rename it, first take everything away as try: `grid unassign` each service, then `grid push --behind`, which closes the accounts; with the new name, assign them again
    $ grid rotate accounts/billing
    minted accounts/billing, generation 2; the older one goes once nobody uses it
    behind now: atlas, borealis, cygnus
    ! note: this mesh was called try when it was last sent to atlas, borealis, cygnus, and is called prod now: a push refuses, since accounts carry the mesh's name, and those of try would stay open on their providers
    ! next: `name = "try"` in mesh.toml goes on as before
    ! next: to rename it, first take everything away as try: `grid unassign` each service, then `grid push --behind`, which closes the accounts; with the new name, assign them again
    "#);
    // The root that nobody declares has the mesh's name in it: that the machines are declared elsewhere is no news then.
    let declared = bench.read("mesh.toml");
    bench.file("mesh.toml", &declared.replace("/grid\"", "/prod\""));
    let seen = bench.grid(&["status", "atlas"]).exits(0);
    assert!(!seen.all().contains("grid forget"), "{}", seen.all());
    assert!(seen.all().contains("goes on as before"), "{}", seen.all());
    bench.file("mesh.toml", &declared);
    // As it says.
    bench.edit("name = \"prod\"", "name = \"try\"");
    for service in ["billing", "accounts", "notice"] {
        bench.grid(&["unassign", service]).exits(0);
    }
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts"), "");
    bench.edit("name = \"try\"", "name = \"prod\"");
    bench.grid(&["assign", "accounts", "atlas"]).exits(0);
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    bench.grid(&["push", "--all"]).exits(0);
    assert!(bench.read("machines/atlas/accounts").contains("prod"));
}

#[test]
fn an_identity_that_others_may_read_is_refused() {
    let bench = three_machines();
    let identity = bench.path("../config/grid/identity.txt");
    std::fs::set_permissions(&identity, std::fs::Permissions::from_mode(0o644)).unwrap();
    let named = ("GRID_IDENTITY", identity.to_str().unwrap());
    let seen = [
        bench.grid(&["push", "--all"]).exits(1),
        bench.grid_with(named, &["push", "--all"]).exits(1),
    ];
    assert!(!bench.path(".grid").exists());
    insta::assert_snapshot!(told(&seen[..1]), @r#"
    $ grid push --all
    ! error: [DIR]/config/grid/identity.txt is open to others (mode 0644), and it opens every secret of the mesh: chmod 600 [DIR]/config/grid/identity.txt
    [exit 1]
    "#);
}

#[test]
fn what_a_secrets_command_says_is_cleaned_bounded_and_under_the_secrets_name() {
    let bench = three_machines();
    bench.edit(
        "[services.notice]\n",
        "[secrets.greeting]\ncommand = [\"sh\", \"-c\", \"printf '\\\\033[2Junlock the key\\\\n' >&2; for i in 1 2 3 4 5 6 7 8 9; do echo $i$i >&2; echo $i >&2; echo >&2; done; printf hunter2\"]\n\n[services.notice]\n",
    );
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.file("notice.j2", "{{ secrets.greeting }}\n");
    let pushed = bench.grid(&["push", "cygnus"]).exits(0);
    assert!(!pushed.bytes().contains(&0x1b), "{}", pushed.all());
    let said: Vec<String> = pushed
        .stderr()
        .lines()
        .filter(|line| line.starts_with("secret "))
        .map(str::to_owned)
        .collect();
    assert_eq!(said.len(), 19);
    assert_eq!(said[0], "secret greeting | \u{fffd}[2Junlock the key");
    assert!(!pushed.all().contains("hunter2"));
}

#[test]
fn a_template_includes_nothing_from_outside_and_is_parsed_by_the_check() {
    let bench = three_machines();
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.file("../outside.txt", "of another");
    bench.file("parts/inside.txt", "from below");
    bench.file("notice.j2", "{% include \"parts/inside.txt\" %}\n");
    bench.grid(&["push", "cygnus"]).exits(0);
    bench.file("notice.j2", "{% include \"../outside.txt\" %}\n");
    let outside = bench.grid(&["push", "cygnus"]).exits(4);
    bench.file(
        "notice.j2",
        "Dear all,\n  {{ node.name }\nthe canteen is closed.\n",
    );
    bench.file(
        "accounts.list.j2",
        "{% for a in accounts %}\n{{ a.username }}\n",
    );
    let wrong = bench.grid(&["check"]).exits(3);
    std::fs::remove_file(bench.path("notice.j2")).unwrap();
    let missing = bench.grid(&["check"]).exits(3);
    let json = bench.grid(&["check", "--json"]).exits(3);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    assert_eq!(view["result"], "wrong");
    insta::assert_snapshot!(told(&[outside, wrong, missing]), @r#"
    $ grid push cygnus
    try  push 2  maria@lap3
    round 0  cygnus    cannot be composed: notice: notice.j2:1: invalid operation: ../outside.txt: a template includes only files below the declaration's folder
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  cannot be composed: notice: notice.j2:1: invalid operation: ../outside.txt: a template includes only files below the declaration's folder
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: mend notice.j2 (line 1), then `grid push --behind` finishes this
    [exit 4]
    $ grid check
    ! error: accounts.list.j2:2:15: syntax error: unexpected end of input, expected end of block
    !   2 | {{ a.username }}
    !     |               ^^
    ! 
    ! notice.j2:2:16: syntax error: unexpected `}`, expected end of variable block
    !   2 |   {{ node.name }
    !     |                ^
    [exit 3]
    $ grid check
    ! error: mesh.toml:51:12: there is no file "notice.j2"
    !   51 | template = "notice.j2"
    !      |            ^^^^^^^^^^^
    !      = sources are named relative to the folder of mesh.toml
    [exit 3]
    "#);
}

#[test]
fn a_machine_that_left_the_declaration_is_told_from_one_that_never_was() {
    let bench = all_current();
    bench.edit("[nodes.cygnus]\nroot = \"machines/cygnus/grid\"\n", "");
    bench.edit("node = \"cygnus\"\n", "");
    let seen = [
        bench.grid(&["push", "cygnus"]).exits(2),
        bench.grid(&["hold", "cygnus", "gone"]).exits(2),
        bench.grid(&["status", "cygnus"]).exits(0),
        bench.grid(&["push", "zeus"]).exits(2),
    ];
    insta::assert_snapshot!(told(&seen), @"
    $ grid push cygnus
    ! error: cygnus left the declaration, and may still hold what it was sent; it was last reached at cygnus
    ! next: `grid forget cygnus` takes it as gone, once it is; to send to it again, declare it again
    [exit 2]
    $ grid hold cygnus gone
    ! error: cygnus left the declaration, and may still hold what it was sent; it was last reached at cygnus
    ! next: `grid forget cygnus` takes it as gone, once it is; to send to it again, declare it again
    [exit 2]
    $ grid status cygnus
    try  last push 1
    cygnus  undeclared   holds notice; last reached at cygnus
    1 machine: 1 undeclared
    ! next: cygnus holds notice: if it lives, declare cygnus again, give notice another `node` or none, and push: that closes the accounts there and takes all of it away; once cygnus is gone, `grid forget cygnus` has it named no more
    $ grid push zeus
    ! error: there is no machine zeus in this mesh
    ! next: the machines of this mesh: atlas, borealis; `[nodes.zeus]` in mesh.toml declares another
    [exit 2]
    ");
}

#[test]
fn why_a_machine_is_behind_is_never_that_no_file_changed() {
    let bench = all_current();
    bench.edit(
        "[services.notice]\n",
        "[services.notice]\nlimits = { apply = \"2m\" }\n",
    );
    bench.edit("node = \"atlas\"\n", "");
    let status = bench.grid(&["status"]).exits(0);
    insta::assert_snapshot!(status.all(), @"
    $ grid status
    try  last push 1
    atlas     current      keeps accounts, which billing uses
    borealis  waits        billing waits for accounts, which is on no machine
    cygnus    behind       settings of notice changed: time limits
    3 machines: 1 current, 1 waits, 1 behind
    ! next: accounts stays on atlas while billing uses it there: `grid assign accounts NODE` gives accounts another machine; or `grid unassign billing` too, or take accounts out of `consumes`, and accounts goes after that
    ! next: `grid push --behind` sends to every machine that is behind
    ");
    let fresh = three_machines();
    fresh.edit("node = \"atlas\"\n", "");
    fresh.edit(
        "[services.billing]\n",
        "[services.billing]\nnode = \"borealis\"\n",
    );
    let waits = fresh.grid(&["status", "borealis"]).exits(0);
    assert_eq!(
        waits.stdout().matches("on no machine").count(),
        1,
        "{}",
        waits.all()
    );
}

#[test]
fn modes_are_composed_for_people_as_chmod_writes_them() {
    let bench = three_machines();
    let people = bench.grid(&["compose", "cygnus"]).exits(0);
    let programs = bench.grid(&["compose", "cygnus", "--json"]).exits(0);
    let file = |seen: &Seen, at: &str| {
        let view: serde_json::Value = serde_json::from_slice(seen.raw()).unwrap();
        view.pointer(&format!("{at}/services/notice/files/0/mode"))
            .cloned()
    };
    assert_eq!(file(&people, ""), Some("0644".into()));
    assert_eq!(file(&programs, "/manifest"), Some(0o644.into()));
}

#[test]
fn a_command_without_json_refuses_it_and_unlock_has_it() {
    let bench = three_machines();
    for arguments in [
        &["init", "x", "--json"][..],
        &["try", "x", "--json"],
        &["completions", "bash", "--json"],
        &["man", "--json"],
    ] {
        let seen = bench.grid(arguments).exits(2);
        assert!(seen.stderr().contains("leave --json out"), "{}", seen.all());
    }
    assert!(!bench.path("x").exists());
    bench.grid(&["push", "--all"]).exits(0);
    let unlock = bench.grid(&["unlock", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(unlock.raw()).unwrap();
    assert_eq!(view["changed"][0]["what"], "lock-free");
}

/// Takes the provider and its template away, while billing, on a machine on hold, still uses it.
fn take_the_provider_away(bench: &Bench) {
    bench.grid(&["hold", "borealis", "in the rack"]).exits(0);
    let text = bench.read("mesh.toml");
    let begin = text.find("[services.accounts]").unwrap();
    let end = text.find("# A consumer").unwrap();
    bench.file("mesh.toml", &(text[..begin].to_owned() + &text[end..]));
    bench.edit(
        "consumes = [\"accounts\"]\ncheck = [\"sh\", \"{release}/login.sh\"]\n",
        "",
    );
    std::fs::remove_file(bench.path("accounts.list.j2")).unwrap();
}

#[test]
fn the_last_account_is_closed_though_the_template_of_the_list_is_gone() {
    let bench = all_current();
    bench.grid(&["revoke", "accounts/billing"]).exits(0);
    take_the_provider_away(&bench);
    let pushed = bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts"), "");
    insta::assert_snapshot!(pushed.all(), @r#"
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  atlas     flushed  grants of accounts: -billing          sent [TIME] s, loaded accounts
    done: 1 machine sent, 0 failed, 1 already current, 1 on hold: borealis (in the rack)
    on hold     borealis  billing there is shut out of accounts: the secret that it has was closed
    "#);
    bench.grid(&["unhold", "borealis"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_list_that_cannot_be_written_any_more_says_what_to_put_back() {
    let bench = all_current();
    let template = bench.read("accounts.list.j2");
    bench
        .grid(&["issue", "accounts/report", "--outside"])
        .exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["revoke", "accounts/report"]).exits(0);
    take_the_provider_away(&bench);
    let pushed = bench.grid(&["push", "--behind"]).exits(4);
    insta::assert_snapshot!(pushed.all(), @r#"
    $ grid push --behind
    try  push 3  maria@lap3
    round 0  atlas     cannot be composed: accounts stays as it is for now, and its list, which changes, cannot be written any more: accounts.list.j2: No such file or directory; put back what is missing, at least until accounts has left
    incomplete: 0 machines sent, 1 failed, 1 already current, 1 on hold: borealis (in the rack)
    failed      atlas  cannot be composed: accounts stays as it is for now, and its list, which changes, cannot be written any more: accounts.list.j2: No such file or directory; put back what is missing, at least until accounts has left
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: mend [services.accounts], then `grid push --behind` finishes this
    [exit 4]
    "#);
    bench.file("accounts.list.j2", &template);
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 1);
}

#[test]
fn paths_that_are_no_folder_of_a_mesh_are_named() {
    let bench = three_machines();
    bench.file("file", "");
    bench.file(".config/x", "");
    let seen = [
        bench.grid(&["--mesh", "nowhere", "status"]).exits(2),
        bench.grid(&["--mesh", "file", "status"]).exits(2),
        bench.grid(&["--mesh", "mesh.toml", "status"]).exits(2),
        bench.grid(&["--mesh", ".config", "status"]).exits(3),
        bench.grid(&["init", "file"]).exits(2),
        bench.grid(&["init", "file/below"]).exits(2),
    ];
    insta::assert_snapshot!(told(&seen), @r#"
    $ grid --mesh nowhere status
    ! error: --mesh nowhere: there is no folder
    ! next: `--mesh DIR`, or $GRID_MESH, names the folder of a mesh.toml; `grid init DIR` makes one
    [exit 2]
    $ grid --mesh file status
    ! error: --mesh file: not a folder, but a file
    ! next: `--mesh DIR`, or $GRID_MESH, names the folder of a mesh.toml; `grid init DIR` makes one
    [exit 2]
    $ grid --mesh mesh.toml status
    ! error: --mesh mesh.toml: name the folder that it lies in, not the file
    ! next: `--mesh DIR`, or $GRID_MESH, names the folder of a mesh.toml; `grid init DIR` makes one
    [exit 2]
    $ grid --mesh .config status
    ! error: .config/mesh.toml: there is no declaration here
    !   = `grid init` writes one to start from; `--mesh DIR` names another folder
    [exit 3]
    $ grid init file
    ! error: file is a file, and no mesh can be made in it: name a folder, new or not
    [exit 2]
    $ grid init file/below
    ! error: file is a file, and no mesh can be made in it: name a folder, new or not
    [exit 2]
    "#);
}

#[test]
fn a_broker_that_is_declared_twice_for_one_consumer_is_refused_with_what_to_do() {
    let bench = Bench::new(
        r#"
[mesh]
name = "prod"

[nodes.atlas]

[services.invoices]
node = "atlas"
provides = { kind = "rabbitmq" }

[services.orders]
node = "atlas"
provides = { kind = "rabbitmq" }

[services.billing]
consumes = ["invoices", "orders"]

[services.audit]
consumes = ["orders"]
"#,
    );
    let wrong = bench.grid(&["check"]).exits(3);
    insta::assert_snapshot!(wrong.all(), @r#"
    $ grid check
    ! error: mesh.toml:16:25: invoices and orders are one broker, at atlas port 5672: billing would have one account name for two accounts there
    !   16 | consumes = ["invoices", "orders"]
    !      |                         ^^^^^^^^
    !      = declare the broker once (invoices is at mesh.toml:7) and write what billing needs into one `consumes` of it; if they are two brokers, give each its own `host` or `port`
    [exit 3]
    "#);
    bench.edit("rabbitmq\" }", "rabbitmq\", port = 5673 }");
    bench.grid(&["check"]).exits(0);
}

#[test]
fn a_damaged_store_is_told_in_words_of_ours() {
    let bench = all_current();
    let mut told = Vec::new();
    for at in ["db/db", "db/conf"] {
        let path = bench.path(".grid").join(at);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, vec![0xa5; whole.len()]).unwrap();
        told.push(bench.grid(&["status"]).exits(8));
        std::fs::write(&path, whole).unwrap();
    }
    for seen in &told {
        let said = seen.stderr().to_lowercase();
        assert!(said.contains("is damaged"), "{}", seen.all());
        for inside in [
            "sled",
            "panick",
            "unwrap",
            "pagecache",
            "snapshot",
            "segment",
        ] {
            assert!(!said.contains(inside), "{inside}: {}", seen.all());
        }
    }
}

#[test]
fn a_misspelt_account_is_not_told_to_have_none_yet() {
    let bench = all_current();
    let seen = [
        bench.grid(&["rotate", "acounts/billing"]).exits(2),
        bench.grid(&["rotate", "accounts/biling"]).exits(2),
        bench.grid(&["revoke", "acounts/billing"]).exits(2),
        bench.grid(&["provisions", "acounts/billing"]).exits(2),
        bench.grid(&["rotate"]).exits(2),
        bench.grid(&["issue", "accounts/billing"]).exits(0),
    ];
    insta::assert_snapshot!(told(&seen), @"
    $ grid rotate acounts/billing
    ! error: there is no provider acounts in this mesh; did you mean accounts?
    [exit 2]
    $ grid rotate accounts/biling
    ! error: there is no service biling in this mesh; did you mean billing?
    [exit 2]
    $ grid revoke acounts/billing
    ! error: there is no provider acounts in this mesh; did you mean accounts?
    [exit 2]
    $ grid provisions acounts/billing
    ! error: there is no provider acounts in this mesh; did you mean accounts?
    [exit 2]
    $ grid rotate
    ! error: the following required arguments were not provided:
    !   <PROVIDER/CONSUMER>...
    ! 
    ! Usage: grid rotate [OPTIONS] <PROVIDER/CONSUMER>...
    !        grid rotate [OPTIONS] --all
    !        grid rotate [OPTIONS] --site <NODE>
    !        grid rotate [OPTIONS] --ca
    ! next: an account is PROVIDER/CONSUMER, like broker/billing; `grid provisions` lists them
    [exit 2]
    $ grid issue accounts/billing
    accounts/billing has an account already, generation 1; `grid rotate accounts/billing` mints another
    ");
}

#[test]
fn a_lost_identity_is_told_as_such_where_a_store_is() {
    let bench = all_current();
    std::fs::remove_file(bench.path("../config/grid/identity.txt")).unwrap();
    let lost = bench.grid(&["status"]).exits(1);
    insta::assert_snapshot!(lost.all(), @r#"
    $ grid status
    ! error: there is no identity at [DIR]/config/grid/identity.txt
    ! next: put the backup of the identity that ./.grid is sealed for back in its place, or name it with $GRID_IDENTITY
    ! next: if you never had one for it: `grid init` makes you one, and whoever pushes this mesh adds its public key to `recipients` in mesh.toml and pushes
    [exit 1]
    "#);
    bench.grid(&["push", "--all"]).exits(1);
    let init = bench.grid(&["init"]).exits(0);
    let sealed = bench.grid(&["status"]).exits(8);
    insta::assert_snapshot!(told(&[init, sealed]), @r#"
    $ grid init
    kept   mesh.toml, which was there
    wrote  .gitignore
    wrote  schemas/mesh.schema.json
    wrote  [DIR]/config/grid/identity.txt, your identity: what is stored from now on is sealed for it, so back it up
    ! note: .grid is a store that was there before this identity, which does not open it
    ! next: if one of these keys was yours: put the backup of that identity back in its place, or name it with $GRID_IDENTITY
    ! next: if they are others': `recipients` in mesh.toml has to name your key too, and then one of them to push
    ! next: if nobody has such a key any more: move .grid away, then `grid push --all --take-over` makes all accounts anew
    $ grid status
    ! error: the store at ./.grid is sealed for somebody else (maria@lap3 [KEY]), and your identity is [KEY]
    ! next: if one of these keys was yours: put the backup of that identity back in its place, or name it with $GRID_IDENTITY
    ! next: if they are others': `recipients` in mesh.toml has to name your key too, and then one of them to push
    ! next: if nobody has such a key any more: move ./.grid away, then `grid push --all --take-over` makes all accounts anew
    [exit 8]
    "#);
    // As it says.
    std::fs::rename(bench.path(".grid"), bench.path("lost")).unwrap();
    bench.grid(&["push", "--all"]).exits(8);
    bench.grid(&["push", "--all", "--take-over"]).exits(0);
}

#[test]
fn what_lies_in_a_source_is_to_be_mended_there() {
    let bench = all_current();
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.file("notice.j2", "Dear all,\n{{ nod.name }}\n");
    let seen = [
        bench.grid(&["push", "cygnus", "--dry-run"]).exits(4),
        bench.grid(&["push", "cygnus"]).exits(4),
        bench.grid(&["compose", "cygnus"]).exits(3),
    ];
    insta::assert_snapshot!(told(&seen), @"
    $ grid push cygnus --dry-run
    try  dry run of push 2  maria@lap3
    round 0  cygnus    cannot be composed: notice: notice.j2:2: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?
    dry run: 0 machines to send, 1 failed, 2 already current
    failed      cygnus  cannot be composed: notice: notice.j2:2: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?
    ! nothing was minted, sent or written
    ! next: mend notice.j2 (line 2)
    [exit 4]
    $ grid push cygnus
    try  push 2  maria@lap3
    round 0  cygnus    cannot be composed: notice: notice.j2:2: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  cannot be composed: notice: notice.j2:2: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: mend notice.j2 (line 2), then `grid push --behind` finishes this
    [exit 4]
    $ grid compose cygnus
    ! error: cygnus cannot be composed: notice: notice.j2:2: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?
    ! next: mend notice.j2 (line 2)
    [exit 3]
    ");
}

#[test]
fn what_a_machine_refuses_names_the_key_of_the_declaration() {
    let bench = three_machines();
    bench.file("machines/taken", "");
    bench.edit(
        "root = \"machines/cygnus/grid\"",
        "root = \"machines/taken/grid\"",
    );
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nnode = \"borealis\"\napply = [\"no-such-command\"]\n",
    );
    let told = bench.grid(&["push", "--all"]).exits(4).all();
    for hint in [
        "! next: cygnus: `root` of the machine",
        "! next: borealis: 127: a command",
    ] {
        assert!(told.contains(hint), "{told}");
    }
}

#[test]
fn a_named_machine_that_is_current_and_fails_is_named_again() {
    let bench = all_current();
    bench.edit("courier = \"local\"\n", "");
    bench.edit("[nodes.atlas]", "[nodes.atlas]\ncourier = \"local\"");
    bench.edit("[nodes.borealis]", "[nodes.borealis]\ncourier = \"local\"");
    let root = bench.path("machines/cygnus/grid");
    bench.edit(
        "[nodes.cygnus]\nroot = \"machines/cygnus/grid\"",
        &format!("[nodes.cygnus]\nport = 1\nroot = \"{}\"", root.display()),
    );
    let seen = bench.grid(&["push", "cygnus"]).exits(4).all();
    assert!(
        seen.contains("then `grid push cygnus` finishes this"),
        "{seen}"
    );
    assert!(seen.contains("1 failed, 2 already current"), "{seen}");
}

#[test]
fn what_is_not_there_has_a_hint_of_what_is() {
    let bench = with_billing();
    let untagged = bench.grid(&["push", "@eu"]).exits(2);
    bench.edit("[nodes.cygnus]", "[nodes.cygnus]\ntags = [\"north\"]");
    let seen = [
        untagged,
        bench.grid(&["push", "@eu"]).exits(2),
        bench.grid(&["push", "zeus"]).exits(2),
        bench.grid(&["push", "billing", "--dry-run"]).exits(2),
        bench.grid(&["assign", "billing", "zeus"]).exits(2),
        bench
            .grid(&["hold", "cygnus", "moving", "--until", "tomorrow"])
            .exits(2),
        bench.grid(&["trust", "atlas"]).exits(2),
        bench.grid(&["trust", "atlass", "SHA256:abc"]).exits(2),
        bench.grid(&["trust", "atlas", "SHA256:abc"]).exits(2),
        bench.grid(&["history", "99"]).exits(2),
    ];
    insta::assert_snapshot!(told(&seen), @r#"
    $ grid push @eu
    ! error: no machine carries the tag @eu
    ! next: `tags = ["eu"]` gives a machine that tag
    [exit 2]
    $ grid push @eu
    ! error: no machine carries the tag @eu
    ! next: the tags of this mesh: north
    [exit 2]
    $ grid push zeus
    ! error: there is no machine zeus in this mesh
    ! next: the machines of this mesh: atlas, borealis, cygnus; `[nodes.zeus]` in mesh.toml declares another
    [exit 2]
    $ grid push billing --dry-run
    ! error: there is no machine billing in this mesh
    ! next: billing is a service, on borealis: `grid push borealis --dry-run`
    [exit 2]
    $ grid assign billing zeus
    ! error: there is no machine zeus in this mesh
    ! next: the machines of this mesh: atlas, borealis, cygnus; `[nodes.zeus]` in mesh.toml declares another
    [exit 2]
    $ grid hold cygnus moving --until tomorrow
    ! error: invalid value 'tomorrow' for '--until <DATE>': say a day like 2026-12-01
    ! next: `grid hold --help` says what it takes
    [exit 2]
    $ grid trust atlas
    ! error: the following required arguments were not provided:
    !   <FINGERPRINT>
    ! 
    ! Usage: grid trust [OPTIONS] <NODE> <FINGERPRINT>
    ! next: `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the machine prints it: `grid trust atlas SHA256:…`
    [exit 2]
    $ grid trust atlass SHA256:abc
    ! error: there is no machine atlass in this mesh; did you mean atlas?
    ! next: "SHA256:abc" is no fingerprint: `SHA256:` and 43 characters, as `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints it on the machine
    [exit 2]
    $ grid trust atlas SHA256:abc
    ! error: "SHA256:abc" is no fingerprint: `SHA256:` and 43 characters, as `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints it on the machine
    [exit 2]
    $ grid history 99
    ! error: the journal has no push 99; there was none yet
    [exit 2]
    "#);
}

#[test]
fn a_check_finds_what_templates_ask_for_in_vain_and_asks_nobody_for_a_secret() {
    let bench = three_machines();
    bench.edit(
        "[services.notice]\n",
        "[secrets.api]\ncommand = [\"sh\", \"-c\", \"touch asked; echo 7\"]\n\n[services.notice]\n",
    );
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.edit("source = \"login.sh\"", "template = \"login.j2\"");
    bench.edit(
        "consumes = [\"accounts\"]",
        "consumes = { accounts = { scope = \"read\" } }",
    );
    bench.file("parts/top.j2", "{{ mesh.name }}\n");
    bench.file(
        "notice.j2",
        "{% include \"parts/top.j2\" %}{{ secrets.api|int + 1 }} {{ extra|default(\"\") }}\n",
    );
    bench.file(
        "login.j2",
        "{{ bindings.accounts.uri|default(bindings.accounts.host) }}\n{% if secrets.api == \"7\" %}{{ node.address }}{% endif %}\n",
    );
    let list = bench.read("accounts.list.j2");
    bench.file(
        "accounts.list.j2",
        &format!("{list}{{% for a in accounts %}}# {{{{ a.wants.scope }}}}\n{{% endfor %}}"),
    );
    let right = bench.grid(&["check"]).exits(0);
    // Of what a secret decides only what no secret can put right is told.
    bench.file("parts/top.j2", "to {{ mesh.nodes.atlass.address }}\n");
    bench.file(
        "login.j2",
        "{{ secrets.api }}\n{% for s in [bindings.accounts] %}\n{{ s.user }}{% endfor %}\n",
    );
    bench.file(
        "accounts.list.j2",
        "# {{ mark }}\n{% for a in accounts %}\n{{ a.username }} {{ a.wants.scop }}\n{% endfor %}\n",
    );
    let nested = bench.grid(&["check"]).exits(3);
    // And what no account leads to.
    bench.file("login.j2", "");
    bench.file("parts/top.j2", "");
    bench.file(
        "accounts.list.j2",
        "# {{ mark }}\n{% for a in accounts %}\n{% if a.generation > 7 %}{{ acounts }}{% endif %}\n{% endfor %}\n",
    );
    let unreached = bench.grid(&["check"]).exits(0);
    assert!(!bench.path("asked").exists());
    // All of a template at once, and what it gives itself is not missing.
    bench.file(
        "login.j2",
        "{{ nod.name }}\n{{ bindings.accounts.user|upper }} {{ serv }}\n{% if node.adress %}{{ mesh.nam }}{% else %}{{ missing|default(\"\") }}{% endif %}\n",
    );
    bench.file(
        "accounts.list.j2",
        "{{ mak }} {{ providr }}\n{% for a in accounts %}\n{{ a.user }} {{ a.wants.scop }}\n{% if a.generation > 7 %}{{ acounts }}{{ mak }}{% endif %}{% endfor %}\n",
    );
    let several = bench.grid(&["check"]).exits(3);
    bench.file("login.j2", "");
    bench.file(
        "accounts.list.j2",
        "{% if accounts %}{% set what = \"a\" %}{% else %}{% set what = \"b\" %}{% endif %}{{ what }}\n{% if not accounts %}{{ nothing|default(\"\") }}{% elif none is defined %}{{ none }}{% endif %}\n",
    );
    let given = bench.grid(&["check"]).exits(0);
    bench.file("accounts.list.j2", "");
    bench.edit(
        "kind = \"custom\"",
        "kind = \"custom\"\nuri = \"{{ wants.scope }}{{ wants.scop }}\"\nenv = { TOKEN = \"{{ wants.tokn }}{{ wants.tokn }}\" }",
    );
    let bindings = bench.grid(&["check"]).exits(3);
    insta::assert_snapshot!(told(&[right, nested, unreached, several, given, bindings]), @r#"
    $ grid check
    try: 3 machines and 3 services in 1 file, nothing wrong
    $ grid check
    ! error: accounts.list.j2:3:21: undefined value: `accounts[…].wants` has no `scop`; it has scope; did you mean `scope`?
    !   3 | {{ a.username }} {{ a.wants.scop }}
    !     |                     ^^^^^^^^^^^^
    ! 
    ! login.j2:3:4: undefined value: `bindings.accounts` has no `user`; it has type, provider, host, port, username, password; did you mean `username`?
    !   3 | {{ s.user }}{% endfor %}
    !     |    ^^^^^^
    ! 
    ! parts/top.j2:1:17: undefined value: `mesh.nodes` has no `atlass`; it has atlas, borealis, cygnus; did you mean `atlas`?
    !   1 | to {{ mesh.nodes.atlass.address }}
    !     |                 ^^^^^^^^^^^^^^^
    [exit 3]
    $ grid check
    try: 3 machines and 3 services in 1 file, nothing wrong
    ! note: accounts.list.j2:3: nothing led here when the template was tried, and there is no `acounts`; there are mesh, provider, mark, accounts; did you mean `accounts`?
    $ grid check
    ! error: accounts.list.j2:1:4: undefined value: there is no `mak`; there are mesh, provider, mark, accounts; did you mean `mark`?
    !   1 | {{ mak }} {{ providr }}
    !     |    ^^^
    ! 
    ! accounts.list.j2:1:14: undefined value: there is no `providr`; there are mesh, provider, mark, accounts; did you mean `provider`?
    !   1 | {{ mak }} {{ providr }}
    !     |              ^^^^^^^
    ! 
    ! accounts.list.j2:3:4: undefined value: `accounts[…]` has no `user`; it has username, consumer, generation, password, sha256, salt, salted_sha256, wants; did you mean `username`?
    !   3 | {{ a.user }} {{ a.wants.scop }}
    !     |    ^^^^^^
    ! 
    ! accounts.list.j2:3:17: undefined value: `accounts[…].wants` has no `scop`; it has scope; did you mean `scope`?
    !   3 | {{ a.user }} {{ a.wants.scop }}
    !     |                 ^^^^^^^^^^^^
    ! 
    ! accounts.list.j2:4:29: there is no `acounts`; there are mesh, provider, mark, accounts; did you mean `accounts`?
    !   4 | {% if a.generation > 7 %}{{ acounts }}{{ mak }}{% endif %}{% endfor %}
    !     |                             ^^^^^^^
    ! 
    ! login.j2:1:4: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?
    !   1 | {{ nod.name }}
    !     |    ^^^^^^^^
    ! 
    ! login.j2:2:22: undefined value: `bindings.accounts` has no `user`; it has type, provider, host, port, username, password; did you mean `username`?
    !   2 | {{ bindings.accounts.user|upper }} {{ serv }}
    !     |                      ^^^^
    ! 
    ! login.j2:2:39: undefined value: there is no `serv`; there are mesh, node, service, bindings, secrets; did you mean `service`?
    !   2 | {{ bindings.accounts.user|upper }} {{ serv }}
    !     |                                       ^^^^
    ! 
    ! login.j2:3:7: undefined value: `node` has no `adress`; it has name, address, tags; did you mean `address`?
    !   3 | {% if node.adress %}{{ mesh.nam }}{% else %}{{ missing|default("") }}{% endif %}
    !     |       ^^^^^^^^^^^
    [exit 3]
    $ grid check
    try: 3 machines and 3 services in 1 file, nothing wrong
    $ grid check
    ! error: mesh.toml:25:20: billing: `env.TOKEN` of `[services.accounts.provides]`: undefined value: `wants` has no `tokn`; it has scope
    !   25 | [services.accounts.provides]
    !      |                    ^^^^^^^^
    ! 
    ! mesh.toml:25:20: billing: `uri` of `[services.accounts.provides]`: undefined value: `wants` has no `scop`; it has scope; did you mean `scope`?
    !   25 | [services.accounts.provides]
    !      |                    ^^^^^^^^
    [exit 3]
    "#);
}

#[test]
fn a_map_or_a_list_is_not_printed_by_a_template() {
    let bench = three_machines();
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.edit("source = \"login.sh\"", "template = \"login.j2\"");
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nnode = \"atlas\"\n",
    );
    bench.file("login.j2", "");
    bench.file(
        "notice.j2",
        "{{ node.tags | join(\", \") }} {{ node.tags | tojson }} {{ mesh.nodes | length }} {{ none }} {{ 7 }} {{ true }}\n",
    );
    let right = bench.grid(&["check"]).exits(0);
    bench.file(
        "notice.j2",
        "a {{ node }}\n{# only the first is told of one machine #}{{ mesh }}\n",
    );
    bench.file(
        "login.j2",
        "{{ bindings.accounts.password }}\n{{ bindings.accounts }}\n",
    );
    bench.file("accounts.list.j2", "{{- accounts -}}\n");
    let wrong = bench.grid(&["check"]).exits(3);
    let push = bench.grid(&["push", "cygnus"]);
    bench.file("login.j2", "");
    bench.file("accounts.list.j2", "");
    let mut asked = Vec::new();
    for text in [
        "{{ mesh.nodes }}",
        "{{ node.tags }}",
        "{{ service }}",
        "{{ bindings }}",
        "{{ secrets }}",
        "{{ {\"hunter2\": 1} }}",
        "{{ range(3) }}",
    ] {
        bench.file("notice.j2", text);
        let seen = bench.grid(&["check"]).exits(3).stderr();
        asked.push(seen);
    }
    insta::assert_snapshot!(told(&[right, wrong, push]), @r#"
    $ grid check
    try: 3 machines and 3 services in 1 file, nothing wrong
    $ grid check
    ! error: accounts.list.j2:1:1: `accounts` is a list, and no text: `accounts | join(", ")` is its elements, and `accounts | tojson` is JSON
    !   1 | {{- accounts -}}
    !     | ^^^^^^^^^^^^^^^^
    ! 
    ! login.j2:2:1: `bindings.accounts` is a map, and no text; say which of what it has
    !   2 | {{ bindings.accounts }}
    !     | ^^^^^^^^^^^^^^^^^^^^^^^
    ! 
    ! notice.j2:1:1: `node` is a map, and no text; it has name, address, tags; did you mean `node.name`?
    !   1 | a {{ node }}
    !     | ^^^^^^^^^^^^
    [exit 3]
    $ grid push cygnus
    try  push 1  maria@lap3
    round 0  cygnus    cannot be composed: notice: notice.j2:1: `node` is a map, and no text; it has name, address, tags; did you mean `node.name`?
    minted   accounts/billing, generation 1
    round 1  atlas     cannot be composed: accounts: accounts.list.j2:1: `accounts` is a list, and no text: `accounts | join(", ")` is its elements, and `accounts | tojson` is JSON
    round 1  borealis  flushed  never sent                            sent [TIME] s
    incomplete: 1 machine sent, 2 failed, 0 already current
    failed      atlas   cannot be composed: accounts: accounts.list.j2:1: `accounts` is a list, and no text: `accounts | join(", ")` is its elements, and `accounts | tojson` is JSON
    failed      cygnus  cannot be composed: notice: notice.j2:1: `node` is a map, and no text; it has name, address, tags; did you mean `node.name`?
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: mend accounts.list.j2 (line 1); mend notice.j2 (line 1), then `grid push --behind` finishes this
    [exit 4]
    "#);
    insta::assert_snapshot!(asked.concat(), @r#"
    error: notice.j2:1:1: `mesh.nodes` is a map, and no text; it has atlas, borealis, cygnus; say which of what it has
      1 | {{ mesh.nodes }}
        | ^^^^^^^^^^^^^^^^
    error: notice.j2:1:1: `node.tags` is a list, and no text: `node.tags | join(", ")` is its elements, and `node.tags | tojson` is JSON
      1 | {{ node.tags }}
        | ^^^^^^^^^^^^^^^
    error: notice.j2:1:1: `service` is a map, and no text; it has name; did you mean `service.name`?
      1 | {{ service }}
        | ^^^^^^^^^^^^^
    error: notice.j2:1:1: `bindings` is a map, and no text; say which of what it has
      1 | {{ bindings }}
        | ^^^^^^^^^^^^^^
    error: notice.j2:1:1: `secrets` is a map, and no text; say which of what it has
      1 | {{ secrets }}
        | ^^^^^^^^^^^^^
    error: notice.j2:1:1: what is printed here is a map, and no text; it has hunter2; say which of what it has
      1 | {{ {"hunter2": 1} }}
        | ^^^^^^^^^^^^^^^^^^^^
    error: notice.j2:1:1: `range(3)` is a list, and no text: `range(3) | join(", ")` is its elements, and `range(3) | tojson` is JSON
      1 | {{ range(3) }}
        | ^^^^^^^^^^^^^^
    "#);
}

#[test]
fn an_empty_variable_is_no_secret() {
    let bench = three_machines();
    bench.edit(
        "[services.notice]\n",
        "[secrets.tok]\nenv = \"TOK\"\n\n[services.notice]\n",
    );
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.file("notice.j2", "{{ secrets.tok }}\n");
    bench.grid_with(("TOK", "7"), &["push", "cygnus"]).exits(0);
    let empty = bench.grid_with(("TOK", ""), &["push", "cygnus"]).exits(4);
    insta::assert_snapshot!(empty.all(), @"
    $ grid push cygnus
    try  push 2  maria@lap3
    round 0  cygnus    cannot be composed: notice: notice.j2:1: secret tok: $TOK is empty
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  cannot be composed: notice: notice.j2:1: secret tok: $TOK is empty
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: set $TOK (a value that is to be empty is no secret, and stands in the template itself), then `grid push --behind` finishes this
    [exit 4]
    ");
}

#[test]
fn a_command_that_reads_like_a_line_of_shell_is_noted() {
    let bench = three_machines();
    bench.edit(
        "[services.notice]\n",
        "[secrets.a]\ncommand = [\"pass show a\"]\n\n[services.notice]\napply = [\"systemctl restart z\"]\n\
         check = [\"cd\", \"/tmp\", \"&&\", \"ls\"]\nremove = [\"find\", \".\", \"-exec\", \"touch\", \"{}\", \";\"]\n\
         test = [\"sh\", \"-c\", \"a && b | c\"]\n",
    );
    insta::assert_snapshot!(bench.grid(&["check"]).exits(0).all(), @r#"
    $ grid check
    try: 3 machines and 3 services in 1 file, nothing wrong
    ! note: `command` of [secrets.a] is the program "pass show a", white space and all: each word stands in quotes of its own, and a line of shell is ["sh", "-c", "…"]
    ! note: `apply` of notice is the program "systemctl restart z", white space and all: each word stands in quotes of its own, and a line of shell is ["sh", "-c", "…"]
    ! note: `check` of notice gives `cd` the word "&&", which no shell reads: each word stands in quotes of its own, and a line of shell is ["sh", "-c", "…"]
    "#);
}

#[test]
fn what_is_sent_as_it_is_and_reads_like_a_template_is_noted() {
    let bench = three_machines();
    bench.edit(
        "source = \"notice.txt\"",
        "content = \"on {{ node.name }}\"",
    );
    bench.edit("source = \"login.sh\"", "source = \"login.sh.j2\"");
    bench.file("login.sh.j2", "");
    let noted = bench.grid(&["check"]).exits(0);
    let json = bench.grid(&["check", "--json"]).exits(0);
    support::schema::hold("check", &[serde_json::from_slice(json.raw()).unwrap()]);
    assert!(json.stdout().contains("\"notes\": ["), "{}", json.stdout());
    // What is another program's is nobody's mistake.
    bench.edit(
        "on {{ node.name }}",
        "on {{ $labels.instance }} { } {# #} {{ }}",
    );
    let other = bench.grid(&["check"]).exits(0).all();
    assert!(!other.contains("`content`"), "{other}");
    insta::assert_snapshot!(noted.all(), @r#"
    $ grid check
    try: 3 machines and 3 services in 1 file, nothing wrong
    ! note: `source = "login.sh.j2"` of billing is sent as it is: `template = "login.sh.j2"` renders it
    ! note: `content` of notice.txt of notice is sent as it is, with what stands in braces: what is to be rendered stands in a file that `template` names
    "#);
}

#[test]
fn a_misspelt_release_is_found_by_the_check_and_other_braces_are_the_programs_own() {
    let bench = three_machines();
    bench.edit(
        "check = [\"sh\", \"{release}/login.sh\"]",
        "check = [\"awk\", \"{print} {{.Names}} {}\", \"{releas}/login.sh\"]",
    );
    bench.edit(
        "[\"sh\", \"{release}/accounts.sh\", \"load\"]",
        "[\"{relaese}/load\"]",
    );
    let told = bench.grid(&["check"]).exits(3).all();
    assert_eq!(
        told.matches("did you mean `{release}`?").count(),
        2,
        "{told}"
    );
    assert!(told.contains("`check` of billing says {releas}"), "{told}");
    assert!(told.contains("`load` of accounts says {relaese}"), "{told}");
}

#[test]
fn a_mesh_without_a_machine_is_told_to_declare_one() {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    for arguments in [
        &["check"][..],
        &["push", "--all"],
        &["push", "--behind"],
        &["status"],
    ] {
        let seen = bench.grid(arguments).exits(0).all();
        assert!(
            seen.contains(
                "! next: this mesh has no machine yet: write [nodes.NAME] into mesh.toml"
            ),
            "{seen}"
        );
    }
}

#[test]
fn a_machine_on_hold_and_a_revoked_consumer_are_told_how_they_come_back() {
    let bench = all_current();
    let seen = [
        bench.grid(&["hold", "atlas", "in the rack"]).exits(0),
        bench.grid(&["rotate", "accounts/billing"]).exits(0),
        bench.grid(&["unhold", "atlas"]).exits(0),
        bench.grid(&["revoke", "accounts/billing"]).exits(0),
        bench.grid(&["push", "--behind"]).exits(0),
        bench.grid(&["status"]).exits(0),
    ];
    insta::assert_snapshot!(told(&seen), @r#"
    $ grid hold atlas in the rack
    atlas is on hold: in the rack
    ! next: nothing goes to atlas until `grid unhold atlas`
    $ grid rotate accounts/billing
    minted accounts/billing, generation 2; the older one goes once nobody uses it
    ! next: nothing goes to atlas until `grid unhold atlas`
    $ grid unhold atlas
    atlas is not on hold any more
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    $ grid revoke accounts/billing
    revoked accounts/billing: the next push closes the account and does not start billing again until `grid issue accounts/billing` gives it a new one
    behind now: atlas, borealis
    ! next: the next push carries it: `grid push --behind`
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  atlas     flushed  grants of accounts: -billing          sent [TIME] s, loaded accounts
    round 0  borealis  flushed  billing leaves; billing is revoked    sent [TIME] s, removed billing
    done: 2 machines sent, 0 failed, 1 already current
    revoked     borealis  billing revoked, so not started
    ! next: `grid issue accounts/billing` gives billing an account again
    $ grid status
    try  last push 2
    atlas     current
    borealis  current      billing is revoked
    cygnus    current
    3 machines: 3 current
    ! next: `grid issue accounts/billing` gives billing an account again
    "#);
}

/// What is said to do next.
fn next(seen: &[Seen]) -> String {
    let all = told(seen);
    let is_told = |line: &&str| line.starts_with("$ ") || line.starts_with("! next: ");
    all.lines().filter(is_told).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_machine_that_is_forgotten_and_lives_is_told_before_and_at_the_fence() {
    let bench = all_current();
    let seen = [
        bench.grid(&["forget", "cygnus", "--yes"]).exits(0),
        bench.grid(&["push", "--behind"]).exits(8),
        bench.grid(&["push", "cygnus", "--take-over"]).exits(0),
    ];
    insta::assert_snapshot!(next(&seen), @r#"
    $ grid forget cygnus --yes
    ! next: the next push carries it: `grid push --behind`
    ! next: to forget is for a machine that is gone, and the next push takes cygnus for new. One that lives and holds what it was sent is fenced (exit 8), until `grid push cygnus --take-over` replaces that
    $ grid push --behind
    ! next: if cygnus was forgotten here (`grid history` says when), had another name, had its `address` or `root` changed and changed back, or was put back from a backup or a snapshot, `grid push cygnus --take-over` sends to it again; if not, this `.grid` is an older copy (put the newest one back in its place), or another copy of it pushes too (its log is above): find it, and keep one of the two
    $ grid push cygnus --take-over
    "#);
}

#[test]
fn a_machine_that_is_declared_elsewhere_is_not_said_to_be_gone() {
    let bench = all_current();
    bench.edit(
        "root = \"machines/cygnus/grid\"",
        "courier = \"ssh\"\naddress = \"127.0.0.1\"\nport = 1\nroot = \"/nowhere\"",
    );
    let pushed = next(&[bench.grid(&["push", "cygnus"]).exits(4)]);
    for told in [
        "! next: cygnus is declared elsewhere than it was last reached: if that is right, the next push asks there, and goes on; if it is wrong, put its `address` or `root` right; if the machine at ",
        " is gone, `grid forget cygnus` takes it as gone",
    ] {
        assert!(pushed.contains(told), "{pushed}");
    }
}

#[test]
fn a_secret_that_is_not_to_be_had_is_put_right_where_it_comes_from() {
    let bench = all_current();
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.edit(
        "[services.notice]\n",
        "[secrets.api]\nenv = \"API_KEY\"\n[secrets.asked]\ncommand = [\"false\"]\n[secrets.kept]\nfile = \"kept.age\"\n\n[services.notice]\n",
    );
    bench.file("kept.age", "age-encryption.org/v1\n");
    let seen = ["api", "asked", "kept"].map(|secret| {
        bench.file("notice.j2", &format!("one\n{{{{ secrets.{secret} }}}}\n"));
        bench.grid(&["push", "cygnus"]).exits(4)
    });
    let composed = bench.grid(&["compose", "cygnus"]).exits(3);
    insta::assert_snapshot!(next(&seen) + "\n" + &next(&[composed]), @r#"
    $ grid push cygnus
    ! next: set $API_KEY, then `grid push --behind` finishes this
    $ grid push cygnus
    ! next: see what `false` says by hand, or mend `command` of [secrets.asked], then `grid push --behind` finishes this
    $ grid push cygnus
    ! next: mend kept.age, or `file` of [secrets.kept], then `grid push --behind` finishes this
    $ grid compose cygnus
    ! next: mend kept.age, or `file` of [secrets.kept]
    "#);
}

#[test]
fn an_undefined_value_is_named_and_so_is_the_setting_that_asks_for_it() {
    let bench = all_current();
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.edit(
        "[services.notice]\n",
        "[secrets.api]\ncommand = [\"echo\", \"hunter2\"]\n\n[services.notice]\n",
    );
    bench.file("notice.j2", "{{ node.adress }}\n");
    let plain = bench.grid(&["compose", "cygnus"]).exits(3);
    // After a secret was read, only what stands in the template is quoted.
    bench.file("notice.j2", "{{ secrets.api }}\n{{ node.adress }}\n");
    let template = bench.grid(&["compose", "cygnus"]).exits(3);
    // All at once, and nobody is asked for a secret only to say so.
    bench.edit(
        "[\"echo\", \"hunter2\"]",
        "[\"sh\", \"-c\", \"touch asked; echo hunter2\"]",
    );
    bench.file(
        "notice.j2",
        "{{ node.adress }} {{ nod }}\n{{ secrets.api }} {{ mesh.nam|upper }}\n",
    );
    let several = [
        bench.grid(&["compose", "cygnus"]).exits(3),
        bench.grid(&["push", "cygnus"]).exits(4),
    ];
    assert!(!bench.path("asked").exists());
    bench.file("accounts.list.j2", "{{ mak }}\n{{ providr }}\n{{ mak }}\n");
    let list = bench.grid(&["compose", "atlas"]).exits(3);
    bench.edit(
        "kind = \"custom\"",
        "kind = \"custom\"\nuri = \"{{ wants.scope }}\"",
    );
    let setting = bench.grid(&["compose", "borealis"]).exits(3);
    // Whatever a template asks for, what there is instead is told, but no value of it.
    bench.edit("uri = \"{{ wants.scope }}\"\n", "");
    bench.edit("source = \"login.sh\"", "template = \"login.j2\"");
    let mut asked = Vec::new();
    for (machine, file, text) in [
        ("cygnus", "notice.j2", "{{ secrets.foo }}"),
        ("cygnus", "notice.j2", "{{ secrets.apy }}"),
        ("cygnus", "notice.j2", "{{ bindings.accounts.user }}"),
        ("cygnus", "notice.j2", "{{ services.name }}"),
        ("cygnus", "notice.j2", "{{ mesh.services.accouns.nodes }}"),
        ("borealis", "login.j2", "{{ bindings.accounts.user }}"),
        ("borealis", "login.j2", "{{ bindings.acounts.username }}"),
        (
            "borealis",
            "login.j2",
            "{% set of = bindings.accounts %}\n{{ of.pasword }}",
        ),
        (
            "atlas",
            "accounts.list.j2",
            "{% for a in accounts %}\n{{ a.user }}{% endfor %}",
        ),
        ("atlas", "accounts.list.j2", "{{ account }}"),
    ] {
        bench.file("login.j2", "");
        bench.file(file, text);
        let seen = bench.grid(&["compose", machine]).exits(3).stderr();
        asked.push(format!("{text}\n{seen}"));
    }
    assert!(!asked.concat().contains("hunter2"));
    insta::assert_snapshot!(asked.concat(), @"
    {{ secrets.foo }}
    error: cygnus cannot be composed: notice: notice.j2:1: undefined value: `secrets` has no `foo`; it has api; `[secrets.foo]` in mesh.toml declares it
    next: mend notice.j2 (line 1)
    {{ secrets.apy }}
    error: cygnus cannot be composed: notice: notice.j2:1: undefined value: `secrets` has no `apy`; it has api; did you mean `api`?
    next: mend notice.j2 (line 1)
    {{ bindings.accounts.user }}
    error: cygnus cannot be composed: notice: notice.j2:1: undefined value: `bindings` has no `accounts`; it is empty; `consumes` of notice says on which providers it has an account
    next: mend notice.j2 (line 1)
    {{ services.name }}
    error: cygnus cannot be composed: notice: notice.j2:1: undefined value: there is no `services`; there are mesh, node, service, bindings, secrets; did you mean `service`?
    next: mend notice.j2 (line 1)
    {{ mesh.services.accouns.nodes }}
    error: cygnus cannot be composed: notice: notice.j2:1: undefined value: `mesh.services` has no `accouns`; it has accounts, billing, notice; did you mean `accounts`?
    next: mend notice.j2 (line 1)
    {{ bindings.accounts.user }}
    error: borealis cannot be composed: billing: login.j2:1: undefined value: `bindings.accounts` has no `user`; it has type, provider, host, port, username, password; did you mean `username`?
    next: mend login.j2 (line 1)
    {{ bindings.acounts.username }}
    error: borealis cannot be composed: billing: login.j2:1: undefined value: `bindings` has no `acounts`; it has accounts; did you mean `accounts`?
    next: mend login.j2 (line 1)
    {% set of = bindings.accounts %}
    {{ of.pasword }}
    error: borealis cannot be composed: billing: login.j2:2: undefined value: `bindings.accounts` has no `pasword`; it has type, provider, host, port, username, password; did you mean `password`?
    next: mend login.j2 (line 2)
    {% for a in accounts %}
    {{ a.user }}{% endfor %}
    error: atlas cannot be composed: accounts: accounts.list.j2:2: undefined value: `accounts[…]` has no `user`; it has username, consumer, generation, password, sha256, salt, salted_sha256, wants; did you mean `username`?
    next: mend accounts.list.j2 (line 2)
    {{ account }}
    error: atlas cannot be composed: accounts: accounts.list.j2:1: undefined value: there is no `account`; there are mesh, provider, mark, accounts; did you mean `accounts`?
    next: mend accounts.list.j2 (line 1)
    ");
    insta::assert_snapshot!(told(&[plain, template, setting])+ &told(&several) + &told(&[list]), @"
    $ grid compose cygnus
    ! error: cygnus cannot be composed: notice: notice.j2:1: undefined value: `node` has no `adress`; it has name, address, tags; did you mean `address`?
    ! next: mend notice.j2 (line 1)
    [exit 3]
    $ grid compose cygnus
    ! error: cygnus cannot be composed: notice: notice.j2:2: undefined value: `node` has no `adress`; it has name, address, tags; did you mean `address`?
    ! next: mend notice.j2 (line 2)
    [exit 3]
    $ grid compose borealis
    ! error: borealis cannot be composed: billing: `uri` of `[services.accounts.provides]`: undefined value: `wants` has no `scope`; it is empty
    ! next: mend `uri` of `[services.accounts.provides]`
    [exit 3]
    $ grid compose cygnus
    ! error: cygnus cannot be composed: notice: notice.j2:1: undefined value: `node` has no `adress`; it has name, address, tags; did you mean `address`?; and notice.j2:1: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?; and notice.j2:2: undefined value: `mesh` has no `nam`; it has name, nodes, services; did you mean `name`?
    ! next: mend notice.j2 (lines 1, 2)
    [exit 3]
    $ grid push cygnus
    try  push 2  maria@lap3
    round 0  cygnus    cannot be composed: notice: notice.j2:1: undefined value: `node` has no `adress`; it has name, address, tags; did you mean `address`?; and notice.j2:1: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?; and notice.j2:2: undefined value: `mesh` has no `nam`; it has name, nodes, services; did you mean `name`?
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  cannot be composed: notice: notice.j2:1: undefined value: `node` has no `adress`; it has name, address, tags; did you mean `address`?; and notice.j2:1: undefined value: there is no `nod`; there are mesh, node, service, bindings, secrets; did you mean `node`?; and notice.j2:2: undefined value: `mesh` has no `nam`; it has name, nodes, services; did you mean `name`?
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: mend notice.j2 (lines 1, 2), then `grid push --behind` finishes this
    [exit 4]
    $ grid compose atlas
    ! error: atlas cannot be composed: accounts: accounts.list.j2:1: undefined value: there is no `mak`; there are mesh, provider, mark, accounts; did you mean `mark`?; and accounts.list.j2:2: undefined value: there is no `providr`; there are mesh, provider, mark, accounts; did you mean `provider`?
    ! next: mend accounts.list.j2 (lines 1, 2)
    [exit 3]
    ");
}

#[test]
fn an_account_of_somebody_outside_comes_back_by_a_command_that_is_accepted() {
    let bench = all_current();
    bench
        .grid(&["issue", "accounts/other", "--outside"])
        .exits(0);
    let revoked = bench.grid(&["revoke", "accounts/other"]).exits(0);
    let again = bench
        .grid(&["issue", "accounts/other", "--outside"])
        .exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    let rotated = bench.grid(&["rotate", "accounts/other"]).exits(0);
    insta::assert_snapshot!(told(&[revoked, again, rotated]), @"
    $ grid revoke accounts/other
    revoked accounts/other: the next push closes the account; `grid issue accounts/other --outside` gives other a new one
    $ grid issue accounts/other --outside
    minted accounts/other, generation 2
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    $ grid rotate accounts/other
    minted accounts/other, generation 3; no machine uses it, so the next push closes the older one: hand over the new secret before (`grid provisions accounts/other --show-secrets`)
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    ");
}

#[test]
fn a_hold_with_a_day_is_said_to_end_by_itself() {
    let bench = all_current();
    let seen = [bench
        .grid(&["hold", "atlas", "holidays", "--until", "2999-12-24"])
        .exits(0)];
    insta::assert_snapshot!(next(&seen), @r#"
    $ grid hold atlas holidays --until 2999-12-24
    ! next: nothing goes to atlas until 2999-12-24, when the hold ends by itself, or until `grid unhold atlas`
    "#);
}

#[test]
fn while_a_push_runs_the_status_says_to_wait_for_it() {
    let bench = three_machines();
    let mut push = support::a_push_that_applies(&bench);
    let status = bench.grid(&["status"]).exits(0);
    support::go_on(&bench);
    push.wait().unwrap();
    let next = next(&[status]);
    assert!(
        next.contains(
            "a push runs: see what is left once it is done, or `grid push --behind --wait`"
        ),
        "{next}"
    );
}

#[test]
fn a_send_whose_end_was_not_heard_is_asked_and_nothing_is_to_be_mended() {
    let bench = all_current();
    bench.edit(
        "[services.notice]\n",
        "[services.notice]\napply = [\"sleep\", \"3\"]\n",
    );
    let seen = [bench.grid(&["push", "cygnus", "--timeout", "1"]).exits(4)];
    insta::assert_snapshot!(next(&seen), @r#"
    $ grid push cygnus --timeout 1
    ! next: `grid push --behind` asks cygnus first what it holds, and goes on from there
    "#);
}

#[test]
fn arguments_that_contradict_each_other_are_followed_by_what_would_be_right() {
    let bench = Bench::bare();
    let typed: &[&[&str]] = &[
        &["push", "--all", "atlas"],
        &["push", "--behind", "--all"],
        &["--mesh", "push", "rotate", "a/b", "--all"],
        &["rotate", "--ca", "--site", "atlas"],
        &["--quiet", "-v", "status"],
        &["history", "3", "--last", "4"],
        &["evidence", "atlas", "--file", "x"],
        &[
            "evidence", "report", "--state", "x", "--config", "y", "--host", "z",
        ],
        &["signals", "render", "--secrets"],
        &["hold"],
    ];
    let seen: Vec<_> = typed
        .iter()
        // A variable is not what was typed.
        .map(|typed| bench.grid_with(("GRID_MESH", "/nowhere"), typed).exits(2))
        .collect();
    let told = support::told(&seen).replace("! For more information, try '--help'.\n", "");
    insta::assert_snapshot!(told.replace("! \n", ""), @"
    $ grid push --all atlas
    ! error: the argument '--all' cannot be used with '[NODE]...'
    ! Usage: grid push [OPTIONS] <NODE>...
    !        grid push [OPTIONS] --behind
    !        grid push [OPTIONS] --all
    ! next: `grid push --help` says what it takes
    [exit 2]
    $ grid push --behind --all
    ! error: the argument '--behind' cannot be used with '--all'
    ! Usage: grid push [OPTIONS] <NODE>...
    !        grid push [OPTIONS] --behind
    !        grid push [OPTIONS] --all
    ! next: `grid push --help` says what it takes
    [exit 2]
    $ grid --mesh push rotate a/b --all
    ! error: the argument '[PROVIDER/CONSUMER]...' cannot be used with '--all'
    ! Usage: grid rotate [OPTIONS] <PROVIDER/CONSUMER>...
    !        grid rotate [OPTIONS] --all
    !        grid rotate [OPTIONS] --site <NODE>
    !        grid rotate [OPTIONS] --ca
    ! next: `grid rotate --help` says what it takes
    [exit 2]
    $ grid rotate --ca --site atlas
    ! error: the argument '--ca' cannot be used with '--site <NODE>'
    ! Usage: grid rotate [OPTIONS] <PROVIDER/CONSUMER>...
    !        grid rotate [OPTIONS] --all
    !        grid rotate [OPTIONS] --site <NODE>
    !        grid rotate [OPTIONS] --ca
    ! next: `grid rotate --help` says what it takes
    [exit 2]
    $ grid --quiet -v status
    ! error: the argument '--quiet' cannot be used with '--verbose...'
    ! Usage: grid status [OPTIONS] [NODE]...
    ! next: `grid status --help` says what it takes
    [exit 2]
    $ grid history 3 --last 4
    ! error: the argument '[PUSH]' cannot be used with '--last <N>'
    ! Usage: grid history [OPTIONS] [PUSH]
    ! next: `grid history --help` says what it takes
    [exit 2]
    $ grid evidence atlas --file x
    ! error: the argument '[SITE]' cannot be used with '--file <FILE>'
    ! Usage: grid evidence [OPTIONS] [SITE]
    !        grid evidence <COMMAND>
    ! next: `grid evidence --help` says what it takes
    [exit 2]
    $ grid evidence report --state x --config y --host z
    ! error: the argument '--config <FILE>' cannot be used with '--host <HOST>'
    ! Usage: grid evidence report [OPTIONS] --state <FILE> <--config <FILE>|--certificate <FILE>>
    ! next: `grid evidence report --help` says what it takes
    [exit 2]
    $ grid signals render --secrets
    ! error: the following required arguments were not provided:
    !   --site <NODE>
    ! Usage: grid signals render [OPTIONS]
    ! next: `grid signals render --help` says what it takes
    [exit 2]
    $ grid hold
    ! error: the following required arguments were not provided:
    !   <NODE>
    !   <REASON>
    ! Usage: grid hold [OPTIONS] <NODE> <REASON>
    ! next: `grid hold --help` says what it takes
    [exit 2]
    ");
}
