//! Who is there: the seam at which SWIM membership takes the place of a list.

use std::sync::{PoisonError, RwLock};

use crate::signals::site::Peer;
use crate::words::{NodeName, PeerHost};

/// A site that is alive, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: NodeName,
    /// The host that it is at.
    pub host: PeerHost,
}

/// The peers that are alive.
pub trait Membership: Send + Sync {
    /// Those that are now, the site itself left out.
    fn alive(&self) -> Vec<Member>;
}

/// All of `peers.toml`, whether alive or not: what holds until SWIM membership is built.
#[derive(Debug, Default)]
pub struct Declared(RwLock<Vec<Member>>);

impl Declared {
    /// Takes up other peers.
    pub fn replace(&self, site: &NodeName, peers: &[Peer]) {
        let others = peers.iter().filter(|peer| peer.name != *site);
        let members = others.map(|peer| Member {
            name: peer.name.clone(),
            host: peer.host.clone(),
        });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = members.collect();
    }
}

impl Membership for Declared {
    fn alive(&self) -> Vec<Member> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
