//! Small worlds for the tests of the rules.
//!
//! A service is `broker@m0` or `billing@m1<broker`: its machines, joined by `+`, and whom it consumes. A name that is
//! consumed provides. `?` after a consumed name: it does not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::location::Location;
use super::manifest::{Bound, FORMAT, Grant, Grants, Manifest, ServiceManifest, StepSeconds};
use super::sent::{Attempt, Fleet, Machine, Sent};
use super::services::{Outline, outline};
use super::{Release, World};
use crate::kinds::{Provider, Wants};
use crate::mesh::{Consumption, CourierKind, Limits, Mesh, Move, Node, Provides, Service};
use crate::provision::{ProvisionId, Provisions};
use crate::words::{
    AbsolutePath, Chance, Era, Generation, MeshName, NodeName, ServiceName, StoreId, Token,
};

pub fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub fn name(name: &str) -> ServiceName {
    ServiceName::new(name).unwrap()
}

pub fn generation(number: u32) -> Generation {
    Generation {
        number,
        era: Era(1),
    }
}

struct Zeros;
impl Chance for Zeros {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

fn provider() -> Provider {
    let settings = serde_json::json!({});
    Provider::read("rabbitmq", settings).unwrap().unwrap()
}

/// What a consumer wants; `""`: nothing in particular.
pub fn wants(vhost: &str) -> Wants {
    if vhost.is_empty() {
        return provider().default_wants();
    }
    let wants = serde_json::json!({ "vhost": vhost });
    provider().read_wants(wants).unwrap()
}

pub fn grant(consumer: &str, number: u32) -> Grant {
    Grant {
        consumer: name(consumer),
        generation: generation(number),
        wants: wants(""),
    }
}

/// `billing:1 billing:2` as a list.
pub fn list(text: &str) -> Grants {
    text.split_whitespace()
        .map(|line| {
            let (consumer, number) = line.split_once(':').unwrap();
            grant(consumer, number.parse().unwrap())
        })
        .collect()
}

/// A list as [`list`] reads it.
pub fn told(grants: &Grants) -> String {
    let lines: Vec<String> = grants
        .iter()
        .map(|grant| format!("{}:{}", grant.consumer, grant.generation))
        .collect();
    lines.join(" ")
}

/// A world, before anybody looks at it.
pub struct Sample {
    pub mesh: Mesh,
    pub provisions: Provisions,
    pub fleet: Fleet,
}

impl Sample {
    pub fn of(services: &[&str]) -> Self {
        let mut mesh = Mesh {
            name: MeshName::new("prod").unwrap(),
            grid: None,
            recipients: Vec::new(),
            secrets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            services: BTreeMap::new(),
            signals: None,
        };
        for index in 0..4 {
            let name = node(&format!("m{index}"));
            mesh.nodes.insert(name.clone(), machine(name));
        }
        let mut sample = Self {
            mesh,
            provisions: Provisions::default(),
            fleet: Fleet::new(),
        };
        for service in services {
            sample.declare(service);
        }
        sample
    }

    /// Declares a service, or declares it anew.
    pub fn declare(&mut self, text: &str) {
        let (left, consumes) = text.split_once('<').unwrap_or((text, ""));
        let (service, machines) = left.split_once('@').unwrap_or((left, ""));
        let consumes = consumes.split(',').filter(|part| !part.is_empty());
        let consumes: BTreeMap<ServiceName, Consumption> = consumes
            .map(|part| {
                let wait = !part.ends_with('?');
                let consumption = Consumption {
                    wait,
                    wants: wants(""),
                };
                (name(part.trim_end_matches('?')), consumption)
            })
            .collect();
        let provides = Provides {
            provider: provider(),
            host: None,
            port: 5672,
            runs: crate::kinds::Runs::default(),
        };
        let declared = Service {
            name: name(service),
            nodes: machines
                .split('+')
                .filter(|part| !part.is_empty())
                .map(node)
                .collect(),
            provides: Some(provides),
            consumes,
            owner: None,
            files: Vec::new(),
            test: None,
            apply: None,
            check: None,
            remove: None,
            metrics: None,
            signals: None,
            moves: Move::StopFirst,
            limits: Limits::default(),
        };
        self.mesh.services.insert(name(service), declared);
    }

    pub fn starts_first(mut self, service: &str) -> Self {
        self.mesh.services.get_mut(service).unwrap().moves = Move::StartFirst;
        self
    }

    /// Consumers reach it at this host.
    pub fn hosted(mut self, service: &str, host: &str) -> Self {
        let service = self.mesh.services.get_mut(service).unwrap();
        service.provides.as_mut().unwrap().host = Some(host.to_owned());
        self
    }

    pub fn provides_no_more(mut self, service: &str) -> Self {
        self.mesh.services.get_mut(service).unwrap().provides = None;
        self
    }

    fn id(provider: &str, consumer: &str) -> ProvisionId {
        ProvisionId {
            provider: name(provider),
            consumer: name(consumer),
        }
    }

    /// An account, as a push mints it.
    pub fn minted(mut self, provider: &str, consumer: &str) -> Self {
        let wanted = [Self::id(provider, consumer)];
        crate::provision::mint(&mut self.provisions, &wanted, Era(1), &mut Zeros);
        self
    }

    pub fn issued(mut self, provider: &str, consumer: &str) -> Self {
        let id = Self::id(provider, consumer);
        self.provisions.issue(&self.mesh, &id, Era(1), &mut Zeros);
        self
    }

    pub fn rotated(mut self, provider: &str, consumer: &str) -> Self {
        let id = Self::id(provider, consumer);
        self.provisions
            .rotate(&id, false, Era(1), &mut Zeros)
            .unwrap();
        self
    }

    pub fn cut(mut self, provider: &str, consumer: &str) -> Self {
        let id = Self::id(provider, consumer);
        self.provisions
            .rotate(&id, true, Era(1), &mut Zeros)
            .unwrap();
        self
    }

    pub fn revoked(mut self, provider: &str, consumer: &str) -> Self {
        self.provisions
            .revoke(&Self::id(provider, consumer))
            .unwrap();
        self
    }

    /// What a machine last acknowledged.
    pub fn sent(mut self, on: &str, services: Vec<(&str, ServiceManifest)>) -> Self {
        let machine = self.fleet.entry(node(on)).or_default();
        machine.token = Some(token(1));
        machine.sent = Some(Sent {
            manifest: manifest(on, services),
            lists: BTreeMap::new(),
            at: Location {
                address: on.to_owned(),
                root: None,
            },
            is_foreign: false,
        });
        self
    }

    /// A send to a machine that is not settled.
    pub fn attempted(mut self, on: &str, services: Vec<(&str, ServiceManifest)>) -> Self {
        let machine = self.fleet.entry(node(on)).or_default();
        machine.attempt = Some(Attempt {
            token: token(2),
            manifest: manifest(on, services),
            at: None,
        });
        self
    }

    /// A list that stayed when the rest was rolled back.
    pub fn stayed(mut self, on: &str, provider: &str, text: &str) -> Self {
        let machine = self.fleet.get_mut(on).unwrap();
        let sent = machine.sent.as_mut().unwrap();
        sent.lists.insert(name(provider), list(text));
        self
    }

    pub fn forgotten(mut self, on: &str, service: &str) -> Self {
        let machine: &mut Machine = self.fleet.get_mut(on).unwrap();
        machine.forgotten.insert(name(service));
        self
    }

    pub fn world(&self) -> World<'_> {
        World::new(&self.mesh, &self.provisions, &self.fleet)
    }

    pub fn outline(&self, on: &str) -> Outline {
        outline(&self.world(), &node(on))
    }

    /// Whether a service is composed with a list on a machine.
    pub fn has_a_list(&self, on: &str, service: &str) -> bool {
        let outline = self.outline(on);
        outline.services[service].grants().is_some()
    }

    /// What a machine composes, in a line: services with bindings and lists, then what waits.
    pub fn composed(&self, on: &str) -> String {
        let outline = self.outline(on);
        let mut parts = Vec::new();
        for (service, placed) in &outline.services {
            let how = match placed {
                super::services::Placed::Declared { bindings, .. } => bindings
                    .iter()
                    .map(|(provider, bound)| {
                        let nodes: Vec<&str> = bound.nodes.iter().map(NodeName::as_str).collect();
                        format!("{provider}:{}@{}", bound.generation, nodes.join("+"))
                    })
                    .collect::<Vec<_>>()
                    .join(","),
                super::services::Placed::Kept { .. } => "kept".to_owned(),
            };
            let grants = placed.grants().map(told).unwrap_or_default();
            parts.push(format!("{service}({how})[{grants}]"));
        }
        for (service, wait) in &outline.waits {
            parts.push(format!("{service} waits for {}", whom(wait)));
        }
        for service in &outline.revoked {
            parts.push(format!("{service} is revoked"));
        }
        parts.join("; ")
    }
}

fn whom(wait: &super::services::Wait) -> String {
    match wait {
        super::services::Wait::Grant(providers) => providers
            .iter()
            .map(ServiceName::as_str)
            .collect::<Vec<_>>()
            .join("+"),
        super::services::Wait::Removal(nodes) => format!(
            "its removal from {}",
            nodes
                .iter()
                .map(NodeName::as_str)
                .collect::<Vec<_>>()
                .join("+")
        ),
    }
}

fn machine(name: NodeName) -> Node {
    Node {
        name,
        address: None,
        port: None,
        user: None,
        identity: None,
        root: AbsolutePath::new("/var/lib/grid/prod").unwrap(),
        become_root: None,
        courier: CourierKind::Local,
        tags: BTreeSet::new(),
        hold: None,
        pins: BTreeSet::new(),
        site: None,
        location: Default::default(),
        gateway: None,
    }
}

fn token(push: u64) -> Token {
    Token {
        store: StoreId([7; 8]),
        era: Era(1),
        push,
        random: [0; 8],
    }
}

pub fn manifest(on: &str, services: Vec<(&str, ServiceManifest)>) -> Arc<Release> {
    let services = services.into_iter().map(|(s, held)| (name(s), held));
    Arc::new(Release::of(Manifest {
        format: FORMAT,
        mesh: MeshName::new("prod").unwrap(),
        node: node(on),
        services: services.collect(),
        site: None,
    }))
}

fn held(bindings: BTreeMap<ServiceName, Bound>, grants: Option<Grants>) -> ServiceManifest {
    ServiceManifest {
        bindings,
        unwaited: BTreeSet::new(),
        provides: Some(provider()),
        endpoint: None,
        grants,
        files: Vec::new(),
        limits: StepSeconds {
            test: 1,
            load: 1,
            apply: 1,
            check: 1,
            remove: 1,
        },
    }
}

/// A provider with a list.
pub fn with(text: &str) -> ServiceManifest {
    held(BTreeMap::new(), Some(list(text)))
}

/// A consumer: `broker:1@m0+m1`. It has an empty list of its own.
pub fn bound(text: &str) -> ServiceManifest {
    let bindings = text.split_whitespace().map(|part| {
        let (provider, rest) = part.split_once(':').unwrap();
        let (number, nodes) = rest.split_once('@').unwrap();
        let bound = Bound {
            generation: generation(number.parse().unwrap()),
            wants: wants(""),
            nodes: nodes.split('+').map(node).collect(),
        };
        (name(provider), bound)
    });
    held(bindings.collect(), Some(Grants::new()))
}

/// The same, of one that does not wait for any of its providers.
pub fn bound_unwaited(text: &str) -> ServiceManifest {
    let mut held = bound(text);
    held.unwaited = held.bindings.keys().cloned().collect();
    held
}
