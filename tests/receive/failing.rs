//! What fails, and what is put back.

use std::fs;

use grid::delivery::{FailedStep, Outcome};

use crate::delivery_bed::{Bed, Service, Shell, failure, grants, name, service, token};
use crate::under_every_shell;

under_every_shell!(
    a_failing_test_changes_nothing,
    a_failing_apply_is_rolled_back_and_the_newer_list_stays,
    a_failing_load_and_a_failing_check_are_told_apart,
    a_first_release_that_fails_is_removed_altogether,
    a_roll_back_that_fails_is_uncertain_until_it_is_asked,
);

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
    let mut same = bed.parcel(crate::delivery_bed::bundle(&[service("x")]));
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
