//! Each row of the table, and its corners.

use proptest::prelude::*;

use super::*;
use crate::evidence::condition::Reason;

const MAX: u64 = u64::MAX;

fn epoch(number: u8) -> Epoch {
    Epoch::from_bytes([number; 16])
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A report of epoch 1.
fn report(sequence: u64, rejected: u64, clean: bool) -> Report {
    of(1, sequence, rejected, clean)
}

fn of(number: u8, sequence: u64, rejected: u64, clean: bool) -> Report {
    let replica = Replica::new("gw-0").unwrap();
    Report::new(epoch(number), sequence, rejected, clean, replica).unwrap()
}

/// A ledger that accepted these, at second 0.
fn after(reports: &[Report]) -> Ledger {
    let mut ledger = Ledger::new();
    for report in reports {
        let verdict = ledger.report(report, at(0));
        assert!(matches!(verdict, Verdict::Accepted { .. }), "{report:?}");
    }
    ledger
}

/// How an epoch stands; `None`: it is not held.
fn standing(ledger: &Ledger, number: u8) -> Option<Standing> {
    ledger.record(epoch(number)).map(Record::standing)
}

#[test]
fn the_first_report_of_an_epoch_is_held_against_the_counter_0() {
    for (first, then) in [
        (report(0, 0, true), Standing::Clean),
        (report(9, 0, true), Standing::Clean),
        (report(0, 0, false), Standing::Rejected),
        (report(0, 1, true), Standing::Rejected),
        (report(0, 1, false), Standing::Rejected),
        (report(MAX, 0, false), Standing::Rejected),
        (report(0, MAX, false), Standing::Rejected),
        (report(MAX, MAX, false), Standing::Rejected),
        (report(MAX - 1, 0, true), Standing::Clean),
    ] {
        let mut ledger = Ledger::new();
        assert_eq!(
            ledger.report(&first, at(0)),
            Verdict::Accepted { changed: true }
        );
        assert_eq!(standing(&ledger, 1), Some(then), "{first:?}");
        let record = ledger.record(epoch(1)).unwrap();
        assert_eq!((record.report(), record.received()), (&first, at(0)));
    }
}

#[test]
fn an_identical_report_writes_nothing_and_renews_nothing() {
    for first in [
        report(4, 0, true),
        report(4, 3, true),
        report(4, 3, false),
        report(MAX, MAX, false),
    ] {
        let mut ledger = after(std::slice::from_ref(&first));
        let before = ledger.clone();
        assert_eq!(ledger.report(&first, at(200)), Verdict::Identical);
        assert_eq!(ledger, before);
        assert!(!ledger.record(epoch(1)).unwrap().is_fresh(at(301)));
    }
}

#[test]
fn the_same_sequence_with_anything_else_different_is_a_conflict() {
    let mut ledger = after(&[report(4, 3, false)]);
    let before = ledger.clone();
    let other_replica = Replica::new("gw-1").unwrap();
    for changed in [
        report(4, 3, true),
        report(4, 4, false),
        report(4, 2, false),
        report(4, MAX, false),
        Report::new(epoch(1), 4, 3, false, other_replica).unwrap(),
    ] {
        let why = Contradiction::Changed;
        assert_eq!(ledger.report(&changed, at(1)), Verdict::Conflict { why });
    }
    assert_eq!(ledger, before);
}

#[test]
fn a_lower_sequence_or_a_lower_counter_is_a_conflict() {
    let mut ledger = after(&[report(3, 1, false), report(4, 3, false)]);
    let before = ledger.clone();
    for (late, why) in [
        (report(3, 1, false), Contradiction::Replayed),
        (report(3, 3, true), Contradiction::Replayed),
        (report(0, 9, false), Contradiction::Replayed),
        (report(5, 2, true), Contradiction::Decreased),
        (report(5, 0, false), Contradiction::Decreased),
        (report(MAX, 2, false), Contradiction::Decreased),
    ] {
        assert_eq!(ledger.report(&late, at(1)), Verdict::Conflict { why });
    }
    assert_eq!(ledger, before);
}

#[test]
fn a_newer_report_with_a_higher_counter_is_rejected_whatever_the_flag_says() {
    for clean in [true, false] {
        let mut ledger = after(&[report(4, 0, true)]);
        let verdict = ledger.report(&report(5, 1, clean), at(1));
        assert_eq!(verdict, Verdict::Accepted { changed: true });
        assert_eq!(standing(&ledger, 1), Some(Standing::Rejected));
        let verdict = ledger.report(&report(6, 2, clean), at(2));
        assert_eq!(verdict, Verdict::Accepted { changed: false });
        assert_eq!(ledger.record(epoch(1)).unwrap().received(), at(2));
    }
}

#[test]
fn a_newer_clean_report_with_the_same_counter_clears_its_epochs_evidence_and_no_others() {
    let mut ledger = after(&[report(4, 3, false), of(2, 1, 3, false)]);
    let verdict = ledger.report(&report(5, 3, true), at(1));
    assert_eq!(verdict, Verdict::Accepted { changed: true });
    assert_eq!(standing(&ledger, 1), Some(Standing::Clean));
    assert_eq!(standing(&ledger, 2), Some(Standing::Rejected));
    let verdict = ledger.report(&report(6, 3, true), at(2));
    assert_eq!(verdict, Verdict::Accepted { changed: false });
    assert_eq!(ledger.record(epoch(1)).unwrap().received(), at(2));
}

#[test]
fn a_newer_report_with_the_same_counter_that_is_not_clean_is_rejected() {
    let mut ledger = after(&[report(4, 0, true)]);
    let verdict = ledger.report(&report(5, 0, false), at(1));
    assert_eq!(verdict, Verdict::Accepted { changed: true });
    assert_eq!(standing(&ledger, 1), Some(Standing::Rejected));
}

#[test]
fn nothing_newer_follows_the_greatest_sequence_and_nothing_clean_the_greatest_counter() {
    let mut ledger = after(&[report(MAX, 3, false)]);
    for late in [report(MAX - 1, 3, true), report(0, 3, true)] {
        assert!(matches!(
            ledger.report(&late, at(1)),
            Verdict::Conflict { .. }
        ));
    }
    assert_eq!(ledger.clear(epoch(1), at(2)), Clearing::Cleared);
    assert_eq!(
        ledger.report(&report(MAX, 3, false), at(3)),
        Verdict::Identical
    );
    assert_eq!(standing(&ledger, 1), Some(Standing::Cleared { at: at(2) }));

    let mut ledger = after(&[report(1, MAX, false)]);
    let why = Contradiction::Decreased;
    let verdict = ledger.report(&report(2, MAX - 1, true), at(1));
    assert_eq!(verdict, Verdict::Conflict { why });
    let verdict = ledger.report(&report(2, MAX, false), at(1));
    assert_eq!(verdict, Verdict::Accepted { changed: false });
    let replica = Replica::new("gw-0").unwrap();
    assert!(Report::new(epoch(1), 3, MAX, true, replica).is_err());
}

#[test]
fn a_newer_report_may_name_another_replica() {
    let mut ledger = after(&[report(1, 0, true)]);
    let replica = Replica::new("gw-1").unwrap();
    let renamed = Report::new(epoch(1), 2, 0, true, replica.clone()).unwrap();
    let verdict = ledger.report(&renamed, at(1));
    assert_eq!(verdict, Verdict::Accepted { changed: false });
    assert_eq!(
        ledger.record(epoch(1)).unwrap().report().replica(),
        &replica
    );
}

/// 64 epochs, 0 to 63, each clean and received at the second of its number.
fn full() -> Ledger {
    let mut ledger = Ledger::new();
    for number in 0..64 {
        let verdict = ledger.report(&of(number, 1, 0, true), at(i64::from(number)));
        assert_eq!(verdict, Verdict::Accepted { changed: true });
    }
    ledger
}

#[test]
fn the_65th_epoch_has_no_room_while_all_records_are_fresh() {
    let mut ledger = full();
    let before = ledger.clone();
    let verdict = ledger.report(&of(64, 1, 0, true), at(300));
    assert_eq!((verdict, verdict.status()), (Verdict::Overflow, 507));
    assert_eq!(ledger, before);
    // Who is held already needs no room.
    let verdict = ledger.report(&of(3, 2, 0, true), at(300));
    assert_eq!(verdict, Verdict::Accepted { changed: false });
}

#[test]
fn the_oldest_stale_clean_record_makes_room() {
    let mut ledger = full();
    let verdict = ledger.report(&of(64, 1, 0, true), at(301));
    assert_eq!(verdict, Verdict::Accepted { changed: true });
    assert_eq!(ledger.records().len(), 64);
    assert_eq!(standing(&ledger, 0), None);
    assert_eq!(standing(&ledger, 1), Some(Standing::Clean));
    // The next oldest is still fresh.
    let verdict = ledger.report(&of(65, 1, 0, true), at(301));
    assert_eq!(verdict, Verdict::Overflow);
    // Of several it is the oldest, of several as old the one with the smallest epoch.
    let mut several = ledger.clone();
    several.report(&of(2, 2, 0, true), at(305));
    several.report(&of(1, 2, 0, true), at(305));
    for (new, gone) in [(65, 3), (66, 4)] {
        let verdict = several.report(&of(new, 1, 0, true), at(320));
        assert_eq!(verdict, Verdict::Accepted { changed: true });
        assert_eq!(standing(&several, gone), None);
        assert_eq!(standing(&several, gone + 1), Some(Standing::Clean));
    }
    let mut as_old = Ledger::new();
    for number in 0..64 {
        as_old.report(&of(number, 1, 0, true), at(0));
    }
    as_old.report(&of(64, 1, 0, true), at(301));
    assert_eq!(standing(&as_old, 0), None);
    assert_eq!(as_old.records().len(), 64);
    // Who had to go comes back as a first of its epoch.
    let verdict = ledger.report(&of(0, 2, 1, true), at(302));
    assert_eq!(verdict, Verdict::Accepted { changed: true });
    assert_eq!(standing(&ledger, 0), Some(Standing::Rejected));
}

#[test]
fn rejected_evidence_makes_no_room_until_it_is_cleared() {
    let mut ledger = Ledger::new();
    for number in 0..64 {
        ledger.report(&of(number, 1, 1, false), at(0));
    }
    let late = at(1_000_000);
    assert_eq!(ledger.report(&of(64, 1, 0, true), late), Verdict::Overflow);
    assert_eq!(ledger.clear(epoch(7), late), Clearing::Cleared);
    let verdict = ledger.report(&of(64, 1, 0, true), late);
    assert_eq!(verdict, Verdict::Accepted { changed: true });
    assert_eq!(standing(&ledger, 7), None);
    assert_eq!(ledger.report(&of(65, 1, 0, true), late), Verdict::Overflow);
}

#[test]
fn what_an_operator_clears_keeps_its_baseline() {
    let mut ledger = after(&[report(4, 3, false), of(2, 1, 0, true)]);
    assert_eq!(ledger.clear(epoch(9), at(1)), Clearing::Unknown);
    assert_eq!(ledger.clear(epoch(2), at(1)), Clearing::NothingInForce);
    assert_eq!(ledger.clear(epoch(1), at(1)), Clearing::Cleared);
    assert_eq!(ledger.clear(epoch(1), at(2)), Clearing::NothingInForce);
    assert_eq!(standing(&ledger, 1), Some(Standing::Cleared { at: at(1) }));
    assert_eq!(ledger.record(epoch(1)).unwrap().received(), at(0));

    assert_eq!(
        ledger.report(&report(4, 3, false), at(3)),
        Verdict::Identical
    );
    assert_eq!(standing(&ledger, 1), Some(Standing::Cleared { at: at(1) }));
    for late in [report(3, 3, false), report(4, 3, true), report(5, 2, true)] {
        assert!(matches!(
            ledger.report(&late, at(3)),
            Verdict::Conflict { .. }
        ));
    }
    for (next, then) in [
        (report(5, 4, true), Standing::Rejected),
        (report(5, 3, false), Standing::Rejected),
        (report(5, 3, true), Standing::Clean),
    ] {
        let mut ledger = ledger.clone();
        let verdict = ledger.report(&next, at(4));
        assert_eq!(verdict, Verdict::Accepted { changed: true });
        assert_eq!(standing(&ledger, 1), Some(then));
    }
}

#[test]
fn clearing_what_is_stale_leaves_what_is_fresh_in_force() {
    let mut ledger = after(&[report(1, 1, false), of(2, 1, 0, true)]);
    ledger.report(&of(3, 1, 1, false), at(1));
    assert_eq!(ledger.clear_stale(at(300)), []);
    assert_eq!(ledger.clear_stale(at(301)), [epoch(1)]);
    assert_eq!(standing(&ledger, 3), Some(Standing::Rejected));
    assert_eq!(standing(&ledger, 2), Some(Standing::Clean));
    assert_eq!(ledger.clear_stale(at(302)), [epoch(3)]);
}

#[test]
fn a_clock_that_jumps_back_makes_nothing_stale_and_no_age_negative() {
    let mut ledger = after(&[report(1, 0, true)]);
    let record = ledger.record(epoch(1)).unwrap();
    for now in [at(-1), at(-1_000_000), Timestamp::MIN] {
        assert_eq!(record.age(now), Duration::ZERO);
        assert_eq!(ledger.condition(now).reason(), Reason::Clean);
    }
    assert!(Ledger::new().condition(Timestamp::MIN).reason() == Reason::NoReports);
    // A newer report is newer by its sequence, whatever the clock says.
    let verdict = ledger.report(&report(2, 0, true), at(-500));
    assert_eq!(verdict, Verdict::Accepted { changed: false });
    assert_eq!(ledger.record(epoch(1)).unwrap().received(), at(-500));
}

#[test]
fn a_record_from_the_future_is_not_fresh_until_then() {
    let mut ledger = after(&[report(1, 0, true)]);
    assert!(!ledger.redate(at(0)));
    assert!(ledger.redate(at(-1_000_000)));
    assert!(!ledger.redate(at(-1_000_000)));
    let stale = at(-1_000_000 + 301);
    assert_eq!(ledger.condition(stale).reason(), Reason::Stale);
}

proptest! {
    /// Whatever comes: at most 64 are held, a held sequence only rises and a counter never falls, only clear and a newer
    /// clean report end evidence, and what is refused changes nothing.
    #[test]
    fn what_is_held_only_moves_forward(
        steps in proptest::collection::vec((0_u8..70, 0_u64..4, 0_u64..3, any::<bool>(), -400_i64..900), 0..300)
    ) {
        let mut ledger = Ledger::new();
        for (number, sequence, rejected, clean, second) in steps {
            let report = of(number, sequence, rejected, clean);
            let before = ledger.clone();
            let verdict = ledger.report(&report, at(second));
            let held = before.record(epoch(number));
            match verdict {
                Verdict::Accepted { .. } => {
                    let now = ledger.record(epoch(number)).unwrap();
                    prop_assert_eq!(now.report(), &report);
                    if let Some(held) = held {
                        prop_assert!(report.sequence() > held.report().sequence());
                        prop_assert!(report.rejected() >= held.report().rejected());
                    }
                    if now.standing() == Standing::Clean {
                        prop_assert!(clean);
                        prop_assert_eq!(rejected, held.map_or(0, |held| held.report().rejected()));
                    }
                    let gone = before.records().filter(|was| ledger.record(was.report().epoch()).is_none());
                    for gone in gone {
                        prop_assert!(!gone.is_rejected() && !gone.is_fresh(at(second)));
                    }
                }
                _ => prop_assert_eq!(&before, &ledger),
            }
            prop_assert!(ledger.records().len() <= CAPACITY);
            prop_assert_eq!(ledger.report(&report, at(second)) == Verdict::Identical,
                ledger.record(epoch(number)).is_some_and(|held| held.report() == &report));
        }
    }
}
