//! A simulated machine: what it really holds, really runs and really admits (DESIGN.md, section 5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grid::compose::Release;
use grid::compose::manifest::{Grants, Manifest, ServiceManifest};
use grid::words::{Digest, ServiceName, Token};

/// What a machine really is.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Of the send that it last took.
    pub token: Option<Token>,
    /// `current`.
    pub release: Option<Arc<Release>>,
    /// Lists that stayed when the rest was put back.
    pub lists: BTreeMap<ServiceName, Grants>,
    /// What its providers admit this instant.
    pub loaded: BTreeMap<ServiceName, Grants>,
    /// What its services run with this instant.
    pub running: BTreeMap<ServiceName, ServiceManifest>,
    /// The contents that it can link over.
    pub contents: BTreeSet<Digest>,
    /// It stopped in mid apply.
    pub unfinished: Option<Unfinished>,
}

/// What a machine that stopped in mid apply finds when it is asked.
#[derive(Debug, Clone)]
pub struct Unfinished {
    pub previous: Option<Arc<Release>>,
    pub previous_lists: BTreeMap<ServiceName, Grants>,
    pub wanted: Arc<Release>,
    /// Whether it finishes the release, or puts the previous one back.
    pub forward: bool,
}

/// One step of an apply.
#[derive(Debug, Clone)]
pub enum Step {
    /// A provider loads its list.
    Load(ServiceName, Grants),
    /// A service takes its files.
    Run(ServiceName, Box<ServiceManifest>),
    /// A provider that leaves loads an empty list.
    Close(ServiceName),
    /// A service leaves.
    Remove(ServiceName),
}

impl Machine {
    /// The steps that bring the machine to `wanted`: providers first; then those that leave, consumers first.
    pub fn steps_to(&self, wanted: &Manifest) -> Vec<Step> {
        let mut steps = Vec::new();
        for name in wanted.apply_order() {
            let service = &wanted.services[name];
            if let Some(grants) = &service.grants {
                steps.push(Step::Load(name.clone(), grants.clone()));
            }
            steps.push(Step::Run(name.clone(), Box::new(service.clone())));
        }
        self.leaving(wanted, &mut steps);
        steps
    }

    fn leaving(&self, wanted: &Manifest, steps: &mut Vec<Step>) {
        let held = Manifest {
            services: self.running.clone(),
            ..wanted.clone()
        };
        for name in held.apply_order().into_iter().rev() {
            if wanted.services.contains_key(name) {
                continue;
            }
            if self.loaded.contains_key(name) {
                steps.push(Step::Close(name.clone()));
            }
            steps.push(Step::Remove(name.clone()));
        }
    }

    /// The steps that put `previous` back, but for the lists that were loaded since.
    pub fn steps_back(&self, back: &Unfinished) -> Vec<Step> {
        let nothing = Manifest {
            services: BTreeMap::new(),
            ..Manifest::clone(&back.wanted)
        };
        let previous: &Manifest = match &back.previous {
            Some(previous) => previous,
            None => &nothing,
        };
        let mut steps = Vec::new();
        for name in previous.apply_order() {
            let service = &previous.services[name];
            if let Some(list) = self.list_after_going_back(back, name, service) {
                steps.push(Step::Load(name.clone(), list));
            }
            steps.push(Step::Run(name.clone(), Box::new(service.clone())));
        }
        self.leaving(previous, &mut steps);
        // What is new here vanishes in one step: who is bound does not count on it yet.
        steps.retain(|step| !matches!(step, Step::Close(_)));
        steps
    }

    fn list_after_going_back(
        &self,
        back: &Unfinished,
        name: &ServiceName,
        service: &ServiceManifest,
    ) -> Option<Grants> {
        let before = back.previous_lists.get(name).or(service.grants.as_ref())?;
        let stays = back
            .wanted
            .services
            .get(name)
            .is_some_and(|new| new.grants.is_some());
        let now = self.loaded.get(name).filter(|_| stays);
        Some(now.unwrap_or(before).clone())
    }

    /// The lists that stay, and are newer than those of the previous release.
    pub fn newer_lists(&self, back: &Unfinished) -> BTreeMap<ServiceName, Grants> {
        let mut newer = back.previous_lists.clone();
        for (name, service) in back.previous.iter().flat_map(|previous| &previous.services) {
            let before = back.previous_lists.get(name).or(service.grants.as_ref());
            let after = self.list_after_going_back(back, name, service);
            if let Some(after) = after
                && Some(&after) != before
            {
                newer.insert(name.clone(), after);
            }
        }
        newer
    }

    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Load(name, grants) => {
                self.loaded.insert(name.clone(), grants.clone());
            }
            Step::Run(name, service) => {
                // A service that provides no more loads nothing: whom it still admits it goes on admitting.
                if service.grants.is_none() && self.loaded.get(name).is_some_and(Grants::is_empty) {
                    self.loaded.remove(name);
                }
                self.running
                    .insert(name.clone(), ServiceManifest::clone(service));
            }
            Step::Close(name) => {
                self.loaded.insert(name.clone(), Grants::new());
            }
            Step::Remove(name) => {
                self.running.remove(name);
                self.loaded.remove(name);
            }
        }
    }

    /// The list that a provider should have loaded.
    pub fn list_in_force(&self, name: &ServiceName) -> Option<&Grants> {
        self.lists
            .get(name)
            .or_else(|| self.release.as_ref()?.services.get(name)?.grants.as_ref())
    }

    /// What is half switched on a machine that is at rest, if anything is.
    pub fn half_switched(&self) -> Option<String> {
        if self.unfinished.is_some() {
            return None;
        }
        let none = BTreeMap::new();
        let released = self.release.as_ref().map_or(&none, |r| &r.services);
        if &self.running != released {
            return Some("it runs other services than its release holds".to_owned());
        }
        for (name, service) in released {
            if service.grants.is_some() != self.loaded.contains_key(name) {
                return Some(format!(
                    "{name} has a list and none is loaded, or the reverse"
                ));
            }
        }
        self.loaded
            .iter()
            .find(|(name, loaded)| self.list_in_force(name) != Some(loaded))
            .map(|(name, _)| format!("{name} admits another list than the one in force"))
    }
}
