//! What an operator sees of pushes, on machines that are folders of this one.

mod support;

use support::{all_current, events, three_machines, told, with_billing};

#[test]
fn a_good_push_flushes_the_provider_by_name_and_a_second_one_transfers_nothing() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    let assigned = bench.grid(&["assign", "billing", "borealis"]).exits(0);
    let first = bench.grid(&["push", "borealis"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 1);
    let second = bench.grid(&["push", "borealis"]).exits(0);
    insta::assert_snapshot!(assigned.all() + &first.all() + &second.all(), @r#"
    $ grid assign billing borealis
    assigned billing to borealis
    minted accounts/billing, generation 1
    behind now: atlas
    ! next: the next push carries it: `grid push --behind`
    $ grid push borealis
    try  push 2  maria@lap3
    round 0  borealis  named    billing waits for accounts on atlas
    round 1  atlas     flushed  grants of accounts: +billing          sent [TIME] s, loaded accounts
    round 2  borealis  named    billing comes, 8 files                sent [TIME] s, check ok
    done: 2 machines sent, 0 failed, 1 already current
    $ grid push borealis
    try  push 3  maria@lap3
    contact  borealis  named    verified, nothing to mend
    done: 0 machines sent, 0 failed, 3 already current
    "#);
}

#[test]
fn a_consumer_whose_provider_is_on_hold_waits_and_the_hint_is_what_blocks_it() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    let held = bench
        .grid(&["hold", "atlas", "in the rack on Monday"])
        .exits(0);
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    let pushed = bench.grid(&["push", "borealis"]).exits(4);
    let status = bench.grid(&["status", "--exit-code"]).exits(6);
    assert_eq!(bench.read("machines/atlas/accounts"), "");
    insta::assert_snapshot!(held.all() + &pushed.all() + &status.all(), @r#"
    $ grid hold atlas in the rack on Monday
    atlas is on hold: in the rack on Monday
    ! next: nothing goes to atlas until `grid unhold atlas`
    $ grid push borealis
    try  push 2  maria@lap3
    round 0  borealis  named    billing waits for accounts on atlas
    contact  borealis  named    verified, nothing to mend
    incomplete: 0 machines sent, 0 failed, 1 already current, 1 waits, 1 on hold: atlas (in the rack on Monday)
    waits       borealis  billing waits for accounts on atlas: atlas is on hold (in the rack on Monday)
    on hold     atlas     its list of accounts is not what it should be
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: `grid unhold atlas` ends its hold, `grid push --behind` then sends what it lacks
    [exit 4]
    $ grid status --exit-code
    try  last push 2
    atlas     on hold      in the rack on Monday; its list of accounts is not what it should be; grants of accounts: +billing
    borealis  waits        billing waits for accounts on atlas: atlas is on hold (in the rack on Monday)
    cygnus    current
    3 machines: 1 current, 1 waits, 1 on hold
    ! next: `grid unhold atlas` ends its hold
    [exit 6]
    "#);
    bench.grid(&["unhold", "atlas"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_named_machine_on_hold_is_exit_4_and_a_tag_names_those_that_are_not() {
    let bench = three_machines();
    bench.edit(
        "[nodes.cygnus]",
        "[nodes.cygnus]\ntags = [\"eu\"]\nhold = \"disk\"",
    );
    bench.edit("[nodes.atlas]", "[nodes.atlas]\ntags = [\"eu\"]");
    let named = bench.grid(&["push", "cygnus", "atlas"]).exits(4);
    let tagged = bench.grid(&["push", "@eu"]).exits(0);
    insta::assert_snapshot!(named.all() + &tagged.all(), @r#"
    $ grid push cygnus atlas
    try  push 1  maria@lap3
    round 0  atlas     named    never sent                            sent [TIME] s, loaded accounts
    round 1  borealis  flushed  never sent                            sent [TIME] s
    incomplete: 2 machines sent, 0 failed, 0 already current, 1 on hold: cygnus (disk)
    on hold     cygnus  it was named, and not sent to
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: `grid unhold cygnus` ends its hold, `grid push --behind` then sends what it lacks
    [exit 4]
    $ grid push @eu
    try  push 2  maria@lap3
    contact  atlas     named    verified, nothing to mend
    done: 0 machines sent, 0 failed, 2 already current, 1 on hold: cygnus (disk)
    "#);
}

#[test]
fn a_failed_push_says_what_failed_what_was_put_back_and_what_was_not_started() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    let script = bench.read("accounts.sh");
    bench.file(
        "accounts.sh",
        &script.replace("load)", "load)\n\techo \"disk full\"\n\texit 1"),
    );
    let failed = bench.grid(&["push", "borealis"]).exits(4);
    let status = bench.grid(&["status"]).exits(0);
    insta::assert_snapshot!(failed.all() + &status.all(), @"
    $ grid push borealis
    try  push 2  maria@lap3
    round 0  borealis  named    billing waits for accounts on atlas
    round 1  atlas     flushed  grants of accounts: +billing; 1 file of accounts changed  failed at load of accounts: it exited with 1
             accounts | disk full
             put back: the previous release is in force again
    contact  borealis  named    verified, nothing to mend
    incomplete: 0 machines sent, 1 failed, 1 already current, 1 waits
    failed      atlas     failed at load of accounts: it exited with 1
    waits       borealis  billing waits for accounts on atlas: atlas failed
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: mend what is wrong on atlas, then `grid push --behind` finishes this
    [exit 4]
    $ grid status
    try  last push 2
    atlas     rolled back  grants of accounts: +billing; 1 file of accounts changed; push 2: failed at load of accounts: it exited with 1
    borealis  waits        billing waits for accounts on atlas: atlas failed
    cygnus    current
    3 machines: 1 current, 1 waits, 1 rolled back
    ! next: `grid history 2` says why atlas was rolled back
    ! next: `grid push --behind` sends to every machine that is behind
    ");
    bench.file("accounts.sh", &script);
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 1);
}

#[test]
fn once_the_cause_is_gone_pushing_who_is_behind_heals_what_was_rolled_back() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    // The provider is down: nothing that is composed changes when it comes back.
    std::fs::remove_file(bench.path("machines/atlas/accounts")).unwrap();
    std::fs::create_dir(bench.path("machines/atlas/accounts")).unwrap();
    bench.grid(&["push", "borealis"]).exits(4);
    std::fs::remove_dir_all(bench.path("machines/atlas/accounts")).unwrap();
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 1);
}

#[test]
fn an_apply_that_fails_is_rolled_back_and_its_output_is_shown_under_the_services_name() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    bench.edit(
        "[services.notice]\n",
        "[services.notice]\napply = [\"sh\", \"-c\", \"echo no such printer; exit 3\"]\n",
    );
    bench.file("notice.txt", "changed\n");
    let failed = bench.grid(&["push", "cygnus"]).exits(4);
    insta::assert_snapshot!(failed.all(), @r#"
    $ grid push cygnus
    try  push 2  maria@lap3
    round 0  cygnus    named    1 file of notice changed; command of notice changed: apply  failed at apply of notice: it exited with 3
             notice | no such printer
             put back: the previous release is in force again
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  failed at apply of notice: it exited with 3
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: mend what is wrong on cygnus, then `grid push --behind` finishes this
    [exit 4]
    "#);
}

#[test]
fn a_machine_that_holds_what_another_store_sent_is_fenced_until_it_is_taken_over() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    std::fs::rename(bench.path(".grid"), bench.path("lost")).unwrap();
    let fenced = bench.grid(&["push", "cygnus"]).exits(8);
    insta::assert_snapshot!(fenced.all(), @r#"
    $ grid push cygnus
    try  push 1  maria@lap3
    round 0  cygnus    named    never sent                            fenced: it holds what another store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             nothing was changed there
    round 1  atlas     flushed  never sent                            fenced: it holds what another store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             nothing was changed there
    round 1  borealis  flushed  never sent                            fenced: it holds what another store sent
             its log | [WHEN] maria@lap3 grid 0.1.0 push --all: [SHORT] applied
             nothing was changed there
    fenced: 0 machines sent, 3 failed, 0 already current
    failed      atlas     fenced: it holds what another store sent
    failed      borealis  fenced: it holds what another store sent
    failed      cygnus    fenced: it holds what another store sent
    ! exit 8: a machine does not hold what this store sent to it last
    ! next: atlas, borealis, cygnus hold what push 1 of store [STORE] sent: find out who that was (their logs are above) and push from that store; or `grid push atlas borealis cygnus --take-over` replaces it, and the other store is then fenced in its turn. If that was this mesh's own `.grid`, which is lost: put its backup back in its place, or `grid push --all --take-over`
    [exit 8]
    "#);
    bench.grid(&["push", "--all", "--take-over"]).exits(0);
    bench.grid(&["push", "--all"]).exits(0);
}

#[test]
fn rounds_that_run_out_are_exit_5_and_the_next_push_goes_on() {
    let bench = three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    let first = bench
        .grid(&["push", "borealis", "--max-rounds", "1"])
        .exits(5);
    let second = bench.grid(&["push", "--behind"]).exits(0);
    insta::assert_snapshot!(first.all() + &second.all(), @r#"
    $ grid push borealis --max-rounds 1
    try  push 2  maria@lap3
    round 0  borealis  named    billing waits for accounts on atlas
    round 1  atlas     flushed  grants of accounts: +billing          sent [TIME] s, loaded accounts
    out of rounds: 1 machine sent, 0 failed, 1 already current, 1 behind
    behind      borealis  billing comes, 8 files
    ! exit 5: rounds ran out
    ! next: `grid push --behind` goes on from here; --max-rounds sets how many rounds a push may take
    [exit 5]
    $ grid push --behind
    try  push 3  maria@lap3
    round 0  borealis  flushed  billing comes, 8 files                sent [TIME] s, check ok
    done: 1 machine sent, 0 failed, 2 already current
    "#);
}

#[test]
fn a_dry_run_says_what_would_be_minted_and_sent_and_does_neither() {
    let bench = with_billing();
    let before = bench.grid(&["push", "--all", "--dry-run"]).exits(0);
    assert!(!bench.path(".grid").exists() && !bench.path("machines").exists());
    bench.grid(&["push", "--all"]).exits(0);
    bench.file("notice.txt", "changed\n");
    let status = bench.grid(&["status", "--json"]).exits(0);
    let after = bench.grid(&["push", "--behind", "--dry-run"]).exits(0);
    assert_eq!(bench.grid(&["status", "--json"]).raw(), status.raw());
    insta::assert_snapshot!(before.all() + &after.all(), @r#"
    $ grid push --all --dry-run
    try  dry run of push 1  maria@lap3
    to mint  accounts/billing, generation 1
    round 0  atlas     named    never sent                            would be sent 5 files, 1.4 KiB
    round 0  borealis  named    billing waits for accounts on atlas
    round 0  cygnus    named    never sent                            would be sent 1 file, 27 bytes
    round 1  borealis  named    never sent                            would be sent 8 files, 677 bytes
    dry run: 3 machines to send, 0 failed, 0 already current
    ! nothing was minted, sent or written
    $ grid push --behind --dry-run
    try  dry run of push 2  maria@lap3
    round 0  cygnus    flushed  1 file of notice changed              would be sent 1 file, 8 bytes
    dry run: 1 machine to send, 0 failed, 2 already current
    ! nothing was minted, sent or written
    "#);
}

#[test]
fn json_is_one_event_a_line_and_ends_with_the_exit_code() {
    let bench = with_billing();
    let pushed = bench.grid(&["push", "--all", "--json"]).exits(0);
    let events = events(&pushed);
    let names: Vec<&str> = events
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"began"));
    assert_eq!(names.iter().filter(|name| **name == "sent").count(), 3);
    assert!(names.contains(&"waits") && names.contains(&"minted"));
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["exit"]),
        (&"ended".into(), &0.into())
    );
}

#[test]
fn quiet_still_names_who_was_sent_to_and_who_is_not_current() {
    let bench = three_machines();
    bench.edit("[nodes.cygnus]", "[nodes.cygnus]\nhold = \"disk\"");
    let pushed = bench.grid(&["push", "--all", "--quiet"]).exits(0);
    insta::assert_snapshot!(pushed.all(), @r#"
    $ grid push --all --quiet
    round 0  atlas     named    never sent                            sent [TIME] s, loaded accounts
    round 0  borealis  named    never sent                            sent [TIME] s
    done: 2 machines sent, 0 failed, 0 already current, 1 on hold: cygnus (disk)
    "#);
}

#[test]
fn no_secret_is_written_anywhere_in_the_clear_but_where_it_must_be() {
    let bench = with_billing();
    let mut printed = bench.grid(&["push", "--all", "-v"]).exits(0).bytes();
    let shown = bench
        .grid(&["provisions", "--show-secrets", "--json"])
        .exits(0);
    let view: serde_json::Value = serde_json::from_slice(shown.raw()).unwrap();
    let secret = view["provisions"][0]["generations"][0]["secret"]
        .as_str()
        .unwrap();
    for arguments in [
        &["status", "--json"][..],
        &["provisions", "--json"],
        &["compose", "borealis", "--json"],
        &["compose", "borealis", "--out", "out"],
        &["history", "--json"],
        &["push", "borealis", "-v", "--json"],
        &["rotate", "accounts/billing"],
    ] {
        printed.extend(bench.grid(arguments).exits(0).bytes());
    }
    let holds = |bytes: &[u8]| {
        bytes
            .windows(secret.len())
            .any(|part| part == secret.as_bytes())
    };
    assert!(holds(shown.raw()), "the search finds what is there");
    assert!(!holds(&printed));
    let files: Vec<String> = bench
        .everything()
        .into_iter()
        .filter(|(_, bytes)| holds(bytes))
        .map(|(path, _)| path.to_str().unwrap().to_owned())
        .collect();
    assert!(!files.is_empty(), "the search finds what is there");
    for file in files {
        assert!(
            file.contains("machines/borealis/") && file.ends_with("bindings/accounts/password"),
            "{file} holds the secret"
        );
    }
}

#[test]
fn what_a_provider_loads_is_told_apart_from_what_it_applies() {
    let bench = all_current();
    bench.edit(
        "[services.accounts.provides]",
        "apply = [\"true\"]\n\n[services.accounts.provides]",
    );
    let script = bench.read("accounts.sh");
    let applied = bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    let loaded = bench.grid(&["push", "--behind"]).exits(0);
    bench.file("accounts.sh", &format!("{script}# edited\n"));
    let again = bench.grid(&["push", "--behind", "--json"]).exits(0);
    let sent = events(&again)
        .into_iter()
        .find(|event| event["event"] == "sent");
    let applied_view = &sent.unwrap()["applied"];
    assert_eq!(applied_view["loaded"], serde_json::json!(["accounts"]));
    assert_eq!(applied_view["applied"], serde_json::json!(["accounts"]));
    insta::assert_snapshot!(told(&[applied, loaded]), @"
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  atlas     flushed  command of accounts changed: apply    sent [TIME] s, loaded accounts, applied accounts
    done: 1 machine sent, 0 failed, 2 already current
    $ grid push --behind
    try  push 3  maria@lap3
    round 0  atlas     flushed  grants of accounts: +billing (generation 2)  sent [TIME] s, loaded accounts
    round 1  borealis  flushed  billing gets generation 2 of accounts  sent [TIME] s, check ok
    round 2  atlas     flushed  grants of accounts: -billing (generation 1)  sent [TIME] s, loaded accounts
    done: 2 machines sent, 0 failed, 1 already current
    ");
}

#[test]
fn a_named_machine_that_is_sent_to_for_another_reason_has_its_list_looked_at() {
    let bench = all_current();
    bench.edit(
        "node = \"atlas\"\n",
        "node = \"atlas\"\nlimits = { test = \"10s\" }\n",
    );
    let edited_by_hand = |n: u32| {
        bench.file("machines/atlas/accounts", "");
        bench.edit(
            &format!("test = \"{}s\"", 9 + n),
            &format!("test = \"{}s\"", 10 + n),
        );
    };
    edited_by_hand(1);
    let flushed = bench.grid(&["push", "cygnus"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts"), "");
    edited_by_hand(2);
    let dry = bench.grid(&["push", "atlas", "--dry-run"]).exits(0);
    let named = bench.grid(&["push", "atlas"]).exits(0);
    assert_eq!(bench.read("machines/atlas/accounts").lines().count(), 1);
    let history = bench.grid(&["history", "3"]).exits(0);
    let again = bench.grid(&["push", "atlas"]).exits(0);
    insta::assert_snapshot!(told(&[flushed, dry, named, history, again]), @"
    $ grid push cygnus
    try  push 2  maria@lap3
    round 1  atlas     flushed  settings of accounts changed: time limits  sent [TIME] s
    contact  cygnus    named    verified, nothing to mend
    done: 1 machine sent, 0 failed, 2 already current
    $ grid push atlas --dry-run
    try  dry run of push 3  maria@lap3
    round 0  atlas     named    settings of accounts changed: time limits  would be sent, no file that it lacks
    contact  atlas     named    would be verified and checked
    dry run: 1 machine to send, 0 failed, 2 already current
    ! nothing was minted, sent or written
    $ grid push atlas
    try  push 3  maria@lap3
    round 0  atlas     named    settings of accounts changed: time limits  sent [TIME] s
    contact  atlas     named    mended, loaded accounts
             accounts: it did not admit exactly its list
    done: 1 machine sent, 0 failed, 2 already current
    $ grid history 3
    [WHEN]  ok  push 3  maria@lap3  grid push atlas
          identity [KEY]
          sent: atlas
    $ grid push atlas
    try  push 4  maria@lap3
    contact  atlas     named    verified, nothing to mend
    done: 0 machines sent, 0 failed, 3 already current
    ");
}

#[test]
fn of_several_named_machines_the_providers_are_contacted_first() {
    let bench = all_current();
    bench.file("machines/atlas/accounts", "");
    let pushed = bench.grid(&["push", "borealis", "atlas"]).exits(0);
    insta::assert_snapshot!(pushed.all(), @r#"
    $ grid push borealis atlas
    try  push 2  maria@lap3
    contact  atlas     named    mended, loaded accounts
             accounts: it did not admit exactly its list
    contact  borealis  named    verified, nothing to mend
    done: 0 machines sent, 0 failed, 3 already current
    "#);
}

#[test]
fn a_contact_that_fails_says_that_mending_was_tried() {
    let bench = all_current();
    bench.edit(
        "[services.notice]\n",
        "[services.notice]\napply = [\"true\"]\ncheck = [\"test\", \"-e\", \"../../../../../well\"]\nlimits = { check = \"1s\" }\n",
    );
    bench.file("machines/cygnus/well", "");
    bench.grid(&["push", "cygnus"]).exits(0);
    std::fs::remove_file(bench.path("machines/cygnus/well")).unwrap();
    let unwell = bench.grid(&["push", "cygnus"]).exits(4);
    let history = bench.grid(&["history", "3"]).exits(0);
    let json = bench.grid(&["push", "cygnus", "--json"]).exits(4);
    let failed = events(&json)
        .into_iter()
        .find(|event| event["event"] == "failed");
    assert_eq!(failed.unwrap()["problem"]["how"], "unwell");
    insta::assert_snapshot!(told(&[unwell, history]), @"
    $ grid push cygnus
    try  push 3  maria@lap3
    contact  cygnus    named    failed at check of notice: it did not hold within 1 s; it exited with 1
             it holds what it held; mending it was tried, and came as far as that
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      cygnus  failed at check of notice: it did not hold within 1 s; it exited with 1
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: cygnus: `check` of [services.notice] printed nothing: have it say why it fails
    ! next: mend what is wrong on cygnus, then `grid push cygnus` finishes this
    [exit 4]
    $ grid history 3
    [WHEN]  exit 4  push 3  maria@lap3  grid push cygnus
          identity [KEY]
          verified: cygnus (failed at check of notice: it did not hold within 1 s; it exited with 1)
    ");
}

#[test]
fn a_machine_on_hold_that_owes_somebody_is_no_good_end_of_a_status_either() {
    let bench = all_current();
    bench.grid(&["hold", "atlas", "in the rack"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(4);
    let status = bench.grid(&["status", "--exit-code"]).exits(6);
    let other = bench.grid(&["status", "cygnus", "--exit-code"]).exits(0);
    let json = bench.grid(&["status", "atlas", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    assert_eq!(view["machines"][0]["owes"], serde_json::json!(["accounts"]));
    insta::assert_snapshot!(told(&[status, other]), @r#"
    $ grid status --exit-code
    try  last push 2
    atlas     on hold      in the rack; its list of accounts is not what it should be; grants of accounts: +billing (generation 2)
    borealis  current
    cygnus    current
    3 machines: 2 current, 1 on hold
    ! next: `grid unhold atlas` ends its hold
    [exit 6]
    $ grid status cygnus --exit-code
    try  last push 2
    cygnus  current
    1 machine: 1 current
    "#);
}
