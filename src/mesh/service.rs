//! Reads `[services.*]`: all of a service but what it consumes, which depends on other services.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeValue;

use super::declaration::{FileContent, FileDeclaration, FilePath, Limits, Provides, Service};
use super::load::named;
use super::machine::Machines;
use super::nearest;
use super::place::{At, Place, Problem};
use super::raw;
use super::read_error::{listed, nearest_of_many, quoted};
use super::reader::{Input, Table, read, read_table_with};
use super::text::{Limit, Machines as Named, MachinesRef};
use crate::kinds::{self, Provider};
use crate::words::{AbsolutePath, NodeName, PathError, ReleasePath, ServiceName, Tag};

/// All services, on the way.
pub(super) type Drafts<'a> = BTreeMap<ServiceName, Draft<'a>>;

/// A service on the way, with the places of what is checked against the rest of the declaration.
pub(super) struct Draft<'a> {
    /// As far as it is known.
    pub service: Service,
    /// Its table; absent: it is none, which was reported.
    pub table: Option<Table<'a>>,
    /// Where its name stands.
    pub place: Place,
    /// The machines it names.
    pub named: Vec<At<Named>>,
    /// Where `provides` stands, if it does.
    pub provides: Option<Place>,
    /// Where the names of source files of its kind stand.
    pub kind_sources: Vec<At<ReleasePath>>,
    /// Where each of its files is declared, in the order of `service.files`.
    pub files: Vec<FilePlaces>,
    /// Where it names each service that it consumes.
    pub consumes: BTreeMap<ServiceName, Place>,
}

/// Where a file's parts stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilePlaces {
    /// Its path.
    pub path: Place,
    /// Where its content comes from.
    pub content: Place,
}

/// Reads all services.
pub(super) fn read_all<'a>(
    items: &BTreeMap<&'a str, Input<'a>>,
    problems: &mut Vec<Problem>,
) -> Drafts<'a> {
    let mut drafts = BTreeMap::new();
    for (name, input) in items {
        let name = named(name, *input, ServiceName::new, problems);
        let table = match input.table("a service") {
            Ok(table) => Some(table),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let Some(name) = name else {
            if let Some(table) = table {
                // Only for what is wrong in it.
                if let Ok(any) = ServiceName::new("service") {
                    draft(any, input.key, Some(table), problems);
                }
            }
            continue;
        };
        let draft = draft(name.clone(), input.key, table, problems);
        drafts.insert(name, draft);
    }
    drafts
}

fn draft<'a>(
    name: ServiceName,
    place: Place,
    table: Option<Table<'a>>,
    problems: &mut Vec<Problem>,
) -> Draft<'a> {
    let mut draft = Draft {
        service: Service {
            name,
            nodes: BTreeSet::new(),
            provides: None,
            consumes: BTreeMap::new(),
            owner: None,
            files: Vec::new(),
            test: None,
            apply: None,
            check: None,
            remove: None,
            moves: super::Move::default(),
            limits: Limits::default(),
        },
        table,
        place,
        named: Vec::new(),
        provides: None,
        kind_sources: Vec::new(),
        files: Vec::new(),
        consumes: BTreeMap::new(),
    };
    let Some(table) = table else { return draft };
    if let Some(raw) = read::<raw::Service>(table, problems) {
        if let (Some(_), Some(nodes)) = (&raw.node, &raw.nodes) {
            problems.push(Problem::new(
                nodes.place,
                "a service has either `node` or `nodes`",
                "write all its machines into `nodes`",
            ));
        }
        draft.named.extend(raw.node);
        draft
            .named
            .extend(raw.nodes.into_iter().flat_map(|nodes| nodes.value));
        let service = &mut draft.service;
        service.owner = raw.owner.map(|owner| owner.0);
        service.test = raw.test;
        service.apply = raw.apply;
        service.check = raw.check;
        service.remove = raw.remove;
        service.moves = raw.moves.unwrap_or_default();
        service.limits = limits(raw.limits);
    }
    if let Some(input) = table.get("provides") {
        draft.provides = Some(input.key);
        match input.table("`provides`") {
            Ok(table) => provides(&mut draft, table, problems),
            Err(problem) => problems.push(Problem {
                help: Some("write `provides = { kind = \"…\" }`".into()),
                ..problem
            }),
        }
    }
    if let Some(input) = table.get("files") {
        files(&mut draft, input, problems);
    }
    draft
}

fn limits(raw: Option<raw::Limits>) -> Limits {
    let default = Limits::default();
    let Some(raw) = raw else { return default };
    let or = |limit: Option<Limit>, default| limit.map_or(default, |limit| limit.0);
    Limits {
        test: or(raw.test, default.test),
        load: or(raw.load, default.load),
        apply: or(raw.apply, default.apply),
        check: or(raw.check, default.check),
        remove: or(raw.remove, default.remove),
    }
}

fn provides(draft: &mut Draft<'_>, table: Table<'_>, problems: &mut Vec<Problem>) {
    let before = problems.len();
    let Some(common) = read::<raw::ProvidesCommon>(table.only(raw::PROVIDES), problems) else {
        return;
    };
    let Some(kind) = common.kind else {
        if problems.len() == before {
            problems.push(Problem::new(
                table.key,
                "a provider has a `kind`",
                format!("add `kind`: {}", kind_names()),
            ));
        }
        return;
    };
    let rest = table.without(raw::PROVIDES);
    let provider = match kinds::NAMES.contains(&kind.value.as_str()) {
        true => read_table_with(rest, problems, |reader| {
            Provider::read(&kind.value, reader)
                .unwrap_or_else(|| Err(serde::de::Error::custom("there is no such kind")))
        }),
        false => {
            problems.push(Problem::new(
                kind.place,
                format!("there is no kind of provider {}", quoted(&kind.value)),
                match nearest(&kind.value, kinds::NAMES.iter().copied()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("there is {}", kind_names()),
                },
            ));
            None
        }
    };
    let Some(provider) = provider else { return };
    let declared = table.get("port").is_some();
    let port = match common.port.map(|port| port.0) {
        None if declared => return,
        port => port.or_else(|| provider.kind().default_port()),
    };
    let Some(port) = port else {
        problems.push(Problem::new(
            table.key,
            format!(
                "a provider of kind \"{}\" has no usual port",
                provider.name()
            ),
            "add `port = …`",
        ));
        return;
    };
    draft.kind_sources = provider
        .kind()
        .sources()
        .into_iter()
        .map(|path| At {
            place: place_of_text(rest, path.as_str()).unwrap_or(table.key),
            value: path.clone(),
        })
        .collect();
    draft.service.provides = Some(Provides {
        provider,
        host: common.host.map(|host| host.0),
        port,
    });
}

fn kind_names() -> String {
    let names = kinds::NAMES.iter().map(|name| format!("\"{name}\""));
    listed(names.collect(), "and")
}

/// Where a text stands as the value of some key.
fn place_of_text(table: Table<'_>, text: &str) -> Option<Place> {
    table.entries().find_map(|(_, input)| {
        let found = matches!(input.value.get_ref(), DeValue::String(value) if value == text);
        found.then(|| input.place())
    })
}

fn files(draft: &mut Draft<'_>, input: Input<'_>, problems: &mut Vec<Problem>) {
    let DeValue::Array(items) = input.value.get_ref() else {
        problems.push(Problem::new(
            input.place(),
            "`files` is a list of tables",
            format!("write each as `[[services.{}.files]]`", draft.service.name),
        ));
        return;
    };
    for item in items.iter() {
        let item = Input::element(input.file, item);
        let before = problems.len();
        let raw = match item.table("a file") {
            Ok(table) => read::<raw::File>(table, problems),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let Some(raw) = raw else { continue };
        if let Some((file, places)) = file(raw, item.key, before, problems) {
            draft.service.files.push(file);
            draft.files.push(places);
        }
    }
}

fn file(
    raw: raw::File,
    place: Place,
    before: usize,
    problems: &mut Vec<Problem>,
) -> Option<(FileDeclaration, FilePlaces)> {
    let path = match raw.path {
        Some(path) => Some(path),
        None => {
            if problems.len() == before {
                problems.push(Problem::new(
                    place,
                    "a file has a `path`",
                    "add `path = \"…\"`: relative, in the service's folder of the release; absolute, installed there",
                ));
            }
            None
        }
    };
    let content = match (raw.template, raw.source, raw.content) {
        (Some(template), None, None) => local(&template, problems)
            .map(|path| (template.place, FileContent::Template(path.as_str().into()))),
        (None, Some(source), None) => local(&source, problems)
            .map(|path| (source.place, FileContent::Source(path.as_str().into()))),
        (None, None, Some(text)) => Some((text.place, FileContent::Inline(text.value))),
        _ => {
            if problems.len() == before {
                problems.push(Problem::new(
                    path.as_ref().map_or(place, |path| path.place),
                    "a file's content is exactly one of `template`, `source` and `content`",
                    "write one of `template = \"…\"`, `source = \"…\"` and `content = \"…\"`",
                ));
            }
            None
        }
    };
    let path = path?;
    let goes_to = if path.value.starts_with('/') {
        AbsolutePath::new(&path.value).map(FilePath::Absolute)
    } else {
        ReleasePath::new(&path.value).map(FilePath::Release)
    };
    let goes_to = goes_to
        .map_err(|wrong| problems.push(Problem::bare(path.place, format!("`path`: {wrong}"))))
        .ok()?;
    let (content_place, content) = content?;
    Some((
        FileDeclaration {
            path: goes_to,
            content,
            mode: raw.mode.map(|mode| mode.0),
            owner: raw.owner.map(|owner| owner.0),
        },
        FilePlaces {
            path: path.place,
            content: content_place,
        },
    ))
}

/// A source file: below the declaration's folder, so that a declaration that is moved, or checked out
/// elsewhere, composes the same.
fn local(path: &At<String>, problems: &mut Vec<Problem>) -> Option<ReleasePath> {
    let place = path.place;
    ReleasePath::new(&path.value)
        .map_err(|wrong| {
            problems.push(match wrong {
                PathError::Root(_) => Problem::new(
                    place,
                    "a source is a path relative to the declaration",
                    "put the file below the declaration's folder: a push from another checkout has to compose the same",
                ),
                PathError::Part => Problem::new(
                    place,
                    "a source lies below the declaration's folder, and has no empty, `.` or `..` part",
                    "put the file below the declaration's folder, and write its path like \"files/x.conf\"",
                ),
                wrong => Problem::bare(place, wrong.to_string()),
            });
        })
        .ok()
}

/// Puts each service on its machines: names, and who carries which tag.
pub(super) fn assign(drafts: &mut Drafts<'_>, machines: &Machines, problems: &mut Vec<Problem>) {
    for draft in drafts.values_mut() {
        for named in &draft.named {
            match &named.value.0 {
                MachinesRef::Node(name) => {
                    if machines.declared.contains_key(name) {
                        draft.service.nodes.insert(name.clone());
                    } else {
                        problems.push(Problem::new(
                            named.place,
                            format!("there is no machine {name}"),
                            match nearest_of_many(
                                name.as_str(),
                                machines.declared.keys().map(NodeName::as_str),
                                problems.len(),
                            ) {
                                Some(near) => format!("did you mean \"{near}\"?"),
                                None => format!("declare it as `[nodes.{name}]`"),
                            },
                        ));
                    }
                }
                MachinesRef::Tag(tag) => match machines.tagged.get(tag) {
                    Some(carriers) => draft.service.nodes.extend(carriers.iter().cloned()),
                    None => problems.push(Problem::new(
                        named.place,
                        format!("no machine carries the tag @{tag}"),
                        match nearest_of_many(
                            tag.as_str(),
                            machines.tagged.keys().map(Tag::as_str),
                            problems.len(),
                        ) {
                            Some(near) => format!("did you mean \"@{near}\"?"),
                            None => format!("give a machine `tags = [\"{tag}\"]`"),
                        },
                    )),
                },
            }
        }
    }
}
