//! What an operator is told of accounts that are not as they should be elsewhere than where it shows.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test may fall"
)]

mod support;

use support::schema::hold;
use support::{Bench, all_current, three_machines, told};

/// The accounts that the host of atlas admits, without their hashes.
fn admitted(bench: &Bench) -> Vec<String> {
    let text = bench.read("machines/atlas/accounts");
    let names = text.lines().map(|line| line.split(' ').nth(1).unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn a_consumer_whose_account_was_removed_at_its_provider_has_that_one_named_and_naming_it_mends_it()
{
    let bench = all_current();
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nlimits = { check = \"1s\" }\n",
    );
    bench.grid(&["push", "--all"]).exits(0);
    // Somebody takes billing's account away, on atlas.
    bench.file("machines/atlas/accounts", "");
    let seen = bench.grid(&["push", "borealis"]).exits(4);
    // How often a check is tried within its second depends on the machine.
    let tried = vec![(r"  \(\d+ times\)", "")];
    insta::with_settings!({filters => tried}, {
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid push borealis
    try  push 3  maria@lap3
    contact  borealis  named    failed at check of billing: it did not hold within 1 s; it exited with 1
             billing | atlas refused try.billing.1
             it holds what it held; mending it was tried, and came as far as that
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      borealis  failed at check of billing: it did not hold within 1 s; it exited with 1
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: billing consumes accounts on atlas: if its account was changed or removed there, `grid push atlas` finds that and puts it back
    ! next: mend what is wrong on borealis, then `grid push borealis` finishes this
    [exit 4]
    "#);
    });
    let seen = bench.grid(&["push", "atlas"]).exits(0);
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid push atlas
    try  push 4  maria@lap3
    contact  atlas     named    mended, loaded accounts
             accounts: it did not admit exactly its list
    done: 0 machines sent, 0 failed, 3 already current
    "#);
    bench.grid(&["push", "borealis"]).exits(0);
    // The same where a send fails, which is rolled back.
    bench.file("machines/atlas/accounts", "");
    bench.file("login.sh", &format!("{}# edited\n", bench.read("login.sh")));
    let seen = bench.grid(&["push", "borealis"]).exits(4);
    let hint = "if its account was changed or removed there, `grid push atlas` finds that and puts it back";
    assert!(seen.all().contains(hint), "{}", seen.all());
    bench.grid(&["push", "atlas"]).exits(4);
    bench.grid(&["push", "--behind"]).exits(0);
    // Who has looked there in this push has nothing to look for.
    bench.file("login.sh", "exit 1\n");
    let seen = bench.grid(&["push", "atlas", "borealis"]).exits(4);
    assert!(!seen.all().contains("consumes"), "{}", seen.all());
}

#[test]
fn an_old_secret_that_a_machine_on_hold_keeps_open_is_told_by_all_who_know_of_it() {
    let bench = all_current();
    bench
        .grid(&["hold", "borealis", "in the rack on Monday"])
        .exits(0);
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    let seen = bench.grid(&["push", "--behind"]).exits(0);
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  atlas     flushed  grants of accounts: +billing (generation 2)  sent [TIME] s, loaded accounts
    done: 1 machine sent, 0 failed, 1 already current, 1 on hold: borealis (in the rack on Monday)
    on hold     borealis  it has the old secret of accounts/billing, which stays admitted until it has the new one
    ! next: the old secret of accounts/billing goes once borealis has the new: `grid unhold borealis`, then `grid push --behind`; or `grid rotate accounts/billing --cut` and `grid push --behind` close the old at once, and shut out what is on borealis
    "#);
    assert_eq!(admitted(&bench), ["try.billing.1", "try.billing.2"]);
    let seen = bench.grid(&["status"]).exits(0);
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid status
    try  last push 2
    atlas     current
    borealis  on hold      in the rack on Monday; it has the old secret of accounts/billing, which stays admitted until it has the new one; billing gets generation 2 of accounts
    cygnus    current
    3 machines: 2 current, 1 on hold
    ! next: the old secret of accounts/billing goes once borealis has the new: `grid unhold borealis`, then `grid push --behind`; or `grid rotate accounts/billing --cut` and `grid push --behind` close the old at once, and shut out what is on borealis
    ! next: `grid unhold borealis` ends its hold
    "#);
    let seen = bench.grid(&["provisions"]).exits(0);
    insta::assert_snapshot!(seen.all(), @r#"
    $ grid provisions
    accounts/billing  generation 1  live  admitted on atlas  used on borealis, and so kept admitted: borealis is on hold
                      generation 2  live  admitted on atlas  not used
    ! next: the old secret of accounts/billing goes once borealis has the new: `grid unhold borealis`, then `grid push --behind`; or `grid rotate accounts/billing --cut` and `grid push --behind` close the old at once, and shut out what is on borealis
    "#);
    for (schema, arguments) in [
        ("status", &["status", "--json"][..]),
        ("provisions", &["provisions", "--json"]),
        ("push", &["push", "--behind", "--json"]),
    ] {
        let seen = bench.grid(arguments).exits(0);
        let values = serde_json::Deserializer::from_slice(seen.raw()).into_iter();
        hold(schema, &values.map(Result::unwrap).collect::<Vec<_>>());
    }
    // One way to end it: the machine has the new one.
    bench.grid(&["unhold", "borealis"]).exits(0);
    let seen = bench.grid(&["push", "--behind"]).exits(0);
    assert!(!seen.all().contains("old secret"), "{}", seen.all());
    assert_eq!(admitted(&bench), ["try.billing.2"]);
    // The other one: the old secret is closed at once.
    bench.grid(&["hold", "borealis", "stolen"]).exits(0);
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench
        .grid(&["rotate", "accounts/billing", "--cut"])
        .exits(0);
    let seen = bench.grid(&["push", "--behind"]).exits(0);
    assert!(!seen.all().contains("old secret"), "{}", seen.all());
    assert_eq!(admitted(&bench), ["try.billing.4"]);
    for arguments in [&["status"][..], &["provisions"]] {
        let seen = bench.grid(arguments).exits(0).all();
        assert!(!seen.contains("old secret"), "{seen}");
    }
}

/// Declares `accounts` as a RabbitMQ.
fn as_rabbitmq(bench: &Bench) {
    let declared = bench.read("mesh.toml");
    let (begin, rest) = declared.split_once("[services.accounts.provides]").unwrap();
    let (_, rest) = rest.split_once("[[services.accounts.files]]").unwrap();
    bench.file(
        "mesh.toml",
        &format!(
            "{begin}[services.accounts.provides]\nkind = \"rabbitmq\"\nhost = \"127.0.0.1\"\n\n[[services.accounts.files]]{rest}"
        ),
    );
}

#[test]
fn a_provider_of_another_kind_says_how_its_consumers_get_there() {
    let bench = all_current();
    let declared = bench.read("mesh.toml");
    as_rabbitmq(&bench);
    let seen = [
        bench.grid(&["status"]).exits(0),
        bench.grid(&["push", "--behind"]).exits(4),
    ];
    insta::assert_snapshot!(support::told(&seen), @r#"
    $ grid status
    try  last push 1
    atlas     behind       cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: no account goes over from one kind to another
    borealis  behind       cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: no account goes over from one kind to another
    cygnus    current
    3 machines: 1 current, 2 behind
    ! next: give accounts its `kind = "custom"` back, and declare the rabbitmq one as a service with a name of its own (once billing consumes that and was sent, accounts can go), then `grid push --behind` sends it
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  atlas     cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: no account goes over from one kind to another
    round 0  borealis  cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: no account goes over from one kind to another
    incomplete: 0 machines sent, 2 failed, 1 already current
    failed      atlas     cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: no account goes over from one kind to another
    failed      borealis  cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: no account goes over from one kind to another
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: give accounts its `kind = "custom"` back, and declare the rabbitmq one as a service with a name of its own (once billing consumes that and was sent, accounts can go), then `grid push --behind` finishes this
    [exit 4]
    "#);
    // And so it is done: a provider with another name, beside the first.
    let other = declared
        .split_once("[services.accounts]\n")
        .and_then(|(_, rest)| rest.split_once("# A consumer"))
        .unwrap()
        .0
        .replace("services.accounts", "services.logins")
        .replace("accounts.list.j2", "logins.list.j2");
    let list = bench.read("accounts.list.j2");
    bench.file("logins.list.j2", &list);
    let login = bench
        .read("login.sh")
        .replace("bindings/accounts", "bindings/logins");
    bench.file("login.sh", &login);
    let moved = declared.replace(
        "[services.billing]\n",
        &format!("[services.logins]\n{other}\n[services.billing]\n"),
    );
    bench.file(
        "mesh.toml",
        &moved.replace("consumes = [\"accounts\"]", "consumes = [\"logins\"]"),
    );
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(admitted(&bench), ["try.billing.1"]);
    bench.grid(&["unassign", "accounts"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn an_account_of_a_former_kind_that_nobody_uses_is_closed_before_the_kind_goes() {
    let bench = all_current();
    let declared = bench.read("mesh.toml");
    bench.grid(&["unassign", "billing"]).exits(0);
    as_rabbitmq(&bench);
    // While it is in use, then not any more.
    bench.grid(&["push", "--behind"]).exits(4);
    let seen = [
        bench.grid(&["push", "--behind"]).exits(4),
        bench.grid(&["status"]).exits(0),
    ];
    assert_eq!(admitted(&bench), ["try.billing.1"]);
    insta::assert_snapshot!(support::told(&seen), @r#"
    $ grid push --behind
    try  push 3  maria@lap3
    round 0  atlas     cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: nothing would close that account any more
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      atlas  cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: nothing would close that account any more
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: give accounts its `kind = "custom"` back until a push has closed the account of billing there, or, if the custom one is gone for good, take it as gone with `grid forget atlas --service accounts`, then `grid push --behind` finishes this
    [exit 4]
    $ grid status
    try  last push 3
    atlas     behind       cannot be composed: accounts was a custom provider when billing got its account there, and is declared as a rabbitmq one now: nothing would close that account any more
    borealis  current
    cygnus    current
    3 machines: 2 current, 1 behind
    ! next: give accounts its `kind = "custom"` back until a push has closed the account of billing there, or, if the custom one is gone for good, take it as gone with `grid forget atlas --service accounts`, then `grid push --behind` sends it
    "#);
    // As it says: with its kind, a push closes it.
    let other = bench.read("mesh.toml");
    bench.file("mesh.toml", &declared);
    bench.grid(&["unassign", "billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    assert!(admitted(&bench).is_empty());
    bench.file("mesh.toml", &other);
    let composed = bench.grid(&["compose", "atlas"]).exits(0).all();
    assert!(composed.contains("\"kind\": \"rabbitmq\""), "{composed}");
}

#[test]
fn a_provider_of_a_former_kind_that_is_gone_is_forgotten_as_told() {
    let bench = all_current();
    bench.grid(&["unassign", "billing"]).exits(0);
    as_rabbitmq(&bench);
    bench.grid(&["push", "--behind"]).exits(4);
    bench.grid(&["compose", "atlas"]).exits(3);
    bench
        .grid(&["forget", "atlas", "--service", "accounts", "--yes"])
        .exits(0);
    bench.grid(&["compose", "atlas"]).exits(0);
}

#[test]
fn what_a_contact_found_wrong_is_told_by_the_status_until_a_push_finds_it_well() {
    let bench = support::all_current();
    bench.file("machines/borealis/broken", "");
    bench.edit(
        "check = [\"sh\", \"{release}/login.sh\"]",
        "check = [\"sh\", \"-c\", \"test ! -e ../../../../../broken\"]\nlimits = { check = \"1s\" }",
    );
    std::fs::remove_file(bench.path("machines/borealis/broken")).unwrap();
    bench.grid(&["push", "borealis"]).exits(0);
    bench.file("machines/borealis/broken", "");
    bench.grid(&["push", "borealis"]).exits(4);
    let status = bench.grid(&["status", "--exit-code"]).exits(6);
    // A push of another machine does not look there.
    bench.grid(&["push", "cygnus"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(6);
    std::fs::remove_file(bench.path("machines/borealis/broken")).unwrap();
    bench.grid(&["push", "borealis"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
    insta::assert_snapshot!(status.all(), @r#"
    $ grid status --exit-code
    try  last push 3
    atlas     current
    borealis  current      but billing was not well when push 3 looked
    cygnus    current
    3 machines: 3 current
    ! next: `grid history 3` says what was wrong on borealis; once that is mended, `grid push borealis` looks again
    [exit 6]
    "#);
}

#[test]
fn what_a_contact_found_wrong_with_a_service_ends_with_a_later_release_in_which_it_was_checked() {
    let bench = support::all_current();
    bench.edit(
        "check = [\"sh\", \"{release}/login.sh\"]",
        "check = [\"sh\", \"-c\", \"test ! -e ../../../../../broken # 1\"]\nlimits = { check = \"1s\" }",
    );
    // Beside it a service that no later send looks at.
    bench.edit(
        "[services.notice]\nnode = \"cygnus\"\n",
        "[services.notice]\nnodes = [\"borealis\", \"cygnus\"]\ncheck = [\"true\"]\n",
    );
    bench.grid(&["push", "--behind"]).exits(0);
    bench.file("machines/borealis/broken", "");
    bench.grid(&["push", "borealis"]).exits(4);
    std::fs::remove_file(bench.path("machines/borealis/broken")).unwrap();
    bench.grid(&["push", "--behind"]).exits(0);
    let json = bench
        .grid(&["status", "--json", "--exit-code", "borealis"])
        .exits(6);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    assert_eq!(view["machines"][0]["unwell"], 3);
    let services = &view["machines"][0]["unwell_services"];
    assert_eq!(*services, serde_json::json!({ "billing": 3 }));
    bench.edit("broken # 1", "broken # 2");
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_machine_on_hold_whose_account_was_closed_is_said_to_be_shut_out() {
    let bench = support::all_current();
    bench.grid(&["hold", "borealis", "in the rack"]).exits(0);
    bench
        .grid(&["rotate", "accounts/billing", "--cut"])
        .exits(0);
    let cut = bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["revoke", "accounts/billing"]).exits(0);
    let revoked = bench.grid(&["push", "--behind"]).exits(0);
    let status = bench.grid(&["status", "--exit-code"]).exits(0);
    insta::assert_snapshot!(support::told(&[cut, revoked, status]), @r#"
    $ grid push --behind
    try  push 2  maria@lap3
    round 0  atlas     flushed  grants of accounts: +billing (generation 2) -billing (generation 1)  sent [TIME] s, loaded accounts
    done: 1 machine sent, 0 failed, 1 already current, 1 on hold: borealis (in the rack)
    on hold     borealis  billing there is shut out of accounts: the secret that it has was closed
    $ grid push --behind
    try  push 3  maria@lap3
    round 0  atlas     flushed  grants of accounts: -billing (generation 2)  sent [TIME] s, loaded accounts
    done: 1 machine sent, 0 failed, 1 already current, 1 on hold: borealis (in the rack)
    revoked     borealis  billing revoked; what runs there runs on while it is on hold
    on hold     borealis  billing there is shut out of accounts: the secret that it has was closed
    ! next: `grid issue accounts/billing` gives billing an account again
    $ grid status --exit-code
    try  last push 3
    atlas     current
    borealis  on hold      in the rack; billing there is shut out of accounts: the secret that it has was closed; billing leaves; billing is revoked
    cygnus    current
    3 machines: 2 current, 1 on hold
    ! next: `grid unhold borealis` ends its hold
    ! next: `grid issue accounts/billing` gives billing an account again
    "#);
}

#[test]
fn an_account_that_nobody_needs_any_more_is_shown_as_closed_and_its_secret_leaves_the_machine() {
    let bench = support::all_current();
    bench.grid(&["unassign", "billing"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    let provisions = bench.grid(&["provisions"]).exits(0);
    let releases = std::fs::read_dir(bench.path("machines/borealis/grid/releases")).unwrap();
    assert_eq!(releases.count(), 1);
    let no_consumer = bench.grid(&["revoke", "accounts/notice"]).exits(2);
    let no_number = bench.grid(&["history", "foo"]).exits(2);
    let what = "say the number of a push, as `grid history` lists them";
    assert!(no_number.all().contains(what), "{}", no_number.all());
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
    insta::assert_snapshot!(support::told(&[provisions, no_consumer]), @r#"
    $ grid provisions
    accounts/billing  generation 1  closed  not admitted  not used
    $ grid revoke accounts/notice
    ! error: notice does not consume accounts, and has no account on it
    ! next: `grid provisions` lists the accounts that there are
    [exit 2]
    "#);
}

#[test]
fn an_account_outside_of_the_mesh_is_shown_with_all_that_it_is_used_with_and_every_hint_on_it_works()
 {
    let bench = three_machines();
    bench.edit(
        "[services.notice]",
        "[services.broker]\nnode = \"cygnus\"\nprovides = { kind = \"rabbitmq\", host = \"10.0.0.3\" }\n\n[services.notice]",
    );
    let seen = [
        bench
            .grid(&["issue", "broker/ext", "accounts/ext", "--outside"])
            .exits(0),
        bench
            .grid(&["provisions", "*/ext", "--show-secrets"])
            .exits(0),
        bench
            .grid(&["provisions", "broker/*", "accounts/ext"])
            .exits(0),
        bench.grid(&["provisions", "pg/*"]).exits(2),
        bench.grid(&["provisions", "broker/billing"]).exits(2),
        bench.grid(&["revoke", "broker/ext"]).exits(0),
        bench.grid(&["revoke", "broker/ext"]).exits(0),
        bench.grid(&["rotate", "broker/ext"]).exits(2),
        bench.grid(&["rotate", "broker/ext", "broker/ex*"]).exits(2),
        bench.grid(&["issue", "broker/ext", "--outside"]).exits(0),
        bench.grid(&["unhold", "cygnus"]).exits(0),
    ];
    let secrets = vec![
        (r"password( +)\S+", "password$1[SECRET]"),
        (r"ext\.1:[^@]+@", "ext.1:[SECRET]@"),
    ];
    insta::with_settings!({filters => secrets}, {
        insta::assert_snapshot!(told(&seen), @r#"
        $ grid issue broker/ext accounts/ext --outside
        minted accounts/ext, generation 1
        minted broker/ext, generation 1
        behind now: atlas, borealis, cygnus
        ! next: the next push carries it: `grid push --behind`
        $ grid provisions */ext --show-secrets
        accounts/ext  generation 1  live  not admitted  not used, by hand
                      host          atlas
                      port          7000
                      username      try.ext.1
                      password      [SECRET]
                      provider      custom
                      type          custom
        broker/ext    generation 1  live  not admitted  not used, by hand
                      host          10.0.0.3
                      port          5672
                      username      try.ext.1
                      password      [SECRET]
                      provider      rabbitmq
                      type          rabbitmq
                      virtual-host  ext
                      uri           amqp://try.ext.1:[SECRET]@10.0.0.3:5672/ext
        $ grid provisions broker/* accounts/ext
        accounts/ext  generation 1  live  not admitted  not used, by hand
        broker/ext    generation 1  live  not admitted  not used, by hand
        $ grid provisions pg/*
        ! error: "pg/*" matches no account
        ! next: `grid provisions` lists those that there are
        [exit 2]
        $ grid provisions broker/billing
        ! error: billing does not consume broker, and has no account on it
        ! next: `grid provisions` lists the accounts that there are
        [exit 2]
        $ grid revoke broker/ext
        revoked broker/ext: the next push closes the account; `grid issue broker/ext --outside` gives ext a new one
        behind now: atlas, borealis, cygnus
        ! next: the next push carries it: `grid push --behind`
        $ grid revoke broker/ext
        broker/ext was revoked before; `grid issue broker/ext --outside` gives ext a new one
        nothing was changed; behind as before: atlas, borealis, cygnus
        ! next: `grid push --behind` sends to every machine that is behind
        $ grid rotate broker/ext
        ! error: broker/ext is revoked
        ! next: `grid issue broker/ext --outside` gives it a new generation
        [exit 2]
        $ grid rotate broker/ext broker/ex*
        ! error: broker/ext is revoked
        ! next: `grid issue broker/ext --outside` gives it a new generation
        [exit 2]
        $ grid issue broker/ext --outside
        minted broker/ext, generation 2
        behind now: atlas, borealis, cygnus
        ! next: the next push carries it: `grid push --behind`
        $ grid unhold cygnus
        cygnus was not on hold
        nothing was changed; behind as before: atlas, borealis, cygnus
        ! next: `grid push --behind` sends to every machine that is behind
        "#);
    });
}

#[test]
fn a_step_that_was_not_done_in_time_has_its_limit_named_and_nobody_elses_accounts() {
    let bench = all_current();
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nlimits = { test = \"1s\", apply = \"1s\" }\napply = [\"sleep\", \"60\"]\n",
    );
    let apply = bench.grid(&["push", "borealis"]).exits(4);
    bench.edit("apply = [", "test = [");
    let test = bench.grid(&["push", "borealis"]).exits(4);
    insta::assert_snapshot!(told(&[apply, test]), @r#"
    $ grid push borealis
    try  push 2  maria@lap3
    round 0  borealis  named    command of billing changed: apply; settings of billing changed: time limits  failed at apply of billing: it was not done within 1 s
             put back: the previous release is in force again
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      borealis  failed at apply of billing: it was not done within 1 s
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: borealis: if it only takes longer: `limits = { apply = "…" }` of [services.billing] gives it more time
    ! next: mend what is wrong on borealis, then `grid push --behind` finishes this
    [exit 4]
    $ grid push borealis
    try  push 3  maria@lap3
    round 0  borealis  named    command of billing changed: test; settings of billing changed: time limits  failed at test of billing: it was not done within 1 s
             nothing was changed there
    incomplete: 0 machines sent, 1 failed, 2 already current
    failed      borealis  failed at test of billing: it was not done within 1 s
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: borealis: if it only takes longer: `limits = { test = "…" }` of [services.billing] gives it more time
    ! next: mend what is wrong on borealis, then `grid push --behind` finishes this
    [exit 4]
    "#);
}
