//! Rule 1, grants (DESIGN.md, section 3): what a provider's machines are told.
//!
//! A provider's list is (a) the newest generation of every provision whose consumer is assigned and
//! consumes it, or that was issued by hand and nobody consumes; and (b) every generation that is in use. Revoked and
//! cut ones are on no list. A pure read: it mints nothing.

use super::World;
use super::manifest::{Grant, Grants};
use crate::kinds::Wants;
use crate::mesh::Mesh;
use crate::provision::State;
use crate::words::ServiceName;

/// The grant list of `provider`.
#[must_use]
pub fn list(world: &World<'_>, provider: &ServiceName) -> Grants {
    let mut grants = Grants::new();
    for (consumer, provision) in world.provisions.of(provider) {
        let newest = provision.newest();
        if newest.state != State::Live {
            continue;
        }
        if let Some(wants) = wanted(world.mesh, provider, consumer, provision.by_hand) {
            grants.insert(Grant {
                consumer: consumer.clone(),
                generation: newest.generation,
                wants,
            });
        }
    }
    for (consumer, accounts) in world.uses.consumers(provider) {
        let Some(provision) = world.provisions.get(provider, consumer) else {
            continue;
        };
        for (generation, wants) in accounts {
            if provision.is_live(*generation) {
                grants.insert(Grant {
                    consumer: consumer.clone(),
                    generation: *generation,
                    wants: Wants::clone(wants),
                });
            }
        }
    }
    grants
}

/// What the newest generation of an account is granted with: what its consumer, on some machine, is declared to want; or what is
/// wanted of the provider where nothing is said, if it was issued by hand and nobody consumes it. `None`: it is on no list
/// unless it is in use.
#[must_use]
pub fn wanted(
    mesh: &Mesh,
    provider: &ServiceName,
    consumer: &ServiceName,
    by_hand: bool,
) -> Option<Wants> {
    match mesh.consumption(provider, consumer) {
        Some(consumption) => Some(consumption.wants.clone()),
        None if by_hand => {
            let provides = mesh.services.get(provider)?.provides.as_ref()?;
            Some(provides.provider.default_wants())
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::grants::list;
    use crate::compose::sample::{Sample, bound, name, told, wants};

    fn broker(sample: &Sample) -> String {
        told(&list(&sample.world(), &name("broker")))
    }

    #[test]
    fn the_newest_generation_of_a_consumer_that_is_assigned_is_on_the_list() {
        let sample = Sample::of(&["broker@m0", "billing@m1<broker"]);
        assert_eq!(broker(&sample), "");
        let sample = sample.minted("broker", "billing");
        assert_eq!(broker(&sample), "billing:1");
        let sample = sample.rotated("broker", "billing");
        assert_eq!(broker(&sample), "billing:2");
    }

    #[test]
    fn a_consumer_that_is_on_no_machine_or_consumes_no_more_is_on_no_list() {
        let mut sample = Sample::of(&["broker@m0", "billing<broker"]).minted("broker", "billing");
        assert_eq!(broker(&sample), "");
        sample.declare("billing@m1");
        assert_eq!(broker(&sample), "");
    }

    #[test]
    fn an_account_that_was_issued_by_hand_needs_no_consumption() {
        let mut sample = Sample::of(&["broker@m0"]).issued("broker", "visitor");
        assert_eq!(broker(&sample), "visitor:1");
        sample.declare("visitor@m1<broker");
        assert_eq!(broker(&sample), "visitor:1");
    }

    #[test]
    fn an_account_that_was_issued_for_who_is_declared_to_consume_goes_with_the_declaration() {
        let on = |text: &str| {
            let mut sample =
                Sample::of(&["broker@m0", "billing@m1<broker"]).issued("broker", "billing");
            assert_eq!(broker(&sample), "billing:1");
            sample.declare(text);
            broker(&sample)
        };
        assert_eq!(on("billing<broker"), "");
        assert_eq!(on("billing@m1"), "");
        // So it is too where it was issued anew after it was revoked.
        let mut sample = Sample::of(&["broker@m0", "billing@m1"]).issued("broker", "billing");
        sample = sample.revoked("broker", "billing");
        sample.declare("billing@m1<broker");
        sample = sample.issued("broker", "billing");
        assert_eq!(broker(&sample), "billing:2");
        sample.declare("billing<broker");
        assert_eq!(broker(&sample), "");
    }

    #[test]
    fn every_generation_in_use_stays_on_the_list_by_last_sent_and_by_attempt() {
        let sample = Sample::of(&["broker@m0", "billing@m1<broker"])
            .minted("broker", "billing")
            .rotated("broker", "billing")
            .rotated("broker", "billing")
            .sent("m1", vec![("billing", bound("broker:1@m0"))])
            .attempted("m1", vec![("billing", bound("broker:2@m0"))]);
        assert_eq!(broker(&sample), "billing:1 billing:2 billing:3");
    }

    #[test]
    fn who_left_the_declaration_keeps_its_account_while_it_is_in_use() {
        let sample = Sample::of(&["broker@m0"])
            .minted("broker", "billing")
            .sent("m3", vec![("billing", bound("broker:1@m0"))]);
        assert_eq!(broker(&sample), "billing:1");
    }

    #[test]
    fn a_revoked_generation_is_on_no_list_although_it_is_in_use() {
        let sample = Sample::of(&["broker@m0", "billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m1", vec![("billing", bound("broker:1@m0"))])
            .revoked("broker", "billing");
        assert_eq!(broker(&sample), "");
    }

    #[test]
    fn a_cut_generation_is_on_no_list_and_the_newer_one_is() {
        let sample = Sample::of(&["broker@m0", "billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m1", vec![("billing", bound("broker:1@m0"))])
            .cut("broker", "billing");
        assert_eq!(broker(&sample), "billing:2");
    }

    #[test]
    fn what_was_wanted_before_stays_granted_beside_what_is_wanted_now() {
        let mut sample = Sample::of(&["broker@m0", "billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m1", vec![("billing", bound("broker:1@m0"))]);
        let billing = sample.mesh.services.get_mut("billing").unwrap();
        billing.consumes.get_mut("broker").unwrap().wants = wants("orders");
        let list = list(&sample.world(), &name("broker"));
        let both: Vec<_> = list.iter().map(|grant| grant.wants.clone()).collect();
        assert_eq!(both.len(), 2);
        assert!(both.contains(&wants("")) && both.contains(&wants("orders")));
    }
}
