//! What must hold: after every event, after every push that reports, and at the end. Written anew from DESIGN.md,
//! section 3, so that nothing here asks the rules whether the rules are right.

use std::collections::{BTreeMap, BTreeSet};

use grid::compose::manifest::{Bound, Grant, Grants};
use grid::compose::services::{Wait, outline};
use grid::compose::{Composer, World};
use grid::mesh::{Mesh, Move};
use grid::provision::{Provisions, State};
use grid::push::{Report, Verdict};
use grid::store::State as Stored;
use grid::words::{NodeName, ServiceName};

use super::declared::NoFiles;
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
    for (node, machine) in &history.floor.machines {
        let known = store.peek().fleet.get(node).cloned().unwrap_or_default();
        if known.token.is_none() && known.attempt.is_none() {
            unknown.push(node.clone());
        }
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
                    || machine.release.as_ref() == sent)
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
            for (consumer, service) in machine.services().chain(attempted) {
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
                        let here = started.get(provider).is_some_and(|placed| {
                            matches!(placed, grid::compose::services::Placed::Declared { .. })
                        });
                        if let Some(why) = admitted(&eye, history, node, consumer, provider, here) {
                            wrong.push(format!(
                                "{consumer} on {node} waits for {provider}, although {why}"
                            ));
                        }
                    }
                }
                Wait::Removal(olds) => {
                    seen.push("wait for a removal");
                    let bound = eye.bindings().iter().any(|(_, _, p, _)| p == &consumer);
                    let service = &mesh.services[consumer];
                    let held = |old: &NodeName| {
                        stored.fleet.get(old).is_some_and(|m| {
                            m.holds(consumer).is_some()
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
        for consumer in &composed.revoked {
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
                .any(|(p, c)| !c.wait && *p > service.name)
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
            if history.floor.emptied.contains(machine) || history.floor.drifted.contains(&place) {
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
    if verdict == Verdict::OutOfRounds {
        let what = format!(
            "the rounds ran out after {} with a chain of {}: {:?}",
            report.rounds,
            history.floor.mesh.longest_chain(),
            report.behind
        );
        history.floor.violate(what);
    }
    if verdict == Verdict::Fenced {
        history
            .floor
            .violate("fenced, and nobody else was there".to_owned());
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
        if declared.hold.is_some() || history.floor.emptied.contains(node) {
            continue;
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
                    let lets_go = history.floor.lets_go(node, consumer, service, provider);
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
    if all_sent_to && report.undeclared.is_empty() && history.floor.emptied.is_empty() {
        wrong.extend(final_state(history, &eye));
        history.floor.coverage.saw("final state exact");
    }
    wrong
}

/// Nothing on hold, nothing failed: then what machines run is a function of declaration and provisions alone.
fn final_state(history: &History, eye: &Eye<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
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
            if (!assigned || eye.is_taken_away(name)) && !bound {
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
