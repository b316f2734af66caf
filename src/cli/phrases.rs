//! What operators read of reasons, waits, blockers and failures: one phrase each, used wherever it is said.

mod failures;
mod sites;

use std::collections::{BTreeMap, BTreeSet};

use super::ui::without_number;
use crate::compose::services::Kept;
use crate::compose::services::Wait;
use crate::mesh::{Hold, Mesh};
use crate::provision::ProvisionId;
use crate::push::{Blocker, Reason};
use crate::words::{NodeName, ServiceName};

pub(super) use failures::{aftermath, failure_of, holds, problem, step};
pub(super) use sites::{
    authority, authority_expiry, expiry, gossip, identity, not_by_our_unit, renewal,
};

/// What to do about a mesh without a machine.
pub(super) const NO_MACHINES: &str =
    "this mesh has no machine yet: write [nodes.NAME] into mesh.toml";

/// How a consumer comes back whose account was revoked.
pub(super) fn issue_again(id: &ProvisionId) -> String {
    format!("`grid issue {id}` gives {} an account again", id.consumer)
}

/// What is typed to give a consumer an account: whom the mesh does not know is named as such.
pub(super) fn typed_issue(mesh: &Mesh, id: &ProvisionId) -> String {
    match mesh.services.contains_key(&id.consumer) {
        true => format!("grid issue {id}"),
        false => format!("grid issue {id} --outside"),
    }
}

/// `2 machines`.
pub(super) fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// `420 bytes`, `1.2 KiB`.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return count(usize::try_from(n).unwrap_or(usize::MAX), "byte");
    }
    let mut tenths = n.saturating_mul(10) / 1024;
    let mut unit = UNITS.iter();
    let mut name = unit.next();
    while tenths >= 10_240 {
        let Some(larger) = unit.next() else { break };
        tenths /= 1024;
        name = Some(larger);
    }
    format!(
        "{}.{} {}",
        tenths / 10,
        tenths % 10,
        name.copied().unwrap_or("bytes")
    )
}

/// A line with its digests cut to what people compare of them.
pub(super) fn short_digests(line: &str) -> String {
    let is_digest = |word: &&str| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = line.split(' ').map(|word| match word.get(..12) {
        Some(short) if is_digest(&word) => short,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `a, b, c`.
pub(super) fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

/// So many of many names are said; the others are counted.
const NAMED_MOST: usize = 12;

/// `a, b, c`; of many the first, and how many more there are.
pub(super) fn some_of<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut items: Vec<T> = items.into_iter().collect();
    let all = items.len();
    items.truncate(NAMED_MOST);
    first_of(items, all)
}

/// The same where the first are chosen already, of so many in `all`.
pub(super) fn first_of<T: std::fmt::Display>(
    first: impl IntoIterator<Item = T>,
    all: usize,
) -> String {
    let mut more = all;
    let named = list(first.into_iter().inspect(|_| more = more.saturating_sub(1)));
    match more {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What is to be done on each machine, once for all that are told the same.
pub(super) fn to_do_on<'a>(told: impl IntoIterator<Item = (&'a NodeName, &'a str)>) -> Vec<String> {
    let mut alike: Vec<(&str, Vec<&NodeName>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (node, hint) in told {
        let place = *places.entry(hint).or_insert_with(|| {
            alike.push((hint, Vec::new()));
            alike.len().saturating_sub(1)
        });
        if let Some((_, nodes)) = alike.get_mut(place) {
            nodes.push(node);
        }
    }
    let told = alike.into_iter();
    told.map(|(hint, nodes)| format!("{}: {hint}", some_of(nodes)))
        .collect()
}

/// Why a machine is behind.
pub(super) fn reasons(reasons: &[Reason]) -> String {
    // It was asked: what it holds where it is declared now is known, and is nothing.
    let is_moved = reasons.contains(&Reason::Moved);
    let is_told = |reason: &&Reason| !(is_moved && **reason == Reason::Uncertain);
    let phrases: Vec<String> = reasons
        .iter()
        .filter(is_told)
        .map(|reason| match reason {
            Reason::Uncertain => "nobody knows what it holds".to_owned(),
            Reason::NeedsMint(ids) => format!("to be minted: {}", list(ids)),
            Reason::NeedsIdentity => "its site has no identity yet".to_owned(),
            Reason::NeedsRenewal => "its site's identity is to be renewed".to_owned(),
            Reason::NeverSent => "never sent".to_owned(),
            Reason::TakenOver => "another store sent what it holds".to_owned(),
            Reason::Moved => "nothing was delivered yet where it is declared now".to_owned(),
            Reason::Differs(differences) => differences
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
            Reason::Uncomposable(why) => format!("cannot be composed: {}", without_number(why)),
        })
        .collect();
    phrases.join("; ")
}

/// `billing waits for broker on atlas`.
pub(super) fn wait(mesh: &Mesh, service: &ServiceName, wait: &Wait) -> String {
    match wait {
        Wait::Grant(providers) => {
            let providers = providers.iter().map(|provider| located(mesh, provider));
            format!("{service} waits for {}", list(providers))
        }
        Wait::Removal(nodes) => format!("{service} waits until it is removed from {}", list(nodes)),
    }
}

/// The same, with what blocks each provider.
pub(super) fn wait_blocked(
    mesh: &Mesh,
    service: &ServiceName,
    why: &Wait,
    by: &BTreeMap<ServiceName, BTreeSet<Blocker>>,
) -> String {
    let said = wait(mesh, service, why);
    // That a provider is on no machine, the wait itself says.
    let mut by = by.clone();
    for blockers in by.values_mut() {
        blockers.remove(&Blocker::Unassigned);
    }
    match blocked(&by) {
        by if by.is_empty() => said,
        by => format!("{said}: {by}"),
    }
}

/// What waits on one machine.
pub(super) fn waits(mesh: &Mesh, waiting: &BTreeMap<ServiceName, Wait>) -> String {
    waiting
        .iter()
        .map(|(service, why)| wait(mesh, service, why))
        .collect::<Vec<_>>()
        .join("; ")
}

/// `broker on atlas`.
fn located(mesh: &Mesh, service: &ServiceName) -> String {
    match mesh.services.get(service).map(|service| &service.nodes) {
        Some(nodes) if !nodes.is_empty() => format!("{service} on {}", list(nodes)),
        _ => format!("{service}, which is on no machine"),
    }
}

/// What keeps a provider from acknowledging.
pub(super) fn blocker(provider: &ServiceName, blocker: &Blocker) -> String {
    match blocker {
        Blocker::Unassigned => format!("{provider} is on no machine"),
        Blocker::OnHold(node, reason) => format!("{node} is on hold ({reason})"),
        Blocker::Failed(node) => format!("{node} failed"),
        Blocker::Uncertain(node) => format!("nobody knows what {node} holds"),
        Blocker::Waits(node) => format!("{provider} waits itself on {node}"),
        Blocker::Revoked => format!("{provider} has a revoked account itself"),
        Blocker::Pending(node) => format!("{node} has not acknowledged it yet"),
    }
}

/// What blocks each provider of a waiting service.
pub(super) fn blocked(blocked: &BTreeMap<ServiceName, BTreeSet<Blocker>>) -> String {
    let phrases: BTreeSet<String> = blocked
        .iter()
        .flat_map(|(provider, blockers)| blockers.iter().map(|one| blocker(provider, one)))
        .collect();
    list(phrases)
}

/// `in the rack on Monday, until 2026-12-01`.
pub(super) fn hold(hold: &Hold) -> String {
    match hold.until {
        Some(until) => format!("{}, until {until}", hold.reason),
        None => hold.reason.clone(),
    }
}

/// What a machine on hold owes.
pub(super) fn owes(providers: &BTreeSet<ServiceName>) -> String {
    format!("its list of {} is not what it should be", list(providers))
}

/// That a machine on hold keeps old secrets open.
pub(super) fn older(ids: &BTreeSet<ProvisionId>) -> String {
    match ids.len() {
        1 => format!(
            "it has the old secret of {}, which stays admitted until it has the new one",
            list(ids)
        ),
        _ => format!(
            "it has the old secrets of {}, which stay admitted until it has the new ones",
            list(ids)
        ),
    }
}

/// That a machine on hold runs services whose accounts are closed.
pub(super) fn shut_out(ids: &BTreeSet<ProvisionId>) -> String {
    let each = ids
        .iter()
        .map(|id| format!("{} there is shut out of {}", id.consumer, id.provider));
    format!("{}: the secret that it has was closed", list(each))
}

/// How that ends.
pub(super) fn ends_older(node: &NodeName, ids: &BTreeSet<ProvisionId>) -> String {
    let (secret, goes, typed) = match ids.len() {
        1 => ("secret", "goes", list(ids)),
        _ => {
            let typed: Vec<String> = ids.iter().map(ToString::to_string).collect();
            ("secrets", "go", typed.join(" "))
        }
    };
    format!(
        "the old {secret} of {} {goes} once {node} has the new: `grid unhold {node}`, then `grid push --behind`; or `grid rotate {typed} \
         --cut` and `grid push --behind` close the old at once, and shut out what is on {node}",
        list(ids)
    )
}

/// What still lies where a machine was sent to before.
pub(super) fn left_behind(places: &[String]) -> String {
    format!(
        "what it was sent before still lies at {}, secrets too",
        list(places)
    )
}

/// How that ends.
pub(super) fn ends_left_behind(node: &NodeName, places: &[String]) -> String {
    format!(
        "remove what lies at {}, then `grid forget {node} --left-behind` has nobody name it any more",
        list(places)
    )
}

/// That a service stays on a machine that the declaration took it from.
pub(super) fn keeps(kept: &Kept) -> String {
    let told = kept.iter().map(|(service, users)| match users.len() {
        0 => format!("keeps {service} until it is where it goes"),
        1 => format!("keeps {service}, which {} uses", list(users)),
        _ => format!("keeps {service}, which {} use", some_of(users)),
    });
    list(told)
}

/// How a service leaves a machine that keeps it.
pub(super) fn ends_keeping(
    service: &ServiceName,
    users: &BTreeSet<ServiceName>,
    nodes: &BTreeSet<NodeName>,
) -> String {
    let (use_it, unassign) = match (users.len(), users.first()) {
        (1, Some(user)) => ("uses", format!("`grid unassign {user}`")),
        _ => ("use", "`grid unassign` them".to_owned()),
    };
    format!(
        "{service} stays on {} while {} {use_it} it there: `grid assign {service} NODE` gives {service} another machine; or {unassign} too, \
         or take {service} out of `consumes`, and {service} goes after that",
        some_of(nodes),
        some_of(users)
    )
}

/// What to do about a machine that left the declaration, by what it may still hold.
pub(super) fn undeclared(node: &NodeName, holds: &BTreeSet<ServiceName>) -> String {
    if holds.is_empty() {
        return format!(
            "{node} holds no service of yours: `grid forget {node}` has it named no more; what lies below its `root` is yours to remove"
        );
    }
    let holds = some_of(holds);
    format!(
        "{node} holds {holds}: if it lives, declare {node} again, give {holds} another `node` or none, and push: that closes the accounts there and \
         takes all of it away; once {node} is gone, `grid forget {node}` has it named no more"
    )
}

/// What to do about a machine that is declared elsewhere than it was last reached.
pub(super) fn elsewhere(node: &NodeName, place: &str) -> String {
    format!(
        "{node} is declared elsewhere than it was last reached: if that is right, the next push asks there, and goes on; if it is wrong, put its \
         `address` or `root` right; if the machine at {place} is gone, `grid forget {node}` takes it as gone"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_are_told_the_same_to_do_are_told_once() {
        let names: Vec<NodeName> = (10..40)
            .map(|n| NodeName::new(&format!("m{n}")).unwrap())
            .collect();
        let told = names.iter().enumerate().map(|(n, node)| {
            let hint = if n == 1 { "trust it" } else { "is it up?" };
            (node, hint)
        });
        insta::assert_snapshot!(to_do_on(told).join("\n"), @"
        m10, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22 and 17 more: is it up?
        m11: trust it
        ");
        assert!(to_do_on([]).is_empty());
    }
}
