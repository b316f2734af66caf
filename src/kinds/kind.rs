//! What a provider kind is: the trait, and the values that go in and come out.

use crate::words::{Generation, MeshName, ReleasePath, Salt, Secret, ServiceName};

use super::Wants;
use super::template_error::TemplateError;

/// Whose list it is: what a kind marks on a provider so that it touches only that. Two meshes may
/// share one provider, and one mesh may declare it twice.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The mesh.
    pub mesh: &'a MeshName,
    /// The provider service.
    pub provider: &'a ServiceName,
}

impl Owner<'_> {
    /// The mark: `grid.<mesh>.<provider>`.
    #[must_use]
    pub fn mark(&self) -> String {
        format!("grid.{}.{}", self.mesh, self.provider)
    }
}

/// One account on a grant list: a consumer's generation, and what it may do.
#[derive(Debug, Clone)]
pub struct Account<'a> {
    /// Whose list.
    pub owner: Owner<'a>,
    /// Whose account.
    pub consumer: &'a ServiceName,
    /// Which generation of it.
    pub generation: Generation,
    /// The plain secret. A list carries a verifier of it wherever the provider takes one.
    pub secret: &'a Secret,
    /// For the verifier.
    pub salt: Salt,
    /// What the consumer wants. One generation stands twice on a list, with both, while a consumer
    /// still uses what it wanted before.
    pub wants: &'a Wants,
}

impl Account<'_> {
    /// The account's name: `<mesh>.<consumer>.<generation>`, so that two generations can stand side
    /// by side.
    #[must_use]
    pub fn username(&self) -> String {
        format!(
            "{}.{}.{}",
            self.owner.mesh, self.consumer, self.generation.number
        )
    }
}

/// A provider's grant list in its kind's own format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantList {
    /// The file is `grants.<extension>`; `[a-z0-9]{1,16}`.
    pub extension: String,
    /// Its bytes: the same for the same accounts, in whatever order they came.
    pub content: Secret,
}

/// Where consumers reach a provider.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Endpoint {
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// `host:port` as it stands in a URI: an IPv6 address gets its brackets.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// The value of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Anyone may read it.
    Plain(String),
    /// It holds a secret: its file is 0600, or 0640 where it has an owner.
    Secret(Secret),
}

impl Value {
    /// The text, whether secret or not.
    #[must_use]
    pub fn expose(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(secret) => secret.expose(),
        }
    }
}

/// A named value: a file of the binding, or a variable of the environment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// An entry's name is `[a-z0-9.-]{1,253}` (servicebinding.io); a variable's `[A-Z_][A-Z0-9_]*`.
    pub name: String,
    /// Without a trailing newline.
    pub value: Value,
}

impl Entry {
    /// An entry that anyone may read.
    #[must_use]
    pub fn plain(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: Value::Plain(value.into()),
        }
    }

    /// An entry that holds a secret.
    #[must_use]
    pub fn secret(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: Value::Secret(Secret::new(value.into())),
        }
    }
}

/// What a consumer is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The files of `bindings/<provider>/`, after the Service Binding specification; `type` among them.
    pub entries: Vec<Entry>,
    /// The variables of `<consumer>.env`.
    pub env: Vec<Entry>,
}

/// A text of POSIX shell. It is run by `sh` on the provider's machine, in the service's folder of the
/// release, with the grant list on standard input, under a time limit. It exits 0 only if the
/// provider took (or has) the list; what it prints is shown to the operator, so it prints no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script(pub String);

/// What a kind cannot do with what it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// A template of the operator's does not render.
    #[error(transparent)]
    Template(Box<TemplateError>),
    /// A value that the kind cannot write.
    #[error("{what} of {consumer}: {why}")]
    Value {
        /// Whose.
        consumer: ServiceName,
        /// Which value.
        what: &'static str,
        /// Why not.
        why: String,
    },
    /// A list that its format cannot hold.
    #[error("the grant list cannot be written: {why}")]
    Format {
        /// What the format's writer says; it names no value.
        why: String,
    },
    /// What a consumer wants is in the words of another kind.
    #[error("what {consumer} wants is not in the words of a {kind} provider")]
    Wants {
        /// Whose.
        consumer: ServiceName,
        /// The provider's kind.
        kind: &'static str,
    },
}

/// Reads a source file of the operator's that a kind's settings name (only `custom` has one).
pub type Templates<'a> = &'a dyn Fn(&str) -> Result<String, KindError>;

/// What a kind does. Implemented on its settings. Pure: the same arguments give the same bytes.
pub trait ProviderKind {
    /// The port where nothing else is said; `None`: the declaration must say one.
    fn default_port(&self) -> Option<u16>;

    /// Source files that the settings name, relative to the declaration.
    fn sources(&self) -> Vec<&ReleasePath> {
        Vec::new()
    }

    /// The grant list of `owner`: exactly these accounts, in the order of the slice (which is sorted by
    /// consumer and generation). An empty slice is the list that closes every account.
    ///
    /// # Errors
    /// When an account cannot be written in the kind's format.
    fn list(
        &self,
        owner: Owner<'_>,
        accounts: &[Account<'_>],
        templates: Templates<'_>,
    ) -> Result<GrantList, KindError>;

    /// Makes the provider admit exactly the list: adds, changes and revokes, touches only what carries
    /// the owner's mark, and refuses by name what exists without it.
    fn load(&self, owner: Owner<'_>) -> Script;

    /// Reads back that the provider admits the list. Changes nothing.
    fn check(&self, owner: Owner<'_>) -> Script;

    /// What the consumer of `account` is given.
    ///
    /// # Errors
    /// When a value cannot be written.
    fn binding(&self, endpoint: &Endpoint, account: &Account<'_>) -> Result<Binding, KindError>;
}
