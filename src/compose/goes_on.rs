//! Which providers go on elsewhere when they leave a machine.
//!
//! Rule 3 has a provider that leaves load an empty list, which closes all its accounts. Where the declaration names the host
//! that consumers use (a database server that is loaded from afar, a cluster, a name that follows the provider), that host may
//! be the same on another machine: the accounts are there too, in use, and to close them would shut everybody out. The same holds for
//! one that comes to a machine and is put back.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use super::services::{is_assigned, stays};
use crate::kinds::Endpoint;
use crate::words::{NodeName, ServiceName};

/// The providers whose accounts are not to be closed when they leave `node`, or when they come there and are put back: their
/// host is declared for another machine too, or another one holds them with the same host and keeps them. Where nobody knows
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
    let all = world.mesh.services.values();
    let all = all.filter(|_| whatever_is_there);
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

/// Whether a provider is at `endpoint` by what another machine should be, or by what it holds: then if it comes to `node` from
/// there, or stays there for now. Of two that it leaves at once neither counts on the other.
fn is_elsewhere(
    world: &World<'_>,
    node: &NodeName,
    name: &ServiceName,
    endpoint: &Endpoint,
) -> bool {
    let declared = world.mesh.services.get(name);
    let is_declared = declared.is_some_and(|service| {
        service.declared_endpoint().as_ref() == Some(endpoint)
            && service.nodes.iter().any(|other| other != node)
    });
    let holds = |other: &NodeName| {
        let mut held = world.machine(other).possible();
        held.any(|(held, service)| held == name && service.endpoint.as_ref() == Some(endpoint))
    };
    let comes = is_assigned(world, name, node);
    is_declared
        || world
            .uses
            .holders(name)
            .any(|other| other != node && holds(other) && (comes || stays(world, name, other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::manifest::ServiceManifest;
    use crate::compose::sample::{Sample, bound, node, with};

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
    fn of_two_machines_that_a_provider_leaves_at_once_both_close_its_accounts() {
        let sent = |sample: Sample| {
            let sample = sample.sent("m0", vec![("broker", at("db"))]);
            sample.sent("m1", vec![("broker", at("db"))])
        };
        let none = Sample::of(&["broker"]).hosted("broker", "db");
        assert!(on_m0(&sent(none)).is_empty());
        // While somebody uses it on the other one it stays there.
        let used = Sample::of(&["broker", "web@m2<broker"]).hosted("broker", "db");
        let used = sent(used).sent("m2", vec![("web", bound("broker:1@m1"))]);
        assert_eq!(on_m0(&used), ["broker"]);
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
