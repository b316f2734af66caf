//! Which providers go on elsewhere when they leave a machine.
//!
//! Rule 3 has a provider that leaves load an empty list, which closes all its accounts. Where the declaration names the host
//! that consumers use (a database server that is loaded from afar, a cluster, a name that follows the provider), that host may
//! be the same on another machine: the accounts are there too, in use, and to close them would shut everybody out. The same holds for
//! one that comes to a machine and is put back.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use super::manifest::Manifest;
use crate::kinds::Endpoint;
use crate::words::{NodeName, ServiceName};

/// The providers whose accounts are not to be closed when they leave `node`, or when they come there and are put back: their
/// host is declared for another machine too, or another one may hold them with the same host. Where nobody knows
/// `whatever_is_there`, since somebody else may have sent to the machine, these are all that are declared with a host, and elsewhere.
#[must_use]
pub fn goes_on(
    world: &World<'_>,
    node: &NodeName,
    whatever_is_there: bool,
) -> BTreeSet<ServiceName> {
    let machine = world.machine(node);
    let mut here: BTreeMap<&ServiceName, Vec<Endpoint>> = BTreeMap::new();
    // What was taken as gone may be there all the same, and leave now.
    for (name, held) in machine.releases().flat_map(|release| &release.services) {
        if let Some(endpoint) = &held.endpoint {
            here.entry(name).or_default().push(endpoint.clone());
        }
    }
    let all = whatever_is_there.then_some(world.mesh.services.values());
    let all = all.into_iter().flatten();
    for service in world.services_on(node).chain(all) {
        if let Some(endpoint) = service.declared_endpoint() {
            here.entry(&service.name).or_default().push(endpoint);
        }
    }
    let goes_on = here.into_iter().filter(|(name, endpoints)| {
        let mut endpoints = endpoints.iter();
        endpoints.any(|endpoint| is_elsewhere(world, node, name, endpoint))
    });
    goes_on.map(|(name, _)| name.clone()).collect()
}

/// Whether a provider is at `endpoint` by what another machine should be, or may hold. That one may be about to lose it as well: whoever is
/// the last to go finds nobody, and closes (see [`last_to_leave`]).
fn is_elsewhere(
    world: &World<'_>,
    node: &NodeName,
    name: &ServiceName,
    endpoint: &Endpoint,
) -> bool {
    let is_held = |other: &NodeName| {
        let mut held = world.machine(other).possible();
        held.any(|(held, service)| held == name && service.endpoint.as_ref() == Some(endpoint))
    };
    is_declared(world, Some(node), name, endpoint)
        || world
            .uses
            .holders(name)
            .any(|other| other != node && is_held(other))
}

/// Whether the declaration has a provider at `endpoint` on a machine other than `node`.
fn is_declared(
    world: &World<'_>,
    node: Option<&NodeName>,
    name: &ServiceName,
    endpoint: &Endpoint,
) -> bool {
    let declared = world.mesh.services.get(name);
    declared.is_some_and(|service| {
        service.declared_endpoint().as_ref() == Some(endpoint)
            && service.nodes.iter().any(|other| Some(other) != node)
    })
}

/// Of machines that a provider leaves at once, with one host: the last. Each would see the others hold it and leave its accounts open; so
/// the last goes a round later, sees who is gone, and closes them. If one of the others was not reached, it is the one that closes.
#[must_use]
pub fn last_to_leave<'a>(
    world: &World<'_>,
    sends: impl IntoIterator<Item = (&'a NodeName, &'a Manifest)>,
) -> BTreeSet<NodeName> {
    let mut leave: BTreeMap<(&ServiceName, &str, u16), BTreeSet<&NodeName>> = BTreeMap::new();
    for (node, wanted) in sends {
        for (name, held) in world.machine(node).possible() {
            if let Some(endpoint) = &held.endpoint
                && !wanted.services.contains_key(name)
                && !is_declared(world, None, name, endpoint)
            {
                let at = (name, endpoint.host.as_str(), endpoint.port);
                leave.entry(at).or_default().insert(node);
            }
        }
    }
    let mut put_off: BTreeSet<&NodeName> = BTreeSet::new();
    for nodes in leave.values().filter(|nodes| nodes.len() > 1) {
        // One that waits for another provider's sake sees who has left of this one, too.
        if nodes.is_disjoint(&put_off) {
            put_off.extend(nodes.last());
        }
    }
    put_off.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::manifest::ServiceManifest;
    use crate::compose::sample::{Sample, manifest, node, with};

    /// A provider that was sent with a host.
    fn at(host: &str) -> ServiceManifest {
        ServiceManifest {
            endpoint: Some(Endpoint {
                host: host.to_owned(),
                port: 5672,
            }),
            ..with("billing:1")
        }
    }

    fn on_m0(sample: &Sample) -> Vec<String> {
        let world = sample.world();
        let is_known = world.machine(&node("m0")).is_known();
        let names = goes_on(&world, &node("m0"), !is_known);
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_provider_goes_on_where_its_host_is_declared_for_another_machine() {
        let moved = |host: &str| Sample::of(&["broker@m1"]).hosted("broker", host);
        let sent = |sample: Sample| sample.sent("m0", vec![("broker", at("db"))]);
        assert_eq!(on_m0(&sent(moved("db"))), ["broker"]);
        assert!(on_m0(&sent(moved("other"))).is_empty());
        // Its address was that of its machine, so that it was another one.
        let own = moved("db").sent("m0", vec![("broker", with("billing:1"))]);
        assert!(on_m0(&own).is_empty());
        let own = Sample::of(&["broker@m1"]).sent("m0", vec![("broker", at("m0"))]);
        assert!(on_m0(&own).is_empty());
        // On no machine any more, its accounts are closed.
        let none = Sample::of(&["broker"]).hosted("broker", "db");
        assert!(on_m0(&sent(none)).is_empty());
        // One of several leaves.
        let several = Sample::of(&["broker@m1+m2"]).hosted("broker", "db");
        assert_eq!(on_m0(&sent(several)), ["broker"]);
    }

    #[test]
    fn of_machines_that_a_provider_leaves_at_once_the_last_goes_after_the_others_and_closes() {
        let sent = |sample: Sample, on: &str| sample.sent(on, vec![("broker", at("db"))]);
        let none = || Sample::of(&["broker"]).hosted("broker", "db");
        let both = sent(sent(none(), "m0"), "m1");
        let empty = manifest("m0", vec![]);
        let last = |sample: &Sample, nodes: &[&str]| -> Vec<String> {
            let nodes: Vec<_> = nodes.iter().map(|one| node(one)).collect();
            let sends = nodes.iter().map(|node| (node, &**empty));
            let last = last_to_leave(&sample.world(), sends);
            last.iter().map(ToString::to_string).collect()
        };
        assert_eq!(last(&both, &["m0", "m1", "m2"]), ["m1"]);
        assert!(last(&both, &["m0", "m2"]).is_empty());
        // One wait serves every provider that leaves the machine which waits.
        let overlapping = Sample::of(&["broker", "cache"])
            .sent("m0", vec![("broker", at("db"))])
            .sent("m1", vec![("broker", at("db")), ("cache", at("db"))])
            .sent("m2", vec![("cache", at("db"))]);
        assert_eq!(last(&overlapping, &["m0", "m1", "m2"]), ["m1"]);
        // The first leaves them open, since the other may hold it; the other then finds nobody.
        assert_eq!(on_m0(&both), ["broker"]);
        assert!(on_m0(&sent(none(), "m0")).is_empty());
        // It is declared elsewhere, or each had a host of its own: nothing has to be awaited.
        let declared = sent(
            sent(Sample::of(&["broker@m2"]).hosted("broker", "db"), "m0"),
            "m1",
        );
        assert!(last(&declared, &["m0", "m1"]).is_empty());
        let own = sent(none(), "m0").sent("m1", vec![("broker", at("other"))]);
        assert!(last(&own, &["m0", "m1"]).is_empty());
    }

    #[test]
    fn a_provider_that_comes_and_is_put_back_goes_on_where_it_was() {
        let comes = || Sample::of(&["broker@m0"]).hosted("broker", "db");
        assert!(on_m0(&comes()).is_empty());
        let moving = comes().sent("m1", vec![("broker", at("db"))]);
        assert_eq!(on_m0(&moving), ["broker"]);
        let attempted = comes().attempted("m1", vec![("broker", at("db"))]);
        assert_eq!(on_m0(&attempted), ["broker"]);
        let other = comes().sent("m1", vec![("broker", at("other"))]);
        assert!(on_m0(&other).is_empty());
    }

    #[test]
    fn of_a_machine_of_which_nothing_is_known_all_that_are_elsewhere_go_on() {
        let sample = Sample::of(&["broker@m1", "own@m1", "web@m0"]).hosted("broker", "db");
        assert_eq!(on_m0(&sample), ["broker"]);
        let known = sample.sent("m0", vec![("web", with(""))]);
        assert!(on_m0(&known).is_empty());
    }
}
