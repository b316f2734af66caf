//! What must hold of the store after every event. Written anew from DESIGN.md, section 3, so that nothing here asks the rules
//! whether the rules are right; `waiting` and `reports` hold what must hold besides.

use std::collections::BTreeMap;

use grid::compose::sent::{Fleet, Machine as Known};
use grid::compose::{Composer, World};
use grid::mesh::Mesh;
use grid::provision::Provisions;
use grid::push::Reason;
use grid::words::{NodeName, ServiceName};

use super::declared::{NoFiles, REFUSING};
use super::floor::lines;
use super::history::History;

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

pub fn is_elsewhere(mesh: &Mesh, fleet: &Fleet, node: &NodeName) -> bool {
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
