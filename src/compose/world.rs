//! Everything that the rules are a function of.

use crate::compose::sent::{Fleet, Machine, Uses};
use crate::mesh::Mesh;
use crate::provision::Provisions;
use crate::words::NodeName;

static UNKNOWN: Machine = Machine::unknown();

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
    pub uses: Uses,
}

impl<'a> World<'a> {
    /// Puts the world together; reads what is in use once.
    #[must_use]
    pub fn new(mesh: &'a Mesh, provisions: &'a Provisions, fleet: &'a Fleet) -> Self {
        Self {
            mesh,
            provisions,
            fleet,
            uses: Uses::of(fleet),
        }
    }

    /// What is known of a machine; of one that was never sent to, nothing.
    #[must_use]
    pub fn machine(&self, node: &NodeName) -> &'a Machine {
        self.fleet.get(node).unwrap_or(&UNKNOWN)
    }
}
