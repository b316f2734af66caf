//! The declaration of a simulated mesh, as indexes, and the real one that it stands for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8Path;
use grid::compose::sources::{SourceError, SourceFile, Sources};
use grid::kinds::{Provider, Wants};
use grid::mesh::{
    Consumption, CourierKind, FileContent, FileDeclaration, FilePath, Hold, Limits, Mesh, Move,
    Node, Provides, Service,
};
use grid::words::{
    AbsolutePath, Command, MeshName, NodeName, ReleasePath, Secret, SecretName, ServiceName,
};

use super::plan::Plan;

/// A root where nothing is, and nothing can be written.
pub const REFUSING: &str = "/proc/grid";

pub fn machine(index: usize) -> NodeName {
    NodeName::new(&format!("m{index}")).unwrap()
}

/// Names that are not in the order of providers and consumers: what comes first by name is not what has to come first.
pub fn service(index: usize) -> ServiceName {
    let letter = ["d", "b", "e", "a", "f", "c"][index % 6];
    ServiceName::new(&format!("{letter}{index}")).unwrap()
}

/// The index of a service, by its name.
pub fn index_of(name: &ServiceName) -> usize {
    name.as_str()[1..].parse().unwrap()
}

/// The one provider kind of simulated meshes.
pub fn provider() -> Provider {
    let command = ["true"];
    let full = serde_json::json!({ "template": "list.j2", "load": command, "check": command });
    let short = serde_json::json!({ "load": command });
    [full, short]
        .into_iter()
        .find_map(|settings| Provider::read("custom", settings).unwrap().ok())
        .unwrap()
}

/// What a consumer may want; 0: nothing in particular.
pub fn wants(text: u8) -> Wants {
    if text == 0 {
        return provider().default_wants();
    }
    provider()
        .read_wants(serde_json::json!({ "may": text.to_string() }))
        .unwrap()
}

/// Sources in memory: the one template that lists need.
pub struct NoFiles;

impl NoFiles {
    pub fn shared() -> Arc<dyn Sources> {
        Arc::new(Self)
    }
}

impl Sources for NoFiles {
    fn template(&self, _: &Utf8Path) -> Result<String, SourceError> {
        Ok("{% for a in accounts %}{{ a.username }} {{ a.sha256 }}\n{% endfor %}".to_owned())
    }
    fn file(&self, path: &Utf8Path) -> Result<SourceFile, SourceError> {
        Err(none(path.as_str()))
    }
    fn secret(&self, name: &SecretName) -> Result<Secret, SourceError> {
        Err(none(name.as_str()))
    }
}

fn none(what: &str) -> SourceError {
    SourceError {
        what: what.to_owned(),
        why: "a simulated mesh has none".to_owned(),
        remedy: None,
    }
}

/// What the operator's files say.
#[derive(Debug, Clone)]
pub struct Declared {
    pub machines: usize,
    pub hold: BTreeSet<usize>,
    /// How often a machine changed its address.
    pub addresses: BTreeMap<usize, u32>,
    /// How often its root.
    pub roots: BTreeMap<usize, u32>,
    /// Those that are declared with a root that nothing can be written below.
    pub misrooted: BTreeSet<usize>,
    pub services: Vec<DeclaredService>,
}

#[derive(Debug, Clone)]
pub struct DeclaredService {
    pub declared: bool,
    pub machines: BTreeSet<usize>,
    pub provides: bool,
    pub consumes: BTreeMap<usize, Consumes>,
    pub start_first: bool,
    pub version: u32,
}

#[derive(Debug, Clone, Copy)]
pub struct Consumes {
    pub wait: bool,
    pub wants: u8,
}

impl Declared {
    pub fn begin(plan: &Plan) -> Self {
        let count = plan.services.len();
        let provides = |index: usize| index + 1 < count || plan.services[index].provides;
        let services = plan.services.iter().enumerate().map(|(index, s)| {
            let mut consumes = BTreeMap::new();
            for (provider, wait) in &s.consumes {
                if index > 0 {
                    let wait = *wait;
                    consumes.insert(provider % index, Consumes { wait, wants: 0 });
                }
            }
            if let Some(later) = s.circle
                && index + 1 < count
            {
                let later = index + 1 + later % (count - index - 1);
                if provides(later) {
                    let unwaited = Consumes {
                        wait: false,
                        wants: 0,
                    };
                    consumes.insert(later, unwaited);
                }
            }
            DeclaredService {
                declared: true,
                machines: s.machines.iter().map(|m| m % plan.machines).collect(),
                provides: provides(index),
                consumes,
                start_first: s.start_first,
                version: 0,
            }
        });
        Self {
            machines: plan.machines,
            hold: BTreeSet::new(),
            addresses: BTreeMap::new(),
            roots: BTreeMap::new(),
            misrooted: BTreeSet::new(),
            services: services.collect(),
        }
    }

    /// The declaration that the push is given.
    pub fn mesh(&self) -> Mesh {
        let nodes = (0..self.machines).map(|index| (machine(index), self.node(index)));
        let services = self
            .services
            .iter()
            .enumerate()
            .filter(|(_, s)| s.declared)
            .map(|(index, s)| (service(index), self.service(index, s)));
        Mesh {
            name: MeshName::new("sim").unwrap(),
            grid: None,
            recipients: Vec::new(),
            secrets: BTreeMap::new(),
            nodes: nodes.collect(),
            services: services.collect(),
            signals: None,
        }
    }

    fn node(&self, index: usize) -> Node {
        let hold = Hold {
            reason: "held".to_owned(),
            until: None,
        };
        Node {
            name: machine(index),
            address: self
                .addresses
                .get(&index)
                .map(|nth| format!("10.0.{index}.{nth}")),
            port: None,
            user: None,
            identity: None,
            root: self.root(index),
            become_root: None,
            courier: CourierKind::Local,
            tags: BTreeSet::new(),
            hold: self.hold.contains(&index).then_some(hold),
            pins: BTreeSet::new(),
            site: None,
            location: Default::default(),
            gateway: None,
        }
    }

    fn root(&self, index: usize) -> AbsolutePath {
        let nth = self.roots.get(&index).unwrap_or(&0);
        let root = match self.misrooted.contains(&index) {
            true => REFUSING.to_owned(),
            false => format!("/var/lib/grid/sim-{nth}"),
        };
        AbsolutePath::new(&root).unwrap()
    }

    fn service(&self, index: usize, s: &DeclaredService) -> Service {
        let provides = Provides {
            provider: provider(),
            host: (s.machines.len() > 1).then(|| format!("all-of-s{index}")),
            port: 1,
            runs: grid::kinds::Runs::default(),
        };
        let consumes = s
            .consumes
            .iter()
            .filter(|(provider, _)| self.services[**provider].declared)
            .map(|(provider, consumes)| {
                let consumption = Consumption {
                    wait: consumes.wait,
                    wants: wants(consumes.wants),
                };
                (service(*provider), consumption)
            });
        Service {
            name: service(index),
            nodes: s.machines.iter().map(|index| machine(*index)).collect(),
            provides: s.provides.then_some(provides),
            consumes: consumes.collect(),
            owner: None,
            files: vec![FileDeclaration {
                path: FilePath::Release(ReleasePath::new("version").unwrap()),
                content: FileContent::Inline(format!("s{index} {}", s.version)),
                mode: None,
                owner: None,
            }],
            test: None,
            apply: Some(Command::new(vec!["true".to_owned()]).unwrap()),
            check: None,
            remove: None,
            metrics: None,
            signals: None,
            moves: if s.start_first {
                Move::StartFirst
            } else {
                Move::StopFirst
            },
            limits: Limits::default(),
        }
    }
}
