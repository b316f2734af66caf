//! What must hold of each parcel when it is sent, and of a machine when it has taken one.

use super::*;

impl Courier<'_> {
    /// The number of a push is on disk before any machine is contacted.
    pub(super) fn check_number(&mut self) {
        let stored = self.floor.store.borrow().peek().push;
        if stored != self.push {
            let what = format!(
                "push {} contacts machines, and {stored} is stored",
                self.push
            );
            self.floor.violate(what);
        }
    }

    /// What must hold of a send before it goes out.
    pub(super) fn check_parcel(&mut self, parcel: &Parcel) {
        let node = &parcel.target.node.name;
        let manifest = &parcel.bundle.manifest;
        if let Some(hold) = &parcel.target.node.hold {
            let what = format!("{node} is on hold ({}) and is sent to", hold.reason);
            self.floor.violate(what);
        }
        if parcel.take_over && !self.may_take_over(node) {
            let what = format!("{node} is taken over, which nobody asked for");
            self.floor.violate(what);
        }
        if parcel.bundle.digest != manifest.digest() {
            self.floor
                .violate(format!("{node}: a digest of something else"));
        }
        if self.floor.rolled_back.get(node) == Some(&parcel.bundle.digest) {
            if self.all_behind || self.named.contains(node) {
                self.floor.coverage.saw("rolled back, named again");
            } else {
                let what = format!("{node} is flushed with what was rolled back there");
                self.floor.violate(what);
            }
        }
        // Where nothing can be written nothing starts, and nothing leaves.
        if !is_refusing(&parcel.target.node) {
            self.check_moves(parcel);
            self.floor.check_start_first(node, manifest);
        }
        self.check_attempt(parcel);
    }

    /// An attempt is on disk before a send goes out.
    pub(super) fn check_attempt(&mut self, parcel: &Parcel) {
        let node = &parcel.target.node.name;
        let store = self.floor.store.borrow();
        let known = store.peek().fleet.get(node);
        let attempt = known.and_then(|m| m.attempt.as_ref());
        let contact = known.and_then(|m| m.token) == Some(parcel.token);
        let recorded = attempt.is_some_and(|a| a.token == parcel.token);
        let mut wrong = None;
        if !contact && !recorded {
            wrong = Some(format!("{node} is sent to without a recorded attempt"));
        }
        for (provider, list) in parcel
            .bundle
            .manifest
            .services
            .iter()
            .filter_map(|(name, service)| Some((name, service.grants.as_ref()?)))
        {
            for grant in list {
                let stored = store.peek().provisions.get(provider, &grant.consumer);
                if stored.is_none_or(|p| p.get(grant.generation).is_none()) {
                    wrong = Some(format!(
                        "{provider} is told of an account that is not stored"
                    ));
                }
            }
        }
        drop(store);
        if let Some(wrong) = wrong {
            self.floor.violate(wrong);
        }
    }

    /// Rule 4 as it looks from outside: what stops first never runs in two places.
    pub(super) fn check_moves(&mut self, parcel: &Parcel) {
        let node = &parcel.target.node.name;
        let mut found = None;
        for name in parcel.bundle.manifest.services.keys() {
            let Some(service) = self.floor.mesh.services.get(name) else {
                continue;
            };
            let store = self.floor.store.borrow();
            let fleet = &store.peek().fleet;
            let held = fleet.get(node).is_some_and(|m| m.holds(name).is_some());
            if held || !service.nodes.contains(node) {
                continue;
            }
            let bound = fleet.values().any(|machine| {
                let sent = machine.services().map(|(_, s)| s);
                let attempted = machine
                    .attempt
                    .iter()
                    .flat_map(|a| a.manifest.services.values());
                // What lies at a former place, while nothing was delivered where it is declared now.
                let left = machine.left().iter().flat_map(|former| {
                    let sent = former.sent.iter().map(|sent| &sent.manifest);
                    let attempt = former.attempt.iter().map(|attempt| &attempt.manifest);
                    sent.chain(attempt)
                        .flat_map(|release| release.services.values())
                });
                sent.chain(attempted)
                    .chain(left)
                    .any(|s| s.bindings.get(name).is_some_and(|b| !b.nodes.is_empty()))
            });
            let old = self.floor.machines.iter().find(|(other, machine)| {
                !service.nodes.contains(*other)
                    && machine.running.contains_key(name)
                    && !self
                        .floor
                        .given_up
                        .contains(&((*other).clone(), name.clone()))
            });
            let moved = old.is_some()
                || fleet
                    .iter()
                    .any(|(o, m)| o != node && m.holds(name).is_some());
            match (service.moves, old) {
                (Move::StopFirst, Some((old, _))) if !bound => {
                    found = Some(format!("{name} starts on {node} while it runs on {old}"));
                }
                (Move::StopFirst, None) if moved => self.floor.coverage.saw("moved, stop first"),
                (Move::StartFirst, Some(_)) => self.floor.coverage.saw("moved, start first"),
                _ => {}
            }
        }
        if let Some(found) = found {
            self.floor.violate(found);
        }
    }

    /// Whoever leaves closes no account at a host where another machine has it still.
    pub(super) fn check_going_on(&mut self, node: &NodeName, parcel: &Parcel) {
        let machines = &self.floor.machines;
        let Some(machine) = machines.get(node) else {
            return;
        };
        let goes_on: Vec<ServiceName> = machine
            .running
            .iter()
            .filter(|(name, _)| !parcel.bundle.manifest.services.contains_key(*name))
            .filter(|(name, held)| {
                // Whoever was said to be gone there is not counted on.
                let is_given_up = |other: &NodeName| {
                    let key = (other.clone(), (*name).clone());
                    self.floor.given_up.contains(&key)
                };
                let mut others = machines
                    .iter()
                    .filter(|(other, _)| *other != node && !is_given_up(other));
                held.endpoint.is_some()
                    && others.any(|(_, other)| {
                        let other = other.running.get(*name);
                        other.is_some_and(|other| other.endpoint == held.endpoint)
                    })
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in goes_on {
            self.floor.coverage.saw("leaving, goes on elsewhere");
            if !parcel.bundle.goes_on.contains(&name) {
                let what =
                    format!("{node} closes the accounts of {name} that are in use elsewhere");
                self.floor.violate(what);
            }
        }
    }

    /// Every file of a bundle comes with it, or is on the machine.
    pub(super) fn check_contents(&mut self, node: &NodeName, parcel: &Parcel) {
        let held = &self.floor.machines[node].contents;
        let missing = parcel.bundle.manifest.files().find(|file| {
            match parcel.bundle.contents.get(&file.sha256) {
                Some(Content::Kept) => !held.contains(&file.sha256),
                Some(_) => false,
                None => true,
            }
        });
        if let Some(missing) = missing {
            let what = format!("{node}: nobody has the content of {}", missing.path);
            self.floor.violate(what);
        }
    }

    pub(super) fn check_rest(&mut self, node: &NodeName) {
        if let Some(what) = self.floor.machine(node).half_switched()
            && !self
                .floor
                .drifted
                .iter()
                .any(|(drifted, _)| drifted == node)
        {
            self.floor
                .violate(format!("{node} is half switched: {what}"));
        }
    }
}
