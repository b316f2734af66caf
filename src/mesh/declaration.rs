//! The types of a checked declaration.

mod files;
mod signals;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use semver::VersionReq;
use serde::Deserialize;

use super::circle::Graph;
use super::service_signals::ServiceSignals;
use crate::kinds::{Endpoint, Provider, Runs, Wants};
use crate::words::{
    AbsolutePath, Command, Digest, GatewayEndpoint, MeshName, NodeName, ScrapeUrl, SecretName,
    ServiceName, Tag,
};
pub use files::{FileContent, FileDeclaration, FileMode, FilePath, Owner};
pub use signals::{Location, MOST_SEEDS, Resources, Signals};

/// A mesh: all the machines of one declaration.
#[derive(Debug, Clone)]
pub struct Mesh {
    /// Its name.
    pub name: MeshName,
    /// Which versions of grid may push it.
    pub grid: Option<VersionReq>,
    /// Who else may open the stored secrets.
    pub recipients: Vec<Recipient>,
    /// The operator's own secrets.
    pub secrets: BTreeMap<SecretName, SecretSource>,
    /// Its machines.
    pub nodes: BTreeMap<NodeName, Node>,
    /// Its services, assigned or not.
    pub services: BTreeMap<ServiceName, Service>,
    /// How provider load crosses sites; absent: no site daemon is configured.
    pub signals: Option<Signals>,
}

/// Somebody who may open the stored secrets, besides the operator whose identity made the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// For people.
    pub name: String,
    /// An age public key, `age1…`.
    pub key: String,
}

/// Where a secret of the operator's comes from. Paths are relative to the declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A file that age encrypted for the operator's identity.
    AgeFile(Utf8PathBuf),
    /// What a command prints, less one trailing newline.
    Command(Command),
    /// A variable of the environment.
    Environment(String),
}

/// A machine.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// A name or an IP address (IPv6 without brackets); absent: the machine's name, through ssh_config
    /// and DNS.
    pub address: Option<String>,
    /// The port of its sshd; absent: as ssh_config says, else 22.
    pub port: Option<u16>,
    /// The login; absent: as ssh_config says, else the operator's own.
    pub user: Option<String>,
    /// A private key file to offer besides the agent's and ssh_config's; absolute.
    pub identity: Option<Utf8PathBuf>,
    /// Where releases lie on it.
    pub root: AbsolutePath,
    /// How the machine side gains root; absent: not at all.
    pub become_root: Option<Become>,
    /// How it is reached.
    pub courier: CourierKind,
    /// Its tags.
    pub tags: BTreeSet<Tag>,
    /// Declared, but not sent to.
    pub hold: Option<Hold>,
    /// The pins of its site, where the identity of that is made elsewhere. Empty: grid makes its identity, or the mesh's trust
    /// needs none.
    pub pins: BTreeSet<Digest>,
    /// Where it is, as far as it says so itself.
    pub location: Location,
    /// Where its gateway is reached, if it has one.
    pub gateway: Option<GatewayEndpoint>,
    /// Where on it the identity of its site lies, made elsewhere; grid then sends it the rest of a site. Absent with `pins`:
    /// grid sends it no site at all.
    pub site: Option<SiteFiles>,
}

/// An identity that is made elsewhere, on the machine: PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteFiles {
    /// The certificate.
    pub certificate: AbsolutePath,
    /// Its key.
    pub key: AbsolutePath,
}

impl Node {
    /// Where consumers on other machines reach its services: its address, else its name.
    #[must_use]
    pub fn host(&self) -> &str {
        self.address.as_deref().unwrap_or(self.name.as_str())
    }

    /// Whether somebody looks whether what it was sent is in force there.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.courier != CourierKind::Manifests
    }

    /// Whether its site's identity is made elsewhere.
    #[must_use]
    pub fn has_own_identity(&self) -> bool {
        !self.pins.is_empty() || self.site.is_some()
    }

    /// Whether grid sends it a site, if the mesh has signals.
    #[must_use]
    pub fn is_sent_a_site(&self) -> bool {
        self.pins.is_empty() || self.site.is_some() || !self.is_observed()
    }

    /// Why it is not sent to on `today`; `None`: it is.
    #[must_use]
    pub fn hold_in_force(&self, today: jiff::civil::Date) -> Option<&Hold> {
        self.hold.as_ref().filter(|hold| hold.is_in_force(today))
    }
}

/// How the machine side gains root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Become {
    /// `sudo -n`.
    Sudo,
}

/// How a machine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CourierKind {
    /// By ssh.
    Ssh,
    /// By the system's `ssh` program: hardware keys, Kerberos, certificates, `Match` blocks.
    Openssh,
    /// A directory of the controller's own machine.
    Local,
    /// A folder of the controller's, for GitOps: its site's resources are written there, and nobody observes the site.
    Manifests,
}

/// Why a machine is not sent to, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// For people.
    pub reason: String,
    /// The first day on which it is sent to again; absent: until the hold is taken away.
    pub until: Option<jiff::civil::Date>,
}

impl Hold {
    /// Whether it still holds on `today`.
    #[must_use]
    pub fn is_in_force(&self, today: jiff::civil::Date) -> bool {
        self.until.is_none_or(|until| today < until)
    }
}

/// Something on machines that may provide, consume, or both.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name.
    pub name: ServiceName,
    /// Where it is assigned (tags resolved); empty: declared, not assigned.
    pub nodes: BTreeSet<NodeName>,
    /// What it gives others an account on.
    pub provides: Option<Provides>,
    /// Whom it needs an account on.
    pub consumes: BTreeMap<ServiceName, Consumption>,
    /// The owner of its bindings, and of its files where they name none.
    pub owner: Option<Owner>,
    /// Its files.
    pub files: Vec<FileDeclaration>,
    /// Runs in the new release before the switch.
    pub test: Option<Command>,
    /// Makes the service take its files.
    pub apply: Option<Command>,
    /// Holds when the service is well; run until it does or time is up.
    pub check: Option<Command>,
    /// Runs when the service leaves the machine.
    pub remove: Option<Command>,
    /// Where it shows its metrics, for the site daemon of its machine.
    pub metrics: Option<ScrapeUrl>,
    /// What its metrics mean, beyond what the contract of signals says.
    pub signals: Option<ServiceSignals>,
    /// Which comes first when it moves and nobody binds to it.
    pub moves: Move,
    /// How long each step may take.
    pub limits: Limits,
}

/// What a service gives others an account on.
#[derive(Debug, Clone)]
pub struct Provides {
    /// The kind and its settings.
    pub provider: Provider,
    /// Where consumers reach it; absent: the address of its machine (one machine only).
    pub host: Option<String>,
    /// Its port.
    pub port: u16,
    /// How its list is loaded and checked.
    pub runs: Runs,
}

impl Service {
    /// Where consumers reach it, if it provides and the declaration names that.
    #[must_use]
    pub fn declared_endpoint(&self) -> Option<Endpoint> {
        self.provides.as_ref()?.declared_endpoint()
    }
}

impl Provides {
    /// Where consumers reach it, if the declaration names that.
    #[must_use]
    pub fn declared_endpoint(&self) -> Option<Endpoint> {
        let host = self.host.clone()?;
        let port = self.port;
        Some(Endpoint { host, port })
    }
}

/// A consumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumption {
    /// Whether the service is kept from starting until its grant is acknowledged.
    pub wait: bool,
    /// In the words of the provider's kind.
    pub wants: Wants,
}

/// Which comes first when a service moves to another machine and nobody binds to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Move {
    /// The old machine removes it, then the new one starts it.
    #[default]
    StopFirst,
    /// The new machine starts it, then the old one removes it.
    StartFirst,
}

/// How long each step of a service may take; whole seconds, at least one, at most an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `test`; default 30 s.
    pub test: Duration,
    /// Loading a grant list; default 60 s.
    pub load: Duration,
    /// `apply`; default 60 s.
    pub apply: Duration,
    /// Until `check` holds; default 30 s.
    pub check: Duration,
    /// `remove`; default 60 s.
    pub remove: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            test: Duration::from_secs(30),
            load: Duration::from_secs(60),
            apply: Duration::from_secs(60),
            check: Duration::from_secs(30),
            remove: Duration::from_secs(60),
        }
    }
}

impl Mesh {
    /// Where a machine is: as it says itself, else as the mesh says of all.
    #[must_use]
    pub fn location(&self, node: &Node) -> Location {
        let mesh = self.signals.as_ref().map(|signals| &signals.location);
        node.location.or(mesh.unwrap_or(&Location::default()))
    }

    /// What the mesh says of signals, and the name of the service that sites are delivered as.
    #[must_use]
    pub fn site_service(&self) -> Option<(&Signals, ServiceName)> {
        let name = ServiceName::new(super::SITE_SERVICE).ok()?;
        self.signals.as_ref().map(|signals| (signals, name))
    }

    /// The templates of files, relative to the declaration; one that several files have, several times.
    pub fn templates(&self) -> impl Iterator<Item = &Utf8Path> {
        let files = self.services.values().flat_map(|service| &service.files);
        files.filter_map(|file| match &file.content {
            FileContent::Template(path) => Some(path.as_path()),
            FileContent::Source(_) | FileContent::Inline(_) => None,
        })
    }

    /// Where consumers reach a provider: its declared host, else its only machine's. `None`: it is on no
    /// machine, or provides nothing.
    #[must_use]
    pub fn endpoint(&self, provider: &ServiceName) -> Option<Endpoint> {
        let service = self.services.get(provider)?;
        let provides = service.provides.as_ref()?;
        provides.declared_endpoint().or_else(|| {
            let node = self.nodes.get(service.nodes.first()?)?;
            Some(Endpoint {
                host: node.host().to_owned(),
                port: provides.port,
            })
        })
    }

    /// Whether `consumer` is assigned and consumes `provider`, and how.
    #[must_use]
    pub fn consumption(
        &self,
        provider: &ServiceName,
        consumer: &ServiceName,
    ) -> Option<&Consumption> {
        self.services
            .get(consumer)
            .filter(|service| !service.nodes.is_empty())?
            .consumes
            .get(provider)
    }

    /// Whether `consumer` is declared to consume `provider`, be it assigned or not.
    #[must_use]
    pub fn declares(&self, provider: &ServiceName, consumer: &ServiceName) -> bool {
        let consumer = self.services.get(consumer);
        consumer.is_some_and(|service| service.consumes.contains_key(provider))
    }

    /// The number of services in the longest chain of consumers: 1 for a service that consumes nothing
    /// (DESIGN.md, section 4: `--max-rounds` is by default four more than twice this). A circle, allowed where one does
    /// not wait, counts with all its services.
    #[must_use]
    pub fn longest_chain(&self) -> usize {
        let services = self.services.iter();
        Graph::new(services.map(|(name, service)| (name, service.consumes.keys()))).longest_chain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_ends_on_its_day() {
        let hold = Hold {
            reason: "rack".into(),
            until: Some(jiff::civil::date(2026, 12, 1)),
        };
        assert!(hold.is_in_force(jiff::civil::date(2026, 11, 30)));
        assert!(!hold.is_in_force(jiff::civil::date(2026, 12, 1)));
    }
}
