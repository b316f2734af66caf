//! Rule 6, identities (DESIGN.md, section 7): which identity a site has, and which ones the other sites admit.
//!
//! Admitted are, of every site, the newest identity and each that is in use there, by last sent or by an attempt. A site has
//! its newest identity once every other site has acknowledged it (under `spiffe`, the authority that vouches for it), else
//! the newest of those in use. A first one waits for nobody; so does one of which minting said that it has waited long
//! enough. Thus no renewal makes a peer refuse a site that it knew. Of a site that nobody observes the identity
//! before the newest is admitted too, until the next renewal: nobody knows when its cluster gives that one up.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use super::World;
use super::manifest::SiteManifest;
use super::sent::Machine;
use crate::mesh::{Mesh, Node};
use crate::provision::{Authority, Identity, Need, SiteIdentity, goes_on_from};
use crate::words::{Digest, MOST_PINS, NodeName, PeerTrust};

/// The site parts that a machine may have: as last acknowledged, and as attempted.
fn possible(machine: &Machine) -> impl Iterator<Item = Option<&SiteManifest>> {
    let sent = machine.sent.iter().map(|sent| sent.manifest.site.as_ref());
    let attempted = machine.attempt.iter();
    sent.chain(attempted.map(|attempt| attempt.manifest.site.as_ref()))
}

/// The numbers of the identities that a site may have now.
#[must_use]
pub fn in_use(machine: &Machine) -> BTreeSet<u32> {
    possible(machine)
        .flatten()
        .filter_map(|site| site.identity)
        .collect()
}

/// Up to which serial a machine surely admits what was minted; `None`: it is no site yet.
#[must_use]
pub fn knows(machine: &Machine) -> Option<u64> {
    let mut all = possible(machine).map(|site| site.map(|site| site.knows));
    let first = all.next()??;
    all.try_fold(first, |least, knows| Some(least.min(knows?)))
}

/// Whether the machine of this name is a site whose identity grid makes.
fn is_site(world: &World<'_>, node: &NodeName) -> bool {
    world
        .mesh
        .nodes
        .get(node)
        .is_some_and(|declared| world.mesh.signals.is_some() && !declared.has_own_identity())
}

/// Whether grid sends the machine of this name a site, whoever made its identity: it admits what it was sent.
fn is_sent_a_site(world: &World<'_>, node: &NodeName) -> bool {
    let declared = world.mesh.nodes.get(node);
    world.mesh.signals.is_some() && declared.is_some_and(|node| node.is_sent_a_site())
}

/// Up to which serial a machine admits what was minted, if it is a site already: 0 where that is uncertain.
fn acknowledged(world: &World<'_>, node: &NodeName) -> Option<u64> {
    let machine = world.machine(node);
    let is_one = possible(machine).any(|site| site.is_some());
    is_one.then(|| knows(machine).unwrap_or(0))
}

/// The two sites that have acknowledged least: with them it is said in one look whether all others of a site have
/// acknowledged something.
#[derive(Debug, Default)]
pub struct Slowest([Option<(u64, NodeName)>; 2]);

impl Slowest {
    /// Looks at all sites.
    #[must_use]
    pub fn of(world: &World<'_>) -> Self {
        let mut slowest = Self::default();
        let nodes = world.mesh.nodes.keys();
        for node in nodes.filter(|node| is_sent_a_site(world, node)) {
            let Some(serial) = acknowledged(world, node) else {
                continue;
            };
            let [first, second] = &mut slowest.0;
            let is_below = |known: &Option<(u64, NodeName)>| {
                known.as_ref().is_none_or(|(least, _)| serial < *least)
            };
            if is_below(first) {
                *second = first.replace((serial, node.clone()));
            } else if is_below(second) {
                *second = Some((serial, node.clone()));
            }
        }
        slowest
    }

    /// Whether some other site than `site` has not acknowledged `serial`.
    fn is_unaware(&self, site: &NodeName, serial: u64) -> bool {
        let mut others = self.0.iter().flatten().filter(|(_, node)| node != site);
        others.any(|(acknowledged, _)| *acknowledged < serial)
    }
}

/// What the identities of the sites need on `today`.
#[must_use]
pub fn needs(world: &World<'_>, today: Date) -> Vec<(NodeName, Need)> {
    let sites = world.mesh.nodes.keys().filter(|node| is_site(world, node));
    let least = known_to_all(world);
    let known = |serial| serial <= least;
    sites
        .filter_map(|site| {
            let machine = world.machine(site);
            let used = in_use(machine);
            // Of one that is uncertain nobody knows which it has: it is settled first.
            if used.len() > 1 {
                return None;
            }
            let need = world
                .identities
                .need(site, today, used.first().copied(), known)?;
            Some((site.clone(), need))
        })
        .collect()
}

/// Whether a push on `today` mints the mesh's next authority: the one that issues ends too soon, and there are sites that it
/// issues for. Sites get identities of the next one once all know it.
#[must_use]
pub fn needs_authority(world: &World<'_>, today: Date) -> bool {
    world.mesh.signals.is_some()
        && world.identities.authorities().are_due(today)
        && world.mesh.nodes.keys().any(|node| is_site(world, node))
}

/// Whether a machine is a site without an identity.
#[must_use]
pub fn lacks_identity(world: &World<'_>, node: &NodeName) -> bool {
    is_site(world, node) && world.identities.of(node).is_none()
}

/// Up to which serial every site surely has acknowledged what was minted; 0 while one is no site yet.
fn known_to_all(world: &World<'_>) -> u64 {
    let nodes = world.mesh.nodes.keys();
    let sites = nodes.filter(|node| is_sent_a_site(world, node));
    let known = sites.map(|node| knows(world.machine(node)).unwrap_or(0));
    known.min().unwrap_or(0)
}

/// The serial of what has to be known before a site may have an identity: under `pin` itself, under `spiffe` who issued it.
fn to_be_known(world: &World<'_>, identity: &Identity) -> u64 {
    let trust = world.mesh.signals.as_ref().map(|signals| signals.trust());
    match trust.unwrap_or_default() {
        PeerTrust::Pin => identity.serial,
        PeerTrust::Spiffe => {
            let mut authorities = world.identities.authorities().all().iter();
            let issuer = authorities.find(|one| one.number == identity.authority);
            issuer.map_or(0, |issuer| issuer.serial)
        }
    }
}

/// Whether a site has to have an identity that it does not have, and may not yet.
fn is_blocked(world: &World<'_>, site: &NodeName, identity: &SiteIdentity) -> bool {
    let newest = identity.newest();
    let used = in_use(world.machine(site));
    let is_free = used.is_empty() || used.contains(&newest.number) || newest.goes_on;
    !is_free && world.slowest().is_unaware(site, to_be_known(world, newest))
}

/// How the identity of a site stands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Standing {
    /// The number of the one that it has, or is composed with.
    pub number: u32,
    /// The day on which that one expires, or the authority that issued it.
    #[schemars(with = "String")]
    pub expires: Date,
    /// The newer one that it does not have yet, because others have to know that first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Renewal>,
}

/// A renewal that waits.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Renewal {
    /// The number of the identity that is to come.
    pub number: u32,
    /// The sites that have not acknowledged it.
    pub waits_for: BTreeSet<NodeName>,
    /// The first day on which it goes on without them.
    #[schemars(with = "String")]
    pub goes_on: Date,
}

/// How the identities of all sites stand that have one.
#[must_use]
pub fn standings(world: &World<'_>) -> BTreeMap<NodeName, Standing> {
    if world.mesh.signals.is_none() {
        return BTreeMap::new();
    }
    let sites = || world.mesh.nodes.keys().filter(|node| is_site(world, node));
    let nodes = world.mesh.nodes.keys();
    let mut known: Vec<(u64, &NodeName)> = nodes
        .filter(|node| is_sent_a_site(world, node))
        .filter_map(|node| Some((acknowledged(world, node)?, node)))
        .collect();
    known.sort_unstable();
    let standing = |site: &NodeName| {
        let newest = world.identities.of(site)?.newest();
        let has = identity(world, site)?;
        let end = world.identities.authorities().end_of(has);
        let renewal = (has.number != newest.number).then(|| Renewal {
            number: newest.number,
            waits_for: known
                .iter()
                .take_while(|(serial, _)| *serial < to_be_known(world, newest))
                .map(|(_, node)| (*node).clone())
                .filter(|node| node != site)
                .collect(),
            goes_on: goes_on_from(end),
        });
        let standing = Standing {
            number: has.number,
            expires: end,
            renewal,
        };
        Some((site.clone(), standing))
    };
    sites().filter_map(standing).collect()
}

/// For which sites the renewal of a site waits; empty: it does not.
#[must_use]
pub fn blocking(world: &World<'_>, site: &NodeName) -> BTreeSet<NodeName> {
    let standing = standings(world).remove(site);
    let renewal = standing.and_then(|standing| standing.renewal);
    renewal.map(|renewal| renewal.waits_for).unwrap_or_default()
}

/// The identity that a site is composed with; `None`: it has none yet.
#[must_use]
pub fn identity<'a>(world: &World<'a>, site: &NodeName) -> Option<&'a Identity> {
    let identity = world.identities.of(site)?;
    if !is_blocked(world, site, identity) {
        return Some(identity.newest());
    }
    let used = in_use(world.machine(site));
    let newest_used = used.iter().rev().find_map(|number| identity.get(*number));
    Some(newest_used.unwrap_or_else(|| identity.newest()))
}

/// The numbers of the identities of a site that are needed: those in use; and, where nobody observes the site, the one before
/// the newest, since nobody knows when it is given up there.
#[must_use]
pub fn needed(
    mesh: &Mesh,
    machine: &Machine,
    site: &NodeName,
    identity: &SiteIdentity,
) -> BTreeSet<u32> {
    let mut needed = in_use(machine);
    let declared = mesh.nodes.get(site);
    if declared.is_some_and(|declared| !declared.is_observed()) {
        needed.extend(identity.before_newest().map(|before| before.number));
    }
    needed
}

/// The identities of a site that the others admit: the newest, and those that are needed.
fn admitted<'a>(
    world: &World<'_>,
    site: &NodeName,
    identity: &'a SiteIdentity,
) -> impl Iterator<Item = &'a Identity> {
    let needed = needed(world.mesh, world.machine(site), site, identity);
    let newest = identity.newest().number;
    identity
        .generations()
        .filter(move |one| one.number == newest || needed.contains(&one.number))
}

/// The authorities whose identities somebody admits: the newest, and those that issued any of these.
#[must_use]
pub fn authorities<'a>(world: &World<'a>) -> Vec<&'a Authority> {
    let all = world.identities.authorities();
    let sites = world.identities.iter();
    let issuers: BTreeSet<u32> = sites
        .flat_map(|(site, identity)| admitted(world, site, identity))
        .map(|identity| identity.authority)
        .collect();
    let newest = all.newest().map(|newest| newest.number);
    all.all()
        .iter()
        .filter(|one| Some(one.number) == newest || issuers.contains(&one.number))
        .collect()
}

/// The pins of a site, and the greatest serial among its identities.
#[must_use]
pub fn pins(world: &World<'_>, node: &Node) -> (BTreeSet<Digest>, u64) {
    let Some(identity) = world.identities.of(&node.name) else {
        return (node.pins.clone(), 0);
    };
    if node.has_own_identity() {
        // Until it has that, it has what grid made.
        let used = in_use(world.machine(&node.name)).into_iter();
        let mut pins = node.pins.clone();
        let room = MOST_PINS.saturating_sub(pins.len());
        pins.extend(
            used.filter_map(|number| Some(identity.get(number)?.pin()))
                .take(room),
        );
        return (pins, 0);
    }
    let admitted: Vec<&Identity> = admitted(world, &node.name, identity).collect();
    let greatest = admitted.iter().map(|identity| identity.serial).max();
    let pins = admitted.iter().map(|identity| identity.pin()).collect();
    (pins, greatest.unwrap_or(0))
}
