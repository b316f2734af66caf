//! Behind (DESIGN.md, section 1): composed now differs from last sent; never sent, unless all of it waits; in
//! need of a mint; uncertain. Finding who is behind mints nothing.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::difference::{Difference, differences};
use crate::compose::identities::lacks_identity;
use crate::compose::manifest::Manifest;
use crate::compose::sent::{Machine, Sent};
use crate::compose::services::{Kept, Outline, Wait, outline};
use crate::compose::{ComposeError, Composer, Composition, Release, World};
use crate::provision::{self, ProvisionId};
use crate::words::{NodeName, ServiceName};

/// Why a machine is behind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "of")]
pub enum Reason {
    /// A send to it is not settled.
    Uncertain,
    /// These accounts are to be minted.
    NeedsMint(Vec<ProvisionId>),
    /// Its site has no identity yet.
    NeedsIdentity,
    /// Its site's identity is to be renewed. Known to who knows the day: a push mints it before it looks who is behind.
    NeedsRenewal,
    /// It was never sent to.
    NeverSent,
    /// Nothing was delivered yet where it is declared; what it was sent lies where it was last reached.
    Moved,
    /// Another store, or another copy of this one, sent what it holds, and is to be refused from now on.
    TakenOver,
    /// It composes differently.
    Differs(Vec<Difference>),
    /// It cannot be composed; the text says why.
    Uncomposable(String),
}

/// How a machine stands.
#[derive(Debug)]
pub struct Standing {
    /// What it should be.
    pub composition: Result<Composition, ComposeError>,
    /// Why it is behind; empty: it is not.
    pub reasons: Vec<Reason>,
    rolled_back: bool,
}

impl Standing {
    /// Whether it is behind.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// Whether what it should be is the very bundle that was last rolled back there.
    #[must_use]
    pub fn is_rolled_back(&self) -> bool {
        self.rolled_back
    }
}

/// How a machine stands, without its bundle: of all machines at a time, only this is kept.
#[derive(Debug)]
pub struct Glance {
    /// What is assigned there and waits.
    pub waits: BTreeMap<ServiceName, Wait>,
    /// What is assigned there and has a revoked consumption.
    pub revoked: BTreeSet<ServiceName>,
    /// What stays there although the declaration took it away.
    pub keeps: Kept,
    /// Whose lists are to be loaded there.
    pub lists: BTreeSet<ServiceName>,
    /// Why it is behind; empty: it is not.
    pub reasons: Vec<Reason>,
    /// Whether what it should be is the very bundle that was last rolled back there.
    pub is_rolled_back: bool,
    /// Of one that cannot be composed: what to do about that, as a clause.
    pub remedy: Option<String>,
}

impl Glance {
    /// Whether it is behind.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.reasons.is_empty()
    }
}

/// How every declared machine stands.
pub type Survey = BTreeMap<NodeName, Glance>;

/// So many machines are looked at on all cores.
const MANY: usize = 64;

/// Looks at every declared machine.
#[must_use]
pub fn survey(composer: &Composer, world: &World<'_>) -> Survey {
    let nodes: Vec<&NodeName> = world.mesh.nodes.keys().collect();
    let look = |node: &&NodeName| ((*node).clone(), glance(composer, world, node));
    if nodes.len() < MANY {
        return nodes.iter().map(look).collect();
    }
    let seen: Vec<(NodeName, Glance)> = nodes.par_iter().map(look).collect();
    seen.into_iter().collect()
}

fn glance(composer: &Composer, world: &World<'_>, node: &NodeName) -> Glance {
    let composed = composer.release(world, node);
    let seen = composed
        .as_ref()
        .map(|(release, outline)| (release, outline));
    let (reasons, is_rolled_back) = judge(world, node, seen);
    let remedy = composed.as_ref().err().map(ComposeError::remedy);
    // One that cannot be composed has none of these, but keeps what it keeps.
    let outline = match composed {
        Ok((_, outline)) => outline,
        Err(_) => Outline {
            keeps: outline(world, node).keeps,
            ..Outline::default()
        },
    };
    let services = outline.services.into_iter();
    Glance {
        waits: outline.waits,
        revoked: outline.revoked,
        keeps: outline.keeps,
        lists: services
            .filter_map(|(name, placed)| placed.grants().is_some().then_some(name))
            .collect(),
        reasons,
        is_rolled_back,
        remedy,
    }
}

/// How `node` stands in `world`.
#[must_use]
pub fn standing(composer: &Composer, world: &World<'_>, node: &NodeName) -> Standing {
    let composition = composer.compose(world, node);
    let composed = composition.as_ref();
    let seen = composed.map(|composed| (&*composed.bundle.manifest, &composed.outline));
    let (reasons, rolled_back) = judge(world, node, seen);
    Standing {
        composition,
        reasons,
        rolled_back,
    }
}

/// Why a machine that composes to `composed` is behind, and whether that is what was last rolled back there.
fn judge(
    world: &World<'_>,
    node: &NodeName,
    composed: Result<(&Release, &Outline), &ComposeError>,
) -> (Vec<Reason>, bool) {
    let machine = world.machine(node);
    let mut reasons = Vec::new();
    if world.is_uncertain(node) {
        reasons.push(Reason::Uncertain);
    }
    let missing = provision::missing(world.services_on(node), world.provisions);
    if !missing.is_empty() {
        reasons.push(Reason::NeedsMint(missing));
    }
    if lacks_identity(world, node) {
        reasons.push(Reason::NeedsIdentity);
    }
    let mut rolled_back = false;
    match (composed, &machine.sent) {
        (Err(error), _) => reasons.push(Reason::Uncomposable(error.to_string())),
        (Ok((release, outline)), None) => {
            rolled_back = machine.rolled_back == Some(release.digest());
            let all_waits = release.services.is_empty() && !outline.waits.is_empty();
            if machine.attempt.is_none() && !machine.left().is_empty() {
                reasons.push(Reason::Moved);
            } else if !all_waits {
                reasons.push(Reason::NeverSent);
            }
        }
        (Ok((release, _)), Some(sent)) => {
            let digest = release.digest();
            rolled_back = machine.rolled_back == Some(digest);
            if sent.is_foreign {
                reasons.push(Reason::TakenOver);
            }
            let is_current = digest == sent.manifest.digest()
                && sent.lists.is_empty()
                && machine.forgotten.is_empty();
            if !is_current {
                reasons.push(Reason::Differs(differ(machine, sent, release)));
            }
        }
    }
    (reasons, rolled_back)
}

/// What differs between a machine and what it should be; never empty, where it is not current.
fn differ(machine: &Machine, sent: &Sent, wanted: &Manifest) -> Vec<Difference> {
    let mut found = differences(&held(machine, sent), wanted);
    for provider in sent.lists.keys() {
        let is_told = found.iter().any(
            |difference| matches!(difference, Difference::Grants { provider: told, .. } if told == provider),
        );
        if !is_told {
            found.push(Difference::Stayed {
                provider: provider.clone(),
            });
        }
    }
    for service in &machine.forgotten {
        if !wanted.services.contains_key(service) {
            found.push(Difference::Forgotten {
                service: service.clone(),
            });
        }
    }
    found
}

/// The manifest with the lists that stayed from a roll-back, which is what the machine's providers admit, and
/// without what was taken as gone.
fn held(machine: &Machine, sent: &Sent) -> Manifest {
    let mut manifest = Manifest::clone(&sent.manifest);
    for (provider, grants) in &sent.lists {
        if let Some(service) = manifest.services.get_mut(provider) {
            service.grants = Some(grants.clone());
        }
    }
    manifest
        .services
        .retain(|service, _| !machine.forgotten.contains(service));
    manifest
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use camino::Utf8Path;

    use super::*;
    use crate::compose::sample::{Sample, bound, node, with};
    use crate::compose::sources::{SourceError, SourceFile, Sources};
    use crate::words::{Secret, SecretName};

    struct NoSources;
    fn none<T>() -> Result<T, SourceError> {
        Err(SourceError {
            what: String::new(),
            why: String::new(),
            remedy: None,
        })
    }
    impl Sources for NoSources {
        fn template(&self, _: &Utf8Path) -> Result<String, SourceError> {
            none()
        }
        fn file(&self, _: &Utf8Path) -> Result<SourceFile, SourceError> {
            none()
        }
        fn secret(&self, _: &SecretName) -> Result<Secret, SourceError> {
            none()
        }
    }

    fn reasons(sample: &Sample, on: &str) -> Vec<Reason> {
        let composer = Composer::new(&sample.mesh, Arc::new(NoSources));
        standing(&composer, &sample.world(), &node(on)).reasons
    }

    #[test]
    fn a_machine_that_was_never_sent_to_is_behind_unless_all_of_it_waits() {
        let mut sample = Sample::of(&["billing@m1<broker"]).minted("broker", "billing");
        assert_eq!(reasons(&sample, "m1"), []);
        sample.declare("other@m1");
        assert_eq!(reasons(&sample, "m1"), [Reason::NeverSent]);
        assert_eq!(reasons(&sample, "m3"), [Reason::NeverSent]);
    }

    #[test]
    fn a_machine_whose_services_need_an_account_is_behind_and_nothing_is_minted() {
        let sample = Sample::of(&["broker@m0", "billing@m1<broker"]);
        let [Reason::NeedsMint(missing)] = &reasons(&sample, "m1")[..] else {
            panic!("{:?}", reasons(&sample, "m1"));
        };
        assert_eq!(missing[0].to_string(), "broker/billing");
        assert!(sample.provisions.is_empty());
    }

    #[test]
    fn an_uncertain_machine_is_behind() {
        let sample = Sample::of(&[]).sent("m0", vec![]).attempted("m0", vec![]);
        assert_eq!(reasons(&sample, "m0"), [Reason::Uncertain]);
    }

    #[test]
    fn a_provider_is_behind_when_its_list_differs_from_what_it_acknowledged() {
        let sample = Sample::of(&["broker@m0", "billing@m1<broker"])
            .minted("broker", "billing")
            .sent("m0", vec![("broker", with(""))]);
        let [Reason::Differs(found)] = &reasons(&sample, "m0")[..] else {
            panic!("{:?}", reasons(&sample, "m0"));
        };
        assert!(matches!(&found[0], Difference::Grants { added, .. } if added.len() == 1));
    }

    #[test]
    fn a_machine_is_behind_until_a_list_that_stayed_is_in_a_release() {
        // Nothing is declared, so that what is composed is the empty release that it holds.
        let sample = Sample::of(&[]).sent("m0", vec![]);
        assert_eq!(reasons(&sample, "m0"), []);
        let sample = sample.stayed("m0", "broker", "billing:1");
        assert_eq!(
            reasons(&sample, "m0"),
            [Reason::Differs(vec![Difference::Stayed {
                provider: crate::compose::sample::name("broker")
            }])]
        );
    }

    #[test]
    fn a_machine_of_which_a_service_is_said_to_be_gone_is_behind() {
        let sample = Sample::of(&[])
            .sent("m0", vec![("billing", bound(""))])
            .forgotten("m0", "billing");
        let [Reason::Differs(found)] = &reasons(&sample, "m0")[..] else {
            panic!("{:?}", reasons(&sample, "m0"));
        };
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "billing was taken as gone from it");
    }
}
