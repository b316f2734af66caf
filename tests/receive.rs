//! The receiving script, under three shells, over the courier `local`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;

use std::fs;
use std::path::Path;

use delivery_bed::{Bed, Service, Shell, bundle, failure, grants, name, service, token};
use grid::delivery::{FailedStep, Outcome, Progress};

under_every_shell!(
    a_first_send_puts_everything_in_force,
    a_second_contact_transfers_and_applies_nothing,
    only_what_changed_is_sent_and_applied,
    an_edited_file_that_is_carried_over_is_sent_after_all,
    what_was_edited_by_hand_is_mended_at_a_contact,
    a_list_that_was_lost_is_loaded_again_at_a_contact,
    what_was_loaded_is_told_apart_from_what_took_its_files,
    a_service_whose_file_was_edited_is_applied_again_by_a_send_too,
    the_fence_lets_in_whom_it_knows_and_nobody_else,
    a_failing_test_changes_nothing,
    a_failing_apply_is_rolled_back_and_the_newer_list_stays,
    a_failing_load_and_a_failing_check_are_told_apart,
    a_first_release_that_fails_is_removed_altogether,
    a_roll_back_that_fails_is_uncertain_until_it_is_asked,
    a_command_that_hangs_is_ended_by_its_limit,
    output_is_bounded_cleaned_and_shown,
    of_a_long_output_the_last_lines_are_shown_where_the_reason_stands,
    a_daemon_left_behind_holds_nothing_up,
    no_process_of_ours_stays_behind,
    installed_files_are_saved_restored_and_removed,
    a_file_that_becomes_a_folder_and_the_reverse_is_delivered_and_rolled_back,
    what_is_taken_over_is_applied_though_its_release_lies_there_still,
    a_contact_that_takes_over_looks_at_what_the_other_store_left_alone,
    a_provider_that_leaves_is_told_to_admit_nobody_first,
    a_provider_that_goes_on_elsewhere_is_told_nothing_when_it_leaves_or_is_put_back,
    what_was_said_to_be_gone_goes_whatever_its_remove_says,
    a_provider_whose_own_file_changes_loads_its_list_after_it_took_that,
    a_provider_that_runs_is_told_before_it_is_applied,
    a_check_is_repeated_until_it_holds,
    a_dead_holder_of_the_lock_is_taken_over_and_a_live_one_is_not,
    a_current_that_is_a_folder_is_left_alone,
    a_machine_that_lacks_a_tool_says_which,
    an_owner_that_does_not_exist_is_named_before_anything_changes,
    what_nobody_else_has_comes_from_the_machine_itself,
);

fn a_first_send_puts_everything_in_force(shell: Shell) {
    let mut bed = Bed::new(shell);
    let odd = "-rf it's \"odd\" ✓";
    let applied = bed.applied(&[
        service("app")
            .file(odd, "odd")
            .file("conf/app.toml", "a = 1\n")
            .logged(&bed),
        service("broker").grants(&["app"], &bed).logged(&bed),
    ]);
    assert_eq!(applied.files, 12);
    assert_eq!(bed.read(&format!("services/app/{odd}")).unwrap(), "odd");
    assert_eq!(
        bed.mode(bed.current().join("services/app/conf/app.toml")),
        0o644
    );
    assert_eq!(
        bed.mode(bed.current().join("services/broker/grants.txt")),
        0o600
    );
    assert_eq!(bed.mode(bed.root.join("releases")), 0o755);
    assert_eq!(
        bed.log(),
        [
            "apply app",
            "check app",
            "apply broker",
            "check broker",
            "load broker"
        ]
    );
    let holding = bed.ask();
    assert_eq!(holding.token, bed.held);
    assert_eq!(holding.manifest, bed.base);
    assert!(holding.lists.is_empty());
    assert!(
        holding
            .log
            .iter()
            .any(|line| line.contains("maria@laptop push 1") && line.ends_with("applied")),
        "{:?}",
        holding.log
    );
    assert!(!bed.root.join("run").exists());
}

fn a_second_contact_transfers_and_applies_nothing(shell: Shell) {
    let mut bed = Bed::new(shell);
    let services = [
        service("app").file("a", "1").logged(&bed),
        service("broker").grants(&["app"], &bed).logged(&bed),
    ];
    bed.applied(&services);
    bed.log();
    let applied = bed.applied(&services);
    assert_eq!((applied.bytes, applied.files), (0, 0));
    assert!(
        applied.applied.is_empty() && applied.mended.is_empty(),
        "{applied:?}"
    );
    assert_eq!(bed.log(), ["check app", "check broker"]);
    assert_eq!(bed.ask().token, bed.held);
}

fn only_what_changed_is_sent_and_applied(shell: Shell) {
    let mut bed = Bed::new(shell);
    let app = service("app").file("a", "1").file("b", "2").logged(&bed);
    let other = service("other").file("a", "x").logged(&bed);
    bed.applied(&[app.clone(), other.clone()]);
    bed.log();
    let app = service("app").file("a", "1").file("b", "3").logged(&bed);
    let applied = bed.applied(&[app, other]);
    assert_eq!((applied.bytes, applied.files), (1, 1));
    assert_eq!(bed.log(), ["apply app", "check app"]);
    assert_eq!(bed.read("services/app/b").unwrap(), "3");
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    assert_eq!(bed.releases(), 2);
    let _ = (
        FailedStep::Apply,
        Path::new(""),
        fs::metadata("/").is_ok(),
        Option::<Outcome>::None,
    );
}

fn an_edited_file_that_is_carried_over_is_sent_after_all(shell: Shell) {
    let mut bed = Bed::new(shell);
    let app = |b: &str| service("app").file("a", "1").file("b", b);
    bed.applied(&[app("2").logged(&bed)]);
    fs::write(bed.current().join("services/app/a"), "edited").unwrap();
    bed.applied(&[app("3").logged(&bed)]);
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    fs::remove_file(bed.current().join("services/app/a")).unwrap();
    bed.applied(&[app("4").logged(&bed)]);
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    // What the controller thinks the machine holds may be wrong altogether.
    bed.base = Some(delivery_bed::bundle(&[app("5")]).manifest);
    bed.applied(&[app("6").logged(&bed)]);
    assert_eq!(bed.read("services/app/b").unwrap(), "6");
}

fn what_was_edited_by_hand_is_mended_at_a_contact(shell: Shell) {
    let mut bed = Bed::new(shell);
    let services = [
        service("app").file("a", "1").file("b", "2").logged(&bed),
        service("other").file("a", "1").logged(&bed),
    ];
    bed.applied(&services);
    bed.log();
    let folder = bed.current().join("services/app");
    fs::write(folder.join("a"), "edited").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(folder.join("b"), open).unwrap();
    let applied = bed.applied(&services);
    assert_eq!(
        applied.mended,
        [
            "services/app/a was not as sent",
            "services/app/b was not as sent"
        ]
    );
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    assert_eq!(bed.mode(folder.join("b")), 0o644);
    assert_eq!(bed.log(), ["apply app", "check app", "check other"]);
    let applied = bed.applied(&services);
    assert!(applied.mended.is_empty(), "{:?}", applied.mended);
}

fn a_list_that_was_lost_is_loaded_again_at_a_contact(shell: Shell) {
    let mut bed = Bed::new(shell);
    let services = [service("broker").grants(&["app"], &bed)];
    bed.applied(&services);
    fs::write(bed.state().join("broker.list"), "somebody else").unwrap();
    bed.log();
    let applied = bed.applied(&services);
    assert_eq!(
        applied.mended,
        ["broker: it did not admit exactly its list"]
    );
    assert_eq!(bed.log(), ["load broker"]);
    let loaded = fs::read_to_string(bed.state().join("broker.list")).unwrap();
    assert_eq!(loaded, "app");
}

fn what_was_loaded_is_told_apart_from_what_took_its_files(shell: Shell) {
    let mut bed = Bed::new(shell);
    let broker = |consumers, a| service("broker").grants(consumers, &bed).file("a", a);
    let (first, listed, edited) = (
        broker(&["app"], "1"),
        broker(&["app", "more"], "1"),
        broker(&["app", "more"], "2"),
    );
    let told = |applied: grid::delivery::Applied| (applied.loaded.len(), applied.applied.len());
    assert_eq!(told(bed.applied(&[first])), (1, 1));
    assert_eq!(told(bed.applied(&[listed])), (1, 0));
    assert_eq!(told(bed.applied(std::slice::from_ref(&edited))), (1, 1));
    fs::write(bed.state().join("broker.list"), "somebody else").unwrap();
    let applied = bed.applied(&[edited]);
    assert_eq!(applied.loaded, [name("broker")]);
    assert!(applied.applied.is_empty(), "{:?}", applied.applied);
}

fn a_service_whose_file_was_edited_is_applied_again_by_a_send_too(shell: Shell) {
    let mut bed = Bed::new(shell);
    let at = bed.dir.path().join("etc/app.conf");
    let log = &bed.state().join("log").display().to_string();
    let services = |other: &str| {
        let app = service("app").file("a", "1").file("b", "2");
        let installs = service("installs").install(&at, "1");
        let logs = |name: &str| format!("echo apply {name} >>'{log}'");
        [
            app.command("apply", logs("app")),
            installs.command("apply", logs("installs")),
            service("other")
                .file("a", other)
                .command("apply", logs("other")),
        ]
    };
    bed.applied(&services("1"));
    bed.log();
    bed.applied(&services("2"));
    assert_eq!(bed.log(), ["apply other"]);
    fs::write(bed.current().join("services/app/a"), "edited").unwrap();
    fs::write(&at, "edited").unwrap();
    let applied = bed.applied(&services("3"));
    assert_eq!(
        applied.mended,
        [
            "app: a file of it was not as sent",
            "installs: a file of it was not as sent"
        ]
    );
    assert_eq!(bed.log(), ["apply app", "apply installs", "apply other"]);
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    assert_eq!(fs::read_to_string(&at).unwrap(), "1");
    let applied = bed.applied(&services("4"));
    assert!(applied.mended.is_empty(), "{:?}", applied.mended);
    assert_eq!(bed.log(), ["apply other"]);
}

fn the_fence_lets_in_whom_it_knows_and_nobody_else(shell: Shell) {
    let mut bed = Bed::new(shell);
    let services = [service("app").file("a", "1")];
    let fenced = |outcome: Outcome| match outcome {
        Outcome::Fenced { held, log } => (held, log),
        other => panic!("{other:?}"),
    };
    // Something is expected where nothing is.
    bed.held = Some(token(99));
    assert_eq!(fenced(bed.send(&services)).0, None);
    assert!(!bed.current().exists());
    bed.held = None;
    bed.applied(&services);
    let first = bed.held;
    // Nothing is expected where something is; or something else.
    for wrong in [None, Some(token(99))] {
        bed.held = wrong;
        let (held, log) = fenced(bed.send(&[service("app").file("a", "2")]));
        assert_eq!(held, first);
        assert!(
            log.iter().any(|l| l.contains("maria@laptop push 2")),
            "{log:?}"
        );
    }
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    // Its own token; and an attempt's beside that of last sent.
    let mut again = bed.parcel(delivery_bed::bundle(&services));
    again.token = first.unwrap();
    assert!(matches!(bed.deliver(again), Outcome::Applied(_)));
    let mut either = bed.parcel(delivery_bed::bundle(&services));
    either.replaces = vec![token(77), first.unwrap()];
    let newest = either.token;
    assert!(matches!(bed.deliver(either), Outcome::Applied(_)));
    assert_eq!(bed.ask().token, Some(newest));
    let mut over = bed.parcel(delivery_bed::bundle(&services));
    over.take_over = true;
    assert!(matches!(bed.deliver(over), Outcome::Applied(_)));
}

fn a_failing_test_changes_nothing(shell: Shell) {
    let mut bed = Bed::new(shell);
    let app = service("app").file("a", "1").logged(&bed);
    bed.applied(std::slice::from_ref(&app));
    let before = bed.ask();
    bed.log();
    let worse = service("app")
        .file("a", "2")
        .logged(&bed)
        .command("test", "echo \"a is $(cat a) in $GRID_RELEASE\"; exit 3");
    let failure = bed.refused(&[worse]);
    assert_eq!(failure.step, FailedStep::Test);
    assert_eq!(failure.service, Some(name("app")));
    assert_eq!(failure.cause, "it exited with 3");
    assert!(failure.output[0].starts_with("a is 2 in /"), "{failure:?}");
    assert!(bed.log().is_empty());
    let after = bed.ask();
    assert_eq!(
        (after.token, after.manifest),
        (before.token, before.manifest)
    );
    assert_eq!(bed.releases(), 1);
}

fn a_failing_apply_is_rolled_back_and_the_newer_list_stays(shell: Shell) {
    let mut bed = Bed::new(shell);
    let broker = |consumers| service("broker").grants(consumers, &bed).logged(&bed);
    let (old, new) = (broker(&["app"]), broker(&["app", "more"]));
    let app = |a: &str| {
        let mut app = service("app").file("a", a).logged(&bed);
        app.binds = vec!["broker"];
        app
    };
    let (app1, app2) = (app("1"), app("2"));
    bed.applied(&[old, app1]);
    bed.log();
    let bad = app2
        .without("apply")
        .command("apply", "cat a; echo; echo no such vhost >&2; exit 1");
    let (failure, lists) = bed.rolled_back(&[new.clone(), bad]);
    assert_eq!(failure.step, FailedStep::Apply);
    assert_eq!(failure.output, ["2", "no such vhost"]);
    assert_eq!(lists, ["broker"]);
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    assert_eq!(
        bed.log(),
        ["load broker", "check broker", "apply app", "check app"]
    );
    let list = || fs::read_to_string(bed.state().join("broker.list")).unwrap();
    assert_eq!(list(), "app\nmore");
    let root = bed.root.clone();
    let state = bed.state();
    let holding = bed.ask();
    assert_eq!(holding.token, bed.held);
    assert_eq!(holding.manifest, bed.base);
    assert_eq!(holding.lists[&name("broker")], grants(&["app", "more"]));
    assert_eq!(bed.releases(), 1);
    // The newer list is what a contact with the old release verifies, and mends.
    fs::write(state.join("broker.list"), "app").unwrap();
    let mut same = bed.parcel(delivery_bed::bundle(&[service("x")]));
    let manifest = bed.base.clone().unwrap();
    same.bundle = std::sync::Arc::new(grid::compose::bundle::Bundle {
        digest: manifest.digest(),
        manifest,
        contents: std::collections::BTreeMap::new(),
        goes_on: std::collections::BTreeSet::new(),
        said_gone: std::collections::BTreeSet::new(),
    });
    bed.held = Some(same.token);
    let Outcome::Applied(applied) = bed.deliver(same) else {
        panic!("not applied");
    };
    assert_eq!(
        applied.mended,
        ["broker: it did not admit exactly its list"]
    );
    let loaded = fs::read_to_string(state.join("broker.list")).unwrap();
    assert_eq!(loaded, "app\nmore");
    // Once it is applied, the list is that of the release.
    bed.log();
    let good = app3(&bed);
    bed.applied(&[new, good]);
    assert!(bed.log().contains(&"load broker".to_owned()));
    assert!(bed.ask().lists.is_empty());
    assert!(fs::read_dir(root.join("lists")).unwrap().next().is_none());
}

fn app3(bed: &Bed) -> Service {
    service("app").file("a", "3").logged(bed)
}

fn a_failing_load_and_a_failing_check_are_told_apart(shell: Shell) {
    let mut bed = Bed::new(shell);
    let broker = |consumers| {
        service("broker")
            .grants(consumers, &bed)
            .logged(&bed)
            .limit(1)
    };
    let (one, two) = (broker(&["app"]), broker(&["app", "b"]));
    bed.applied(&[one]);
    let refuses = two
        .clone()
        .without("load")
        .command("load", "echo b is taken; exit 65");
    let (failure, lists) = bed.rolled_back(&[refuses]);
    assert_eq!(failure.step, FailedStep::Load);
    assert_eq!(failure.cause, "it exited with 65");
    assert_eq!(failure.output, ["b is taken"]);
    assert!(lists.is_empty());
    let lies = two
        .clone()
        .without("load")
        .command("load", "cat >/dev/null");
    let (failure, lists) = bed.rolled_back(&[lies]);
    assert_eq!(failure.step, FailedStep::Check);
    assert!(failure.cause.contains("reading it back"), "{failure:?}");
    assert!(lists.is_empty());
    // Tried again until its time is up: what ended by itself is the reason, not what the time ended.
    let seen = bed.dir.path().join("seen");
    let ill = format!(
        "[ ! -e {0} ] || exec sleep 60; : >{0}; exit 7",
        seen.display()
    );
    let ill = two.without("check").command("check", &ill);
    let (failure, lists) = bed.rolled_back(&[ill]);
    assert_eq!(failure.step, FailedStep::Check);
    assert_eq!(
        failure.cause,
        "it did not hold within 1 s; it exited with 7"
    );
    assert_eq!(lists, ["broker"]);
}

fn a_first_release_that_fails_is_removed_altogether(shell: Shell) {
    let mut bed = Bed::new(shell);
    let at = bed.dir.path().join("etc/app.conf");
    let broker = service("broker").grants(&["app"], &bed).logged(&bed);
    let mut app = service("app")
        .install(&at, "x")
        .command("apply", "exit 9")
        .command(
            "remove",
            format!("echo remove app >>'{}/log'", bed.state().display()),
        );
    app.binds = vec!["broker"];
    let (failure, lists) = bed.rolled_back(&[broker, app]);
    assert_eq!(failure.step, FailedStep::Apply);
    assert!(lists.is_empty());
    assert_eq!(
        bed.log(),
        [
            "apply broker",
            "check broker",
            "load broker",
            "remove app",
            "load broker",
            "remove broker"
        ]
    );
    let loaded = fs::read_to_string(bed.state().join("broker.list")).unwrap();
    assert_eq!(loaded, "nobody\n");
    assert!(!at.exists());
    assert!(!bed.current().is_symlink());
    assert_eq!(bed.releases(), 0);
    let holding = bed.ask();
    assert_eq!((holding.token, holding.manifest), (bed.held, None));
    bed.applied(&[service("app").file("a", "1")]);
}

fn a_roll_back_that_fails_is_uncertain_until_it_is_asked(shell: Shell) {
    let mut bed = Bed::new(shell);
    let broken = bed.state().join("broken");
    let check = format!("[ ! -e '{}' ]", broken.display());
    let app = |a: &str| service("app").file("a", a).limit(1);
    bed.applied(&[app("1").command("check", check.as_str())]);
    let first = bed.base.clone();
    let breaks = app("2")
        .command("apply", format!(": >'{}'", broken.display()))
        .command("check", check.as_str());
    let outcome = bed.send(&[breaks]);
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::Uncertain(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Check);
    assert!(cause.contains("the roll-back failed: app:"), "{cause}");
    // Asked, it tries again, and then says what there is: a machine must not stay uncertain for ever.
    let holding = bed.ask();
    assert_eq!(holding.manifest, first);
    assert_eq!(holding.token, Some(token(2)));
    bed.held = holding.token;
    // The next send applies all of its own.
    fs::remove_file(broken).unwrap();
    bed.log();
    let fine = bed.applied(&[
        app("1").command("check", check.as_str()),
        service("new").logged(&bed),
    ]);
    assert_eq!(fine.applied, [name("app"), name("new")]);
}

fn a_command_that_hangs_is_ended_by_its_limit(shell: Shell) {
    let mut bed = Bed::new(shell);
    let hangs = service("app")
        .command("test", "echo waiting; exec sleep 600")
        .limit(1);
    let failure = bed.refused(&[hangs]);
    assert_eq!(failure.step, FailedStep::Test);
    assert_eq!(failure.cause, "it was not done within 1 s");
    assert_eq!(failure.output, ["waiting"]);
    // Each step ends alike, and what is there comes back.
    for (step, expected) in [
        ("load", FailedStep::Load),
        ("verify", FailedStep::Check),
        ("apply", FailedStep::Apply),
        ("check", FailedStep::Check),
    ] {
        let hangs = service("broker")
            .grants(&["app"], &bed)
            .without(step)
            .command(step, "echo waiting; exec sleep 600")
            .limit(1);
        let (failure, _) = bed.rolled_back(&[hangs]);
        assert_eq!(failure.step, expected, "{step}");
        assert!(failure.cause.contains("within 1 s"), "{step}: {failure:?}");
        assert_eq!(
            failure.output.last().map(String::as_str),
            Some("waiting"),
            "{step}"
        );
        assert!(!bed.current().exists(), "{step}");
    }
}

fn output_is_bounded_cleaned_and_shown(shell: Shell) {
    let mut bed = Bed::new(shell);
    let noisy = service("app")
        .command(
            "apply",
            "printf 'a\\033[31mred\\377\\n'; echo 'end applied'; yes 'a long line of output' | head -c 5000000; yes | tr -d '\\n' | head -c 5000000",
        );
    bed.applied(&[noisy]);
    let lines: Vec<&String> = bed
        .progress
        .iter()
        .filter_map(|p| match p {
            Progress::Output { line, .. } => Some(line),
            _ => None,
        })
        .collect();
    assert!(lines[0].starts_with("a\u{fffd}[31mred"), "{:?}", lines[0]);
    assert_eq!(lines[1], "end applied");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    assert!(lines.iter().map(|line| line.len()).sum::<usize>() < 70_000);
    assert!(lines.last().unwrap().contains("not shown"));
}

fn of_a_long_output_the_last_lines_are_shown_where_the_reason_stands(shell: Shell) {
    let mut bed = Bed::new(shell);
    let fails = service("app").command(
        "apply",
        "n=0; while [ $n -lt 12000 ]; do n=$((n + 1)); echo \"line $n of many\"; done; echo the reason; exit 3",
    );
    let (failure, _) = bed.rolled_back(&[fails]);
    assert_eq!(failure.cause, "it exited with 3");
    assert_eq!(failure.output.last().unwrap(), "the reason");
    let shown: Vec<&str> = bed
        .progress
        .iter()
        .filter_map(|p| match p {
            Progress::Output { line, .. } => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown[0], "line 1 of many");
    // What is left out is left out in one place, and said.
    let gap = shown.iter().position(|line| line.contains("left out"));
    let (first, last) = shown.split_at(gap.unwrap());
    assert_eq!(last.len(), 21);
    let lines = |from: usize, n: usize| (from..from + n).map(|n| format!("line {n} of many"));
    assert!(lines(1, first.len()).eq(first.iter().copied()));
    assert!(lines(11982, 19).eq(last[1..20].iter().copied()));
}

fn a_daemon_left_behind_holds_nothing_up(shell: Shell) {
    let mut bed = Bed::new(shell);
    let pid = bed.state().join("pid");
    let daemon = service("app").command(
        "apply",
        format!(
            "while :; do echo still here; sleep 0.1; done & echo $! >'{}'",
            pid.display()
        ),
    );
    bed.applied(&[daemon]);
    let pid = fs::read_to_string(pid).unwrap();
    let alive = || Path::new("/proc").join(pid.trim()).exists();
    assert!(alive());
    // Its output is drained, not broken: it would have died of it.
    let applied = bed.applied(&[service("other").file("a", "1")]);
    assert_eq!(applied.removed, [name("app")]);
    assert!(alive());
    let killed = std::process::Command::new("kill").arg(pid.trim()).status();
    assert!(killed.unwrap().success());
}

fn no_process_of_ours_stays_behind(shell: Shell) {
    let mut bed = Bed::new(shell);
    bed.applied(&[
        service("broker").grants(&["app"], &bed).logged(&bed),
        service("app").command("apply", "yes | head -c 300000"),
    ]);
    bed.ask();
    let root = bed.dir.path().display().to_string();
    let ours = || {
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok())
            .any(|line| String::from_utf8_lossy(&line).contains(&root))
    };
    // They end by themselves, a moment after the receipt.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while ours() {
        assert!(std::time::Instant::now() < deadline, "a process stays");
        std::thread::yield_now();
    }
}

fn what_is_taken_over_is_applied_though_its_release_lies_there_still(shell: Shell) {
    let mut bed = Bed::new(shell);
    let app = |a: &str, bed: &Bed| [service("app").file("a", a).logged(bed)];
    let (first, second) = (bundle(&app("1", &bed)), bundle(&app("2", &bed)));
    bed.applied(&app("1", &bed));
    let base = bed.base.clone();
    let mut take_over = |bundle, base| {
        let mut parcel = bed.parcel(bundle);
        parcel.take_over = true;
        parcel.base = base;
        bed.log();
        let outcome = bed.deliver(parcel);
        assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
        (bed.log(), bed.read("services/app/a").unwrap())
    };
    // Another store takes it over, and the first one takes it back: its release is there still, and not in force.
    let (log, text) = take_over(second, None);
    assert_eq!(
        (log.join(", "), text),
        ("apply app, check app".into(), "2".into())
    );
    let (log, text) = take_over(first, base);
    assert_eq!(
        (log.join(", "), text),
        ("apply app, check app".into(), "1".into())
    );
}

fn a_contact_that_takes_over_looks_at_what_the_other_store_left_alone(shell: Shell) {
    let mut bed = Bed::new(shell);
    let all = |a: &str, bed: &Bed| {
        [
            service("app").file("a", a).logged(bed),
            service("broker").grants(&["app"], bed).logged(bed),
        ]
    };
    let list = bed.state().join("broker.list");
    bed.applied(&all("1", &bed));
    let (held, base) = (bed.held, bed.base.clone());
    let mut other = bed.parcel(bundle(&all("2", &bed)));
    other.base = None;
    other.take_over = true;
    assert!(matches!(bed.deliver(other), Outcome::Applied(_)));
    fs::write(&list, "somebody").unwrap();
    bed.log();
    // The first store has the machine for current, so that it only contacts it: of the list both stores say the same.
    let mut contact = bed.parcel(bundle(&all("1", &bed)));
    (contact.token, contact.base, contact.take_over) = (held.unwrap(), base, true);
    match bed.deliver(contact) {
        Outcome::Applied(applied) => {
            assert_eq!(applied.applied, [name("app")]);
            assert_eq!(applied.loaded, [name("broker")]);
            assert_eq!(
                applied.mended,
                ["broker: it did not admit exactly its list"]
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&list).unwrap(), "app");
    assert_eq!(bed.ask().token, held);
    assert_eq!(
        bed.log(),
        [
            "apply app",
            "check app",
            "check app",
            "check broker",
            "load broker"
        ]
    );
}

fn a_file_that_becomes_a_folder_and_the_reverse_is_delivered_and_rolled_back(shell: Shell) {
    let mut bed = Bed::new(shell);
    let etc = bed.dir.path().join("the etc");
    let (x, part, other) = (etc.join("x"), etc.join("x/a/part"), etc.join("x/other"));
    // Before grid there was a file.
    fs::create_dir(&etc).unwrap();
    fs::write(&x, "theirs").unwrap();
    let file = || service("app").install(&x, "file");
    let folder = || {
        service("app")
            .install(&part, "part")
            .install(&other, "other")
    };
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    bed.applied(&[file()]);
    // What was there before stands in the way, and is nobody's to take away.
    let (failure, _) = bed.rolled_back(&[folder()]);
    assert_eq!(failure.step, FailedStep::Install);
    assert_eq!(text(&x), "file");
    bed.applied(&[service("app").file("a", "1")]);
    assert_eq!(text(&x), "theirs");
    fs::remove_file(&x).unwrap();
    bed.applied(&[file()]);
    let ill = |service: Service| service.command("apply", "exit 1");
    bed.rolled_back(&[ill(folder())]);
    assert_eq!(text(&x), "file");
    bed.applied(&[folder()]);
    assert_eq!((text(&part), text(&other)), ("part".into(), "other".into()));
    bed.rolled_back(&[ill(file())]);
    assert_eq!((text(&part), text(&other)), ("part".into(), "other".into()));
    bed.applied(&[file()]);
    assert_eq!(text(&x), "file");
    bed.applied(&[]);
    assert!(!x.exists());
}

fn installed_files_are_saved_restored_and_removed(shell: Shell) {
    let mut bed = Bed::new(shell);
    let etc = bed.dir.path().join("etc dir");
    fs::create_dir(&etc).unwrap();
    let (old, fresh, link) = (
        etc.join("it's old"),
        etc.join("deep/fresh"),
        etc.join("link"),
    );
    fs::write(&old, "before grid").unwrap();
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    let app = |text| {
        service("app")
            .install(&old, text)
            .install(&fresh, text)
            .install(&link, text)
    };
    bed.applied(&[app("1")]);
    let read = |path: &Path| fs::read_to_string(path).ok();
    for path in [&old, &fresh, &link] {
        assert_eq!(read(path).as_deref(), Some("1"));
        assert_eq!(bed.mode(path), 0o640);
    }
    bed.applied(&[app("2")]);
    assert_eq!(read(&old).as_deref(), Some("2"));
    // Edited ones are put back at a contact.
    fs::write(&fresh, "edited").unwrap();
    let applied = bed.applied(&[app("2")]);
    assert_eq!(
        applied.mended,
        [format!("{} was not as installed", fresh.display())]
    );
    assert_eq!(read(&fresh).as_deref(), Some("2"));
    // A failing send takes its own away again, and puts the others back.
    let more = etc.join("more");
    let bad = service("app")
        .install(&old, "3")
        .install(&more, "3")
        .command("apply", "grep -q 3 services/app/x; exit 1");
    bed.rolled_back(&[bad]);
    assert_eq!(read(&old).as_deref(), Some("2"));
    assert_eq!(read(&fresh).as_deref(), Some("2"));
    assert!(!more.exists());
    // What left gives way to what stood there before.
    bed.applied(&[service("app").install(&fresh, "2")]);
    assert_eq!(read(&old).as_deref(), Some("before grid"));
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/nowhere"));
    bed.applied(&[service("other")]);
    assert!(!fresh.exists());
    // A folder is in the way.
    let (failure, _) = bed.rolled_back(&[service("app").install(&etc, "x")]);
    assert_eq!(failure.step, FailedStep::Install);
    assert!(failure.cause.contains("is a folder"), "{failure:?}");
}

fn a_provider_that_leaves_is_told_to_admit_nobody_first(shell: Shell) {
    let mut bed = Bed::new(shell);
    let mut app = service("app").logged(&bed);
    app.binds = vec!["broker"];
    let broker = service("broker").grants(&["app"], &bed).logged(&bed);
    let stays = service("stays").file("a", "1").logged(&bed);
    bed.applied(&[app, broker, stays.clone()]);
    bed.log();
    let applied = bed.applied(&[stays]);
    assert_eq!(applied.removed, [name("app"), name("broker")]);
    assert_eq!(bed.log(), ["remove app", "load broker", "remove broker"]);
    let loaded = fs::read_to_string(bed.state().join("broker.list")).unwrap();
    assert_eq!(loaded, "nobody\n");
    assert!(bed.read("commands/broker/load").is_none());
}

fn a_provider_that_goes_on_elsewhere_is_told_nothing_when_it_leaves_or_is_put_back(shell: Shell) {
    let mut bed = Bed::new(shell);
    let broker = service("broker").grants(&["app"], &bed).logged(&bed);
    let other = service("other").grants(&["app"], &bed).logged(&bed);
    let stays = service("stays").file("a", "1").logged(&bed);
    let list = |bed: &Bed, of: &str| {
        fs::read_to_string(bed.state().join(format!("{of}.list"))).unwrap_or_default()
    };
    let goes_on = |bed: &mut Bed, services: &[Service]| {
        let mut bundle = bundle(services);
        bundle.goes_on = [name("broker")].into();
        let parcel = bed.parcel(bundle);
        let (token, manifest) = (parcel.token, parcel.bundle.manifest.clone());
        let outcome = bed.deliver(parcel);
        bed.held = Some(token);
        if matches!(outcome, Outcome::Applied(_)) {
            bed.base = Some(manifest);
        }
        outcome
    };
    // It comes, and is put back: the list of the other machine stays loaded.
    bed.applied(std::slice::from_ref(&stays));
    let mut ill = service("app").command("check", "exit 1").limit(1);
    ill.binds = vec!["broker"];
    let outcome = goes_on(&mut bed, &[stays.clone(), broker.clone(), ill]);
    assert!(matches!(outcome, Outcome::RolledBack { .. }), "{outcome:?}");
    assert_eq!(list(&bed, "broker"), "app");
    bed.applied(&[stays.clone(), broker, other]);
    bed.log();
    let Outcome::Applied(applied) = goes_on(&mut bed, &[stays]) else {
        panic!("not applied");
    };
    assert_eq!(applied.removed, [name("other"), name("broker")]);
    assert_eq!(
        applied.notes,
        ["broker goes on at its host: its accounts there stay open"]
    );
    // What does not go on elsewhere is closed all the same.
    assert_eq!(bed.log(), ["load other", "remove other", "remove broker"]);
    assert_eq!(list(&bed, "broker"), "app");
    assert_eq!(list(&bed, "other"), "nobody\n");
}

fn a_provider_whose_own_file_changes_loads_its_list_after_it_took_that(shell: Shell) {
    let mut bed = Bed::new(shell);
    let list = bed.state().join("broker.list");
    let broker = |script: &str, bed: &Bed| {
        let broker = service("broker")
            .file("load.sh", script)
            .grants(&["app"], bed);
        broker
            .without("load")
            .command("load", "sh ./load.sh")
            .logged(bed)
    };
    let loads = |bed: &Bed| {
        let state = bed.state().display().to_string();
        format!("cat >'{state}/broker.list'; echo load broker >>'{state}/log'")
    };
    let well = loads(&bed);
    bed.applied(&[broker(&well, &bed)]);
    bed.log();
    let applied = bed.applied(&[broker(&format!("{well}\n"), &bed)]);
    assert_eq!(applied.loaded, [name("broker")]);
    assert_eq!(bed.log(), ["apply broker", "check broker", "load broker"]);
    // A script that fails is found by the send that brings it, and the one that worked is put back. The list is no newer one.
    let (failure, kept) = bed.rolled_back(&[broker("exit 4", &bed)]);
    assert_eq!(
        (failure.step, failure.cause.as_str()),
        (FailedStep::Load, "it exited with 4")
    );
    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(
        bed.read("services/broker/load.sh").unwrap(),
        format!("{well}\n")
    );
    assert_eq!(fs::read_to_string(&list).unwrap(), "app");
    // So where it loads, and something after it fails.
    let mut ill = service("app").command("check", "exit 1").limit(1);
    ill.binds = vec!["broker"];
    let (_, kept) = bed.rolled_back(&[broker(&well, &bed), ill]);
    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(fs::read_to_string(&list).unwrap(), "app");
}

fn what_was_said_to_be_gone_goes_whatever_its_remove_says(shell: Shell) {
    let mut bed = Bed::new(shell);
    let stays = service("stays").file("a", "1").logged(&bed);
    let stuck = service("stuck").command("remove", "echo no; exit 3");
    let ended = service("broker")
        .grants(&["app"], &bed)
        .without("load")
        .command("load", "[ -e gone ] && exit 5; cat >/dev/null")
        .without("verify");
    bed.applied(&[stays.clone(), stuck, ended]);
    // Its load fails where nothing listens any more.
    let here = bed.current().join("services/broker");
    fs::write(here.join("gone"), "").unwrap();
    let (failure, _) = bed.rolled_back(std::slice::from_ref(&stays));
    assert!(failure.hint.is_some(), "{failure:?}");
    fs::write(bed.current().join("services/broker/gone"), "").unwrap();
    let mut bundle = bundle(&[stays]);
    bundle.said_gone = [name("stuck"), name("broker")].into();
    let parcel = bed.parcel(bundle);
    match bed.deliver(parcel) {
        Outcome::Applied(applied) => {
            assert_eq!(applied.removed, [name("stuck"), name("broker")]);
            assert_eq!(
                applied.notes,
                [
                    "stuck was said to be gone, and goes: its remove failed (it exited with 3)",
                    "broker was said to be gone, and goes: closing its accounts failed (it exited with 5)"
                ]
            );
        }
        other => panic!("{other:?}"),
    }
}

fn a_provider_that_runs_is_told_before_it_is_applied(shell: Shell) {
    let mut bed = Bed::new(shell);
    let broker = |consumers, conf| {
        service("broker")
            .file("conf", conf)
            .grants(consumers, &bed)
            .logged(&bed)
    };
    let (one, two, three) = (
        broker(&["a"], "1"),
        broker(&["a", "b"], "1"),
        broker(&["a"], "2"),
    );
    bed.applied(&[one]);
    // One that may not run yet is started first.
    assert_eq!(bed.log(), ["apply broker", "check broker", "load broker"]);
    bed.applied(&[two]);
    // A list alone restarts nothing.
    assert_eq!(bed.log(), ["load broker", "check broker"]);
    bed.applied(&[three]);
    assert_eq!(bed.log(), ["load broker", "apply broker", "check broker"]);
}

fn a_check_is_repeated_until_it_holds(shell: Shell) {
    let mut bed = Bed::new(shell);
    let tries = bed.state().join("tries");
    let check = format!(
        "echo x >>'{0}'; [ \"$(wc -l <'{0}')\" -ge 3 ]",
        tries.display()
    );
    bed.applied(&[service("app").command("check", check)]);
    assert_eq!(fs::read_to_string(tries).unwrap().lines().count(), 3);
}

fn a_dead_holder_of_the_lock_is_taken_over_and_a_live_one_is_not(shell: Shell) {
    let mut bed = Bed::new(shell);
    bed.applied(&[service("app").file("a", "1")]);
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let locks = bed.root.join("lock");
    let hold = |number: u32, start: &str, boot: &str| {
        let (me, boot) = (std::process::id(), boot.trim());
        let line = format!("{me} {start} {boot} eva@ci push 7\n");
        fs::write(locks.join(number.to_string()), line).unwrap();
    };
    // Another boot; a process of that number that started at another time.
    hold(50, "1", "another-boot");
    bed.ask();
    hold(60, "1", &boot);
    bed.ask();
    let me = fs::read_to_string("/proc/self/stat").unwrap();
    let start = me.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap();
    hold(70, start, &boot);
    let failure = bed.refused(&[service("app").file("a", "2")]);
    assert_eq!(failure.step, FailedStep::Lock);
    assert!(failure.cause.ends_with("eva@ci push 7"), "{failure:?}");
    fs::write(bed.root.join("lock/70"), "").unwrap();
    bed.applied(&[service("app").file("a", "2")]);
}

fn a_current_that_is_a_folder_is_left_alone(shell: Shell) {
    let mut bed = Bed::new(shell);
    fs::create_dir_all(bed.current().join("somebody's")).unwrap();
    let failure = bed.refused(&[service("app").file("a", "1")]);
    assert_eq!(failure.step, FailedStep::Switch);
    assert!(
        failure.cause.ends_with("current is not a symbolic link"),
        "{failure:?}"
    );
    assert!(bed.current().join("somebody's").exists());
    assert!(matches!(bed.answer(), grid::delivery::Answer::Unknown(_)));
}

fn a_machine_that_lacks_a_tool_says_which(shell: Shell) {
    let mut bed = Bed::new(shell);
    bed.lacks = vec!["sha256sum", "mkfifo"];
    // In a busybox that runs its own programs first, nothing can be lacking.
    if shell == Shell::Busybox {
        return;
    }
    let failure = bed.refused(&[service("app")]);
    assert_eq!(failure.step, FailedStep::Start);
    assert_eq!(failure.cause, "this machine lacks: sha256sum mkfifo");
}

fn an_owner_that_does_not_exist_is_named_before_anything_changes(shell: Shell) {
    let mut bed = Bed::new(shell);
    let mut app = service("app").file("a", "1").logged(&bed);
    app.owner = Some("nosuchuser");
    let failure = bed.refused(&[app.clone()]);
    assert_eq!(failure.step, FailedStep::Verify);
    assert!(failure.cause.contains("nosuchuser"), "{failure:?}");
    assert!(!bed.current().exists());
    app.owner = Some("daemon:daemon");
    bed.applied(&[app.clone()]);
    let owned = fs::metadata(bed.current().join("services/app/a")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&owned), 1);
    let applied = bed.applied(&[app]);
    assert!(applied.mended.is_empty(), "{:?}", applied.mended);
}

fn what_nobody_else_has_comes_from_the_machine_itself(shell: Shell) {
    let mut bed = Bed::new(shell);
    let big = service("app").file("big", vec![b'x'; 100_000]).logged(&bed);
    bed.applied(std::slice::from_ref(&big));
    let mut kept = big;
    kept.kept = true;
    // All of it, since nothing is known of the machine.
    bed.base = None;
    bed.applied(&[kept.clone(), service("new").file("a", "1")]);
    assert_eq!(bed.read("services/app/big").unwrap().len(), 100_000);
    fs::write(bed.current().join("services/app/big"), "edited").unwrap();
    let failure = bed.refused(&[kept, service("new").file("a", "2")]);
    assert_eq!(failure.step, FailedStep::Verify);
    assert!(failure.cause.contains("services/app/big"), "{failure:?}");
}

#[test]
fn a_source_that_changes_while_it_is_sent_is_named() {
    let mut bed = Bed::new(Shell::Dash);
    let from = bed.dir.path().join("source");
    fs::write(&from, "what was composed").unwrap();
    let mut bundle = delivery_bed::bundle(&[service("app").file("a", "what was composed")]);
    let from = camino::Utf8PathBuf::from_path_buf(from).unwrap();
    for content in bundle.contents.values_mut() {
        *content = grid::compose::bundle::Content::Source(from.clone());
    }
    fs::write(&from, "what is there now").unwrap();
    let parcel = bed.parcel(bundle.clone());
    let outcome = bed.deliver(parcel);
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Source);
    assert!(
        cause.ends_with("source changed while it was sent"),
        "{cause}"
    );
    assert!(!bed.current().exists());
    fs::write(&from, "what was composed").unwrap();
    let parcel = bed.parcel(bundle);
    assert!(matches!(bed.deliver(parcel), Outcome::Applied(_)));
}

#[test]
fn the_scripts_are_clean_under_shellcheck() {
    for script in ["src/delivery/receive.sh", "tests/beds/sshd.sh"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        match std::process::Command::new("shellcheck")
            .args(["--shell=sh", "--severity=style"])
            .arg(path)
            .output()
        {
            Ok(output) => assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stdout)
            ),
            Err(error) => assert!(std::env::var_os("CI").is_none(), "{error}"),
        }
    }
}
