//! What to do about machines that are not as they should be, after the table of `grid status`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Stands, left_behind, reached_elsewhere};
use crate::cli::commands::kept;
use crate::cli::context::Reading;
use crate::cli::phrases;
use crate::cli::summary::fences;
use crate::cli::ui::clean;
use crate::cli::view::{CurrentView, DriftView, MachineState, ProbeView};
use crate::compose::services::revoked_accounts;
use crate::words::NodeName;

/// What has to be done on a machine before it can be sent to, as it was told now, or else by the last push.
fn mends(stands: &Stands) -> Option<&str> {
    let hint = match &stands.probe {
        Some(ProbeView::Unreached(failure)) => failure.hint.as_ref(),
        Some(_) => None,
        None => stands.last.as_ref().and_then(|last| last.hint.as_ref()),
    };
    hint.map(String::as_str)
}

/// What to do about machines that `grid push --behind` does not reach, or not before something is mended.
pub(super) fn hints(
    reading: &Reading,
    standings: &BTreeMap<NodeName, Stands>,
    forgotten: &BTreeSet<NodeName>,
) -> Vec<String> {
    let mesh = &reading.loaded.mesh;
    let found = standings.iter().filter_map(|(node, stands)| {
        let fenced = stands.fenced.as_ref()?;
        Some((node, fenced.held.as_ref(), &fenced.whose))
    });
    let mut hints = fences(mesh, found, forgotten);
    for (node, stands) in standings {
        if !stands.older.is_empty() {
            hints.push(phrases::ends_older(node, &stands.older));
        }
    }
    if standings.is_empty() && mesh.nodes.is_empty() {
        hints.push(phrases::NO_MACHINES.to_owned());
    }
    let told: Vec<(&NodeName, String)> = standings
        .iter()
        .filter_map(|(node, stands)| Some((node, clean(mends(stands)?))))
        .collect();
    hints.extend(phrases::to_do_on(
        told.iter().map(|(node, hint)| (*node, hint.as_str())),
    ));
    for (node, stands) in standings {
        match &stands.probe {
            Some(ProbeView::Empty) => hints.push(format!(
                "`grid push {node}` sends all of it to {node} again"
            )),
            Some(ProbeView::OtherToken { .. }) if stands.fenced.is_some() => {}
            Some(ProbeView::OtherToken { .. }) => hints.push(format!(
                "`grid push {node}` changes nothing there, and says who sent that and what to do"
            )),
            Some(ProbeView::Drifted(DriftView {
                current: Some(CurrentView::Replaced(_)),
                ..
            })) => hints.push(format!(
                "move what stands there on {node} away, then `grid push {node}` puts in force again what was sent"
            )),
            Some(
                ProbeView::Drifted(_)
                | ProbeView::Known
                | ProbeView::Busy
                | ProbeView::Unreached(_),
            )
            | None => {}
        }
        if stands.state == MachineState::Undeclared {
            let held = stands.keeps.keys().cloned().collect();
            hints.push(phrases::undeclared(node, &held));
        } else if let Some(place) = reached_elsewhere(reading, node) {
            hints.push(phrases::elsewhere(node, &place));
        }
        let left_behind = left_behind(reading, node);
        if !left_behind.is_empty() {
            hints.push(phrases::ends_left_behind(node, &left_behind));
        }
    }
    let declared = standings
        .iter()
        .filter(|(_, stands)| stands.state != MachineState::Undeclared);
    let kept = declared.map(|(node, stands)| (node, &stands.keeps));
    hints.extend(kept::hints(mesh, kept));
    let remedies: BTreeSet<&str> = standings
        .values()
        .filter_map(|stands| stands.remedy.as_deref())
        .collect();
    if !remedies.is_empty() {
        let remedies: Vec<&str> = remedies.into_iter().collect();
        hints.push(format!(
            "{}, then `grid push --behind` sends it",
            remedies.join("; ")
        ));
    }
    let unwell = standings.iter().filter(|(_, stands)| stands.is_unwell());
    let typed: Vec<String> = unwell.clone().map(|(node, _)| node.to_string()).collect();
    let pushes: BTreeSet<u64> = unwell
        .flat_map(|(_, stands)| stands.unwell.pushes())
        .collect();
    if !typed.is_empty() {
        let histories = pushes.iter().map(|push| format!("`grid history {push}`"));
        hints.push(format!(
            "{} says what was wrong on {}; once that is mended, `grid push {}` looks again",
            phrases::list(histories),
            phrases::list(&typed),
            typed.join(" ")
        ));
    }
    let is_put_back = |stands: &Stands| match &stands.probe {
        Some(ProbeView::Drifted(drift)) => !matches!(drift.current, Some(CurrentView::Replaced(_))),
        _ => false,
    };
    let put_back = standings.iter().filter(|(_, stands)| is_put_back(stands));
    let put_back: Vec<&NodeName> = put_back.map(|(node, _)| node).collect();
    if !put_back.is_empty() {
        let typed: Vec<String> = put_back.iter().map(ToString::to_string).collect();
        let (typed, names) = (typed.join(" "), phrases::list(put_back));
        hints.push(format!(
            "`grid push {typed}` puts back what was sent to {names}"
        ));
    }
    let are = |state| {
        let nodes = standings
            .iter()
            .filter(move |(_, stands)| stands.state == state);
        nodes.map(|(node, _)| node)
    };
    let mut held = are(MachineState::OnHold);
    match (held.next(), held.next()) {
        (Some(node), None) => hints.push(format!("`grid unhold {node}` ends its hold")),
        (Some(_), Some(_)) => hints.push("`grid unhold NODE` ends a hold".to_owned()),
        _ => {}
    }
    hints.extend(of_rolled_back(standings));
    let revoked: BTreeSet<_> = standings
        .values()
        .flat_map(|stands| &stands.revoked)
        .collect();
    if !revoked.is_empty() {
        let world = reading.state.world(mesh);
        let accounts = revoked.into_iter();
        let services = accounts.filter_map(|consumer| mesh.services.get(consumer));
        let accounts = services.flat_map(|service| revoked_accounts(&world, service));
        hints.extend(accounts.map(|id| phrases::issue_again(&id)));
    }
    hints
}

/// Where it is told why machines were rolled back.
fn of_rolled_back(standings: &BTreeMap<NodeName, Stands>) -> Option<String> {
    let is_rolled_back =
        |(_, stands): &(&NodeName, &Stands)| stands.state == MachineState::RolledBack;
    let rolled_back = standings.iter().filter(is_rolled_back);
    let pushes: BTreeSet<u64> = rolled_back
        .clone()
        .filter_map(|(_, stands)| Some(stands.last.as_ref()?.push))
        .collect();
    let nodes: Vec<&NodeName> = rolled_back.map(|(node, _)| node).collect();
    if nodes.is_empty() {
        return None;
    }
    if pushes.is_empty() {
        return Some(
            "`grid history` lists the pushes, and `grid history PUSH` says why a machine was rolled back".to_owned(),
        );
    }
    let histories = pushes.iter().map(|push| format!("`grid history {push}`"));
    Some(format!(
        "{} says why {} {} rolled back",
        phrases::list(histories),
        phrases::list(&nodes),
        if nodes.len() == 1 { "was" } else { "were" }
    ))
}
