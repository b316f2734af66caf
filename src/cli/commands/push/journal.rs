//! What the journal keeps of a push, and what it says of earlier ones.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::context::{Context, UnderWay, Writing};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases;
use crate::push::{Event, Problem, Report};
use crate::store::{Change, Fence, JournalRecord, Store, Touch, Touched};
use crate::words::NodeName;

/// How many entries of the journal are read for a machine that was forgotten.
pub(in crate::cli::commands) const JOURNAL_READ: usize = 1000;

/// What the journal keeps of the events.
#[derive(Debug, Default)]
pub(super) struct Told {
    push: Option<u64>,
    machines: BTreeMap<NodeName, Touched>,
    under_way: UnderWay,
}

impl Told {
    /// Of a push whose sends under way are kept in `under_way` besides.
    pub fn of(under_way: UnderWay) -> Self {
        Self {
            under_way,
            ..Self::default()
        }
    }

    /// Takes in what happened.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Sending { node, .. } => self.under_way.begins(node),
            Event::Sent { node, .. }
            | Event::Failed { node, .. }
            | Event::Emptied { node }
            | Event::KeptBack { node } => self.under_way.ends(node),
            _ => {}
        }
        match event {
            Event::Began { push, .. } => self.push = Some(*push),
            Event::Sent { node, .. } => self.touch(node, Touched::new(Touch::Applied)),
            Event::Contacted { node, .. } => self.touch(node, Touched::new(self.contacted(node))),
            Event::Failed { node, problem, .. } => {
                let how = match problem {
                    Problem::Unsettled(_) | Problem::NotReached(_) => Touch::NotReached,
                    Problem::Uncomposable(_) => return,
                    Problem::Refused(_) => Touch::Refused,
                    Problem::Unwell(_) => self.contacted(node),
                    Problem::RolledBack { .. } => Touch::RolledBack,
                    Problem::Uncertain(_) => Touch::Uncertain,
                    Problem::Fenced { .. } => Touch::Fenced,
                };
                let mut touched = Touched {
                    why: Some(phrases::problem(problem)),
                    fence: fence(problem),
                    ..Touched::new(how)
                };
                if let Some(failure) = phrases::failure_of(problem) {
                    touched = touched.printed(&failure.output);
                    // A contact left the machine as it was: nothing has to be done before it is sent to.
                    let is_left = !matches!(problem, Problem::Unwell(_));
                    touched.hint = failure.hint.clone().filter(|_| is_left);
                }
                self.touch(node, touched);
            }
            _ => {}
        }
    }

    /// How a machine is touched that is contacted: it may have been sent to before that.
    fn contacted(&self, node: &NodeName) -> Touch {
        match self.machines.get(node).map(|touched| touched.how) {
            Some(Touch::Applied) => Touch::Applied,
            _ => Touch::Verified,
        }
    }

    fn touch(&mut self, node: &NodeName, touched: Touched) {
        self.machines.insert(node.clone(), touched);
    }
}

/// What a machine held that the fence refused.
fn fence(problem: &Problem) -> Option<Fence> {
    match problem {
        Problem::Fenced { held, log, .. } => Some(Fence {
            held: *held,
            log: log.last().cloned(),
        }),
        _ => None,
    }
}

/// The entry of the journal, also of a push that stopped on an error, and then what nobody needs any more goes.
pub(super) fn write_down(
    context: &Context,
    writing: &mut Writing,
    told: &Told,
    exit: Exit,
) -> Result<(), CommandError> {
    let state = writing.store.load()?;
    let mut entry = context.entry(writing, exit);
    entry.push = told.push;
    entry.machines = told
        .machines
        .iter()
        .map(|(node, touched)| {
            let sent = state
                .fleet
                .get(node)
                .and_then(|machine| machine.sent.as_ref());
            let mut touched = touched.clone();
            if matches!(touched.how, Touch::Applied | Touch::Verified) {
                touched.digest = sent.map(|sent| sent.manifest.digest());
            }
            (node.clone(), touched)
        })
        .collect();
    let mut changes = vec![
        Change::Push(told.push.unwrap_or(state.push)),
        Change::Journal(entry),
    ];
    // Where no machine was touched nothing became superfluous, and to look for it is to read every content.
    if !told.machines.is_empty() {
        changes.push(Change::KeepContents(state.contents()));
    }
    Ok(writing.store.commit(&changes)?)
}

/// The fenced machines that were forgotten here, as far as the last entries of the journal say.
pub(super) fn forgotten(
    store: &mut dyn Store,
    report: &Report,
) -> Result<BTreeSet<NodeName>, CommandError> {
    let is_fenced =
        |node: &NodeName| matches!(report.failed.get(node), Some(Problem::Fenced { .. }));
    if !report.failed.keys().any(is_fenced) {
        return Ok(BTreeSet::new());
    }
    Ok(forgotten_in(&store.journal(JOURNAL_READ)?, &is_fenced))
}

/// The machines that these entries of the journal have for forgotten.
pub(in crate::cli::commands) fn forgotten_in(
    records: &[JournalRecord],
    is_asked_for: &dyn Fn(&NodeName) -> bool,
) -> BTreeSet<NodeName> {
    let touched = records.iter().flat_map(|record| &record.entry.machines);
    touched
        .filter(|(node, touched)| touched.is_forgotten_whole() && is_asked_for(node))
        .map(|(node, _)| node.clone())
        .collect()
}
