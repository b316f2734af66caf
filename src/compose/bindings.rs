//! Rule 2, bindings (DESIGN.md, section 3): which account a consumer is composed with, if any.
//!
//! The newest generation, or else the newest of those that the consumer has in use, that every machine
//! of its provider has acknowledged, or that stands on the list which the very same bundle loads first.
//! Thus no consumer starts against a provider that has not heard of it.

use std::collections::BTreeMap;

use super::World;
use super::manifest::{Bound, Grant};
use super::sent::Admitted;
use super::services::{Placed, is_taken_away};
use crate::mesh::{Consumption, Service};
use crate::provision::State;
use crate::words::{NodeName, ServiceName};

/// What `consumer`, on `node`, is bound to at `provider`; `None`: it waits. `here` is what the bundle of
/// `node` holds so far.
#[must_use]
pub fn bind(
    world: &World<'_>,
    provider: &ServiceName,
    consumer: &Service,
    consumption: &Consumption,
    node: &NodeName,
    here: &BTreeMap<ServiceName, Placed>,
) -> Option<Bound> {
    let provision = world.provisions.get(provider, &consumer.name)?;
    let service = world.mesh.services.get(provider)?;
    if service.nodes.is_empty() {
        return None;
    }
    let newest = provision.newest();
    let declared = Grant {
        consumer: consumer.name.clone(),
        generation: newest.generation,
        wants: consumption.wants.clone(),
    };
    let used = world.uses.accounts(provider, &consumer.name).rev();
    let used = used.map(|(generation, wants)| Grant {
        consumer: consumer.name.clone(),
        generation: *generation,
        wants: wants.clone(),
    });
    let bound_before = world
        .machine(node)
        .holds(&consumer.name)
        .is_some_and(|held| held.bindings.contains_key(provider));
    let bound = |grant: &Grant| Bound {
        generation: grant.generation,
        wants: grant.wants.clone(),
        nodes: service.nodes.clone(),
    };
    // A provider that rule 5 takes away acknowledges nothing.
    if !is_taken_away(world, service) {
        let acknowledged = std::iter::once(declared.clone())
            .chain(used)
            .filter(|grant| provision.is_live(grant.generation))
            .find(|grant| is_acknowledged(world, service, grant, node, here, bound_before));
        if let Some(grant) = acknowledged {
            return Some(bound(&grant));
        }
    }
    (!consumption.wait && newest.state == State::Live).then(|| bound(&declared))
}

/// Whether every machine of the provider has acknowledged the grant: on the list that this bundle
/// loads first, where the provider is on the same machine; elsewhere on what the machine admits for
/// certain. A further machine that never was sent a list does not count against a consumer that
/// is bound already; but one at least must admit it.
fn is_acknowledged(
    world: &World<'_>,
    provider: &Service,
    grant: &Grant,
    node: &NodeName,
    here: &BTreeMap<ServiceName, Placed>,
    bound_before: bool,
) -> bool {
    let mut admitting = 0_usize;
    for machine in &provider.nodes {
        let admits = if machine == node {
            let list = here.get(&provider.name).and_then(Placed::grants);
            Some(list.map_or(Admitted::Nothing, Admitted::List))
        } else {
            world.machine(machine).admits(&provider.name)
        };
        match admits {
            None if bound_before => {}
            Some(admits) if admits.contains(grant) => admitting = admitting.saturating_add(1),
            _ => return false,
        }
    }
    admitting > 0
}
