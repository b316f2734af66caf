//! What the daemon cannot take up while it runs, so that it exits with 75 and its supervisor starts it again
//! (DESIGN.md, section 7).
//!
//! The mode is read once, at start. Under poll another `trust` restarts too, and under `pin` an identity of the site's
//! own: its peers have been told of the new pin. Under gossip neither does: there is no listener that they would change.
//! Peers, pins, scrapes, mappings and, under `spiffe`, a renewed certificate are taken up live.

use std::fmt;

use crate::signals::site::Site;
use crate::words::{Digest, PeerTrust, SignalMode};

/// Why the daemon restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restart {
    /// Another mode is declared.
    Mode(SignalMode),
    /// Another trust is declared, under poll.
    Trust(PeerTrust),
    /// A new identity, under poll and pin.
    Identity,
    /// It is told to be another site, or to be elsewhere.
    Place(&'static str),
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode(mode) => write!(f, "mode = \"{mode}\" is declared"),
            Self::Trust(trust) => write!(f, "trust = \"{trust}\" is declared"),
            Self::Identity => f.write_str("the site has a new identity"),
            Self::Place(key) => write!(f, "{key} changed"),
        }
    }
}

/// Every reason for which the daemon that runs as `running`, with the certificate `own`, has to be restarted for `declared`,
/// whose certificate is `theirs`; none: it takes all of it up live.
#[must_use]
pub fn restarts(
    running: &Site,
    own: Option<Digest>,
    declared: &Site,
    theirs: Option<Digest>,
) -> Vec<Restart> {
    let mut why = Vec::new();
    if declared.mode != running.mode {
        why.push(Restart::Mode(declared.mode));
    }
    if running.mode == SignalMode::Poll {
        if declared.trust != running.trust {
            why.push(Restart::Trust(declared.trust));
        }
        if running.trust == PeerTrust::Pin && own != theirs {
            why.push(Restart::Identity);
        }
    }
    let places = [
        ("network", running.network != declared.network),
        ("site", running.site != declared.site),
        ("port", running.port != declared.port),
        ("state", running.state != declared.state),
        ("metrics", running.metrics != declared.metrics),
        ("settings", running.settings != declared.settings),
    ];
    let changed = places.into_iter().filter(|(_, changed)| *changed);
    why.extend(changed.map(|(key, _)| Restart::Place(key)));
    why
}

/// Whether the daemon that runs as `running`, with the certificate `own`, has to be restarted for `declared`, whose
/// certificate is `theirs`.
#[must_use]
pub fn restart(
    running: &Site,
    own: Option<Digest>,
    declared: &Site,
    theirs: Option<Digest>,
) -> Option<Restart> {
    restarts(running, own, declared, theirs).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{AbsolutePath, MeshName, NodeName};

    fn site(mode: SignalMode, trust: PeerTrust) -> Site {
        let mut site = Site::new(
            MeshName::new("prod").unwrap(),
            NodeName::new("atlas").unwrap(),
            AbsolutePath::new("/s").unwrap(),
        );
        (site.mode, site.trust) = (mode, trust);
        site
    }

    fn why(running: &Site, declared: &Site) -> Option<String> {
        restart(running, None, declared, None).map(|why| why.to_string())
    }

    #[test]
    fn another_mode_restarts_and_another_trust_does_so_under_poll_only() {
        use PeerTrust::{Pin, Spiffe};
        use SignalMode::{Gossip, Poll};
        assert_eq!(why(&site(Gossip, Pin), &site(Gossip, Pin)), None);
        let text = Some("mode = \"poll\" is declared".to_owned());
        assert_eq!(why(&site(Gossip, Pin), &site(Poll, Pin)), text);
        assert!(why(&site(Poll, Pin), &site(Gossip, Pin)).is_some());
        for (one, other) in [(Pin, Spiffe), (Spiffe, Pin)] {
            assert_eq!(why(&site(Gossip, one), &site(Gossip, other)), None);
            let text = Some(format!("trust = \"{other}\" is declared"));
            assert_eq!(why(&site(Poll, one), &site(Poll, other)), text);
        }
    }

    #[test]
    fn a_new_identity_restarts_under_poll_and_pin_only() {
        let (old, new) = (Some(Digest::of(b"old")), Some(Digest::of(b"new")));
        for (mode, trust, restarts) in [
            (SignalMode::Poll, PeerTrust::Pin, true),
            (SignalMode::Poll, PeerTrust::Spiffe, false),
            (SignalMode::Gossip, PeerTrust::Pin, false),
            (SignalMode::Gossip, PeerTrust::Spiffe, false),
        ] {
            let site = site(mode, trust);
            assert_eq!(restart(&site, old, &site, new).is_some(), restarts);
            assert_eq!(restart(&site, old, &site, old), None);
        }
    }

    #[test]
    fn another_port_restarts_and_another_scrape_does_not() {
        let running = site(SignalMode::Poll, PeerTrust::Pin);
        let mut declared = running.clone();
        declared.scrapes.push(crate::signals::site::Scrape {
            provider: crate::signals::ProviderName::new("broker").unwrap(),
            url: crate::words::ScrapeUrl::new("http://h/").unwrap(),
        });
        assert_eq!(why(&running, &declared), None);
        declared.port += 1;
        assert_eq!(why(&running, &declared), Some("port changed".to_owned()));
    }
}
