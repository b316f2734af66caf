//! What the rules read, for the invariants: DESIGN.md, section 3, written anew.

use grid::compose::manifest::{Bound, Grant, Grants};
use grid::mesh::Mesh;
use grid::provision::{Provisions, State};
use grid::store::State as Stored;
use grid::words::{NodeName, ServiceName};

/// What the rules read, for what is written anew here.
pub struct Eye<'a> {
    pub mesh: &'a Mesh,
    pub stored: &'a Stored,
}

impl Eye<'_> {
    pub fn provisions(&self) -> &Provisions {
        &self.stored.provisions
    }

    pub fn is_taken_away(&self, service: &ServiceName) -> bool {
        self.mesh.services.get(service).is_some_and(|declared| {
            declared.consumes.keys().any(|provider| {
                self.provisions()
                    .get(provider, service)
                    .is_some_and(|p| p.newest().state == State::Revoked)
            })
        })
    }

    /// Everything that is bound, as last sent or attempted: on which machine, whose, to whom.
    pub fn bindings(&self) -> Vec<(&NodeName, &ServiceName, &ServiceName, &Bound)> {
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
    pub fn list(&self, provider: &ServiceName) -> Grants {
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
