//! What machines hold, as far as it is known: last sent and unsettled attempts. Here stands one of the two notions that all
//! rules rest on (DESIGN.md, section 3): *acknowledged*; the other, *in use*, stands in `uses`.

mod admitted;

pub use admitted::Admitted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Release;
use super::former::Former;
use super::location::Location;
use super::manifest::{Grants, ServiceManifest};
use super::unwell::Unwell;
use crate::mesh::{Node, SITE_SERVICE};
use crate::words::{Digest, NodeName, ServiceName, Token};

/// What a machine last acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// What it holds.
    pub manifest: Arc<Release>,
    /// Lists newer than the manifest's: those that stayed when the rest was rolled back.
    pub lists: BTreeMap<ServiceName, Grants>,
    /// Where it lies.
    pub at: Location,
    /// Whether another store, or another copy of this one, sent it: an account on its lists may have our number and another secret, so that
    /// none of them is admitted for certain. Until this store has sent.
    pub is_foreign: bool,
}

impl Sent {
    /// The grant list that is loaded for a provider.
    #[must_use]
    pub fn grants(&self, provider: &ServiceName) -> Option<&Grants> {
        self.lists
            .get(provider)
            .or_else(|| self.manifest.services.get(provider)?.grants.as_ref())
    }
}

/// A send that was begun and has no receipt yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The token of that send.
    pub token: Token,
    /// What it carried.
    pub manifest: Arc<Release>,
    /// Where it went; absent, in a record of an older grid: where the machine was last sent to.
    pub at: Option<Location>,
}

/// What is known of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// The token of the send that it last took, which the next one means to replace; also where that send
    /// was rolled back. Absent: it never took one.
    pub token: Option<Token>,
    /// What it last acknowledged; absent: it was never sent, or forgotten.
    pub sent: Option<Sent>,
    /// Where it took the send of its token, while that is a first one which was put back, so that nothing is acknowledged.
    pub put_back: Option<Location>,
    /// A send that is not settled: the machine is *uncertain*.
    pub attempt: Option<Attempt>,
    /// The bundle that was last rolled back there: not flushed again, only when named or when it
    /// composes differently.
    pub rolled_back: Option<Digest>,
    /// Services that `grid forget NODE --service` took as gone from it.
    pub forgotten: BTreeSet<ServiceName>,
    /// What contacts could not verify or mend of what it holds.
    pub unwell: Unwell,
    /// Where it lay before, oldest first: what was sent there is still there, for all that is known.
    pub former: Vec<Former>,
}

impl Machine {
    /// A machine of which nothing is known.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            token: None,
            sent: None,
            put_back: None,
            attempt: None,
            rolled_back: None,
            forgotten: BTreeSet::new(),
            unwell: Unwell::no(),
            former: Vec::new(),
        }
    }

    /// Whether anything is known of it: it took a send once, or may have.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.sent.is_some() || self.attempt.is_some() || !self.former.is_empty()
    }

    /// Where it lay before, while nothing was delivered where it is declared now. What is there counts as in use: the new
    /// place may be a mistake.
    #[must_use]
    pub fn left(&self) -> &[Former] {
        match self.sent {
            None => &self.former,
            Some(_) => &[],
        }
    }

    /// Where it lies, for people, if not where it is `declared`: where it was last reached.
    #[must_use]
    pub fn elsewhere(&self, declared: Option<&Node>) -> Option<String> {
        let sent = self.sent.iter().map(|sent| &sent.at);
        let left = self.left().iter().map(|former| &former.at);
        let places = sent.chain(&self.put_back).chain(left);
        let elsewhere = places.filter(|at| declared.is_none_or(|declared| !at.is_at(declared)));
        let told: Vec<String> = elsewhere.map(|at| at.told(declared)).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Where it lay before it was sent to where it is now, for people: what was sent there lies there still.
    #[must_use]
    pub fn left_behind(&self, declared: Option<&Node>) -> Vec<String> {
        let former = self.former.iter().filter(|_| self.sent.is_some());
        // A place that is declared again is one that is asked next, and not left.
        let is_declared = |former: &Former| declared.is_some_and(|node| former.at.is_at(node));
        let former = former.filter(|former| former.holds_something() && !is_declared(former));
        former.map(|former| former.at.told(declared)).collect()
    }

    /// Every release that may be there, wherever it lay.
    pub fn releases(&self) -> impl Iterator<Item = &Arc<Release>> {
        let former = self.former.iter();
        let sent = former.clone().filter_map(|former| former.sent.as_ref());
        let sent = self.sent.iter().chain(sent).map(|sent| &sent.manifest);
        let attempt = former.filter_map(|former| former.attempt.as_ref());
        let attempt = self.attempt.iter().chain(attempt);
        sent.chain(attempt.map(|attempt| &attempt.manifest))
    }

    /// Whether `token` is of a send to it that this store knows of, wherever it lay.
    #[must_use]
    pub fn took(&self, token: &Token) -> bool {
        self.took_here(token) || self.former.iter().any(|former| former.took(token))
    }

    /// Whether what it holds with the token `held` is what this store sent: what that send brought, or what was acknowledged before. A send
    /// that takes over and is put back leaves its own token and what another store sent.
    #[must_use]
    pub fn was_sent(&self, held: &Token, release: &Digest) -> bool {
        let former = || self.former.iter();
        let attempts = self.attempt.iter();
        let mut attempts = attempts.chain(former().filter_map(|former| former.attempt.as_ref()));
        let sent = self.sent.iter();
        let mut sent = sent.chain(former().filter_map(|former| former.sent.as_ref()));
        attempts.any(|one| one.token == *held && one.manifest.digest() == *release)
            || sent.any(|one| !one.is_foreign && one.manifest.digest() == *release)
    }

    fn took_here(&self, token: &Token) -> bool {
        let attempted = self.attempt.as_ref().map(|attempt| &attempt.token);
        self.token.as_ref() == Some(token) || attempted == Some(token)
    }

    /// It answered where it is `declared`: of a token whose send is not acknowledged that was a first one, which was put back.
    pub fn note_put_back(&mut self, declared: &Node) {
        let is_put_back = self.sent.is_none() && self.token.is_some();
        self.put_back = is_put_back.then(|| Location::of(declared));
    }

    /// It was asked where it is `declared`, and holds what the send of `held` brought; `None`: nothing. What is known of another
    /// place, where it was sent to, is kept as a former one: nothing was taken away there.
    pub fn asked_at(&mut self, declared: &Node, held: Option<&Token>) {
        let is_here = held.is_some_and(|held| self.took_here(held));
        let sent = self
            .sent
            .take_if(|sent| !is_here && !sent.at.is_at(declared));
        let put_back = self.put_back.take_if(|at| !is_here && !at.is_at(declared));
        let attempt = self.attempt.take_if(|attempt| {
            let elsewhere = attempt
                .at
                .as_ref()
                .map_or(sent.is_some(), |at| !at.is_at(declared));
            elsewhere && held != Some(&attempt.token)
        });
        if let Some(sent) = sent {
            // What was found there says nothing of this place.
            self.unwell = Unwell::no();
            let place = sent.at.clone();
            let token = self.token.take();
            self.former.push(Former::of(place, token).with(sent));
        } else if let Some(place) = put_back {
            self.former.push(Former::of(place, self.token.take()));
        }
        if let Some(attempt) = attempt {
            let last = self.former.last().map(|former| former.at.clone());
            let place = attempt.at.clone().or(last);
            match self.former.last_mut() {
                Some(last) if Some(&last.at) == place.as_ref() => last.attempt = Some(attempt),
                _ => self.former.extend(place.map(|place| Former {
                    attempt: Some(attempt),
                    ..Former::of(place, None)
                })),
            }
        }
        self.former.retain(|former| {
            !former.at.is_at(declared) && !held.is_some_and(|held| former.took(held))
        });
        let too_many = self.former.len().saturating_sub(Former::MOST);
        self.former.drain(..too_many);
    }

    /// A service as last acknowledged there.
    #[must_use]
    pub fn holds(&self, service: &ServiceName) -> Option<&ServiceManifest> {
        let held = self.sent.as_ref()?.manifest.services.get(service)?;
        (!self.forgotten.contains(service)).then_some(held)
    }

    /// Whether it holds a service for certain: as last acknowledged and, while an attempt is not settled, by that too.
    #[must_use]
    pub fn surely_holds(&self, service: &ServiceName) -> bool {
        let attempt = self.attempt.as_ref();
        self.holds(service).is_some()
            && attempt.is_none_or(|attempt| attempt.manifest.services.contains_key(service))
    }

    /// The services as last acknowledged there.
    pub fn services(&self) -> impl Iterator<Item = (&ServiceName, &ServiceManifest)> {
        self.sent
            .iter()
            .flat_map(|sent| &sent.manifest.services)
            .filter(|(name, _)| !self.forgotten.contains(*name))
    }

    /// The services that may be there: as last acknowledged, and as attempted; or where it lay last, while nothing was
    /// delivered elsewhere.
    pub(crate) fn possible(&self) -> impl Iterator<Item = (&ServiceName, &ServiceManifest)> {
        let attempted = self
            .attempt
            .iter()
            .flat_map(|attempt| &attempt.manifest.services)
            .filter(|(name, _)| !self.forgotten.contains(*name));
        let left = self.left().iter().flat_map(Former::possible);
        let left = left.filter(|(name, _)| !self.forgotten.contains(*name));
        self.services().chain(attempted).chain(left)
    }

    /// The services that it may hold, but for the site, which is none of the declaration's.
    pub fn declarable(&self) -> impl Iterator<Item = &ServiceName> {
        let held = self.possible().map(|(name, _)| name);
        held.filter(|name| name.as_str() != SITE_SERVICE)
    }

    /// A send is begun. What it brings may be there from now on, also what was said to be gone: that is returned, to be
    /// said again should the send not be received.
    #[must_use]
    pub fn begin(&mut self, attempt: Attempt) -> BTreeSet<ServiceName> {
        let brought = |name: &ServiceName| attempt.manifest.services.contains_key(name);
        let forgotten = std::mem::take(&mut self.forgotten).into_iter();
        let (again, gone) = forgotten.partition(brought);
        self.forgotten = gone;
        self.attempt = Some(attempt);
        again
    }

    /// The lists that may be loaded for `provider`: the last acknowledged one and, while an attempt is not settled, that
    /// attempt's. What is on one of them may be admitted, and what is on both is for certain.
    pub fn possible_lists(&self, provider: &ServiceName) -> impl Iterator<Item = &Grants> {
        let held = self
            .holds(provider)
            .and(self.sent.as_ref())
            .and_then(|sent| sent.grants(provider));
        let lately = self
            .attempt
            .as_ref()
            .filter(|_| !self.forgotten.contains(provider))
            .and_then(|attempt| attempt.manifest.services.get(provider)?.grants.as_ref());
        held.into_iter().chain(lately)
    }

    /// What the machine admits on `provider` for certain (rule 2, "acknowledged"): what is on its last
    /// acknowledged list and, while an attempt is not settled, on that attempt's list too. `None`: it
    /// never had a list.
    #[must_use]
    pub fn admits(&self, provider: &ServiceName) -> Option<Admitted<'_>> {
        let held = self
            .holds(provider)
            .and(self.sent.as_ref())
            .and_then(|sent| sent.grants(provider));
        let is_foreign = self.sent.as_ref().is_some_and(|sent| sent.is_foreign);
        let Some(attempt) = &self.attempt else {
            return held.map(|list| match is_foreign {
                true => Admitted::Nothing,
                false => Admitted::List(list),
            });
        };
        match attempt.manifest.services.get(provider) {
            None => held.map(|_| Admitted::Nothing),
            Some(service) => Some(match (held, &service.grants) {
                (Some(held), Some(attempted)) if !is_foreign => Admitted::Both(held, attempted),
                _ => Admitted::Nothing,
            }),
        }
    }
}

/// Every machine that was ever sent to or attempted, declared or not.
pub type Fleet = BTreeMap<NodeName, Machine>;

#[cfg(test)]
mod tests {
    use super::Sent;
    use crate::compose::location::Location;
    use crate::compose::sample::{Sample, bound, name, node, told, with};
    use crate::compose::uses::Uses;
    use crate::mesh::Node;
    use crate::words::AbsolutePath;

    fn admits(sample: &Sample) -> Option<String> {
        let machine = sample.fleet.get("m0")?;
        Some(told(
            &machine.admits(&name("broker"))?.iter().cloned().collect(),
        ))
    }

    #[test]
    fn what_was_found_not_well_at_one_place_says_nothing_of_another() {
        let sample = Sample::of(&["web@m0"]).sent("m0", vec![("web", with(""))]);
        let mut machine = sample.fleet[&node("m0")].clone();
        machine.unwell.found(None, 3);
        let here = sample.mesh.nodes[&node("m0")].clone();
        machine.sent.as_mut().unwrap().at = Location::of(&here);
        let mut asked = machine.clone();
        asked.asked_at(&here, None);
        assert!(!asked.unwell.is_no());
        let elsewhere = Node {
            root: AbsolutePath::new("/elsewhere").unwrap(),
            ..here
        };
        machine.asked_at(&elsewhere, None);
        assert!(machine.unwell.is_no());
    }

    #[test]
    fn the_site_of_a_machine_is_no_service_that_the_declaration_could_take_away() {
        let sent = vec![("site", with("")), ("web", with(""))];
        let sample = Sample::of(&[]).sent("m0", sent);
        let held: Vec<&str> = sample.fleet[&node("m0")]
            .declarable()
            .map(|name| name.as_str())
            .collect();
        assert_eq!(held, ["web"]);
    }

    #[test]
    fn a_machine_whose_first_send_was_put_back_is_uncertain_once_it_is_declared_elsewhere() {
        let mut sample = Sample::of(&["web@m0"]);
        let declared = sample.mesh.nodes[&node("m0")].clone();
        let machine = sample.fleet.entry(node("m0")).or_default();
        machine.put_back = Some(Location::of(&declared));
        assert!(!sample.world().is_uncertain(&node("m0")));
        let elsewhere = Location {
            address: "elsewhere".to_owned(),
            root: None,
        };
        let machine = sample.fleet.entry(node("m0")).or_default();
        machine.put_back = Some(elsewhere);
        assert!(sample.world().is_uncertain(&node("m0")));
    }

    #[test]
    fn what_another_store_sent_stays_foreign_under_a_token_of_ours() {
        let theirs = Sample::of(&[]).sent("m0", vec![("broker", with("a:1"))]);
        let theirs = theirs.fleet[&node("m0")].sent.clone().unwrap();
        let held = theirs.manifest.digest();
        // A send that was to take it over, and was put back: the token is ours, the release is not.
        let sample = Sample::of(&[]).attempted("m0", vec![("broker", with("b:1"))]);
        let mut machine = sample.fleet[&node("m0")].clone();
        let attempt = machine.attempt.clone().unwrap();
        assert!(machine.was_sent(&attempt.token, &attempt.manifest.digest()));
        assert!(!machine.was_sent(&attempt.token, &held));
        // It was asked, and a send after that did not end.
        machine.sent = Some(Sent {
            is_foreign: true,
            ..theirs.clone()
        });
        assert!(!machine.was_sent(&attempt.token, &held));
        machine.sent = Some(theirs);
        assert!(machine.was_sent(&attempt.token, &held));
    }

    #[test]
    fn what_another_store_sent_may_be_admitted_and_nothing_of_it_is_for_certain() {
        let mut sample = Sample::of(&[]).sent("m0", vec![("broker", with("a:1"))]);
        let machine = sample.fleet.get_mut(&node("m0")).unwrap();
        if let Some(sent) = &mut machine.sent {
            sent.is_foreign = true;
        }
        assert_eq!(admits(&sample).unwrap(), "");
        let machine = &sample.fleet[&node("m0")];
        assert_eq!(machine.possible_lists(&name("broker")).count(), 1);
    }

    #[test]
    fn a_machine_admits_what_its_last_acknowledged_list_says() {
        let sample = Sample::of(&[]).sent("m0", vec![("broker", with("a:1 b:1"))]);
        assert_eq!(admits(&sample).unwrap(), "a:1 b:1");
        let sample = Sample::of(&[]).sent("m0", vec![]);
        assert_eq!(admits(&sample), None);
    }

    #[test]
    fn while_an_attempt_is_not_settled_it_admits_for_certain_what_both_lists_say() {
        let sample = Sample::of(&[])
            .sent("m0", vec![("broker", with("a:1 b:1"))])
            .attempted("m0", vec![("broker", with("b:1 c:1"))]);
        assert_eq!(admits(&sample).unwrap(), "b:1");
        let leaves = Sample::of(&[])
            .sent("m0", vec![("broker", with("a:1"))])
            .attempted("m0", vec![]);
        assert_eq!(admits(&leaves).unwrap(), "");
        let comes = Sample::of(&[]).attempted("m0", vec![("broker", with("a:1"))]);
        assert_eq!(admits(&comes).unwrap(), "");
    }

    #[test]
    fn the_list_that_stayed_when_the_rest_was_rolled_back_counts() {
        let sample = Sample::of(&[])
            .sent("m0", vec![("broker", with("a:1"))])
            .stayed("m0", "broker", "a:1 b:1");
        assert_eq!(admits(&sample).unwrap(), "a:1 b:1");
    }

    #[test]
    fn while_an_attempt_is_not_settled_it_may_admit_what_either_list_says() {
        let lists = |sample: &Sample| -> Vec<String> {
            let machine = &sample.fleet["m0"];
            machine.possible_lists(&name("broker")).map(told).collect()
        };
        let sample = Sample::of(&[]).sent("m0", vec![("broker", with("a:1"))]);
        assert_eq!(lists(&sample), ["a:1"]);
        let sample = sample.attempted("m0", vec![("broker", with("b:1"))]);
        assert_eq!(lists(&sample), ["a:1", "b:1"]);
        let sample = sample.stayed("m0", "broker", "c:1");
        assert_eq!(lists(&sample), ["c:1", "b:1"]);
        assert!(lists(&sample.forgotten("m0", "broker")).is_empty());
    }

    #[test]
    fn what_was_said_to_be_gone_is_in_use_again_once_it_is_sent_again() {
        let sample = Sample::of(&[])
            .attempted("m0", vec![("billing", bound("broker:2@m1"))])
            .sent("m0", vec![("billing", bound("broker:1@m1"))])
            .forgotten("m0", "billing")
            .forgotten("m0", "audit");
        let mut fleet = sample.fleet.clone();
        let machine = fleet.get_mut("m0").unwrap();
        let attempt = machine.attempt.take().unwrap();
        assert_eq!(machine.possible().count(), 0);
        assert_eq!(machine.begin(attempt), [name("billing")].into());
        assert_eq!(machine.forgotten, [name("audit")].into());
        assert_eq!(
            Uses::of(&fleet)
                .accounts(&name("broker"), &name("billing"))
                .count(),
            2
        );
    }

    #[test]
    fn what_lies_at_a_former_place_is_of_the_releases_that_may_be_there() {
        let mut sample = Sample::of(&[])
            .sent("m0", vec![("billing", bound("broker:1@m1"))])
            .attempted("m0", vec![("audit", bound("broker:1@m1"))]);
        let mut declared = sample.mesh.nodes["m0"].clone();
        let machine = sample.fleet.get_mut("m0").unwrap();
        machine.attempt.as_mut().unwrap().at = Some(super::Location::of(&declared));
        let all = |machine: &super::Machine| {
            let releases = machine.releases();
            releases.map(|r| r.digest()).collect::<Vec<_>>()
        };
        let before = all(machine);
        assert_eq!(before.len(), 2);
        declared.address = Some("10.0.0.9".to_owned());
        machine.asked_at(&declared, None);
        assert!(machine.sent.is_none() && machine.attempt.is_none());
        assert_eq!(all(machine), before);
    }

    #[test]
    fn a_service_that_is_forgotten_is_not_held() {
        let sample = Sample::of(&[])
            .sent("m0", vec![("broker", with("a:1"))])
            .forgotten("m0", "broker");
        assert_eq!(admits(&sample), None);
        assert_eq!(sample.fleet["m0"].services().count(), 0);
        let uses = Uses::of(&sample.fleet);
        assert_eq!(uses.holders(&name("broker")).count(), 0);
    }
}
