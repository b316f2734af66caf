//! All machines, as they really are, and what must hold of them at every instant.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use grid::compose::manifest::{Bound, Grant, Manifest, ServiceManifest};
use grid::mesh::{Mesh, Move};
use grid::provision::State;
use grid::store::MemoryStore;
use grid::words::{Digest, NodeName, ServiceName};

use super::coverage::Coverage;
use super::machine::{Machine, Step};

/// Where the machines stand.
pub struct Floor {
    pub machines: BTreeMap<NodeName, Machine>,
    pub store: Rc<RefCell<MemoryStore>>,
    /// As last declared.
    pub mesh: Mesh,
    pub down: BTreeSet<NodeName>,
    /// Providers that vanished with their machine and were not brought back since.
    pub vanished: BTreeSet<(NodeName, ServiceName)>,
    /// Machines that were made anew, while the store thinks that they hold something.
    pub emptied: BTreeSet<NodeName>,
    /// Machines of which an operator said that a service is gone.
    pub given_up: BTreeSet<(NodeName, ServiceName)>,
    /// Lists that somebody changed by hand.
    pub drifted: BTreeSet<(NodeName, ServiceName)>,
    /// Bindings of consumers that do not wait and were not admitted yet; or whose provider was given up.
    pub excused: BTreeMap<(NodeName, ServiceName, ServiceName), Bound>,
    /// Machines that another store sent to last.
    pub strangers: BTreeSet<NodeName>,
    /// Whether it is uncertain how the last send to a machine ended, or what it answered when it was asked.
    pub outcomes: BTreeMap<NodeName, bool>,
    /// What contacts found not well, and by which push, that no send has looked at since. `None`: the machine as a whole.
    pub unwell: BTreeMap<NodeName, BTreeMap<Option<ServiceName>, u64>>,
    /// What was last rolled back where.
    pub rolled_back: BTreeMap<NodeName, Digest>,
    pub coverage: Coverage,
    pub violation: Option<String>,
    pub trace: bool,
}

impl Floor {
    pub fn violate(&mut self, what: String) {
        self.say(|| format!("    VIOLATION {what}"));
        self.violation.get_or_insert(what);
    }

    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            println!("{}", what());
        }
    }

    pub fn machine(&mut self, node: &NodeName) -> &mut Machine {
        self.machines.entry(node.clone()).or_default()
    }

    /// What was found not well of services that are gone.
    pub fn forget_unwell(&mut self, node: &NodeName, is_gone: impl Fn(&ServiceName) -> bool) {
        if let Some(found) = self.unwell.get_mut(node) {
            found.retain(|service, _| !service.as_ref().is_some_and(&is_gone));
        }
    }

    /// One step on a machine, and what must hold after it.
    pub fn step(&mut self, node: &NodeName, step: &Step, going_back: bool) {
        match step {
            Step::Run(name, service) => {
                let waits = |provider: &ServiceName| {
                    self.mesh
                        .services
                        .get(name)
                        .and_then(|s| s.consumes.get(provider))
                        .map_or(!service.unwaited.contains(provider), |consumption| {
                            consumption.wait // not declared any more: as it was when it was sent
                        })
                };
                let before = self.machines.get(node).and_then(|m| m.running.get(name));
                let mut excused = Vec::new();
                for (provider, bound) in &service.bindings {
                    let same = before.and_then(|b| b.bindings.get(provider)) == Some(bound);
                    let key = (node.clone(), name.clone(), provider.clone());
                    // It counts on a provider that an operator said is gone from there.
                    let given_up = |other| self.given_up.contains(&(other, provider.clone()));
                    let gone = bound.nodes.iter().cloned().any(given_up);
                    // Or was itself said to be gone, and is there anew for all that anybody knew.
                    let anew = self.given_up.contains(&(node.clone(), name.clone()));
                    if !same || gone || anew {
                        let excuse = gone || !waits(provider);
                        excused.push((key, excuse.then(|| bound.clone())));
                    }
                }
                let bound_before =
                    |provider| before.is_some_and(|b| b.bindings.contains_key(provider));
                let newly: Vec<(ServiceName, Bound)> = service
                    .bindings
                    .iter()
                    .filter(|(provider, _)| {
                        !going_back && waits(provider) && !bound_before(*provider)
                    })
                    .map(|(provider, bound)| (provider.clone(), bound.clone()))
                    .collect();
                for (provider, bound) in newly {
                    self.check_newly_bound(node, name, &provider, &bound);
                }
                for (key, bound) in excused {
                    match bound {
                        Some(bound) => self.excused.insert(key, bound),
                        None => self.excused.remove(&key),
                    };
                }
            }
            Step::Close(name) | Step::Remove(name) if !going_back => {
                self.check_leaving(node, name);
            }
            Step::Load(name, _) => {
                self.drifted.remove(&(node.clone(), name.clone()));
            }
            Step::Close(_) | Step::Remove(_) => {}
        }
        self.machine(node).step(step);
        self.check_admission(&format!("after {} on {node}", short(step)));
    }

    /// A new consumer is admitted on every machine of its provider, a further one included.
    fn check_newly_bound(
        &mut self,
        node: &NodeName,
        consumer: &ServiceName,
        provider: &ServiceName,
        bound: &Bound,
    ) {
        let grant = Grant {
            consumer: consumer.clone(),
            generation: bound.generation,
            wants: bound.wants.clone(),
        };
        let is_live = {
            let store = self.store.borrow();
            let provision = store.peek().provisions.get(provider, consumer);
            provision.is_some_and(|p| p.is_live(bound.generation))
        };
        if self.given_up.contains(&(node.clone(), consumer.clone())) {
            return;
        }
        let refusing = bound.nodes.iter().find(|other| {
            let place = ((*other).clone(), provider.clone());
            let machine = self.machines.get(*other);
            let list = machine.and_then(|m| m.loaded.get(provider));
            !list.is_some_and(|list| list.contains(&grant))
                && !self.vanished.contains(&place)
                && !self.drifted.contains(&place)
                && !self.given_up.contains(&place)
        });
        if let (true, Some(refusing)) = (is_live, refusing) {
            let what = format!(
                "{consumer} starts on {node}, and {provider} on {refusing} was not told of it"
            );
            self.violate(what);
        }
    }

    /// Rule 3, as it looks from outside.
    fn check_leaving(&mut self, node: &NodeName, name: &ServiceName) {
        let given_up = self.given_up.iter().any(|(_, service)| service == name);
        for (other, machine) in &self.machines {
            for (consumer, service) in &machine.running {
                let Some(bound) = service.bindings.get(name) else {
                    continue;
                };
                let key = (other.clone(), consumer.clone(), name.clone());
                let leaves_too = other == node && !self.stays_running(node, consumer);
                if bound.nodes.contains(node)
                    && !leaves_too
                    && !self.lets_go(other, consumer, service, name)
                    && !given_up
                    && !self.excused.contains_key(&key)
                    && !self.given_up.contains(&(other.clone(), consumer.clone()))
                {
                    let what = format!(
                        "{name} leaves {node} while {consumer} on {other} is bound to it there"
                    );
                    return self.violate(what);
                }
            }
        }
    }

    /// What starts first leaves its old machine once it is on all of its new ones.
    pub fn check_start_first(&mut self, node: &NodeName, wanted: &Manifest) {
        let leaving: Vec<ServiceName> = self
            .machine(node)
            .running
            .keys()
            .filter(|name| !wanted.services.contains_key(*name))
            .cloned()
            .collect();
        for name in &leaving {
            let given_up = self.given_up.iter().any(|(_, service)| service == name);
            if let Some(service) = self.mesh.services.get(name)
                && service.moves == Move::StartFirst
                && !service.nodes.contains(node)
                && !given_up
                && !self.is_taken_away(name)
                && let Some(missing) = service.nodes.iter().find(|new| {
                    !self.emptied.contains(*new)
                        && !self
                            .machines
                            .get(*new)
                            .is_some_and(|m| m.running.contains_key(name))
                })
            {
                let what =
                    format!("{name} starts first, and leaves {node} before it is on {missing}");
                self.violate(what);
            }
        }
    }

    /// Whether a consumer leaves its machine, does not wait for the provider, and nothing that stays depends on it: then
    /// it does not keep the provider.
    pub fn lets_go(
        &self,
        node: &NodeName,
        consumer: &ServiceName,
        runs: &ServiceManifest,
        provider: &ServiceName,
    ) -> bool {
        runs.unwaited.contains(provider) && !self.is_needed(node, consumer, &mut BTreeSet::new())
    }

    /// Who lets a provider go when its removal goes out has let it go, also if it is declared again before the machine,
    /// which stopped in mid apply, has removed it.
    pub fn excuse_who_lets_go(&mut self, node: &NodeName, wanted: &Manifest) {
        let mut excused = Vec::new();
        for (other, machine) in &self.machines {
            for (consumer, service) in &machine.running {
                for (provider, bound) in &service.bindings {
                    if bound.nodes.contains(node)
                        && !wanted.services.contains_key(provider)
                        && self.lets_go(other, consumer, service, provider)
                    {
                        let key = (other.clone(), consumer.clone(), provider.clone());
                        excused.push((key, bound.clone()));
                    }
                }
            }
        }
        self.excused.extend(excused);
    }

    /// Whether something that is assigned is on a machine, or is bound to it there by however many links.
    pub fn is_needed(
        &self,
        node: &NodeName,
        name: &ServiceName,
        seen: &mut BTreeSet<(NodeName, ServiceName)>,
    ) -> bool {
        let declared = self.mesh.services.get(name);
        if declared.is_some_and(|service| service.nodes.contains(node)) {
            return true;
        }
        seen.insert((node.clone(), name.clone()))
            && self.machines.iter().any(|(other, machine)| {
                machine.running.iter().any(|(binder, service)| {
                    let bound = service.bindings.get(name);
                    bound.is_some_and(|bound| bound.nodes.contains(node))
                        && !self.given_up.contains(&(other.clone(), binder.clone()))
                        && self.is_needed(other, binder, seen)
                })
            })
    }

    fn stays_running(&self, node: &NodeName, service: &ServiceName) -> bool {
        self.machines
            .get(node)
            .and_then(|m| m.unfinished.as_ref())
            .is_none_or(|u| u.wanted.services.contains_key(service))
    }

    /// Whether a consumption of the service is revoked.
    pub fn is_taken_away(&self, name: &ServiceName) -> bool {
        let store = self.store.borrow();
        let provisions = &store.peek().provisions;
        self.mesh.services.get(name).is_some_and(|service| {
            service.consumes.keys().any(|provider| {
                provisions
                    .get(provider, name)
                    .is_some_and(|p| p.newest().state == State::Revoked)
            })
        })
    }

    /// Who did not wait is excused until its account is acknowledged: from then on it is as any other.
    pub fn end_excuses(&mut self) {
        let store = self.store.borrow();
        let fleet = &store.peek().fleet;
        self.excused.retain(|(_, consumer, provider), bound| {
            let grant = Grant {
                consumer: consumer.clone(),
                generation: bound.generation,
                wants: bound.wants.clone(),
            };
            !bound.nodes.iter().all(|node| {
                fleet.get(node).is_some_and(|machine| {
                    let sent = machine.sent.as_ref().filter(|_| machine.attempt.is_none());
                    let sent = sent.filter(|_| machine.holds(provider).is_some());
                    sent.and_then(|sent| sent.grants(provider))
                        .is_some_and(|list| list.contains(&grant))
                })
            })
        });
    }

    /// The consumers on a machine that use a generation which is stored no more.
    pub fn using_what_was_dropped(&self, node: &NodeName) -> BTreeSet<ServiceName> {
        let store = self.store.borrow();
        let provisions = &store.peek().provisions;
        let is_dropped = |consumer: &ServiceName, provider: &ServiceName, bound: &Bound| {
            let stored = provisions.get(provider, consumer);
            stored.is_none_or(|provision| provision.get(bound.generation).is_none())
        };
        let running = self.machines.get(node).map(|machine| &machine.running);
        running
            .into_iter()
            .flatten()
            .filter(|(consumer, service)| {
                let mut bindings = service.bindings.iter();
                bindings.any(|(provider, bound)| is_dropped(consumer, provider, bound))
            })
            .map(|(consumer, _)| consumer.clone())
            .collect()
    }

    /// No generation in use on a machine's real files is refused by what the provider's machine really admits, but by
    /// revoke and cut.
    pub fn check_admission(&mut self, when: &str) {
        let mut found = None;
        let store = self.store.borrow();
        let provisions = &store.peek().provisions;
        for (node, machine) in &self.machines {
            for (consumer, service) in &machine.running {
                if self.given_up.contains(&(node.clone(), consumer.clone())) {
                    continue;
                }
                for (provider, bound) in &service.bindings {
                    let key = (node.clone(), consumer.clone(), provider.clone());
                    let excused = self.excused.get(&key) == Some(bound)
                        || self.lets_go(node, consumer, service, provider);
                    let known = provisions
                        .get(provider, consumer)
                        .and_then(|p| p.get(bound.generation));
                    let Some(credential) = known else {
                        found = Some(format!(
                            "{when}: {consumer} on {node} uses generation {} of {provider}, which was dropped",
                            bound.generation
                        ));
                        continue;
                    };
                    if credential.state != State::Live {
                        continue;
                    }
                    let grant = Grant {
                        consumer: consumer.clone(),
                        generation: bound.generation,
                        wants: bound.wants.clone(),
                    };
                    let (mut admits, mut refuses, mut gone) = (0, 0, 0);
                    for other in &bound.nodes {
                        let place = (other.clone(), provider.clone());
                        if self.vanished.contains(&place)
                            || self.drifted.contains(&place)
                            || self.given_up.contains(&place)
                        {
                            gone += 1;
                            continue;
                        }
                        match self
                            .machines
                            .get(other)
                            .and_then(|m| m.loaded.get(provider))
                        {
                            Some(list) if list.contains(&grant) => admits += 1,
                            Some(_) => refuses += 1,
                            None => {}
                        }
                    }
                    let admitted = refuses == 0 && (admits > 0 || gone > 0);
                    if !admitted && !excused {
                        found = Some(format!(
                            "{when}: {consumer} on {node} uses generation {} of {provider} at {:?}, which is refused",
                            bound.generation, bound.nodes
                        ));
                    }
                }
            }
        }
        drop(store);
        if let Some(found) = found {
            self.violate(found);
        }
    }
}

pub fn short(step: &Step) -> String {
    match step {
        Step::Load(name, list) => format!("load {name} {}", lines(list)),
        Step::Run(name, service) => {
            let bound: Vec<String> = service
                .bindings
                .iter()
                .map(|(p, b)| format!("{p}:{}@{:?}", b.generation, b.nodes))
                .collect();
            format!("run {name} {bound:?}")
        }
        Step::Close(name) => format!("close {name}"),
        Step::Remove(name) => format!("remove {name}"),
    }
}

pub fn lines(list: &grid::compose::manifest::Grants) -> String {
    let all: Vec<String> = list
        .iter()
        .map(|g| format!("{}:{}", g.consumer, g.generation))
        .collect();
    format!("[{}]", all.join(" "))
}
