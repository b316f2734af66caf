//! `grid hold` and `grid unhold`: they edit the declaration.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use super::change::tell;
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::phrases;
use crate::cli::view::Changed;
use crate::mesh::{Hold, hold_reason, set_hold};
use crate::store::Store as _;
use crate::words::NodeName;

/// Arguments of `grid hold`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid hold eridanus \"in the rack on Monday\"\n  \
        grid hold @eu \"moving house\" --until 2026-12-01\n\n\
        A machine on hold is declared and shown, and not sent to. Whoever needs something of it waits, and is named with this reason.")]
pub struct HoldArguments {
    /// The machine, or @TAG for all that carry a tag
    node: String,
    /// Why, for people: one line
    reason: String,
    /// The first day on which it is sent to again
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    until: Option<jiff::civil::Date>,
}

/// Arguments of `grid unhold`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid unhold eridanus\n  \
        grid unhold @eu")]
pub struct UnholdArguments {
    /// The machine, or @TAG for all that carry a tag
    node: String,
}

fn parse_day(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse()
        .map_err(|_| "say a day like 2026-12-01".to_owned())
}

pub(super) fn hold(context: &mut Context, arguments: HoldArguments) -> crate::cli::Result {
    if let Some(until) = arguments.until.filter(|until| *until <= context.today) {
        return Err(CommandError::usage(format!(
            "a hold until {until} would have ended already"
        )));
    }
    let reason = hold_reason(&arguments.reason).map_err(|wrong| {
        CommandError::usage(format!("{:?} is no reason: {wrong}", arguments.reason))
    })?;
    let hold = Hold {
        reason,
        until: arguments.until,
    };
    let nodes = chosen(context, arguments.node)?;
    let mut writing = context.writing("hold", Duration::ZERO)?;
    writing.loaded = set_hold(&writing.folder, &nodes, Some(&hold))?;
    let changed = nodes
        .into_iter()
        .map(|node| Changed::Held {
            node,
            hold: phrases::hold(&hold),
        })
        .collect();
    finish(context, writing, changed)
}

pub(super) fn unhold(context: &mut Context, arguments: UnholdArguments) -> crate::cli::Result {
    let nodes = chosen(context, arguments.node)?;
    let mut writing = context.writing("unhold", Duration::ZERO)?;
    let mesh = &writing.loaded.mesh;
    let is_held = |node: &NodeName| mesh.nodes.get(node).is_some_and(|node| node.hold.is_some());
    let (held, free): (BTreeSet<_>, BTreeSet<_>) = nodes.into_iter().partition(is_held);
    let not_held = free.into_iter().map(|node| Changed::NotHeld { node });
    let unheld = held
        .iter()
        .map(|node| Changed::Unheld { node: node.clone() });
    let changed: Vec<Changed> = unheld.chain(not_held).collect();
    writing.loaded = set_hold(&writing.folder, &held, None)?;
    finish(context, writing, changed)
}

/// A misspelt name is told before a lock is taken.
fn chosen(context: &Context, text: String) -> Result<BTreeSet<NodeName>, CommandError> {
    let (folder, loaded) = context.load()?;
    context.choose(&folder, &loaded.mesh, &[text])
}

fn finish(
    context: &mut Context,
    mut writing: Writing,
    changed: Vec<Changed>,
) -> crate::cli::Result {
    context.commit(&mut writing, Vec::new(), [])?;
    let state = writing.store.load()?;
    tell(
        context,
        &writing.folder,
        &writing.loaded.mesh,
        &state,
        changed,
    )
}
