//! For development builds only: a push that stops at a given event and waits to be killed, so that a bed can
//! kill the controller at each named step (`tests/beds/killed-controller.sh`).
//!
//! `GRID_STOP_AFTER=N` stops after the N-th event of a push; the event's name is written to `GRID_STOP_FILE`.

use std::cell::Cell;
use std::time::Duration;

use crate::delivery::Progress;
use crate::push::Event;

/// How long it waits to be killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts the events of a push.
#[derive(Debug, Default)]
pub(super) struct StopAfter {
    heard: Cell<u64>,
}

impl StopAfter {
    /// Stops here if it is told to.
    pub(super) fn hear(&self, event: &Event) {
        let Some(name) = name(event) else { return };
        self.heard.set(self.heard.get().saturating_add(1));
        let wanted = std::env::var("GRID_STOP_AFTER").ok();
        if wanted.and_then(|n| n.parse().ok()) != Some(self.heard.get()) {
            return;
        }
        if let Ok(file) = std::env::var("GRID_STOP_FILE")
            && std::fs::write(format!("{file}.new"), name).is_ok()
            && std::fs::rename(format!("{file}.new"), file).is_ok()
        {
            std::thread::sleep(PATIENCE);
        }
    }
}

/// The name of an event; those that only count bytes or pass a line on have none.
fn name(event: &Event) -> Option<&str> {
    Some(match event {
        Event::Began { .. } => "began",
        Event::Asking { .. } => "asking",
        Event::SettledAs { .. } => "settled",
        Event::Minted { .. } => "minted",
        Event::MintedAuthority { .. } => "minted-authority",
        Event::MintedIdentity { .. } => "minted-identity",
        Event::Sending { .. } => "sending",
        Event::Waits { .. } => "waits",
        Event::Progress {
            progress: Progress::Step { step, .. },
            ..
        } => step,
        Event::Progress { .. } => return None,
        Event::Sent { .. } => "sent",
        Event::Contacted { .. } => "contacted",
        Event::Emptied { .. } => "emptied",
        Event::KeptBack { .. } => "kept back",
        Event::Failed { .. } => "failed",
        Event::Ended(_) => "ended",
    })
}
