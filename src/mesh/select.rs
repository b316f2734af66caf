//! Naming machines: by name, or by `@tag` wherever machines are named (DESIGN.md, section 2).

use std::collections::BTreeSet;

use super::Mesh;
use crate::words::{NodeName, Tag, nearest};

/// One machine, or all that carry a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A machine.
    Node(String),
    /// `@tag`.
    Tag(String),
}

impl std::str::FromStr for Selector {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix('@') {
            Some(tag) => Self::Tag(tag.to_owned()),
            None => Self::Node(text.to_owned()),
        })
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(name) => f.write_str(name),
            Self::Tag(tag) => write!(f, "@{tag}"),
        }
    }
}

/// Why a selector selects nothing: a usage error, never an empty selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No such machine.
    #[error("there is no machine {name} in this mesh{}", nearest.as_ref().map(|n| format!("; did you mean {n}?")).unwrap_or_default())]
    UnknownNode {
        /// As given.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
    },
    /// No machine carries the tag.
    #[error("no machine carries the tag @{tag}{}", nearest.as_ref().map(|n| format!("; did you mean @{n}?")).unwrap_or_default())]
    UnknownTag {
        /// As given.
        tag: String,
        /// The nearest tag, if one is near.
        nearest: Option<String>,
    },
}

/// The machines that the selectors name.
///
/// # Errors
/// When a selector names none, with the nearest name.
pub fn select(mesh: &Mesh, selectors: &[Selector]) -> Result<BTreeSet<NodeName>, SelectError> {
    let mut chosen = BTreeSet::new();
    for selector in selectors {
        match selector {
            Selector::Node(name) => match mesh.nodes.get_key_value(name.as_str()) {
                Some((name, _)) => {
                    chosen.insert(name.clone());
                }
                None => {
                    return Err(SelectError::UnknownNode {
                        name: name.clone(),
                        nearest: nearest(name, mesh.nodes.keys().map(NodeName::as_str)),
                    });
                }
            },
            Selector::Tag(tag) => {
                let before = chosen.len();
                let carrying = mesh
                    .nodes
                    .values()
                    .filter(|node| node.tags.contains(tag.as_str()));
                let mut any = false;
                for node in carrying {
                    any = true;
                    chosen.insert(node.name.clone());
                }
                if !any && chosen.len() == before {
                    let tags: BTreeSet<&str> = mesh
                        .nodes
                        .values()
                        .flat_map(|node| node.tags.iter().map(Tag::as_str))
                        .collect();
                    return Err(SelectError::UnknownTag {
                        tag: tag.clone(),
                        nearest: nearest(tag, tags.into_iter()),
                    });
                }
            }
        }
    }
    Ok(chosen)
}
