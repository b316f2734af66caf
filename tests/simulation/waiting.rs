//! Nothing waits without a cause, and nothing runs that should wait. Written anew from DESIGN.md, section 3.

use grid::compose::World;
use grid::compose::former::Former;
use grid::compose::manifest::Grant;
use grid::compose::services::{Placed, Wait, outline};
use grid::mesh::Move;
use grid::provision::State;
use grid::words::{NodeName, ServiceName};

use super::declared::index_of;
use super::eye::Eye;
use super::history::History;
use super::invariants::is_elsewhere;

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
