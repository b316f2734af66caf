//! The end that all commands share that change the declaration or the store: what was changed, who is behind now,
//! and that the next push carries it.

use std::collections::BTreeSet;

use super::kept;
use super::renamed::{self, sent_as};
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::list;
use crate::cli::ui::Line;
use crate::cli::view::{ChangeView, Changed};
use crate::compose::Composer;
use crate::mesh::Mesh;
use crate::push::{Survey, survey};
use crate::store::State;
use crate::words::{NodeName, ServiceName};
use camino::Utf8Path;

/// Tells what was changed, and who is behind now.
pub(super) fn tell(
    context: &mut Context,
    folder: &Utf8Path,
    mesh: &Mesh,
    state: &State,
    changed: Vec<Changed>,
) -> crate::cli::Result {
    let sources = context.sources(folder, mesh, &mesh.recipients);
    let survey = survey(&Composer::new(mesh, sources), &state.world(mesh));
    let (behind, mut held) = behind(context, mesh, &survey);
    held.extend(changed.iter().filter_map(|changed| match changed {
        Changed::Held { node, .. } => Some(node.clone()),
        _ => None,
    }));
    let lives: BTreeSet<NodeName> = changed
        .iter()
        .filter_map(|changed| match changed {
            Changed::Forgotten {
                node,
                service: None,
            } if behind.contains(node) => Some(node.clone()),
            _ => None,
        })
        .collect();
    let kept = kept_still(mesh, &survey, &changed);
    let view = ChangeView { changed, behind };
    let exit = match sent_as(mesh, &state.fleet) {
        Some((old, nodes)) if !view.behind.is_empty() && !context.ui.json => {
            show(context, &view)?;
            let said = renamed::told(mesh, old, &nodes);
            let note = Line::note(said);
            context.ui.note(&note);
            for hint in renamed::hints(old) {
                context.ui.hint(&hint);
            }
            Exit::Done
        }
        _ => finish(context, view)?,
    };
    if !context.ui.json {
        for hint in kept {
            context.ui.hint(&hint);
        }
        if !lives.is_empty() {
            let typed: Vec<&str> = lives.iter().map(NodeName::as_str).collect();
            context.ui.hint(&format!(
                "to forget is for a machine that is gone, and the next push takes {} for new. One that lives and holds what it was sent is \
                 fenced (exit 8), until `grid push {} --take-over` replaces that",
                list(&lives),
                typed.join(" ")
            ));
        }
        let only = match (held.first(), held.len()) {
            (Some(node), 1) => node.as_str(),
            _ => "NODE",
        };
        let until: BTreeSet<_> = held
            .iter()
            .map(|node| {
                let hold = mesh.nodes.get(node).and_then(|node| node.hold.as_ref());
                hold.and_then(|hold| hold.until)
            })
            .collect();
        let ends = match until.first() {
            Some(Some(day)) if until.len() == 1 => {
                format!("until {day}, when the hold ends by itself, or until")
            }
            _ => "until".to_owned(),
        };
        if !held.is_empty() {
            context.ui.hint(&format!(
                "nothing goes to {} {ends} `grid unhold {only}`",
                list(&held)
            ));
        }
    }
    Ok(exit)
}

/// What is said of services that were taken from their machines and stay on some, since others use them.
fn kept_still(mesh: &Mesh, survey: &Survey, changed: &[Changed]) -> Vec<String> {
    let taken = changed.iter().filter_map(|changed| match changed {
        Changed::Unassigned { service, .. } => Some(service),
        _ => None,
    });
    let taken: BTreeSet<&ServiceName> = taken.collect();
    let hints = survey
        .iter()
        .filter(|(_, stands)| stands.keeps.keys().any(|service| taken.contains(service)))
        .map(|(node, stands)| (node, &stands.keeps));
    kept::hints(mesh, hints)
}

/// The same where it is known who is behind.
pub(super) fn finish(context: &mut Context, view: ChangeView) -> crate::cli::Result {
    if context.ui.json {
        context.ui.json(&view, false)?;
        return Ok(Exit::Done);
    }
    show(context, &view)?;
    if !view.behind.is_empty() {
        context.ui.hint(match view.is_no_change() {
            true => "`grid push --behind` sends to every machine that is behind",
            false => "the next push carries it: `grid push --behind`",
        });
    }
    Ok(Exit::Done)
}

fn show(context: &mut Context, view: &ChangeView) -> Result<(), CommandError> {
    let mut lines: Vec<Line> = view.changed.iter().map(Line::of).collect();
    if !view.behind.is_empty() {
        let since = match view.is_no_change() {
            true => "nothing was changed; behind as before",
            false => "behind now",
        };
        lines.push(Line::of(format!("{since}: {}", list(&view.behind))));
    }
    context.ui.results(&lines)?;
    Ok(())
}

/// Every machine that is behind: those that are not on hold, and those that are.
fn behind(
    context: &Context,
    mesh: &Mesh,
    survey: &Survey,
) -> (BTreeSet<NodeName>, BTreeSet<NodeName>) {
    let is_on_hold = |node: &NodeName| {
        let node = mesh.nodes.get(node);
        node.is_some_and(|node| node.hold_in_force(context.today).is_some())
    };
    survey
        .iter()
        .filter(|(_, stands)| stands.is_behind())
        .map(|(node, _)| node.clone())
        .partition(|node| !is_on_hold(node))
}

/// A name as it was typed.
pub(super) fn name<N>(
    text: &str,
    parse: impl Fn(&str) -> Result<N, crate::words::NameError>,
) -> Result<N, CommandError> {
    parse(text).map_err(|wrong| CommandError::usage(format!("{text:?} is no name: {wrong}")))
}
