//! Rules 3 to 5 (DESIGN.md, section 3): which services a machine holds, and which of them wait.
//!
//! 3. *Leaving*: a service that the declaration took from a machine stays while it is in use there (services
//!    that are bound in a circle and all leave do not keep each other). One that stays and
//!    provides no more has a list until that is empty.
//! 4. *Moving*: one to which nobody binds starts on its new machine once the old one acknowledged its
//!    removal, or the other way round with `move = "start-first"`; one to which somebody binds starts first.
//! 5. *Revoked*: a service with a revoked consumption is composed away, or stays as last acknowledged
//!    while it is in use; it does not wait.
//!
//! A service that waits stays as last acknowledged, or stays out; its own grant list is current all the same.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use super::bindings;
use super::grants;
use super::manifest::{Bound, Grants};
use crate::mesh::{Move, Service};
use crate::provision::{Provision, ProvisionId};
use crate::words::{NodeName, ServiceName};

/// A service in a bundle, before its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// As the declaration says now.
    Declared {
        /// Its accounts, by provider.
        bindings: BTreeMap<ServiceName, Bound>,
        /// Its list, if it provides.
        grants: Option<Grants>,
    },
    /// As last acknowledged, but for its list.
    Kept {
        /// Its list, if it provides.
        grants: Option<Grants>,
    },
}

impl Placed {
    /// Its list, if it provides.
    #[must_use]
    pub fn grants(&self) -> Option<&Grants> {
        match self {
            Self::Declared { grants, .. } | Self::Kept { grants } => grants.as_ref(),
        }
    }
}

/// Why a service waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// For these providers to acknowledge a grant (rule 2).
    Grant(BTreeSet<ServiceName>),
    /// For these machines to acknowledge its removal (rule 4).
    Removal(BTreeSet<NodeName>),
}

/// A machine's services, before their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// What the bundle holds.
    pub services: BTreeMap<ServiceName, Placed>,
    /// What is assigned here and waits.
    pub waits: BTreeMap<ServiceName, Wait>,
    /// What is assigned here and has a revoked consumption.
    pub revoked: BTreeSet<ServiceName>,
    /// What stays here although the declaration took it away.
    pub keeps: Kept,
}

/// Services that stay where the declaration took them from (rule 3), and who is bound to each there; of one that starts elsewhere
/// first, perhaps nobody.
pub type Kept = BTreeMap<ServiceName, BTreeSet<ServiceName>>;

/// Rule 5: the revoked accounts of a service, of those that it is declared to need.
pub fn revoked_accounts(world: &World<'_>, service: &Service) -> impl Iterator<Item = ProvisionId> {
    let is_revoked = |provider: &&ServiceName| {
        let provision = world.provisions.get(provider, &service.name);
        provision.is_some_and(Provision::is_revoked)
    };
    let providers = service.consumes.keys().filter(is_revoked);
    providers.map(|provider| ProvisionId {
        provider: provider.clone(),
        consumer: service.name.clone(),
    })
}

/// Rule 5: whether a service has a revoked consumption.
#[must_use]
pub fn is_taken_away(world: &World<'_>, service: &Service) -> bool {
    revoked_accounts(world, service).next().is_some()
}

/// Rule 4: the machines whose acknowledgement of its removal a service that is new on `node` has to await.
fn removals_to_await(world: &World<'_>, service: &Service, node: &NodeName) -> BTreeSet<NodeName> {
    let new_here = world.machine(node).holds(&service.name).is_none();
    let somebody_binds = world.uses.is_bound_to(&service.name);
    if !new_here || service.moves == Move::StartFirst || somebody_binds {
        return BTreeSet::new();
    }
    world
        .uses
        .holders(&service.name)
        .filter(|other| !service.nodes.contains(*other))
        .cloned()
        .collect()
}

fn is_assigned(world: &World<'_>, name: &ServiceName, node: &NodeName) -> bool {
    let service = world.mesh.services.get(name);
    service.is_some_and(|service| service.nodes.contains(node))
}

/// Rules 3 and 4: whether a service that the declaration took from `node` stays there for now. One that rule 5
/// takes away will not start elsewhere, so nothing is awaited.
fn stays(world: &World<'_>, name: &ServiceName, node: &NodeName) -> bool {
    let starts_first = world.mesh.services.get(name).is_some_and(|service| {
        service.moves == Move::StartFirst
            && !is_taken_away(world, service)
            && service
                .nodes
                .iter()
                .any(|new| !world.machine(new).surely_holds(name))
    });
    let assigned = |machine: &NodeName, service: &ServiceName| is_assigned(world, service, machine);
    starts_first || world.uses.is_kept(name, node, assigned)
}

/// Rule 3, of a service that stays and provides no more: it has a list until that is empty there. Without its load
/// nobody could close the accounts that it still admits.
fn stops_providing(world: &World<'_>, service: &Service, node: &NodeName) -> bool {
    let mut lists = world.machine(node).possible_lists(&service.name);
    service.provides.is_none() && lists.any(|list| !list.is_empty())
}

/// As last acknowledged on `node`, with a current list.
fn kept(world: &World<'_>, name: &ServiceName, node: &NodeName) -> Option<Placed> {
    let held = world.machine(node).holds(name)?;
    let grants = held.grants.as_ref().map(|_| grants::list(world, name));
    Some(Placed::Kept { grants })
}

/// What `service` is composed with on `node`, or why it waits. `here`: the bundle so far.
fn start(
    world: &World<'_>,
    service: &Service,
    node: &NodeName,
    here: &BTreeMap<ServiceName, Placed>,
) -> Result<Placed, Wait> {
    let old = removals_to_await(world, service, node);
    if !old.is_empty() {
        return Err(Wait::Removal(old));
    }
    let mut bindings = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for (provider, consumption) in &service.consumes {
        match bindings::bind(world, provider, service, consumption, node, here) {
            Some(bound) => {
                bindings.insert(provider.clone(), bound);
            }
            None => {
                missing.insert(provider.clone());
            }
        }
    }
    if !missing.is_empty() {
        return Err(Wait::Grant(missing));
    }
    let has_list = service.provides.is_some() || stops_providing(world, service, node);
    let grants = has_list.then(|| grants::list(world, &service.name));
    Ok(Placed::Declared { bindings, grants })
}

/// Which services `node` holds. Providers on it count for the consumers on it, so services are taken until
/// none further can start.
#[must_use]
pub fn outline(world: &World<'_>, node: &NodeName) -> Outline {
    let mut outline = Outline::default();
    let mut todo: Vec<&Service> = world.services_on(node).collect();
    loop {
        let before = todo.len();
        todo.retain(|service| !take(world, service, node, &mut outline));
        if todo.len() == before {
            break;
        }
    }
    for service in todo {
        if let Some(placed) = kept(world, &service.name, node) {
            outline.services.insert(service.name.clone(), placed);
        }
    }
    for (name, _) in world.machine(node).services() {
        if !is_assigned(world, name, node)
            && stays(world, name, node)
            && let Some(placed) = kept(world, name, node)
        {
            let users = world.uses.users(name, node).cloned().collect();
            outline.keeps.insert(name.clone(), users);
            outline.services.insert(name.clone(), placed);
        }
    }
    outline
}

/// Takes one service into the outline; returns whether it is done with.
fn take(world: &World<'_>, service: &Service, node: &NodeName, outline: &mut Outline) -> bool {
    let name = &service.name;
    if is_taken_away(world, service) {
        outline.revoked.insert(name.clone());
        if world.uses.is_machine_in_use(name, node)
            && let Some(placed) = kept(world, name, node)
        {
            outline.services.insert(name.clone(), placed);
        }
        return true;
    }
    match start(world, service, node, &outline.services) {
        Ok(placed) => {
            outline.waits.remove(name);
            outline.services.insert(name.clone(), placed);
            true
        }
        Err(wait) => {
            outline.waits.insert(name.clone(), wait);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::outline;
    use crate::compose::sample::{Sample, bound, bound_unwaited, name, node, with};

    #[test]
    fn a_service_that_leaves_stays_while_it_is_in_use_there() {
        let sample = Sample::of(&["billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with("billing:1"))]);
        assert_eq!(sample.composed("m0"), "");
        let sample = sample.sent("m1", vec![("billing", bound("broker:1@m0"))]);
        assert_eq!(sample.composed("m0"), "broker(kept)[billing:1]");
        let keeps = |on: &str| outline(&sample.world(), &node(on)).keeps;
        assert_eq!(
            keeps("m0"),
            [(name("broker"), [name("billing")].into())].into()
        );
        assert!(keeps("m1").is_empty());
    }

    #[test]
    fn a_service_that_leaves_stays_while_an_attempt_may_use_it_there() {
        let sample = Sample::of(&["billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with("billing:1"))])
            .attempted("m1", vec![("billing", bound("broker:1@m0"))]);
        assert_eq!(sample.composed("m0"), "broker(kept)[billing:1]");
    }

    #[test]
    fn what_starts_first_stays_while_the_new_machine_may_have_lost_it() {
        let sample = Sample::of(&["broker@m1"])
            .starts_first("broker")
            .sent("m0", vec![("broker", with(""))])
            .sent("m1", vec![("broker", with(""))]);
        assert_eq!(sample.composed("m0"), "");
        let sample = sample.attempted("m1", vec![]);
        assert_eq!(sample.composed("m0"), "broker(kept)[]");
    }

    #[test]
    fn a_service_in_use_elsewhere_leaves() {
        let sample = Sample::of(&["broker@m2", "billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with("billing:1"))])
            .sent("m1", vec![("billing", bound("broker:1@m2"))]);
        assert_eq!(sample.composed("m0"), "");
    }

    #[test]
    fn a_service_that_provides_no_more_closes_its_accounts_before_it_changes() {
        let sample = |others: &[&str]| {
            Sample::of(others)
                .provides_no_more("broker")
                .minted("broker", "billing")
                .sent("m0", vec![("broker", with("billing:1"))])
                .sent("m1", vec![("billing", bound("broker:1@m0"))])
        };
        let used = sample(&["broker@m0", "billing@m1"]);
        assert_eq!(used.composed("m0"), "broker()[billing:1]");
        let left = used.sent("m1", vec![]);
        assert_eq!(left.composed("m0"), "broker()[]");
        assert!(left.has_a_list("m0", "broker"));
        let closed = left.sent("m0", vec![("broker", with(""))]);
        assert!(!closed.has_a_list("m0", "broker"));
    }

    #[test]
    fn services_that_are_bound_in_a_circle_and_all_leave_do_not_keep_each_other() {
        let circle = |others: &[&str]| {
            Sample::of(others)
                .minted("a", "b")
                .minted("b", "a")
                .sent("m0", vec![("a", bound_unwaited("b:1@m1"))])
                .sent("m1", vec![("b", bound("a:1@m0"))])
        };
        let sample = circle(&[]);
        assert_eq!(sample.composed("m1"), "");
        assert_eq!(sample.composed("m0"), "a(kept)[b:1]"); // until b has left
        let needed = circle(&["billing@m2"]).sent("m2", vec![("billing", bound("a:1@m0"))]);
        assert_eq!(needed.composed("m1"), "b(kept)[a:1]");
    }

    #[test]
    fn what_stops_first_waits_for_its_removal_from_the_old_machine() {
        let sample = Sample::of(&["broker@m1"]).sent("m0", vec![("broker", with(""))]);
        assert_eq!(
            sample.composed("m1"),
            "broker waits for its removal from m0"
        );
        assert_eq!(sample.composed("m0"), "");
        let sample = sample.sent("m0", vec![]);
        assert_eq!(sample.composed("m1"), "broker()[]");
    }

    #[test]
    fn its_removal_is_awaited_also_from_a_machine_that_only_may_have_it() {
        let sample = Sample::of(&["broker@m1"]).attempted("m0", vec![("broker", with(""))]);
        assert_eq!(
            sample.composed("m1"),
            "broker waits for its removal from m0"
        );
    }

    #[test]
    fn what_starts_first_stays_on_the_old_machine_until_the_new_one_has_it() {
        let sample = Sample::of(&["broker@m1"])
            .starts_first("broker")
            .sent("m0", vec![("broker", with(""))]);
        assert_eq!(sample.composed("m1"), "broker()[]");
        assert_eq!(sample.composed("m0"), "broker(kept)[]");
        let sample = sample.sent("m1", vec![("broker", with(""))]);
        assert_eq!(sample.composed("m0"), "");
    }

    #[test]
    fn one_to_which_somebody_binds_starts_first_whatever_it_says() {
        let sample = Sample::of(&["broker@m1", "billing@m2<broker"])
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with("billing:1"))])
            .sent("m2", vec![("billing", bound("broker:1@m0"))]);
        assert_eq!(sample.composed("m1"), "broker()[billing:1]");
        assert_eq!(sample.composed("m0"), "broker(kept)[billing:1]");
    }

    #[test]
    fn a_service_that_is_said_to_be_gone_is_not_awaited() {
        let sample = Sample::of(&["broker@m1"])
            .sent("m0", vec![("broker", with(""))])
            .forgotten("m0", "broker");
        assert_eq!(sample.composed("m1"), "broker()[]");
    }

    #[test]
    fn a_service_that_was_there_before_does_not_wait_for_removals() {
        let sample = Sample::of(&["broker@m1"])
            .sent("m0", vec![("broker", with(""))])
            .sent("m1", vec![("broker", with(""))]);
        assert_eq!(sample.composed("m1"), "broker()[]");
    }

    fn revoked(others: &[&str]) -> Sample {
        let services = [&["broker@m0", "billing@m1<broker"], others].concat();
        Sample::of(&services)
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with("billing:1"))])
            .sent("m1", vec![("billing", bound("broker:1@m0"))])
            .revoked("broker", "billing")
    }

    #[test]
    fn a_revoked_service_is_composed_away_and_does_not_wait() {
        assert_eq!(revoked(&[]).composed("m1"), "billing is revoked");
    }

    #[test]
    fn a_revoked_service_that_is_in_use_stays_as_last_acknowledged() {
        let sample = revoked(&["audit@m2<billing"])
            .minted("billing", "audit")
            .sent("m2", vec![("audit", bound("billing:1@m1"))]);
        assert_eq!(
            sample.composed("m1"),
            "billing(kept)[audit:1]; billing is revoked"
        );
    }

    #[test]
    fn issuing_again_ends_a_revocation() {
        let sample = revoked(&[]).issued("broker", "billing");
        assert_eq!(
            sample.composed("m1"),
            "billing(kept)[]; billing waits for broker"
        );
    }

    #[test]
    fn a_revoked_service_leaves_its_old_machine_although_it_starts_first() {
        let mut sample = revoked(&[]);
        sample.declare("billing@m2<broker");
        let sample = sample.starts_first("billing");
        assert_eq!(sample.composed("m1"), "");
        assert_eq!(sample.composed("m2"), "billing is revoked");
    }

    #[test]
    fn the_list_of_a_service_that_waits_is_current_all_the_same() {
        let sample = Sample::of(&["cluster@m0", "broker@m1<cluster", "billing@m2<broker"])
            .minted("cluster", "broker")
            .minted("broker", "billing")
            .sent("m1", vec![("broker", with(""))]);
        assert_eq!(
            sample.composed("m1"),
            "broker(kept)[billing:1]; broker waits for cluster"
        );
    }
}
