//! What the journal knows of machines that are not as they should be: the last push did not reach them, or they refused it.
//! Nobody asks them, so it is as of then.

use std::collections::{BTreeMap, BTreeSet};

use super::Stands;
use crate::cli::commands::push::{JOURNAL_READ, forgotten_in};
use crate::cli::context::{Context, Reading};
use crate::cli::exit::CommandError;
use crate::cli::phrases;
use crate::cli::ui::clean;
use crate::cli::view::{FencedView, LastPushView, MachineState};
use crate::push::whose;
use crate::store::{Store as _, Touch, Touched};
use crate::words::NodeName;

/// Notes what the last push found of the machines that are to be mended. Gives those of the fenced ones that were forgotten.
pub(super) fn note(
    context: &Context,
    reading: &Reading,
    standings: &mut BTreeMap<NodeName, Stands>,
) -> Result<BTreeSet<NodeName>, CommandError> {
    let is_asked_for = |stands: &Stands| stands.state.is_to_be_mended();
    if !reading.has_store || !standings.values().any(is_asked_for) {
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
            if !is_asked_for(stands) || !seen.insert(node) {
                continue;
            }
            let push = record.entry.push.unwrap_or(reading.state.push);
            if stands.state == MachineState::Uncertain {
                stands.fenced = fenced(reading, push, node, touched);
            }
            stands.last = last(push, touched);
        }
    }
    let is_fenced = |node: &NodeName| standings.get(node).is_some_and(|s| s.fenced.is_some());
    Ok(forgotten_in(&records, &is_fenced))
}

fn fenced(reading: &Reading, push: u64, node: &NodeName, touched: &Touched) -> Option<FencedView> {
    let fence = touched.fence.as_ref()?;
    (touched.how == Touch::Fenced).then(|| FencedView {
        push,
        whose: whose(&reading.state, push, node, fence.held.as_ref()),
        held: fence.held,
        log: fence.log.clone(),
    })
}

/// That it received nothing of its last push, or that nobody knows.
fn last(push: u64, touched: &Touched) -> Option<LastPushView> {
    let is_left = matches!(
        touched.how,
        Touch::NotReached | Touch::Refused | Touch::Uncertain
    );
    let cause = touched.why.clone().filter(|_| is_left)?;
    Some(LastPushView {
        push,
        cause,
        hint: touched.hint.clone(),
    })
}

/// What is said of a machine that the last push came to nothing on.
pub(super) fn left(last: &LastPushView) -> String {
    format!("push {}: {}", last.push, clean(&last.cause))
}

/// What is said of one that its fence kept.
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
