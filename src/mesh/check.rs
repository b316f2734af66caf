//! Checks what one part of a declaration says against the others.

use std::collections::HashMap;

use camino::Utf8Path;

use super::circle::Graph;
use super::declaration::{CourierKind, FileContent, Node};
use super::input::Input;
use super::machine::Machines;
use super::place::{Place, Problem};
use super::service::{Draft, Drafts};
use super::source::Sources;
use super::{check_paths, read_error, service_signals};
use crate::kinds::{BINDING_NAMES, Provider};
use crate::words::{NodeName, ServiceName, nearest};

/// All checks.
pub(super) fn all(
    drafts: &Drafts<'_>,
    machines: &Machines,
    folder: &Utf8Path,
    has_signals: bool,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    one_folder_for_two_machines(machines, sources, problems);
    sites_alone(drafts, machines, has_signals, problems);
    for draft in drafts.values() {
        several_machines_without_host(draft, problems);
        misspelt_release(draft, problems);
        misspelt_names(draft, problems);
        check_paths::of_service(draft, machines, sources, problems);
    }
    check_paths::between_services(drafts, machines, sources, problems);
    sources_exist(drafts, folder, problems);
    one_broker_for_two_providers(drafts, machines, sources, problems);
    service_signals::one_scale_a_metric(drafts, problems);
    circles(drafts, problems);
}

/// Whom nobody reaches, nobody runs a service on: such a machine is its site, and nothing else.
fn sites_alone(
    drafts: &Drafts<'_>,
    machines: &Machines,
    has_signals: bool,
    problems: &mut Vec<Problem>,
) {
    for (name, node) in &machines.nodes {
        if node.is_observed() {
            continue;
        }
        if let (false, Some(place)) = (has_signals, machines.declared.get(name)) {
            problems.push(Problem::new(
                *place,
                format!("{name} has the courier \"manifests\", so that it is a site and nothing else, and this mesh has no `[signals]`"),
                "add a table `[signals]`, or take the machine away",
            ));
        }
        for draft in drafts
            .values()
            .filter(|draft| draft.service.nodes.contains(name))
        {
            problems.push(Problem::new(
                draft.place,
                format!(
                    "{} is on {name}, where nobody runs a service: its courier is \"manifests\", which writes the resources of its site to a folder",
                    draft.service.name
                ),
                format!("take {name} from its machines, or give {name} a courier that reaches it"),
            ));
        }
    }
}

/// A consumer of one broker that is declared twice would have one account name for two accounts there: the broker
/// refuses the second. What the accounts of a `custom` kind are called on their side, nobody here knows.
fn one_broker_for_two_providers(
    drafts: &Drafts<'_>,
    machines: &Machines,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let broker = |name: &ServiceName| {
        let service = &drafts.get(name)?.service;
        let provides = service.provides.as_ref()?;
        let kind = match &provides.provider {
            Provider::Custom(_) => return None,
            other => std::mem::discriminant(other),
        };
        let host = match &provides.host {
            Some(host) => host.as_str(),
            None => machines.nodes.get(service.nodes.first()?)?.host(),
        };
        Some((kind, host, provides.port))
    };
    for (consumer, draft) in drafts {
        let mut seen = HashMap::new();
        for provider in draft.service.consumes.keys() {
            let Some(broker) = broker(provider) else {
                continue;
            };
            let (_, host, port) = broker;
            let Some(first) = seen.insert(broker, provider) else {
                continue;
            };
            let place = drafts
                .get(first)
                .map(|first| sources.reference(first.place));
            problems.push(Problem::new(
                place_of(drafts, consumer, provider),
                format!(
                    "{first} and {provider} are one broker, at {host} port {port}: {consumer} would have one account name for two \
                     accounts there"
                ),
                format!(
                    "declare the broker once ({first} is at {}) and write what {consumer} needs into one `consumes` of it; if they are \
                     two brokers, give each its own `host` or `port`",
                    place.unwrap_or_default()
                ),
            ));
        }
    }
}

/// Which machine a root lies on; absent: the controller.
type Host<'a> = Option<(&'a str, Option<u16>)>;

/// Two machines that are the same folder of the same machine would replace each other's releases; one whose root lies in the
/// root of another would be deleted with what that one no longer needs.
fn one_folder_for_two_machines(
    machines: &Machines,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let mut seen: HashMap<(Host<'_>, &Utf8Path), &NodeName> = HashMap::new();
    for (name, node) in &machines.nodes {
        let root = Utf8Path::new(node.root.as_str());
        let Some(first) = seen.insert((host_of(node), root), name) else {
            continue;
        };
        let (Some(place), Some(other)) =
            (machines.declared.get(name), machines.declared.get(first))
        else {
            continue;
        };
        problems.push(Problem::new(
            *place,
            match node.courier {
                CourierKind::Ssh | CourierKind::Openssh => format!(
                    "{name} and {first} have the same address and the same root, {}",
                    node.root
                ),
                CourierKind::Local | CourierKind::Manifests => format!(
                    "{name} and {first} are the same folder of the controller, {}",
                    node.root
                ),
            },
            format!(
                "give one of them another `{}`, or take it away; {first} is at {}",
                match node.courier {
                    CourierKind::Manifests => "folder",
                    _ => "root",
                },
                sources.reference(*other)
            ),
        ));
    }
    // What holds no releases deletes none, and hides nobody that does.
    let holding = || machines.nodes.iter().filter(|(_, node)| node.is_observed());
    let roots: HashMap<(Host<'_>, &Utf8Path), &Node> = holding()
        .map(|(_, node)| ((host_of(node), Utf8Path::new(node.root.as_str())), node))
        .collect();
    for (name, node) in holding() {
        let root = Utf8Path::new(node.root.as_str());
        let host = host_of(node);
        let mut above = root.ancestors().skip(1);
        let Some(around) = above.find_map(|folder| roots.get(&(host, folder))) else {
            continue;
        };
        let outer = &around.name;
        let (Some(place), Some(other)) =
            (machines.declared.get(name), machines.declared.get(outer))
        else {
            continue;
        };
        problems.push(Problem::new(
            *place,
            format!(
                "the root of {name}, {}, lies in the root of {outer}, {}, {}: what is sent to {outer} may delete it",
                node.root,
                around.root,
                match host {
                    Some(_) => "at the same address",
                    None => "of the controller",
                }
            ),
            format!(
                "give one of them a `root` that is not in the other's; {outer} is at {}",
                sources.reference(*other)
            ),
        ));
    }
}

fn host_of(node: &Node) -> Host<'_> {
    match node.courier {
        CourierKind::Ssh | CourierKind::Openssh => Some((node.host(), node.port)),
        CourierKind::Local | CourierKind::Manifests => None,
    }
}

fn several_machines_without_host(draft: &Draft<'_>, problems: &mut Vec<Problem>) {
    let (Some(provides), Some(place)) = (&draft.service.provides, draft.provides) else {
        return;
    };
    let nodes = &draft.service.nodes;
    if provides.host.is_none() && nodes.len() > 1 {
        problems.push(Problem::new(
            place,
            format!(
                "{} is on {} machines, and does not say at which host consumers reach it",
                draft.service.name,
                nodes.len()
            ),
            "add `host = \"…\"`: a name or an address that leads to all of them",
        ));
    }
}

/// Of all that may stand in braces in a command, only `{release}` is filled in; the rest is the program's own, but for what is nearly
/// that. It is no rule of [`crate::words::Command`], since what machines hold already may say anything.
fn misspelt_release(draft: &Draft<'_>, problems: &mut Vec<Problem>) {
    let service = &draft.service;
    let own = [
        ("test", service.test.as_ref()),
        ("apply", service.apply.as_ref()),
        ("check", service.check.as_ref()),
        ("remove", service.remove.as_ref()),
    ];
    let own = own.map(|(key, command)| (key, command, draft.place));
    let provides = service.provides.as_ref().map(|provides| &provides.provider);
    let of_kind = match (provides, draft.provides) {
        (Some(Provider::Custom(custom)), Some(place)) => {
            vec![
                ("load", Some(&custom.load), place),
                ("check", Some(&custom.check), place),
            ]
        }
        _ => Vec::new(),
    };
    for (key, command, place) in own.into_iter().chain(of_kind) {
        let words = command
            .map(crate::words::Command::words)
            .unwrap_or_default();
        let braced = words
            .iter()
            .flat_map(|word| word.split('{').skip(1))
            .filter_map(|rest| Some(rest.split_once('}')?.0));
        for wrong in braced {
            if wrong != "release" && nearest(wrong, ["release"].into_iter()).is_some() {
                problems.push(Problem::new(
                    place,
                    format!(
                        "`{key}` of {} says {{{wrong}}}, which nothing fills in",
                        service.name
                    ),
                    "did you mean `{release}`?",
                ));
            }
        }
    }
}

/// What the templates of a custom provider's bindings say has fixed names: one that is none would fail the push of a consumer. It
/// is no rule of the templates themselves, since what machines hold already may say anything.
fn misspelt_names(draft: &Draft<'_>, problems: &mut Vec<Problem>) {
    let provides = draft.service.provides.as_ref();
    let (Some(Provider::Custom(custom)), Some(place)) =
        (provides.map(|provides| &provides.provider), draft.provides)
    else {
        return;
    };
    let provides = draft.table.and_then(|table| table.get("provides"));
    for (key, name) in custom.unknown_names() {
        let place = provides
            .and_then(|provides| place_of_key(provides, &key))
            .unwrap_or(place);
        let meant = nearest(&name, BINDING_NAMES.into_iter());
        problems.push(Problem::new(
            place,
            format!(
                "`{key}` of {} says {{{{ {name} }}}}, which nothing fills in",
                draft.service.name
            ),
            match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", BINDING_NAMES.join(", ")),
            },
        ));
    }
}

/// Where a key stands in a table; `outer.inner` in a table of it.
fn place_of_key(table: Input<'_>, key: &str) -> Option<Place> {
    let table = table.table("").ok()?;
    let found = match key.split_once('.') {
        None => table.get(key)?,
        Some((outer, inner)) => table.get(outer)?.table("").ok()?.get(inner)?,
    };
    Some(found.key)
}

/// Every source file is there before anything is sent.
fn sources_exist(drafts: &Drafts<'_>, folder: &Utf8Path, problems: &mut Vec<Problem>) {
    let mut known: HashMap<&str, Option<String>> = HashMap::new();
    let mut check = |path, place: Place| {
        let wrong = known
            .entry(path)
            .or_insert_with(|| wrong_with(folder, path));
        if let Some(wrong) = wrong {
            problems.push(Problem::new(
                place,
                wrong.clone(),
                "sources are named relative to the folder of mesh.toml",
            ));
        }
    };
    for draft in drafts.values() {
        for (file, places) in draft.service.files.iter().zip(&draft.files) {
            match &file.content {
                FileContent::Template(path) | FileContent::Source(path) => {
                    check(path.as_str(), places.content);
                }
                FileContent::Inline(_) => {}
            }
        }
        for source in &draft.kind_sources {
            check(source.value.as_str(), source.place);
        }
    }
}

/// Why a file of the operator's cannot be read, as far as that is known without reading it.
pub(super) fn wrong_with(folder: &Utf8Path, path: &str) -> Option<String> {
    let shown = read_error::quoted(path);
    match folder.join(path).metadata() {
        Ok(found) if found.is_file() => None,
        Ok(found) if found.is_dir() => {
            Some(format!("{shown} is a folder; files are named one by one"))
        }
        Ok(_) => Some(format!("{shown} is not a file")),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Some(format!("there is no file {shown}"))
        }
        Err(cause) => Some(format!("{shown} cannot be read: {cause}")),
    }
}

/// Services that wait for each other would all wait for ever (DESIGN.md, section 2).
fn circles(drafts: &Drafts<'_>, problems: &mut Vec<Problem>) {
    let waiting = Graph::new(drafts.iter().map(|(name, draft)| {
        let consumes = draft.service.consumes.iter();
        let waits = consumes.filter(|(_, consumption)| consumption.wait);
        (name, waits.map(|(provider, _)| provider))
    }));
    for circle in waiting.circles() {
        let names = circle.iter().chain(circle.first());
        let names: Vec<&str> = names.map(|name| name.as_str()).collect();
        let (Some(first), Some(second)) = (circle.first(), circle.get(1)) else {
            continue;
        };
        problems.push(Problem::new(
            place_of(drafts, first, second),
            format!("these services would wait for each other: {}", names.join(" -> ")),
            format!(
                "let one of them start without waiting, if it retries by itself: `consumes = {{ {second} = {{ wait = false }} }}`"
            ),
        ));
    }
}

fn place_of(drafts: &Drafts<'_>, consumer: &ServiceName, provider: &ServiceName) -> Place {
    let draft = drafts.get(consumer);
    draft
        .and_then(|draft| draft.consumes.get(provider).copied())
        .or(draft.map(|draft| draft.place))
        .unwrap_or(Place::new(0, 0..0))
}
