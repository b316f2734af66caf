//! The controller dies at every commit and at every send of the plain case, one after the other: a consumer on one
//! machine, its provider on another.

use std::collections::BTreeSet;

use grid::push::Verdict;

use crate::declared::{machine, service};
use crate::history::{Ended, History};
use crate::plan::{Death, Op, PushPlan, Whom};
use crate::progress::{history, plan};

/// Machines are current; the consumer was just assigned.
fn plain_case() -> History {
    let mut history = history(2, &[(&[0], &[]), (&[], &[0]), (&[1], &[])]);
    assert!(matches!(history.push(&plan(Whom::All)), Ended::Reported(_)));
    history.happens(&Op::Assign(1, [1].into()));
    history.look("before the push").unwrap();
    history
}

/// Where a push of the plain case can die, in the order in which it comes there.
const STEPS: &[(&str, Death)] = &[
    (
        "before its number and what it minted are stored",
        Death::BeforeCommit(1),
    ),
    (
        "after its number and what it minted are stored",
        Death::AfterCommit(1),
    ),
    (
        "before the provider's attempt is stored",
        Death::BeforeCommit(2),
    ),
    (
        "after the provider's attempt is stored",
        Death::AfterCommit(2),
    ),
    ("before the list arrives", Death::BeforeArrival(0)),
    (
        "before the provider's receipt is heard",
        Death::BeforeReceipt(0),
    ),
    (
        "before the provider's receipt is stored",
        Death::BeforeCommit(3),
    ),
    (
        "after the provider's receipt is stored",
        Death::AfterCommit(3),
    ),
    (
        "before the consumer's attempt is stored",
        Death::BeforeCommit(4),
    ),
    (
        "after the consumer's attempt is stored",
        Death::AfterCommit(4),
    ),
    (
        "before the consumer's files arrive",
        Death::BeforeArrival(1),
    ),
    (
        "before the consumer's receipt is heard",
        Death::BeforeReceipt(1),
    ),
    (
        "before the consumer's receipt is stored",
        Death::BeforeCommit(5),
    ),
    (
        "after the consumer's receipt is stored",
        Death::AfterCommit(5),
    ),
    // Something else on the machine has a list, which the send left as it was.
    ("before the contact arrives", Death::BeforeArrival(2)),
    (
        "before the end of the contact is heard",
        Death::BeforeReceipt(2),
    ),
];

#[test]
fn a_controller_that_dies_at_any_step_is_made_good_by_one_push() {
    let mut hit = BTreeSet::new();
    for (step, death) in STEPS {
        for whom in [Whom::One(1), Whom::Behind] {
            let mut history = plain_case();
            let dying = PushPlan {
                death: Some(*death),
                ..plan(Whom::One(1))
            };
            let ended = history.push(&dying);
            assert!(matches!(ended, Ended::Died), "not hit: {step}");
            hit.insert(*step);
            history.look(step).unwrap();
            let secrets = history.secrets.clone();

            let Ended::Reported(report) = history.push(&plan(whom)) else {
                panic!("{step}: the second push died too");
            };
            history.look(step).unwrap();
            assert_eq!(report.verdict(), Verdict::Done, "{step}");
            let running = &history.floor.machines[&machine(1)].running;
            assert!(running.contains_key(&service(1)), "{step}");
            for (key, secret) in &secrets {
                assert_eq!(history.secrets.get(key), Some(secret), "{step}: {key:?}");
            }
            assert_eq!(history.secrets.len(), 1, "{step}: one account in all");
        }
    }
    assert_eq!(hit.len(), STEPS.len(), "every named step was hit");
    println!("{} steps hit", hit.len());
}

#[test]
fn the_plain_case_has_no_other_step_to_die_at() {
    for death in [
        Death::BeforeCommit(6),
        Death::BeforeArrival(3),
        Death::BeforeReceipt(3),
    ] {
        let mut history = plain_case();
        let ended = history.push(&PushPlan {
            death: Some(death),
            ..plan(Whom::One(1))
        });
        assert!(
            matches!(ended, Ended::Reported(_)),
            "{death:?} is a step too"
        );
    }
}
