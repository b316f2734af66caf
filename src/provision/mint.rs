//! Minting: which accounts a push has to make (DESIGN.md, section 4).

use std::collections::BTreeSet;

use super::{Provision, ProvisionId, Provisions};
use crate::mesh::{Mesh, Service};
use crate::words::{Chance, Era, NodeName};

fn consumptions<'a>(service: &'a Service) -> impl Iterator<Item = ProvisionId> + 'a {
    service.consumes.keys().map(|provider| ProvisionId {
        provider: provider.clone(),
        consumer: service.name.clone(),
    })
}

fn lacks(provisions: &Provisions, id: &ProvisionId) -> bool {
    provisions.get(&id.provider, &id.consumer).is_none()
}

/// The accounts that the services of a machine need and do not have. While there is one, the machine is
/// behind: needing a mint is being behind.
#[must_use]
pub fn missing<'a>(
    services: impl Iterator<Item = &'a Service>,
    provisions: &Provisions,
) -> Vec<ProvisionId> {
    services
        .flat_map(consumptions)
        .filter(|id| lacks(provisions, id))
        .collect()
}

/// The accounts to mint before `nodes` are composed: what their services need, and what the consumers of
/// their services need, wherever these are.
#[must_use]
pub fn wanted_by(
    mesh: &Mesh,
    provisions: &Provisions,
    nodes: &BTreeSet<NodeName>,
) -> Vec<ProvisionId> {
    let here = |service: &Service| service.nodes.iter().any(|node| nodes.contains(node));
    mesh.services
        .values()
        .filter(|service| !service.nodes.is_empty())
        .flat_map(|service| consumptions(service).map(move |id| (service, id)))
        .filter(|(consumer, id)| {
            here(consumer) || mesh.services.get(&id.provider).is_some_and(here)
        })
        .map(|(_, id)| id)
        .filter(|id| lacks(provisions, id))
        .collect()
}

/// Mints each of `wanted`.
pub fn mint(
    provisions: &mut Provisions,
    wanted: &[ProvisionId],
    era: Era,
    chance: &mut dyn Chance,
) {
    for id in wanted {
        provisions.insert(id.clone(), Provision::draw(false, era, chance));
    }
}
