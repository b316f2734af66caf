//! The manifest: what a bundle holds, and the digest that names it.
//!
//! Format 1. It lies on machines and in stores, so it only ever grows by optional fields; another meaning is
//! another format number. Canonical form: this JSON, without white space, maps and sets in order.
//! It holds hashes, never contents.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::kinds::{Endpoint, Provider, Wants};
use crate::words::{
    AbsolutePath, Digest, Generation, MeshName, NodeName, ReleasePath, ServiceName,
};

/// The format that this grid writes.
pub const FORMAT: u32 = 1;

/// What a machine is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// The format; 1.
    pub format: u32,
    /// Of which mesh.
    pub mesh: MeshName,
    /// For which machine.
    pub node: NodeName,
    /// Its services.
    pub services: BTreeMap<ServiceName, ServiceManifest>,
    /// Its part in the mesh's signals, if it has one; the files are those of the service `site`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteManifest>,
}

/// What a machine has and admits as a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SiteManifest {
    /// The number of its identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<u32>,
    /// It admits whatever was minted up to this serial of the mesh.
    pub knows: u64,
}

/// One service of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServiceManifest {
    /// The accounts that its files carry, by provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bindings: BTreeMap<ServiceName, Bound>,
    /// The providers among these that it does not wait for: it may be applied before them, where a circle
    /// leaves no other way.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unwaited: BTreeSet<ServiceName>,
    /// Its kind and settings, if it provides: from these its list can be written, whatever the declaration
    /// says by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<Provider>,
    /// Where its consumers reach it, if it provides and the declaration names that rather than leave it to the machine's
    /// address: what is there may go on when it leaves this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// Its grant list, if it provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Grants>,
    /// Its files and commands, in order of path.
    pub files: Vec<FileEntry>,
    /// Time limits of its steps, in seconds.
    pub limits: StepSeconds,
}

/// A consumer's account, as its files carry it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Bound {
    /// Which generation.
    pub generation: Generation,
    /// What the consumer wanted when it was bound.
    pub wants: Wants,
    /// The provider's machines when it was bound.
    pub nodes: BTreeSet<NodeName>,
}

/// One line of a grant list.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Grant {
    /// Whose account.
    pub consumer: ServiceName,
    /// Which generation of it.
    pub generation: Generation,
    /// What it may do.
    pub wants: Wants,
}

/// A grant list by generation: a pure read of what was issued.
pub type Grants = BTreeSet<Grant>;

/// A file of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileEntry {
    /// Below the release.
    pub path: ReleasePath,
    /// Permission bits.
    pub mode: u16,
    /// `user` or `user:group`; absent: whom the machine side runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Of its content.
    pub sha256: Digest,
    /// In bytes.
    pub size: u64,
    /// Where it is installed besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<AbsolutePath>,
}

/// Time limits of a service's steps, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepSeconds {
    /// `test`.
    pub test: u64,
    /// Loading a grant list, and reading it back.
    pub load: u64,
    /// `apply`.
    pub apply: u64,
    /// Until `check` holds.
    pub check: u64,
    /// `remove`.
    pub remove: u64,
}

/// The steps of a service that are a command on the machine. Each stands in the release as a text of shell,
/// at [`Step::path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Before the switch.
    Test,
    /// Makes a provider admit its list, from standard input.
    Load,
    /// Reads the list back, from standard input.
    Verify,
    /// Makes the service take its files.
    Apply,
    /// Holds when the service is well.
    Check,
    /// When the service leaves.
    Remove,
}

impl Step {
    /// Every step, in the order in which they run.
    pub const ALL: [Self; 6] = [
        Self::Test,
        Self::Load,
        Self::Verify,
        Self::Apply,
        Self::Check,
        Self::Remove,
    ];

    /// Its name, in paths and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Load => "load",
            Self::Verify => "verify",
            Self::Apply => "apply",
            Self::Check => "check",
            Self::Remove => "remove",
        }
    }

    /// Where it stands in a release: `commands/<service>/<step>`.
    #[must_use]
    pub fn path(self, service: &ServiceName) -> String {
        format!("commands/{service}/{}", self.name())
    }

    /// Where the list that closes every account stands, for when a provider leaves.
    #[must_use]
    pub fn empty_path(service: &ServiceName) -> String {
        format!("commands/{service}/empty")
    }
}

impl Manifest {
    /// The canonical bytes.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        // Neither maps with keys other than text nor failing implementations are among the types.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The digest that names the bundle: SHA-256 over the canonical bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.canonical())
    }

    /// All files, in order of service and path.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.services.values().flat_map(|service| &service.files)
    }

    /// The services in the order in which they are loaded and applied: providers before the consumers
    /// that are bound to them here, else by name. In a circle the one comes first that waits for none of those
    /// that are left; so no consumer that waits is applied before its provider's list is loaded.
    #[must_use]
    pub fn apply_order(&self) -> Vec<&ServiceName> {
        let mut left: Vec<(&ServiceName, &ServiceManifest)> = self.services.iter().collect();
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let awaits = |service: &ServiceManifest, unwaited_too: bool| {
                service.bindings.keys().any(|provider| {
                    (unwaited_too || !service.unwaited.contains(provider))
                        && left.iter().any(|(name, _)| *name == provider)
                })
            };
            let next = left
                .iter()
                .position(|(_, service)| !awaits(service, true))
                .or_else(|| left.iter().position(|(_, service)| !awaits(service, false)))
                .unwrap_or(0); // a circle of services that all wait: no declaration has one
            order.push(left.remove(next).0);
        }
        order
    }
}

impl ServiceManifest {
    /// The file of its grant list, `services/<service>/grants.<extension>`.
    #[must_use]
    pub fn grant_file(&self, service: &ServiceName) -> Option<&FileEntry> {
        let prefix = format!("services/{service}/grants.");
        self.files
            .iter()
            .find(|file| self.grants.is_some() && file.path.as_str().starts_with(&prefix))
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::sample::{Sample, bound, bound_unwaited, with};

    fn order(services: Vec<(&str, super::ServiceManifest)>) -> String {
        let sample = Sample::of(&[]).sent("m0", services);
        let manifest = &sample.fleet["m0"].sent.as_ref().unwrap().manifest;
        let names: Vec<&str> = manifest.apply_order().iter().map(|n| n.as_str()).collect();
        names.join(" ")
    }

    #[test]
    fn providers_are_applied_before_the_consumers_that_are_bound_to_them_here() {
        let services = vec![
            ("audit", bound("billing:1@m0")),
            ("billing", bound("broker:1@m0")),
            ("broker", with("billing:1")),
            ("web", bound("elsewhere:1@m1")),
        ];
        assert_eq!(order(services), "broker billing audit web");
    }

    #[test]
    fn in_a_circle_the_one_that_does_not_wait_is_applied_first() {
        let services = vec![("a", bound("b:1@m0")), ("b", bound_unwaited("a:1@m0"))];
        assert_eq!(order(services), "b a");
        let services = vec![("a", bound_unwaited("b:1@m0")), ("b", bound("a:1@m0"))];
        assert_eq!(order(services), "a b");
    }

    #[test]
    fn who_does_not_wait_comes_after_its_provider_all_the_same_where_there_is_no_circle() {
        let services = vec![("a", bound_unwaited("b:1@m0")), ("b", with(""))];
        assert_eq!(order(services), "b a");
    }
}
