//! What the journal knows of machines that are not as they should be: the last push did not reach them, or they refused it, or
//! is sending to them just now. Nobody asks them, so it is as of then.

use std::collections::{BTreeMap, BTreeSet};

use super::Stands;
use crate::cli::commands::push::{JOURNAL_READ, forgotten_in};
use crate::cli::context::{Context, Reading};
use crate::cli::exit::CommandError;
use crate::cli::phrases;
use crate::cli::ui::clean;
use crate::cli::view::{FencedView, LastPushView, MachineState};
use crate::push::whose;
use crate::store::{Holder, JournalRecord, Store as _, Touch, Touched};
use crate::words::NodeName;

/// How many entries are read first: whoever is to be mended is tried again by every push, so that the newest tell of it.
const NEWEST: usize = 16;

/// Notes to whom the push that runs is sending, and what the last push found of the machines that are to be mended. Gives
/// those of the fenced ones that were forgotten.
pub(super) fn note(
    context: &Context,
    reading: &Reading,
    running: Option<&Holder>,
    standings: &mut BTreeMap<NodeName, Stands>,
) -> Result<BTreeSet<NodeName>, CommandError> {
    let is_asked_for = |(_, stands): &(&NodeName, &Stands)| stands.state.is_to_be_mended();
    let asked_for = standings.iter().filter(is_asked_for);
    let mut untold: BTreeSet<NodeName> = asked_for.map(|(node, _)| node.clone()).collect();
    if !reading.has_store || untold.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut store = context.open_reading(&reading.folder, "read")?;
    let mut records = store.journal(NEWEST)?;
    if let Some(push) = running.and_then(|holder| begun(&records, holder)) {
        note_sending(reading, push, standings);
    }
    tell(reading, &records, standings, &mut untold);
    if standings
        .iter()
        .any(|(node, stands)| is_worth_more(stands, untold.contains(node)))
    {
        records = store.journal(JOURNAL_READ)?;
        tell(reading, &records, standings, &mut untold);
    }
    let is_fenced = |node: &NodeName| standings.get(node).is_some_and(|s| s.fenced.is_some());
    Ok(forgotten_in(&records, &is_fenced))
}

/// The number of the push that `holder` has begun. One that has only just taken the lock has begun none yet: the last push of
/// the store is another one then, which may have been killed.
fn begun(records: &[JournalRecord], holder: &Holder) -> Option<u64> {
    let mut newest = records.iter().rev().map(|record| &record.entry);
    newest.find(|entry| entry.is_begun_by(holder))?.push
}

/// Notes to whom this push, which runs, is sending: it is what it began that is not settled there.
fn note_sending(reading: &Reading, push: u64, standings: &mut BTreeMap<NodeName, Stands>) {
    for (node, stands) in standings {
        stands.sending =
            stands.state == MachineState::Uncertain && attempt_of(reading, node) == Some(push);
    }
}

/// The push whose send to a machine is not settled.
fn attempt_of(reading: &Reading, node: &NodeName) -> Option<u64> {
    let attempt = reading.state.fleet.get(node)?.attempt.as_ref()?;
    Some(attempt.token.push)
}

/// Whether many more entries are read for a machine: who is fenced may have been forgotten long ago; and who is uncertain or
/// was rolled back is not tried again by pushes of others, so that what was found there may have been told long ago, too. Of one that
/// is being sent to, nothing was found yet.
fn is_worth_more(stands: &Stands, is_untold: bool) -> bool {
    let is_left = matches!(
        stands.state,
        MachineState::Uncertain | MachineState::RolledBack
    );
    stands.fenced.is_some() || is_left && is_untold && !stands.sending
}

/// Notes what the newest of these records that touched a machine has of it.
fn tell(
    reading: &Reading,
    records: &[JournalRecord],
    standings: &mut BTreeMap<NodeName, Stands>,
    untold: &mut BTreeSet<NodeName>,
) {
    for record in records.iter().rev() {
        for (node, touched) in &record.entry.machines {
            // What else reached for it, as `grid evidence clear` does, says nothing of what was sent; nor does it if only something
            // on it was forgotten.
            if record.entry.push.is_none() && !touched.is_forgotten_whole() {
                continue;
            }
            let Some(stands) = standings.get_mut(node).filter(|_| untold.remove(node)) else {
                continue;
            };
            let push = record.entry.push.unwrap_or(reading.state.push);
            if is_before(reading, push, node) {
                continue;
            }
            if stands.state == MachineState::Uncertain {
                stands.fenced = fenced(reading, push, node, touched);
            }
            let is_as_now = record.entry.declaration == Some(reading.loaded.digest);
            stands.last = last(push, touched, is_as_now);
        }
    }
    let oldest = records.iter().filter_map(|record| record.entry.push).min();
    if let Some(oldest) = oldest {
        untold.retain(|node| !is_before(reading, oldest, node));
    }
}

/// Whether a push was before the one whose send to a machine is not settled. That one was killed and has no end in the journal; no
/// older one says what became of its sends.
fn is_before(reading: &Reading, push: u64, node: &NodeName) -> bool {
    attempt_of(reading, node).is_some_and(|attempt| push < attempt)
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

/// That it received nothing of its last push, that it was put back, or that nobody knows. Where the declaration is another one since,
/// what to do may be done: only a machine that was not reached has to be reached all the same.
fn last(push: u64, touched: &Touched, is_as_now: bool) -> Option<LastPushView> {
    let is_left = matches!(
        touched.how,
        Touch::NotReached | Touch::Refused | Touch::RolledBack | Touch::Uncertain
    );
    let cause = touched.why.clone().filter(|_| is_left)?;
    let is_due = is_as_now || touched.how == Touch::NotReached;
    Some(LastPushView {
        push,
        cause,
        declared_otherwise: !is_as_now,
        hint: touched.hint.clone().filter(|_| is_due),
    })
}

/// What is said of a machine that the last push came to nothing on.
pub(super) fn left(last: &LastPushView) -> String {
    let since = match last.declared_otherwise {
        true => " (the declaration was changed since)",
        false => "",
    };
    format!("push {}: {}{since}", last.push, clean(&last.cause))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> FencedView {
        FencedView {
            push: 1,
            whose: crate::push::Whose::OtherStore,
            held: None,
            log: None,
        }
    }

    #[test]
    fn much_is_read_only_for_who_is_fenced_or_was_left_and_is_told_of_by_nothing_newer() {
        use MachineState::{Behind, NeverSent, RolledBack, Uncertain, Waits};
        for state in [Uncertain, RolledBack] {
            let mut stands = Stands::new(state);
            assert!(is_worth_more(&stands, true), "{state:?}");
            assert!(!is_worth_more(&stands, false), "{state:?}");
            stands.sending = true;
            assert!(!is_worth_more(&stands, true), "{state:?}");
            stands.sending = false;
            stands.fenced = Some(kept());
            assert!(is_worth_more(&stands, false), "{state:?}");
        }
        for state in [Behind, NeverSent, Waits] {
            assert!(!is_worth_more(&Stands::new(state), true), "{state:?}");
        }
    }
}
