//! The writer: what it writes, acknowledges and counts. A home that fails stands in `failing`.

mod failing;

use proptest::prelude::*;

use super::*;
use crate::evidence::homes::{Fault, MemoryHome};
use crate::evidence::{Contradiction, Reason};
use crate::words::Replica;

const ACCEPTED: Answer = Answer::Known(Verdict::Accepted { changed: true });
const STILL: Answer = Answer::Known(Verdict::Accepted { changed: false });
const IDENTICAL: Answer = Answer::Known(Verdict::Identical);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn of(number: u8, sequence: u64, rejected: u64, clean: bool) -> Report {
    let replica = Replica::new("gw-0").unwrap();
    let epoch = Epoch::from_bytes([number; 16]);
    Report::new(epoch, sequence, rejected, clean, replica).unwrap()
}

fn plenty() -> Duration {
    BUDGET
}

fn writer(faults: impl IntoIterator<Item = Fault>) -> Writer<MemoryHome> {
    Writer::new(MemoryHome {
        faults: faults.into_iter().collect(),
        ..MemoryHome::default()
    })
}

fn take(writer: &mut Writer<MemoryHome>, reports: &[Report], second: i64) -> Outcome {
    writer.take(reports, at(second), &plenty)
}

/// What somebody else, who read `held`, publishes on top of it.
fn by_another(held: Option<&Document>, report: &Report) -> Document {
    let mut ledger = held.map_or_else(Ledger::new, |held| held.ledger().clone());
    ledger.report(report, at(0));
    Document::new(ledger, held.map(Document::condition), at(0))
}

fn persisted(writer: &Writer<MemoryHome>) -> &Document {
    writer.home().document.as_ref().unwrap()
}

fn holds(writer: &Writer<MemoryHome>, report: &Report) -> bool {
    let held = writer.home().document.as_ref();
    let record = held.and_then(|held| held.ledger().record(report.epoch()));
    record.is_some_and(|record| record.report() == report)
}

#[test]
fn reports_that_wait_together_are_applied_in_order_by_one_write() {
    let mut writer = writer([]);
    let reports = [
        of(1, 1, 0, true),
        of(2, 1, 3, false),
        of(1, 2, 0, true),
        of(1, 2, 0, true),
        of(1, 1, 0, true),
        of(2, 2, 3, true),
    ];
    let outcome = take(&mut writer, &reports, 0);
    let replayed = Verdict::Conflict {
        why: Contradiction::Replayed,
    };
    let expected = [
        ACCEPTED,
        ACCEPTED,
        STILL,
        IDENTICAL,
        Answer::Known(replayed),
        ACCEPTED,
    ];
    assert_eq!(outcome.answers, expected);
    let statuses = outcome.answers.iter().map(|answer| answer.status());
    assert_eq!(statuses.collect::<Vec<_>>(), [204, 204, 204, 204, 409, 204]);
    assert!(outcome.events.is_empty() && outcome.failure.is_none());
    assert_eq!((writer.home().reads, writer.home().writes), (1, 1));
    assert_eq!(persisted(&writer).condition().reason(), Reason::Clean);
}

#[test]
fn the_report_and_its_condition_are_persisted_together() {
    let mut writer = writer([]);
    take(&mut writer, &[of(1, 1, 0, true)], 0);
    let clean = persisted(&writer).condition().clone();
    assert_eq!(
        (clean.reason(), clean.last_transition_time()),
        (Reason::Clean, at(0))
    );
    take(&mut writer, &[of(1, 2, 1, true)], 10);
    let rejected = persisted(&writer).condition().clone();
    assert_eq!(
        (rejected.reason(), rejected.last_transition_time()),
        (Reason::Rejected, at(10))
    );
    take(&mut writer, &[of(1, 3, 2, true)], 20);
    assert_eq!(
        persisted(&writer).condition().last_transition_time(),
        at(10)
    );
}

#[test]
fn nothing_is_written_for_identical_refused_or_no_reports() {
    let mut writer = writer([]);
    take(&mut writer, &[of(1, 5, 1, false)], 0);
    let before = persisted(&writer).clone();
    for again in [vec![of(1, 5, 1, false)], vec![of(1, 4, 1, false)], vec![]] {
        // A day later the document would not be the same, if it were written.
        let outcome = take(&mut writer, &again, 86_400);
        assert!(outcome.failure.is_none());
    }
    assert_eq!(writer.home().writes, 1);
    assert_eq!(persisted(&writer), &before);
}

#[test]
fn each_overflow_is_counted_once() {
    let mut writer = writer([]);
    let full: Vec<Report> = (0..64).map(|number| of(number, 1, 0, true)).collect();
    take(&mut writer, &full, 0);
    let other = by_another(writer.home().document.as_ref(), &of(9, 2, 0, true));
    writer
        .home_mut()
        .faults
        .push_back(Fault::Overtaken(Box::new(other)));
    let reports = [of(64, 1, 0, true), of(1, 2, 0, true), of(65, 1, 1, false)];
    let outcome = take(&mut writer, &reports, 300);
    let overflow = Answer::Known(Verdict::Overflow);
    assert_eq!(outcome.answers, [overflow, STILL, overflow]);
    assert_eq!(
        outcome.events,
        [Event::Conflict, Event::Overflow, Event::Overflow]
    );
}

#[test]
fn the_condition_goes_stale_without_a_report() {
    let mut writer = writer([]);
    let mut events = Vec::new();
    let mut refresh = |writer: &mut Writer<MemoryHome>, second| {
        writer.refresh(at(second), &plenty, &mut events).unwrap();
        let condition = persisted(writer).condition();
        (
            condition.reason(),
            condition.last_transition_time(),
            writer.home().writes,
        )
    };
    assert_eq!(refresh(&mut writer, 0), (Reason::NoReports, at(0), 1));
    assert_eq!(refresh(&mut writer, 5), (Reason::NoReports, at(0), 1));
    take(&mut writer, &[of(1, 1, 0, true)], 10);
    assert_eq!(refresh(&mut writer, 310), (Reason::Clean, at(10), 2));
    assert_eq!(refresh(&mut writer, 311), (Reason::Stale, at(311), 3));
    assert_eq!(refresh(&mut writer, 400), (Reason::Stale, at(311), 3));
    // The clock jumps back: what was received is dated anew, once, and goes stale from there.
    assert_eq!(refresh(&mut writer, -1000), (Reason::Clean, at(-1000), 4));
    assert_eq!(refresh(&mut writer, -999), (Reason::Clean, at(-1000), 4));
    assert_eq!(refresh(&mut writer, -699), (Reason::Stale, at(-699), 5));
    assert!(events.is_empty());
}

#[test]
fn a_report_after_the_clock_jumped_back_dates_the_others_anew() {
    let mut writer = writer([]);
    take(&mut writer, &[of(1, 1, 0, true)], 0);
    take(&mut writer, &[of(2, 1, 0, true)], -1000);
    let records = persisted(&writer).ledger().records();
    let received: Vec<Timestamp> = records.map(|record| record.received()).collect();
    assert_eq!(received, [at(-1000), at(-1000)]);
    // An operator's machine, whose clock may be slow, dates nothing anew.
    take(&mut writer, &[of(3, 1, 1, false)], -900);
    let epoch = Epoch::from_bytes([3; 16]);
    writer.clear(epoch, at(-2000), &plenty).unwrap();
    let record = persisted(&writer).ledger().record(epoch).unwrap();
    assert_eq!(record.received(), at(-900));
}

#[test]
fn an_operators_clearing_is_persisted_with_its_condition() {
    let mut writer = writer([]);
    take(
        &mut writer,
        &[of(1, 1, 1, false), of(2, 1, 1, false), of(3, 1, 0, true)],
        0,
    );
    let epoch = |number| Epoch::from_bytes([number; 16]);
    let clearing = |writer: &mut Writer<MemoryHome>, number, second| {
        writer.clear(epoch(number), at(second), &plenty).unwrap()
    };
    assert_eq!(clearing(&mut writer, 4, 1), Clearing::Unknown);
    assert_eq!(clearing(&mut writer, 3, 1), Clearing::NothingInForce);
    assert_eq!(writer.home().writes, 1);
    assert_eq!(clearing(&mut writer, 1, 1), Clearing::Cleared);
    assert_eq!(persisted(&writer).condition().reason(), Reason::Rejected);
    assert_eq!(writer.clear_stale(at(300), &plenty).unwrap(), []);
    assert_eq!(writer.clear_stale(at(301), &plenty).unwrap(), [epoch(2)]);
    assert_eq!(persisted(&writer).condition().reason(), Reason::Stale);
    // The daemon's next report is judged against the baseline.
    let outcome = take(&mut writer, &[of(1, 1, 1, false), of(2, 2, 1, true)], 302);
    assert_eq!(outcome.answers, [IDENTICAL, ACCEPTED]);
    // A clearing that fails says so.
    take(&mut writer, &[of(1, 2, 2, false)], 303);
    writer.home_mut().faults.push_back(Fault::FailBefore);
    assert!(writer.clear(epoch(1), at(304), &plenty).is_err());
    assert_eq!(persisted(&writer).condition().reason(), Reason::Rejected);
}

#[test]
fn the_labels_are_the_five_and_each_its_own() {
    let labels = Event::ALL.map(Event::label);
    assert_eq!(
        labels,
        [
            "conflict",
            "conflict_exhausted",
            "overflow",
            "unauthorized",
            "write_failure"
        ]
    );
}

proptest! {
    /// Whatever fails, and whoever writes in between: a 204 is said only of what is persisted, with a condition that fits;
    /// every failure is told and counted; and once nothing fails, a repeated report is known.
    #[test]
    fn what_is_acknowledged_is_persisted(
        batches in proptest::collection::vec(
            (
                proptest::collection::vec((0_u8..5, 0_u64..6, 0_u64..3, any::<bool>()), 0..4),
                proptest::collection::vec(0_u8..5, 0..4),
            ),
            0..40,
        )
    ) {
        let mut writer = writer([]);
        for (second, (reports, faults)) in (0_i64..).zip(batches) {
            let reports: Vec<Report> = reports
                .into_iter()
                .map(|(number, sequence, rejected, clean)| of(number, sequence, rejected, clean))
                .collect();
            let mut other = writer.home().document.clone();
            writer.home_mut().faults = (0_u64..)
                .zip(faults)
                .map(|(nth, fault)| match fault {
                    0 => Fault::FailBefore,
                    1 => Fault::FailAfter,
                    2 => Fault::ShowsOld,
                    3 => {
                        let sequence = u64::try_from(second).unwrap() * 10 + nth;
                        let theirs = by_another(other.as_ref(), &of(9, sequence, 0, true));
                        other = Some(theirs.clone());
                        Fault::Overtaken(Box::new(theirs))
                    }
                    _ => Fault::None,
                })
                .collect();
            let outcome = take(&mut writer, &reports, second);
            prop_assert_eq!(outcome.answers.len(), reports.len());
            let unknown = outcome.answers.contains(&Answer::Unknown);
            prop_assert_eq!(outcome.failure.is_some(), unknown);
            let told = outcome.events.iter().any(|event| {
                matches!(event, Event::WriteFailure | Event::ConflictExhausted)
            });
            prop_assert_eq!(told, unknown);
            for (report, answer) in reports.iter().zip(&outcome.answers) {
                if answer.status() == 204 {
                    let held = persisted(&writer).ledger().record(report.epoch());
                    prop_assert!(held.unwrap().report().sequence() >= report.sequence());
                }
            }
            if let Some(document) = &writer.home().document {
                let json = document.to_json().unwrap();
                let read = Document::from_json(&json);
                prop_assert_eq!(read.as_ref(), Ok(document));
            }
            writer.home_mut().faults.clear();
            let again = take(&mut writer, &reports, second);
            prop_assert!(again.failure.is_none() && !again.answers.contains(&Answer::Unknown));
        }
    }
}
