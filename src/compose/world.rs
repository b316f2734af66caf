//! Everything that the rules are a function of.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use super::ComposeError;
use super::identities::Slowest;
use super::site::Shared;
use crate::compose::sent::{Fleet, Machine};
use crate::compose::uses::Uses;
use crate::mesh::{Mesh, Service};
use crate::provision::{Identities, Provisions};
use crate::words::NodeName;

static UNKNOWN: Machine = Machine::unknown();
static NONE: LazyLock<Identities> = LazyLock::new(Identities::default);

/// The declaration, the provisions, last sent and attempts. Nothing else decides what a machine should be.
#[derive(Debug)]
pub struct World<'a> {
    /// The declaration.
    pub mesh: &'a Mesh,
    /// All provisions.
    pub provisions: &'a Provisions,
    /// What machines hold.
    pub fleet: &'a Fleet,
    /// What is in use among it.
    pub uses: Uses<'a>,
    /// The services of each machine, in order of name: a mesh has many of both.
    /// The mesh's authorities, and the identities of its sites.
    pub identities: &'a Identities,
    assigned: BTreeMap<&'a NodeName, Vec<&'a Service>>,
    slowest: OnceLock<Slowest>,
    shared: OnceLock<Result<Shared, ComposeError>>,
}

impl<'a> World<'a> {
    /// Puts the world together; reads once what is in use and what is where.
    #[must_use]
    pub fn new(mesh: &'a Mesh, provisions: &'a Provisions, fleet: &'a Fleet) -> Self {
        let mut assigned: BTreeMap<&NodeName, Vec<&Service>> = BTreeMap::new();
        for service in mesh.services.values() {
            for node in &service.nodes {
                assigned.entry(node).or_default().push(service);
            }
        }
        Self {
            mesh,
            provisions,
            fleet,
            uses: Uses::of(fleet),
            identities: &NONE,
            assigned,
            slowest: OnceLock::new(),
            shared: OnceLock::new(),
        }
    }

    /// The same, with identities.
    #[must_use]
    pub fn with_identities(mut self, identities: &'a Identities) -> Self {
        self.identities = identities;
        self
    }

    /// The sites that have acknowledged least; looked for once.
    pub(super) fn slowest(&self) -> &Slowest {
        self.slowest.get_or_init(|| Slowest::of(self))
    }

    /// What is the same for all sites; composed once.
    pub(super) fn shared(&self) -> Result<&Shared, ComposeError> {
        let shared = self.shared.get_or_init(|| Shared::of(self));
        shared.as_ref().map_err(Clone::clone)
    }

    /// The services that are assigned to a machine, in order of name.
    pub fn services_on(&self, node: &NodeName) -> impl Iterator<Item = &'a Service> {
        self.assigned.get(node).into_iter().flatten().copied()
    }

    /// Whether a machine was last reached at another address, or sent to below another root, than the declaration says
    /// now. What answers there may be another machine, or hold nothing: it is uncertain until it was asked and, where it
    /// held nothing, sent to.
    #[must_use]
    pub fn is_elsewhere(&self, node: &NodeName) -> bool {
        let Some(declared) = self.mesh.nodes.get(node) else {
            return false;
        };
        let machine = self.machine(node);
        let sent = machine.sent.as_ref();
        !machine.left().is_empty() || sent.is_some_and(|sent| !sent.at.is_at(declared))
    }

    /// Whether nobody knows what a machine holds where it is declared: a send is not settled, it is elsewhere than it was
    /// reached, or its token is of a first send that was put back elsewhere.
    #[must_use]
    pub fn is_uncertain(&self, node: &NodeName) -> bool {
        let machine = self.machine(node);
        let put_back = machine.put_back.as_ref();
        let declared = self.mesh.nodes.get(node);
        machine.attempt.is_some()
            || self.is_elsewhere(node)
            || declared.is_some_and(|node| put_back.is_some_and(|at| !at.is_at(node)))
    }

    /// What is known of a machine; of one that was never sent to, nothing.
    #[must_use]
    pub fn machine(&self, node: &NodeName) -> &'a Machine {
        self.fleet.get(node).unwrap_or(&UNKNOWN)
    }
}
