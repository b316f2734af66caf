//! One round: mint, compose, send, and record what was acknowledged.
//!
//! Invariant: what was minted is on disk before anything is sent, and so is the attempt; a controller
//! that is killed at any instant loses no secret, and knows which machines are uncertain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::behind::{Standing, standing};
use super::contact::left_by;
use super::event::{Event, Summons};
use super::report::Problem;
use super::run::{Run, awaited_by};
use super::{Named, PushError};
use crate::compose::bundle::{Bundle, Content};
use crate::compose::goes_on::{goes_on, last_to_leave};
use crate::compose::location::Location;
use crate::compose::render::STORED_AT_MOST;
use crate::compose::sent::{Attempt, Machine, Sent};
use crate::delivery::{Dispatch, Heard, Outcome, Parcel};
use crate::provision;
use crate::store::{Change, StoreError};
use crate::words::{Digest, NodeName, ServiceName, Token};

impl Run<'_> {
    /// Mints what the targets need, and what the consumers of their services need, and has it on disk.
    pub(super) fn mint_for(&mut self, targets: &BTreeSet<NodeName>) -> Result<(), PushError> {
        let wanted = provision::wanted_by(self.mesh, &self.state.provisions, targets);
        if wanted.is_empty() {
            return Ok(());
        }
        let state = self.state.edit();
        provision::mint(&mut state.provisions, &wanted, state.era, self.chance);
        let changes: Vec<Change> = wanted
            .iter()
            .filter_map(|id| {
                let minted = self.state.provisions.get(&id.provider, &id.consumer)?;
                Some(Change::Provision(id.clone(), minted.clone()))
            })
            .collect();
        self.commit(changes)?;
        self.minted = self.minted.saturating_add(wanted.len());
        for id in wanted {
            let minted = self.state.provisions.get(&id.provider, &id.consumer);
            let Some(generation) = minted.map(|minted| minted.newest().generation.number) else {
                continue;
            };
            (self.hear)(Event::Minted {
                provider: id.provider,
                consumer: id.consumer,
                generation,
            });
        }
        Ok(())
    }

    /// Composes all targets, and records an attempt for each that is behind.
    pub(super) fn compose(
        &mut self,
        targets: &BTreeSet<NodeName>,
    ) -> Result<Vec<Parcel>, PushError> {
        let standings = self.stand(targets);
        for (_, standing) in &standings {
            if let Ok(composed) = &standing.composition {
                self.awaited.extend(awaited_by(&composed.outline.waits));
            }
        }
        let put_off = self.last_to_leave(&standings);
        let mut composed: Vec<(NodeName, Bundle)> = Vec::new();
        for (node, standing) in standings {
            if put_off.contains(&node) {
                continue;
            }
            let is_behind = standing.is_behind();
            match standing.composition {
                Err(error) => self.fail(&node, Problem::Uncomposable(Box::new(error))),
                Ok(composition) if !is_behind => {
                    if !composition.outline.waits.is_empty() {
                        let summons = self.summons(&node);
                        (self.hear)(Event::Waits {
                            node,
                            round: self.round,
                            summons,
                            waits: composition.outline.waits,
                        });
                    }
                }
                Ok(_) if !self.gate.admits(self.is_awaited(&node)) => {
                    self.kept_back.insert(node);
                }
                Ok(composition) => {
                    let summons = self.summons(&node);
                    (self.hear)(Event::Sending {
                        node: node.clone(),
                        round: self.round,
                        summons,
                        reasons: standing.reasons,
                        waits: composition.outline.waits,
                        revoked: composition.outline.revoked,
                    });
                    composed.push((node, composition.bundle));
                }
            }
        }
        if composed.is_empty() {
            return Ok(Vec::new());
        }
        self.fill_in(&mut composed)?;
        let mut parcels = Vec::new();
        let mut changes = Vec::new();
        for (node, bundle) in composed {
            let token = self.draw_token();
            let parcel = self.parcel(&node, bundle, token)?;
            let machine = self.state.edit().fleet.entry(node.clone()).or_default();
            let again = machine.begin(Attempt {
                token,
                manifest: Arc::clone(&parcel.bundle.manifest),
                at: Some(Location::of(&parcel.target.node)),
            });
            self.said_gone.insert(node.clone(), again);
            changes.push(Change::Machine(node, machine.clone()));
            changes.extend(stored_contents(&parcel.bundle));
            parcels.push(parcel);
        }
        self.commit(changes)?;
        Ok(parcels)
    }

    /// How these machines stand, bundles and all.
    pub(super) fn stand(&self, nodes: &BTreeSet<NodeName>) -> Vec<(NodeName, Standing)> {
        let world = self.world();
        let stand = |node: &NodeName| {
            let mut standing = standing(&self.composer, &world, node);
            if let Ok(composition) = &mut standing.composition
                && self.may_take_over(node)
            {
                composition.bundle.goes_on = goes_on(&world, node, true);
            }
            standing
        };
        nodes
            .iter()
            .map(|node| (node.clone(), stand(node)))
            .collect()
    }

    /// The machines that are sent to in the next round, so that they see who has left.
    fn last_to_leave(&self, standings: &[(NodeName, Standing)]) -> BTreeSet<NodeName> {
        let sends = standings.iter().filter_map(|(node, standing)| {
            let composed = standing.composition.as_ref().ok()?;
            let is_sent = standing.is_behind() && self.gate.admits(self.is_awaited(node));
            is_sent.then(|| (node, &**composed.bundle.manifest))
        });
        last_to_leave(&self.world(), sends)
    }

    /// Why a machine is sent to: somebody named it, or it is behind.
    fn summons(&self, node: &NodeName) -> Summons {
        match self.orders.named {
            Named::Nodes(_) if self.is_named(node) => Summons::Named,
            _ => Summons::Flushed,
        }
    }

    pub(super) fn parcel(
        &self,
        node: &NodeName,
        bundle: Bundle,
        token: Token,
    ) -> Result<Parcel, PushError> {
        let Some(target) = self.target(node) else {
            return Err(PushError::UnknownNode(node.clone()));
        };
        let awaited = self.is_awaited(node);
        let secrets = self.secrets([&**bundle.manifest]);
        let machine = self.state.fleet.get(node);
        Ok(Parcel {
            target,
            bundle: Arc::new(bundle),
            token,
            replaces: machine
                .and_then(|machine| machine.token)
                .into_iter()
                .collect(),
            take_over: self.may_take_over(node),
            base: machine
                .and_then(|machine| machine.sent.as_ref())
                .map(|sent| Arc::clone(&sent.manifest)),
            sender: self.orders.sender.clone(),
            awaited,
            secrets,
        })
    }

    /// Fills in, from the store, the contents of services that stay as last acknowledged, for a machine that
    /// has lost one.
    pub(super) fn fill_in(&mut self, composed: &mut [(NodeName, Bundle)]) -> Result<(), PushError> {
        let is_kept = |content: &Content| matches!(content, Content::Kept);
        let kept: BTreeSet<Digest> = composed
            .iter()
            .flat_map(|(_, bundle)| &bundle.contents)
            .filter(|(_, content)| is_kept(content))
            .map(|(digest, _)| *digest)
            .collect();
        if kept.is_empty() {
            return Ok(());
        }
        let stored = self.store.contents(&kept)?;
        for (_, bundle) in composed {
            for (digest, content) in &mut bundle.contents {
                if let (true, Some(bytes)) = (is_kept(content), stored.get(digest)) {
                    *content = Content::Bytes(Arc::clone(bytes));
                }
            }
        }
        Ok(())
    }

    /// Sends, in parallel, and records acknowledgements as they come; those that come together, together.
    pub(super) fn send(
        &mut self,
        parcels: Vec<Parcel>,
        couriers: &mut dyn Dispatch,
    ) -> Result<(), PushError> {
        self.dispatch(parcels, couriers, Self::record)
    }

    /// Sends parcels, and has `record` note the end of each.
    pub(super) fn dispatch(
        &mut self,
        parcels: Vec<Parcel>,
        couriers: &mut dyn Dispatch,
        record: fn(&mut Self, &NodeName, &Parcel, Outcome),
    ) -> Result<(), PushError> {
        if parcels.is_empty() {
            return Ok(());
        }
        self.number()?;
        let by_node: BTreeMap<NodeName, Parcel> = parcels
            .iter()
            .map(|parcel| (parcel.target.node.name.clone(), parcel.clone()))
            .collect();
        let mut broken: Option<StoreError> = None;
        couriers.send(parcels, &mut |node, heard| match heard {
            Heard::Progress(progress) => (self.hear)(Event::Progress {
                node: node.clone(),
                progress,
            }),
            Heard::Settled(outcome) => {
                let Some(parcel) = by_node.get(node) else {
                    return;
                };
                if broken.is_none() {
                    record(self, node, parcel, outcome);
                }
            }
            Heard::Lull => {
                if broken.is_none() {
                    broken = self.record_all().err();
                }
            }
            Heard::Answered(_) => {}
        });
        broken.map_or_else(|| Ok(self.record_all()?), |error| Err(error.into()))
    }

    /// What the end of a send means for what is known of the machine. A death before it is on disk leaves the
    /// machine uncertain, and loses nothing else.
    fn record(&mut self, node: &NodeName, parcel: &Parcel, outcome: Outcome) {
        self.unrecorded.insert(node.clone());
        let said_gone = self.said_gone.remove(node).unwrap_or_default();
        let machine = self.state.edit().fleet.entry(node.clone()).or_default();
        let problem = match outcome {
            Outcome::Applied(applied) => {
                let left = left_by(parcel, machine);
                let mut unwell = std::mem::take(&mut machine.unwell);
                acknowledge(machine, parcel);
                unwell.leave(left.unverified.is_empty(), |service| {
                    left.unverified.contains(service) || left.untouched.contains(service)
                });
                machine.unwell = unwell;
                self.sent.insert(node.clone());
                self.leave_unverified(node, left.unverified);
                (self.hear)(Event::Sent {
                    node: node.clone(),
                    round: self.round,
                    applied,
                });
                None
            }
            Outcome::KeptBack => {
                not_received(machine, said_gone);
                self.keep_back(node);
                None
            }
            Outcome::NotReached(failure) => {
                not_received(machine, said_gone);
                Some(Problem::NotReached(failure))
            }
            Outcome::Refused(failure) => {
                not_received(machine, said_gone);
                Some(Problem::Refused(failure))
            }
            Outcome::RolledBack { failure, lists } => {
                roll_back(machine, parcel, &lists);
                Some(Problem::RolledBack { failure, lists })
            }
            Outcome::Uncertain(failure) => Some(Problem::Uncertain(failure)),
            Outcome::Fenced { held: None, .. } if self.emptied.insert(node.clone()) => {
                // It holds nothing, so nobody else was there: it was made anew. All of it is sent again.
                *machine = made_anew(machine);
                (self.hear)(Event::Emptied { node: node.clone() });
                None
            }
            // It stays uncertain: the next push asks again, and no status calls it current.
            Outcome::Fenced { held, log } => Some(self.fenced(node, held, log)),
        };
        if let Some(problem) = problem {
            self.fail(node, problem);
        }
    }

    /// It was not its turn before the gate closed: it holds what it held.
    pub(super) fn keep_back(&mut self, node: &NodeName) {
        self.kept_back.insert(node.clone());
        (self.hear)(Event::KeptBack { node: node.clone() });
    }
}

/// The machine holds what it held, and what was said to be gone from it is.
fn not_received(machine: &mut Machine, said_gone: BTreeSet<ServiceName>) {
    machine.attempt = None;
    machine.forgotten.extend(said_gone);
}

fn acknowledge(machine: &mut Machine, parcel: &Parcel) {
    *machine = Machine {
        token: Some(parcel.token),
        sent: Some(Sent {
            manifest: Arc::clone(&parcel.bundle.manifest),
            lists: BTreeMap::new(),
            at: Location::of(&parcel.target.node),
            is_foreign: false,
        }),
        ..made_anew(machine)
    };
}

/// A machine that holds nothing, but for what it holds elsewhere.
pub(super) fn made_anew(machine: &Machine) -> Machine {
    Machine {
        former: machine.former.clone(),
        ..Machine::unknown()
    }
}

/// The previous release is in force again, but for the lists that stayed: these are acknowledged. A machine that was
/// taken over may hold what another store sent there, now with this send's token: it is asked.
fn roll_back(machine: &mut Machine, parcel: &Parcel, lists: &BTreeSet<ServiceName>) {
    machine.token = Some(parcel.token);
    machine.note_put_back(&parcel.target.node);
    if !parcel.take_over {
        machine.attempt = None;
    }
    machine.rolled_back = Some(parcel.bundle.digest);
    if let Some(sent) = &mut machine.sent {
        for provider in lists {
            let newer = parcel.bundle.manifest.services.get(provider);
            if let Some(grants) = newer.and_then(|service| service.grants.clone()) {
                sent.lists.insert(provider.clone(), grants);
            }
        }
    }
}

/// The contents of a bundle that the store keeps.
fn stored_contents(bundle: &Bundle) -> impl Iterator<Item = Change> + '_ {
    bundle
        .contents
        .iter()
        .filter_map(|(digest, content)| match content {
            Content::Bytes(bytes) if fits(bytes) => {
                Some(Change::Content(*digest, Arc::clone(bytes)))
            }
            _ => None,
        })
}

fn fits(bytes: &Zeroizing<Vec<u8>>) -> bool {
    u64::try_from(bytes.len()).is_ok_and(|size| size <= STORED_AT_MOST)
}
