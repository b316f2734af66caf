//! Where a machine lay before its address or root was changed (DESIGN.md, section 2, "undeclared").

use super::manifest::ServiceManifest;
use super::sent::{Attempt, Sent};
use crate::mesh::Node;
use crate::words::{AbsolutePath, ServiceName, Token};

/// Where a machine is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where it is reached.
    pub address: String,
    /// Below which root; absent, in a record of an older grid: the one that is declared.
    pub root: Option<AbsolutePath>,
}

impl Place {
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

/// What a machine was sent at another place than it is declared at now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// Where.
    pub place: Place,
    /// The token of the send that it last took there.
    pub token: Option<Token>,
    /// What it acknowledged there.
    pub sent: Option<Sent>,
    /// A send there that was not settled.
    pub attempt: Option<Attempt>,
}

impl Former {
    /// So many former places of a machine are kept; the oldest go.
    pub const MOST: usize = 8;

    /// A place where nothing was sent.
    #[must_use]
    pub const fn of(place: Place, token: Option<Token>) -> Self {
        Self {
            place,
            token,
            sent: None,
            attempt: None,
        }
    }

    /// The same, with what was acknowledged there.
    #[must_use]
    pub fn with(mut self, sent: Sent) -> Self {
        self.sent = Some(sent);
        self
    }

    /// Whether `token` is of a send to this place.
    #[must_use]
    pub fn took(&self, token: &Token) -> bool {
        let attempted = self.attempt.as_ref().map(|attempt| &attempt.token);
        self.token.as_ref() == Some(token) || attempted == Some(token)
    }

    /// The services that may be there: as acknowledged, and as attempted.
    pub(super) fn possible(&self) -> impl Iterator<Item = (&ServiceName, &ServiceManifest)> {
        let sent = self.sent.iter().flat_map(|sent| &sent.manifest.services);
        let attempt = self.attempt.iter();
        sent.chain(attempt.flat_map(|attempt| &attempt.manifest.services))
    }
}
