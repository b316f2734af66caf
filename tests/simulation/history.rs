//! A history under way: the declaration, the store, the floor, and each event in turn.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use grid::compose::manifest::Bound;
use grid::provision::{Provision, ProvisionId};
use grid::push::{self, Event, Named, Orders, Ports, Pretend, PushError, Report, Verdict};
use grid::store::{
    BrokenLink, Change, Fault, JournalRecord, MemoryStore, State, Store, StoreError,
};
use grid::words::{Chance, Digest, Era, Generation, NodeName, ServiceName, StoreId, Token};
use zeroize::Zeroizing;

use super::courier::{Courier, Killed};
use super::coverage::Coverage;
use super::declared::{Consumes, Declared, NoFiles, machine, service};
use super::floor::Floor;
use super::plan::{Death, Loss, Op, Plan, PushPlan, Whom};
use super::{invariants, reports, waiting};

/// Chance from a seed: SplitMix64.
pub struct Seeded(pub u64);

impl Chance for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let drawn = (z ^ (z >> 31)).to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }
}

/// The store that the push writes while the floor reads it. The controller may die at one of its commits.
pub struct Shared {
    pub store: Rc<RefCell<MemoryStore>>,
    /// Counted from 1.
    pub dies_at: Option<(u64, Fault)>,
    pub commits: u64,
}

impl Store for Shared {
    fn load(&mut self) -> Result<State, StoreError> {
        self.store.borrow_mut().load()
    }
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.commits += 1;
        let mut store = self.store.borrow_mut();
        if let Some((_, fault)) = self.dies_at.filter(|(nth, _)| *nth == self.commits) {
            store.fault_next(fault);
        }
        store.commit(changes)
    }
    fn content(&mut self, digest: &Digest) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        self.store.borrow_mut().content(digest)
    }
    fn journal(&mut self, last: usize) -> Result<Vec<JournalRecord>, StoreError> {
        self.store.borrow_mut().journal(last)
    }
    fn check_journal(&mut self) -> Result<Option<BrokenLink>, StoreError> {
        self.store.borrow_mut().check_journal()
    }
}

/// How a push ended.
#[derive(Debug)]
pub enum Ended {
    /// With a report.
    Reported(Box<Report>),
    /// The controller died, or its disk was full.
    Died,
}

/// What a push sent, and when.
pub type Sendings = Vec<(usize, NodeName)>;

pub struct History {
    pub declared: Declared,
    pub floor: Floor,
    pub store: Rc<RefCell<MemoryStore>>,
    pub chance: Seeded,
    /// Every secret that was ever stored.
    pub secrets: BTreeMap<(ServiceName, ServiceName, Generation), String>,
    pub sendings: Sendings,
    /// `--max-rounds`.
    pub max_rounds: Option<usize>,
}

impl History {
    pub fn new(declared: Declared, trace: bool) -> Self {
        let store = MemoryStore::new(StoreId([7; 8]), Era(1));
        let store = Rc::new(RefCell::new(store));
        let floor = Floor {
            machines: BTreeMap::new(),
            store: Rc::clone(&store),
            mesh: declared.mesh(),
            down: BTreeSet::new(),
            vanished: BTreeSet::new(),
            emptied: BTreeSet::new(),
            given_up: BTreeSet::new(),
            drifted: BTreeSet::new(),
            excused: BTreeMap::new(),
            strangers: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            unwell: BTreeMap::new(),
            rolled_back: BTreeMap::new(),
            coverage: Coverage::default(),
            violation: None,
            trace,
        };
        Self {
            declared,
            floor,
            store,
            chance: Seeded(1),
            secrets: BTreeMap::new(),
            sendings: Vec::new(),
            max_rounds: None,
        }
    }

    /// Runs a plan to its end, and repairs everything then.
    pub fn run(plan: &Plan, trace: bool) -> Result<Coverage, String> {
        let mut history = Self::new(Declared::begin(plan), trace);
        for (nth, op) in plan.ops.iter().enumerate() {
            history.floor.say(|| format!("{nth} {op:?}"));
            history.happens(op);
            history.look(&format!("after event {nth}"))?;
        }
        history.repair()?;
        Ok(history.floor.coverage)
    }

    /// What must hold after every event.
    pub fn look(&mut self, when: &str) -> Result<(), String> {
        self.floor.mesh = self.declared.mesh();
        self.floor.check_admission(when);
        self.floor.end_excuses();
        invariants::secrets_stay(self);
        invariants::the_store_knows(self);
        invariants::unwell_is_what_nobody_looked_at_since(self);
        invariants::uncertain_is_behind(self);
        waiting::nothing_waits_without_a_cause(self);
        match self.floor.violation.take() {
            Some(violation) => Err(format!("{when}: {violation}")),
            None => Ok(()),
        }
    }

    fn saw(&mut self, what: &str) {
        self.floor.coverage.saw(what);
    }

    pub fn happens(&mut self, op: &Op) {
        let count = self.declared.services.len();
        let machines = self.declared.machines;
        match op {
            Op::Push(plan) => {
                self.push_as_planned(plan);
            }
            Op::Assign(s, on) => {
                let on = on.iter().map(|m| m % machines).collect();
                self.declared.services[s % count].machines = on;
            }
            Op::Unassign(s) => self.declared.services[s % count].machines.clear(),
            Op::Rotate(n) => self.renew(*n, false),
            Op::Cut(n) => self.renew(*n, true),
            Op::Revoke(n) => {
                if let Some(id) = self.nth_provision(*n) {
                    self.saw("revoke");
                    self.change(&id, |all, id, _| all.revoke(id).is_ok());
                }
            }
            Op::Issue(p, c) => {
                let (p, c) = (p % count, c % count);
                if p != c && self.declared.services[p].provides {
                    let id = ProvisionId {
                        provider: service(p),
                        consumer: service(c),
                    };
                    self.saw("issued");
                    let mesh = self.declared.mesh();
                    self.change(&id, |all, id, chance| {
                        all.issue(&mesh, id, Era(1), chance);
                        true
                    });
                }
            }
            Op::Hold(m) => {
                self.declared.hold.insert(m % machines);
            }
            Op::Unhold => self.declared.hold.clear(),
            Op::Down(m) => {
                self.floor.down.insert(machine(m % machines));
            }
            Op::Up => self.floor.down.clear(),
            Op::Edit(s) => self.declared.services[s % count].version += 1,
            Op::Want(s, n, to) => {
                let consumes = &mut self.declared.services[s % count].consumes;
                let nth = n % consumes.len().max(1);
                if let Some(consumes) = consumes.values_mut().nth(nth) {
                    consumes.wants = to % 3;
                    self.saw("wants changed");
                }
            }
            Op::Consume(c, p) => self.turn_consumption(c % count, p % count),
            Op::Turn(s) => {
                let service = &mut self.declared.services[s % count];
                service.start_first = !service.start_first;
            }
            Op::Withdraw(s) => {
                let service = &mut self.declared.services[s % count];
                service.declared = !service.declared;
            }
            Op::Forget(m, s) => self.forget(&machine(m % machines), *s),
            Op::Lose(n, loss) => self.lose(*n, *loss),
            Op::Empty(m) => self.empty(&machine(m % machines)),
            Op::Readdress(m) => {
                *self.declared.addresses.entry(m % machines).or_default() += 1;
                self.saw("readdressed");
            }
            Op::Reroot(m) => {
                *self.declared.roots.entry(m % machines).or_default() += 1;
                self.empty(&machine(m % machines));
                self.saw("another root");
            }
            Op::Misroot(m) => {
                self.declared.misrooted.insert(m % machines);
                self.saw("mistyped root");
            }
            Op::PutRight => self.declared.misrooted.clear(),
            Op::Provide(s) => {
                let service = &mut self.declared.services[s % count];
                service.provides = !service.provides;
                if !service.provides {
                    self.saw("provides no more");
                    for other in &mut self.declared.services {
                        other.consumes.remove(&(s % count));
                    }
                }
            }
            Op::Intrude(m) => self.intrude(&machine(m % machines)),
            Op::Drift(m) => self.drift(&machine(m % machines)),
        }
        self.floor.mesh = self.declared.mesh();
    }

    fn turn_consumption(&mut self, c: usize, p: usize) {
        let wait = p < c;
        let provides = self.declared.services[p].provides;
        let consumes = &mut self.declared.services[c].consumes;
        if consumes.remove(&p).is_none() && p != c && provides && consumes.len() < 3 {
            consumes.insert(p, Consumes { wait, wants: 0 });
        }
    }

    fn nth_provision(&self, n: usize) -> Option<ProvisionId> {
        let store = self.store.borrow();
        let ids: Vec<ProvisionId> = store.peek().provisions.iter().map(|(id, _)| id).collect();
        ids.get(n.checked_rem(ids.len())?).cloned()
    }

    fn renew(&mut self, n: usize, cut: bool) {
        if let Some(id) = self.nth_provision(n) {
            self.saw(if cut { "cut" } else { "rotated" });
            self.change(&id, |all, id, chance| {
                all.rotate(id, cut, Era(1), chance).is_ok()
            });
        }
    }

    fn change(
        &mut self,
        id: &ProvisionId,
        change: impl FnOnce(&mut grid::provision::Provisions, &ProvisionId, &mut dyn Chance) -> bool,
    ) {
        let mut store = self.store.borrow_mut();
        let mut provisions = store.peek().provisions.clone();
        if change(&mut provisions, id, &mut self.chance) {
            let changed: Option<&Provision> = provisions.get(&id.provider, &id.consumer);
            let record = Change::Provision(id.clone(), changed.unwrap().clone());
            store.commit(&[record]).unwrap();
        }
    }

    /// The nth uncertain machine is out of reach.
    fn lose(&mut self, nth: usize, loss: Loss) {
        let store = self.store.borrow();
        let fleet = store.peek().fleet.iter();
        let uncertain: Vec<NodeName> = fleet
            .filter(|(_, machine)| machine.attempt.is_some())
            .map(|(node, _)| node.clone())
            .collect();
        drop(store);
        let Some(node) = nth
            .checked_rem(uncertain.len())
            .and_then(|n| uncertain.get(n))
        else {
            return;
        };
        match loss {
            Loss::Down => {
                self.floor.down.insert(node.clone());
            }
            Loss::Hold => {
                let index = (0..self.declared.machines).find(|m| &machine(*m) == node);
                self.declared.hold.extend(index);
            }
            Loss::Forgotten => self.forget(node, nth),
        }
    }

    /// Somebody pushes from another store what is there already.
    fn intrude(&mut self, node: &NodeName) {
        let mut chance = Seeded(self.chance.0);
        let machine = self.floor.machine(node);
        if machine.token.is_some() && machine.unfinished.is_none() {
            machine.token = Some(Token::draw(StoreId([9; 8]), Era(1), 1, &mut chance));
            self.floor.strangers.insert(node.clone());
        }
    }

    /// `grid forget NODE --service S`, of a machine that is down.
    fn forget(&mut self, node: &NodeName, nth: usize) {
        let known = self.store.borrow().peek().fleet.get(node).cloned();
        let Some(mut known) = known else {
            return;
        };
        self.floor.down.insert(node.clone());
        let attempted = known.attempt.iter().flat_map(|a| &a.manifest.services);
        let held: BTreeSet<ServiceName> = known
            .services()
            .chain(attempted)
            .map(|(name, _)| name.clone())
            .collect();
        let held: Vec<ServiceName> = held.into_iter().collect();
        let Some(name) = nth.checked_rem(held.len()).and_then(|n| held.get(n)) else {
            return;
        };
        known.forgotten.insert(name.clone());
        known.unwell.leave(false, |other| other != name);
        self.floor.forget_unwell(node, |other| other == name);
        let record = Change::Machine(node.clone(), known);
        self.store.borrow_mut().commit(&[record]).unwrap();
        self.floor.given_up.insert((node.clone(), name.clone()));
        self.floor.excused.extend(self.bound_to(name, node));
        self.saw("given up");
    }

    /// The bindings to a provider on a machine.
    fn bound_to(
        &self,
        provider: &ServiceName,
        node: &NodeName,
    ) -> Vec<((NodeName, ServiceName, ServiceName), Bound)> {
        let mut found = Vec::new();
        for (other, machine) in &self.floor.machines {
            for (consumer, service) in &machine.running {
                if let Some(bound) = service.bindings.get(provider)
                    && bound.nodes.contains(node)
                {
                    let key = (other.clone(), consumer.clone(), provider.clone());
                    found.push((key, bound.clone()));
                }
            }
        }
        found
    }

    fn empty(&mut self, node: &NodeName) {
        let known = self.store.borrow().peek().fleet.get(node).cloned();
        let machine = std::mem::take(self.floor.machine(node));
        if machine.token.is_none() {
            return;
        }
        for provider in machine.loaded.keys() {
            self.floor.vanished.insert((node.clone(), provider.clone()));
        }
        self.floor.drifted.retain(|(other, _)| other != node);
        self.floor.strangers.remove(node);
        self.floor.rolled_back.remove(node);
        if known.is_some_and(|known| known.token.is_some() || known.attempt.is_some()) {
            self.floor.emptied.insert(node.clone());
        }
        self.saw("emptied");
    }

    fn drift(&mut self, node: &NodeName) {
        let machine = self.floor.machine(node);
        if machine.unfinished.is_some() {
            return;
        }
        let longest = machine.loaded.iter_mut().max_by_key(|(_, list)| list.len());
        if let Some((name, list)) = longest
            && list.pop_first().is_some()
        {
            let place = (node.clone(), name.clone());
            self.floor.drifted.insert(place);
        }
    }

    pub fn orders(&self, plan: &PushPlan) -> Orders {
        let named = match plan.whom {
            Whom::One(m) => Named::Nodes([machine(m % self.declared.machines)].into()),
            Whom::All => {
                let held = |m: &usize| !self.declared.hold.contains(m);
                Named::Nodes(
                    (0..self.declared.machines)
                        .filter(held)
                        .map(machine)
                        .collect(),
                )
            }
            Whom::Behind => Named::Behind,
        };
        Orders {
            named,
            max_rounds: self.max_rounds,
            max_failures: None,
            take_over: plan.take_over,
            sender: "the simulation".to_owned(),
            today: jiff::civil::date(2026, 1, 1),
        }
    }

    fn push_as_planned(&mut self, plan: &PushPlan) -> Ended {
        self.saw(match plan.whom {
            Whom::One(_) => "push of one",
            Whom::All => "push of all",
            Whom::Behind => "push --behind",
        });
        self.push(plan)
    }

    /// One push, and what must hold of its end.
    pub fn push(&mut self, plan: &PushPlan) -> Ended {
        let mesh = self.declared.mesh();
        self.floor.mesh = mesh.clone();
        let orders = self.orders(plan);
        let named: BTreeSet<NodeName> = match &orders.named {
            Named::Nodes(nodes) => nodes.clone(),
            Named::Behind => BTreeSet::new(),
        };
        invariants::note_uncertain(self);
        let pretended = self.pretend(&mesh, &orders, plan);
        let dies_at = match plan.death {
            Some(Death::BeforeCommit(n)) => Some((n, Fault::DieBefore)),
            Some(Death::AfterCommit(n)) => Some((n, Fault::DieAfter)),
            Some(Death::DiskFull(n)) => Some((n, Fault::Fail)),
            _ => None,
        };
        let mut store = Shared {
            store: Rc::clone(&self.store),
            dies_at,
            commits: 0,
        };
        let mut sendings = Vec::new();
        let trace = self.floor.trace;
        let before = self.floor.violation.is_some();
        let provisions = self.store.borrow().peek().provisions.clone();
        let number = self.store.borrow().peek().push;
        let mut courier = Courier {
            floor: &mut self.floor,
            faults: &plan.faults,
            death: plan.death,
            order: plan.order,
            push: number + 1,
            take_over: plan.take_over,
            named: named.clone(),
            all_behind: plan.whom == Whom::Behind,
            sends: 0,
            asks: 0,
            left: BTreeMap::new(),
            taken_blindly: BTreeSet::new(),
            taken_by_asking: BTreeSet::new(),
            contacts: BTreeSet::new(),
            contacted: BTreeSet::new(),
            disturbed: plan.death.is_some(),
        };
        let chance = &mut self.chance;
        let pushed = catch_unwind(AssertUnwindSafe(|| {
            let mut hear = |event: Event| hear(&event, &mut sendings, trace);
            let ports = Ports {
                store: &mut store,
                couriers: &mut courier,
                sources: NoFiles::shared(),
                gate: grid::delivery::Gate::default(),
                chance,
                hear: &mut hear,
            };
            push::push(&mesh, &orders, ports)
        }));
        let (disturbed, contacted) = (courier.disturbed, courier.contacted.clone());
        let taken_by_asking = std::mem::take(&mut courier.taken_by_asking);
        self.store.borrow_mut().revive();
        self.sendings = sendings;
        let ended = match pushed {
            Ok(Ok(report)) => Ended::Reported(Box::new(report)),
            Ok(Err(PushError::Store(StoreError::Simulated))) => {
                self.saw("disk full");
                Ended::Died
            }
            Ok(Err(PushError::Store(StoreError::SimulatedDeath))) => Ended::Died,
            Ok(Err(other)) => {
                self.floor.violate(format!("the push stopped: {other}"));
                Ended::Died
            }
            Err(payload) if payload.is::<Killed>() => Ended::Died,
            Err(payload) => std::panic::resume_unwind(payload),
        };
        if before {
            return ended;
        }
        invariants::of_what_was_minted(self, &provisions);
        match &ended {
            Ended::Died => {
                self.saw("controller died");
                self.floor.outcomes.clear();
                let fleet = self.store.borrow().peek().fleet.clone();
                // What it did not come to note nobody can know.
                self.floor.unwell = invariants::noted_unwell(&fleet);
                let store = self.store.borrow();
                let fleet = &store.peek().fleet;
                // Whose answer was lost holds what another store sent, as before.
                for node in taken_by_asking {
                    let held = self.floor.machines.get(&node).and_then(|m| m.token);
                    let is_known =
                        held.is_some_and(|held| fleet.get(&node).is_some_and(|m| m.took(&held)));
                    if !is_known {
                        self.floor.strangers.insert(node);
                    }
                }
                self.floor.rolled_back.retain(|node, digest| {
                    fleet
                        .get(node)
                        .is_some_and(|m| m.rolled_back == Some(*digest))
                });
            }
            Ended::Reported(report) => {
                self.floor
                    .say(|| format!("  {:?} after {} rounds", report.verdict(), report.rounds));
                reports::of_a_report(self, report, &named, &contacted, disturbed);
                if let Some(pretended) = pretended.filter(|_| !disturbed) {
                    reports::dry_run_agrees(self, &pretended);
                }
            }
        }
        ended
    }

    /// What `--dry-run` says of this push; `None` where something is unknown that only machines can tell.
    fn pretend(
        &mut self,
        mesh: &grid::mesh::Mesh,
        orders: &Orders,
        plan: &PushPlan,
    ) -> Option<Sendings> {
        let mut copy = self.store.borrow().clone();
        let fleet = copy.peek().fleet.clone();
        let unknown = fleet.values().any(|machine| machine.attempt.is_some());
        if unknown
            || plan.death.is_some()
            || !self.floor.emptied.is_empty()
            || !self.floor.strangers.is_empty()
            || invariants::is_any_elsewhere(mesh, &fleet)
            || !plan.order.is_multiple_of(3)
        {
            return None;
        }
        let mut sendings = Vec::new();
        let mut chance = Seeded(2);
        let ports = Ports {
            store: &mut copy,
            couriers: &mut Pretend,
            sources: NoFiles::shared(),
            gate: grid::delivery::Gate::default(),
            chance: &mut chance,
            hear: &mut |event| hear(&event, &mut sendings, false),
        };
        push::push(mesh, orders, ports).ok()?;
        Some(sendings)
    }

    /// All is repaired: one push converges, but for what waits for a provider that is on no machine or revoked; and the
    /// next one sends nothing.
    fn repair(&mut self) -> Result<(), String> {
        self.floor.down.clear();
        self.declared.hold.clear();
        self.declared.misrooted.clear();
        let quiet = PushPlan {
            whom: Whom::All,
            faults: Vec::new(),
            death: None,
            order: 0,
            take_over: !self.floor.strangers.is_empty(),
        };
        self.floor.say(|| "repair".to_owned());
        if !self.floor.emptied.is_empty() {
            self.push(&quiet); // finds out which machines were emptied
            self.look("while repairing")?;
        }
        let ended = self.push(&quiet);
        self.look("after the repair")?;
        let Ended::Reported(report) = ended else {
            return Err("the repairing push died".to_owned());
        };
        reports::repaired(self, &report)?;
        let again = PushPlan {
            whom: Whom::Behind,
            ..quiet
        };
        self.push(&again);
        self.look("after a second push")?;
        if !self.sendings.is_empty() {
            return Err(format!("a second push sends again: {:?}", self.sendings));
        }
        let done = report.verdict() == Verdict::Done;
        self.saw(if done { "end done" } else { "end waits" });
        Ok(())
    }
}

fn hear(event: &Event, sendings: &mut Sendings, trace: bool) {
    if let Event::Sending {
        node,
        round,
        waits,
        reasons,
        ..
    } = event
    {
        sendings.push((*round, node.clone()));
        if trace {
            println!("   round {round} {node} waits {waits:?} because {reasons:?}");
        }
    }
    if let (Event::Failed { node, problem, .. }, true) = (event, trace) {
        println!("   failed {node} {problem:?}");
    }
}
