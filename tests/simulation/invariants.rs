//! What must hold: after every event, after every push that reports, and at the end. Written anew from DESIGN.md,
//! section 3, so that nothing here asks the rules whether the rules are right.

use std::collections::{BTreeMap, BTreeSet};

use grid::compose::former::Former;
use grid::compose::manifest::{Bound, Grant, Grants};
use grid::compose::sent::{Fleet, Machine as Known};
use grid::compose::services::{Placed, Wait, outline};
use grid::compose::{Composer, World};
use grid::mesh::{Mesh, Move};
use grid::provision::{Provisions, State};
use grid::push::{Reason, Report, Verdict};
use grid::store::State as Stored;
use grid::words::{NodeName, ServiceName};

use super::declared::{NoFiles, REFUSING, index_of};
use super::floor::lines;
use super::history::{History, Sendings};

/// Every secret that was minted is the same, for as long as it is kept.
pub fn secrets_stay(history: &mut History) {
    let store = history.store.borrow();
    let mut changed = None;
    for (id, provision) in store.peek().provisions.iter() {
        for credential in provision.generations() {
            let key = (
                id.provider.clone(),
                id.consumer.clone(),
                credential.generation,
            );
            let secret = credential.secret.expose();
            let first = history
                .secrets
                .entry(key)
                .or_insert_with(|| secret.to_owned());
            if first != secret {
                changed = Some(format!("the secret of {id} changed"));
            }
        }
    }
    drop(store);
    if let Some(changed) = changed {
        history.floor.violate(changed);
    }
}

/// What the store knows of a machine is so: without an attempt it holds what was last sent, with one it holds either.
pub fn the_store_knows(history: &mut History) {
    let store = history.store.borrow();
    let mut wrong = Vec::new();
    let mut unknown = Vec::new();
    for (node, uncertain) in &history.floor.outcomes {
        let attempt = store
            .peek()
            .fleet
            .get(node)
            .and_then(|m| m.attempt.as_ref());
        if *uncertain && attempt.is_none() {
            wrong.push(format!(
                "nobody knows how the last send to {node} ended, and the store does not say so"
            ));
        }
        if !uncertain && attempt.is_some() {
            wrong.push(format!(
                "the last send to {node} is settled, and the store does not say so"
            ));
        }
    }
    for (node, machine) in &history.floor.machines {
        let known = store.peek().fleet.get(node).cloned().unwrap_or_default();
        if history.floor.strangers.contains(node) {
            if known.token == machine.token && known.token.is_some() {
                wrong.push(format!(
                    "{node} holds what another store sent, and the store takes it for its own"
                ));
            }
            continue;
        }
        let refuses = |node: &grid::mesh::Node| node.root.as_str() == REFUSING;
        let misrooted = history.floor.mesh.nodes.get(node).is_some_and(refuses);
        if known.token.is_none() && known.attempt.is_none() && !misrooted {
            unknown.push(node.clone());
        }
        // It was asked where nothing is: what is known of the place where it lies is kept.
        let left = known.left().iter().find(|left| {
            let took = |token| left.took(token);
            machine.token.as_ref().is_some_and(took)
        });
        let known = match left {
            Some(left) => Known {
                token: left.token,
                sent: left.sent.clone(),
                attempt: left.attempt.clone(),
                ..Known::unknown()
            },
            None => known,
        };
        if history.floor.emptied.contains(node) || machine.unfinished.is_some() {
            if machine.unfinished.is_some() && known.attempt.is_none() {
                wrong.push(format!("{node} stopped in mid apply, and nobody knows"));
            }
            continue;
        }
        let sent = known.sent.as_ref().map(|sent| &sent.manifest);
        let is_sent = machine.release.as_ref() == sent && machine.token == known.token;
        let attempt = known.attempt.as_ref();
        // Taken, or taken and put back.
        let is_attempt = attempt.is_some_and(|attempt| {
            machine.token == Some(attempt.token)
                && (machine.release.as_ref() == Some(&attempt.manifest)
                    || machine.release.as_ref() == sent
                    // It was made anew, and then taken over.
                    || machine.release.is_none())
        });
        if !is_sent && !is_attempt {
            wrong.push(format!("{node} holds what the store does not know of"));
        }
        if let (true, Some(sent), None) = (is_sent, &known.sent, attempt) {
            for (provider, loaded) in &machine.loaded {
                let drifted = history
                    .floor
                    .drifted
                    .contains(&(node.clone(), provider.clone()));
                if !drifted && sent.grants(provider) != Some(loaded) {
                    wrong.push(format!(
                        "{provider} on {node} admits {}, and the store thinks {:?}",
                        lines(loaded),
                        sent.grants(provider).map(lines)
                    ));
                }
            }
        }
    }
    drop(store);
    history.floor.emptied.retain(|node| !unknown.contains(node));
    for what in wrong {
        history.floor.violate(what);
    }
}

/// What the store has for not well.
pub fn noted_unwell(fleet: &Fleet) -> BTreeMap<NodeName, BTreeMap<Option<ServiceName>, u64>> {
    let mut noted = BTreeMap::new();
    for (node, machine) in fleet {
        let services = machine.unwell.services.iter();
        let services = services.map(|(name, push)| (Some(name.clone()), *push));
        let machine = machine.unwell.machine.map(|push| (None, push));
        let of_machine: BTreeMap<_, _> = services.chain(machine).collect();
        if !of_machine.is_empty() {
            noted.insert(node.clone(), of_machine);
        }
    }
    noted
}

/// The store has for not well what a contact found so, until a send or a contact looked at it.
pub fn unwell_is_what_nobody_looked_at_since(history: &mut History) {
    let fleet = history.store.borrow().peek().fleet.clone();
    let noted = noted_unwell(&fleet);
    history.floor.unwell.retain(|_, found| !found.is_empty());
    if noted != history.floor.unwell {
        let found = &history.floor.unwell;
        let what = format!("{found:?} is not well, and the store says {noted:?}");
        history.floor.violate(what);
    }
}

pub fn note_uncertain(history: &mut History) {
    let store = history.store.borrow();
    let fleet = store.peek().fleet.clone();
    drop(store);
    for (node, machine) in &fleet {
        if machine.attempt.is_none() {
            continue;
        }
        let held = history.floor.mesh.nodes.get(node);
        if held.is_some_and(|node| node.hold.is_some()) {
            history.floor.coverage.saw("uncertain on hold");
        } else if history.floor.down.contains(node) {
            history.floor.coverage.saw("uncertain, not to be asked");
        }
    }
}

/// Whether a machine that was sent to has another address or another root now.
pub fn is_any_elsewhere(mesh: &Mesh, fleet: &Fleet) -> bool {
    mesh.nodes
        .keys()
        .any(|node| is_elsewhere(mesh, fleet, node))
}

fn is_elsewhere(mesh: &Mesh, fleet: &Fleet, node: &NodeName) -> bool {
    let known = fleet.get(node);
    if known.is_some_and(|known| known.sent.is_none() && !known.former.is_empty()) {
        return true;
    }
    let sent = known.and_then(|machine| machine.sent.as_ref());
    let declared = mesh.nodes.get(node);
    let address = declared.map(|d| d.address.clone().unwrap_or_else(|| node.to_string()));
    let root = declared.map(|d| &d.root);
    sent.is_some_and(|sent| {
        address.as_ref() != Some(&sent.at.address) || root != sent.at.root.as_ref()
    })
}

/// An account is minted for a consumer that is on a machine and consumes the provider, and for no other.
pub fn of_what_was_minted(history: &mut History, before: &Provisions) {
    let store = history.store.borrow();
    let mesh = &history.floor.mesh;
    let minted = store.peek().provisions.iter().find(|(id, _)| {
        before.get(&id.provider, &id.consumer).is_none()
            && mesh.services.get(&id.consumer).is_none_or(|consumer| {
                consumer.nodes.is_empty() || !consumer.consumes.contains_key(&id.provider)
            })
    });
    let wrong = minted.map(|(id, _)| format!("{id} is minted, and nobody needs it"));
    drop(store);
    if let Some(wrong) = wrong {
        history.floor.violate(wrong);
    }
}

/// A machine that is uncertain is behind.
pub fn uncertain_is_behind(history: &mut History) {
    let store = history.store.borrow();
    let stored = store.peek();
    let mesh = &history.floor.mesh;
    let mut wrong = None;
    for node in mesh.nodes.keys() {
        let attempt = stored.fleet.get(node).and_then(|m| m.attempt.as_ref());
        if attempt.is_none() && !is_elsewhere(mesh, &stored.fleet, node) {
            continue;
        }
        let world = World::new(mesh, &stored.provisions, &stored.fleet);
        let composer = Composer::new(mesh, NoFiles::shared());
        let standing = grid::push::standing(&composer, &world, node);
        if !standing.reasons.contains(&Reason::Uncertain) {
            wrong = Some(format!("{node} is uncertain and not behind for it"));
        }
    }
    drop(store);
    if let Some(wrong) = wrong {
        history.floor.violate(wrong);
    }
}

/// What the rules read, for what is written anew here.
struct Eye<'a> {
    mesh: &'a Mesh,
    stored: &'a Stored,
}

impl Eye<'_> {
    fn provisions(&self) -> &Provisions {
        &self.stored.provisions
    }

    fn is_taken_away(&self, service: &ServiceName) -> bool {
        self.mesh.services.get(service).is_some_and(|declared| {
            declared.consumes.keys().any(|provider| {
                self.provisions()
                    .get(provider, service)
                    .is_some_and(|p| p.newest().state == State::Revoked)
            })
        })
    }

    /// Everything that is bound, as last sent or attempted: on which machine, whose, to whom.
    fn bindings(&self) -> Vec<(&NodeName, &ServiceName, &ServiceName, &Bound)> {
        let mut found = Vec::new();
        for (node, machine) in &self.stored.fleet {
            let attempted = machine
                .attempt
                .iter()
                .flat_map(|attempt| &attempt.manifest.services)
                .filter(|(name, _)| !machine.forgotten.contains(*name));
            // Where nothing was delivered yet, it runs what it was sent elsewhere.
            let former = machine.former.iter().filter(|_| machine.sent.is_none());
            let former = former.flat_map(|former| {
                let attempted = former.attempt.iter().map(|attempt| &attempt.manifest);
                let sent = former.sent.iter().map(|sent| &sent.manifest);
                sent.chain(attempted)
                    .flat_map(|manifest| &manifest.services)
            });
            let former = former.filter(|(name, _)| !machine.forgotten.contains(*name));
            for (consumer, service) in machine.services().chain(attempted).chain(former) {
                for (provider, bound) in &service.bindings {
                    found.push((node, consumer, provider, bound));
                }
            }
        }
        found
    }

    /// The list that rule 1 gives.
    fn list(&self, provider: &ServiceName) -> Grants {
        let mut list = Grants::new();
        for (id, provision) in self.provisions().iter() {
            if &id.provider != provider || provision.newest().state != State::Live {
                continue;
            }
            let consumer = self.mesh.services.get(&id.consumer);
            let consumption = consumer
                .filter(|consumer| !consumer.nodes.is_empty())
                .and_then(|consumer| consumer.consumes.get(provider));
            let declared = self.mesh.services.get(provider);
            let wants = match (consumption, declared) {
                (Some(consumption), _) => consumption.wants.clone(),
                (None, Some(declared)) if provision.by_hand => match &declared.provides {
                    Some(provides) => provides.provider.default_wants(),
                    None => continue,
                },
                _ => continue,
            };
            list.insert(Grant {
                consumer: id.consumer.clone(),
                generation: provision.newest().generation,
                wants,
            });
        }
        for (_, consumer, bound_to, bound) in self.bindings() {
            let live = self
                .provisions()
                .get(bound_to, consumer)
                .and_then(|p| p.get(bound.generation))
                .is_some_and(|credential| credential.state == State::Live);
            if bound_to == provider && live {
                list.insert(Grant {
                    consumer: consumer.clone(),
                    generation: bound.generation,
                    wants: bound.wants.clone(),
                });
            }
        }
        list
    }
}

/// A service waits only where rule 2 or 4 has it wait.
pub fn nothing_waits_without_a_cause(history: &mut History) {
    let store = history.store.borrow();
    let stored = store.peek();
    let mesh = &history.floor.mesh;
    let eye = Eye { mesh, stored };
    let world = World::new(mesh, &stored.provisions, &stored.fleet);
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for node in mesh.nodes.keys() {
        let composed = outline(&world, node);
        for (consumer, wait) in &composed.waits {
            match wait {
                Wait::Grant(providers) => {
                    seen.push("wait for a grant");
                    for provider in providers {
                        let started = &composed.services;
                        let here = started
                            .get(provider)
                            .is_some_and(|placed| matches!(placed, Placed::Declared { .. }));
                        if let Some(why) = admitted(&eye, history, node, consumer, provider, here) {
                            wrong.push(format!(
                                "{consumer} on {node} waits for {provider}, although {why}"
                            ));
                        }
                    }
                }
                Wait::Removal(olds) => {
                    seen.push("wait for a removal");
                    let here = stored.fleet.get(node);
                    if here.is_some_and(|m| m.holds(consumer).is_some()) {
                        wrong.push(format!(
                            "{consumer} on {node} waits for a removal, although it is there"
                        ));
                    }
                    let bound = eye.bindings().iter().any(|(_, _, p, _)| p == &consumer);
                    let service = &mesh.services[consumer];
                    let held = |old: &NodeName| {
                        stored.fleet.get(old).is_some_and(|m| {
                            let lies = |former: &Former| {
                                let attempt = former.attempt.iter().map(|a| &a.manifest);
                                let sent = former.sent.iter().map(|sent| &sent.manifest);
                                let mut all = sent.chain(attempt);
                                all.any(|manifest| manifest.services.contains_key(consumer))
                            };
                            let left = m.sent.is_none() && m.former.iter().any(lies);
                            m.holds(consumer).is_some()
                                || left && !m.forgotten.contains(consumer)
                                || m.attempt.as_ref().is_some_and(|a| {
                                    a.manifest.services.contains_key(consumer)
                                        && !m.forgotten.contains(consumer)
                                })
                        })
                    };
                    if bound || service.moves == Move::StartFirst {
                        wrong.push(format!(
                            "{consumer} on {node} waits for a removal, although it starts first"
                        ));
                    }
                    for old in olds {
                        if !held(old) || service.nodes.contains(old) {
                            wrong.push(format!(
                                "{consumer} on {node} waits for its removal from {old}, where it is not or stays"
                            ));
                        }
                    }
                }
            }
        }
        for (consumer, placed) in &composed.services {
            let Placed::Declared { bindings, .. } = placed else {
                continue;
            };
            if composed.waits.contains_key(consumer) {
                wrong.push(format!("{consumer} on {node} starts, and waits"));
            }
            for (provider, bound) in bindings {
                let provision = eye.provisions().get(provider, consumer);
                if !provision.is_some_and(|p| p.is_live(bound.generation)) {
                    wrong.push(format!(
                        "{consumer} on {node} is composed with generation {} of {provider}, which is closed",
                        bound.generation
                    ));
                }
                if bound.nodes.is_empty() {
                    wrong.push(format!(
                        "{consumer} on {node} is composed with {provider}, which is on no machine"
                    ));
                }
                let consumption = &mesh.services[consumer].consumes[provider];
                if consumption.wait && eye.is_taken_away(provider) {
                    wrong.push(format!(
                        "{consumer} on {node} is composed with {provider}, which is to be taken away"
                    ));
                }
                let elsewhere =
                    |other: &&NodeName| *other != node && is_elsewhere(mesh, &stored.fleet, other);
                if let (true, Some(other)) = (consumption.wait, bound.nodes.iter().find(elsewhere))
                {
                    wrong.push(format!(
                        "{consumer} on {node} is composed with {provider} on {other}, whose address nobody has asked"
                    ));
                }
            }
        }
        for consumer in &composed.revoked {
            if !eye.is_taken_away(consumer) {
                wrong.push(format!("{consumer} is shown as revoked, and is not"));
            }
            if composed.services.contains_key(consumer) {
                seen.push("revoked in use stays");
            }
        }
        for service in composed.services.keys() {
            if !mesh
                .services
                .get(service)
                .is_some_and(|s| s.nodes.contains(node))
            {
                seen.push("leaving stays");
            }
        }
        for service in mesh.services.values() {
            if service.provides.is_some() && service.nodes.len() > 1 {
                seen.push("provider on two machines");
            }
            if service
                .consumes
                .iter()
                .any(|(p, c)| !c.wait && index_of(p) > index_of(&service.name))
            {
                seen.push("circle");
            }
        }
    }
    for machine in history.floor.machines.values() {
        for list in machine.loaded.values() {
            let twice = |same: fn(&Grant, &Grant) -> bool| {
                list.iter()
                    .any(|a| list.iter().any(|b| a.consumer == b.consumer && same(a, b)))
            };
            if twice(|a, b| a.generation != b.generation) {
                seen.push("two generations on a list");
            }
            if twice(|a, b| a.generation == b.generation && a.wants != b.wants) {
                seen.push("old wants on a list");
            }
        }
        for (name, service) in machine.running.values().flat_map(|s| &s.bindings) {
            let known = |node: &NodeName| {
                stored
                    .fleet
                    .get(node)
                    .is_some_and(|m| m.holds(name).is_some())
            };
            if service.nodes.iter().any(known) && !service.nodes.iter().all(known) {
                seen.push("further machine without a list");
            }
        }
    }
    drop(store);
    for what in seen {
        history.floor.coverage.saw(what);
    }
    if !history.floor.excused.is_empty() {
        history.floor.coverage.saw("not waiting, not yet admitted");
    }
    for what in wrong {
        history.floor.violate(what);
    }
}

/// Why a consumer need not wait, if it need not: an account that all machines of the provider admit for certain.
fn admitted(
    eye: &Eye<'_>,
    history: &History,
    node: &NodeName,
    consumer: &ServiceName,
    provider: &ServiceName,
    here: bool,
) -> Option<String> {
    let provision = eye.provisions().get(provider, consumer)?;
    let declared = eye.mesh.services.get(provider)?;
    let consumption = eye.mesh.services.get(consumer)?.consumes.get(provider)?;
    if declared.nodes.is_empty() || eye.is_taken_away(provider) {
        return None;
    }
    if !consumption.wait && provision.newest().state == State::Live {
        return Some("it need not wait".to_owned());
    }
    let mut accounts = vec![(provision.newest().generation, consumption.wants.clone())];
    let mut bound_here = false;
    for (other, c, p, bound) in eye.bindings() {
        if c == consumer && p == provider {
            accounts.push((bound.generation, bound.wants.clone()));
            let sent = eye.stored.fleet.get(other).and_then(|m| m.holds(consumer));
            bound_here |=
                other == node && sent.is_some_and(|held| held.bindings.contains_key(provider));
        }
    }
    accounts.retain(|(generation, _)| provision.is_live(*generation));
    accounts.into_iter().find_map(|(generation, wants)| {
        let grant = Grant {
            consumer: consumer.clone(),
            generation,
            wants,
        };
        let mut admitting = 0;
        for machine in &declared.nodes {
            if machine == node {
                // On the list that this very bundle loads first: any live account in use is.
                if !here {
                    return None;
                }
                admitting += 1;
                continue;
            }
            let place = (machine.clone(), provider.clone());
            if history.floor.emptied.contains(machine)
                || history.floor.drifted.contains(&place)
                || is_elsewhere(eye.mesh, &eye.stored.fleet, machine)
            {
                return None;
            }
            let known = eye.stored.fleet.get(machine);
            let attempt = known.and_then(|m| m.attempt.as_ref());
            let attempted = attempt.map(|a| a.manifest.services.get(provider));
            let held = known.is_some_and(|m| m.holds(provider).is_some());
            let really = history.floor.machines.get(machine);
            let really = really.and_then(|m| m.loaded.get(provider));
            match attempted {
                None if !held && bound_here => continue,
                Some(None) if !held && bound_here => continue,
                None if held && really.is_some_and(|list| list.contains(&grant)) => {
                    admitting += 1;
                }
                Some(Some(service)) if held => {
                    let sent = known.and_then(|m| m.sent.as_ref());
                    let both = sent
                        .and_then(|sent| sent.grants(provider))
                        .is_some_and(|list| list.contains(&grant))
                        && service.grants.as_ref().is_some_and(|l| l.contains(&grant));
                    if !both {
                        return None;
                    }
                    admitting += 1;
                }
                _ => return None,
            }
        }
        (admitting > 0).then(|| format!("generation {generation} is admitted"))
    })
}

/// What must hold of a push that came to its end.
pub fn of_a_report(
    history: &mut History,
    report: &Report,
    named: &BTreeSet<NodeName>,
    contacted: &BTreeSet<NodeName>,
    disturbed: bool,
) {
    let verdict = report.verdict();
    let rounds = format!("rounds {}", report.rounds);
    history.floor.coverage.saw(&rounds);
    if !report.rolled_back.is_empty() {
        history.floor.coverage.saw("rolled back, not flushed");
    }
    if !report.revoked.is_empty() {
        history.floor.coverage.saw("revoked");
    }
    if !disturbed {
        let spare = report.rounds as i64 - history.floor.mesh.longest_chain() as i64;
        history
            .floor
            .coverage
            .saw(&format!("rounds beyond the chain {spare:+}"));
    }
    if verdict == Verdict::OutOfRounds && history.max_rounds.is_none() {
        let what = format!(
            "the rounds ran out after {} with a chain of {}: {:?}",
            report.rounds,
            history.floor.mesh.longest_chain(),
            report.behind
        );
        history.floor.violate(what);
    }
    if verdict == Verdict::Fenced && !history.floor.strangers.is_empty() {
        history.floor.coverage.saw("fenced by another store");
    } else if verdict == Verdict::Fenced {
        history
            .floor
            .violate("fenced, and nobody else was there".to_owned());
    }
    let number = history.store.borrow().peek().push;
    if !history.sendings.is_empty() && number != report.push {
        let what = format!("push {} is stored as {number}", report.push);
        history.floor.violate(what);
    }
    if verdict != Verdict::Done {
        history.floor.coverage.saw("push incomplete");
        return;
    }
    history.floor.coverage.saw("push done");
    let store = history.store.borrow();
    let stored = store.peek().clone();
    drop(store);
    let mesh = history.floor.mesh.clone();
    history.floor.end_excuses();
    let wrong = done(history, report, &mesh, &stored, named, contacted);
    for what in wrong {
        history.floor.violate(format!("done, but {what}"));
    }
}

/// What must hold of a push that says that it is done.
fn done(
    history: &mut History,
    report: &Report,
    mesh: &Mesh,
    stored: &Stored,
    named: &BTreeSet<NodeName>,
    contacted: &BTreeSet<NodeName>,
) -> Vec<String> {
    let eye = Eye { mesh, stored };
    let world = World::new(mesh, &stored.provisions, &stored.fleet);
    let composer = Composer::new(mesh, NoFiles::shared());
    let mut wrong = Vec::new();
    for (node, declared) in &mesh.nodes {
        let known = stored.fleet.get(node);
        if declared.hold.is_some() {
            if named.contains(node) {
                wrong.push(format!("{node} was named, and is on hold"));
            }
            wrong.extend(owed(&eye, node));
            continue;
        }
        if history.floor.emptied.contains(node) && known.is_some_and(|m| m.sent.is_some()) {
            if named.contains(node) {
                wrong.push(format!(
                    "{node} was named and made anew, and is not sent to"
                ));
            }
            continue;
        }
        if history.floor.emptied.contains(node) || history.floor.strangers.contains(node) {
            continue;
        }
        if known.is_some_and(|m| !m.forgotten.is_empty()) {
            wrong.push(format!("what is gone from {node} is not made good"));
        }
        let standing = grid::push::standing(&composer, &world, node);
        if standing.is_behind() {
            wrong.push(format!("{node} is behind: {:?}", standing.reasons));
        }
        if let Ok(composition) = &standing.composition
            && !composition.outline.waits.is_empty()
        {
            wrong.push(format!("{node} waits: {:?}", composition.outline.waits));
        }
        if named.contains(node)
            && known.is_some_and(|m| m.sent.is_some())
            && !contacted.contains(node)
        {
            wrong.push(format!("{node} was named and nobody contacted it"));
        }
        let Some(machine) = history.floor.machines.get(node) else {
            continue;
        };
        for (provider, loaded) in &machine.loaded {
            let drifted = history
                .floor
                .drifted
                .contains(&(node.clone(), provider.clone()));
            if drifted && named.contains(node) {
                wrong.push(format!("{provider} on {node} drifted, and was not mended"));
            }
            let list = eye.list(provider);
            if !drifted && loaded != &list {
                wrong.push(format!(
                    "{provider} on {node} admits {} instead of {}",
                    lines(loaded),
                    lines(&list)
                ));
            }
        }
        for (consumer, service) in &machine.running {
            for (provider, bound) in &service.bindings {
                let grant = Grant {
                    consumer: consumer.clone(),
                    generation: bound.generation,
                    wants: bound.wants.clone(),
                };
                for other in &bound.nodes {
                    let held = stored.fleet.get(other).and_then(|m| m.sent.as_ref());
                    let on_hold = mesh.nodes.get(other).is_some_and(|n| n.hold.is_some());
                    let list = held.and_then(|sent| sent.grants(provider));
                    let taken_away = eye.is_taken_away(provider) || eye.is_taken_away(consumer);
                    let live = eye
                        .provisions()
                        .get(provider, consumer)
                        .is_some_and(|p| p.is_live(bound.generation));
                    let admitted = list.is_some_and(|list| list.contains(&grant));
                    let key = (node.clone(), consumer.clone(), provider.clone());
                    // Its provider was said to be gone.
                    let excused = history.floor.excused.get(&key) == Some(bound);
                    let lets_go =
                        excused || history.floor.lets_go(node, consumer, service, provider);
                    if !admitted && !on_hold && !taken_away && live && !lets_go {
                        wrong.push(format!(
                            "{consumer} on {node} is bound to {provider}, which has no grant for it on {other}"
                        ));
                    }
                }
            }
        }
    }
    let all_sent_to = mesh.nodes.values().all(|node| node.hold.is_none());
    if all_sent_to
        && report.undeclared.is_empty()
        && history.floor.emptied.is_empty()
        && history.floor.strangers.is_empty()
    {
        wrong.extend(final_state(history, &eye));
        history.floor.coverage.saw("final state exact");
    }
    wrong
}

/// The providers on a machine on hold whose list is not what it should be.
fn owed(eye: &Eye<'_>, node: &NodeName) -> Option<String> {
    let machine = eye.stored.fleet.get(node)?;
    let attempt = machine.attempt.as_ref().map(|a| &a.manifest.services);
    let held = machine.services().chain(attempt.into_iter().flatten());
    // Who came there when it provided nothing has no list, and owes none.
    let provides = |name: &ServiceName| {
        let declared = eye.mesh.services.get(name);
        declared.is_some_and(|service| service.provides.is_some())
    };
    let held = held.filter(|(name, service)| service.grants.is_some() || provides(name));
    held.map(|(provider, _)| provider).find_map(|provider| {
        let list = eye.list(provider);
        let none = Grants::new();
        let sent = machine
            .sent
            .as_ref()
            .filter(|_| machine.holds(provider).is_some());
        let sent = sent.and_then(|sent| sent.grants(provider));
        let attempted = attempt.map(|services| {
            let service = services.get(provider);
            service.and_then(|s| s.grants.as_ref()).unwrap_or(&none)
        });
        let (sent, attempted) = (sent.unwrap_or(&none), attempted.or(sent).unwrap_or(&none));
        let forgotten = machine.forgotten.contains(provider);
        (!forgotten && (sent != &list || attempted != &list)).then(|| {
            format!(
                "{provider} on {node}, which is on hold, owes {}",
                lines(&list)
            )
        })
    })
}

/// Nothing on hold, nothing failed: then what machines run is a function of declaration and provisions alone.
fn final_state(history: &History, eye: &Eye<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, provision) in eye.provisions().iter() {
        let unused = provision.generations().find(|credential| {
            let generation = credential.generation;
            let used = eye.bindings().iter().any(|(_, consumer, provider, bound)| {
                (*provider, *consumer) == (&id.provider, &id.consumer)
                    && bound.generation == generation
            });
            generation != provision.newest().generation && !used
        });
        if let Some(unused) = unused {
            let generation = unused.generation;
            wrong.push(format!(
                "generation {generation} of {id} is kept, and nobody uses it"
            ));
        }
    }
    let nothing = BTreeMap::new();
    for node in eye.mesh.nodes.keys() {
        let running = history
            .floor
            .machines
            .get(node)
            .map_or(&nothing, |m| &m.running);
        for (name, service) in &eye.mesh.services {
            if !service.nodes.contains(node) || eye.is_taken_away(name) {
                continue;
            }
            let Some(runs) = running.get(name) else {
                wrong.push(format!("{name} is not on {node}"));
                continue;
            };
            for (provider, consumption) in &service.consumes {
                let newest = eye
                    .provisions()
                    .get(provider, name)
                    .map(|p| p.newest().generation);
                let expected = newest.map(|generation| Bound {
                    generation,
                    wants: consumption.wants.clone(),
                    nodes: eye.mesh.services[provider].nodes.clone(),
                });
                if runs.bindings.get(provider) != expected.as_ref() {
                    wrong.push(format!(
                        "{name} on {node} has {:?} of {provider} instead of {expected:?}",
                        runs.bindings.get(provider)
                    ));
                }
            }
        }
        for name in running.keys() {
            let assigned = eye
                .mesh
                .services
                .get(name)
                .is_some_and(|s| s.nodes.contains(node));
            let bound = history.floor.machines.values().any(|machine| {
                let bound = |b: &Bound| b.nodes.contains(node);
                let mut services = machine.running.values();
                services.any(|s| s.bindings.get(name).is_some_and(bound))
            });
            let needed = || {
                let seen = &mut BTreeSet::new();
                history.floor.is_needed(node, name, seen)
            };
            if (!assigned || eye.is_taken_away(name)) && (!bound || !needed()) {
                wrong.push(format!("{name} is still on {node}"));
            }
        }
    }
    wrong
}

/// `--dry-run` names the same machines in the same rounds.
pub fn dry_run_agrees(history: &mut History, pretended: &Sendings) {
    if pretended == &history.sendings {
        history.floor.coverage.saw("dry run agreed");
    } else {
        let what = format!(
            "the dry run said {pretended:?}, and the push sent {:?}",
            history.sendings
        );
        history.floor.violate(what);
    }
}

/// At the end nothing failed, and what waits does so for a provider that is on no machine or revoked.
pub fn repaired(history: &History, report: &Report) -> Result<(), String> {
    if !report.failed.is_empty() || !report.behind.is_empty() || !report.rolled_back.is_empty() {
        return Err(format!("after the repair: {report:?}"));
    }
    let store = history.store.borrow();
    let mesh = &history.floor.mesh;
    let eye = Eye {
        mesh,
        stored: store.peek(),
    };
    for (node, waiting) in &report.waiting {
        for (service, waits) in waiting {
            if can_start(&eye, service, &mut BTreeSet::new()) {
                return Err(format!(
                    "after the repair {service} on {node} waits: {:?}",
                    waits.wait
                ));
            }
        }
    }
    Ok(())
}

/// Whether everything that a service waits for is there to be had.
fn can_start<'a>(
    eye: &Eye<'a>,
    service: &'a ServiceName,
    seen: &mut BTreeSet<&'a ServiceName>,
) -> bool {
    let Some(declared) = eye.mesh.services.get(service) else {
        return false;
    };
    if !seen.insert(service) {
        return true;
    }
    declared.consumes.iter().all(|(provider, consumption)| {
        let assigned = eye
            .mesh
            .services
            .get(provider)
            .is_some_and(|p| !p.nodes.is_empty());
        assigned
            && (!consumption.wait || !eye.is_taken_away(provider) && can_start(eye, provider, seen))
    })
}
