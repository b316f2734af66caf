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
use crate::kinds;
use crate::mesh::{Mesh, Node, Service};
use crate::words::{SecretName, ServiceName};

/// What a template may ask for, for whoever asked for something else.
const SEEN: &str = "; a template knows `mesh`, `node`, `service`, `bindings` and `secrets`";

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

/// Whether an expression goes out from what a template knows, so that only what comes after is wrong.
fn is_of_known(expression: &str) -> bool {
    let first = expression.split(['.', '[']).next();
    ["mesh", "node", "service", "bindings", "secrets"]
        .iter()
        .any(|known| first == Some(known))
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
        let result = self
            .engine
            .get_template(path)
            .and_then(|template| template.render(context));
        let holds_secret = read.load(Ordering::Relaxed);
        let secret_failure = failed.lock().ok().and_then(|mut failed| failed.take());
        result
            .map(|text| Rendered {
                text: zeroize::Zeroizing::new(text),
                holds_secret,
            })
            .map_err(|error| {
                let name = error.name().unwrap_or(path);
                let template = self.engine.get_template(name).ok();
                let expression = template.and_then(|template| {
                    kinds::quoted(&error, template.source()).map(str::to_owned)
                });
                let seen = match (error.kind(), &expression) {
                    (minijinja::ErrorKind::UndefinedError, Some(known)) if is_of_known(known) => "",
                    (minijinja::ErrorKind::UndefinedError, _) => SEEN,
                    _ => "",
                };
                let detail = error.detail().filter(|_| !holds_secret);
                TemplateError {
                    template: name.to_owned(),
                    line: error.line(),
                    why: match (&secret_failure, detail.or(expression.as_deref())) {
                        (Some(failed), _) => failed.to_string(),
                        (None, Some(more)) => format!("{}: {more}{seen}", error.kind()),
                        (None, None) => format!("{}{seen}", error.kind()),
                    },
                    remedy: secret_failure.map(|failed| failed.remedy()),
                }
            })
    }
}
