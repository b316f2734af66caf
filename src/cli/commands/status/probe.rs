//! `grid status --probe`: asks machines what they hold, and changes nothing there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Stands;
use crate::cli::context::Reading;
use crate::cli::phrases;
use crate::cli::view::{MachineState, ProbeView};
use crate::delivery::{
    Answer, CourierSettings, Couriers, Dispatch as _, Heard, Holding, Question, Secrets, Target,
};
use crate::push::{Whose, whose};
use crate::words::NodeName;

/// How long a machine may take to be reached, and be silent, when it is only asked.
const WAITS: Duration = Duration::from_secs(30);

/// Asks the chosen machines that are not on hold what they hold, and changes nothing there.
pub(super) fn probe(
    reading: &Reading,
    is_chosen: &dyn Fn(&NodeName) -> bool,
    standings: &mut BTreeMap<NodeName, Stands>,
) {
    let mesh = &reading.loaded.mesh;
    let questions = standings
        .iter()
        .filter(|(node, stands)| is_chosen(node) && stands.state != MachineState::OnHold)
        .filter_map(|(node, _)| mesh.nodes.get(node))
        .map(|node| Question {
            target: Target {
                mesh: mesh.name.clone(),
                node: Arc::new(node.clone()),
            },
            peek: true,
            secrets: Secrets::default(),
        })
        .collect();
    let mut settings = CourierSettings::new(reading.folder.clone());
    settings.timeout = WAITS;
    settings.ask_waits = Duration::ZERO;
    settings.attempts = 1;
    Couriers::new(settings).ask(questions, &mut |node, heard| {
        let Heard::Answered(answer) = heard else {
            return;
        };
        let machine = reading.state.fleet.get(node);
        let token = machine.and_then(|machine| machine.token);
        let attempt = machine.and_then(|machine| machine.attempt.as_ref());
        let found = match answer {
            Answer::KeptBack => return,
            Answer::Unknown(failure) => ProbeView::Unreached(failure.into()),
            Answer::Holds(Holding { token: held, .. }) => match held {
                _ if held == token => ProbeView::Known,
                _ if held.is_some() && held == attempt.map(|attempt| attempt.token) => {
                    ProbeView::Known
                }
                Some(held) => ProbeView::OtherToken {
                    whose: whose(
                        &reading.state,
                        reading.state.push.saturating_add(1),
                        node,
                        Some(&held),
                    ),
                    held: held.into(),
                },
                None => ProbeView::Empty,
            },
        };
        if let Some(stands) = standings.get_mut(node) {
            stands.probe = Some(found);
        }
    });
}

/// What was found when a machine was asked.
pub(super) fn probed(probe: &ProbeView) -> String {
    match probe {
        ProbeView::Known => "it answers".to_owned(),
        ProbeView::OtherToken { held, whose } => {
            format!("it holds {} ({held})", phrases::holds(whose, None))
        }
        ProbeView::Empty => format!("it holds {}", phrases::holds(&Whose::Nobody, None)),
        ProbeView::Unreached(failure) => format!(
            "it cannot be asked: {}: {}",
            phrases::step(failure.step),
            failure.cause
        ),
    }
}
