//! Old secrets that stay admitted since a machine on hold still has them. The rules keep them on the list (rule 1 (b)), a push
//! is done all the same, and whoever rotated because a secret leaked has to know of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::compose::World;
use crate::provision::{ProvisionId, State};
use crate::words::NodeName;

/// The accounts of which a machine on hold has an older secret than the newest, which is admitted for its sake; by machine.
#[must_use]
pub fn kept_admitted(world: &World<'_>, today: Date) -> BTreeMap<NodeName, BTreeSet<ProvisionId>> {
    let declared = world.mesh.nodes.values();
    let on_hold = declared.filter(|node| node.hold_in_force(today).is_some());
    let kept = on_hold.map(|node| {
        let services = world.machine(&node.name).possible();
        let bound = services.flat_map(|(consumer, held)| {
            held.bindings
                .iter()
                .map(move |(provider, bound)| (provider, consumer, bound.generation))
        });
        let older = bound.filter(|(provider, consumer, generation)| {
            let provision = world.provisions.get(provider, consumer);
            provision.is_some_and(|provision| {
                let mut all = provision.generations();
                provision.newest().generation != *generation
                    && all.any(|one| one.generation == *generation && one.state == State::Live)
            })
        });
        let ids = older.map(|(provider, consumer, _)| ProvisionId {
            provider: provider.clone(),
            consumer: consumer.clone(),
        });
        (node.name.clone(), ids.collect::<BTreeSet<_>>())
    });
    kept.filter(|(_, ids)| !ids.is_empty()).collect()
}
