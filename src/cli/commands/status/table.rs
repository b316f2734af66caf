//! How the machines stand, for people.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use super::hints::hints;
use super::probe::probed;
use super::{Stands, journal, left_behind, reached_elsewhere};
use crate::cli::commands::renamed::{self, sent_as};
use crate::cli::context::{Context, Reading};
use crate::cli::exit::CommandError;
use crate::cli::phrases::{self, count};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{MachineState, ProbeView};
use crate::compose::identities::needs_authority;
use crate::compose::unwell::Unwell;
use crate::mesh::Node;
use crate::push::Reason;
use crate::store::Holder;
use crate::words::NodeName;

/// Why a machine stands as it does.
fn why(
    reading: &Reading,
    node: &NodeName,
    stands: &Stands,
    (today, verbose): (Date, bool),
) -> String {
    let mesh = &reading.loaded.mesh;
    let declared = mesh.nodes.get(node);
    let mut why = Vec::new();
    if stands.state == MachineState::OnHold
        && let Some(hold) = declared.and_then(|declared| declared.hold.as_ref())
    {
        why.push(phrases::hold(hold));
    }
    if !stands.keeps.is_empty() {
        why.push(match stands.state {
            MachineState::Undeclared => format!("holds {}", phrases::some_of(stands.keeps.keys())),
            _ => phrases::keeps(&stands.keeps),
        });
    }
    if !stands.owes.is_empty() {
        why.push(phrases::owes(&stands.owes));
    }
    if !stands.older.is_empty() {
        why.push(phrases::older(&stands.older));
    }
    if !stands.shut_out.is_empty() {
        why.push(phrases::shut_out(&stands.shut_out));
    }
    if stands.is_unwell() {
        why.push(unwell(&stands.unwell));
    }
    let reasons: Vec<Reason> = stands
        .reasons
        .iter()
        .filter(|reason| match (reason, stands.state) {
            (Reason::NeverSent, MachineState::NeverSent) => false, // its state says so
            (Reason::Uncertain, _) if stands.sending => false,
            (Reason::Uncertain, MachineState::Uncertain) => false,
            _ => true,
        })
        .cloned()
        .collect();
    if !reasons.is_empty() {
        why.push(phrases::reasons(&reasons));
    }
    for (service, (wait, blocked)) in &stands.waits {
        why.push(phrases::wait_blocked(mesh, service, wait, blocked));
    }
    for service in &stands.revoked {
        why.push(format!("{service} is revoked"));
    }
    if let Some(identity) = &stands.identity {
        why.extend(phrases::expiry(identity, today, verbose));
        why.extend(identity.renewal.as_ref().map(phrases::renewal));
    }
    let is_observed = declared.is_none_or(Node::is_observed);
    if !is_observed {
        why.push(crate::delivery::NOT_OBSERVED.to_owned());
    }
    why.extend(stands.fenced.as_ref().map(journal::told));
    why.extend(stands.last.as_ref().map(journal::left));
    let is_told = |probe: &&ProbeView| {
        stands.fenced.is_some() && matches!(probe, ProbeView::OtherToken { .. })
    };
    let probe = stands.probe.as_ref().filter(|probe| !is_told(probe));
    why.extend(probe.map(|probe| probed(probe, is_observed)));
    if let Some(place) = reached_elsewhere(reading, node) {
        why.push(format!("last reached at {place}"));
    }
    let left_behind = left_behind(reading, node);
    if !left_behind.is_empty() {
        why.push(phrases::left_behind(&left_behind));
    }
    why.join("; ")
}

/// `but broker was not well when push 155 looked`.
fn unwell(found: &Unwell) -> String {
    let told = found.pushes().into_iter().rev().map(|push| {
        let of_services = found.services.iter().filter(|(_, by)| **by == push);
        let names: Vec<&str> = of_services.map(|(name, _)| name.as_str()).collect();
        let (who, were) = match names.as_slice() {
            _ if found.machine == Some(push) => ("it".to_owned(), "was"),
            [one] => ((*one).to_owned(), "was"),
            _ => (phrases::list(&names), "were"),
        };
        format!("{who} {were} not well when push {push} looked")
    });
    format!("but {}", told.collect::<Vec<_>>().join("; "))
}

/// What a machine was found to be that its store has for current.
fn found_instead(stands: &Stands) -> Option<&'static str> {
    if stands.sending {
        return Some("being sent");
    }
    if stands.state == MachineState::Uncertain && stands.fenced.is_some() {
        return Some("fenced");
    }
    let probe = stands.probe.as_ref()?;
    (stands.state == MachineState::Current).then(|| probe.word())?
}

fn look(stands: &Stands) -> Look {
    if stands.probe.as_ref().is_some_and(|probe| !probe.is_well()) {
        return Look::Bad;
    }
    match stands.state {
        MachineState::Current if stands.is_unwell() => Look::Bad,
        MachineState::Current => Look::Good,
        MachineState::Uncertain if stands.sending => Look::Warn,
        MachineState::Uncertain | MachineState::RolledBack => Look::Bad,
        _ => Look::Warn,
    }
}

pub(super) fn table(
    context: &mut Context,
    reading: &Reading,
    standings: &BTreeMap<NodeName, Stands>,
    (running, forgotten): (Option<&Holder>, &BTreeSet<NodeName>),
) -> Result<(), CommandError> {
    let mesh = &reading.loaded.mesh;
    let mut heading = Line::new().look(Look::Strong, &mesh.name);
    if let Some(git) = &reading.git {
        heading = heading.plain(format!("  {git}"));
    }
    let last = match (reading.has_store, reading.state.push) {
        (false, _) | (_, 0) => "never pushed".to_owned(),
        (true, push) => format!("last push {push}"),
    };
    let mut lines = vec![heading.plain(format!("  {last}"))];
    if let Some(holder) = running {
        let what = match holder.is_a_push() {
            true => "a push runs".to_owned(),
            false => format!("`grid {}` runs", holder.what),
        };
        let line = Line::new()
            .look(Look::Warn, format!("{what}: "))
            .plain(format!(
                "{}, process {}, since {:.0}",
                holder.who, holder.pid, holder.since
            ));
        lines.push(line);
    }
    let width = standings
        .keys()
        .map(|node| node.as_str().len())
        .max()
        .unwrap_or(0);
    let mut counts: BTreeMap<(Reverse<Option<&str>>, MachineState), usize> = BTreeMap::new();
    for (node, stands) in standings {
        let found = found_instead(stands);
        let n = counts.entry((Reverse(found), stands.state)).or_default();
        *n = n.saturating_add(1);
        if context.ui.quiet && stands.state == MachineState::Current && !stands.is_to_be_mended() {
            continue;
        }
        lines.push(
            Line::new()
                .column(Look::Strong, node, width.saturating_add(2))
                .column(look(stands), found.unwrap_or(stands.state.word()), 13)
                .plain(why(
                    reading,
                    node,
                    stands,
                    (context.today, context.ui.verbose),
                )),
        );
    }
    let parts: Vec<String> = counts
        .iter()
        .rev()
        .map(|((found, state), n)| format!("{n} {}", found.0.unwrap_or(state.word())))
        .collect();
    let mut sum = count(standings.len(), "machine");
    if !parts.is_empty() {
        sum = format!("{sum}: {}", parts.join(", "));
    }
    lines.push(Line::of(sum));
    context.ui.results(&lines)?;
    let renamed = sent_as(mesh, &reading.state.fleet);
    if let Some((old, nodes)) = &renamed {
        let said = renamed::told(mesh, old, nodes);
        context.ui.note(&Line::note(said));
    }
    let authorities = reading.state.identities.authorities();
    if let Some(newest) = authorities.newest()
        // First what is known without looking at every machine.
        && authorities.are_due(context.today)
        && needs_authority(&reading.state.world(mesh), context.today)
    {
        let said = phrases::authority_expiry(newest, context.today);
        let note = Line::note(said);
        context.ui.note(&note);
    }
    if let Some(what) = phrases::gossip(mesh) {
        context.ui.note(&Line::note(what));
    }
    if !context.ui.quiet {
        let hints = match &renamed {
            Some((old, _)) => renamed::hints(old).to_vec(),
            None => hints(reading, standings, forgotten),
        };
        for hint in hints {
            context.ui.hint(&hint);
        }
    }
    // Who waits is sent to once whoever it waits for can be.
    let can_be_sent =
        |state: &MachineState| state.is_to_be_mended() && *state != MachineState::Waits;
    // What a fence refused, a push does not send either.
    let is_fenced = |stands: &Stands| stands.fenced.is_some();
    let mut sendable = standings
        .values()
        .filter(|stands| can_be_sent(&stands.state));
    // Nor does it send what cannot be composed.
    let can_be_sent = |stands: &Stands| !is_fenced(stands) && stands.remedy.is_none();
    if sendable.any(can_be_sent) && renamed.is_none() && !context.ui.quiet {
        context.ui.hint(match running {
            // Another push would be refused, and what runs may be sending to them.
            Some(holder) if holder.is_a_push() => {
                "a push runs: see what is left once it is done, or `grid push --behind --wait` waits for it and then sends that"
            }
            Some(_) => {
                "`grid push --behind --wait` sends to every machine that is behind, once what runs is done"
            }
            None => "`grid push --behind` sends to every machine that is behind",
        });
    }
    Ok(())
}
