//! Who may hold a connection: pure accounting, no sockets; time is an argument (DESIGN.md, section 7).
//!
//! The rules, with the contract's numbers:
//! - 256 connections in all.
//! - Peers, and handshakes of who is not known yet, hold at most 248 of them. A handshake from one of the site's own
//!   addresses is not counted there, so that the last eight stay for local callers however many strangers stall.
//! - 8 handshakes a source address, of IPv6 a /64: one network. The site's own addresses are not held to that, since all
//!   its gateways share them. Where there is no place left, a caller from an own address takes that of the oldest
//!   handshake that has lasted longer than half a second, and waits for a place otherwise (in the listener).
//! - 8 connections a site. One past its share keeps counting as the handshake that it was until it has its 503.
//! - Local callers have no quota of their own.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::trust::Caller;
use crate::words::NodeName;

/// How long a handshake may last before its place can be taken by a caller from an own address.
const STALLS: Duration = Duration::from_millis(500);

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub all: u32,
    /// Of them, those that neither peers nor unknown handshakes may take.
    pub local: u32,
    /// A site.
    pub site: u32,
    /// Handshakes a source.
    pub source: u32,
}

impl Limits {
    #[cfg(test)]
    /// 256 in all, 8 of them for local callers, 8 a site, 8 handshakes a source.
    pub const CONTRACT: Self = Self {
        all: 256,
        local: 8,
        site: 8,
        source: 8,
    };
}

/// Where a connection comes from: an IPv4 address, or the /64 of an IPv6 one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// An IPv4 address, also one that is mapped into IPv6.
    V4(std::net::Ipv4Addr),
    /// The first half of an IPv6 address.
    V6(u64),
}

impl Source {
    /// The source of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Self::V6(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
            }
        }
    }
}

/// Why a connection is not held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// There are as many as there may be.
    Full,
    /// Peers and unknown handshakes have their part.
    PeersFull,
    /// This source has as many handshakes as it may.
    Source,
    /// This site has its share: one 503.
    Share,
}

impl Refused {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Full, Self::PeersFull, Self::Source, Self::Share];

    /// The word for a counter's label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::PeersFull => "peers_full",
            Self::Source => "source",
            Self::Share => "share",
        }
    }
}

/// What a connection counts as.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// A handshake from elsewhere.
    Foreign(Source),
    /// A handshake from an address of the site's own.
    Own,
    /// A peer.
    Peer(NodeName),
    /// This site.
    Local,
}

/// How many connections there are, by what they count as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Handshakes from elsewhere.
    pub foreign: u32,
    /// Handshakes from the site's own addresses.
    pub own: u32,
    /// Of peers.
    pub peers: u32,
    /// Of this site.
    pub local: u32,
}

impl Held {
    fn all(self) -> u32 {
        self.foreign + self.own + self.peers + self.local
    }
}

/// The account.
#[derive(Debug)]
struct Account {
    limits: Limits,
    held: Held,
    sources: HashMap<Source, u32>,
    sites: HashMap<NodeName, u32>,
    /// Handshakes, the oldest first.
    shaking: BTreeMap<u64, Shaking>,
    next: u64,
}

/// A handshake that is under way.
#[derive(Debug)]
struct Shaking {
    standing: Standing,
    began: Instant,
    /// Says that its place is somebody else's.
    evict: oneshot::Sender<()>,
}

impl Account {
    /// Takes the place of the oldest handshake, if that stalls.
    fn evict(&mut self, now: Instant) -> bool {
        let Some(oldest) = self.shaking.first_entry() else {
            return false;
        };
        if now.saturating_duration_since(oldest.get().began) < STALLS {
            return false;
        }
        let oldest = oldest.remove();
        self.take(&oldest.standing);
        let _ = oldest.evict.send(());
        true
    }

    fn of(&mut self, standing: &Standing) -> &mut u32 {
        match standing {
            Standing::Foreign(_) => &mut self.held.foreign,
            Standing::Own => &mut self.held.own,
            Standing::Peer(_) => &mut self.held.peers,
            Standing::Local => &mut self.held.local,
        }
    }

    fn add(&mut self, standing: &Standing) {
        *self.of(standing) += 1;
        match standing {
            Standing::Foreign(source) => *self.sources.entry(*source).or_default() += 1,
            Standing::Peer(site) => *self.sites.entry(site.clone()).or_default() += 1,
            Standing::Own | Standing::Local => {}
        }
    }

    fn take(&mut self, standing: &Standing) {
        let count = self.of(standing);
        *count = count.saturating_sub(1);
        match standing {
            Standing::Foreign(source) => one_less(&mut self.sources, source),
            Standing::Peer(site) => one_less(&mut self.sites, site),
            Standing::Own | Standing::Local => {}
        }
    }

    fn has_room_for_peers(&self) -> bool {
        self.held.foreign + self.held.peers < self.limits.all.saturating_sub(self.limits.local)
    }

    fn arrives(&self, standing: &Standing) -> Result<(), Refused> {
        if self.held.all() >= self.limits.all {
            return Err(Refused::Full);
        }
        if let Standing::Foreign(source) = standing {
            if !self.has_room_for_peers() {
                return Err(Refused::PeersFull);
            }
            if self.sources.get(source).copied().unwrap_or(0) >= self.limits.source {
                return Err(Refused::Source);
            }
        }
        Ok(())
    }

    fn becomes(&self, from: &Standing, to: &Standing) -> Result<(), Refused> {
        if let Standing::Peer(site) = to {
            if self.sites.get(site).copied().unwrap_or(0) >= self.limits.site {
                return Err(Refused::Share);
            }
            // One that shook hands from elsewhere is counted among them already.
            if *from == Standing::Own && !self.has_room_for_peers() {
                return Err(Refused::PeersFull);
            }
        }
        Ok(())
    }
}

/// No entry stays that counts nothing: a table does not grow with every source that was ever seen.
fn one_less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The account, shared by the connections that it counts.
#[derive(Debug, Clone)]
pub struct Admission {
    account: Arc<Mutex<Account>>,
    freed: Arc<Notify>,
}

impl Admission {
    /// Nobody yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let account = Account {
            limits,
            held: Held::default(),
            sources: HashMap::new(),
            sites: HashMap::new(),
            shaking: BTreeMap::new(),
            next: 0,
        };
        Self {
            account: Arc::new(Mutex::new(account)),
            freed: Arc::default(),
        }
    }

    /// How many there are now.
    #[must_use]
    pub fn held(&self) -> Held {
        self.account().held
    }

    /// Told whenever a place is given back.
    #[must_use]
    pub fn freed(&self) -> &Notify {
        &self.freed
    }

    /// A connection arrives at `now`; `is_own`: from an address of the site's own. With its place comes what is told
    /// when the place is taken away during the handshake.
    ///
    /// # Errors
    /// When it is to be closed.
    pub fn arrive(
        &self,
        address: IpAddr,
        is_own: bool,
        now: Instant,
    ) -> Result<(Place, oneshot::Receiver<()>), Refused> {
        let standing = if is_own {
            Standing::Own
        } else {
            Standing::Foreign(Source::of(address))
        };
        let mut account = self.account();
        match account.arrives(&standing) {
            Err(Refused::Full) if is_own && account.evict(now) => {}
            arrived => arrived?,
        }
        account.add(&standing);
        let (evict, evicted) = oneshot::channel();
        let id = account.next;
        account.next = id.wrapping_add(1);
        let shaking = Shaking {
            standing: standing.clone(),
            began: now,
            evict,
        };
        account.shaking.insert(id, shaking);
        drop(account);
        let place = Place {
            admission: self.clone(),
            standing,
            id: Some(id),
        };
        Ok((place, evicted))
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    admission: Admission,
    standing: Standing,
    /// Of a handshake.
    id: Option<u64>,
}

impl Place {
    /// The handshake is over, and this is who it was.
    ///
    /// # Errors
    /// When it may not stay. It counts as the handshake that it was until it is dropped.
    pub fn identify(&mut self, caller: &Caller) -> Result<(), Refused> {
        let to = match caller {
            Caller::Local => Standing::Local,
            Caller::Peer(site) => Standing::Peer(site.clone()),
        };
        let mut account = self.admission.account();
        let Some(id) = self.id.filter(|id| account.shaking.contains_key(id)) else {
            return Err(Refused::Full); // evicted in this very moment
        };
        account.becomes(&self.standing, &to)?;
        account.shaking.remove(&id);
        account.take(&self.standing);
        account.add(&to);
        drop(account);
        self.id = None;
        self.standing = to;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut account = self.admission.account();
        let is_held = match self.id {
            Some(id) => account.shaking.remove(&id).is_some(),
            None => true,
        };
        if is_held {
            account.take(&self.standing);
        }
        drop(account);
        self.admission.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
