//! Contacts (DESIGN.md, section 4): a named machine has its files verified and its checks run, and what drifted is repaired or
//! reloaded. Where a send of this push did all that, there is no contact; a send verifies the files, and loads, applies and checks
//! what changed, but looks at no list and at no check of what did not.
//!
//! Providers come first, so that no consumer is found unwell, and applied again, only because its provider lost its list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::event::Event;
use super::report::Problem;
use super::round::made_anew;
use super::run::Run;
use super::{Named, PushError};
use crate::compose::Release;
use crate::compose::bundle::Bundle;
use crate::compose::location::Location;
use crate::compose::sent::{Attempt, Machine};
use crate::compose::unwell::Unwell;
use crate::delivery::{Dispatch, FailedStep, LeftAlone, Outcome, Parcel, left_alone};
use crate::words::{NodeName, ServiceName};

impl Run<'_> {
    /// Notes what a send left as it was, and nobody looked at; what an earlier send of this push has verified is verified.
    pub(super) fn leave_unverified(&mut self, node: &NodeName, left: BTreeSet<ServiceName>) {
        match self.unverified.get_mut(node) {
            Some(before) => before.retain(|service| left.contains(service)),
            None => {
                self.unverified.insert(node.clone(), left);
            }
        }
    }

    /// Whether this push did not send to a machine, or left something there as it was.
    fn is_unverified(&self, node: &NodeName) -> bool {
        let left = self.unverified.get(node);
        left.is_none_or(|left| !left.is_empty())
    }

    /// Contacts the named machines that the sends of this push have not verified.
    pub(super) fn contact_the_named(
        &mut self,
        couriers: &mut dyn Dispatch,
    ) -> Result<(), PushError> {
        let Named::Nodes(named) = &self.orders.named else {
            return Ok(());
        };
        let due = named.iter().filter(|node| {
            let is_known = self
                .state
                .fleet
                .get(*node)
                .is_some_and(|m| m.sent.is_some());
            // One that was never sent waits with all of it.
            is_known
                && self.is_unverified(node)
                && !self.contacted.contains(*node)
                && !self.is_on_hold(node)
        });
        let due: BTreeSet<NodeName> = due.cloned().collect();
        let mut composed: Vec<(NodeName, Bundle)> = Vec::new();
        for (node, standing) in self.stand(&due) {
            if standing.is_behind() {
                continue; // it failed, or the rounds ran out before it
            }
            if !self.gate.admits(false) {
                self.kept_back.insert(node);
            } else if let Ok(composition) = standing.composition {
                composed.push((node, composition.bundle));
            }
        }
        self.fill_in(&mut composed)?;
        let waves = providers_first(
            composed
                .iter()
                .map(|(node, bundle)| (node.clone(), Arc::clone(&bundle.manifest)))
                .collect(),
        );
        let mut composed: BTreeMap<NodeName, Bundle> = composed.into_iter().collect();
        for wave in waves {
            let mut parcels = Vec::new();
            for node in wave {
                let known = self.state.fleet.get(&node);
                let token = known.and_then(|machine| machine.token);
                if let (Some(bundle), Some(token)) = (composed.remove(&node), token) {
                    parcels.push(self.parcel(&node, bundle, token)?);
                }
                self.contacted.insert(node);
            }
            self.dispatch(parcels, couriers, Self::record_contact)?;
        }
        Ok(())
    }

    /// All of it was verified. Of one that nobody found otherwise there is nothing to note.
    fn find_well(&mut self, node: &NodeName) {
        let known = self.state.fleet.get(node);
        if known.is_some_and(|machine| !machine.unwell.is_no()) {
            self.machine(node).unwell = Unwell::no();
        }
    }

    /// A machine that was current is uncertain now: the next push asks it.
    fn doubt(&mut self, node: &NodeName, parcel: &Parcel) {
        self.machine(node).attempt = Some(Attempt {
            token: parcel.token,
            manifest: Arc::clone(&parcel.bundle.manifest),
            at: Some(Location::of(&parcel.target.node)),
        });
    }

    /// What the end of a contact means: the machine holds what it held, unless nobody knows.
    fn record_contact(&mut self, node: &NodeName, parcel: &Parcel, outcome: Outcome) {
        match outcome {
            Outcome::Applied(applied) => {
                self.find_well(node);
                (self.hear)(Event::Contacted {
                    node: node.clone(),
                    applied,
                });
            }
            Outcome::KeptBack => self.keep_back(node),
            Outcome::NotReached(failure) => self.fail(node, Problem::NotReached(failure)),
            Outcome::Refused(failure) => {
                let problem = match failure.step {
                    FailedStep::Start
                    | FailedStep::Lock
                    | FailedStep::Source
                    | FailedStep::Unpack => Problem::Refused(failure),
                    _ => {
                        let push = self.state.push;
                        let unwell = &mut self.machine(node).unwell;
                        unwell.found(failure.service.clone(), push);
                        Problem::Unwell(failure)
                    }
                };
                self.fail(node, problem);
            }
            Outcome::Fenced { held: None, .. } if self.emptied.insert(node.clone()) => {
                let machine = self.machine(node);
                *machine = made_anew(machine);
                (self.hear)(Event::Emptied { node: node.clone() });
            }
            Outcome::Fenced { held, log } => {
                self.doubt(node, parcel);
                let problem = self.fenced(node, held, log);
                self.fail(node, problem);
            }
            Outcome::RolledBack { failure, .. } => {
                // It held another release, and this one was sent: that is not flushed again.
                self.doubt(node, parcel);
                self.machine(node).rolled_back = Some(parcel.bundle.digest);
                self.fail(node, Problem::Uncertain(failure));
            }
            Outcome::Uncertain(failure) => {
                self.doubt(node, parcel);
                self.fail(node, Problem::Uncertain(failure));
            }
        }
    }
}

/// What a send of `parcel` leaves alone, on a machine of which `machine` was known before.
pub(super) fn left_by(parcel: &Parcel, machine: &Machine) -> LeftAlone {
    let manifest = &parcel.bundle.manifest;
    if parcel.take_over {
        // It may have held any of it already, from somebody else: nobody knows what the send found to do.
        return left_alone(Some(manifest), |_| false, manifest);
    }
    let base = parcel.base.as_deref().map(|release| &**release);
    let stayed = machine.sent.as_ref().map(|sent| &sent.lists);
    let is_loaded =
        |provider: &ServiceName| stayed.is_some_and(|lists| lists.contains_key(provider));
    left_alone(base, is_loaded, manifest)
}

/// Each machine after those that its services are bound to; of machines that are bound in a circle, all at once.
fn providers_first(mut left: BTreeMap<NodeName, Arc<Release>>) -> Vec<BTreeSet<NodeName>> {
    let mut waves = Vec::new();
    while !left.is_empty() {
        let comes_later = |node: &NodeName, held: &Release| {
            let bindings = held.services.values().flat_map(|s| s.bindings.values());
            let mut providers = bindings.flat_map(|bound| &bound.nodes);
            providers.any(|other| other != node && left.contains_key(other))
        };
        let mut wave: BTreeSet<NodeName> = left
            .iter()
            .filter(|(node, held)| !comes_later(node, held))
            .map(|(node, _)| node.clone())
            .collect();
        if wave.is_empty() {
            wave = left.keys().cloned().collect();
        }
        left.retain(|node, _| !wave.contains(node));
        waves.push(wave);
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::{Sample, bound, with};

    fn waves(sample: &Sample) -> String {
        let held = sample.fleet.iter();
        let held = held.filter_map(|(node, machine)| {
            let sent = machine.sent.as_ref()?;
            Some((node.clone(), Arc::clone(&sent.manifest)))
        });
        let waves = providers_first(held.collect()).into_iter().map(|wave| {
            let names: Vec<&str> = wave.iter().map(NodeName::as_str).collect();
            names.join(" ")
        });
        waves.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn machines_of_providers_are_contacted_before_those_of_their_consumers() {
        let sample = Sample::of(&[])
            .sent("m0", vec![("web", bound("billing:1@m1"))])
            .sent(
                "m1",
                vec![
                    ("billing", bound("broker:1@m2")),
                    ("x", bound("billing:1@m1")),
                ],
            )
            .sent("m2", vec![("broker", with("billing:1"))])
            .sent("m3", vec![("other", bound("gone:1@m9"))]);
        assert_eq!(waves(&sample), "m2 m3, m1, m0");
    }

    #[test]
    fn machines_that_are_bound_in_a_circle_are_contacted_at_once() {
        let sample = Sample::of(&[])
            .sent("m0", vec![("a", bound("b:1@m1"))])
            .sent("m1", vec![("b", bound("a:1@m0"))])
            .sent("m2", vec![("c", with(""))]);
        assert_eq!(waves(&sample), "m2, m0 m1");
    }
}
