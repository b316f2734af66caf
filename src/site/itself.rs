//! Whether the site's peers admit the site: what they ask of its certificate is asked here of its own.
//!
//! A site that its peers refuse runs, serves its own gateways and polls nobody; so it is said, and refuses nothing by
//! itself. Under gossip there is no listener, and nobody to refuse it.

use jiff::Timestamp;
use rustls::pki_types::UnixTime;

use super::config::Loaded;
use super::identity::Identity;
use super::leaf::Spiffe;
use super::trust::Usage;
use super::watch::known;
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
    let is_by_pin = site.trust == PeerTrust::Pin;
    // A list without the site itself, as one may be written by hand, says nothing of its pins.
    let own = loaded.own_pins.as_ref().filter(|_| is_by_pin);
    if own.is_some_and(|pins| !pins.iter().any(|pin| *pin == leaf.digest)) {
        return Some(Unfit::Unpinned(site.site.clone()));
    }
    if !is_by_pin {
        match &leaf.spiffe {
            Spiffe::Site(theirs) if *theirs == site.site => {}
            Spiffe::Site(theirs) => {
                return Some(Unfit::Another {
                    site: site.site.clone(),
                    theirs: theirs.clone(),
                });
            }
            Spiffe::None | Spiffe::Other | Spiffe::Several => {
                return Some(Unfit::Nameless(site.site.clone()));
            }
        }
    }
    if !leaf.holds(now) {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let at = |second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
        return Some(if seconds < leaf.not_before {
            Unfit::NotYet(at(leaf.not_before))
        } else {
            Unfit::Expired(at(leaf.not_after))
        });
    }
    let known = known(loaded, leaf.digest);
    let der = identity.certified.cert.first();
    let is_issued = |usage| der.is_some_and(|der| known.issued(der, now, usage).is_ok());
    let is_admitted = is_by_pin || (is_issued(Usage::Client) && is_issued(Usage::Server));
    (!is_admitted).then_some(Unfit::Unissued)
}
