//! Lists: who loads them, when, and what becomes of them when a provider leaves.

use std::fs;

use grid::delivery::{FailedStep, Outcome};

use crate::delivery_bed::{Bed, Service, Shell, bundle, name, service};
use crate::under_every_shell;

under_every_shell!(
    a_provider_that_leaves_is_told_to_admit_nobody_first,
    a_provider_that_goes_on_elsewhere_is_told_nothing_when_it_leaves_or_is_put_back,
    a_provider_whose_own_file_changes_loads_its_list_after_it_took_that,
    what_was_said_to_be_gone_goes_whatever_its_remove_says,
    a_provider_that_runs_is_told_before_it_is_applied,
    a_provider_that_forgets_its_accounts_when_it_is_applied_has_them_again_also_where_it_is_put_back,
);

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
    let applied = bed.applied(&[three]);
    // And once more after it, since what is loaded may not outlive what it applies.
    assert_eq!(
        bed.log(),
        ["load broker", "apply broker", "check broker", "load broker"]
    );
    assert_eq!(applied.loaded, [name("broker")]);
}

fn a_provider_that_forgets_its_accounts_when_it_is_applied_has_them_again_also_where_it_is_put_back(
    shell: Shell,
) {
    let mut bed = Bed::new(shell);
    let list = bed.state().join("broker.list");
    let broker = |consumers, conf, check, bed: &Bed| {
        service("broker")
            .file("conf", conf)
            .grants(consumers, bed)
            .command("apply", format!("rm -f '{}'", list.display()))
            .command("check", check)
            .limit(1)
    };
    bed.applied(&[broker(&["a"], "1", "true", &bed)]);
    // Both its list and its own files change.
    bed.applied(&[broker(&["a", "b"], "2", "true", &bed)]);
    assert_eq!(fs::read_to_string(&list).unwrap(), "a\nb");
    // What fails before it could load is put back with its list.
    bed.rolled_back(&[broker(&["a", "b"], "3", "exit 1", &bed)]);
    assert_eq!(fs::read_to_string(&list).unwrap(), "a\nb");
}
