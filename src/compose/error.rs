//! Why a machine cannot be composed.

use super::environment;
use super::other_kind::OtherKind;
use super::sources::SourceError;
use crate::kinds;
use crate::words::{NodeName, PathError, ServiceName};

/// Why a machine cannot be composed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// The declaration has no such machine.
    #[error("there is no machine {0} in the declaration")]
    NoNode(NodeName),
    /// A source cannot be read.
    #[error("{service}: {source}")]
    Source {
        /// Of which service.
        service: ServiceName,
        /// What and why.
        source: SourceError,
    },
    /// A template does not render.
    #[error("{service}: {source}")]
    Template {
        /// Of which service.
        service: ServiceName,
        /// Where and why.
        source: Box<kinds::TemplateError>,
    },
    /// A list or a binding cannot be written.
    #[error("{service}: {source}")]
    Kind {
        /// Of which service.
        service: ServiceName,
        /// What and why.
        source: kinds::KindError,
    },
    /// A provider is declared as another kind than it was when it gave accounts.
    #[error("{0}")]
    OtherKind(OtherKind),
    /// The list of a provider that is to leave cannot be written, while somebody still uses it.
    #[error(
        "{service} stays as it is for now, and its list, which changes, cannot be written any more: {why}; put back what is missing, at \
         least until {service} has left"
    )]
    Leaving {
        /// Which provider.
        service: ServiceName,
        /// What is missing.
        why: String,
    },
    /// The site's files cannot be written.
    #[error("the site of {node}: {why}")]
    Site {
        /// Of which machine, or of all.
        node: String,
        /// Why.
        why: String,
    },
    /// A path does not fit into a release.
    #[error("{service}: {path}: {source}")]
    Path {
        /// Of which service.
        service: ServiceName,
        /// Which.
        path: String,
        /// Why.
        source: PathError,
    },
    /// An environment variable cannot be written.
    #[error("{service}: {source}")]
    Environment {
        /// Of which service.
        service: ServiceName,
        /// Which and why.
        source: environment::EnvironmentError,
    },
}

impl ComposeError {
    /// What to do about it, as a clause: mend a file beside the declaration, or a service in it, or set a variable.
    /// Nothing is wrong on the machine.
    #[must_use]
    pub fn remedy(&self) -> String {
        let place = match self {
            Self::NoNode(node) => format!("[nodes.{node}]"),
            Self::Source { source, .. } => return source.remedy(),
            Self::Template { source: wrong, .. }
            | Self::Kind {
                source: kinds::KindError::Template(wrong),
                ..
            } => match &wrong.remedy {
                Some(remedy) => return remedy.clone(),
                None => wrong.place(),
            },
            Self::OtherKind(other) => return other.remedy(),
            Self::Site { .. } => "[signals]".to_owned(),
            Self::Kind { service, .. }
            | Self::Leaving { service, .. }
            | Self::Path { service, .. }
            | Self::Environment { service, .. } => format!("[services.{service}]"),
        };
        format!("mend {place}")
    }

    /// The same, of a provider that stays only as last acknowledged.
    pub(super) fn while_it_leaves(self, service: &ServiceName) -> Self {
        match self {
            Self::Kind { source, .. } => Self::Leaving {
                service: service.clone(),
                why: source.to_string(),
            },
            other => other,
        }
    }
}
