//! Merges the declaration's files: one table for each name, and what stands in no known place.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use toml::Spanned;
use toml::de::DeTable;

use super::input::{Input, Table};
use super::place::{Place, Problem};
use super::raw::TOP;
use super::read_error::known_keys;
use super::source::Sources;
use super::syntax::twice;

/// The tables of all files, by name; each name once.
#[derive(Default)]
pub(super) struct Items<'a> {
    /// `[mesh]`.
    pub mesh: Option<Input<'a>>,
    /// `[defaults]`.
    pub defaults: Option<Input<'a>>,
    /// `[secrets.*]`.
    pub secrets: BTreeMap<&'a str, Input<'a>>,
    /// `[nodes.*]`.
    pub nodes: BTreeMap<&'a str, Input<'a>>,
    /// `[services.*]`.
    pub services: BTreeMap<&'a str, Input<'a>>,
    /// `[signals]`.
    pub signals: Option<Input<'a>>,
}

impl<'a> Items<'a> {
    /// Merges the files.
    pub fn merge(
        sources: &Sources,
        files: &'a [Spanned<DeTable<'a>>],
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut items = Self::default();
        for (file, table) in files.iter().enumerate() {
            for (name, input) in Table::top(file, table.get_ref()).entries() {
                match name {
                    "mesh" => once(&mut items.mesh, input, sources, problems),
                    "defaults" => once(&mut items.defaults, input, sources, problems),
                    "signals" => once(&mut items.signals, input, sources, problems),
                    "secrets" => each(&mut items.secrets, input, "a secret", sources, problems),
                    "nodes" => each(&mut items.nodes, input, "a machine", sources, problems),
                    "services" => each(&mut items.services, input, "a service", sources, problems),
                    _ => problems.push(Problem::new(
                        input.key,
                        format!("there is no `{name}` in a declaration"),
                        known_keys(name, TOP.iter().copied()),
                    )),
                }
            }
        }
        items
    }
}

fn once<'a>(
    known: &mut Option<Input<'a>>,
    input: Input<'a>,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    match known {
        None => *known = Some(input),
        Some(first) => problems.push(again(sources, input.key, first.key)),
    }
}

fn each<'a>(
    known: &mut BTreeMap<&'a str, Input<'a>>,
    input: Input<'a>,
    what: &str,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let key = input.name;
    let table = match input.table(&format!("`{key}`")) {
        Ok(table) => table,
        Err(problem) => {
            problems.push(Problem {
                help: Some(format!("write {what} as `[{key}.NAME]`")),
                ..problem
            });
            return;
        }
    };
    for (name, input) in table.entries() {
        match known.entry(name) {
            Entry::Vacant(free) => {
                free.insert(input);
            }
            Entry::Occupied(first) => {
                problems.push(again(sources, input.key, first.get().key));
            }
        }
    }
}

fn again(sources: &Sources, second: Place, first: Place) -> Problem {
    let text = sources
        .files
        .get(second.file)
        .map_or("", |source| source.text.as_str());
    twice(sources, text, second, Some(first))
}
