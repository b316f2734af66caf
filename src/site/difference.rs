//! What a site's daemon does when it is given other files: takes them up live, or restarts. Pure; the rule of what restarts
//! is [`restarts`]'s, which the daemon itself goes by.

use std::collections::BTreeSet;

use super::restart::{Restart, restarts};
use crate::signals::site::{Peers, Site};
use crate::words::{Digest, NodeName, PeerTrust, SignalMode};

/// What a site is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Its configuration.
    pub site: Site,
    /// The SHA-256 of its certificate, if it has one.
    pub certificate: Option<Digest>,
}

/// Something that a daemon takes up while it runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Live {
    /// A renewed certificate, under `spiffe`.
    Certificate,
    /// The declared trust, under gossip.
    Trust(PeerTrust),
    /// The providers that it scrapes.
    Scrapes,
    /// How signals are made of metrics.
    Watches,
    /// The mesh's authorities.
    Authorities,
    /// Sites that come.
    PeersCome(BTreeSet<NodeName>),
    /// Sites that leave.
    PeersLeave(BTreeSet<NodeName>),
    /// The pins of these sites.
    Pins(BTreeSet<NodeName>),
    /// Where these sites are.
    Hosts(BTreeSet<NodeName>),
}

/// Why the daemon restarts, and what it takes up live of the change in its configuration and its certificate.
#[must_use]
pub fn difference(held: &Given, wanted: &Given) -> (Vec<Restart>, Vec<Live>) {
    let (running, declared) = (&held.site, &wanted.site);
    let why = restarts(running, held.certificate, declared, wanted.certificate);
    let mut live = Vec::new();
    let is_renewed = held.certificate != wanted.certificate && !why.contains(&Restart::Identity);
    if is_renewed && declared.trust == PeerTrust::Spiffe {
        live.push(Live::Certificate);
    }
    if running.mode == SignalMode::Gossip && running.trust != declared.trust {
        live.push(Live::Trust(declared.trust));
    }
    if running.scrapes != declared.scrapes {
        live.push(Live::Scrapes);
    }
    if running.watches != declared.watches {
        live.push(Live::Watches);
    }
    (why, live)
}

/// What changes in the list of sites, which is the same for all of them.
#[must_use]
pub fn peers(held: &Peers, wanted: &Peers) -> Vec<Live> {
    let by_name = |peers: &Peers| -> std::collections::BTreeMap<NodeName, usize> {
        let named = peers.peers.iter().enumerate();
        named.map(|(at, peer)| (peer.name.clone(), at)).collect()
    };
    let (before, after) = (by_name(held), by_name(wanted));
    let only = |these: &std::collections::BTreeMap<NodeName, usize>,
                those: &std::collections::BTreeMap<NodeName, usize>| {
        let names = these.keys().filter(|name| !those.contains_key(*name));
        names.cloned().collect::<BTreeSet<_>>()
    };
    let both = || {
        before.iter().filter_map(|(name, at)| {
            let held = held.peers.get(*at)?;
            let wanted = wanted.peers.get(*after.get(name)?)?;
            Some((name, held, wanted))
        })
    };
    let pins = both().filter(|(_, held, wanted)| held.pins != wanted.pins);
    let pins: BTreeSet<NodeName> = pins.map(|(name, _, _)| name.clone()).collect();
    let hosts = both().filter(|(_, held, wanted)| held.host != wanted.host);
    let hosts: BTreeSet<NodeName> = hosts.map(|(name, _, _)| name.clone()).collect();
    let come = only(&after, &before);
    let leave = only(&before, &after);
    let all = [
        (!come.is_empty()).then_some(Live::PeersCome(come)),
        (!leave.is_empty()).then_some(Live::PeersLeave(leave)),
        (!pins.is_empty()).then_some(Live::Pins(pins)),
        (!hosts.is_empty()).then_some(Live::Hosts(hosts)),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::site::{Peer, Pins};
    use crate::words::{AbsolutePath, MeshName, PeerHost};

    fn node(name: &str) -> NodeName {
        NodeName::new(name).unwrap()
    }

    fn given(mode: SignalMode, trust: PeerTrust, certificate: &str) -> Given {
        let mut site = Site::new(
            MeshName::new("prod").unwrap(),
            node("atlas"),
            AbsolutePath::new("/s").unwrap(),
        );
        (site.mode, site.trust) = (mode, trust);
        let certificate = Some(Digest::of(certificate.as_bytes()));
        Given { site, certificate }
    }

    #[test]
    fn a_new_identity_restarts_under_poll_and_pin_and_is_taken_up_live_under_spiffe() {
        use {PeerTrust::*, SignalMode::*};
        for (mode, trust, restarts, live) in [
            (Poll, Pin, vec![Restart::Identity], vec![]),
            (Poll, Spiffe, vec![], vec![Live::Certificate]),
            (Gossip, Spiffe, vec![], vec![Live::Certificate]),
            (Gossip, Pin, vec![], vec![]),
        ] {
            let told = difference(&given(mode, trust, "old"), &given(mode, trust, "new"));
            assert_eq!(told, (restarts, live), "{mode} {trust}");
        }
    }

    #[test]
    fn another_trust_restarts_under_poll_only_and_all_reasons_are_told() {
        use {PeerTrust::*, SignalMode::*};
        let gossip = difference(&given(Gossip, Pin, "a"), &given(Gossip, Spiffe, "a"));
        assert_eq!(gossip, (vec![], vec![Live::Trust(Spiffe)]));
        let mut wanted = given(Poll, Spiffe, "b");
        wanted.site.port = 1;
        let (why, live) = difference(&given(Poll, Pin, "a"), &wanted);
        let told: Vec<String> = why.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "trust = \"spiffe\" is declared",
                "the site has a new identity",
                "port changed"
            ]
        );
        assert!(live.is_empty());
    }

    #[test]
    fn sites_that_come_leave_move_or_have_other_pins_are_told_apart() {
        let peer = |name: &str, host: &str, pin: &str| Peer {
            name: node(name),
            host: PeerHost::new(host).unwrap(),
            pins: Pins::new([Digest::of(pin.as_bytes())]).unwrap(),
        };
        let held = Peers::new(vec![
            peer("a", "h1", "1"),
            peer("b", "h1", "1"),
            peer("c", "h1", "1"),
            peer("d", "h1", "1"),
        ]);
        let wanted = Peers::new(vec![
            peer("a", "h1", "1"),
            peer("b", "h2", "1"),
            peer("c", "h1", "2"),
            peer("e", "h1", "1"),
        ]);
        let one = |name: &str| BTreeSet::from([node(name)]);
        assert_eq!(
            peers(&held, &wanted),
            [
                Live::PeersCome(one("e")),
                Live::PeersLeave(one("d")),
                Live::Pins(one("c")),
                Live::Hosts(one("b")),
            ]
        );
        assert!(peers(&held, &held).is_empty());
    }
}
