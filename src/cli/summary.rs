//! The end of a push: every machine that is not current is named with what keeps it, and what to type next.

mod hints;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use hints::fences;
use hints::{hints, to_do, to_mend};

use super::exit::{CommandError, Exit};
use super::phrases::{self, count};
use super::ui::{Line, Look, Ui};
use crate::mesh::{Loaded, Mesh};
use crate::push::{Blocker, Report, Verdict, Waiting};
use crate::words::{NodeName, ServiceName};

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
    let mut lines = vec![headline(mesh, report, dry_run)];
    lines.extend(named(mesh, report));
    ui.results(&lines)?;
    if let Some(what) = phrases::gossip(mesh) {
        ui.note(&Line::note(what));
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

fn headline(mesh: &Mesh, report: &Report, dry_run: bool) -> Line {
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
    let is_declared = |node: &NodeName| mesh.nodes.contains_key(node);
    let moved = report.undeclared.keys().filter(|node| is_declared(node));
    let moved = moved.count();
    more(moved, "moved");
    more(report.undeclared.len().saturating_sub(moved), "undeclared");
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
        let text = match report.on_hold.contains_key(node) {
            true => format!(
                "{} revoked; what runs there runs on while it is on hold",
                phrases::list(services)
            ),
            false => format!("{} revoked, so not started", phrases::list(services)),
        };
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
        if !held.shut_out.is_empty() {
            text.push(phrases::shut_out(&held.shut_out));
        }
        if held.named {
            text.push("it was named, and not sent to".to_owned());
        }
        if !text.is_empty() {
            line("on hold", Look::Warn, node, text.join("; "));
        }
    }
    for (node, address) in &report.undeclared {
        let held = report.still_held.get(node);
        let holds = match held.filter(|held| !held.is_empty()) {
            Some(held) => format!(", and holds {}", phrases::some_of(held)),
            None => String::new(),
        };
        let (label, text) = match address.as_str() {
            "" => ("undeclared", format!("it left the declaration{holds}")),
            address if mesh.nodes.contains_key(node) => (
                "moved",
                format!(
                    "it may still hold what it was sent at {address}, where it was last reached"
                ),
            ),
            address => (
                "undeclared",
                format!("it left the declaration, was last reached at {address}{holds}"),
            ),
        };
        line(label, Look::Warn, node, text);
    }
    for (node, places) in &report.left_behind {
        let text = phrases::left_behind(places);
        line("moved", Look::Warn, node, text);
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
