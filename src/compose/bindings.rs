//! Rule 2, bindings (DESIGN.md, section 3): which account a consumer is composed with, if any.
//!
//! The newest generation, or else the newest of those that the consumer has in use, that every machine
//! of its provider has acknowledged, or that stands on the list which the very same bundle loads first.
//! Thus no consumer starts against a provider that has not heard of it.

use std::collections::BTreeMap;

use super::World;
use super::manifest::{Bound, Grant};
use super::sent::Admitted;
use super::services::{Placed, is_taken_away};
use crate::kinds::Wants;
use crate::mesh::{Consumption, Service};
use crate::provision::Provision;
use crate::words::{NodeName, ServiceName};

/// What `consumer`, on `node`, is bound to at `provider`; `None`: it waits. `here` is what the bundle of
/// `node` holds so far. Rule 5 comes first: of a consumer that it does not take away, the newest generation is live.
#[must_use]
pub fn bind(
    world: &World<'_>,
    provider: &ServiceName,
    consumer: &Service,
    consumption: &Consumption,
    node: &NodeName,
    here: &BTreeMap<ServiceName, Placed>,
) -> Option<Bound> {
    let provision = world.provisions.get(provider, &consumer.name)?;
    let service = world.mesh.services.get(provider)?;
    if service.nodes.is_empty() {
        return None;
    }
    let declared = declared(consumer, consumption, provision);
    let used = world.uses.accounts(provider, &consumer.name).rev();
    let used = used.map(|(generation, wants)| Grant {
        consumer: consumer.name.clone(),
        generation: *generation,
        wants: Wants::clone(wants),
    });
    let bound_before = world
        .machine(node)
        .holds(&consumer.name)
        .is_some_and(|held| held.bindings.contains_key(provider));
    let bound = |grant: &Grant| Bound {
        generation: grant.generation,
        wants: grant.wants.clone(),
        nodes: service.nodes.clone(),
    };
    // A provider that rule 5 takes away acknowledges nothing.
    if !is_taken_away(world, service) {
        let acknowledged = std::iter::once(declared.clone())
            .chain(used)
            .filter(|grant| provision.is_live(grant.generation))
            .find(|grant| is_acknowledged(world, service, grant, node, here, bound_before));
        if let Some(grant) = acknowledged {
            return Some(bound(&grant));
        }
    }
    (!consumption.wait).then(|| bound(&declared))
}

/// The grant that a consumer is declared to need: its newest account, with what it wants of it now.
#[must_use]
pub fn declared(consumer: &Service, consumption: &Consumption, provision: &Provision) -> Grant {
    Grant {
        consumer: consumer.name.clone(),
        generation: provision.newest().generation,
        wants: consumption.wants.clone(),
    }
}

/// What a machine admits to `provider` for certain: nobody, where it was sent what it holds at another address, for
/// whoever answers there now may never have heard of it. `None`: it never was sent a list.
#[must_use]
pub fn admitted_on<'a>(
    world: &'a World<'_>,
    provider: &ServiceName,
    machine: &NodeName,
) -> Option<Admitted<'a>> {
    if world.is_elsewhere(machine) {
        return Some(Admitted::Nothing);
    }
    world.machine(machine).admits(provider)
}

/// Whether every machine of the provider has acknowledged the grant: on the list that this bundle
/// loads first, where the provider is on the same machine; elsewhere on what the machine admits for
/// certain. A further machine that never was sent a list does not count against a consumer that
/// is bound already; but one at least must admit it.
fn is_acknowledged(
    world: &World<'_>,
    provider: &Service,
    grant: &Grant,
    node: &NodeName,
    here: &BTreeMap<ServiceName, Placed>,
    bound_before: bool,
) -> bool {
    let mut admitting = 0_usize;
    for machine in &provider.nodes {
        let admits = if machine == node {
            let list = here.get(&provider.name).and_then(Placed::grants);
            Some(list.map_or(Admitted::Nothing, Admitted::List))
        } else {
            admitted_on(world, &provider.name, machine)
        };
        match admits {
            None if bound_before => {}
            Some(admits) if admits.contains(grant) => admitting = admitting.saturating_add(1),
            _ => return false,
        }
    }
    admitting > 0
}

#[cfg(test)]
mod tests {
    use crate::compose::sample::{Sample, bound, with};

    /// A broker on m0 that acknowledged `acknowledged`, and billing on m1.
    fn cross_node(acknowledged: &str) -> Sample {
        Sample::of(&["broker@m0", "billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with(acknowledged))])
    }

    #[test]
    fn a_consumer_waits_until_its_grant_is_acknowledged() {
        assert_eq!(cross_node("").composed("m1"), "billing waits for broker");
        let sample = cross_node("billing:1");
        assert_eq!(sample.composed("m1"), "billing(broker:1@m0)[]");
    }

    #[test]
    fn who_does_not_wait_is_bound_at_once() {
        let mut sample = cross_node("");
        sample.declare("billing@m1<broker?");
        assert_eq!(sample.composed("m1"), "billing(broker:1@m0)[]");
    }

    #[test]
    fn a_consumer_keeps_the_generation_in_use_until_the_newest_is_acknowledged() {
        let sample = |acknowledged| {
            cross_node(acknowledged)
                .rotated("broker", "billing")
                .sent("m1", vec![("billing", bound("broker:1@m0"))])
        };
        let before = sample("billing:1");
        assert_eq!(before.composed("m1"), "billing(broker:1@m0)[]");
        let after = sample("billing:1 billing:2");
        assert_eq!(after.composed("m1"), "billing(broker:2@m0)[]");
    }

    #[test]
    fn of_several_in_use_the_newest_that_is_acknowledged_counts() {
        let sample = cross_node("billing:1 billing:2")
            .rotated("broker", "billing")
            .rotated("broker", "billing")
            .sent("m1", vec![("billing", bound("broker:1@m0"))])
            .attempted("m2", vec![("billing", bound("broker:2@m0"))]);
        assert_eq!(sample.composed("m1"), "billing(broker:2@m0)[]");
    }

    #[test]
    fn an_older_generation_that_nobody_uses_is_not_gone_back_to() {
        let sample = cross_node("billing:1").rotated("broker", "billing");
        assert_eq!(sample.composed("m1"), "billing waits for broker");
    }

    #[test]
    fn a_cut_generation_is_not_gone_back_to() {
        let sample = cross_node("billing:1")
            .sent("m1", vec![("billing", bound("broker:1@m0"))])
            .cut("broker", "billing");
        assert_eq!(
            sample.composed("m1"),
            "billing(kept)[]; billing waits for broker"
        );
    }

    #[test]
    fn every_machine_of_the_provider_has_to_acknowledge() {
        let mut sample = cross_node("billing:1").sent("m2", vec![("broker", with(""))]);
        sample.declare("broker@m0+m2");
        assert_eq!(sample.composed("m1"), "billing waits for broker");
        let sample = sample.sent("m2", vec![("broker", with("billing:1"))]);
        assert_eq!(sample.composed("m1"), "billing(broker:1@m0+m2)[]");
    }

    #[test]
    fn a_further_machine_that_never_had_a_list_counts_only_against_who_is_not_bound() {
        let mut sample = cross_node("billing:1");
        sample.declare("broker@m0+m2");
        assert_eq!(sample.composed("m1"), "billing waits for broker");
        let sample = sample.sent("m1", vec![("billing", bound("broker:1@m0"))]);
        assert_eq!(sample.composed("m1"), "billing(broker:1@m0+m2)[]");
    }

    #[test]
    fn one_machine_at_least_has_to_acknowledge_even_for_who_is_bound() {
        let mut sample = cross_node("billing:1");
        sample.declare("broker@m2");
        let sample = sample.sent("m1", vec![("billing", bound("broker:1@m0"))]);
        assert_eq!(
            sample.composed("m1"),
            "billing(kept)[]; billing waits for broker"
        );
    }

    #[test]
    fn a_list_that_the_same_bundle_loads_first_will_do() {
        let sample = Sample::of(&["broker@m0", "billing@m0<broker", "audit@m0<billing"])
            .minted("broker", "billing")
            .minted("billing", "audit");
        assert_eq!(
            sample.composed("m0"),
            "audit(billing:1@m0)[]; billing(broker:1@m0)[audit:1]; broker()[billing:1]"
        );
    }

    #[test]
    fn while_an_attempt_is_not_settled_both_lists_have_to_hold_the_grant() {
        let dropped = cross_node("billing:1").attempted("m0", vec![("broker", with(""))]);
        assert_eq!(dropped.composed("m1"), "billing waits for broker");
        let added = cross_node("").attempted("m0", vec![("broker", with("billing:1"))]);
        assert_eq!(added.composed("m1"), "billing waits for broker");
        let both = cross_node("billing:1").attempted("m0", vec![("broker", with("billing:1"))]);
        assert_eq!(both.composed("m1"), "billing(broker:1@m0)[]");
    }

    #[test]
    fn a_provider_that_rule_5_takes_away_acknowledges_nothing() {
        let mut sample = cross_node("billing:1").minted("cluster", "broker");
        sample.declare("cluster@m3");
        sample.declare("broker@m0<cluster");
        let sample = sample.revoked("cluster", "broker");
        assert_eq!(sample.composed("m1"), "billing waits for broker");
    }

    #[test]
    fn a_provider_on_no_machine_is_waited_for() {
        let mut sample = cross_node("billing:1");
        sample.declare("broker");
        assert_eq!(sample.composed("m1"), "billing waits for broker");
    }

    #[test]
    fn the_rest_of_the_machine_goes_ahead() {
        let mut sample = cross_node("");
        sample.declare("other@m1");
        assert_eq!(sample.composed("m1"), "other()[]; billing waits for broker");
    }
}
