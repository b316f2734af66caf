//! Where a machine is sent to, as the store keeps it: the declaration may say otherwise by now.

use crate::mesh::Node;
use crate::words::AbsolutePath;

/// Where a machine is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Where it is reached.
    pub address: String,
    /// Below which root; absent, in a record of an older grid: the one that is declared.
    pub root: Option<AbsolutePath>,
}

impl Location {
    /// Where a machine is declared.
    #[must_use]
    pub fn of(declared: &Node) -> Self {
        Self {
            address: declared.host().to_owned(),
            root: Some(declared.root.clone()),
        }
    }

    /// Whether it is where `declared` says: at that address, below that root.
    #[must_use]
    pub fn is_at(&self, declared: &Node) -> bool {
        self.address == declared.host()
            && self.root.as_ref().is_none_or(|root| *root == declared.root)
    }

    /// For people: the address, and the root where the declaration has another.
    #[must_use]
    pub fn told(&self, declared: Option<&Node>) -> String {
        let other = self
            .root
            .as_ref()
            .filter(|root| declared.is_some_and(|declared| declared.root != **root));
        match other {
            Some(root) => format!("{}:{root}", self.address),
            None => self.address.clone(),
        }
    }
}
