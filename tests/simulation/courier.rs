//! The simulated couriers: they carry what the push sends to the machines of the floor, with faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grid::compose::bundle::Content;
use grid::compose::manifest::{Grants, Manifest, ServiceManifest};
use grid::delivery::{
    Answer, Applied, Dispatch, FailedStep, Failure, Heard, Holding, Outcome, Parcel, Question,
};
use grid::mesh::{Move, Node};
use grid::words::{NodeName, ServiceName};

#[path = "parcels.rs"]
mod parcels;

use super::declared::REFUSING;
use super::floor::{Floor, short};
use super::machine::{Machine, Step, Unfinished};
use super::plan::{Death, Fault, FaultKind};

/// What a controller that is killed in mid send unwinds with.
pub struct Killed;

pub struct Courier<'a> {
    pub floor: &'a mut Floor,
    pub faults: &'a [Fault],
    pub death: Option<Death>,
    pub order: u8,
    /// The number of the push.
    pub push: u64,
    /// Whether the operator said `--take-over`.
    pub take_over: bool,
    /// Whom the operator named.
    pub named: BTreeSet<NodeName>,
    /// Or whether it named whoever is behind.
    pub all_behind: bool,
    pub sends: usize,
    pub asks: usize,
    /// Of machines that took what was sent to them: the providers whose list no send of this push has loaded.
    pub left: BTreeMap<NodeName, BTreeSet<ServiceName>>,
    /// Machines that were taken over: nobody told the push what it found there, so it looks once more.
    pub taken_blindly: BTreeSet<NodeName>,
    /// Machines that held what another store sent, and whose answer was taken for their state.
    pub taken_by_asking: BTreeSet<NodeName>,
    /// Machines that were contacted.
    pub contacts: BTreeSet<NodeName>,
    /// Named machines that were sent to or contacted.
    pub contacted: BTreeSet<NodeName>,
    /// Whether anything went wrong that a push without faults would not meet.
    pub disturbed: bool,
}

/// Whether nothing can be written where a machine is declared.
fn is_refusing(node: &Node) -> bool {
    node.root.as_str() == REFUSING
}

pub fn failure(step: FailedStep, cause: &str) -> Failure {
    Failure {
        step,
        service: None,
        cause: cause.to_owned(),
        output: Vec::new(),
        hint: None,
    }
}

impl Dispatch for Courier<'_> {
    fn send(&mut self, mut parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        self.check_number();
        for parcel in &parcels {
            self.check_parcel(parcel);
        }
        let turn = usize::from(self.order >> 1) % parcels.len();
        parcels.rotate_left(turn);
        let heard_late = self.order & 1 == 1;
        let mut late = Vec::new();
        for parcel in parcels {
            let nth = self.sends;
            self.sends += 1;
            self.die_at(|death| matches!(death, Death::BeforeArrival(n) if n == nth));
            let outcome = self.arrive(&parcel, nth);
            self.note(&parcel, &outcome);
            self.floor.say(|| {
                let how = format!("{outcome:?}");
                let how = how.split(['(', ' ']).next().unwrap_or_default().to_owned();
                format!("    {} {how}", parcel.target.node.name)
            });
            self.die_at(|death| matches!(death, Death::BeforeReceipt(n) if n == nth));
            let node = parcel.target.node.name.clone();
            if heard_late {
                late.push((node, outcome));
            } else {
                hear(&node, Heard::Settled(outcome));
                if self.order & 2 == 0 {
                    hear(&node, Heard::Lull);
                }
            }
        }
        for (node, outcome) in late.into_iter().rev() {
            hear(&node, Heard::Settled(outcome));
        }
    }

    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        self.check_number();
        for question in questions {
            let node = question.target.node.name.clone();
            let nth = self.asks;
            self.asks += 1;
            if question.target.node.hold.is_some() {
                self.floor
                    .violate(format!("{node} is on hold and is asked"));
            }
            let unanswered = self.floor.down.contains(&node)
                || self.faults.iter().any(|fault| {
                    fault.at == nth
                        && matches!(fault.kind, FaultKind::NotReached | FaultKind::Broken)
                });
            let refuses = is_refusing(&question.target.node);
            let answer = if refuses && !unanswered {
                self.disturbed = true;
                self.floor.coverage.saw("asked where nothing is");
                self.floor.outcomes.remove(&node);
                self.floor.unwell.remove(&node);
                Answer::Holds(Holding {
                    token: None,
                    manifest: None,
                    lists: Default::default(),
                    log: Vec::new(),
                })
            } else if unanswered {
                self.disturbed = true;
                self.floor.coverage.saw("ask unanswered");
                Answer::Unknown(failure(FailedStep::Connect, "no answer"))
            } else {
                self.floor.coverage.saw("ask answered");
                self.finish(&node);
                self.floor.outcomes.insert(node.clone(), false);
                if self.floor.strangers.contains(&node) {
                    self.disturbed = true;
                    self.floor.outcomes.remove(&node);
                    if self.may_take_over(&node) {
                        self.floor.strangers.remove(&node);
                        self.taken_by_asking.insert(node.clone());
                        self.floor.coverage.saw("taken over");
                    }
                }
                if !self.floor.strangers.contains(&node) {
                    let held = self.floor.machine(&node).release.clone();
                    let holds = |name: &ServiceName| {
                        held.as_ref()
                            .is_some_and(|held| held.services.contains_key(name))
                    };
                    if held.is_none() {
                        self.floor.unwell.remove(&node);
                    }
                    self.floor.forget_unwell(&node, |name| !holds(name));
                }
                let machine = self.floor.machine(&node);
                Answer::Holds(Holding {
                    token: machine.token,
                    manifest: machine.release.clone(),
                    lists: machine.lists.clone(),
                    log: Vec::new(),
                })
            };
            hear(&node, Heard::Answered(answer));
        }
    }
}

impl Courier<'_> {
    fn die_at(&self, here: impl Fn(Death) -> bool) {
        if self.death.is_some_and(here) {
            std::panic::resume_unwind(Box::new(Killed));
        }
    }

    /// Whether the operator let this machine be taken over.
    fn may_take_over(&self, node: &NodeName) -> bool {
        self.take_over && (self.all_behind || self.named.contains(node))
    }

    /// Notes whether it is known how a send ended; of a contact only that it is not.
    fn note(&mut self, parcel: &Parcel, outcome: &Outcome) {
        let node = parcel.target.node.name.clone();
        let is_contact = {
            let store = self.floor.store.borrow();
            let known = store.peek().fleet.get(&node);
            known.and_then(|m| m.token) == Some(parcel.token)
        };
        // A machine that is taken over, and goes back, holds nobody knows what.
        let uncertain = matches!(outcome, Outcome::Uncertain(_))
            || (is_contact || parcel.take_over) && matches!(outcome, Outcome::RolledBack { .. });
        match outcome {
            Outcome::Fenced { held: None, .. } => {
                self.floor.unwell.remove(&node);
                self.floor.outcomes.remove(&node);
            }
            Outcome::Fenced { .. } => {
                self.floor.outcomes.insert(node.clone(), true);
            }
            _ => {
                self.floor.outcomes.insert(node.clone(), uncertain);
            }
        }
    }

    fn fault(&mut self, node: &NodeName, nth: usize) -> Option<Fault> {
        let down = Fault {
            at: nth,
            kind: FaultKind::NotReached,
            step: 0,
        };
        let fault = self.faults.iter().find(|fault| fault.at == nth).copied();
        let fault = if self.floor.down.contains(node) {
            Some(down)
        } else {
            fault
        };
        self.disturbed |= fault.is_some();
        fault
    }

    fn arrive(&mut self, parcel: &Parcel, nth: usize) -> Outcome {
        let node = parcel.target.node.name.clone();
        let fault = self.fault(&node, nth);
        if is_refusing(&parcel.target.node) {
            self.disturbed = true;
            let step = FailedStep::Start;
            return Outcome::Refused(failure(step, "/proc/grid cannot be used"));
        }
        match fault.map(|fault| fault.kind) {
            Some(FaultKind::NotReached) => {
                self.floor.coverage.saw("send not reached");
                return Outcome::NotReached(failure(FailedStep::Connect, "refused"));
            }
            Some(FaultKind::Broken) => {
                self.floor.coverage.saw("send broken");
                return Outcome::Uncertain(failure(FailedStep::Receipt, "broken"));
            }
            _ => {}
        }
        self.finish(&node);
        if self.named.contains(&node) {
            self.contacted.insert(node.clone());
        }
        let held = self.floor.machine(&node).token;
        let admitted = held == Some(parcel.token)
            || parcel.take_over
            || match held {
                None => parcel.replaces.is_empty(),
                Some(token) => parcel.replaces.contains(&token),
            };
        if !admitted {
            self.disturbed = true;
            let what = if held.is_none() { "emptied" } else { "another" };
            self.floor.coverage.saw(&format!("send fenced, {what}"));
            if held.is_some() && !self.floor.strangers.contains(&node) {
                let what = format!("{node} is fenced although nobody else was there");
                self.floor.violate(what);
            }
            return Outcome::Fenced {
                held,
                log: Vec::new(),
            };
        }
        if self.floor.strangers.remove(&node) {
            self.disturbed = true;
            self.floor.coverage.saw("taken over");
            if !parcel.take_over {
                let what = format!("{node} is sent over what another store sent there");
                self.floor.violate(what);
            }
        }
        if held == Some(parcel.token) {
            return self.contact(&node, parcel, fault);
        }
        if fault.is_some_and(|fault| fault.kind == FaultKind::Refused) {
            self.floor.coverage.saw("send refused");
            return Outcome::Refused(failure(FailedStep::Test, "refused"));
        }
        self.apply(&node, parcel, fault)
    }

    /// A named machine that is current: verified, checked, and mended where it drifted.
    fn contact(&mut self, node: &NodeName, parcel: &Parcel, fault: Option<Fault>) -> Outcome {
        self.floor.coverage.saw("contact");
        let is_left = self.taken_blindly.contains(node)
            || self.left.get(node).is_none_or(|left| !left.is_empty());
        if !self.contacts.insert(node.clone()) || !is_left {
            let what = format!("{node} is contacted although all of it was verified");
            self.floor.violate(what);
        }
        match fault.map(|fault| fault.kind) {
            // There is nothing to put back: it fails.
            Some(FaultKind::Refused | FaultKind::RolledBack | FaultKind::RollBackFailed) => {
                return self.find_unwell(node, fault.map_or(0, |fault| fault.step));
            }
            Some(FaultKind::ReceiptLost) => {
                return Outcome::Uncertain(failure(FailedStep::Receipt, "broken"));
            }
            _ => {}
        }
        let machine = self.floor.machine(node);
        if machine.release.as_deref() != Some(&*parcel.bundle.manifest) {
            let what = format!("{node} is contacted as if it held another release");
            self.floor.violate(what);
            return Outcome::Refused(failure(FailedStep::Verify, "another release"));
        }
        if self.mend(node) {
            self.floor.coverage.saw("contact mended");
        }
        self.floor.unwell.remove(node);
        Outcome::Applied(Applied::default())
    }

    /// The contact of a machine fails: at a service of its own, or at what is no service's.
    fn find_unwell(&mut self, node: &NodeName, nth: usize) -> Outcome {
        let held = self.floor.machine(node).release.clone();
        let services = held.iter().flat_map(|held| held.services.keys());
        let mut at: Vec<Option<ServiceName>> = services.cloned().map(Some).collect();
        at.push(None);
        let service = at.swap_remove(nth % at.len());
        let what = if service.is_some() {
            "service"
        } else {
            "machine"
        };
        self.floor.coverage.saw(&format!("contact failed, {what}"));
        let unwell = self.floor.unwell.entry(node.clone()).or_default();
        unwell.insert(service.clone(), self.push);
        Outcome::Refused(Failure {
            service,
            ..failure(FailedStep::Check, "it is not well")
        })
    }

    /// What was found not well and is looked at by a send that is applied: whatever changes, comes or goes there.
    fn look_at_unwell(
        &mut self,
        node: &NodeName,
        left: &BTreeSet<ServiceName>,
        alone: &BTreeSet<ServiceName>,
    ) {
        let Some(unwell) = self.floor.unwell.get_mut(node) else {
            return;
        };
        let before = unwell.len();
        unwell.retain(|service, _| match service {
            None => !left.is_empty(),
            Some(service) => left.contains(service) || alone.contains(service),
        });
        let (ended, stay) = (unwell.len() < before, !unwell.is_empty());
        if ended && !left.is_empty() {
            self.floor.coverage.saw("unwell, and a send looked at it");
        }
        if stay {
            self.floor.coverage.saw("unwell, and a send left it");
        }
    }

    /// The services whose files and list a send finds as they are.
    fn left_alone(&mut self, node: &NodeName, wanted: &Manifest) -> BTreeSet<ServiceName> {
        let machine = self.floor.machine(node);
        let held = machine.release.iter().flat_map(|held| &held.services);
        held.filter(|(name, service)| {
            let new = wanted.services.get(*name);
            new.is_some_and(|new| new.files == service.files) && !machine.lists.contains_key(*name)
        })
        .map(|(name, _)| name.clone())
        .collect()
    }

    /// Loads the lists that are not loaded as they should be.
    fn mend(&mut self, node: &NodeName) -> bool {
        let machine = self.floor.machine(node);
        let lists: Vec<_> = machine
            .loaded
            .keys()
            .filter_map(|name| Some((name.clone(), machine.list_in_force(name)?.clone())))
            .collect();
        let mut mended = false;
        for (name, list) in lists {
            if self.floor.machine(node).loaded.get(&name) != Some(&list) {
                mended = true;
                self.floor.step(node, &Step::Load(name, list), false);
            }
        }
        mended
    }

    fn apply(&mut self, node: &NodeName, parcel: &Parcel, fault: Option<Fault>) -> Outcome {
        let manifest = Arc::clone(&parcel.bundle.manifest);
        self.check_contents(node, parcel);
        self.floor.excuse_who_lets_go(node, &manifest);
        self.check_going_on(node, parcel);
        let left = self.lists_left_alone(node, &manifest);
        let alone = self.left_alone(node, &manifest);
        let drifted = self.drifted(node, &left);
        self.mend(node); // where the send ends otherwise, what somebody changed by hand is not told apart
        let machine = self.floor.machine(node);
        let was_here = machine.token.is_some();
        if parcel.take_over {
            self.taken_blindly.insert(node.clone());
        }
        let steps = machine.steps_to(&manifest);
        let going = Unfinished {
            previous: machine.release.clone(),
            previous_lists: machine.lists.clone(),
            wanted: Arc::clone(&manifest),
            forward: fault.is_none_or(|fault| fault.step % 2 == 0),
        };
        machine.unfinished = Some(going.clone());
        let stop = fault.and_then(|fault| match fault.kind {
            FaultKind::Interrupted | FaultKind::RolledBack | FaultKind::RollBackFailed => {
                (!steps.is_empty()).then(|| fault.step % steps.len())
            }
            _ => None,
        });
        for step in steps.iter().take(stop.unwrap_or(steps.len())) {
            self.floor.say(|| format!("      {node} {}", short(step)));
            self.floor.step(node, step, false);
        }
        // The step that fails: a service may have taken its files, a provider did not take its list.
        if let Some(step) = stop.and_then(|at| steps.get(at))
            && matches!(step, Step::Run(..))
        {
            self.floor.step(node, step, false);
        }
        let machine = self.floor.machine(node);
        machine.token = Some(parcel.token);
        self.floor.emptied.remove(node);
        match fault.map(|fault| fault.kind) {
            Some(FaultKind::Interrupted) => {
                self.floor.coverage.saw("send interrupted");
                Outcome::Uncertain(failure(FailedStep::Receipt, "the machine stopped"))
            }
            Some(FaultKind::RollBackFailed) => {
                self.floor.coverage.saw("send roll-back failed");
                Outcome::Uncertain(failure(FailedStep::Apply, "the roll-back failed"))
            }
            Some(FaultKind::RolledBack) => {
                let newer = self.go_back(node, &going);
                self.floor
                    .rolled_back
                    .insert(node.clone(), parcel.bundle.digest);
                self.floor.coverage.saw("send rolled back");
                if going.previous.is_none() {
                    self.floor.coverage.saw("send rolled back, first release");
                    if was_here {
                        self.floor.coverage.saw("send rolled back, first again");
                    }
                }
                if !newer.is_empty() {
                    self.floor
                        .coverage
                        .saw("send rolled back, newer list stays");
                }
                Outcome::RolledBack {
                    failure: failure(FailedStep::Check, "it is not well"),
                    lists: newer,
                }
            }
            kind => {
                self.take(node, &manifest);
                if parcel.replaces.contains(&parcel.token) {
                    // It was to be a contact: it goes on as one.
                    self.floor.coverage.saw("contact took over");
                } else {
                    self.drift_again(node, drifted);
                }
                let looked_at = (left.clone(), alone);
                self.leave(node, left);
                // What was said to be gone is made good by a send; until then the operator is taken at their word. A
                // provider that goes with it was there all the while: whoever counted on it finds it gone.
                let runs = &self.floor.machines[node].running;
                let is_gone = |(other, name): &&(NodeName, ServiceName)| {
                    other == node && !runs.contains_key(name)
                };
                let gone: Vec<_> = self
                    .floor
                    .given_up
                    .iter()
                    .filter(is_gone)
                    .cloned()
                    .collect();
                self.floor.vanished.extend(gone);
                // A consumer that was there all the while may still use what was dropped at the operator's word.
                let late: BTreeSet<ServiceName> = self.floor.using_what_was_dropped(node);
                self.floor
                    .given_up
                    .retain(|(other, name)| other != node || late.contains(name));
                if kind == Some(FaultKind::ReceiptLost) {
                    self.floor.coverage.saw("send receipt lost");
                    return Outcome::Uncertain(failure(FailedStep::Receipt, "broken"));
                }
                if parcel.replaces.contains(&parcel.token) {
                    self.floor.unwell.remove(node);
                } else if parcel.take_over {
                    // Nobody knows what it found to do.
                    let listed =
                        |(_, service): &(&ServiceName, &ServiceManifest)| service.grants.is_some();
                    let all = manifest.services.iter();
                    let listed = all.clone().filter(listed).map(|(name, _)| name.clone());
                    let (listed, all) = (
                        listed.collect(),
                        all.map(|(name, _)| name.clone()).collect(),
                    );
                    self.look_at_unwell(node, &listed, &all);
                } else {
                    self.look_at_unwell(node, &looked_at.0, &looked_at.1);
                }
                self.floor.coverage.saw("send applied");
                self.floor.rolled_back.remove(node);
                Outcome::Applied(Applied::default())
            }
        }
    }

    /// The providers whose list a send does not change, and so does not load.
    fn lists_left_alone(&mut self, node: &NodeName, wanted: &Manifest) -> BTreeSet<ServiceName> {
        let machine = self.floor.machine(node);
        let held = machine.release.iter().flat_map(|held| &held.services);
        // Its list, and what it takes: if either changes, the list is loaded.
        let loaded_for = |name: &ServiceName, service: &ServiceManifest| {
            let list = service.grant_file(name)?;
            let commands = ["load", "verify", "test", "check", "remove", "empty"];
            let commands = commands.map(|step| format!("commands/{name}/{step}"));
            let own = service.files.iter().filter(|file| {
                file.path != list.path && !commands.iter().any(|path| file.path.as_str() == path)
            });
            let own: Vec<_> = own.map(|file| (file.path.clone(), file.sha256)).collect();
            Some((list.sha256, own))
        };
        held.filter(|(name, service)| {
            let before = loaded_for(name, service);
            let new = wanted.services.get(*name);
            let after = new.and_then(|service| loaded_for(name, service));
            before.is_some() && before == after && !machine.lists.contains_key(*name)
        })
        .map(|(name, _)| name.clone())
        .collect()
    }

    /// What those of these providers admit whose list somebody changed by hand.
    fn drifted(
        &mut self,
        node: &NodeName,
        providers: &BTreeSet<ServiceName>,
    ) -> BTreeMap<ServiceName, Grants> {
        let mut drifted = self.floor.machine(node).loaded.clone();
        let is_drifted = |name: &ServiceName| {
            let place = (node.clone(), name.clone());
            providers.contains(name) && self.floor.drifted.contains(&place)
        };
        drifted.retain(|name, _| is_drifted(name));
        drifted
    }

    fn drift_again(&mut self, node: &NodeName, drifted: BTreeMap<ServiceName, Grants>) {
        for (name, list) in drifted {
            self.floor.drifted.insert((node.clone(), name.clone()));
            self.floor.machine(node).loaded.insert(name, list);
            self.floor.coverage.saw("drifted, and sent to");
        }
    }

    /// What was verified by an earlier send is verified.
    fn leave(&mut self, node: &NodeName, left: BTreeSet<ServiceName>) {
        match self.left.get_mut(node) {
            Some(before) => before.retain(|name| left.contains(name)),
            None => {
                self.left.insert(node.clone(), left);
            }
        }
    }

    fn take(&mut self, node: &NodeName, manifest: &Arc<grid::compose::Release>) {
        let left = {
            let machine = self.floor.machine(node);
            let left = machine.release.as_ref().is_some_and(|old| {
                old.services
                    .keys()
                    .any(|name| !manifest.services.contains_key(name))
            });
            *machine = Machine {
                token: machine.token,
                release: Some(Arc::clone(manifest)),
                contents: manifest.files().map(|file| file.sha256).collect(),
                lists: Default::default(),
                unfinished: None,
                loaded: std::mem::take(&mut machine.loaded),
                running: std::mem::take(&mut machine.running),
            };
            left
        };
        if left {
            self.floor.coverage.saw("leaving left");
        }
        // A provider that was falsely said to be gone, and provides no more, admits whom it did: that was the
        // operator's word.
        let said: Vec<_> = self.floor.given_up.iter().cloned().collect();
        for (_, name) in said.into_iter().filter(|(other, _)| other == node) {
            let provides = manifest.services.get(&name).map(|s| s.grants.is_some());
            if provides == Some(false) {
                self.floor.machine(node).loaded.remove(&name);
            }
        }
        let back = &self.floor.machines[node].loaded;
        self.floor
            .vanished
            .retain(|(other, provider)| other != node || !back.contains_key(provider));
        self.check_rest(node);
    }

    fn go_back(
        &mut self,
        node: &NodeName,
        back: &Unfinished,
    ) -> BTreeSet<grid::words::ServiceName> {
        let machine = self.floor.machine(node);
        let newer = machine.newer_lists(back);
        let steps = machine.steps_back(back);
        for step in &steps {
            self.floor
                .say(|| format!("      {node} back: {}", short(step)));
            self.floor.step(node, step, true);
        }
        let machine = self.floor.machine(node);
        machine.release = back.previous.clone();
        machine.lists = newer.clone();
        machine.unfinished = None;
        self.check_rest(node);
        newer
            .into_iter()
            .filter(|(name, list)| back.previous_lists.get(name) != Some(list))
            .map(|(name, _)| name)
            .collect()
    }

    /// A machine whose release was not applied to its end finishes it, or puts the previous one back.
    fn finish(&mut self, node: &NodeName) {
        let Some(unfinished) = self.floor.machine(node).unfinished.clone() else {
            return;
        };
        if unfinished.forward {
            let steps = self.floor.machine(node).steps_to(&unfinished.wanted);
            for step in &steps {
                self.floor
                    .say(|| format!("      {node} on: {}", short(step)));
                self.floor.step(node, step, false);
            }
            self.take(node, &unfinished.wanted);
        } else {
            self.go_back(node, &unfinished);
        }
    }
}
