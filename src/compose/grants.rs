//! Rule 1, grants (DESIGN.md, section 3): what a provider's machines are told.
//!
//! A provider's list is (a) the newest generation of every provision whose consumer is assigned and
//! consumes it, or that was issued by hand; and (b) every generation that is in use. Revoked and cut ones are
//! on no list. A pure read: it mints nothing.

use super::World;
use super::manifest::{Grant, Grants};
use crate::provision::State;
use crate::words::ServiceName;

/// The grant list of `provider`.
#[must_use]
pub fn list(world: &World<'_>, provider: &ServiceName) -> Grants {
    let mut grants = Grants::new();
    let default_wants = world
        .mesh
        .services
        .get(provider)
        .and_then(|service| service.provides.as_ref())
        .map(|provides| provides.provider.default_wants());
    for (consumer, provision) in world.provisions.of(provider) {
        let newest = provision.newest();
        if newest.state != State::Live {
            continue;
        }
        let wants = match world.mesh.consumption(provider, consumer) {
            Some(consumption) => Some(consumption.wants.clone()),
            None if provision.by_hand => default_wants.clone(),
            None => None,
        };
        if let Some(wants) = wants {
            grants.insert(Grant {
                consumer: consumer.clone(),
                generation: newest.generation,
                wants,
            });
        }
    }
    for (consumer, accounts) in world.uses.consumers(provider) {
        let Some(provision) = world.provisions.get(provider, consumer) else {
            continue;
        };
        for (generation, wants) in accounts {
            if provision.is_live(*generation) {
                grants.insert(Grant {
                    consumer: consumer.clone(),
                    generation: *generation,
                    wants: wants.clone(),
                });
            }
        }
    }
    grants
}
