//! Templates are tried before anything is minted or sent: over the accounts that the declaration asks for, with secrets that are made up.
//! So a name that nothing fills in is found by `grid check`, at any depth, and nobody is asked for a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use super::sources::{SourceError, SourceFile, Sources};
use super::templates::{TemplateError, Templates};
use crate::kinds::{self, Account, Endpoint, KindError, Owner, Provider, Wants};
use crate::mesh::{FileContent, Mesh, Node, Service};
use crate::words::{Era, Generation, Salt, Secret, SecretName, ServiceName};

/// On so many of a service's machines its templates are tried: they differ in names, addresses and tags only.
const MACHINES_MOST: usize = 64;
/// As long as a secret that is minted, and of the same letters.
const MADE_UP: &str = "made-up-secret-made-up-secret-made-up-secre";

/// What is wrong with the templates of a declaration, at most once a line, in order of template and line. What cannot be
/// known without a secret of the operator's is not told.
#[must_use]
pub fn wrong_templates(mesh: &Mesh, sources: &Arc<dyn Sources>) -> Vec<TemplateError> {
    let secret = Secret::new(MADE_UP.to_owned());
    let mut found = BTreeMap::new();
    let mut add = |wrong: TemplateError| {
        found
            .entry((wrong.template.clone(), wrong.line))
            .or_insert(wrong);
    };
    for (name, service) in &mesh.services {
        let provides = service.provides.as_ref();
        let wrong =
            provides.and_then(|given| of_list(mesh, &secret, name, &given.provider, sources));
        wrong.into_iter().for_each(&mut add);
    }
    let unasked = Arc::new(Unasked {
        sources: Arc::clone(sources),
        asked: AtomicBool::new(false),
    });
    let templates = Templates::new(mesh, unasked.clone());
    for service in mesh.services.values() {
        of_files(mesh, &secret, service, &templates, &unasked, &mut add);
    }
    found.into_values().collect()
}

/// What is wrong with the template of a provider's list.
fn of_list(
    mesh: &Mesh,
    secret: &Secret,
    name: &ServiceName,
    provider: &Provider,
    sources: &Arc<dyn Sources>,
) -> Option<TemplateError> {
    let kind = provider.kind();
    let consumers = mesh.services.values();
    let consumers = consumers.filter_map(|consumer| {
        let consumption = consumer.consumes.get(name)?;
        Some((&consumer.name, &consumption.wants))
    });
    let owner = Owner {
        mesh: &mesh.name,
        provider: name,
    };
    let accounts: Vec<Account<'_>> = consumers
        .map(|(consumer, wants)| account(owner, secret, consumer, wants))
        .collect();
    let templates = |path: &str| {
        sources
            .template(path.into())
            .map_err(|error| KindError::Template {
                template: path.to_owned(),
                line: None,
                missing: None,
                why: error.why,
            })
    };
    let tried = kind
        .list(owner, &accounts, &templates)
        .and_then(|_| kind.list(owner, &[], &templates));
    match (tried, provider) {
        (
            Err(KindError::Template {
                template,
                line,
                missing,
                why,
            }),
            _,
        ) => Some(TemplateError {
            template,
            line,
            why,
            missing,
            remedy: None,
        }),
        // What no account leads to is looked at too.
        (Ok(_), Provider::Custom(custom)) => {
            let source = sources.template(custom.template.as_str().into()).ok()?;
            let (line, missing) = custom.missing_in_list(&source)?;
            Some(TemplateError {
                template: custom.template.as_str().to_owned(),
                line: Some(line),
                why: missing.to_string(),
                missing: Some(Box::new(missing)),
                remedy: None,
            })
        }
        _ => None,
    }
}

/// What is wrong with the templates of a service's files.
fn of_files(
    mesh: &Mesh,
    secret: &Secret,
    service: &Service,
    templates: &Templates,
    unasked: &Unasked,
    add: &mut dyn FnMut(TemplateError),
) {
    let paths: BTreeSet<&Utf8Path> = service
        .files
        .iter()
        .filter_map(|file| match &file.content {
            FileContent::Template(path) => Some(path.as_path()),
            FileContent::Source(_) | FileContent::Inline(_) => None,
        })
        .collect();
    if paths.is_empty() {
        return;
    }
    let mut bindings = BTreeMap::new();
    for provider in service.consumes.keys() {
        match binding(mesh, secret, provider, service) {
            Some(Ok(binding)) => bindings.insert(provider.clone(), binding),
            Some(Err(_)) => return, // that is what is wrong, and is told by `wrong_bindings`
            None => continue,
        };
    }
    let assigned = service.nodes.iter().filter_map(|node| mesh.nodes.get(node));
    let mut nodes: Vec<&Node> = assigned.take(MACHINES_MOST).collect();
    if nodes.is_empty() {
        // It is on no machine yet.
        nodes.extend(mesh.nodes.values().next());
    }
    let secrets: Vec<SecretName> = mesh.secrets.keys().cloned().collect();
    for node in nodes {
        for path in &paths {
            unasked.asked.store(false, Ordering::Relaxed);
            let rendered =
                templates.render(path.as_str(), secrets.clone(), node, service, &bindings);
            let Err(wrong) = rendered else {
                continue;
            };
            if wrong.missing.is_some() || !unasked.asked.load(Ordering::Relaxed) {
                add(wrong);
            }
        }
    }
}

/// A template of a provider's bindings that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongBinding {
    /// Whose.
    pub provider: ServiceName,
    /// The first consumer, by name, that shows it.
    pub consumer: ServiceName,
    /// What is wrong.
    pub why: KindError,
}

/// What is wrong with the templates of bindings, once a template.
#[must_use]
pub fn wrong_bindings(mesh: &Mesh) -> Vec<WrongBinding> {
    let secret = Secret::new(MADE_UP.to_owned());
    let mut found = BTreeMap::new();
    for consumer in mesh.services.values() {
        for provider in consumer.consumes.keys() {
            let Some(Err(why)) = binding(mesh, &secret, provider, consumer) else {
                continue;
            };
            let template = match &why {
                KindError::Template { template, .. } => template.clone(),
                _ => String::new(),
            };
            found
                .entry((provider.clone(), template))
                .or_insert_with(|| WrongBinding {
                    provider: provider.clone(),
                    consumer: consumer.name.clone(),
                    why,
                });
        }
    }
    found.into_values().collect()
}

/// The binding of a consumer as it will have it; `None`: nobody provides it.
fn binding(
    mesh: &Mesh,
    secret: &Secret,
    name: &ServiceName,
    consumer: &Service,
) -> Option<Result<kinds::Binding, KindError>> {
    let consumption = consumer.consumes.get(name)?;
    let provides = mesh.services.get(name)?.provides.as_ref()?;
    let endpoint = mesh.endpoint(name).unwrap_or_else(|| Endpoint {
        host: name.to_string(),
        port: provides.port,
    });
    let owner = Owner {
        mesh: &mesh.name,
        provider: name,
    };
    let account = account(owner, secret, &consumer.name, &consumption.wants);
    Some(provides.provider.kind().binding(&endpoint, &account))
}

fn account<'a>(
    owner: Owner<'a>,
    secret: &'a Secret,
    consumer: &'a ServiceName,
    wants: &'a Wants,
) -> Account<'a> {
    Account {
        owner,
        consumer,
        generation: Generation {
            number: 1,
            era: Era(1),
        },
        secret,
        salt: Salt([0; 16]),
        wants,
    }
}

/// Sources whose secrets are made up.
struct Unasked {
    sources: Arc<dyn Sources>,
    /// Whether a secret was asked for.
    asked: AtomicBool,
}

impl Sources for Unasked {
    fn template(&self, path: &Utf8Path) -> Result<String, SourceError> {
        self.sources.template(path)
    }

    fn included(&self, path: &Utf8Path) -> Result<String, SourceError> {
        self.sources.included(path)
    }

    fn file(&self, path: &Utf8Path) -> Result<SourceFile, SourceError> {
        self.sources.file(path)
    }

    fn place(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.sources.place(path)
    }

    fn secret(&self, _: &SecretName) -> Result<Secret, SourceError> {
        self.asked.store(true, Ordering::Relaxed);
        Ok(Secret::new(MADE_UP.to_owned()))
    }
}
