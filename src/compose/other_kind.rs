//! A provider that is declared as another kind than it was when it gave accounts. No account goes over from one kind to another,
//! so nothing is composed of it: its consumers would be shut out, and what they had would stay open where nobody looks any more.

use std::collections::BTreeSet;
use std::fmt;

use super::manifest::{Bound, Grants};
use super::{ComposeError, World};
use crate::kinds::{Provider, Wants};
use crate::words::{NodeName, ServiceName};

/// What there is of another kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherKind {
    /// Which provider.
    pub provider: ServiceName,
    /// The kind that it had, as the declaration writes it.
    pub was: &'static str,
    /// The kind that it is declared as.
    pub now: &'static str,
    /// Who got accounts of the former kind.
    pub consumers: BTreeSet<ServiceName>,
    /// The machine that admits them although no machine uses them any more; absent: some machine does.
    pub unused_on: Option<NodeName>,
}

impl OtherKind {
    /// What to do about it, as a clause.
    #[must_use]
    pub fn remedy(&self) -> String {
        let Self {
            provider, was, now, ..
        } = self;
        let back = format!("give {provider} its `kind = \"{was}\"` back");
        let (consumers, accounts) = (names(&self.consumers), self.accounts());
        match (&self.unused_on, self.consumers.len()) {
            (Some(node), _) => format!(
                "{back} until a push has closed the {accounts} of {consumers} there, or, if the {was} one is gone for good, take it as gone \
                 with `grid forget {node} --service {provider}`"
            ),
            (None, consuming) => format!(
                "{back}, and declare the {now} one as a service with a name of its own (once {consumers} {} that and {} sent, {provider} \
                 can go)",
                if consuming == 1 {
                    "consumes"
                } else {
                    "consume"
                },
                if consuming == 1 { "was" } else { "were" },
            ),
        }
    }

    fn accounts(&self) -> &'static str {
        match self.consumers.len() {
            1 => "account",
            _ => "accounts",
        }
    }
}

impl fmt::Display for OtherKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            provider, was, now, ..
        } = self;
        let (consumers, accounts) = (names(&self.consumers), self.accounts());
        let whose = match self.consumers.len() {
            1 => "its",
            _ => "their",
        };
        write!(
            f,
            "{provider} was a {was} provider when {consumers} got {whose} {accounts} there, and is declared as a {now} one now: "
        )?;
        match (&self.unused_on, self.consumers.len()) {
            (Some(_), 1) => f.write_str("nothing would close that account any more"),
            (Some(_), _) => f.write_str("nothing would close those accounts any more"),
            (None, _) => f.write_str("no account goes over from one kind to another"),
        }
    }
}

fn names(consumers: &BTreeSet<ServiceName>) -> String {
    let names: Vec<&str> = consumers.iter().map(ServiceName::as_str).collect();
    names.join(", ")
}

/// Refuses to write the list of a provider on `node` while that is to admit, or may admit, accounts of another kind.
pub(super) fn refuse_list(
    world: &World<'_>,
    node: &NodeName,
    name: &ServiceName,
    provider: &Provider,
    grants: &Grants,
) -> Result<(), ComposeError> {
    let used = of_another(provider, grants.iter().map(|g| (&g.consumer, &g.wants)));
    let held = world.machine(node).possible_lists(name).flatten();
    let held = of_another(provider, held.map(|g| (&g.consumer, &g.wants)));
    let (found, unused_on) = match (used, held) {
        (Some(used), _) => (used, None),
        (None, Some(held)) => (held, Some(node.clone())),
        (None, None) => return Ok(()),
    };
    let (was, consumers) = found;
    Err(ComposeError::OtherKind(OtherKind {
        provider: name.clone(),
        was,
        now: provider.name(),
        consumers,
        unused_on,
    }))
}

/// Refuses to bind `consumer` to an account that a provider of another kind gave.
pub(super) fn refuse_binding(
    name: &ServiceName,
    provider: &Provider,
    consumer: &ServiceName,
    bound: &Bound,
) -> Result<(), ComposeError> {
    match of_another(provider, std::iter::once((consumer, &bound.wants))) {
        None => Ok(()),
        Some((was, consumers)) => Err(ComposeError::OtherKind(OtherKind {
            provider: name.clone(),
            was,
            now: provider.name(),
            consumers,
            unused_on: None,
        })),
    }
}

/// The first other kind that there is an account of, and who has one of it.
fn of_another<'a>(
    provider: &Provider,
    accounts: impl Iterator<Item = (&'a ServiceName, &'a Wants)>,
) -> Option<(&'static str, BTreeSet<ServiceName>)> {
    let mut others = accounts.filter(|(_, wants)| wants.name() != provider.name());
    let (first, wants) = others.next()?;
    let was = wants.name();
    let same = others.filter(|(_, wants)| wants.name() == was);
    let all = std::iter::once(first).chain(same.map(|(consumer, _)| consumer));
    Some((was, all.cloned().collect()))
}
