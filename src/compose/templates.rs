//! Templates: Jinja2, strict about what is undefined, over `mesh`, `node`, `service`, `bindings` and
//! `secrets` (DESIGN.md, section 2).
//!
//! Threats: a template includes only what lies below the declaration's folder, so that none brings another file of the
//! controller to a machine; a template that reads a secret makes a file that holds one, so reading is noticed, and its
//! file is closed to others; and an error of the engine may quote a value, so after such a reading
//! only its kind and its line are told.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::Environment;
use minijinja::value::{Object, Value};

use super::sources::{SourceError, Sources};
use crate::kinds::{self, Missing, TemplateError};
use crate::mesh::{Mesh, Node, Service};
use crate::words::{SecretName, ServiceName};

/// Why the text of a template does not parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unparsed {
    /// The line, counted from 1.
    pub line: usize,
    /// The bytes of the text that are wrong, where the engine knows them.
    pub range: Option<Range<usize>>,
    /// What is wrong.
    pub why: String,
}

/// Whether a text is a template at all; no value is there yet.
///
/// # Errors
/// Where it does not parse, and why.
pub fn parse(source: &str) -> Result<(), Unparsed> {
    Environment::new()
        .template_from_str(source)
        .map(|_| ())
        .map_err(|error| Unparsed {
            line: error.line().unwrap_or(1),
            range: error.range(),
            why: match error.detail() {
                Some(detail) => format!("{}: {detail}", error.kind()),
                None => error.kind().to_string(),
            },
        })
}

/// Whether a text that is no template reads like one: it parses, and names a value.
#[must_use]
pub fn reads_like_one(text: &str) -> bool {
    let engine = Environment::new();
    let template = engine.template_from_str(text);
    template.is_ok_and(|template| !template.undeclared_variables(false).is_empty())
}

/// A rendered template.
#[derive(Debug)]
pub struct Rendered {
    /// The text.
    pub text: zeroize::Zeroizing<String>,
    /// Whether a secret was read on the way.
    pub holds_secret: bool,
}

/// Compiles each template once, and renders it for many machines.
pub struct Templates {
    engine: Environment<'static>,
    sources: Arc<dyn Sources>,
    mesh: Value,
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Templates")
    }
}

/// Gives out values one by one and remembers that it gave out a secret.
#[derive(Debug)]
struct Watched<T> {
    values: T,
    read: Arc<AtomicBool>,
}

/// `secrets.NAME`: fetched when a template asks, not before.
struct OperatorSecrets {
    sources: Arc<dyn Sources>,
    declared: Vec<SecretName>,
    fetched: Arc<Fetched>,
}

/// The secrets that one template asked for.
#[derive(Default)]
struct Fetched(Mutex<Asking>);

#[derive(Default)]
struct Asking {
    had: BTreeMap<SecretName, Value>,
    failed: Option<SourceError>,
    /// The template failed, and is rendered only to say of what: for that nobody is asked for one secret more.
    is_over: bool,
}

impl Fetched {
    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a secret, if it can be had.
    fn get(&self, name: &SecretName, sources: &dyn Sources) -> Option<Value> {
        let mut asking = self.asking();
        if let Some(had) = asking.had.get(name) {
            return Some(had.clone());
        }
        if asking.is_over {
            return Some(Value::from(""));
        }
        match sources.secret(name) {
            Ok(secret) => {
                let value = Value::from(secret.expose());
                asking.had.insert(name.clone(), value.clone());
                Some(value)
            }
            Err(error) => {
                asking.failed = Some(error);
                None
            }
        }
    }

    /// The template failed: why a secret of it could not be had, if one could not.
    fn fail(&self) -> Option<SourceError> {
        let mut asking = self.asking();
        asking.is_over = true;
        asking.failed.take()
    }
}

impl std::fmt::Debug for OperatorSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("secrets")
    }
}

impl Object for Watched<OperatorSecrets> {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = self
            .values
            .declared
            .iter()
            .find(|name| Some(name.as_str()) == key.as_str())?;
        let OperatorSecrets {
            sources, fetched, ..
        } = &self.values;
        let value = fetched.get(name, sources.as_ref())?;
        self.read.store(true, Ordering::Relaxed);
        Some(value)
    }
}

impl Object for Watched<Vec<kinds::Entry>> {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let entry = self
            .values
            .iter()
            .find(|entry| Some(entry.name.as_str()) == key.as_str())?;
        if matches!(entry.value, kinds::Value::Secret(_)) {
            self.read.store(true, Ordering::Relaxed);
        }
        Some(Value::from(entry.value.expose()))
    }
}

/// The names that a template may ask `bindings.PROVIDER` and `secrets` for; neither is to be iterated over.
fn names(value: &Value) -> Option<Vec<String>> {
    if let Some(secrets) = value.downcast_object_ref::<Watched<OperatorSecrets>>() {
        let declared = secrets.values.declared.iter();
        return Some(declared.map(ToString::to_string).collect());
    }
    let binding = value.downcast_object_ref::<Watched<Vec<kinds::Entry>>>()?;
    let entries = binding.values.iter();
    Some(entries.map(|entry| entry.name.clone()).collect())
}

/// How what a template is missing comes to be there, where that is not by another name.
fn remark(missing: &Missing, service: &Service) -> String {
    match (missing.of.as_deref(), missing.meant()) {
        (Some("secrets"), None) => {
            format!("; `[secrets.{}]` in mesh.toml declares it", missing.name)
        }
        (Some("bindings"), None) => format!(
            "; `consumes` of {} says on which providers it has an account",
            service.name
        ),
        _ => String::new(),
    }
}

fn node_value(node: &Node) -> Value {
    let tags: Vec<String> = node.tags.iter().map(|tag| tag.to_string()).collect();
    minijinja::context! { name => node.name.as_str(), address => node.host(), tags => tags }
}

impl Templates {
    /// Templates of one declaration.
    #[must_use]
    pub fn new(mesh: &Mesh, sources: Arc<dyn Sources>) -> Self {
        let mut engine = kinds::engine(names);
        let loader = Arc::clone(&sources);
        let declared: BTreeSet<String> = mesh.templates().map(ToString::to_string).collect();
        engine.set_loader(move |name| {
            let read = if declared.contains(name) {
                loader.template(name.into())
            } else {
                loader.included(name.into())
            };
            read.map(Some).map_err(|error| {
                minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, error.to_string())
            })
        });
        let nodes: BTreeMap<&str, Value> = mesh
            .nodes
            .values()
            .map(|node| (node.name.as_str(), node_value(node)))
            .collect();
        let services: BTreeMap<&str, Value> = mesh
            .services
            .values()
            .map(|service| {
                let on: Vec<String> = service.nodes.iter().map(|node| node.to_string()).collect();
                (
                    service.name.as_str(),
                    minijinja::context! { name => service.name.as_str(), nodes => on },
                )
            })
            .collect();
        let mesh = minijinja::context! { name => mesh.name.as_str(), nodes => nodes, services => services };
        Self {
            engine,
            sources,
            mesh,
        }
    }

    /// Renders the template at `path` for a service on a machine.
    ///
    /// # Errors
    /// When it cannot be read, does not parse, or asks for what is undefined.
    pub fn render(
        &self,
        path: &str,
        declared_secrets: Vec<SecretName>,
        node: &Node,
        service: &Service,
        bindings: &BTreeMap<ServiceName, kinds::Binding>,
    ) -> Result<Rendered, TemplateError> {
        let read = Arc::new(AtomicBool::new(false));
        let fetched = Arc::new(Fetched::default());
        let secrets = Value::from_object(Watched {
            values: OperatorSecrets {
                sources: Arc::clone(&self.sources),
                declared: declared_secrets,
                fetched: Arc::clone(&fetched),
            },
            read: Arc::clone(&read),
        });
        let bindings: BTreeMap<&str, Value> = bindings
            .iter()
            .map(|(provider, binding)| {
                let entries = Watched {
                    values: binding.entries.clone(),
                    read: Arc::clone(&read),
                };
                (provider.as_str(), Value::from_object(entries))
            })
            .collect();
        let context = minijinja::context! {
            mesh => self.mesh.clone(),
            node => node_value(node),
            service => minijinja::context! { name => service.name.as_str() },
            bindings => bindings,
            secrets => secrets,
        };
        let render = |context| self.engine.get_template(path)?.render(context);
        let error = match render(context.clone()) {
            Ok(text) => {
                return Ok(Rendered {
                    text: zeroize::Zeroizing::new(text),
                    holds_secret: read.load(Ordering::Relaxed),
                });
            }
            Err(error) => error,
        };
        let holds_secret = read.load(Ordering::Relaxed);
        let error = kinds::innermost(&error);
        let of = |error: &minijinja::Error| {
            let name = error.name().unwrap_or(path);
            let template = self.engine.get_template(name).ok();
            let source = template.map_or_else(String::new, |template| template.source().to_owned());
            (name.to_owned(), source)
        };
        let (name, source) = of(error);
        if let Some(failed) = fetched.fail() {
            return Err(TemplateError {
                remedy: Some(failed.remedy()),
                ..TemplateError::new(name, error.line(), failed.to_string())
            });
        }
        let found = kinds::missing(error, &context, names, of, render);
        let remark = |missing: &Missing| remark(missing, service);
        Err(TemplateError::of_missing(found, remark).unwrap_or_else(|| {
            let no_text = kinds::no_text(error, &source, !holds_secret);
            let detail = error.detail().filter(|_| !holds_secret);
            let why = match (no_text, detail.or_else(|| kinds::quoted(error, &source))) {
                (Some(no_text), _) => no_text,
                (None, Some(more)) => format!("{}: {more}", error.kind()),
                (None, None) => error.kind().to_string(),
            };
            TemplateError::new(name, error.line(), why)
        }))
    }
}
