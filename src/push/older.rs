//! Old secrets on machines on hold: those that stay admitted since a machine on hold still has them. The rules keep them on the list (rule 1 (b)), a push
//! is done all the same, and whoever rotated because a secret leaked has to know of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::compose::World;
use crate::provision::{Provision, ProvisionId};
use crate::words::{Generation, NodeName};

/// The accounts of which a machine on hold has an older secret than the newest, which is admitted for its sake; by machine.
#[must_use]
pub fn kept_admitted(world: &World<'_>, today: Date) -> BTreeMap<NodeName, BTreeSet<ProvisionId>> {
    held_on_hold(world, today, |provision, generation| {
        provision.newest().generation != generation && provision.is_live(generation)
    })
}

/// The accounts of which a machine on hold has a secret that was revoked or cut: its service runs on, and is shut out; by
/// machine.
#[must_use]
pub fn shut_out(world: &World<'_>, today: Date) -> BTreeMap<NodeName, BTreeSet<ProvisionId>> {
    held_on_hold(world, today, |provision, generation| {
        !provision.is_live(generation)
    })
}

/// The accounts of which machines on hold have such a generation, by machine.
fn held_on_hold(
    world: &World<'_>,
    today: Date,
    is_such: impl Fn(&Provision, Generation) -> bool,
) -> BTreeMap<NodeName, BTreeSet<ProvisionId>> {
    let declared = world.mesh.nodes.values();
    let on_hold = declared.filter(|node| node.hold_in_force(today).is_some());
    let found = on_hold.map(|node| {
        let services = world.machine(&node.name).possible();
        let bound = services.flat_map(|(consumer, held)| {
            held.bindings
                .iter()
                .map(move |(provider, bound)| (provider, consumer, bound.generation))
        });
        let such = bound.filter(|(provider, consumer, generation)| {
            let provision = world.provisions.get(provider, consumer);
            provision.is_some_and(|provision| is_such(provision, *generation))
        });
        let ids = such.map(|(provider, consumer, _)| ProvisionId {
            provider: provider.clone(),
            consumer: consumer.clone(),
        });
        (node.name.clone(), ids.collect::<BTreeSet<_>>())
    });
    found.filter(|(_, ids)| !ids.is_empty()).collect()
}
