//! Behind (DESIGN.md, section 1): composed now differs from last sent; never sent, unless all of it waits; in
//! need of a mint; uncertain. Finding who is behind mints nothing.

use super::difference::{Difference, differences};
use crate::compose::manifest::Manifest;
use crate::compose::services::Outline;
use crate::compose::{ComposeError, Composer, Composition, World};
use crate::provision::{self, ProvisionId};
use crate::words::NodeName;

/// Why a machine is behind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "of")]
pub enum Reason {
    /// A send to it is not settled.
    Uncertain,
    /// These accounts are to be minted.
    NeedsMint(Vec<ProvisionId>),
    /// It was never sent to.
    NeverSent,
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
pub(super) struct Glance {
    /// Which services it holds, and what waits; `None`: it cannot be composed.
    pub outline: Option<Outline>,
    /// Why it is behind; empty: it is not.
    pub reasons: Vec<Reason>,
    /// See [`Standing::is_rolled_back`].
    pub is_rolled_back: bool,
}

impl Glance {
    /// Whether it is behind.
    pub fn is_behind(&self) -> bool {
        !self.reasons.is_empty()
    }
}

impl From<Standing> for Glance {
    fn from(standing: Standing) -> Self {
        Self {
            outline: standing.composition.ok().map(|composed| composed.outline),
            reasons: standing.reasons,
            is_rolled_back: standing.rolled_back,
        }
    }
}

/// How `node` stands in `world`.
#[must_use]
pub fn standing(composer: &Composer, world: &World<'_>, node: &NodeName) -> Standing {
    let machine = world.machine(node);
    let composition = composer.compose(world, node);
    let mut reasons = Vec::new();
    if machine.attempt.is_some() {
        reasons.push(Reason::Uncertain);
    }
    let missing = provision::missing(world.services_on(node), world.provisions);
    if !missing.is_empty() {
        reasons.push(Reason::NeedsMint(missing));
    }
    let mut rolled_back = false;
    match (&composition, &machine.sent) {
        (Err(error), _) => reasons.push(Reason::Uncomposable(error.to_string())),
        (Ok(composition), None) => {
            rolled_back = machine.rolled_back == Some(composition.bundle.digest);
            let all_waits = composition.bundle.manifest.services.is_empty()
                && !composition.outline.waits.is_empty();
            if !all_waits {
                reasons.push(Reason::NeverSent);
            }
        }
        (Ok(composition), Some(sent)) => {
            let digest = composition.bundle.digest;
            rolled_back = machine.rolled_back == Some(digest);
            let is_current = digest == sent.manifest.digest()
                && sent.lists.is_empty()
                && machine.forgotten.is_empty();
            if !is_current {
                let found = differences(&held(sent), &composition.bundle.manifest);
                reasons.push(Reason::Differs(found));
            }
        }
    }
    Standing {
        composition,
        reasons,
        rolled_back,
    }
}

/// The manifest with the lists that stayed from a roll-back: what the machine's providers admit.
fn held(sent: &crate::compose::sent::Sent) -> Manifest {
    let mut manifest = Manifest::clone(&sent.manifest);
    for (provider, grants) in &sent.lists {
        if let Some(service) = manifest.services.get_mut(provider) {
            service.grants = Some(grants.clone());
        }
    }
    manifest
}
