//! The names that a declaration declares, as far as they can be read: for completion, where it may be half written.
//!
//! Nothing is checked here but that a name is one, since it goes to a terminal; what is wrong is passed over. `load` says what is
//! wrong.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Sources;
use super::syntax;
use super::text::MachinesRef;
use crate::words::{NodeName, ServiceName, Tag};

/// What a declaration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The machines, and the tags of each.
    pub nodes: BTreeMap<NodeName, BTreeSet<Tag>>,
    /// The services.
    pub services: BTreeMap<ServiceName, ServiceNames>,
}

/// What a service names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceNames {
    /// Its machines and @tags.
    pub assigned: Vec<String>,
    /// Whether it provides.
    pub provides: bool,
    /// The providers that it consumes.
    pub consumes: BTreeSet<ServiceName>,
}

impl Names {
    /// Each tag, and how many machines carry it.
    #[must_use]
    pub fn tags(&self) -> BTreeMap<&Tag, usize> {
        let mut tags = BTreeMap::new();
        for tag in self.nodes.values().flatten() {
            let count: &mut usize = tags.entry(tag).or_default();
            *count = count.saturating_add(1);
        }
        tags
    }
}

/// The names of the declaration in `folder`; of one that cannot be read, none.
#[must_use]
pub fn names(folder: &Utf8Path) -> Names {
    let Ok(sources) = Sources::read(folder) else {
        return Names::default();
    };
    let parsed = syntax::parse(&sources, &mut Vec::new());
    let tables = || parsed.tables.iter().map(Spanned::get_ref);
    // Where machines say nothing of tags, the defaults do.
    let by_default: BTreeSet<Tag> = tables()
        .filter_map(|top| table(top, "defaults"))
        .flat_map(tags)
        .collect();
    let mut names = Names::default();
    for top in tables() {
        for (name, node) in named(top, "nodes") {
            let Ok(name) = NodeName::new(name) else {
                continue;
            };
            let tags = match node.contains_key("tags") {
                true => tags(node),
                false => by_default.clone(),
            };
            names.nodes.insert(name, tags);
        }
        for (name, service) in named(top, "services") {
            let Ok(name) = ServiceName::new(name) else {
                continue;
            };
            let assigned = [texts(service, "node"), texts(service, "nodes")].concat();
            let consumes = [texts(service, "consumes"), keys(service, "consumes")].concat();
            let service = ServiceNames {
                assigned: assigned
                    .into_iter()
                    // Nothing else may stand on a terminal.
                    .filter(|text| MachinesRef::parse(text).is_ok())
                    .map(str::to_owned)
                    .collect(),
                provides: service.contains_key("provides"),
                consumes: consumes
                    .into_iter()
                    .filter_map(|provider| ServiceName::new(provider).ok())
                    .collect(),
            };
            names.services.insert(name, service);
        }
    }
    names
}

fn table<'a>(of: &'a DeTable<'a>, key: &str) -> Option<&'a DeTable<'a>> {
    match of.get(key)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// The tables below a key, by name.
fn named<'a>(of: &'a DeTable<'a>, key: &str) -> impl Iterator<Item = (&'a str, &'a DeTable<'a>)> {
    let below = table(of, key).into_iter().flatten();
    below.filter_map(|(name, value)| match value.get_ref() {
        DeValue::Table(table) => Some((&**name.get_ref(), table)),
        _ => None,
    })
}

/// A text, or the texts of a list.
fn texts<'a>(of: &'a DeTable<'a>, key: &str) -> Vec<&'a str> {
    match of.get(key).map(Spanned::get_ref) {
        Some(DeValue::String(text)) => vec![text],
        Some(DeValue::Array(list)) => list
            .iter()
            .filter_map(|element| element.get_ref().as_str())
            .collect(),
        _ => Vec::new(),
    }
}

fn keys<'a>(of: &'a DeTable<'a>, key: &str) -> Vec<&'a str> {
    let table = table(of, key).into_iter().flatten();
    table.map(|(name, _)| &**name.get_ref()).collect()
}

fn tags(of: &DeTable<'_>) -> BTreeSet<Tag> {
    let texts = texts(of, "tags").into_iter();
    texts.filter_map(|tag| Tag::new(tag).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Names {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mesh.toml"), text).unwrap();
        names(Utf8Path::from_path(folder.path()).unwrap())
    }

    #[test]
    fn a_declaration_that_is_half_written_has_names_all_the_same() {
        let text = "[defaults]\ntags = [\"eu\"]\n[nodes.atlas]\n[nodes.borealis]\ntags = []\n[services.broker]\nnodes = [\"atlas\", \"@eu\", \"\\u001b[2J\"]\n\
            provides = { kind = \"rabbitmq\" }\n[services.billing]\nconsumes = { broker = {} }\n[services.report]\nconsumes = [\"broker\"]\n\
            [nodes.Wrong]\n[nodes.cygnus\n";
        let names = of(text);
        let nodes: Vec<_> = names.nodes.keys().map(NodeName::as_str).collect();
        assert_eq!(nodes, ["atlas", "borealis", "cygnus"]);
        assert_eq!(
            names.tags(),
            BTreeMap::from([(&Tag::new("eu").unwrap(), 2)])
        );
        let broker = ServiceName::new("broker").unwrap();
        assert!(names.services["broker"].provides);
        assert_eq!(names.services["broker"].assigned, ["atlas", "@eu"]);
        assert!(names.services["billing"].consumes.contains(&broker));
        assert!(names.services["report"].consumes.contains(&broker));
    }

    #[test]
    fn no_declaration_has_no_names() {
        assert_eq!(names(Utf8Path::new("/nonexistent")), Names::default());
    }
}
