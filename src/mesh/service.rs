//! Reads `[services.*]`: all of a service but what it consumes, which depends on other services.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeValue;

use super::declaration::{Limits, Provides, Service};
use super::file::{FilePlaces, files};
use super::input::{Input, Table};
use super::load::named;
use super::machine::Machines;
use super::place::{At, Place, Problem};
use super::raw;
use super::read_error::{listed, missing_key, nearest_of_many, quoted};
use super::reader::{read, read_table_with};
use super::schema::required_keys;
use super::service_signals;
use super::text::{Limit, Machines as Named, MachinesRef};
use crate::kinds::{self, Provider, Runs};
use crate::words::{NodeName, ReleasePath, ServiceName, Tag, nearest};

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
    /// The machines it names, each under the key that names it.
    pub named: Vec<(&'static str, At<Named>)>,
    /// Where `provides` stands, if it does.
    pub provides: Option<Place>,
    /// Where the names of source files of its kind stand.
    pub kind_sources: Vec<At<ReleasePath>>,
    /// Where each of its files is declared, in the order of `service.files`.
    pub files: Vec<FilePlaces>,
    /// Where it names each service that it consumes.
    pub consumes: BTreeMap<ServiceName, Place>,
}

/// Reads all services.
pub(super) fn read_all<'a>(
    items: &BTreeMap<&'a str, Input<'a>>,
    problems: &mut Vec<Problem>,
) -> Drafts<'a> {
    let mut drafts = Vec::with_capacity(items.len());
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
        drafts.push((name, draft));
    }
    drafts.into_iter().collect() // in order of name: made at once
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
            metrics: None,
            signals: None,
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
        let nodes = raw.nodes.into_iter().flat_map(|nodes| nodes.value);
        draft.named.extend(raw.node.map(|node| ("node", node)));
        draft.named.extend(nodes.map(|node| ("nodes", node)));
        let service = &mut draft.service;
        service.owner = raw.owner.map(|owner| owner.0);
        service.test = raw.test;
        service.apply = raw.apply;
        service.check = raw.check;
        service.remove = raw.remove;
        service.metrics = raw.metrics.map(|metrics| metrics.0);
        service.signals = raw
            .signals
            .map(|signals| service_signals::read(signals, table, problems));
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

pub(super) fn limits(raw: Option<raw::Limits>) -> Limits {
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
        true => {
            let provider = read_table_with(rest, problems, |reader| {
                Provider::read(&kind.value, reader)
                    .unwrap_or_else(|| Err(serde::de::Error::custom("there is no such kind")))
            });
            if provider.is_none() {
                // The reader tells one; the others are not worth another run each.
                let keys = required_keys(&kind.value);
                let missing = keys.iter().filter(|key| table.get(key).is_none());
                problems.extend(missing.map(|key| missing_key(table.key, key)));
            }
            provider
        }
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
    draft.kind_sources = provider
        .kind()
        .sources()
        .into_iter()
        .map(|path| At {
            place: place_of_text(rest, path.as_str()).unwrap_or(table.key),
            value: path.clone(),
        })
        .collect();
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
    draft.service.provides = Some(Provides {
        provider,
        host: common.host.map(|host| host.0),
        port,
        runs: Runs {
            user: common.user.map(|user| user.0),
            via: common.via,
        },
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

/// Puts each service on its machines: names, and who carries which tag.
pub(super) fn assign(drafts: &mut Drafts<'_>, machines: &Machines, problems: &mut Vec<Problem>) {
    for draft in drafts.values_mut() {
        let of = draft.service.name.clone();
        for (key, named) in &draft.named {
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
                                // Machines are named in rows: web3, which is gone, is near web2.
                                Some(near) => format!(
                                    "did you mean \"{near}\"? If {name} is gone, take it out of `{key}` of {of}"
                                ),
                                None => format!(
                                    "declare it as `[nodes.{name}]`, or take it out of `{key}` of {of}"
                                ),
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
                            None => format!(
                                "give a machine `tags = [\"{tag}\"]`, or take it out of `{key}` of {of}"
                            ),
                        },
                    )),
                },
            }
        }
    }
}
