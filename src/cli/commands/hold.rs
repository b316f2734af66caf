//! `grid hold` and `grid unhold`: they edit the declaration.

use std::time::Duration;

use clap::Args;

use super::change::{name, tell};
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::phrases;
use crate::cli::view::Changed;
use crate::mesh::{Hold, set_hold};
use crate::store::Store as _;
use crate::words::NodeName;

/// Arguments of `grid hold`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid hold eridanus \"in the rack on Monday\"\n  \
        grid hold atlas \"disk is being changed\" --until 2026-12-01\n\n\
        A machine on hold is declared and shown, and not sent to. Whoever needs something of it waits, and is named with this reason.")]
pub struct HoldArguments {
    /// The machine
    node: String,
    /// Why, for people
    reason: String,
    /// The first day on which it is sent to again
    #[arg(long, value_name = "DATE")]
    until: Option<jiff::civil::Date>,
}

/// Arguments of `grid unhold`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  grid unhold eridanus")]
pub struct UnholdArguments {
    /// The machine
    node: String,
}

pub(super) fn hold(context: &mut Context, arguments: HoldArguments) -> crate::cli::Result {
    if let Some(until) = arguments.until.filter(|until| *until <= context.today) {
        return Err(CommandError::usage(format!(
            "a hold until {until} would have ended already"
        )));
    }
    let hold = Hold {
        reason: arguments.reason,
        until: arguments.until,
    };
    let node = name(&arguments.node, NodeName::new)?;
    let mut writing = context.writing("hold", Duration::ZERO)?;
    writing.loaded = set_hold(&writing.folder, &node, Some(&hold))?;
    let changed = Changed::Held {
        node,
        hold: phrases::hold(&hold),
    };
    finish(context, writing, changed)
}

pub(super) fn unhold(context: &mut Context, arguments: &UnholdArguments) -> crate::cli::Result {
    let node = name(&arguments.node, NodeName::new)?;
    let mut writing = context.writing("unhold", Duration::ZERO)?;
    writing.loaded = set_hold(&writing.folder, &node, None)?;
    finish(context, writing, Changed::Unheld { node })
}

fn finish(context: &mut Context, mut writing: Writing, changed: Changed) -> crate::cli::Result {
    context.commit(&mut writing, Vec::new(), [])?;
    let state = writing.store.load()?;
    tell(
        context,
        &writing.folder,
        &writing.loaded.mesh,
        &state,
        vec![changed],
    )
}
