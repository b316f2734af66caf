//! Clauses about progress, by counting waits and rounds: who need not wait does not, and nothing takes a round more than it
//! has to (DESIGN.md, sections 3 and 4).

use std::collections::{BTreeMap, BTreeSet};

use grid::push::{Problem, Report, Verdict};

use crate::declared::{Consumes, Declared, DeclaredService, machine, service};
use crate::history::{Ended, History};
use crate::plan::{Fault, FaultKind, Op, PushPlan, Whom};

/// A mesh of services: on which machines each is, and whom it consumes.
pub fn history(machines: usize, services: &[(&[usize], &[usize])]) -> History {
    let services = services.iter().map(|(machines, consumes)| DeclaredService {
        declared: true,
        machines: machines.iter().copied().collect(),
        provides: true,
        consumes: consumes
            .iter()
            .map(|provider| {
                let consumes = Consumes {
                    wait: true,
                    wants: 0,
                };
                (*provider, consumes)
            })
            .collect(),
        start_first: false,
        version: 0,
    });
    let declared = Declared {
        machines,
        hold: BTreeSet::new(),
        addresses: BTreeMap::new(),
        roots: BTreeMap::new(),
        misrooted: BTreeSet::new(),
        services: services.collect(),
    };
    History::new(declared, std::env::var("GRID_SIM_TRACE").is_ok())
}

pub fn plan(whom: Whom) -> PushPlan {
    PushPlan {
        whom,
        faults: Vec::new(),
        death: None,
        order: 0,
        take_over: false,
    }
}

/// Pushes; what it sent, by round, and how it ended. Every invariant is looked at.
fn push(history: &mut History, plan: &PushPlan) -> (BTreeMap<usize, Vec<String>>, Report) {
    let Ended::Reported(report) = history.push(plan) else {
        panic!("the controller died");
    };
    history.look("after the push").unwrap();
    let mut rounds: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (round, node) in &history.sendings {
        rounds.entry(*round).or_default().push(node.to_string());
    }
    (rounds, *report)
}

fn sent(rounds: &[(usize, &[&str])]) -> BTreeMap<usize, Vec<String>> {
    rounds
        .iter()
        .map(|(round, nodes)| (*round, nodes.iter().map(|&n| n.to_owned()).collect()))
        .collect()
}

/// All machines pushed and current.
fn current(machines: usize, services: &[(&[usize], &[usize])]) -> History {
    let mut history = history(machines, services);
    let (_, report) = push(&mut history, &plan(Whom::All));
    assert_eq!(report.verdict(), Verdict::Done);
    history
}

/// The version of a service that runs on a machine is the declared one.
fn is_up_to_date(history: &History, s: usize, m: usize) -> bool {
    let text = format!("s{s} {}", history.declared.services[s].version);
    let digest = grid::words::Digest::of(text.as_bytes());
    history.floor.machines[&machine(m)]
        .running
        .get(&service(s))
        .is_some_and(|running| running.files.iter().any(|file| file.sha256 == digest))
}

#[test]
fn a_consumer_beside_its_provider_takes_one_send() {
    let mut history = history(1, &[(&[0], &[]), (&[0], &[0])]);
    let (rounds, report) = push(&mut history, &plan(Whom::One(0)));
    assert_eq!(rounds, sent(&[(0, &["m0"])]));
    assert_eq!((report.rounds, report.verdict()), (0, Verdict::Done));
}

#[test]
fn a_chain_on_one_machine_takes_one_send() {
    let mut history = history(1, &[(&[0], &[]), (&[0], &[0]), (&[0], &[1])]);
    let (rounds, _) = push(&mut history, &plan(Whom::One(0)));
    assert_eq!(rounds, sent(&[(0, &["m0"])]));
}

#[test]
fn a_new_consumer_on_another_machine_is_complete_in_the_second_round_after_the_first() {
    let mut history = current(2, &[(&[0], &[]), (&[], &[0]), (&[1], &[])]);
    history.happens(&Op::Assign(1, [1].into()));
    let (rounds, report) = push(&mut history, &plan(Whom::One(1)));
    assert_eq!(rounds, sent(&[(1, &["m0"]), (2, &["m1"])]));
    assert_eq!((report.rounds, report.verdict()), (2, Verdict::Done));
}

#[test]
fn a_push_of_the_providers_machine_mints_for_its_consumers_at_once() {
    let mut history = current(2, &[(&[0], &[]), (&[], &[0]), (&[1], &[])]);
    history.happens(&Op::Assign(1, [1].into()));
    let (rounds, report) = push(&mut history, &plan(Whom::One(0)));
    assert_eq!(rounds, sent(&[(0, &["m0"]), (1, &["m1"])]));
    assert_eq!((report.rounds, report.verdict()), (1, Verdict::Done));
}

#[test]
fn an_account_issued_before_the_push_has_its_provider_flushed_whoever_is_named() {
    let mut history = current(3, &[(&[0], &[]), (&[1], &[]), (&[2], &[])]);
    history.happens(&Op::Issue(0, 1));
    let (rounds, _) = push(&mut history, &plan(Whom::One(2)));
    assert_eq!(rounds, sent(&[(1, &["m0"])]));
}

#[test]
fn a_chain_across_machines_takes_a_round_a_link() {
    let chain: &[(&[usize], &[usize])] = &[(&[0], &[]), (&[1], &[0]), (&[2], &[1]), (&[3], &[2])];
    let mut history = history(4, chain);
    let (rounds, report) = push(&mut history, &plan(Whom::All));
    assert_eq!(
        rounds,
        sent(&[(0, &["m0"]), (1, &["m1"]), (2, &["m2"]), (3, &["m3"])])
    );
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn a_rotation_gives_the_provider_both_then_the_consumer_the_new_then_takes_the_old() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Rotate(0));
    let (rounds, _) = push(&mut history, &plan(Whom::One(0)));
    assert_eq!(rounds, sent(&[(0, &["m0"]), (1, &["m1"]), (2, &["m0"])]));
    history.happens(&Op::Rotate(0));
    let (rounds, _) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(rounds, sent(&[(0, &["m0"]), (1, &["m1"]), (2, &["m0"])]));
}

#[test]
fn a_consumer_keeps_running_and_takes_its_files_while_a_rotation_cannot_reach_its_provider() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Rotate(0));
    history.happens(&Op::Edit(1));
    history.happens(&Op::Down(0));
    let (rounds, report) = push(&mut history, &plan(Whom::One(1)));
    assert_eq!(rounds[&0], ["m1"]);
    assert!(report.waiting.is_empty());
    assert!(is_up_to_date(&history, 1, 1));
}

#[test]
fn a_consumer_takes_its_files_while_what_it_wants_anew_cannot_reach_its_provider() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Want(1, 0, 1));
    history.happens(&Op::Edit(1));
    history.happens(&Op::Down(0));
    let (_, report) = push(&mut history, &plan(Whom::One(1)));
    assert!(report.waiting.is_empty());
    assert!(is_up_to_date(&history, 1, 1));
    history.happens(&Op::Up);
    let (rounds, report) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(rounds, sent(&[(0, &["m0"]), (1, &["m1"]), (2, &["m0"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn a_further_machine_of_a_provider_does_not_count_against_a_consumer_already_bound() {
    let mut history = current(3, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Assign(0, [0, 2].into()));
    history.happens(&Op::Edit(1));
    history.happens(&Op::Down(2));
    let (_, report) = push(&mut history, &plan(Whom::One(1)));
    assert!(report.waiting.is_empty());
    assert!(is_up_to_date(&history, 1, 1));
}

#[test]
fn a_new_consumer_waits_for_every_machine_of_its_provider() {
    let mut history = current(3, &[(&[0, 2], &[]), (&[], &[0])]);
    history.happens(&Op::Assign(1, [1].into()));
    history.happens(&Op::Down(2));
    let (_, report) = push(&mut history, &plan(Whom::One(1)));
    assert!(report.waiting[&machine(1)].contains_key(&service(1)));
    assert_eq!(report.verdict(), Verdict::Incomplete);
}

#[test]
fn a_new_consumer_waits_for_a_further_machine_that_never_had_a_list() {
    let mut history = current(3, &[(&[0], &[]), (&[], &[])]);
    history.happens(&Op::Issue(0, 1)); // so that the first machine admits it before it comes
    push(&mut history, &plan(Whom::One(0)));
    history.happens(&Op::Consume(1, 0));
    history.happens(&Op::Assign(0, [0, 2].into()));
    history.happens(&Op::Assign(1, [1].into()));
    history.happens(&Op::Down(2));
    let (_, report) = push(&mut history, &plan(Whom::One(1)));
    assert!(report.waiting[&machine(1)].contains_key(&service(1)));
    history.happens(&Op::Up);
    let (rounds, report) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(rounds, sent(&[(0, &["m2"]), (1, &["m1"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

/// A broker that acknowledged a consumer's account, and then an uncertain send without it; after that the consumer is wanted again.
fn uncertain_whether_it_is_admitted(leaves: &Op, comes: &Op) -> History {
    let mut history = current(2, &[(&[0], &[]), (&[], &[0]), (&[1], &[])]);
    history.happens(&Op::Down(1));
    history.happens(&Op::Assign(1, [1].into()));
    let (rounds, _) = push(&mut history, &plan(Whom::One(0)));
    assert_eq!(rounds[&0], ["m0"]); // the list with the account
    history.happens(leaves);
    let lost = PushPlan {
        faults: vec![Fault {
            at: 0,
            kind: FaultKind::ReceiptLost,
            step: 0,
        }],
        ..plan(Whom::One(0))
    };
    push(&mut history, &lost);
    history.happens(&Op::Up);
    history.happens(&Op::Hold(0));
    history.happens(comes);
    history
}

#[test]
fn a_consumer_waits_while_it_is_uncertain_whether_its_provider_still_admits_it() {
    let (leaves, comes) = (Op::Unassign(1), Op::Assign(1, [1].into()));
    let mut history = uncertain_whether_it_is_admitted(&leaves, &comes);
    let (_, report) = push(&mut history, &plan(Whom::One(1)));
    assert!(report.waiting[&machine(1)].contains_key(&service(1)));
    history.happens(&Op::Unhold);
    let (rounds, report) = push(&mut history, &plan(Whom::One(1)));
    assert_eq!(rounds, sent(&[(1, &["m0"]), (2, &["m1"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn a_consumer_waits_while_it_is_uncertain_whether_its_provider_is_still_there() {
    let (leaves, comes) = (Op::Unassign(0), Op::Assign(0, [0].into()));
    let mut history = uncertain_whether_it_is_admitted(&leaves, &comes);
    let (_, report) = push(&mut history, &plan(Whom::One(1)));
    assert!(report.waiting[&machine(1)].contains_key(&service(1)));
    history.happens(&Op::Unhold);
    let (rounds, report) = push(&mut history, &plan(Whom::One(1)));
    assert_eq!(rounds, sent(&[(1, &["m0"]), (2, &["m1"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn a_machine_on_hold_that_may_still_admit_who_was_revoked_owes_it() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Revoke(0));
    let broken = PushPlan {
        faults: vec![Fault {
            at: 0,
            kind: FaultKind::Broken,
            step: 0,
        }],
        ..plan(Whom::One(0))
    };
    push(&mut history, &broken);
    history.happens(&Op::Hold(0));
    let (_, report) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(report.on_hold[&machine(0)].owes, [service(0)].into());
    assert_eq!(report.verdict(), Verdict::Incomplete);
}

#[test]
fn services_that_are_bound_in_a_circle_leave_together() {
    let mut history = history(2, &[(&[0], &[]), (&[1], &[0])]);
    let unwaited = Consumes {
        wait: false,
        wants: 0,
    };
    history.declared.services[0].consumes.insert(1, unwaited);
    push(&mut history, &plan(Whom::All));
    assert_eq!(history.floor.machines[&machine(0)].running.len(), 1);
    history.happens(&Op::Unassign(0));
    history.happens(&Op::Unassign(1));
    let (rounds, report) = push(&mut history, &plan(Whom::Behind));
    // The one that does not wait for the other does not keep it.
    assert_eq!(rounds, sent(&[(0, &["m1"]), (1, &["m0"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn a_machine_that_changed_its_address_is_asked_and_not_sent_what_it_holds() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[])]); // a consumer would be told of it
    history.happens(&Op::Readdress(0));
    let (rounds, report) = push(&mut history, &plan(Whom::Behind));
    assert!(rounds.is_empty());
    assert_eq!(report.verdict(), Verdict::Done);
    assert!(report.undeclared.is_empty());
}

#[test]
fn a_machine_below_another_root_is_sent_all_of_it_there_though_nobody_names_it() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[])]);
    history.happens(&Op::Reroot(0));
    let (rounds, report) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(rounds, sent(&[(0, &["m0"])]));
    assert_eq!(report.verdict(), Verdict::Done);
    assert_eq!(history.floor.machines[&machine(0)].running.len(), 1);
}

#[test]
fn a_root_that_is_mistyped_and_put_right_costs_nothing_and_takes_over_nothing() {
    for broken_before in [false, true] {
        let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
        if broken_before {
            history.happens(&Op::Edit(1));
            let lost = PushPlan {
                faults: vec![Fault {
                    at: 0,
                    kind: FaultKind::ReceiptLost,
                    step: 0,
                }],
                ..plan(Whom::One(1))
            };
            push(&mut history, &lost);
        }
        history.happens(&Op::Misroot(1));
        history.happens(&Op::Rotate(0));
        for _ in 0..2 {
            let (_, report) = push(&mut history, &plan(Whom::Behind));
            assert!(matches!(
                report.failed[&machine(1)],
                Problem::Refused(_) | Problem::RolledBack { .. }
            ));
            assert!(report.undeclared[&machine(1)].contains("sim-0"));
        }
        // The account that it uses where it lies stays admitted.
        let admitted = &history.floor.machines[&machine(0)].loaded[&service(0)];
        assert_eq!(admitted.len(), 2);
        history.happens(&Op::PutRight);
        let (rounds, report) = push(&mut history, &plan(Whom::Behind));
        assert_eq!(report.verdict(), Verdict::Done);
        assert!(report.undeclared.is_empty() && report.left_behind.is_empty());
        assert_eq!(rounds, sent(&[(0, &["m1"]), (1, &["m0"])]));
    }
}

#[test]
fn what_lies_below_a_former_root_is_named_and_known_when_that_is_declared_again() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[])]);
    let before = history.floor.machines[&machine(0)].clone();
    history.happens(&Op::Reroot(0));
    let (_, report) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(
        report.left_behind[&machine(0)],
        ["m0:/var/lib/grid/sim-0".to_owned()]
    );
    // Back to the former root, where all of it still lies.
    history.declared.roots.clear();
    history.floor.machines.insert(machine(0), before);
    let (rounds, report) = push(&mut history, &plan(Whom::Behind));
    assert!(rounds.is_empty());
    assert_eq!(report.verdict(), Verdict::Done);
    assert_eq!(
        report.left_behind[&machine(0)],
        ["m0:/var/lib/grid/sim-1".to_owned()]
    );
}

#[test]
fn a_service_that_provides_no_more_closes_its_accounts_before_it_changes() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Provide(0));
    let (rounds, report) = push(&mut history, &plan(Whom::One(1)));
    // The consumer lets go of its account, then the list is emptied, then the load goes.
    assert_eq!(rounds, sent(&[(0, &["m1"]), (1, &["m0"]), (2, &["m0"])]));
    assert_eq!(report.verdict(), Verdict::Done);
    assert!(history.floor.machines[&machine(0)].loaded.is_empty());
}

#[test]
fn what_another_store_sent_is_replaced_where_it_is_named_and_to_be_taken_over_and_nowhere_else() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[])]);
    for n in 0..2 {
        history.happens(&Op::Intrude(n));
        history.happens(&Op::Edit(n));
    }
    let (_, report) = push(&mut history, &plan(Whom::One(0)));
    assert_eq!(report.verdict(), Verdict::Fenced);
    assert_eq!(report.failed.len(), 2);
    let taking_over = PushPlan {
        take_over: true,
        ..plan(Whom::One(0))
    };
    let (_, report) = push(&mut history, &taking_over);
    assert_eq!(report.verdict(), Verdict::Fenced);
    assert_eq!(report.sent, [machine(0)].into());
    let taking_over = PushPlan {
        whom: Whom::Behind,
        ..taking_over
    };
    let (_, report) = push(&mut history, &taking_over);
    assert_eq!(report.verdict(), Verdict::Done);
    assert!(is_up_to_date(&history, 1, 1));
}

#[test]
fn a_machine_that_is_taken_over_and_goes_back_is_asked_what_it_went_back_to() {
    let mut history = current(3, &[(&[0], &[]), (&[1], &[])]);
    // It moves there: while it is awaited nothing is sent to the machine, and nobody sees that it was made anew.
    history.happens(&Op::Assign(0, [2].into()));
    history.happens(&Op::Empty(2));
    let taking_over = PushPlan {
        take_over: true,
        faults: vec![Fault {
            at: 1,
            kind: FaultKind::RolledBack,
            step: 0,
        }],
        ..plan(Whom::One(2))
    };
    push(&mut history, &taking_over);
    assert!(
        history.store.borrow().peek().fleet[&machine(2)]
            .attempt
            .is_some()
    );
    history.happens(&Op::Assign(0, [0].into()));
    let (rounds, report) = push(&mut history, &plan(Whom::One(2)));
    assert_eq!(rounds, sent(&[(0, &["m2"]), (1, &["m0"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn who_does_not_wait_is_sent_first_to_the_letter() {
    let mut history = current(2, &[(&[0], &[]), (&[], &[0]), (&[1], &[])]);
    history.declared.services[1]
        .consumes
        .get_mut(&0)
        .unwrap()
        .wait = false;
    history.happens(&Op::Assign(1, [1].into()));
    let (rounds, report) = push(&mut history, &plan(Whom::One(1)));
    assert_eq!(rounds, sent(&[(0, &["m1"]), (1, &["m0"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn what_stops_first_is_gone_from_the_old_machine_before_it_is_on_the_new_one() {
    let mut history = current(2, &[(&[0], &[])]);
    history.happens(&Op::Assign(0, [1].into()));
    let (rounds, _) = push(&mut history, &plan(Whom::All));
    assert_eq!(rounds, sent(&[(0, &["m0"]), (1, &["m1"])]));
}

#[test]
fn what_starts_first_is_on_the_new_machine_before_it_leaves_the_old_one() {
    let mut history = current(2, &[(&[0], &[])]);
    history.happens(&Op::Turn(0));
    history.happens(&Op::Assign(0, [1].into()));
    let (rounds, _) = push(&mut history, &plan(Whom::All));
    assert_eq!(rounds, sent(&[(0, &["m1"]), (1, &["m0"])]));
}

#[test]
fn what_starts_first_stays_while_it_is_uncertain_whether_the_new_machine_still_has_it() {
    let mut history = current(2, &[(&[1], &[])]);
    history.happens(&Op::Turn(0));
    history.happens(&Op::Unassign(0));
    let broken = PushPlan {
        faults: vec![Fault {
            at: 0,
            kind: FaultKind::Broken,
            step: 0,
        }],
        ..plan(Whom::One(1))
    };
    push(&mut history, &broken);
    history.happens(&Op::Hold(1));
    history.happens(&Op::Assign(0, [0].into()));
    push(&mut history, &plan(Whom::One(0)));
    history.happens(&Op::Assign(0, [1].into()));
    let (rounds, _) = push(&mut history, &plan(Whom::One(0)));
    assert!(rounds.is_empty());
    history.happens(&Op::Unhold);
    let (_, report) = push(&mut history, &plan(Whom::All));
    assert_eq!(report.verdict(), Verdict::Done);
    assert!(is_up_to_date(&history, 0, 1));
    assert!(history.floor.machines[&machine(0)].running.is_empty());
}

#[test]
fn a_provider_that_somebody_uses_starts_first_and_leaves_last() {
    let mut history = current(3, &[(&[0], &[]), (&[2], &[0])]);
    history.happens(&Op::Assign(0, [1].into()));
    let (rounds, _) = push(&mut history, &plan(Whom::All));
    assert_eq!(rounds, sent(&[(0, &["m1"]), (1, &["m2"]), (2, &["m0"])]));
}

#[test]
fn a_service_that_is_said_to_be_gone_is_not_awaited() {
    let mut history = current(2, &[(&[0], &[])]);
    history.happens(&Op::Assign(0, [1].into()));
    history.happens(&Op::Down(0));
    let (rounds, report) = push(&mut history, &plan(Whom::One(1)));
    assert!(!rounds.values().flatten().any(|node| node == "m1"));
    assert!(report.waiting[&machine(1)].contains_key(&service(0)));
    history.happens(&Op::Forget(0, 0));
    let (rounds, _) = push(&mut history, &plan(Whom::One(1)));
    assert_eq!(rounds[&0], ["m1"]);
}

/// A consumer that does not wait, on a machine that is down and from which it is said to be gone; its provider moves.
fn said_to_be_gone_and_sent_again() -> History {
    let mut history = history(3, &[(&[0], &[]), (&[1], &[0])]);
    let consumes = &mut history.declared.services[1].consumes;
    consumes.get_mut(&0).unwrap().wait = false;
    push(&mut history, &plan(Whom::All));
    history.happens(&Op::Forget(1, 0));
    history
}

#[test]
fn what_is_said_to_be_gone_still_is_after_a_send_that_did_not_arrive() {
    let mut history = said_to_be_gone_and_sent_again();
    history.happens(&Op::Assign(0, [2].into()));
    let (rounds, _) = push(&mut history, &plan(Whom::One(1)));
    // Nobody is bound to the provider, so it stops first.
    assert_eq!(rounds, sent(&[(0, &["m1"]), (1, &["m0"]), (2, &["m2"])]));
}

#[test]
fn what_is_said_to_be_gone_is_no_more_once_it_may_have_been_sent_again() {
    let mut history = said_to_be_gone_and_sent_again();
    history.happens(&Op::Up);
    let lost = PushPlan {
        faults: vec![Fault {
            at: 0,
            kind: FaultKind::ReceiptLost,
            step: 0,
        }],
        ..plan(Whom::One(1))
    };
    push(&mut history, &lost);
    history.happens(&Op::Down(1));
    history.happens(&Op::Assign(0, [2].into()));
    let (rounds, _) = push(&mut history, &plan(Whom::Behind));
    // Somebody may be bound to the provider, so it starts first, and stays.
    assert_eq!(rounds, sent(&[(0, &["m2"])]));
}

#[test]
fn a_revoked_service_leaves_and_does_not_wait() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Revoke(0));
    let (rounds, report) = push(&mut history, &plan(Whom::All));
    assert_eq!(rounds, sent(&[(0, &["m0", "m1"])]));
    assert_eq!(report.verdict(), Verdict::Done);
    assert_eq!(report.revoked[&machine(1)], [service(1)].into());
    history.happens(&Op::Issue(0, 1));
    let (rounds, _) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(rounds, sent(&[(0, &["m0"]), (1, &["m1"])]));
}

#[test]
fn a_waiting_services_own_list_is_current_all_the_same() {
    // s1 waits for s0, which is down; s2 on a third machine gets its account on s1 although s1 waits.
    let mut history = current(4, &[(&[0], &[]), (&[1], &[]), (&[], &[1]), (&[3], &[])]);
    history.happens(&Op::Down(0));
    history.happens(&Op::Consume(1, 0));
    history.happens(&Op::Assign(2, [2].into()));
    let (_, report) = push(&mut history, &plan(Whom::One(2)));
    assert!(report.waiting[&machine(1)].contains_key(&service(1)));
    assert!(!report.waiting.contains_key(&machine(2)));
    assert!(is_up_to_date(&history, 2, 2));
}

fn rolling_back(at: usize) -> PushPlan {
    PushPlan {
        faults: vec![Fault {
            at,
            kind: FaultKind::RolledBack,
            step: 5, // the last of the steps: lists are loaded
        }],
        ..plan(Whom::One(1))
    }
}

#[test]
fn the_list_that_stays_when_the_rest_is_rolled_back_is_acknowledged() {
    let mut history = current(2, &[(&[0], &[]), (&[], &[0]), (&[1], &[])]);
    history.happens(&Op::Assign(1, [1].into()));
    // The provider's machine has two steps: the load, and the service that fails.
    let (rounds, report) = push(&mut history, &rolling_back(0));
    assert_eq!(rounds, sent(&[(1, &["m0"]), (2, &["m1"])]));
    assert!(matches!(
        report.failed[&machine(0)],
        Problem::RolledBack { .. }
    ));
    assert!(report.waiting.is_empty());
    assert!(is_up_to_date(&history, 1, 1));
}

#[test]
fn what_was_rolled_back_is_sent_again_only_when_it_is_named_or_composes_differently() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[])]);
    history.happens(&Op::Edit(1));
    let (_, report) = push(&mut history, &rolling_back(0));
    assert_eq!(report.verdict(), Verdict::Incomplete);
    let (rounds, report) = push(&mut history, &plan(Whom::One(0)));
    assert!(rounds.is_empty());
    assert_eq!(report.rolled_back, [machine(1)].into());
    assert_eq!(report.verdict(), Verdict::Incomplete);
    // Named, and named as one that is behind.
    for whom in [Whom::One(1), Whom::Behind] {
        let again = PushPlan {
            whom,
            ..rolling_back(0)
        };
        let (rounds, _) = push(&mut history, &again);
        assert_eq!(rounds, sent(&[(0, &["m1"])]));
    }
    history.happens(&Op::Edit(1));
    let (rounds, report) = push(&mut history, &plan(Whom::One(0)));
    assert_eq!(rounds, sent(&[(1, &["m1"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn a_named_machine_that_is_current_is_contacted_and_nothing_is_sent() {
    let mut history = current(2, &[(&[0], &[]), (&[1], &[0])]);
    history.happens(&Op::Drift(0));
    let (rounds, _) = push(&mut history, &plan(Whom::Behind));
    assert!(rounds.is_empty());
    assert!(!history.floor.drifted.is_empty());
    let (rounds, report) = push(&mut history, &plan(Whom::One(0)));
    assert!(rounds.is_empty());
    assert_eq!(report.verdict(), Verdict::Done);
    assert!(history.floor.drifted.is_empty());
}

#[test]
fn a_named_machine_that_is_sent_to_is_contacted_where_the_send_left_a_list_as_it_was() {
    let mesh: &[(&[usize], &[usize])] = &[(&[0], &[]), (&[1], &[0]), (&[0], &[])];
    for (whom, mended) in [(Whom::Behind, false), (Whom::One(0), true)] {
        let mut history = current(2, mesh);
        history.happens(&Op::Drift(0));
        history.happens(&Op::Edit(2));
        let (rounds, report) = push(&mut history, &plan(whom));
        assert_eq!(rounds, sent(&[(0, &["m0"])]));
        assert_eq!(report.verdict(), Verdict::Done);
        assert_eq!(history.floor.drifted.is_empty(), mended);
    }
}

#[test]
fn what_a_contact_found_not_well_of_a_service_ends_with_a_send_that_looks_at_it_and_no_other() {
    // Beside it a provider whose list no send of these loads, so that none of them verifies all.
    let mesh: &[(&[usize], &[usize])] = &[(&[0], &[]), (&[0], &[]), (&[0], &[])];
    let found = |history: &History| {
        let store = history.store.borrow();
        let unwell = &store.peek().fleet[&machine(0)].unwell;
        (0..3)
            .filter(|&s| unwell.services.contains_key(&service(s)))
            .collect::<Vec<_>>()
    };
    let mut history = history(1, mesh);
    for s in [1, 2] {
        history.declared.services[s].provides = false;
    }
    push(&mut history, &plan(Whom::All));
    let mut names = [service(0), service(1), service(2)];
    names.sort();
    for s in [1, 2] {
        let step = names.iter().position(|name| *name == service(s)).unwrap();
        let fails = PushPlan {
            faults: vec![Fault {
                at: 0,
                kind: FaultKind::Refused,
                step,
            }],
            ..plan(Whom::One(0))
        };
        let (_, report) = push(&mut history, &fails);
        assert_eq!(report.verdict(), Verdict::Incomplete);
    }
    assert_eq!(found(&history), [1, 2]);
    for (edited, left) in [(0, &[1, 2][..]), (1, &[2]), (2, &[])] {
        history.happens(&Op::Edit(edited));
        let (rounds, _) = push(&mut history, &plan(Whom::Behind));
        assert_eq!(rounds, sent(&[(0, &["m0"])]));
        assert_eq!(found(&history), left, "s{edited} was sent");
    }
}

/// Everything at once: each service of a chain of `links` moves to a machine of its own, and every account is rotated.
/// The last machine has nothing to do with it, and may have been made anew.
fn all_moves(links: usize, start_first: bool, made_anew: bool) -> (usize, Verdict) {
    let on: Vec<[usize; 1]> = (0..links).map(|n| [n]).collect();
    let providers: Vec<Vec<usize>> = (0..links)
        .map(|n| n.checked_sub(1).into_iter().collect())
        .collect();
    let chain: Vec<(&[usize], &[usize])> = (0..links)
        .map(|n| (&on[n][..], &providers[n][..]))
        .collect();
    let mut history = current(2 * links + 1, &chain);
    for n in 0..links {
        history.declared.services[n].start_first = start_first;
        history.happens(&Op::Assign(n, [links + n].into()));
        if n > 0 {
            history.happens(&Op::Rotate(n - 1));
        }
    }
    if made_anew {
        history.happens(&Op::Empty(2 * links));
    }
    let (_, report) = push(&mut history, &plan(Whom::One(2 * links)));
    (report.rounds, report.verdict())
}

#[test]
fn a_chain_that_moves_as_a_whole_takes_a_round_for_each_link_up_and_one_for_each_down() {
    for links in 1..=9 {
        for start_first in [false, true] {
            // A machine that has nothing to do with it is named: the first round sends nothing.
            let (rounds, verdict) = all_moves(links, start_first, false);
            assert_eq!(verdict, Verdict::Done, "a chain of {links}");
            // What stops first is torn down from its last consumer while it is set up from its first provider.
            let expected = match (links, start_first) {
                (1, _) => 2,
                (_, true) => 2 * links,
                (_, false) => 2 * links.div_ceil(2),
            };
            assert_eq!(
                rounds, expected,
                "a chain of {links}, start first: {start_first}"
            );
        }
    }
}

#[test]
fn a_named_machine_that_turns_out_to_be_made_anew_takes_one_round_more() {
    for links in 2..=4 {
        // It is contacted when nothing else is behind any more.
        let (rounds, verdict) = all_moves(links, true, true);
        assert_eq!((rounds, verdict), (2 * links + 1, Verdict::Done));
    }
}

#[test]
fn a_push_whose_rounds_run_out_says_who_is_still_behind_and_the_next_one_goes_on() {
    let chain: &[(&[usize], &[usize])] = &[(&[0], &[]), (&[1], &[0]), (&[2], &[1])];
    let mut history = history(3, chain);
    history.max_rounds = Some(1);
    let (rounds, report) = push(&mut history, &plan(Whom::All));
    assert_eq!(rounds, sent(&[(0, &["m0"]), (1, &["m1"])]));
    assert_eq!(report.verdict(), Verdict::OutOfRounds);
    assert_eq!(report.out_of_rounds, [machine(2)].into());
    let (rounds, report) = push(&mut history, &plan(Whom::Behind));
    assert_eq!(rounds, sent(&[(0, &["m2"])]));
    assert_eq!(report.verdict(), Verdict::Done);
}
