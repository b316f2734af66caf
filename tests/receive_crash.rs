//! The receiving script when everything is killed, and when the disk is full.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;

use std::fs;

use delivery_bed::mount::Mount;
use delivery_bed::{Bed, Shell, failure, grants, name, service};
use grid::delivery::{FailedStep, Outcome};

under_every_shell!(
    everything_killed_at_any_place_is_settled_by_the_next_question,
    everything_killed_at_any_place_is_settled_by_the_next_send,
    everything_killed_in_a_roll_back_is_rolled_back_again,
);

/// Places at which a send that goes well can be killed, and whether the new release is in force once it is settled.
const PLACES: &[(&str, bool)] = &[
    ("unpacked", false),
    ("verified", false),
    ("placed", false),
    ("tested", false),
    ("token", false),
    ("switched", true),
    ("installed", true),
    ("load", true),
    ("loaded", true),
    ("apply", true),
    ("applied", true),
    ("remove", true),
    ("removed", true),
    ("before-applied", true),
    ("after-applied", true),
];

fn everything_killed_at_any_place_is_settled_by_the_next_question(shell: Shell) {
    for &(place, new_in_force) in PLACES {
        let mut bed = Bed::new(shell);
        let at = bed.dir.path().join("installed");
        fs::write(&at, "before grid").unwrap();
        let broker = |consumers| service("broker").grants(consumers, &bed).logged(&bed);
        let old = [
            broker(&["app"]),
            service("app").file("a", "1").logged(&bed),
            service("leaves").logged(&bed),
        ];
        let new = [
            broker(&["app", "b"]),
            service("app").file("a", "2").install(&at, "2").logged(&bed),
        ];
        bed.applied(&old);
        let before = bed.base.clone();
        bed.stop = Some(place);
        let outcome = bed.send(&new);
        assert!(
            matches!(outcome, Outcome::Uncertain(_) | Outcome::Refused(_)),
            "{place}: {outcome:?}"
        );
        bed.stop = None;
        let holding = bed.ask();
        let after = std::sync::Arc::new((*delivery_bed::bundle(&new).manifest).clone());
        let (manifest, list, text) = if new_in_force {
            (Some(after), "app\nb", "2")
        } else {
            (before, "app", "before grid")
        };
        assert_eq!(holding.manifest, manifest, "{place}");
        assert!(holding.lists.is_empty(), "{place}");
        let loaded = fs::read_to_string(bed.state().join("broker.list")).unwrap();
        assert_eq!(loaded, list, "{place}");
        assert_eq!(fs::read_to_string(&at).unwrap(), text, "{place}");
        // And the next send goes on from there.
        bed.held = holding.token;
        bed.base = holding.manifest;
        bed.applied(&new);
        assert_eq!(fs::read_to_string(&at).unwrap(), "2", "{place}");
        bed.applied(&[service("app").file("a", "3").logged(&bed)]);
        assert_eq!(fs::read_to_string(&at).unwrap(), "before grid", "{place}");
        assert!(bed.releases() <= 2, "{place}");
    }
}

fn everything_killed_at_any_place_is_settled_by_the_next_send(shell: Shell) {
    for &(place, _) in PLACES {
        let mut bed = Bed::new(shell);
        let broker = |consumers| service("broker").grants(consumers, &bed).logged(&bed);
        let old = [
            broker(&["app"]),
            service("app").file("a", "1").logged(&bed),
            service("leaves").logged(&bed),
        ];
        let new = [
            broker(&["app", "b"]),
            service("app").file("a", "2").logged(&bed),
        ];
        let newest = [broker(&["c"]), service("app").file("a", "3").logged(&bed)];
        bed.applied(&old);
        bed.stop = Some(place);
        bed.send(&new);
        bed.stop = None;
        // Either token may be there, for all that the controller knows.
        let mut parcel = bed.parcel(delivery_bed::bundle(&newest));
        parcel.replaces = vec![delivery_bed::token(1), delivery_bed::token(2)];
        let (sent, manifest) = (parcel.token, parcel.bundle.manifest.clone());
        let outcome = bed.deliver(parcel);
        assert!(
            matches!(outcome, Outcome::Applied(_)),
            "{place}: {outcome:?}"
        );
        assert_eq!(bed.read("services/app/a").unwrap(), "3", "{place}");
        let loaded = fs::read_to_string(bed.state().join("broker.list")).unwrap();
        assert_eq!(loaded, "c", "{place}");
        let holding = bed.ask();
        assert_eq!(holding.token, Some(sent), "{place}");
        assert_eq!(holding.manifest, Some(manifest), "{place}");
    }
}

fn everything_killed_in_a_roll_back_is_rolled_back_again(shell: Shell) {
    for place in ["undo", "back-left", "back-switched", "back-applied"] {
        let mut bed = Bed::new(shell);
        let at = bed.dir.path().join("installed");
        fs::write(&at, "before grid").unwrap();
        let broker = |consumers| service("broker").grants(consumers, &bed).logged(&bed);
        let (old, new) = (broker(&["app"]), broker(&["app", "b"]));
        bed.applied(&[old, service("app").file("a", "1").logged(&bed)]);
        let before = bed.base.clone();
        let mut bad = service("app")
            .file("a", "2")
            .install(&at, "2")
            .command("apply", "exit 1");
        bad.binds = vec!["broker"];
        bed.stop = Some(place);
        let outcome = bed.send(&[new, bad]);
        assert!(
            matches!(outcome, Outcome::Uncertain(_)),
            "{place}: {outcome:?}"
        );
        bed.stop = None;
        let holding = bed.ask();
        assert_eq!(holding.manifest, before, "{place}");
        assert_eq!(
            holding.lists[&name("broker")],
            grants(&["app", "b"]),
            "{place}"
        );
        assert_eq!(fs::read_to_string(&at).unwrap(), "before grid", "{place}");
        assert_eq!(bed.read("services/app/a").unwrap(), "1", "{place}");
        assert!(!bed.root.join("undo").exists(), "{place}");
        assert_eq!(bed.releases(), 1, "{place}");
    }
}

#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    let mut bed = Bed::new(Shell::Dash);
    // It goes with the test, whoever still has something open there.
    let disk = Mount::new(&bed.dir.path().join("small"), 1024);
    bed.root = disk.at.join("root");
    bed.applied(&[service("app").file("a", "1")]);
    let big: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let outcome = bed.send(&[service("app").file("a", "1").file("big", big)]);
    let read = bed.read("services/app/a");
    let holding = bed.ask();
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Unpack);
    // In whichever words its tar says it.
    assert!(
        cause.contains("No space left") || cause.contains("Wrote only"),
        "{cause}"
    );
    assert_eq!(read.as_deref(), Some("1"));
    assert_eq!(
        (holding.token, holding.manifest),
        (bed.held, bed.base.clone())
    );
}
