//! What the journal knows of machines whose fence refused the last push: nobody asks them, so it is as of then.

use std::collections::{BTreeMap, BTreeSet};

use super::Stands;
use crate::cli::commands::push::{JOURNAL_READ, forgotten_in};
use crate::cli::context::{Context, Reading};
use crate::cli::exit::CommandError;
use crate::cli::phrases;
use crate::cli::ui::clean;
use crate::cli::view::{FencedView, MachineState};
use crate::push::whose;
use crate::store::{Store as _, Touch};
use crate::words::NodeName;

/// Notes which of the uncertain machines were fenced when they were last touched. Gives those of them that were forgotten.
pub(super) fn note(
    context: &Context,
    reading: &Reading,
    standings: &mut BTreeMap<NodeName, Stands>,
) -> Result<BTreeSet<NodeName>, CommandError> {
    let uncertain = |stands: &Stands| stands.state == MachineState::Uncertain;
    if !standings.values().any(uncertain) {
        return Ok(BTreeSet::new());
    }
    let mut store = context.open_reading(&reading.folder, "read")?;
    let records = store.journal(JOURNAL_READ)?;
    let mut seen = BTreeSet::new();
    for record in records.iter().rev() {
        for (node, touched) in &record.entry.machines {
            let Some(stands) = standings.get_mut(node) else {
                continue;
            };
            if !uncertain(stands) || !seen.insert(node) {
                continue;
            }
            if let (Touch::Fenced, Some(fence)) = (touched.how, &touched.fence) {
                let push = record.entry.push.unwrap_or(reading.state.push);
                stands.fenced = Some(FencedView {
                    push,
                    whose: whose(&reading.state, push, node, fence.held.as_ref()),
                    held: fence.held,
                    log: fence.log.clone(),
                });
            }
        }
    }
    let is_fenced = |node: &NodeName| standings.get(node).is_some_and(|s| s.fenced.is_some());
    Ok(forgotten_in(&records, &is_fenced))
}

/// What is said of it.
pub(super) fn told(fenced: &FencedView) -> String {
    let held = fenced.held.map(|held| held.push);
    let log = fenced.log.as_ref().map_or_else(String::new, |line| {
        format!("; its log | {}", phrases::short_digests(&clean(line)))
    });
    format!(
        "it refused push {}: it holds {}{log}",
        fenced.push,
        phrases::holds(&fenced.whose, held)
    )
}
