//! What is *in use* (DESIGN.md, section 3), one of the two notions that all rules rest on; the other, *acknowledged*, stands in
//! `sent`.

use std::collections::{BTreeMap, BTreeSet};

use super::manifest::Bound;
use super::sent::Fleet;
use crate::kinds::Wants;
use crate::words::{Generation, NodeName, ServiceName};

/// Who is bound to a provider on one machine: a service on a machine, and whether it waits for the provider.
type Binders<'a> = BTreeMap<(&'a NodeName, &'a ServiceName), bool>;

/// Accounts of one consumer on one provider, oldest first. Nearly always there is one, so it is no map.
type Accounts<'a> = Vec<(Generation, &'a Wants)>;

/// What is *in use*: while the last sent, or an unsettled attempt, of any machine binds to it.
#[derive(Debug, Clone, Default)]
pub struct Uses<'a> {
    accounts: BTreeMap<&'a ServiceName, BTreeMap<&'a ServiceName, Accounts<'a>>>,
    machines: BTreeMap<&'a ServiceName, BTreeMap<&'a NodeName, Binders<'a>>>,
    holders: BTreeMap<&'a ServiceName, BTreeSet<&'a NodeName>>,
}

impl<'a> Uses<'a> {
    /// Reads the fleet.
    #[must_use]
    pub fn of(fleet: &'a Fleet) -> Self {
        let mut uses = Self::default();
        for (node, machine) in fleet {
            for (consumer, service) in machine.possible() {
                uses.holders.entry(consumer).or_default().insert(node);
                for (provider, bound) in &service.bindings {
                    let waits = !service.unwaited.contains(provider);
                    uses.add(provider, (node, consumer), bound, waits);
                }
            }
        }
        uses
    }

    fn add(
        &mut self,
        provider: &'a ServiceName,
        binder: (&'a NodeName, &'a ServiceName),
        bound: &'a Bound,
        waits: bool,
    ) {
        let accounts = self
            .accounts
            .entry(provider)
            .or_default()
            .entry(binder.1)
            .or_default();
        let account = (bound.generation, &bound.wants);
        if let Err(at) = accounts.binary_search(&account) {
            accounts.insert(at, account);
        }
        let machines = self.machines.entry(provider).or_default();
        for machine in &bound.nodes {
            let binders = machines.entry(machine).or_default();
            *binders.entry(binder).or_default() |= waits;
        }
    }

    /// The accounts of `consumer` on `provider` that are in use, oldest first.
    pub fn accounts(
        &self,
        provider: &ServiceName,
        consumer: &ServiceName,
    ) -> impl DoubleEndedIterator<Item = &(Generation, &'a Wants)> {
        self.accounts
            .get(provider)
            .and_then(|consumers| consumers.get(consumer))
            .into_iter()
            .flatten()
    }

    /// Every account on `provider` that is in use.
    pub fn consumers(
        &self,
        provider: &ServiceName,
    ) -> impl Iterator<Item = (&'a ServiceName, &[(Generation, &'a Wants)])> {
        let consumers = self.accounts.get(provider).into_iter().flatten();
        consumers.map(|(consumer, accounts)| (*consumer, accounts.as_slice()))
    }

    /// The machines that may hold `service`: as last acknowledged, or as attempted.
    pub fn holders(&self, service: &ServiceName) -> impl Iterator<Item = &'a NodeName> {
        self.holders.get(service).into_iter().flatten().copied()
    }

    /// Whether somebody is bound to `provider`, on whatever machine.
    #[must_use]
    pub fn is_bound_to(&self, provider: &ServiceName) -> bool {
        self.machines
            .get(provider)
            .is_some_and(|nodes| !nodes.is_empty())
    }

    /// Whether somebody is bound to `provider` on `node`.
    #[must_use]
    pub fn is_machine_in_use(&self, provider: &ServiceName, node: &NodeName) -> bool {
        self.machines
            .get(provider)
            .is_some_and(|nodes| nodes.contains_key(node))
    }

    /// The services that are bound to `provider` on `node`, on whatever machine they are.
    pub fn users(
        &self,
        provider: &ServiceName,
        node: &NodeName,
    ) -> impl Iterator<Item = &'a ServiceName> {
        self.binders(provider, node)
            .map(|((_, service), _)| *service)
    }

    fn binders(
        &self,
        provider: &ServiceName,
        node: &NodeName,
    ) -> impl Iterator<Item = (&(&'a NodeName, &'a ServiceName), &bool)> {
        let machines = self.machines.get(provider);
        machines.and_then(|m| m.get(node)).into_iter().flatten()
    }

    /// Whether somebody keeps `provider`, which is to leave `node`, there: whoever is bound to it. But of services
    /// that all leave and are bound in a circle each would keep the other for ever; so one that does not wait for the
    /// provider keeps it only if something that is `assigned` is bound to that one, by however many links.
    #[must_use]
    pub fn is_kept(
        &self,
        provider: &ServiceName,
        node: &NodeName,
        assigned: impl Fn(&NodeName, &ServiceName) -> bool,
    ) -> bool {
        if self.binders(provider, node).any(|(_, waits)| *waits) {
            return true;
        }
        let mut seen = BTreeSet::new();
        let mut todo: Vec<&(&NodeName, &ServiceName)> =
            self.binders(provider, node).map(|(who, _)| who).collect();
        while let Some(binder) = todo.pop() {
            let (machine, service) = binder;
            if assigned(machine, service) {
                return true;
            }
            if seen.insert(binder) {
                todo.extend(self.binders(service, machine).map(|(who, _)| who));
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::{Sample, bound, name, node};

    #[test]
    fn an_account_and_its_providers_machine_are_in_use_by_last_sent_and_by_attempt() {
        let sample = Sample::of(&[])
            .sent("m1", vec![("billing", bound("broker:1@m0"))])
            .attempted("m1", vec![("billing", bound("broker:2@m2"))]);
        let uses = Uses::of(&sample.fleet);
        let generations: Vec<u32> = uses
            .accounts(&name("broker"), &name("billing"))
            .map(|(generation, _)| generation.number)
            .collect();
        assert_eq!(generations, [1, 2]);
        for (machine, in_use) in [("m0", true), ("m1", false), ("m2", true)] {
            assert_eq!(
                uses.is_machine_in_use(&name("broker"), &node(machine)),
                in_use
            );
        }
        assert!(uses.is_bound_to(&name("broker")));
        assert!(!uses.is_bound_to(&name("billing")));
    }
}
