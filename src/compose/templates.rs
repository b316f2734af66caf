//! Templates: Jinja2, strict about what is undefined, over `mesh`, `node`, `service`, `bindings` and
//! `secrets` (DESIGN.md, section 2).
//!
//! Threats: a template includes only what lies below the declaration's folder, so that none brings another file of the
//! controller to a machine; a template that reads a secret makes a file that holds one, so reading is noticed, and its
//! file is closed to others; and an error of the engine may quote a value, so after such a reading
//! only its kind and its line are told.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::value::{Object, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::sources::{SourceError, Sources};
use crate::kinds::{self, Missing};
use crate::mesh::{Mesh, Node, Service};
use crate::words::{SecretName, ServiceName};

/// Why a template does not render.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template}{}: {why}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct TemplateError {
    /// Its path, relative to the declaration.
    pub template: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// Why; it holds no secret.
    pub why: String,
    /// What it asked for in vain, where that is known.
    pub missing: Option<Box<Missing>>,
    /// What to do about it, as a clause, where it is not the template that is wrong.
    pub remedy: Option<String>,
}

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
    failed: Arc<std::sync::Mutex<Option<SourceError>>>,
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
        match self.values.sources.secret(name) {
            Ok(secret) => {
                self.read.store(true, Ordering::Relaxed);
                Some(Value::from(secret.expose()))
            }
            Err(error) => {
                if let Ok(mut failed) = self.values.failed.lock() {
                    *failed = Some(error);
                }
                None
            }
        }
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

/// What is wrong in the template that another one includes, and not that including it failed.
fn innermost(error: &minijinja::Error) -> &minijinja::Error {
    let source = std::error::Error::source(error);
    match source.and_then(|source| source.downcast_ref::<minijinja::Error>()) {
        Some(inner) => innermost(inner),
        None => error,
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
        let mut engine = Environment::new();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_auto_escape_callback(|_| AutoEscape::None);
        engine.set_formatter(|out, state, value| kinds::print(out, state, value, names));
        let syntax = minijinja::syntax::SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .build();
        if let Ok(syntax) = syntax {
            engine.set_syntax(syntax);
        }
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
        let failed = Arc::new(std::sync::Mutex::new(None));
        let secrets = Value::from_object(Watched {
            values: OperatorSecrets {
                sources: Arc::clone(&self.sources),
                declared: declared_secrets,
                failed: Arc::clone(&failed),
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
        let result = render(context.clone());
        let holds_secret = read.load(Ordering::Relaxed);
        let secret_failure = failed.lock().ok().and_then(|mut failed| failed.take());
        result
            .map(|text| Rendered {
                text: zeroize::Zeroizing::new(text),
                holds_secret,
            })
            .map_err(|error| {
                let error = innermost(&error);
                let name = error.name().unwrap_or(path);
                let template = self.engine.get_template(name).ok();
                let source = template.as_ref().map_or("", |template| template.source());
                let detail = error.detail().filter(|_| !holds_secret);
                let detail = detail.or_else(|| kinds::quoted(error, source));
                let no_text = kinds::no_text(error, source, !holds_secret);
                let missing = match &secret_failure {
                    None => kinds::missing(error, source, &context, names, render),
                    Some(_) => None,
                };
                TemplateError {
                    template: name.to_owned(),
                    line: error.line(),
                    why: match (&secret_failure, &missing, detail) {
                        (Some(failed), ..) => failed.to_string(),
                        (None, Some(missing), _) => {
                            format!("{}: {missing}{}", error.kind(), remark(missing, service))
                        }
                        (None, None, _) if no_text.is_some() => no_text.unwrap_or_default(),
                        (None, None, Some(more)) => format!("{}: {more}", error.kind()),
                        (None, None, None) => error.kind().to_string(),
                    },
                    missing: missing.map(Box::new),
                    remedy: secret_failure.map(|failed| failed.remedy()),
                }
            })
    }
}
