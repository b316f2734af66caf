//! Checks where files go: nothing that two of them would write, and nothing that grid writes itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::declaration::{CourierKind, FilePath};
use super::machine::Machines;
use super::place::{Place, Problem};
use super::service::{Draft, Drafts};
use super::source::Sources;
use crate::words::{NodeName, ServiceName};

/// The folders above a path, the nearest last.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/')
        .filter_map(|(at, _)| path.get(..at))
        .filter(|folder| !folder.is_empty())
}

fn is_at_or_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The paths of one service.
pub(super) fn of_service(
    draft: &Draft<'_>,
    machines: &Machines,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    for (file, places) in draft.service.files.iter().zip(&draft.files) {
        let path = text(&file.path);
        if let Some(first) = seen.get(path) {
            problems.push(Problem::new(
                places.path,
                format!("{} has two files {path}", draft.service.name),
                format!("the other one is at {}", sources.reference(*first)),
            ));
        } else {
            seen.insert(path, places.path);
        }
        match &file.path {
            FilePath::Release(path) => reserved(draft, path.as_str(), places.path, problems),
            FilePath::Absolute(path) => {
                inside_root(draft, path.as_str(), places.path, machines, problems);
            }
        }
    }
    for (path, place) in &seen {
        if let Some((folder, first)) = above(path).find_map(|folder| seen.get_key_value(folder)) {
            problems.push(Problem::new(
                *place,
                format!("{folder} cannot be a file and the folder of {path}"),
                format!("the file is at {}", sources.reference(*first)),
            ));
        }
    }
}

fn text(path: &FilePath) -> &str {
    match path {
        FilePath::Release(path) => path.as_str(),
        FilePath::Absolute(path) => path.as_str(),
    }
}

/// What grid writes into a service's folder itself (DESIGN.md, section 3).
fn reserved(draft: &Draft<'_>, path: &str, place: Place, problems: &mut Vec<Problem>) {
    let service = &draft.service;
    let top = path.split('/').next().unwrap_or(path);
    let consumes = draft
        .table
        .is_some_and(|table| table.get("consumes").is_some());
    let what = if consumes && top == "bindings" {
        "the bindings of what the service consumes"
    } else if consumes && top == format!("{}.env", service.name) {
        "the environment file of what the service consumes"
    } else if draft.provides.is_some() && top.starts_with("grants.") {
        "the provider's grant list"
    } else {
        return;
    };
    problems.push(Problem::new(
        place,
        format!("grid itself writes {top} here: {what}"),
        "give the file another path",
    ));
}

/// A file installed among the releases would change them.
fn inside_root(
    draft: &Draft<'_>,
    path: &str,
    place: Place,
    machines: &Machines,
    problems: &mut Vec<Problem>,
) {
    let nodes = draft.service.nodes.iter();
    let roots: BTreeSet<&str> = nodes
        .filter_map(|name| machines.nodes.get(name))
        .map(|node| node.root.as_str())
        .collect();
    let clash = |root: &&&str| is_at_or_below(path, root) || is_at_or_below(root, path);
    if let Some(root) = roots.iter().find(clash) {
        problems.push(Problem::new(
            place,
            format!("{path} is where the machine's releases lie: its root is {root}"),
            "a relative path goes into the release; install outside the root what has to stand elsewhere",
        ));
    }
}

/// A machine, as far as absolute paths are concerned: all local ones are the controller's own.
fn file_system<'a>(machines: &Machines, name: &'a NodeName) -> Option<&'a NodeName> {
    let local = |name| {
        let node = machines.nodes.get(name);
        node.is_some_and(|node| matches!(node.courier, CourierKind::Local | CourierKind::Manifests))
    };
    if local(name) { None } else { Some(name) }
}

struct Installer<'a> {
    draft: &'a Draft<'a>,
    place: Place,
}

/// Who installs a path, by machine.
type Holders<'a> = HashMap<Option<&'a NodeName>, (&'a ServiceName, Place)>;

fn holders<'a>(installers: &[Installer<'a>], machines: &Machines) -> Holders<'a> {
    let mut holders = Holders::new();
    for installer in installers {
        for node in &installer.draft.service.nodes {
            holders
                .entry(file_system(machines, node))
                .or_insert((&installer.draft.service.name, installer.place));
        }
    }
    holders
}

/// The absolute paths of different services on the same machine.
pub(super) fn between_services(
    drafts: &Drafts<'_>,
    machines: &Machines,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let mut installed: BTreeMap<&str, Vec<Installer<'_>>> = BTreeMap::new();
    for draft in drafts.values() {
        for (file, places) in draft.service.files.iter().zip(&draft.files) {
            if let FilePath::Absolute(path) = &file.path {
                installed.entry(path.as_str()).or_default().push(Installer {
                    draft,
                    place: places.path,
                });
            }
        }
    }
    // Each path's machines are walked once, however many services install it.
    let mut known: HashMap<&str, Holders<'_>> = HashMap::new();
    for (path, installers) in &installed {
        let shared = (installers.len() > 1).then_some(*path);
        let folders = above(path).filter(|folder| installed.contains_key(folder));
        for other in shared.into_iter().chain(folders) {
            let holders = known.entry(other).or_insert_with(|| {
                let installers = installed.get(other).map_or(&[][..], Vec::as_slice);
                holders(installers, machines)
            });
            for installer in installers {
                clash(installer, path, other, holders, machines, sources, problems);
            }
        }
    }
}

fn clash(
    installer: &Installer<'_>,
    path: &str,
    other: &str,
    holders: &Holders<'_>,
    machines: &Machines,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let service = &installer.draft.service;
    let held = service.nodes.iter().find_map(|node| {
        let (holder, place) = holders.get(&file_system(machines, node))?;
        (*holder != &service.name).then_some((node, *holder, *place))
    });
    let Some((node, holder, place)) = held else {
        return;
    };
    let message = if path == other {
        format!(
            "{} and {holder} both install {path} on {node}",
            service.name
        )
    } else {
        format!(
            "on {node} {other} cannot be a file of {holder} and the folder of {path} of {}",
            service.name
        )
    };
    problems.push(Problem::new(
        installer.place,
        message,
        format!("{holder}'s is at {}", sources.reference(place)),
    ));
}

#[cfg(test)]
mod tests {
    use super::{above, is_at_or_below};

    #[test]
    fn the_folders_above_a_path() {
        assert_eq!(above("/etc/a/b").collect::<Vec<_>>(), ["/etc", "/etc/a"]);
        assert_eq!(above("a/b").collect::<Vec<_>>(), ["a"]);
        assert_eq!(above("a").count(), 0);
    }

    #[test]
    fn a_folder_holds_itself_and_what_is_below_but_not_what_begins_like_it() {
        assert!(is_at_or_below("/var/lib/grid/x", "/var/lib/grid"));
        assert!(is_at_or_below("/var/lib/grid", "/var/lib/grid"));
        assert!(!is_at_or_below("/var/lib/gridlock", "/var/lib/grid"));
    }
}
