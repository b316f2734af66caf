//! What to type next, after a push that is not done.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::phrases;
use crate::delivery::FailedStep;
use crate::mesh::Mesh;
use crate::push::{Blocker, Problem, Report, Verdict, Whose};
use crate::words::{NodeName, ServiceName, Token};

/// What to type next. Never a machine that nobody named: `grid push --behind` sends to whoever is behind.
pub(super) fn hints(
    mesh: &Mesh,
    report: &Report,
    held_by_default: &BTreeSet<NodeName>,
    forgotten: &BTreeSet<NodeName>,
) -> Vec<String> {
    let mut hints = of_failures(mesh, report, forgotten);
    hints.extend(of_holds(report, held_by_default));
    hints.extend(of_services(report));
    hints.extend(of_undeclared(mesh, report));
    match report.verdict() {
        Verdict::Done | Verdict::Fenced => {}
        Verdict::Interrupted if is_anything_left(report) => {
            hints.push("`grid push --behind` goes on from here".to_owned());
        }
        Verdict::Interrupted => hints.push("nothing is left to be sent".to_owned()),
        Verdict::OutOfRounds => hints.push(
            "`grid push --behind` goes on from here; --max-rounds sets how many rounds a push may take"
                .to_owned(),
        ),
        Verdict::Incomplete => {
            hints.extend(changed_at_providers(mesh, report));
            hints.extend(of_mending(report));
            if hints.is_empty() {
                hints.push("`grid push --behind` finishes this".to_owned());
            }
        }
    }
    hints
}

/// Whether a push of whoever is behind has something to do.
fn is_anything_left(report: &Report) -> bool {
    !report.behind.is_empty()
        || !report.rolled_back.is_empty()
        || !report.waiting.is_empty()
        || report
            .failed
            .keys()
            .any(|node| !report.failed_current.contains(node))
}

/// Who else sent to a machine, and what its failure says itself.
fn of_failures(mesh: &Mesh, report: &Report, forgotten: &BTreeSet<NodeName>) -> Vec<String> {
    let found = report
        .failed
        .iter()
        .filter_map(|(node, problem)| match problem {
            Problem::Fenced { held, whose, .. } => Some((node, held.as_ref(), whose)),
            _ => None,
        });
    let mut hints = fences(mesh, found, forgotten);
    let told = report.failed.iter().filter_map(|(node, problem)| {
        let hint = phrases::failure_of(problem)?.hint.as_ref()?;
        Some((node, hint.as_str()))
    });
    hints.extend(phrases::to_do_on(told));
    hints
}

/// Machines on hold: those that matter to somebody, then those that keep an older secret admitted.
fn of_holds(report: &Report, held_by_default: &BTreeSet<NodeName>) -> Vec<String> {
    let mut hints = Vec::new();
    for (node, held) in &report.on_hold {
        let matters = held.named || !held.owes.is_empty();
        if matters && held_by_default.contains(node) {
            hints.push(format!(
                "{node} is on hold by `[defaults]`: take `hold` out there, or give the others one of their own; \
                 `grid push --behind` then sends what it lacks"
            ));
        } else if matters {
            hints.push(format!(
                "`grid unhold {node}` ends its hold, `grid push --behind` then sends what it lacks"
            ));
        }
    }
    for (node, held) in &report.on_hold {
        if !held.older.is_empty() {
            hints.push(phrases::ends_older(node, &held.older));
        }
    }
    hints
}

/// Accounts that were revoked, and providers that are on no machine.
fn of_services(report: &Report) -> Vec<String> {
    let issue = report.revoked_accounts.iter().map(phrases::issue_again);
    let assign = unassigned(report).into_iter().map(|provider| {
        format!(
            "`grid assign {provider} NODE` puts {provider} on a machine, `grid push --behind` then goes on"
        )
    });
    issue.chain(assign).collect()
}

/// Machines that are not declared, or elsewhere than they were reached.
fn of_undeclared(mesh: &Mesh, report: &Report) -> Vec<String> {
    let is_told = |node: &NodeName| {
        let fenced = |problem: &Problem| matches!(problem, Problem::Fenced { whose: Whose::OtherMachine(old), .. } if old == node);
        report.failed.values().any(fenced)
    };
    let untold = report.undeclared.iter().filter(|(node, _)| !is_told(node));
    let left_behind = report.left_behind.iter();
    let left_behind = left_behind.map(|(node, places)| phrases::ends_left_behind(node, places));
    untold
        .map(|(node, place)| {
            if mesh.nodes.contains_key(node) {
                phrases::elsewhere(node, place)
            } else {
                let none = BTreeSet::new();
                phrases::undeclared(node, report.still_held.get(node).unwrap_or(&none))
            }
        })
        .chain(left_behind)
        .collect()
}

/// What is wrong on machines, and what then finishes the push.
fn of_mending(report: &Report) -> Vec<String> {
    let mut hints = Vec::new();
    let (current, behind) = to_mend(report);
    let (unheard, behind): (BTreeSet<_>, BTreeSet<_>) = behind
        .into_iter()
        .partition(|node| report.failed.get(*node).is_some_and(is_unheard));
    if !unheard.is_empty() {
        hints.push(format!(
            "`grid push --behind` asks {} first what {}, and goes on from there",
            phrases::list(&unheard),
            match unheard.len() {
                1 => "it holds",
                _ => "they hold",
            }
        ));
    }
    if !behind.is_empty() {
        hints.push(format!(
            "{}, then `grid push --behind` finishes this",
            to_do(report, behind)
        ));
    }
    if !current.is_empty() {
        let typed: Vec<String> = current.iter().map(ToString::to_string).collect();
        hints.push(format!(
            "mend what is wrong on {}, then `grid push {}` finishes this",
            phrases::list(current),
            typed.join(" ")
        ));
    }
    hints
}

/// Where a service failed that has accounts elsewhere: what somebody changed there is not found on its own machine.
fn changed_at_providers(mesh: &Mesh, report: &Report) -> Vec<String> {
    let mut hints = Vec::new();
    for (node, problem) in &report.failed {
        let failure = phrases::failure_of(problem).filter(|failure| {
            let step = failure.step;
            matches!(step, FailedStep::Apply | FailedStep::Check) && !failure.is_out_of_time()
        });
        let service = failure.and_then(|failure| mesh.services.get(failure.service.as_ref()?));
        let Some(service) = service else {
            continue;
        };
        let mut providers = Vec::new();
        let mut nodes = BTreeSet::new();
        for provider in service.consumes.keys() {
            let on = mesh.services.get(provider).map(|provider| &provider.nodes);
            // Those that this push looked at, or could not reach, are not to be named once more.
            let on: BTreeSet<&NodeName> = on
                .into_iter()
                .flatten()
                .filter(|on| {
                    *on != node
                        && !report.contacted.contains(*on)
                        && !report.failed.contains_key(*on)
                })
                .collect();
            if !on.is_empty() {
                providers.push(format!("{provider} on {}", phrases::list(&on)));
                nodes.extend(on);
            }
        }
        if !nodes.is_empty() {
            let typed: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            hints.push(format!(
                "{} consumes {}: if its account was changed or removed there, `grid push {}` finds that and puts it back",
                service.name,
                phrases::list(providers),
                typed.join(" ")
            ));
        }
    }
    hints
}

/// Whether nothing is known to be wrong on a machine: its answer was not heard, that is all.
fn is_unheard(problem: &Problem) -> bool {
    matches!(problem, Problem::Uncertain(failure) if failure.step == FailedStep::Receipt && failure.service.is_none())
}

/// Providers that somebody waits for and that are on no machine.
fn unassigned(report: &Report) -> BTreeSet<&ServiceName> {
    report
        .waiting
        .values()
        .flat_map(BTreeMap::values)
        .flat_map(|waiting| &waiting.blocked)
        .filter(|(_, blockers)| blockers.contains(&Blocker::Unassigned))
        .map(|(provider, _)| provider)
        .collect()
}

/// The machines that have to be mended: those that are current, which only naming them contacts, and the others.
pub(super) fn to_mend(report: &Report) -> (BTreeSet<&NodeName>, BTreeSet<&NodeName>) {
    let all = report.failed.keys().chain(&report.rolled_back);
    all.partition(|node| report.failed_current.contains(*node))
}

/// What to do, and where: a source that does not compose lies here, and nothing is wrong on its machine.
pub(super) fn to_do(report: &Report, nodes: BTreeSet<&NodeName>) -> String {
    let mut sources = BTreeSet::new();
    let mut machines = BTreeSet::new();
    for node in nodes {
        match report.failed.get(node) {
            Some(Problem::Uncomposable(wrong)) => {
                sources.insert(wrong.remedy());
            }
            _ => {
                machines.insert(node);
            }
        }
    }
    let mut parts: Vec<String> = sources.into_iter().collect();
    if !machines.is_empty() {
        parts.push(format!("mend what is wrong on {}", phrases::list(machines)));
    }
    parts.join("; ")
}

/// What to do about fenced machines: once for all that hold what the same push sent.
///
/// `found`: each of them, what it holds, and whose that is.
pub(in crate::cli) fn fences<'a>(
    mesh: &Mesh,
    found: impl Iterator<Item = (&'a NodeName, Option<&'a Token>, &'a Whose)>,
    forgotten: &BTreeSet<NodeName>,
) -> Vec<String> {
    let mut alike: BTreeMap<(&Whose, Option<String>, bool), Vec<&NodeName>> = BTreeMap::new();
    for (node, held, whose) in found {
        let by = held.and_then(|token| match whose {
            Whose::OtherStore => Some(format!("push {} of store {}", token.push, token.store)),
            Whose::LaterPush => Some(format!("push {}", token.push)),
            _ => None,
        });
        let key = (whose, by, forgotten.contains(node));
        alike.entry(key).or_default().push(node);
    }
    alike
        .into_iter()
        .map(|((whose, by, forgotten), nodes)| fence(mesh, whose, by.as_deref(), forgotten, &nodes))
        .collect()
}

fn fence(
    mesh: &Mesh,
    whose: &Whose,
    by: Option<&str>,
    forgotten: bool,
    nodes: &[&NodeName],
) -> String {
    let names = phrases::list(nodes);
    let typed: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let take_over = format!("`grid push {} --take-over`", typed.join(" "));
    let (holds, holds_of) = match nodes {
        [_] => ("holds", "its log is"),
        _ => ("hold", "their logs are"),
    };
    match whose {
        Whose::Nobody => format!(
            "{names} {holds} nothing, though something was sent: {take_over} sends all of it again"
        ),
        Whose::OtherStore => format!(
            "{names} {holds} what {} sent: find out who that was ({holds_of} above) and push from that store; or {take_over} \
             replaces it, and the other store is then fenced in its turn. If \
             that was this mesh's own `.grid`, which is lost: put its backup back in its place, or `grid push --all --take-over`",
            by.unwrap_or("another store")
        ),
        Whose::OtherMachine(old) if mesh.nodes.contains_key(old) => format!(
            "{names} and {old} are one machine with one root: take one of them out of the declaration, or give each a `root` of its own"
        ),
        Whose::OtherMachine(old) => format!(
            "{names} is the machine that was {old}: `grid forget {old}`, then {take_over}, take it under its new name; or call it {old} again"
        ),
        Whose::LaterPush => format!(
            "{names} {holds} what {} of this store sent, which this copy of the store does not know: it is an older one, or two are in \
             use. Put the newest copy back in its place and push from that; or {take_over} replaces it, and the other copy is then fenced \
             in its turn",
            by.unwrap_or("a later push")
        ),
        Whose::EarlierPush => format!(
            "if {names} {was_forgotten}had another name, had its `address` or `root` changed and changed back, or was put back from a backup or \
             a snapshot, {take_over} sends to it again; if not, this `.grid` is an older copy (put the newest one back in its place), or \
             another copy of it pushes too ({holds_of} above): find it, and keep one of the two",
            was_forgotten = if forgotten {
                "was forgotten here (`grid history` says when), "
            } else {
                ""
            }
        ),
    }
}
