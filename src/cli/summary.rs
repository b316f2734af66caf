//! The end of a push: every machine that is not current is named with what keeps it, and what to type next.

use super::exit::{CommandError, Exit};
use super::phrases::{self, count};
use super::ui::{Line, Look, Ui};
use crate::delivery::FailedStep;
use crate::mesh::{Loaded, Mesh};
use crate::push::{Blocker, Problem, Report, Verdict, Waiting, Whose};
use crate::words::{NodeName, ServiceName, Token};
use std::collections::{BTreeMap, BTreeSet};

/// As wide as what stands before a machine's name.
const LABEL: usize = 12;

/// Says how a push ended.
///
/// `forgotten`: the machines that `grid forget` took as gone, as the journal has it.
pub(super) fn tell(
    ui: &mut Ui,
    loaded: &Loaded,
    report: &Report,
    forgotten: &BTreeSet<NodeName>,
    dry_run: bool,
) -> Result<(), CommandError> {
    let Loaded {
        mesh,
        held_by_default,
        ..
    } = loaded;
    let mut lines = vec![headline(report, dry_run)];
    lines.extend(named(mesh, report));
    ui.results(&lines)?;
    if let Some(what) = phrases::gossip(mesh) {
        ui.note(&Line::new().look(Look::Warn, "note: ").plain(what));
    }
    if mesh.nodes.is_empty() {
        ui.hint(phrases::NO_MACHINES);
    }
    if dry_run {
        ui.chat(&Line::of("nothing was minted, sent or written"));
        let (current, behind) = to_mend(report);
        let failed: BTreeSet<_> = current
            .into_iter()
            .chain(behind)
            .filter(|node| report.failed.contains_key(*node))
            .collect();
        if !failed.is_empty() {
            ui.hint(&to_do(report, failed));
        }
        return Ok(());
    }
    let exit = Exit::from(report.verdict());
    if exit != Exit::Done {
        let meaning = match report.verdict() {
            Verdict::Fenced => "a machine does not hold what this store sent to it last",
            _ => exit.meaning(),
        };
        ui.note(&Line::of(format!("exit {}: {meaning}", exit.code())));
    }
    for hint in hints(mesh, report, held_by_default, forgotten) {
        ui.hint(&hint);
    }
    Ok(())
}

fn headline(report: &Report, dry_run: bool) -> Line {
    let (look, word) = match report.verdict() {
        _ if dry_run => (Look::Strong, "dry run"),
        Verdict::Done => (Look::Good, "done"),
        Verdict::Interrupted => (Look::Bad, "interrupted"),
        Verdict::Fenced => (Look::Bad, "fenced"),
        Verdict::Incomplete => (Look::Bad, "incomplete"),
        Verdict::OutOfRounds => (Look::Bad, "out of rounds"),
    };
    let sent = if dry_run { "to send" } else { "sent" };
    let mut parts = vec![
        format!("{} {sent}", count(report.sent.len(), "machine")),
        format!("{} failed", report.failed.len()),
        format!("{} already current", already_current(report)),
    ];
    let mut more = |n: usize, what: &str| {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    };
    let mut waiting = report.waiting.len();
    if report
        .waiting
        .keys()
        .all(|node| report.failed.contains_key(node))
    {
        waiting = 0; // each of them is counted already
    }
    more(waiting, if waiting == 1 { "waits" } else { "wait" });
    more(rolled_back_before(report).count(), "rolled back before");
    more(report.behind.len(), "behind");
    more(report.undeclared.len(), "undeclared");
    if !report.on_hold.is_empty() {
        let held = report
            .on_hold
            .iter()
            .map(|(node, held)| format!("{node} ({})", phrases::hold(&held.hold)));
        parts.push(format!(
            "{} on hold: {}",
            report.on_hold.len(),
            phrases::list(held)
        ));
    }
    Line::new()
        .look(look, word)
        .plain(format!(": {}", parts.join(", ")))
}

/// Those that did not fail in this push, but in an earlier one.
fn rolled_back_before(report: &Report) -> impl Iterator<Item = &NodeName> {
    let failed = |node: &&NodeName| !report.failed.contains_key(*node);
    report.rolled_back.iter().filter(failed)
}

/// Those that are current and were not sent to.
fn already_current(report: &Report) -> usize {
    let sent_and_current = report
        .sent
        .iter()
        .filter(|node| {
            !report.failed.contains_key(*node)
                && !report.behind.contains_key(*node)
                && !report.rolled_back.contains(*node)
                && !report.on_hold.contains_key(*node)
                && !report.waiting.contains_key(*node)
        })
        .count();
    report.current.saturating_sub(sent_and_current)
}

/// Why machines were kept back, after what they lack.
fn kept_back(report: &Report) -> &'static str {
    if report.interrupted {
        "; kept back, since this was interrupted"
    } else {
        "; kept back, since too many machines failed (--max-failures)"
    }
}

/// A line for every machine that is not current.
fn named(mesh: &Mesh, report: &Report) -> Vec<Line> {
    let mut lines: Vec<(&str, Look, &NodeName, String)> = Vec::new();
    let mut line = |label, look, node, text| lines.push((label, look, node, text));
    for (node, problem) in &report.failed {
        line("failed", Look::Bad, node, phrases::problem(problem));
    }
    for node in rolled_back_before(report) {
        let text = "rolled back from what it should be, and nothing has changed since";
        line("failed", Look::Bad, node, text.to_owned());
    }
    for (node, waiting) in &report.waiting {
        for (service, waiting) in waiting {
            let text =
                phrases::wait_blocked(mesh, service, &waiting.wait, &blocked(report, waiting));
            line("waits", Look::Warn, node, text);
        }
    }
    for (node, services) in &report.revoked {
        let text = format!("{} revoked, so not started", phrases::list(services));
        line("revoked", Look::Warn, node, text);
    }
    for (node, renewal) in &report.renewals {
        line("renewal", Look::Warn, node, phrases::renewal(renewal));
    }
    for (node, reasons) in &report.behind {
        let mut text = phrases::reasons(reasons);
        if report.kept_back.contains(node) {
            text.push_str(kept_back(report));
        }
        line("behind", Look::Warn, node, text);
    }
    for node in &report.kept_back {
        if !report.behind.contains_key(node) {
            let text = format!("not contacted{}", kept_back(report));
            line("kept back", Look::Warn, node, text);
        }
    }
    for (node, held) in &report.on_hold {
        let mut text = Vec::new();
        if held.uncertain {
            text.push("nobody knows what it holds".to_owned());
        }
        if !held.owes.is_empty() {
            text.push(phrases::owes(&held.owes));
        }
        if !held.older.is_empty() {
            text.push(phrases::older(&held.older));
        }
        if held.named {
            text.push("it was named, and not sent to".to_owned());
        }
        if !text.is_empty() {
            line("on hold", Look::Warn, node, text.join("; "));
        }
    }
    for (node, address) in &report.undeclared {
        let text = match address.as_str() {
            "" => "it left the declaration".to_owned(),
            address if mesh.nodes.contains_key(node) => {
                format!(
                    "it may still hold what it was sent at {address}, where it was last reached"
                )
            }
            address => format!("it left the declaration, and was last reached at {address}"),
        };
        line("undeclared", Look::Warn, node, text);
    }
    let width = lines
        .iter()
        .map(|(_, _, node, _)| node.as_str().len())
        .max();
    let width = width.unwrap_or(0).saturating_add(2);
    lines
        .into_iter()
        .map(|(label, look, node, text)| {
            Line::new()
                .column(look, label, LABEL)
                .column(Look::Strong, node, width)
                .plain(text)
        })
        .collect()
}

/// What blocks, where a machine that failed in this push is known to have.
pub(super) fn blocked(
    report: &Report,
    waiting: &Waiting,
) -> BTreeMap<ServiceName, BTreeSet<Blocker>> {
    let failed =
        |node: &NodeName| report.failed.contains_key(node) || report.rolled_back.contains(node);
    let known = |blocker: &Blocker| match blocker {
        Blocker::Pending(node) | Blocker::Uncertain(node) if failed(node) => {
            Blocker::Failed(node.clone())
        }
        other => other.clone(),
    };
    waiting
        .blocked
        .iter()
        .map(|(provider, blockers)| (provider.clone(), blockers.iter().map(known).collect()))
        .collect()
}

/// What to type next. Never a machine that nobody named: `grid push --behind` sends to whoever is behind.
fn hints(
    mesh: &Mesh,
    report: &Report,
    held_by_default: &BTreeSet<NodeName>,
    forgotten: &BTreeSet<NodeName>,
) -> Vec<String> {
    let found = report
        .failed
        .iter()
        .filter_map(|(node, problem)| match problem {
            Problem::Fenced { held, whose, .. } => Some((node, held.as_ref(), whose)),
            _ => None,
        });
    let mut hints = fences(mesh, found, forgotten);
    for (node, problem) in &report.failed {
        if let Some(hint) = phrases::failure_of(problem).and_then(|f| f.hint.as_ref()) {
            hints.push(format!("{node}: {hint}"));
        }
    }
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
    let revoked: BTreeSet<_> = report.revoked.values().flatten().collect();
    hints.extend(
        revoked
            .into_iter()
            .map(|consumer| phrases::issue_again(mesh, consumer)),
    );
    for provider in unassigned(report) {
        hints.push(format!(
            "`grid assign {provider} NODE` puts {provider} on a machine, `grid push --behind` then goes on"
        ));
    }
    let is_told = |node: &NodeName| {
        let fenced = |problem: &Problem| matches!(problem, Problem::Fenced { whose: Whose::OtherMachine(old), .. } if old == node);
        report.failed.values().any(fenced)
    };
    for (node, place) in &report.undeclared {
        if is_told(node) {
            continue;
        }
        hints.push(if mesh.nodes.contains_key(node) {
            format!(
                "{node} is declared elsewhere than it was last reached: if that is wrong, put its `address` or `root` right; if the machine \
                 at {place} is gone, `grid forget {node}` takes it as gone"
            )
        } else {
            format!("`grid forget {node}` takes {node} as gone, once it is")
        });
    }
    match report.verdict() {
        Verdict::Done | Verdict::Fenced => {}
        Verdict::Interrupted => {
            hints.push("`grid push --behind` goes on from here".to_owned());
        }
        Verdict::OutOfRounds => hints.push(
            "`grid push --behind` goes on from here; --max-rounds sets how many rounds a push may take"
                .to_owned(),
        ),
        Verdict::Incomplete => {
            hints.extend(changed_at_providers(mesh, report));
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
            } else if hints.is_empty() {
                hints.push("`grid push --behind` finishes this".to_owned());
            }
        }
    }
    hints
}

/// Where a service failed that has accounts elsewhere: what somebody changed there is not found on its own machine.
fn changed_at_providers(mesh: &Mesh, report: &Report) -> Vec<String> {
    let mut hints = Vec::new();
    for (node, problem) in &report.failed {
        let failure = phrases::failure_of(problem).filter(|failure| {
            let step = failure.step;
            matches!(
                step,
                FailedStep::Test | FailedStep::Apply | FailedStep::Check
            )
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
fn to_mend(report: &Report) -> (BTreeSet<&NodeName>, BTreeSet<&NodeName>) {
    let all = report.failed.keys().chain(&report.rolled_back);
    all.partition(|node| report.failed_current.contains(*node))
}

/// What to do, and where: a source that does not compose lies here, and nothing is wrong on its machine.
fn to_do(report: &Report, nodes: BTreeSet<&NodeName>) -> String {
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
pub(super) fn fences<'a>(
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
             replaces it, and the other store is then fenced in its turn",
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
            "if {names} {was_forgotten}had another name, or was put back from a backup or a snapshot, {take_over} sends to it again; if not, a \
             copy of this store pushes too ({holds_of} above): find it, and keep one of the two",
            was_forgotten = if forgotten {
                "was forgotten here (`grid history` says when), "
            } else {
                ""
            }
        ),
    }
}
