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
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into()
    }

    fn peer(n: u32) -> Caller {
        Caller::Peer(NodeName::new(&format!("site-{n}")).unwrap())
    }

    fn admission() -> Admission {
        Admission::new(Limits::CONTRACT)
    }

    /// One that arrives at the beginning, or so many milliseconds later.
    fn arrive(admission: &Admission, address: IpAddr, is_own: bool) -> Result<Place, Refused> {
        arrive_at(admission, address, is_own, 0)
    }

    fn arrive_at(
        admission: &Admission,
        address: IpAddr,
        is_own: bool,
        ms: u64,
    ) -> Result<Place, Refused> {
        static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        let now = *BEGAN + Duration::from_millis(ms);
        admission
            .arrive(address, is_own, now)
            .map(|(place, _)| place)
    }

    /// As many handshakes of strangers as there may be, eight a source.
    fn strangers(admission: &Admission) -> Vec<Place> {
        let places: Vec<Place> = (0..248)
            .map(|n| arrive(admission, address(n / 8), false).unwrap())
            .collect();
        assert_eq!(
            arrive(admission, address(1000), false).unwrap_err(),
            Refused::PeersFull
        );
        places
    }

    #[test]
    fn strangers_and_peers_hold_248_and_eight_stay_for_local_callers() {
        let admission = admission();
        let _strangers = strangers(&admission);
        let mut local: Vec<Place> = (0..8)
            .map(|n| arrive(&admission, address(n), true).unwrap())
            .collect();
        for place in &mut local {
            place.identify(&Caller::Local).unwrap();
        }
        assert_eq!(
            arrive(&admission, address(1), true).unwrap_err(),
            Refused::Full
        );
        drop(local.pop());
        assert!(arrive(&admission, address(1), true).is_ok());
    }

    #[test]
    fn a_caller_from_an_own_address_takes_the_place_of_the_oldest_that_stalls() {
        let admission = admission();
        let mut strangers = strangers(&admission);
        let mut local: Vec<Place> = (0..8)
            .map(|n| arrive(&admission, address(n), true).unwrap())
            .collect();
        for ms in [0, 499] {
            let refused = arrive_at(&admission, address(1), true, ms).unwrap_err();
            assert_eq!(refused, Refused::Full);
        }
        let mut ninth = arrive_at(&admission, address(1), true, 500).unwrap();
        assert_eq!(ninth.identify(&Caller::Local), Ok(()));
        assert_eq!(admission.held().all(), 256);
        // The oldest is out, even if it has just named itself, and gives nothing back twice.
        assert_eq!(strangers[0].identify(&peer(1)), Err(Refused::Full));
        drop(strangers.remove(0));
        assert_eq!(admission.held().all(), 256);
        // No stranger takes a place, however long others stall.
        let refused = arrive_at(&admission, address(1000), false, 9_000).unwrap_err();
        assert_eq!(refused, Refused::Full);
        // Nobody who is known is put out.
        for place in &mut local {
            place.identify(&Caller::Local).unwrap();
        }
        for (n, place) in (0..).zip(&mut strangers) {
            place.identify(&peer(n / 8)).unwrap();
        }
        assert_eq!(
            arrive_at(&admission, address(1), true, 9_000).unwrap_err(),
            Refused::Full
        );
    }

    #[tokio::test]
    async fn one_whose_place_is_taken_is_told() {
        let limits = Limits {
            all: 1,
            ..Limits::CONTRACT
        };
        let admission = Admission::new(limits);
        let now = Instant::now();
        let (_first, evicted) = admission.arrive(address(1), true, now).unwrap();
        let _second = admission.arrive(address(1), true, now + STALLS).unwrap();
        assert_eq!(evicted.await, Ok(()));
    }

    #[test]
    fn a_peer_from_an_own_address_does_not_take_what_is_kept_for_local_callers() {
        let admission = admission();
        let _strangers = strangers(&admission);
        let mut place = arrive(&admission, address(1), true).unwrap();
        assert_eq!(place.identify(&peer(1)), Err(Refused::PeersFull));
        drop(place);
        assert_eq!(admission.held().own, 0);
    }

    #[test]
    fn a_stranger_who_becomes_a_peer_stays_counted_once() {
        let admission = admission();
        let mut strangers = strangers(&admission);
        for (n, place) in (0..).zip(&mut strangers) {
            place.identify(&peer(n / 8)).unwrap();
        }
        let held = Held {
            peers: 248,
            ..Held::default()
        };
        assert_eq!(admission.held(), held);
        assert_eq!(
            arrive(&admission, address(1000), false).unwrap_err(),
            Refused::PeersFull
        );
        drop(strangers.pop());
        assert!(arrive(&admission, address(1000), false).is_ok());
    }

    #[test]
    fn local_callers_share_the_256_and_have_no_quota() {
        let admission = admission();
        let mut places = Vec::new();
        for _ in 0..256 {
            let mut place = arrive(&admission, address(1), true).unwrap();
            place.identify(&Caller::Local).unwrap();
            places.push(place);
        }
        for is_own in [true, false] {
            let refused = arrive_at(&admission, address(1), is_own, 9_000).unwrap_err();
            assert_eq!(refused, Refused::Full);
        }
    }

    #[test]
    fn a_source_has_eight_handshakes_and_an_ipv6_source_is_a_64() {
        let admission = admission();
        let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
        let other = v6("2001:db8:0:1:ffff::");
        let mut places: Vec<Place> = (0..8)
            .map(|n| arrive(&admission, v6(&format!("2001:db8:0:1::{n}")), false).unwrap())
            .collect();
        assert_eq!(
            arrive(&admission, other, false).unwrap_err(),
            Refused::Source
        );
        assert!(arrive(&admission, v6("2001:db8:0:2::1"), false).is_ok());
        // One that is known does not shake hands any more.
        places[0].identify(&peer(1)).unwrap();
        assert!(arrive(&admission, other, false).is_ok());
        assert_eq!(
            Source::of(v6("::ffff:10.0.0.1")),
            Source::of(v6("10.0.0.1"))
        );
    }

    #[test]
    fn a_site_has_eight_connections_and_one_past_its_share_counts_until_it_is_gone() {
        let admission = admission();
        let mut places = Vec::new();
        for n in 0..8 {
            let mut place = arrive(&admission, address(n), false).unwrap();
            place.identify(&peer(1)).unwrap();
            places.push(place);
        }
        let mut past = arrive(&admission, address(9), false).unwrap();
        assert_eq!(past.identify(&peer(1)), Err(Refused::Share));
        assert_eq!(admission.held().foreign, 1);
        assert_eq!(past.identify(&peer(2)), Ok(()));
        drop(past);
        drop(places);
        assert_eq!(admission.held(), Held::default());
        let account = admission.account();
        assert!(account.sites.is_empty() && account.sources.is_empty());
        assert!(account.shaking.is_empty());
    }
}
