//! What a report says at the end of a push, held against the floor. Written anew from DESIGN.md, section 3.

use std::collections::{BTreeMap, BTreeSet};

use grid::compose::manifest::{Bound, Grant, Grants};
use grid::compose::{Composer, World};
use grid::mesh::Mesh;
use grid::push::{Report, Verdict};
use grid::store::State as Stored;
use grid::words::{NodeName, ServiceName};

use super::declared::NoFiles;
use super::eye::Eye;
use super::floor::lines;
use super::history::{History, Sendings};

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
                    // It was to leave, and went with its machine, which was made anew: nobody has it any more.
                    let place = (other.clone(), provider.clone());
                    let declared = mesh.services.get(provider);
                    let is_assigned = declared.is_some_and(|service| service.nodes.contains(other));
                    let excused =
                        excused || history.floor.vanished.contains(&place) && !is_assigned;
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
    // Who came there when it provided nothing has no list, and owes none, unless it is to provide there from now on.
    let provides = |name: &ServiceName| {
        let declared = eye.mesh.services.get(name);
        declared.is_some_and(|service| service.provides.is_some() && service.nodes.contains(node))
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
