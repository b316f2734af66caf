//! `grid unlock`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use super::change::finish;
use crate::cli::context::Context;
use crate::cli::view::{ChangeView, Changed};
use crate::store::{Unlocked, unlock};

/// Arguments of `grid unlock`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid unlock\n\nA holder that died leaves no lock behind on this host; this is for one on another host that shares the store's folder and is gone for \
        good. A holder whose process runs on this host keeps its lock. The journal keeps that it was done."
)]
pub struct Arguments {}

pub(super) fn run(context: &mut Context, _: Arguments) -> crate::cli::Result {
    let folder = context.folder()?;
    let place = context.place(&folder);
    let unlocked = unlock(&place, &context.holder("unlock"))?;
    let changed = match &unlocked {
        Unlocked::WasFree => Changed::LockFree,
        Unlocked::HolderWasDead(holder) => Changed::LockCleared {
            holder: holder.to_string(),
        },
        Unlocked::TakenAway(holder) => Changed::LockTaken {
            holder: holder.as_ref().map(ToString::to_string),
        },
    };
    if unlocked != Unlocked::WasFree {
        let mut writing = context.writing("unlock", Duration::from_secs(5))?;
        context.commit(&mut writing, Vec::new(), [])?;
    }
    let view = ChangeView {
        changed: vec![changed],
        behind: BTreeSet::new(),
    };
    finish(context, view)
}
