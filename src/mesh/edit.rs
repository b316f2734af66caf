//! Changes the declaration in its files, in place: comments, order and formatting stay.
//!
//! A file is replaced by one rename, with the permissions that it had. Then the whole declaration is read
//! again; what does not read back as it was meant is put back, so that no command leaves a declaration
//! that the next one refuses. Whoever calls holds the mesh lock.

mod files;

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use toml_edit::{InlineTable, Value};

use self::files::{put_back, texts, write};
use super::diagnostic::Diagnostics;
use super::edit_text::{Target, set};
use super::load::{Loaded, load};
use super::{Hold, Selector, select};
use crate::words::{NodeName, ServiceName, nearest};

/// Why a declaration was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It was wrong before.
    #[error("{0}")]
    Declaration(Diagnostics),
    /// It would be wrong afterwards; it is as it was.
    #[error("nothing was changed, since the declaration would be wrong:\n{0}")]
    Refused(Diagnostics),
    /// No such service.
    #[error("there is no service {name} in this mesh{}", or_nearest(nearest))]
    UnknownService {
        /// As given.
        name: ServiceName,
        /// The nearest name, if one is near.
        nearest: Option<String>,
    },
    /// No such machine.
    #[error("there is no machine {name} in this mesh{}", or_nearest(nearest))]
    UnknownNode {
        /// As given.
        name: NodeName,
        /// The nearest name, if one is near.
        nearest: Option<String>,
    },
    /// The hold stands in `[defaults]`, for all machines.
    #[error(
        "{name} is on hold by `[defaults]`, as is every machine that has no `hold` of its own: take `hold` out there"
    )]
    HeldByDefault {
        /// The machine.
        name: NodeName,
    },
    /// It would not say what was meant; it is as it was.
    #[error(
        "{path}: nothing was changed, since grid could not write this change so that it reads back: make it by hand"
    )]
    NotAsMeant {
        /// Which file.
        path: Utf8PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{path} cannot be changed: {cause}")]
    File {
        /// Which file.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// The file was changed, is wrong now, and cannot be put back.
    #[error(
        "{path} was changed and is wrong now, and could not be put back ({cause}): take the change out by hand"
    )]
    NotPutBack {
        /// Which file.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
}

fn or_nearest(nearest: &Option<String>) -> String {
    let question = |name: &String| format!("; did you mean {name}?");
    nearest.as_ref().map(question).unwrap_or_default()
}

/// Puts a service on these machines, and takes it off all others: `node = "x"` for one, `nodes = […]` for
/// several, and neither for none. Returns the declaration as it reads now.
///
/// # Errors
/// When there is no such service, the declaration was or would be wrong, or the file cannot be
/// written. The declaration is then as it was.
pub fn set_nodes(
    folder: &Utf8Path,
    service: &ServiceName,
    nodes: &[Selector],
) -> Result<Loaded, EditError> {
    let before = load(folder).map_err(EditError::Declaration)?;
    if !before.mesh.services.contains_key(service) {
        let names = before.mesh.services.keys().map(ServiceName::as_str);
        return Err(EditError::UnknownService {
            name: service.clone(),
            nearest: nearest(service.as_str(), names),
        });
    }
    let words: Vec<String> = nodes.iter().map(Selector::to_string).collect();
    let new = match words.as_slice() {
        [] => None,
        [one] => Some(("node", Value::from(one))),
        more => Some(("nodes", Value::Array(more.iter().collect()))),
    };
    let target = Target {
        section: "services",
        name: service.as_str(),
        old: &["node", "nodes"],
    };
    let as_meant = |after: &Loaded| {
        let service = after.mesh.services.get(service);
        let meant = select(&after.mesh, nodes).ok();
        service.is_some_and(|service| Some(&service.nodes) == meant.as_ref())
    };
    change(folder, &before, target, new, as_meant)
}

/// Puts machines on hold, or takes their hold away. Returns the declaration as it reads now.
///
/// # Errors
/// When there is no such machine, the declaration was or would be wrong, a hold stands in `[defaults]`,
/// or a file cannot be written. The declaration is then as it was.
pub fn set_hold(
    folder: &Utf8Path,
    nodes: &BTreeSet<NodeName>,
    hold: Option<&Hold>,
) -> Result<Loaded, EditError> {
    let mut loaded = load(folder).map_err(EditError::Declaration)?;
    let before = texts(folder, &loaded)?;
    for node in nodes {
        match set_hold_of(folder, &loaded, node, hold) {
            Ok(after) => loaded = after,
            Err(error) => {
                put_back(before)?;
                return Err(error);
            }
        }
    }
    Ok(loaded)
}

fn set_hold_of(
    folder: &Utf8Path,
    before: &Loaded,
    node: &NodeName,
    hold: Option<&Hold>,
) -> Result<Loaded, EditError> {
    let Some(machine) = before.mesh.nodes.get(node) else {
        let names = before.mesh.nodes.keys().map(NodeName::as_str);
        return Err(EditError::UnknownNode {
            name: node.clone(),
            nearest: nearest(node.as_str(), names),
        });
    };
    let new = hold.map(|hold| ("hold", hold_value(hold)));
    let target = Target {
        section: "nodes",
        name: node.as_str(),
        old: &["hold"],
    };
    let as_meant = |after: &Loaded| {
        let node = after.mesh.nodes.get(node);
        node.is_some_and(|node| node.hold.as_ref() == hold)
    };
    let was_held = machine.hold.is_some();
    change(folder, before, target, new, as_meant).map_err(|error| match error {
        EditError::NotAsMeant { .. } if hold.is_none() && was_held => {
            EditError::HeldByDefault { name: node.clone() }
        }
        other => other,
    })
}

fn hold_value(hold: &Hold) -> Value {
    let Some(until) = hold.until else {
        return Value::from(&hold.reason);
    };
    let mut table = InlineTable::new();
    table.insert("reason", Value::from(&hold.reason));
    // A date of TOML's own; a text where the year has more than its four digits.
    let day = until.to_string();
    table.insert("until", day.parse().unwrap_or_else(|_| Value::from(day)));
    Value::InlineTable(table)
}

fn change(
    folder: &Utf8Path,
    before: &Loaded,
    target: Target<'_>,
    new: Option<(&str, Value)>,
    as_meant: impl Fn(&Loaded) -> bool,
) -> Result<Loaded, EditError> {
    for file in &before.files {
        let path = folder.join(file);
        let failed = |cause| EditError::File {
            path: path.clone(),
            cause,
        };
        let old = std::fs::read_to_string(&path).map_err(failed)?;
        let Some(text) = set(&old, target, new.clone()) else {
            continue;
        };
        let path = path.canonicalize_utf8().map_err(failed)?;
        write(&path, text.as_bytes()).map_err(failed)?;
        let refused = match load(folder) {
            Ok(after) if as_meant(&after) => return Ok(after),
            Ok(_) => EditError::NotAsMeant { path: path.clone() },
            Err(wrong) => EditError::Refused(wrong),
        };
        return Err(match write(&path, old.as_bytes()) {
            Ok(()) => refused,
            Err(cause) => EditError::NotPutBack { path, cause },
        });
    }
    Err(EditError::NotAsMeant {
        path: folder.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const MAIN: &str = "\
[mesh]   # ours
name = \"prod\"

[nodes.atlas]
tags = [\"eu\"]
[nodes.borealis] # slow
tags = [\"eu\"]
";
    const MORE: &str = "\
# Who sends the invoices.
[services.billing]
node = \"atlas\" # for now
";

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir(folder.path().join("mesh.d")).unwrap();
            folder.write("mesh.toml", MAIN);
            folder.write("mesh.d/billing.toml", MORE);
            folder
        }
        fn path(&self) -> &Utf8Path {
            self.0.path().try_into().unwrap()
        }
        fn write(&self, path: &str, text: &str) {
            std::fs::write(self.path().join(path), text).unwrap();
        }
        fn read(&self, path: &str) -> String {
            std::fs::read_to_string(self.path().join(path)).unwrap()
        }
        fn nodes(&self, words: &[&str]) -> Result<Loaded, EditError> {
            let nodes: Vec<Selector> = words.iter().map(|word| word.parse().unwrap()).collect();
            set_nodes(self.path(), &ServiceName::new("billing").unwrap(), &nodes)
        }
        fn hold(&self, node: &str, hold: Option<&Hold>) -> Result<Loaded, EditError> {
            set_hold(
                self.path(),
                &BTreeSet::from([NodeName::new(node).unwrap()]),
                hold,
            )
        }
        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = [self.path().to_owned(), self.path().join("mesh.d")]
                .iter()
                .flat_map(|folder| folder.read_dir_utf8().unwrap())
                .map(|entry| entry.unwrap().file_name().to_owned())
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_service_is_assigned_where_it_is_declared_and_all_else_stays() {
        let folder = Folder::new();
        let loaded = folder.nodes(&["@eu"]).unwrap();
        assert_eq!(loaded.mesh.services["billing"].nodes.len(), 2);
        assert_eq!(
            folder.read("mesh.d/billing.toml"),
            MORE.replace("atlas", "@eu")
        );
        folder.nodes(&["borealis", "atlas"]).unwrap();
        let two = "nodes = [\"borealis\", \"atlas\"] # for now";
        assert!(folder.read("mesh.d/billing.toml").contains(two));
        let loaded = folder.nodes(&[]).unwrap();
        assert!(loaded.mesh.services["billing"].nodes.is_empty());
        assert_eq!(folder.read("mesh.toml"), MAIN);
        assert_eq!(folder.names(), ["billing.toml", "mesh.d", "mesh.toml"]);
    }

    #[test]
    fn a_machine_is_put_on_hold_and_taken_off_it() {
        let folder = Folder::new();
        let mut hold = Hold {
            reason: "\"moving\" \\ house".into(),
            until: Some(jiff::civil::date(2026, 12, 1)),
        };
        folder.hold("borealis", Some(&hold)).unwrap();
        let text = folder.read("mesh.toml");
        assert!(text.contains("until = 2026-12-01"), "{text}");
        hold.until = None;
        let loaded = folder.hold("borealis", Some(&hold)).unwrap();
        assert_eq!(loaded.mesh.nodes["borealis"].hold, Some(hold));
        folder.hold("borealis", None).unwrap();
        assert_eq!(folder.read("mesh.toml"), MAIN);
    }

    #[test]
    fn what_would_be_wrong_is_put_back() {
        let folder = Folder::new();
        let wrong = folder.nodes(&["zeus"]).unwrap_err();
        assert!(matches!(wrong, EditError::Refused(_)), "{wrong}");
        assert!(wrong.to_string().contains("there is no machine zeus"));
        let wrong = folder.nodes(&["@us", "atlas"]).unwrap_err();
        assert!(matches!(wrong, EditError::Refused(_)), "{wrong}");
        assert_eq!(folder.read("mesh.d/billing.toml"), MORE);
        assert_eq!(folder.names(), ["billing.toml", "mesh.d", "mesh.toml"]);
    }

    #[test]
    fn what_is_not_declared_or_wrong_already_is_refused_by_name() {
        let folder = Folder::new();
        let name = ServiceName::new("biling").unwrap();
        let wrong = set_nodes(folder.path(), &name, &[]).unwrap_err();
        insta::assert_snapshot!(wrong, @"there is no service biling in this mesh; did you mean billing?");
        let wrong = folder.hold("zeus", None).unwrap_err();
        insta::assert_snapshot!(wrong, @"there is no machine zeus in this mesh");
        folder.write("mesh.toml", "[mesh]\n");
        let wrong = folder.hold("atlas", None).unwrap_err();
        assert!(matches!(wrong, EditError::Declaration(_)), "{wrong}");
    }

    #[test]
    fn a_hold_for_all_machines_is_not_taken_from_one() {
        let folder = Folder::new();
        let text = format!("{MAIN}[defaults]\nhold = \"holidays\"\n");
        folder.write("mesh.toml", &text);
        let wrong = folder.hold("atlas", None).unwrap_err();
        assert!(matches!(wrong, EditError::HeldByDefault { .. }), "{wrong}");
        assert_eq!(folder.read("mesh.toml"), text);
    }

    #[test]
    fn of_several_machines_all_are_put_on_hold_or_none() {
        let folder = Folder::new();
        let hold = Hold {
            reason: "moving".into(),
            until: None,
        };
        let nodes = |names: &[&str]| {
            let names = names.iter().map(|name| NodeName::new(name).unwrap());
            names.collect::<BTreeSet<_>>()
        };
        let both = nodes(&["atlas", "borealis"]);
        let loaded = set_hold(folder.path(), &both, Some(&hold)).unwrap();
        assert!(loaded.mesh.nodes.values().all(|node| node.hold.is_some()));
        set_hold(folder.path(), &both, None).unwrap();
        assert_eq!(folder.read("mesh.toml"), MAIN);
        let wrong = set_hold(folder.path(), &nodes(&["atlas", "zeus"]), Some(&hold));
        assert!(matches!(wrong, Err(EditError::UnknownNode { .. })));
        assert_eq!(folder.read("mesh.toml"), MAIN);
    }

    #[test]
    fn a_file_keeps_its_permissions_and_a_link_stays_a_link() {
        let folder = Folder::new();
        let real = folder.path().join("real.toml");
        let link = folder.path().join("mesh.d/billing.toml");
        std::fs::rename(&link, &real).unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("../real.toml", &link).unwrap();
        folder.nodes(&["borealis"]).unwrap();
        assert!(link.is_symlink());
        let mode = real.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert!(folder.read("real.toml").contains("borealis"));
    }
}
