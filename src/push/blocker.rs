//! Why a consumer still waits: what keeps a provider from acknowledging it, machine by machine.

use std::collections::BTreeSet;

use crate::compose::World;
use crate::compose::bindings::{admitted_on, declared};
use crate::compose::services::is_taken_away;
use crate::words::{NodeName, ServiceName};

/// What keeps a provider from acknowledging a grant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocker {
    /// It is on no machine.
    Unassigned,
    /// Its machine is on hold.
    OnHold(NodeName, String),
    /// Its machine failed in this push.
    Failed(NodeName),
    /// Its machine is uncertain.
    Uncertain(NodeName),
    /// It waits itself.
    Waits(NodeName),
    /// It has a revoked consumption itself.
    Revoked,
    /// Its machine has not acknowledged yet.
    Pending(NodeName),
}

/// What keeps `provider` from acknowledging a grant for `consumer`. `waits` tells whether the provider waits itself
/// on a machine.
#[must_use]
pub fn blockers(
    world: &World<'_>,
    provider: &ServiceName,
    consumer: &ServiceName,
    waits: &dyn Fn(&NodeName) -> bool,
    today: jiff::civil::Date,
) -> BTreeSet<Blocker> {
    let Some(service) = world
        .mesh
        .services
        .get(provider)
        .filter(|service| !service.nodes.is_empty())
    else {
        return BTreeSet::from([Blocker::Unassigned]);
    };
    if is_taken_away(world, service) {
        return BTreeSet::from([Blocker::Revoked]);
    }
    let wanted = world.mesh.services.get(consumer).and_then(|consumer| {
        let consumption = consumer.consumes.get(provider)?;
        let provision = world.provisions.get(provider, &consumer.name)?;
        Some(declared(consumer, consumption, provision))
    });
    service
        .nodes
        .iter()
        .filter_map(|node| {
            let admitted = admitted_on(world, provider, node).zip(wanted.as_ref());
            if admitted.is_some_and(|(admitted, wanted)| admitted.contains(wanted)) {
                return None;
            }
            let machine = world.machine(node);
            let declared = world.mesh.nodes.get(node);
            Some(match declared.and_then(|node| node.hold_in_force(today)) {
                Some(hold) => Blocker::OnHold(node.clone(), hold.reason.clone()),
                None if machine.attempt.is_some() => Blocker::Uncertain(node.clone()),
                None if waits(node) => Blocker::Waits(node.clone()),
                None => Blocker::Pending(node.clone()),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::{Sample, name, wants, with};

    const TODAY: jiff::civil::Date = jiff::civil::date(2026, 12, 1);

    fn found(sample: &Sample) -> BTreeSet<Blocker> {
        blockers(
            &sample.world(),
            &name("broker"),
            &name("billing"),
            &|_| false,
            TODAY,
        )
    }

    /// billing on m1 has account 1 on the broker of m0, which acknowledged it.
    fn acknowledged() -> Sample {
        Sample::of(&["broker@m0", "billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with("billing:1"))])
    }

    fn pending() -> BTreeSet<Blocker> {
        BTreeSet::from([Blocker::Pending(crate::compose::sample::node("m0"))])
    }

    #[test]
    fn a_machine_that_admits_the_newest_account_keeps_nobody_waiting() {
        assert!(found(&acknowledged()).is_empty());
    }

    #[test]
    fn a_machine_that_admits_an_older_account_only_keeps_its_consumer_waiting() {
        assert_eq!(
            found(&acknowledged().rotated("broker", "billing")),
            pending()
        );
    }

    #[test]
    fn a_machine_that_admits_the_account_to_less_than_is_wanted_keeps_its_consumer_waiting() {
        let mut sample = acknowledged();
        let billing = sample.mesh.services.get_mut("billing").unwrap();
        billing.consumes.get_mut("broker").unwrap().wants = wants("orders");
        assert_eq!(found(&sample), pending());
    }

    #[test]
    fn a_machine_whose_address_nobody_has_asked_keeps_its_consumer_waiting() {
        let mut sample = acknowledged();
        sample
            .fleet
            .get_mut("m0")
            .unwrap()
            .sent
            .as_mut()
            .unwrap()
            .at
            .address = "10.0.0.9".to_owned();
        assert_eq!(found(&sample), pending());
    }
}
