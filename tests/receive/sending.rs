//! What is sent, to whom it is let in, and what a machine lacks.

use std::fs;
use std::path::Path;

use grid::delivery::{FailedStep, Outcome};

use crate::delivery_bed::{Bed, Shell, failure, service, token};
use crate::under_every_shell;

under_every_shell!(
    a_first_send_puts_everything_in_force,
    a_second_contact_transfers_and_applies_nothing,
    only_what_changed_is_sent_and_applied,
    an_edited_file_that_is_carried_over_is_sent_after_all,
    what_nobody_else_has_comes_from_the_machine_itself,
    the_fence_lets_in_whom_it_knows_and_nobody_else,
    a_dead_holder_of_the_lock_is_taken_over_and_a_live_one_is_not,
    a_machine_that_lacks_a_tool_says_which,
    an_owner_that_does_not_exist_is_named_before_anything_changes,
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
    bed.base = Some(crate::delivery_bed::bundle(&[app("5")]).manifest);
    bed.applied(&[app("6").logged(&bed)]);
    assert_eq!(bed.read("services/app/b").unwrap(), "6");
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
    let mut bundle = crate::delivery_bed::bundle(&[service("app").file("a", "what was composed")]);
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
    let mut again = bed.parcel(crate::delivery_bed::bundle(&services));
    again.token = first.unwrap();
    assert!(matches!(bed.deliver(again), Outcome::Applied(_)));
    let mut either = bed.parcel(crate::delivery_bed::bundle(&services));
    either.replaces = vec![token(77), first.unwrap()];
    let newest = either.token;
    assert!(matches!(bed.deliver(either), Outcome::Applied(_)));
    assert_eq!(bed.ask().token, Some(newest));
    let mut over = bed.parcel(crate::delivery_bed::bundle(&services));
    over.take_over = true;
    assert!(matches!(bed.deliver(over), Outcome::Applied(_)));
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
