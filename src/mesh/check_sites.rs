//! Checks what the sites of a mesh are to each other: where they are, and by which certificates they are known (DESIGN.md,
//! section 7). What is composed of it is the same for all sites, so one wrong machine would hold up all of them.

use std::collections::HashMap;

use super::declaration::{Node, Signals};
use super::machine::Machines;
use super::place::{Place, Problem};
use super::source::Sources;
use crate::words::{NodeName, PeerHost, SignalMode, is_special};

/// A certificate is one site's: its pin stands once in the mesh.
pub(super) fn pins(machines: &Machines, sources: &Sources, problems: &mut Vec<Problem>) {
    let mut seen = HashMap::new();
    for (name, pins) in &machines.pins {
        for (pin, place) in pins {
            let Some((first, at)) = seen.insert(*pin, (name, *place)) else {
                continue;
            };
            let at = sources.reference(at);
            problems.push(match first == name {
                true => Problem::new(
                    *place,
                    "this pin stands here twice",
                    "write it once: the second one is that of a certificate that is to come",
                ),
                false => Problem::new(
                    *place,
                    format!(
                        "{name} and {first} have the same pin, and a certificate is one site's"
                    ),
                    format!(
                        "write the SHA-256 of {name}'s own certificate; {first} has it at {at}"
                    ),
                ),
            });
        }
    }
}

/// Every site is at a place of its own, where the others can poll it.
pub(super) fn places(
    machines: &Machines,
    signals: &Signals,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let has_peers = machines.nodes.len() > 1;
    let is_polled = signals.mode == Some(SignalMode::Poll) && has_peers;
    let may_be_special = signals.settings.special_addresses;
    let mut seen: HashMap<PeerHost, &NodeName> = HashMap::new();
    for (name, node) in &machines.nodes {
        let Some(place) = place_of(machines, name) else {
            continue;
        };
        let Ok(host) = PeerHost::new(node.host()) else {
            problems.push(no_host(node, place));
            continue;
        };
        let host = match host {
            PeerHost::Address(address) => PeerHost::Address(address.to_canonical()),
            other @ PeerHost::Name(_) => other,
        };
        if let PeerHost::Address(address) = host
            && is_polled
            && !may_be_special
            && is_special(address)
        {
            problems.push(Problem::new(
                place,
                format!(
                    "{} is loopback, link-local, unspecified, of no one machine or of a cloud's metadata: no site polls {name} there",
                    node.host()
                ),
                "write the address at which the other sites reach it; for a trial, `special_addresses = true` in `[signals.settings]` \
                 admits this one",
            ));
        }
        let Some(first) = seen.insert(host, name) else {
            continue;
        };
        let at = place_of(machines, first).map(|at| sources.reference(at));
        problems.push(Problem::new(
            place,
            format!(
                "{name} and {first} are sites at one address, {}, and all sites of a mesh listen at one port",
                node.host()
            ),
            format!(
                "give each the address of a machine of its own; {first} is at {}",
                at.unwrap_or_default()
            ),
        ));
    }
}

/// Where the address of a machine stands, or the machine itself.
fn place_of(machines: &Machines, name: &NodeName) -> Option<Place> {
    let address = machines.addresses.get(name);
    address.or_else(|| machines.declared.get(name)).copied()
}

fn no_host(node: &Node, place: Place) -> Problem {
    let host = node.host();
    let help = if host.contains('%') {
        "a zone is the name of an interface on one machine only: write an address that holds on all of them"
    } else {
        "write an IP address whole, four numbers up to 255 or an IPv6 address, or a DNS name, whose last part is no number"
    };
    Problem::new(
        place,
        format!("the other sites cannot reach {} at {host:?}", node.name),
        help,
    )
}
