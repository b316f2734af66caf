//! Which providers go on elsewhere when they leave a machine.
//!
//! Rule 3 has a provider that leaves load an empty list, which closes all its accounts. Where the declaration names the host
//! that consumers use (a database server that is loaded from afar, a cluster, a name that follows the provider), that host may
//! be the same on another machine: the accounts are there too, in use, and to close them would shut everybody out. The same holds for
//! one that comes to a machine and is put back.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use crate::kinds::Endpoint;
use crate::words::{NodeName, ServiceName};

/// The providers whose accounts are not to be closed when they leave `node`, or when they come there and are put back: their
/// host is declared for another machine too, or another one may hold them with the same host. Of a machine of which nothing is
/// known, which somebody else may have sent to, these are all that are declared with a host, and elsewhere.
#[must_use]
pub fn goes_on(world: &World<'_>, node: &NodeName) -> BTreeSet<ServiceName> {
    let machine = world.machine(node);
    let mut here: BTreeMap<&ServiceName, Vec<Endpoint>> = BTreeMap::new();
    // What was taken as gone may be there all the same, and leave now.
    for (name, held) in machine.releases().flat_map(|release| &release.services) {
        here.entry(name).or_default().extend(held.endpoint.clone());
    }
    let all = world.mesh.services.values();
    let all = all.filter(|_| !machine.is_known());
    for service in world.services_on(node).chain(all) {
        let provides = service.provides.as_ref();
        let endpoint = provides.and_then(|provides| provides.declared_endpoint());
        here.entry(&service.name).or_default().extend(endpoint);
    }
    let goes_on = here.into_iter().filter(|(name, endpoints)| {
        let mut endpoints = endpoints.iter();
        endpoints.any(|endpoint| is_elsewhere(world, node, name, endpoint))
    });
    goes_on.map(|(name, _)| name.clone()).collect()
}

/// Whether a provider is at `endpoint` by what another machine holds or should.
fn is_elsewhere(
    world: &World<'_>,
    node: &NodeName,
    name: &ServiceName,
    endpoint: &Endpoint,
) -> bool {
    let declared = world.mesh.services.get(name);
    let is_declared = declared.is_some_and(|service| {
        let provides = service.provides.as_ref();
        let now = provides.and_then(|provides| provides.declared_endpoint());
        now.as_ref() == Some(endpoint) && service.nodes.iter().any(|other| other != node)
    });
    let is_held = |(other, machine): (&NodeName, &super::sent::Machine)| {
        let mut held = machine.possible().filter(|(held, _)| *held == name);
        other != node && held.any(|(_, held)| held.endpoint.as_ref() == Some(endpoint))
    };
    is_declared || world.fleet.iter().any(is_held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::manifest::ServiceManifest;
    use crate::compose::sample::{Sample, node, with};

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
        let names = goes_on(&sample.world(), &node("m0"));
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
