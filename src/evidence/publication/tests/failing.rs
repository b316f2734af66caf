//! The writer against a home that fails in each way.

use std::cell::Cell;

use super::*;

#[test]
fn somebody_elses_write_in_between_is_read_and_the_reports_judged_anew() {
    let other = by_another(None, &of(1, 5, 0, true));
    let mut writer = writer([Fault::Overtaken(Box::new(other))]);
    let outcome = take(
        &mut writer,
        &[of(1, 5, 0, true), of(1, 4, 0, true), of(2, 1, 0, true)],
        0,
    );
    let replayed = Verdict::Conflict {
        why: Contradiction::Replayed,
    };
    assert_eq!(
        outcome.answers,
        [IDENTICAL, Answer::Known(replayed), ACCEPTED]
    );
    assert_eq!(outcome.events, [Event::Conflict]);
    assert!(holds(&writer, &of(1, 5, 0, true)) && holds(&writer, &of(2, 1, 0, true)));
}

#[test]
fn three_conflicts_exhaust_the_attempts() {
    let mut held = None;
    let faults: Vec<Fault> = (1..=3)
        .map(|sequence| {
            let other = by_another(held.as_ref(), &of(9, sequence, 0, true));
            held = Some(other.clone());
            Fault::Overtaken(Box::new(other))
        })
        .collect();
    let mut writer = writer(faults);
    let outcome = take(&mut writer, &[of(1, 1, 0, true)], 0);
    assert_eq!(outcome.answers, [Answer::Unknown]);
    assert_eq!(
        outcome.events,
        [
            Event::Conflict,
            Event::Conflict,
            Event::Conflict,
            Event::ConflictExhausted
        ]
    );
    assert!(matches!(outcome.failure, Some(Failure::Overtaken)));
    assert!(!holds(&writer, &of(1, 1, 0, true)));
    // The reporter repeats it.
    let outcome = take(&mut writer, &[of(1, 1, 0, true)], 1);
    assert_eq!(outcome.answers, [ACCEPTED]);
    assert!(holds(&writer, &of(1, 1, 0, true)) && holds(&writer, &of(9, 3, 0, true)));
}

#[test]
fn a_failed_write_is_unknown_and_the_identical_report_is_answered_by_what_is_there() {
    for (fault, again) in [
        (Fault::FailBefore, ACCEPTED),
        (Fault::ShowsOld, ACCEPTED),
        (Fault::FailAfter, IDENTICAL),
    ] {
        let mut writer = writer([fault]);
        let report = of(1, 1, 4, false);
        let outcome = take(&mut writer, std::slice::from_ref(&report), 0);
        assert_eq!(outcome.answers, [Answer::Unknown]);
        assert_eq!(outcome.answers[0].status(), 503);
        assert_eq!(outcome.events, [Event::WriteFailure]);
        assert!(outcome.failure.is_some());
        let outcome = take(&mut writer, std::slice::from_ref(&report), 1);
        assert_eq!(outcome.answers, [again]);
        assert!(holds(&writer, &report));
    }
}

#[test]
fn what_may_not_be_durable_is_published_once_more_before_it_is_acknowledged() {
    let report = of(1, 1, 0, true);
    let mut writer = writer([Fault::FailAfter, Fault::FailBefore]);
    take(&mut writer, std::slice::from_ref(&report), 0);
    let before = persisted(&writer).clone();
    // It is there, but that was not shown to last; now neither.
    let outcome = take(&mut writer, std::slice::from_ref(&report), 500);
    assert_eq!(outcome.answers, [Answer::Unknown]);
    let outcome = take(&mut writer, std::slice::from_ref(&report), 500);
    assert_eq!(
        (outcome.answers, writer.home().writes),
        (vec![IDENTICAL], 2)
    );
    assert_eq!(persisted(&writer), &before);
    let outcome = take(&mut writer, std::slice::from_ref(&report), 500);
    assert_eq!(
        (outcome.answers, writer.home().writes),
        (vec![IDENTICAL], 2)
    );
    // One that was sure is not any more.
    let next = of(1, 2, 0, true);
    writer.home_mut().faults.push_back(Fault::FailAfter);
    take(&mut writer, std::slice::from_ref(&next), 501);
    let before = persisted(&writer).clone();
    let outcome = take(&mut writer, std::slice::from_ref(&next), 502);
    assert_eq!(
        (outcome.answers, writer.home().writes),
        (vec![IDENTICAL], 4)
    );
    let report = next;
    // A daemon that was started anew does not know either.
    let mut writer = Writer::new(std::mem::take(writer.home_mut()));
    let outcome = take(&mut writer, std::slice::from_ref(&report), 500);
    assert_eq!(
        (outcome.answers, writer.home().writes),
        (vec![IDENTICAL], 5)
    );
    assert_eq!(persisted(&writer), &before);
}

#[test]
fn a_failed_write_leaves_known_what_did_not_depend_on_it() {
    let mut writer = writer([]);
    take(&mut writer, &[of(1, 5, 0, true)], 0);
    writer.home_mut().faults.push_back(Fault::FailBefore);
    let reports = [
        of(1, 5, 0, true), // identical to what is persisted
        of(1, 4, 0, true), // a replay
        of(2, 1, 0, true), // needs the write
        of(2, 1, 0, true), // identical to what was not persisted
        of(1, 4, 0, true),
    ];
    let outcome = take(&mut writer, &reports, 1);
    let replayed = Answer::Known(Verdict::Conflict {
        why: Contradiction::Replayed,
    });
    let unknown = Answer::Unknown;
    assert_eq!(
        outcome.answers,
        [IDENTICAL, replayed, unknown, unknown, unknown]
    );
}

#[test]
fn a_home_that_cannot_be_read_makes_all_unknown_and_is_not_written() {
    let mut writer = writer([]);
    writer.home_mut().unreadable = true;
    let outcome = take(&mut writer, &[of(1, 1, 0, true), of(2, 1, 0, true)], 0);
    assert_eq!(outcome.answers, [Answer::Unknown, Answer::Unknown]);
    assert_eq!(outcome.events, [Event::WriteFailure]);
    assert_eq!(writer.home().writes, 0);
    writer.home_mut().unreadable = false;
    assert_eq!(
        take(&mut writer, &[of(1, 1, 0, true)], 1).answers,
        [ACCEPTED]
    );
}

#[test]
fn past_the_deadline_nothing_more_is_begun() {
    // Time for so many steps.
    for (steps, reads) in [(0, 0), (1, 1)] {
        let mut writer = writer([]);
        let steps = Cell::new(steps);
        let left = || match steps.get() {
            0 => Duration::ZERO,
            more => {
                steps.set(more - 1);
                BUDGET
            }
        };
        let outcome = writer.take(&[of(1, 1, 0, true)], at(0), &left);
        assert_eq!(outcome.answers, [Answer::Unknown]);
        assert!(matches!(outcome.failure, Some(Failure::Late)));
        assert!(outcome.events.is_empty());
        assert_eq!((writer.home().reads, writer.home().writes), (reads, 0));
    }
}
