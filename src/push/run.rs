//! A push under way: what it knows so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::behind::{Survey, survey};
use super::event::Event;
use super::fence::whose;
use super::known::Known;
use super::report::{Problem, Report, report};
use super::{Named, Orders, PushError};
use crate::compose::manifest::Manifest;
use crate::compose::sent::Machine;
use crate::compose::services::Wait;
use crate::compose::sources::Sources;
use crate::compose::{Composer, World};
use crate::delivery::{Gate, Secrets, Target};
use crate::mesh::Mesh;
use crate::store::{Change, Store, StoreError};
use crate::words::{Chance, NodeName, ServiceName, Token};

/// How many rounds a push may need beyond two for each link of the longest chain of consumers. A chain that moves
/// as a whole starts on its new machines from its first provider to its last consumer, one link a round,
/// and then leaves the old ones the other way round; minting, and a first round that names a machine which has
/// nothing to do with it, come on top.
const SPARE_ROUNDS: usize = 4;

/// Through what a push acts and speaks.
pub(super) struct Through<'a> {
    pub(super) store: &'a mut dyn Store,
    pub(super) chance: &'a mut dyn Chance,
    pub(super) gate: Gate,
    pub(super) hear: &'a mut dyn FnMut(Event),
}

pub(super) struct Run<'a> {
    pub(super) mesh: &'a Mesh,
    pub(super) orders: &'a Orders,
    pub(super) composer: Composer,
    pub(super) sources: Arc<dyn Sources>,
    pub(super) store: &'a mut dyn Store,
    pub(super) chance: &'a mut dyn Chance,
    pub(super) gate: Gate,
    pub(super) hear: &'a mut dyn FnMut(Event),
    pub(super) state: Known,
    /// The machines of which more is known than is on disk.
    pub(super) unrecorded: BTreeSet<NodeName>,
    /// Whether this push's number is on disk: it goes with the first commit.
    is_numbered: bool,
    pub(super) round: usize,
    pub(super) failed: BTreeMap<NodeName, Problem>,
    pub(super) contacted: BTreeSet<NodeName>,
    /// Of each machine that was sent to: the services that no send of this push has verified.
    pub(super) unverified: BTreeMap<NodeName, BTreeSet<ServiceName>>,
    pub(super) sent: BTreeSet<NodeName>,
    pub(super) emptied: BTreeSet<NodeName>,
    /// Services that were said to be gone from a machine, and that the send under way brings again.
    pub(super) said_gone: BTreeMap<NodeName, BTreeSet<ServiceName>>,
    /// Those that were not sent to or contacted because the gate was closed.
    pub(super) kept_back: BTreeSet<NodeName>,
    /// The providers that somebody was seen to wait for.
    pub(super) awaited: BTreeSet<ServiceName>,
    pub(super) minted: usize,
}

impl<'a> Run<'a> {
    pub(super) fn begin(
        mesh: &'a Mesh,
        orders: &'a Orders,
        sources: Arc<dyn Sources>,
        through: Through<'a>,
    ) -> Result<Self, PushError> {
        let Through {
            store,
            chance,
            gate,
            hear,
        } = through;
        if let Named::Nodes(named) = &orders.named
            && let Some(unknown) = named.iter().find(|node| !mesh.nodes.contains_key(*node))
        {
            return Err(PushError::UnknownNode(unknown.clone()));
        }
        let mut state = store.load()?;
        state.push = state.push.saturating_add(1);
        hear(Event::Began {
            mesh: mesh.name.clone(),
            push: state.push,
        });
        Ok(Self {
            mesh,
            orders,
            composer: Composer::new(mesh, Arc::clone(&sources)),
            sources,
            store,
            chance,
            gate,
            hear,
            state: Known::of(state),
            unrecorded: BTreeSet::new(),
            is_numbered: false,
            round: 0,
            failed: BTreeMap::new(),
            contacted: BTreeSet::new(),
            unverified: BTreeMap::new(),
            sent: BTreeSet::new(),
            emptied: BTreeSet::new(),
            said_gone: BTreeMap::new(),
            kept_back: BTreeSet::new(),
            awaited: BTreeSet::new(),
            minted: 0,
        })
    }

    pub(super) fn rounds_after_the_first(&self) -> usize {
        self.orders.max_rounds.unwrap_or_else(|| {
            let up_and_down = self.mesh.longest_chain().saturating_mul(2);
            up_and_down.saturating_add(SPARE_ROUNDS)
        })
    }

    pub(super) fn next_round(&mut self) {
        self.round = self.round.saturating_add(1);
    }

    pub(super) fn world(&self) -> World<'_> {
        self.state.world(self.mesh)
    }

    /// Whether somebody interrupted this push.
    pub(super) fn is_stopped(&self) -> bool {
        self.gate.is_shut()
    }

    /// Whether somebody waits for a provider on this machine.
    pub(super) fn is_awaited(&self, node: &NodeName) -> bool {
        self.awaited.iter().any(|provider| {
            let service = self.mesh.services.get(provider);
            service.is_some_and(|service| service.nodes.contains(node))
        })
    }

    pub(super) fn is_on_hold(&self, node: &NodeName) -> bool {
        self.mesh
            .nodes
            .get(node)
            .is_some_and(|node| node.hold_in_force(self.orders.today).is_some())
    }

    pub(super) fn is_named(&self, node: &NodeName) -> bool {
        matches!(&self.orders.named, Named::Nodes(named) if named.contains(node))
    }

    /// Whether to replace whatever `node` holds: only where the operator named it, or whoever is behind.
    pub(super) fn may_take_over(&self, node: &NodeName) -> bool {
        self.orders.take_over && (self.is_named(node) || self.orders.named == Named::Behind)
    }

    /// What the commands of these services may know: what each is given, the accounts on its list, the keys of the machine's site,
    /// and the operator's own secrets that were asked for.
    pub(super) fn secrets<'m>(&self, manifests: impl IntoIterator<Item = &'m Manifest>) -> Secrets {
        let provisions = &self.state.provisions;
        let mut all = self.sources.told_secrets();
        let manifests: Vec<&Manifest> = manifests.into_iter().collect();
        let sites = manifests.iter().filter(|manifest| manifest.site.is_some());
        let identities = sites.filter_map(|manifest| self.state.identities.of(&manifest.node));
        let keys = identities.flat_map(|identity| identity.generations());
        all.extend(keys.filter_map(|identity| identity.key.pem().ok()));
        for (name, service) in manifests.iter().flat_map(|m| &m.services) {
            let given = service
                .bindings
                .keys()
                .filter_map(|provider| provisions.get(provider, name));
            let listed = service.grants.iter().flat_map(|_| provisions.of(name));
            let listed = listed.map(|(_, provision)| provision);
            for provision in given.chain(listed) {
                all.extend(provision.generations().map(|g| g.secret.clone()));
            }
        }
        Secrets::new(all)
    }

    pub(super) fn target(&self, node: &NodeName) -> Option<Target> {
        Some(Target {
            mesh: self.mesh.name.clone(),
            node: Arc::new(self.mesh.nodes.get(node)?.clone()),
        })
    }

    /// The fence held: whose send it is that the machine holds.
    pub(super) fn fenced(&self, node: &NodeName, held: Option<Token>, log: Vec<String>) -> Problem {
        let whose = whose(&self.state, self.state.push, node, held.as_ref());
        Problem::Fenced { held, whose, log }
    }

    pub(super) fn draw_token(&mut self) -> Token {
        Token::draw(self.state.id, self.state.era, self.state.push, self.chance)
    }

    /// The first round's machines: the named ones, or those behind where nobody is named.
    pub(super) fn first_targets(&mut self) -> BTreeSet<NodeName> {
        match &self.orders.named {
            Named::Nodes(named) => named
                .iter()
                .filter(|node| !self.is_on_hold(node) && !self.failed.contains_key(*node))
                .cloned()
                .collect(),
            Named::Behind => self.behind_now(),
        }
    }

    /// Every machine that is behind now, less those on hold, failed in this push, or rolled back
    /// from this very bundle and not named. A push of whoever is behind names them all: so it heals a machine
    /// that was rolled back once the cause is gone. Once too many have failed, only those whom somebody waits for.
    pub(super) fn behind_now(&mut self) -> BTreeSet<NodeName> {
        let survey = self.survey();
        let is_narrow = self.gate.is_narrow();
        let looked_at = survey.iter().filter(|(node, _)| {
            !self.is_on_hold(node) && (is_narrow || !self.failed.contains_key(*node))
        });
        let mut awaited = BTreeSet::new();
        let mut behind = BTreeSet::new();
        for (node, standing) in looked_at {
            awaited.extend(awaited_by(&standing.waits));
            let is_asked_for = self.is_named(node) || self.orders.named == Named::Behind;
            if !self.failed.contains_key(node)
                && standing.is_behind()
                && (is_asked_for || !standing.is_rolled_back)
            {
                behind.insert(node.clone());
            }
        }
        self.awaited = awaited;
        if is_narrow {
            behind.retain(|node| self.is_awaited(node));
        }
        behind
    }

    /// How every declared machine stands.
    fn survey(&mut self) -> Arc<Survey> {
        let (mesh, composer) = (self.mesh, &self.composer);
        self.state.survey(|state| {
            let world = state.world(mesh);
            survey(composer, &world)
        })
    }

    /// Commits `changes`, if there are any, with the number of this push if it is not on disk yet. The number of a
    /// push that changes nothing goes with its entry in the journal.
    pub(super) fn commit(&mut self, mut changes: Vec<Change>) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        if !self.is_numbered {
            changes.insert(0, Change::Push(self.state.push));
        }
        self.store.commit(&changes)?;
        self.is_numbered = true;
        Ok(())
    }

    /// Has the number of this push on disk, and with it whatever a store notes of its beginning, before any machine
    /// is contacted.
    pub(super) fn number(&mut self) -> Result<(), StoreError> {
        if self.is_numbered {
            return Ok(());
        }
        self.store.commit(&[Change::Push(self.state.push)])?;
        self.is_numbered = true;
        Ok(())
    }

    /// What is known of a machine, to be changed. It is on disk after the next [`Run::record_all`].
    pub(super) fn machine(&mut self, node: &NodeName) -> &mut Machine {
        self.unrecorded.insert(node.clone());
        self.state.edit().fleet.entry(node.clone()).or_default()
    }

    /// Has all that is known of machines on disk, in one commit.
    pub(super) fn record_all(&mut self) -> Result<(), StoreError> {
        if self.unrecorded.is_empty() {
            return Ok(());
        }
        let fleet = &self.state.fleet;
        let changes = self.unrecorded.iter().map(|node| {
            let machine = fleet.get(node).cloned().unwrap_or_default();
            Change::Machine(node.clone(), machine)
        });
        let changes = changes.collect();
        self.commit(changes)?;
        self.unrecorded.clear();
        Ok(())
    }

    /// Drops generations that nobody uses any more, and says how the push ended.
    pub(super) fn finish(mut self, left: &BTreeSet<NodeName>) -> Result<Report, PushError> {
        self.prune()?;
        self.prune_identities()?;
        let survey = self.survey();
        let mut report = report(&self.world(), &survey, self.orders);
        report.push = self.state.push;
        report.rounds = self.round;
        report.minted = self.minted;
        report.out_of_rounds = left.clone();
        for (node, problem) in self.failed {
            report.kept_back.remove(&node);
            let is_current = report.behind.remove(&node).is_none()
                && !report.rolled_back.contains(&node)
                && !report.on_hold.contains_key(&node);
            if is_current && !report.waiting.contains_key(&node) {
                report.current = report.current.saturating_sub(1);
            }
            if is_current {
                report.failed_current.insert(node.clone());
            }
            report.failed.insert(node, problem);
        }
        report.contacted = &self.contacted - &report.failed.keys().cloned().collect();
        report.sent = self.sent;
        report.interrupted = self.gate.is_shut();
        report.kept_back = self.kept_back;
        if self.gate.is_shut() || self.gate.is_narrow() {
            let behind = report.behind.keys().filter(|node| !left.contains(*node));
            report.kept_back.extend(behind.cloned());
        }
        if report.interrupted {
            report.out_of_rounds.clear();
        }
        (self.hear)(Event::Ended(Box::new(report.clone())));
        Ok(report)
    }

    fn prune(&mut self) -> Result<(), PushError> {
        let world = self.world();
        let mut changes = Vec::new();
        for (id, provision) in self.state.provisions.iter() {
            if provision.generations().nth(1).is_none() {
                continue; // nearly all have but the newest, which stays
            }
            let in_use: BTreeSet<_> = world
                .uses
                .accounts(&id.provider, &id.consumer)
                .map(|(generation, _)| *generation)
                .collect();
            let mut pruned = provision.clone();
            pruned.prune(|generation| in_use.contains(&generation));
            if &pruned != provision {
                changes.push((id, pruned));
            }
        }
        let records: Vec<Change> = changes
            .iter()
            .map(|(id, provision)| Change::Provision(id.clone(), provision.clone()))
            .collect();
        self.commit(records)?;
        for (id, provision) in changes {
            self.state.edit().provisions.insert(id, provision);
        }
        Ok(())
    }
}

/// The providers that a machine's services wait for.
pub(super) fn awaited_by(waits: &BTreeMap<ServiceName, Wait>) -> BTreeSet<ServiceName> {
    waits
        .values()
        .filter_map(|wait| match wait {
            Wait::Grant(providers) => Some(providers),
            Wait::Removal(_) => None,
        })
        .flatten()
        .cloned()
        .collect()
}
