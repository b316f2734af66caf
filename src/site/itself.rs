//! Whether the site's peers admit the site: what they ask of its certificate is asked here of its own.
//!
//! A site that its peers refuse runs, serves its own gateways and polls nobody; so it is said, and refuses nothing by
//! itself. Under gossip there is no listener, and nobody to refuse it.

use jiff::Timestamp;
use rustls::pki_types::UnixTime;

use super::config::Loaded;
use super::identity::Identity;
use super::trust::{Known, Stranger, Usage};
use crate::signals::site::Pins;
use crate::words::{NodeName, PeerTrust, SignalMode};

/// Why peers that know what the site knows refuse it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Not yet: one of the clocks is wrong.
    #[error("it holds from {0} on, and this machine's clock is before that")]
    NotYet(Timestamp),
    /// No longer.
    #[error("it expired on {0}")]
    Expired(Timestamp),
    /// It is none of its own pins.
    #[error("its SHA-256 is not among the pins of {0} in peers.toml")]
    Unpinned(NodeName),
    /// It does not have exactly one SPIFFE name of a site.
    #[error("it does not have exactly one SPIFFE name, spiffe://grid.internal/site/{0}")]
    Nameless(NodeName),
    /// It is another site's.
    #[error("it is that of the site {theirs}, and this one is {site}")]
    Another {
        /// This site.
        site: NodeName,
        /// Whom it names.
        theirs: NodeName,
    },
    /// No authority of the mesh issued it.
    #[error("no authority of authorities.pem issued it, for both ends of a connection")]
    Unissued,
}

/// Why peers that know what these files say refuse a site with this identity; none: they admit it.
#[must_use]
pub fn unfit(loaded: &Loaded, identity: &Identity, now: UnixTime) -> Option<Unfit> {
    let site = &loaded.site;
    if site.mode != SignalMode::Poll {
        return None;
    }
    let leaf = &identity.leaf;
    let pins = match (site.trust, &loaded.own_pins) {
        (PeerTrust::Spiffe, _) => Pins::default(),
        (PeerTrust::Pin, Some(pins)) => pins.clone(),
        // A list without the site itself, as one may be written by hand, says nothing of its pins.
        (PeerTrust::Pin, None) => Pins::new([leaf.digest]).unwrap_or_default(),
    };
    let authorities = loaded.authorities.clone();
    let peers = Known::one(
        site.site.clone(),
        leaf.digest,
        site.trust,
        pins,
        authorities,
    );
    let der = identity.certified.cert.first()?;
    let usages = [Usage::Client, Usage::Server];
    let refused = usages
        .iter()
        .find_map(|usage| peers.peer(der, now, *usage).err())?;
    let at = |second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    let is_early = i64::try_from(now.as_secs()).is_ok_and(|now| now < leaf.not_before);
    Some(match refused {
        Stranger::Dates if is_early => Unfit::NotYet(at(leaf.not_before)),
        Stranger::Dates => Unfit::Expired(at(leaf.not_after)),
        Stranger::Unpinned => Unfit::Unpinned(site.site.clone()),
        Stranger::Nameless => Unfit::Nameless(site.site.clone()),
        Stranger::Undeclared(theirs) => Unfit::Another {
            site: site.site.clone(),
            theirs,
        },
        _ => Unfit::Unissued,
    })
}
