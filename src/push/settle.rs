//! Settling: every uncertain machine is asked what it holds, and the answer becomes its last sent.

use super::PushError;
use super::event::Event;
use super::report::Problem;
use super::run::Run;
use crate::compose::location::Location;
use crate::compose::sent::{Machine, Sent};
use crate::compose::unwell::Unwell;
use crate::delivery::{Answer, Dispatch, Heard, Holding, Manner, Question, Secrets};
use crate::mesh::Node;
use crate::store::StoreError;
use crate::words::NodeName;

impl Run<'_> {
    /// Asks every uncertain machine that is not on hold, and every one whose address or root has changed. One that cannot be
    /// asked has failed in this push.
    pub(super) fn settle(&mut self, couriers: &mut dyn Dispatch) -> Result<(), PushError> {
        let world = self.world();
        let known = self.state.fleet.keys();
        let uncertain: Vec<NodeName> = known
            .filter(|node| world.is_uncertain(node) && !self.is_on_hold(node))
            .cloned()
            .collect();
        let questions: Vec<Question> = uncertain
            .iter()
            .filter_map(|node| self.target(node))
            .map(|target| Question {
                secrets: self.secrets_of(&target.node.name),
                target,
                manner: Manner::Settle,
            })
            .collect();
        if questions.is_empty() {
            return Ok(());
        }
        self.number()?;
        for question in &questions {
            (self.hear)(Event::Asking {
                node: question.target.node.name.clone(),
            });
        }
        let mut broken: Option<StoreError> = None;
        couriers.ask(questions, &mut |node, heard| match heard {
            Heard::Progress(progress) => (self.hear)(Event::Progress {
                node: node.clone(),
                progress,
            }),
            Heard::Answered(answer) => self.take_answer(node, answer),
            Heard::Lull => {
                if let Err(error) = self.record_all() {
                    broken.get_or_insert(error);
                }
            }
            Heard::Settled(_) => {}
        });
        broken.map_or_else(|| Ok(self.record_all()?), |error| Err(error.into()))
    }

    /// What the commands of a machine may know, by what it may hold.
    fn secrets_of(&self, node: &NodeName) -> Secrets {
        let machine = self.state.fleet.get(node).into_iter();
        let releases = machine.flat_map(Machine::releases);
        self.secrets(releases.map(|release| &***release))
    }

    fn take_answer(&mut self, node: &NodeName, answer: Answer) {
        let holding = match answer {
            Answer::Holds(holding) => holding,
            // Nobody was asked, or nobody asked so.
            Answer::KeptBack | Answer::Seen(_) => return,
            Answer::Unknown(failure) => {
                return self.fail(node, Problem::Unsettled(failure));
            }
        };
        let known = self.state.fleet.get(node);
        // A machine that holds nothing was never sent to, or lost all: either way, nobody else was there.
        let ours = match &holding.token {
            None => true,
            Some(held) => known.is_some_and(|known| known.took(held)),
        };
        if !ours && !self.may_take_over(node) {
            let problem = self.fenced(node, holding.token, holding.log);
            return self.fail(node, problem);
        }
        // Who is asked is declared.
        let Some(declared) = self.mesh.nodes.get(node) else {
            return;
        };
        let release = holding.manifest.as_ref().map(|release| release.digest());
        let is_foreign = match (&holding.token, release) {
            (Some(held), Some(release)) => {
                !known.is_some_and(|known| known.was_sent(held, &release))
            }
            _ => false,
        };
        let is_elsewhere = known.is_some_and(|known| known.elsewhere(Some(declared)).is_some());
        let elsewhere = is_elsewhere.then_some(holding.token.is_some());
        settle(self.machine(node), holding, declared, is_foreign);
        (self.hear)(Event::SettledAs {
            node: node.clone(),
            elsewhere,
        });
    }

    /// Notes that a machine failed in this push.
    pub(super) fn fail(&mut self, node: &NodeName, problem: Problem) {
        (self.hear)(Event::Failed {
            node: node.clone(),
            round: self.round,
            problem: problem.clone(),
        });
        self.failed.insert(node.clone(), problem);
        if self
            .orders
            .max_failures
            .is_some_and(|most| self.failed.len() >= most)
        {
            self.gate.narrow();
        }
    }
}

/// The answer of the machine that is `declared` so becomes its last sent; `is_foreign`: another store sent that.
fn settle(machine: &mut Machine, holding: Holding, declared: &Node, is_foreign: bool) {
    machine.asked_at(declared, holding.token.as_ref());
    machine.attempt = None;
    machine.token = holding.token;
    machine.sent = holding.manifest.map(|manifest| Sent {
        manifest,
        lists: holding.lists,
        at: Location::of(declared),
        is_foreign,
    });
    match &machine.sent {
        Some(sent) => {
            let held = &sent.manifest.services;
            machine
                .unwell
                .leave(false, |service| held.contains_key(service));
        }
        None => machine.unwell = Unwell::no(),
    }
    machine.note_put_back(declared);
}
