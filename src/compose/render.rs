//! From an outline to the bytes of a bundle.
//!
//! Where things stand in a release:
//!
//! ```text
//! services/<service>/<path>                       its own files
//! services/<consumer>/bindings/<provider>/<entry> the binding (servicebinding.io)
//! services/<consumer>/<consumer>.env              the same for EnvironmentFile=
//! services/<provider>/grants.<extension>          the grant list
//! installs/<service>/<path>                       what is installed at the absolute path
//! commands/<service>/<step>                       its commands, as texts of shell
//! commands/<provider>/empty                       the list that closes every account, for when it leaves
//! ```

mod kept;
mod lists;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bundle::{Bundle, Content};
use super::environment;
use super::files::{Files, mode_of};
use super::goes_on::goes_on;
use super::manifest::{
    Bound, FORMAT, Grants, Manifest, ServiceManifest, SiteManifest, Step, StepSeconds,
};
use super::other_kind;
use super::services::{Outline, Placed, outline};
use super::site;
use super::sources::Sources;
use super::templates::Templates;
use super::{ComposeError, Release, World};
use crate::kinds::{self, Account};
use crate::mesh::{FileContent, FilePath, Node, Service};
use crate::words::{Command, Digest, NodeName, ServiceName};

/// The largest content that a store keeps, in bytes (DESIGN.md, section 6).
pub const STORED_AT_MOST: u64 = 64 * 1024;

/// A composed machine.
#[derive(Debug, Clone)]
pub struct Composition {
    /// What it gets.
    pub bundle: Bundle,
    /// Why it gets that: what waits, what is revoked.
    pub outline: Outline,
}

/// A machine's site, as it is delivered.
struct DeliveredSite {
    /// The service that it is delivered as.
    service: ServiceName,
    manifest: ServiceManifest,
    site: SiteManifest,
}

/// Composes machines of one world; templates are compiled and sources read once.
#[derive(Debug)]
pub struct Composer {
    templates: Templates,
    sources: Arc<dyn Sources>,
}

impl std::fmt::Debug for dyn Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

impl Composer {
    /// For the machines of one declaration.
    #[must_use]
    pub fn new(mesh: &crate::mesh::Mesh, sources: Arc<dyn Sources>) -> Self {
        Self {
            templates: Templates::new(mesh, Arc::clone(&sources)),
            sources,
        }
    }

    /// Composes one machine.
    ///
    /// # Errors
    /// When a source, a template or a value of it cannot be had or written.
    pub fn compose(&self, world: &World<'_>, node: &NodeName) -> Result<Composition, ComposeError> {
        let mut contents = BTreeMap::new();
        let (release, outline) = self.lay_out(world, node, Some(&mut contents))?;
        Ok(Composition {
            bundle: Bundle {
                digest: release.digest(),
                manifest: Arc::new(release),
                contents,
                goes_on: goes_on(world, node, !world.machine(node).is_known()),
                said_gone: world.machine(node).forgotten.clone(),
            },
            outline,
        })
    }

    /// The same without contents, for whoever asks only how a machine stands.
    ///
    /// # Errors
    /// Those of [`Composer::compose`].
    pub fn release(
        &self,
        world: &World<'_>,
        node: &NodeName,
    ) -> Result<(Release, Outline), ComposeError> {
        self.lay_out(world, node, None)
    }

    /// Composes one machine; contents are kept where there is room for them.
    fn lay_out(
        &self,
        world: &World<'_>,
        node: &NodeName,
        mut contents: Option<&mut BTreeMap<Digest, Content>>,
    ) -> Result<(Release, Outline), ComposeError> {
        let declared = world
            .mesh
            .nodes
            .get(node)
            .ok_or_else(|| ComposeError::NoNode(node.clone()))?;
        let outline = outline(world, node);
        let mut services = BTreeMap::new();
        for (name, placed) in &outline.services {
            let mut files = Files {
                service: name,
                entries: Vec::new(),
                contents: contents.as_deref_mut(),
            };
            let manifest = match placed {
                Placed::Kept { grants } => {
                    self.kept(world, node, name, grants.as_ref(), &mut files)?
                }
                Placed::Declared { bindings, grants } => {
                    let Some(service) = world.mesh.services.get(name) else {
                        continue; // an outline declares only what the mesh declares
                    };
                    self.declared(
                        world,
                        declared,
                        service,
                        bindings,
                        grants.as_ref(),
                        &mut files,
                    )?
                }
            };
            services.insert(name.clone(), manifest);
        }
        let site = self.site(world, declared, contents)?;
        let site = site.map(|delivered| {
            services.insert(delivered.service, delivered.manifest);
            delivered.site
        });
        let manifest = Manifest {
            format: FORMAT,
            mesh: world.mesh.name.clone(),
            node: node.clone(),
            services,
            site,
        };
        Ok((Release::of(manifest), outline))
    }

    /// The machine's site, as the service that it is delivered as and what its manifest says.
    fn site(
        &self,
        world: &World<'_>,
        node: &Node,
        contents: Option<&mut BTreeMap<Digest, Content>>,
    ) -> Result<Option<DeliveredSite>, ComposeError> {
        let Some((signals, name)) = world.mesh.site_service() else {
            return Ok(None);
        };
        let mut files = Files {
            service: &name,
            entries: Vec::new(),
            contents,
        };
        let Some(site) = site::site(world, node, &mut files)? else {
            return Ok(None);
        };
        let service = site::service(signals, node, &name);
        let none = BTreeMap::new();
        let manifest = self.declared(world, node, &service, &none, None, &mut files)?;
        Ok(Some(DeliveredSite {
            service: name,
            manifest,
            site,
        }))
    }

    /// A service as the declaration says now.
    fn declared(
        &self,
        world: &World<'_>,
        node: &Node,
        service: &Service,
        bound: &BTreeMap<ServiceName, Bound>,
        grants: Option<&Grants>,
        files: &mut Files<'_>,
    ) -> Result<ServiceManifest, ComposeError> {
        let bindings = self.bindings(world, service, bound, files)?;
        self.own_files(world, node, service, &bindings, files)?;
        if let (Some(provides), Some(grants)) = (&service.provides, grants) {
            let provider = &provides.provider;
            other_kind::refuse_list(world, &node.name, &service.name, provider, grants)?;
            self.list(world, provider, &service.name, grants, files)?;
            let empty =
                self.list_bytes(world, &provides.provider, &service.name, &Grants::new())?;
            files.command("empty", empty.content.expose())?;
            let owner = kinds::Owner {
                mesh: &world.mesh.name,
                provider: &service.name,
            };
            let kind = provides.provider.kind();
            let runs = &provides.runs;
            files.command(Step::Load.name(), &runs.of(kind.load(owner)).0)?;
            files.command(Step::Verify.name(), &runs.of(kind.check(owner)).0)?;
        }
        let held = world.machine(&node.name).holds(&service.name);
        let lately = held.filter(|_| service.provides.is_none() && grants.is_some());
        if let (Some(held), Some(grants)) = (lately, grants) {
            self.last_provision(world, held, &service.name, grants, files)?;
        }
        for (step, command) in [
            (Step::Test, &service.test),
            (Step::Apply, &service.apply),
            (Step::Check, &service.check),
            (Step::Remove, &service.remove),
        ] {
            if let Some(command) = command {
                files.command(step.name(), &run_line(command))?;
            }
        }
        Ok(ServiceManifest {
            bindings: bound.clone(),
            unwaited: service
                .consumes
                .iter()
                .filter(|(provider, consumption)| {
                    !consumption.wait && bound.contains_key(*provider)
                })
                .map(|(provider, _)| provider.clone())
                .collect(),
            provides: match &service.provides {
                Some(provides) => Some(provides.provider.clone()),
                None => lately.and_then(|held| held.provides.clone()),
            },
            endpoint: match lately {
                Some(held) => held.endpoint.clone(),
                None => service.declared_endpoint(),
            },
            grants: grants.cloned(),
            files: files.take(),
            limits: seconds(service.limits),
        })
    }

    /// The bindings of a consumer, and its environment file.
    fn bindings(
        &self,
        world: &World<'_>,
        service: &Service,
        bound: &BTreeMap<ServiceName, Bound>,
        files: &mut Files<'_>,
    ) -> Result<BTreeMap<ServiceName, kinds::Binding>, ComposeError> {
        let mut all = BTreeMap::new();
        for (provider, bound) in bound {
            let parts = (
                world.mesh.services.get(provider),
                world.mesh.endpoint(provider),
                world
                    .provisions
                    .get(provider, &service.name)
                    .and_then(|provision| provision.get(bound.generation)),
            );
            let (Some(declared), Some(endpoint), Some(credential)) = parts else {
                continue; // rule 2 binds only to an assigned provider and to a generation that is kept
            };
            let Some(provides) = &declared.provides else {
                continue;
            };
            other_kind::refuse_binding(provider, &provides.provider, &service.name, bound)?;
            let account = Account {
                owner: kinds::Owner {
                    mesh: &world.mesh.name,
                    provider,
                },
                consumer: &service.name,
                generation: bound.generation,
                secret: &credential.secret,
                salt: credential.salt,
                wants: &bound.wants,
            };
            let binding = provides
                .provider
                .kind()
                .binding(&endpoint, &account)
                .map_err(|source| files.kind_error(source))?;
            for entry in &binding.entries {
                let path = format!(
                    "services/{}/bindings/{provider}/{}",
                    service.name, entry.name
                );
                let secret = matches!(entry.value, kinds::Value::Secret(_));
                let mode = mode_of(secret, service.owner.as_ref());
                files.add(
                    path,
                    mode,
                    service.owner.as_ref(),
                    entry.value.expose().as_bytes(),
                    None,
                )?;
            }
            all.insert(provider.clone(), binding);
        }
        let environment = environment::write(&all).map_err(|source| ComposeError::Environment {
            service: service.name.clone(),
            source,
        })?;
        if let Some(text) = environment {
            let path = format!("services/{0}/{0}.env", service.name);
            let mode = mode_of(true, service.owner.as_ref());
            files.add(path, mode, service.owner.as_ref(), text.as_bytes(), None)?;
        }
        Ok(all)
    }

    /// The files that the declaration gives a service.
    fn own_files(
        &self,
        world: &World<'_>,
        node: &Node,
        service: &Service,
        bindings: &BTreeMap<ServiceName, kinds::Binding>,
        files: &mut Files<'_>,
    ) -> Result<(), ComposeError> {
        for file in &service.files {
            let (path, install) = match &file.path {
                FilePath::Release(path) => (format!("services/{}/{path}", service.name), None),
                FilePath::Absolute(path) => (
                    format!("installs/{}{path}", service.name),
                    Some(path.clone()),
                ),
            };
            let owner = file.owner.as_ref().or(service.owner.as_ref());
            let mode = |secret| {
                file.mode
                    .map_or_else(|| mode_of(secret, owner), crate::mesh::FileMode::bits)
            };
            match &file.content {
                FileContent::Inline(text) => {
                    files.add(path, mode(false), owner, text.as_bytes(), install)?;
                }
                FileContent::Template(template) => {
                    let secrets = world.mesh.secrets.keys().cloned().collect();
                    let rendered = self
                        .templates
                        .render(template.as_str(), secrets, node, service, bindings)
                        .map_err(|source| ComposeError::Template {
                            service: service.name.clone(),
                            source: Box::new(source),
                        })?;
                    let mode = mode(rendered.holds_secret);
                    files.add(path, mode, owner, rendered.text.as_bytes(), install)?;
                }
                FileContent::Source(source) => {
                    let read =
                        self.sources
                            .file(source)
                            .map_err(|source| ComposeError::Source {
                                service: service.name.clone(),
                                source,
                            })?;
                    let (digest, size) = (read.digest, read.size);
                    let content = || match read.bytes {
                        Some(bytes) => Content::Bytes(bytes),
                        None => Content::Source(self.sources.place(source)),
                    };
                    files.push(path, mode(false), owner, (digest, size), content, install)?;
                }
            }
        }
        Ok(())
    }
}

fn run_line(command: &Command) -> String {
    format!("exec {}\n", command.to_shell())
}

fn seconds(limits: crate::mesh::Limits) -> StepSeconds {
    StepSeconds {
        test: limits.test.as_secs(),
        load: limits.load.as_secs(),
        apply: limits.apply.as_secs(),
        check: limits.check.as_secs(),
        remove: limits.remove.as_secs(),
    }
}
