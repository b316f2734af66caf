//! `grid status --probe`: looks at machines, and changes nothing there.
//!
//! Their files are compared with what was sent, by what a contact of a push compares them with. No command of a service
//! is run, so that nobody looks at a check, or into a provider for its accounts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Stands;
use crate::cli::context::Reading;
use crate::cli::phrases::{self, count};
use crate::cli::view::{CurrentView, DriftView, MachineState, ProbeView};
use crate::compose::sent::Machine;
use crate::delivery::{
    Answer, CourierSettings, Couriers, Dispatch as _, Heard, Manner, Question, Secrets, Sight,
    Target,
};
use crate::push::{Whose, whose};
use crate::words::{NodeName, Token};

/// How long a machine may take to be reached, and be silent beyond what its checksums take, when it is only asked.
const WAITS: Duration = Duration::from_secs(30);
/// How many files are named that are not as they were sent.
const NAMED: usize = 3;

/// Looks at the chosen machines that are not on hold, and changes nothing there.
pub(super) fn probe(
    reading: &Reading,
    is_chosen: &dyn Fn(&NodeName) -> bool,
    standings: &mut BTreeMap<NodeName, Stands>,
) {
    let mesh = &reading.loaded.mesh;
    let expected = |node: &NodeName| {
        let machine = reading.state.fleet.get(node)?;
        Some(Arc::clone(&machine.sent.as_ref()?.manifest))
    };
    let questions = standings
        .iter()
        .filter(|(node, stands)| is_chosen(node) && stands.state != MachineState::OnHold)
        .filter_map(|(node, _)| mesh.nodes.get(node))
        .map(|node| Question {
            manner: Manner::Look(expected(&node.name)),
            target: Target {
                mesh: mesh.name.clone(),
                node: Arc::new(node.clone()),
            },
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
        let found = match answer {
            // Nobody is asked so.
            Answer::KeptBack | Answer::Holds(_) => return,
            Answer::Unknown(failure) => ProbeView::Unreached(failure.into()),
            Answer::Seen(sight) => {
                let machine = reading.state.fleet.get(node).cloned().unwrap_or_default();
                seen(&machine, sight, |held| {
                    let next = reading.state.push.saturating_add(1);
                    whose(&reading.state, next, node, Some(held))
                })
            }
        };
        if let Some(stands) = standings.get_mut(node) {
            stands.probe = Some(found);
        }
    });
}

/// What was seen of a machine, against what is known of it.
fn seen(machine: &Machine, sight: Sight, whose: impl FnOnce(&Token) -> Whose) -> ProbeView {
    let attempted = machine.attempt.as_ref().map(|attempt| attempt.token);
    match sight.token {
        held if held == machine.token => {}
        // Its send ended, or runs: a push asks for more than can be seen.
        held if held.is_some() && held == attempted => return ProbeView::Known,
        Some(held) => {
            return ProbeView::OtherToken {
                whose: whose(&held),
                held: held.into(),
            };
        }
        None => return ProbeView::Empty,
    }
    if sight.busy {
        return ProbeView::Busy;
    }
    let sent = machine.sent.as_ref().map(|sent| sent.manifest.digest());
    let current = match (sight.odd, sight.current) {
        (Some(what), _) => Some(CurrentView::Replaced(what)),
        (None, current) if current == sent || machine.attempt.is_some() => None,
        (None, Some(other)) => Some(CurrentView::Other(other)),
        (None, None) => Some(CurrentView::Gone),
    };
    if current.is_none() && sight.differing == 0 {
        return ProbeView::Known;
    }
    ProbeView::Drifted(DriftView {
        current,
        differing: sight.differing,
        files: sight.differs,
    })
}

/// What was found when a machine was asked. One that is not observed is a folder beside the declaration.
pub(super) fn probed(probe: &ProbeView, is_observed: bool) -> String {
    match probe {
        ProbeView::Known if !is_observed => "its folder holds what was rendered".to_owned(),
        ProbeView::Known => "it answers".to_owned(),
        ProbeView::Busy => {
            "it answers; a send is under way there, so that its files were not looked at".to_owned()
        }
        ProbeView::Drifted(drift) => drifted(drift),
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

fn drifted(drift: &DriftView) -> String {
    let mut parts = Vec::new();
    match &drift.current {
        None => {}
        Some(CurrentView::Gone) => parts.push("its `current` is gone".to_owned()),
        Some(CurrentView::Other(digest)) => parts.push(format!(
            "its `current` leads to another release than was sent ({})",
            digest.short()
        )),
        Some(CurrentView::Replaced(what)) => parts.push(what.clone()),
    }
    let many = usize::try_from(drift.differing).unwrap_or(usize::MAX);
    if many > 0 {
        let named = drift.files.iter().take(NAMED);
        let differ = if many == 1 { "differs" } else { "differ" };
        parts.push(format!(
            "{} {differ} from what was sent: {}",
            count(many, "file"),
            phrases::first_of(named, many)
        ));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::{Sample, with};
    use crate::words::{Digest, Era, StoreId};

    #[test]
    fn what_is_seen_is_told_against_what_is_known() {
        let sample = Sample::of(&[])
            .sent("m0", vec![("broker", with(""))])
            .sent("m1", vec![("broker", with(""))])
            .attempted("m1", vec![]);
        let told = |machine: &Machine, sight: Sight| {
            let view = seen(machine, sight, |_| Whose::OtherStore);
            format!("{} | {}", view.is_well(), probed(&view, true))
        };
        let machine = &sample.fleet["m0"];
        let digest = machine.sent.as_ref().unwrap().manifest.digest();
        let well = Sight {
            token: machine.token,
            current: Some(digest),
            ..Sight::default()
        };
        let files: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let other = Token {
            store: StoreId([9; 8]),
            era: Era(1),
            push: 7,
            random: [0; 8],
        };
        let sights = [
            well.clone(),
            Sight {
                current: None,
                ..well.clone()
            },
            Sight {
                current: Some(Digest::of(b"other")),
                ..well.clone()
            },
            Sight {
                current: None,
                odd: Some("/g/current is not a symbolic link".to_owned()),
                ..well.clone()
            },
            Sight {
                differing: 1,
                differs: vec!["/etc/x".to_owned()],
                ..well.clone()
            },
            Sight {
                differing: 33,
                differs: files,
                ..well.clone()
            },
            Sight {
                current: None,
                busy: true,
                ..well.clone()
            },
            Sight {
                token: None,
                ..well.clone()
            },
            Sight {
                token: Some(other),
                ..well.clone()
            },
        ];
        let lines: Vec<String> = sights
            .into_iter()
            .map(|sight| told(machine, sight))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        true | it answers
        false | its `current` is gone
        false | its `current` leads to another release than was sent (d9298a10d1b0)
        false | /g/current is not a symbolic link
        false | 1 file differs from what was sent: /etc/x
        false | 33 files differ from what was sent: a, b, c and 30 more
        true | it answers; a send is under way there, so that its files were not looked at
        false | it holds nothing, though it was sent to
        false | it holds what another store sent (0909090909090909-1-7-0000000000000000)
        "#);
        // Of an uncertain machine both are known, and neither is a drift.
        let uncertain = &sample.fleet["m1"];
        let attempt = uncertain.attempt.as_ref().map(|attempt| attempt.token);
        for token in [uncertain.token, attempt] {
            let sight = Sight {
                token,
                ..Sight::default()
            };
            assert_eq!(told(uncertain, sight), "true | it answers");
        }
    }
}
