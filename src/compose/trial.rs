//! Templates are tried before anything is minted or sent: over the accounts that the declaration asks for, with secrets that are made up.
//! So a name that nothing fills in is found by `grid check`, at any depth, and nobody is asked for a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use super::sources::{SourceError, SourceFile, Sources, list_template};
use super::templates::Templates;
use crate::kinds::{self, Account, Endpoint, KindError, Owner, Provider, TemplateError, Wants};
use crate::mesh::{FileContent, Mesh, Node, Service};
use crate::words::{Era, Generation, Salt, Secret, SecretName, ServiceName};

/// On so many of a service's machines its templates are tried: they differ in names, addresses and tags only.
const MACHINES_MOST: usize = 64;
/// As long as a secret that is minted, and of the same letters.
const MADE_UP: &str = "made-up-secret-made-up-secret-made-up-secre";

/// What became of the templates of a declaration.
#[derive(Debug, Clone, Default)]
pub struct Tried {
    /// What is wrong with the templates of files and of lists, each by itself, in order of template and line. What cannot be known
    /// without a secret of the operator's is not told.
    pub wrong: Vec<TemplateError>,
    /// What is wrong with the templates of bindings, each once.
    pub bindings: Vec<WrongBinding>,
    /// What the templates of lists that render say that nothing fills in, where no account led: it may be that none ever does.
    pub unreached: Vec<TemplateError>,
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

/// Tries the templates of a declaration.
#[must_use]
pub fn templates(mesh: &Mesh, sources: &Arc<dyn Sources>) -> Tried {
    let secret = Secret::new(MADE_UP.to_owned());
    let mut tried = Tried::default();
    let mut wrong = Wrong::default();
    for (name, service) in &mesh.services {
        if let Some(provides) = &service.provides {
            match of_list(mesh, &secret, name, &provides.provider, sources) {
                Ok(unreached) => tried.unreached.extend(unreached),
                Err(errors) => errors.into_iter().for_each(|error| wrong.add(error)),
            }
        }
    }
    let unasked = Arc::new(Unasked {
        sources: Arc::clone(sources),
        asked: AtomicBool::new(false),
    });
    let templates = Templates::new(mesh, unasked.clone());
    let mut wrong_bindings = BTreeMap::new();
    for service in mesh.services.values() {
        match bindings(mesh, &secret, service) {
            Ok(bindings) => of_files(mesh, service, &bindings, &templates, &unasked, &mut wrong),
            // Of its files nothing is known then.
            Err(found) => {
                for (key, binding) in found {
                    wrong_bindings.entry(key).or_insert(binding);
                }
            }
        }
    }
    tried.wrong = wrong.0.into_values().collect();
    tried.bindings = wrong_bindings.into_values().collect();
    tried
}

/// By template, line, and what is missing.
#[derive(Default)]
struct Wrong(BTreeMap<(String, Option<usize>, Option<Vain>), TemplateError>);

/// The byte where something was asked for in vain, of what, and what.
type Vain = (usize, Option<String>, String);

fn vain(wrong: &TemplateError) -> Option<Vain> {
    let missing = wrong.missing.as_ref()?;
    Some((missing.at.start, missing.of.clone(), missing.name.clone()))
}

impl Wrong {
    fn add(&mut self, error: TemplateError) {
        for wrong in error.apart() {
            let key = (wrong.template.clone(), wrong.line, vain(&wrong));
            self.0.entry(key).or_insert(wrong);
        }
    }
}

/// What the template of a provider's list says that nothing fills in, where no account led.
///
/// # Errors
/// When it does not render: all that is wrong with it, that too which no account led to.
fn of_list(
    mesh: &Mesh,
    secret: &Secret,
    name: &ServiceName,
    provider: &Provider,
    sources: &Arc<dyn Sources>,
) -> Result<Vec<TemplateError>, Vec<TemplateError>> {
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
    let template = list_template(sources.as_ref());
    let of_some = kind.list(owner, &accounts, &template);
    let of_none = kind.list(owner, &[], &template);
    let wrong = [of_some, of_none]
        .into_iter()
        .filter_map(|tried| match tried {
            Err(KindError::Template(wrong)) => Some(*wrong),
            _ => None,
        });
    let mut wrong: Vec<TemplateError> = wrong.flat_map(TemplateError::apart).collect();
    let mut unreached = match provider {
        Provider::Custom(custom) => {
            let source = sources.template(custom.template.as_str().into());
            source.map_or_else(|_| Vec::new(), |source| custom.unknown_in_list(&source))
        }
        _ => Vec::new(),
    };
    if wrong.is_empty() {
        return Ok(unreached);
    }
    // A template that is refused is looked through once.
    let name = |wrong: &TemplateError| vain(wrong).map(|(_, of, name)| (of, name));
    unreached.retain(|unknown| wrong.iter().all(|wrong| name(wrong) != name(unknown)));
    wrong.extend(unreached);
    Err(wrong)
}

/// Tries the templates of a service's files.
fn of_files(
    mesh: &Mesh,
    service: &Service,
    bindings: &BTreeMap<ServiceName, kinds::Binding>,
    templates: &Templates,
    unasked: &Unasked,
    wrong: &mut Wrong,
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
                templates.render(path.as_str(), secrets.clone(), node, service, bindings);
            let Err(error) = rendered else {
                continue;
            };
            if error.missing.is_some() || !unasked.asked.load(Ordering::Relaxed) {
                wrong.add(error);
            }
        }
    }
}

/// By provider, template and what is missing.
type WrongBindings = BTreeMap<(ServiceName, String, Option<Vain>), WrongBinding>;

/// The bindings of a consumer as it will have them, of those that somebody provides.
///
/// # Errors
/// All that is wrong with them.
fn bindings(
    mesh: &Mesh,
    secret: &Secret,
    consumer: &Service,
) -> Result<BTreeMap<ServiceName, kinds::Binding>, WrongBindings> {
    let mut bindings = BTreeMap::new();
    let mut wrong = WrongBindings::new();
    for provider in consumer.consumes.keys() {
        let mut add = |template, missing, why| {
            let key = (provider.clone(), template, missing);
            wrong.entry(key).or_insert_with(|| WrongBinding {
                provider: provider.clone(),
                consumer: consumer.name.clone(),
                why,
            });
        };
        match binding(mesh, secret, provider, consumer) {
            None => {}
            Some(Ok(binding)) => {
                bindings.insert(provider.clone(), binding);
            }
            Some(Err(KindError::Template(all))) => {
                for one in all.apart() {
                    let (template, missing) = (one.template.clone(), vain(&one));
                    add(template, missing, KindError::Template(Box::new(one)));
                }
            }
            Some(Err(why)) => add(String::new(), None, why),
        }
    }
    match wrong.is_empty() {
        true => Ok(bindings),
        false => Err(wrong),
    }
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
