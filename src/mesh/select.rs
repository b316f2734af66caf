//! Naming machines: by name, or by `@tag` wherever machines are named (DESIGN.md, section 2).

use std::collections::BTreeSet;

use super::Mesh;
use crate::words::{NodeName, Tag};

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

/// The name nearest to `wrong`, if one is near enough to be meant: a third of its letters may differ,
/// but not all of them.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let length = wrong.chars().count();
    names
        .filter_map(|name| {
            let other = name.chars().count();
            let most = 1.max(length.max(other) / 3).min(length.saturating_sub(1));
            if length.abs_diff(other) > most {
                return None; // so that the distance, which costs much more, is not needed
            }
            let distance = strsim::damerau_levenshtein(wrong, name);
            (distance <= most).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name.to_owned())
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

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_name_has_a_suggestion_and_a_foreign_one_has_none() {
        let names = ["atlas", "borealis"];
        assert_eq!(nearest("atals", names.into_iter()), Some("atlas".into()));
        assert_eq!(nearest("zeus", names.into_iter()), None);
        assert_eq!(nearest("z", ["y"].into_iter()), None);
    }
}
