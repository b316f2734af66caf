//! `grid unlock`.

use std::time::Duration;

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::ui::Line;
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
    let said = match &unlocked {
        Unlocked::WasFree => "nobody held the lock".to_owned(),
        Unlocked::HolderWasDead(holder) => format!("{holder} had died; its record is gone"),
        Unlocked::TakenAway(Some(holder)) => format!("the lock was taken from {holder}"),
        Unlocked::TakenAway(None) => "the lock was taken away".to_owned(),
    };
    if unlocked != Unlocked::WasFree {
        let mut writing = context.writing("unlock", Duration::from_secs(5))?;
        context.commit(&mut writing, Vec::new(), [])?;
    }
    context.ui.result(&Line::of(said))?;
    Ok(Exit::Done)
}
