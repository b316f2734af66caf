//! The receiving script, under three shells, over the courier `local`.

mod delivery_bed;

use std::fs;
use std::path::Path;

use delivery_bed::{Bed, Shell, service};
use grid::delivery::{FailedStep, Outcome};

under_every_shell!(
    a_first_send_puts_everything_in_force,
    a_second_contact_transfers_and_applies_nothing,
    only_what_changed_is_sent_and_applied,
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
