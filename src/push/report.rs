//! How a push ended: every machine that is not current is named, with what keeps it.

use std::collections::{BTreeMap, BTreeSet};

use super::behind::{Glance, Reason, Survey};
use super::blocker::{Blocker, blockers};
use super::fence::Whose;
use super::older::{kept_admitted, shut_out};
use super::{Named, Orders};
use crate::compose::grants;
use crate::compose::identities::{Renewal, standings};
use crate::compose::sent::Admitted;
use crate::compose::services::{Wait, revoked_accounts};
use crate::compose::{ComposeError, World};
use crate::delivery::Failure;
use crate::mesh::Hold;
use crate::provision::ProvisionId;
use crate::words::{NodeName, ServiceName, Token};

/// Why a machine failed in a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It was uncertain and could not be asked.
    Unsettled(Failure),
    /// It cannot be composed.
    Uncomposable(Box<ComposeError>),
    /// No connection was made.
    NotReached(Failure),
    /// It refused before it changed anything.
    Refused(Failure),
    /// It was named, holds what it should, and something of it could not be mended.
    Unwell(Failure),
    /// It put the previous release back.
    RolledBack {
        /// What failed.
        failure: Failure,
        /// The providers whose newer list stayed.
        lists: BTreeSet<ServiceName>,
    },
    /// Nobody knows what it holds.
    Uncertain(Failure),
    /// It does not hold the token of the send that this store knows of it.
    Fenced {
        /// Which; `None`: none, where one was expected.
        held: Option<Token>,
        /// Whose it is.
        whose: Whose,
        /// The last lines of its own log.
        log: Vec<String>,
    },
}

/// Why a service waits, down to what blocks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// For whom.
    pub wait: Wait,
    /// What blocks each provider that it waits for.
    pub blocked: BTreeMap<ServiceName, BTreeSet<Blocker>>,
}

/// How a push ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Its number.
    pub push: u64,
    /// Rounds after the first.
    pub rounds: usize,
    /// How many accounts it minted.
    pub minted: usize,
    /// The machines that acknowledged a send.
    pub sent: BTreeSet<NodeName>,
    /// The machines that failed.
    pub failed: BTreeMap<NodeName, Problem>,
    /// Those of them that are as they should be, as far as is known: nobody finds them behind, so each is contacted again
    /// when it is named.
    pub failed_current: BTreeSet<NodeName>,
    /// The machines that were contacted, and verified, without failing.
    pub contacted: BTreeSet<NodeName>,
    /// Machines on hold, with the reason; `named`: the operator named one of them.
    pub on_hold: BTreeMap<NodeName, Held>,
    /// What waits, by machine.
    pub waiting: BTreeMap<NodeName, BTreeMap<ServiceName, Waiting>>,
    /// What is revoked, by machine.
    pub revoked: BTreeMap<NodeName, BTreeSet<ServiceName>>,
    /// Which of their accounts that is.
    pub revoked_accounts: BTreeSet<ProvisionId>,
    /// Sites whose renewed identity waits for others to know it.
    pub renewals: BTreeMap<NodeName, Renewal>,
    /// Machines that are still behind and did not fail, with why.
    pub behind: BTreeMap<NodeName, Vec<Reason>>,
    /// Machines that were rolled back from what they should be, before this push.
    pub rolled_back: BTreeSet<NodeName>,
    /// Machines that are behind because the rounds ran out.
    pub out_of_rounds: BTreeSet<NodeName>,
    /// Machines that left the declaration, and those that moved: that are declared at another address or below another root than
    /// they were last reached. And where that was.
    pub undeclared: BTreeMap<NodeName, String>,
    /// The services that machines which left the declaration may still hold.
    pub still_held: BTreeMap<NodeName, BTreeSet<ServiceName>>,
    /// Machines that were sent to at another address or below another root before they were where they are declared now,
    /// and these places: what was sent still lies there.
    pub left_behind: BTreeMap<NodeName, Vec<String>>,
    /// Machines that were not sent to or contacted since somebody interrupted, or too many had failed.
    pub kept_back: BTreeSet<NodeName>,
    /// Whether somebody interrupted it.
    pub interrupted: bool,
    /// How many machines are as they should be, with nothing that waits on them.
    pub current: usize,
}

/// A machine on hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Why and until when.
    pub hold: Hold,
    /// Whether the operator named it.
    pub named: bool,
    /// Whether it is behind.
    pub behind: bool,
    /// Whether a send to it is not settled.
    pub uncertain: bool,
    /// The providers on it whose list is not what it should be: somebody is owed a grant or a revocation.
    pub owes: BTreeSet<ServiceName>,
    /// The accounts of which it has an older secret, which stays admitted for its sake.
    pub older: BTreeSet<ProvisionId>,
    /// The accounts of which it has a closed secret: its service runs on there, and is shut out.
    pub shut_out: BTreeSet<ProvisionId>,
}

/// How a push ended, in one word; each has its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing is behind and nothing waits.
    Done,
    /// Somebody interrupted it: 130.
    Interrupted,
    /// A machine holds what another store sent: 8.
    Fenced,
    /// Some machine failed, was rolled back, owes or waits: 4.
    Incomplete,
    /// Rounds ran out: 5.
    OutOfRounds,
}

impl Report {
    /// Where several hold, the first of interrupted, fenced, failed, out of rounds; waiting counts only when nothing more was
    /// to be sent.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.interrupted {
            return Verdict::Interrupted;
        }
        let fenced = |problem: &Problem| matches!(problem, Problem::Fenced { .. });
        if self.failed.values().any(fenced) {
            return Verdict::Fenced;
        }
        let held = |held: &Held| held.named || !held.owes.is_empty();
        if !self.failed.is_empty()
            || !self.rolled_back.is_empty()
            || self.on_hold.values().any(held)
        {
            return Verdict::Incomplete;
        }
        if !self.out_of_rounds.is_empty() || !self.behind.is_empty() {
            return Verdict::OutOfRounds;
        }
        if !self.waiting.is_empty() {
            return Verdict::Incomplete;
        }
        Verdict::Done
    }
}

/// Reads how the mesh stands at the end. What failed in the push is the caller's to add.
pub(super) fn report(world: &World<'_>, survey: &Survey, orders: &Orders) -> Report {
    let mut report = Report::default();
    let mut older = kept_admitted(world, orders.today);
    let mut shut_out = shut_out(world, orders.today);
    for (node, standing) in survey {
        let declared = world.mesh.nodes.get(node);
        let machine = world.machine(node);
        let hold = declared.and_then(|declared| declared.hold_in_force(orders.today));
        if let Some(place) = machine.elsewhere(declared) {
            report.undeclared.insert(node.clone(), place);
        }
        if !standing.revoked.is_empty() {
            let revoked = standing.revoked.clone();
            let accounts = revoked
                .iter()
                .filter_map(|name| world.mesh.services.get(name))
                .flat_map(|service| revoked_accounts(world, service));
            report.revoked_accounts.extend(accounts);
            report.revoked.insert(node.clone(), revoked);
        }
        if hold.is_none() && !standing.waits.is_empty() {
            let waits = standing.waits.iter().map(|(service, wait)| {
                let blocked = blocked(world, survey, service, wait, orders);
                let wait = wait.clone();
                (service.clone(), Waiting { wait, blocked })
            });
            report.waiting.insert(node.clone(), waits.collect());
        }
        if let Some(hold) = hold {
            let named = matches!(&orders.named, Named::Nodes(named) if named.contains(node));
            let held = Held {
                hold: hold.clone(),
                named,
                behind: standing.is_behind(),
                uncertain: machine.attempt.is_some(),
                owes: owes(world, node, standing),
                older: older.remove(node).unwrap_or_default(),
                shut_out: shut_out.remove(node).unwrap_or_default(),
            };
            report.on_hold.insert(node.clone(), held);
        } else if !standing.is_behind() {
            if standing.waits.is_empty() {
                report.current = report.current.saturating_add(1);
            }
        } else if standing.is_rolled_back {
            report.rolled_back.insert(node.clone());
        } else {
            report.behind.insert(node.clone(), standing.reasons.clone());
        }
    }
    let standings = standings(world).into_iter();
    report.renewals = standings
        .filter_map(|(site, standing)| Some((site, standing.renewal?)))
        .collect();
    for (node, machine) in world.fleet {
        if machine.is_known() && !world.mesh.nodes.contains_key(node) {
            let place = machine.elsewhere(None).unwrap_or_default();
            report.undeclared.insert(node.clone(), place);
            let held = machine.declarable().cloned().collect();
            report.still_held.insert(node.clone(), held);
        }
        let left = machine.left_behind(world.mesh.nodes.get(node));
        if !left.is_empty() {
            report.left_behind.insert(node.clone(), left);
        }
    }
    report
}

/// The providers on a machine that owes somebody: a grant that it does not admit for certain, or a revocation of one that it
/// may still admit. Where it is on hold, that is what keeps a push from being done.
#[must_use]
pub fn owes(world: &World<'_>, node: &NodeName, standing: &Glance) -> BTreeSet<ServiceName> {
    let machine = world.machine(node);
    let held = machine
        .possible()
        .filter(|(_, held)| held.grants.is_some())
        .map(|(name, _)| name);
    let declared = standing.lists.iter();
    declared
        .chain(held)
        .filter(|provider| {
            let list = grants::list(world, provider);
            let admitted = machine.admits(provider).unwrap_or(Admitted::Nothing);
            let owes_a_grant = list.iter().any(|grant| !admitted.contains(grant));
            let mut possible = machine.possible_lists(provider);
            owes_a_grant || possible.any(|loaded| !loaded.is_subset(&list))
        })
        .cloned()
        .collect()
}

fn blocked(
    world: &World<'_>,
    survey: &Survey,
    service: &ServiceName,
    wait: &Wait,
    orders: &Orders,
) -> BTreeMap<ServiceName, BTreeSet<Blocker>> {
    match wait {
        Wait::Removal(_) => BTreeMap::new(),
        Wait::Grant(providers) => providers
            .iter()
            .map(|provider| {
                let waits = |node: &NodeName| {
                    survey
                        .get(node)
                        .is_some_and(|glance| glance.waits.contains_key(provider))
                };
                (
                    provider.clone(),
                    blockers(world, provider, service, &waits, orders.today),
                )
            })
            .collect(),
    }
}
