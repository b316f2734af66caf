//! Reads a declaration from its folder, and checks it (DESIGN.md, section 2).
//!
//! Order: the files; their syntax; the tables one by one; what one says of another. Each step goes on
//! after an error as long as what follows from it would not be reported as one more.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::declaration::{Mesh, Recipient, SecretSource};
use super::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Position};
use super::input::Input;
use super::items::Items;
use super::machine::{Machines, Surroundings};
use super::place::{At, Place, Problem};
use super::reader::read;
use super::source::Sources;
use super::text::Versions;
use super::{check, check_sites, consumption, raw, service, signals, syntax};
use crate::words::{Digest, MeshName, NameError, NodeName, SecretName, ServiceName};

/// A declaration as it was read.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it says.
    pub mesh: Mesh,
    /// The machines that are on hold by `[defaults]`, and not by a word of their own.
    pub held_by_default: BTreeSet<NodeName>,
    /// Of the bytes of all its files, in order.
    pub digest: Digest,
    /// Its files, relative to its folder: `mesh.toml`, then those of `mesh.d` in order of name.
    pub files: Vec<Utf8PathBuf>,
    /// Where each provider says what it provides: the file as it is shown, and where in it.
    provides: BTreeMap<ServiceName, (String, Option<Position>)>,
}

impl Loaded {
    /// That something is wrong with what a service provides, where it says so. For what is known only once the declaration is
    /// right, and told of the bytes that were read, whatever became of the files since.
    #[must_use]
    pub fn wrong_provides(&self, service: &ServiceName, message: String) -> Diagnostic {
        let place = self.provides.get(service);
        let (file, at) = place.cloned().unwrap_or_default();
        Diagnostic {
            kind: DiagnosticKind::Template,
            file,
            at,
            message,
            help: None,
        }
    }
}

/// Reads and checks the declaration in `folder`.
///
/// # Errors
/// All that is wrong with it, at once. A declaration for another version of grid has that one error
/// only: what else seems wrong may be right in that version.
pub fn load(folder: &Utf8Path) -> Result<Loaded, Diagnostics> {
    load_as(folder, &this_version())
}

/// The declaration in `folder` as it is now: `before`, if no byte of it changed since, else read anew.
///
/// # Errors
/// Those of [`load`].
pub fn load_again(folder: &Utf8Path, before: Loaded) -> Result<Loaded, Diagnostics> {
    if Sources::read(folder)?.digest == before.digest {
        return Ok(before);
    }
    load(folder)
}

/// This grid.
fn this_version() -> semver::Version {
    // Cargo gives three numbers, always.
    semver::Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(semver::Version::new(0, 0, 0))
}

fn load_as(folder: &Utf8Path, version: &semver::Version) -> Result<Loaded, Diagnostics> {
    let sources = Sources::read(folder)?;
    let absolute = folder.canonicalize_utf8().map_err(|cause| {
        Diagnostics::one(Diagnostic {
            kind: DiagnosticKind::Unreadable,
            file: folder.to_string(),
            at: None,
            message: format!("this folder cannot be read: {cause}"),
            help: None,
        })
    })?;
    let mut problems = Vec::new();
    let parsed = syntax::parse(&sources, &mut problems);
    let items = Items::merge(&sources, &parsed.tables, &mut problems);

    let head = Head::read(items.mesh, parsed.whole, &mut problems);
    if let Some(wrong) = head.wrong_version(version) {
        return Err(sources.diagnostics(vec![wrong]));
    }
    let before = problems.len();
    let secrets = read_secrets(&items.secrets, &absolute, &mut problems);
    for problem in problems.iter_mut().skip(before) {
        problem.hidden = true;
    }
    let surroundings = Surroundings {
        mesh: head.name.as_ref(),
        folder: &absolute,
    };
    let machines = Machines::read(&items, surroundings, &mut problems);
    let mut drafts = service::read_all(&items.services, &mut problems);
    let signals = signals::read(&items, surroundings, &machines, &mut problems);
    // Where a file could not be parsed, what refers to something in it would seem to dangle.
    if parsed.whole {
        service::assign(&mut drafts, &machines, &mut problems);
        consumption::read_all(&mut drafts, &mut problems);
        check_sites::pins(&machines, &sources, &mut problems);
        if let Some(signals) = &signals {
            check_sites::places(&machines, signals, &sources, &mut problems);
        }
        let has_signals = items.signals.is_some();
        check::all(
            &drafts,
            &machines,
            &absolute,
            has_signals,
            &sources,
            &mut problems,
        );
    }
    match head.name {
        Some(name) if problems.is_empty() => Ok(Loaded {
            provides: drafts
                .iter()
                .filter_map(|(name, draft)| Some((name.clone(), sources.at(draft.provides?))))
                .collect(),
            mesh: Mesh {
                name,
                grid: head.grid.map(|versions| versions.value.0),
                recipients: head.recipients,
                secrets,
                nodes: machines.nodes,
                services: drafts
                    .into_iter()
                    .map(|(name, draft)| (name, draft.service))
                    .collect(),
                signals,
            },
            held_by_default: machines.held_by_default,
            digest: sources.digest,
            files: sources.files.into_iter().map(|file| file.path).collect(),
        }),
        _ => Err(sources.diagnostics(problems)),
    }
}

/// What `[mesh]` says.
#[derive(Default)]
struct Head {
    /// Absent: it is missing or wrong, which was reported.
    name: Option<MeshName>,
    grid: Option<At<Versions>>,
    recipients: Vec<Recipient>,
}

impl Head {
    /// Reads it; whether it is missing is known only where all files are `whole`.
    fn read(mesh: Option<Input<'_>>, whole: bool, problems: &mut Vec<Problem>) -> Self {
        let Some(input) = mesh else {
            if whole {
                problems.push(Problem::new(
                    Place::new(0, 0..0),
                    "the table `[mesh]` is missing",
                    "add `[mesh]` and below it `name = \"…\"`",
                ));
            }
            return Self::default();
        };
        let before = problems.len();
        let raw = match input.table("`mesh`") {
            Ok(table) => read::<raw::Mesh>(table, problems),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let Some(raw) = raw else {
            return Self::default();
        };
        if raw.name.is_none() && problems.len() == before {
            problems.push(Problem::new(
                input.key,
                "the mesh has no name",
                "add `name = \"…\"` below `[mesh]`",
            ));
        }
        let recipients = raw
            .recipients
            .into_iter()
            .filter_map(|recipient| match recipient.value {
                raw::Recipient {
                    name: Some(name),
                    key: Some(key),
                } => Some(Recipient {
                    name: name.0,
                    key: key.0,
                }),
                _ => {
                    if !problems.iter().any(|known| known.is_in(recipient.place)) {
                        problems.push(Problem::new(
                            recipient.place,
                            "a recipient has a `name` and a `key`",
                            "write `{ name = \"maria\", key = \"age1…\" }`",
                        ));
                    }
                    None
                }
            })
            .collect();
        Self {
            name: raw.name,
            grid: raw.grid,
            recipients,
        }
    }

    fn wrong_version(&self, version: &semver::Version) -> Option<Problem> {
        let versions = self.grid.as_ref()?;
        if versions.value.0.matches(version) {
            return None;
        }
        let message = format!(
            "this declaration asks for grid {}, and this is grid {version}",
            versions.value.0
        );
        let help = "install a version that it asks for, or change `grid` if this one may push it";
        Some(Problem::new(versions.place, message, help).of(DiagnosticKind::Version))
    }
}

fn read_secrets(
    items: &BTreeMap<&str, Input<'_>>,
    folder: &Utf8Path,
    problems: &mut Vec<Problem>,
) -> BTreeMap<SecretName, SecretSource> {
    let mut secrets = BTreeMap::new();
    for (name, input) in items {
        let before = problems.len();
        let name = named(name, *input, SecretName::new, problems);
        let raw = match input.table("a secret") {
            Ok(table) => read::<raw::Secret>(table, problems),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let source = match raw {
            Some(raw::Secret {
                file: Some(path),
                command: None,
                env: None,
            }) => {
                if let Some(wrong) = check::wrong_with(folder, &path.0) {
                    let table = input.table("a secret").ok();
                    let file = table.and_then(|table| table.get("file"));
                    // Somebody may have written the secret itself there, so only what is called as such a file is told.
                    let wrong = match path.0.ends_with(".age") {
                        true => wrong,
                        false => "it names no file that is there".to_owned(),
                    };
                    problems.push(Problem::new(
                        file.map_or(input.key, |file| file.place()),
                        format!("`file` of a secret: {wrong}"),
                        "it is named relative to the folder of mesh.toml; `age -r age1… -o NAME.age PLAIN` makes one of a file PLAIN, with one `-r` for everybody who pushes this mesh",
                    ));
                }
                SecretSource::AgeFile(path.0.into())
            }
            Some(raw::Secret {
                file: None,
                command: Some(command),
                env: None,
            }) => SecretSource::Command(command),
            Some(raw::Secret {
                file: None,
                command: None,
                env: Some(variable),
            }) => SecretSource::Environment(variable.0),
            _ => {
                if problems.len() == before {
                    problems.push(Problem::new(
                        input.key,
                        "a secret comes from exactly one of `file`, `command` and `env`",
                        "write one of `file = \"secrets/NAME.age\"`, `command = [\"pass\", \"show\", \"NAME\"]` and `env = \"NAME\"`",
                    ));
                }
                continue;
            }
        };
        if let Some(name) = name {
            secrets.insert(name, source);
        }
    }
    secrets
}

/// The key of a table as a name.
pub(super) fn named<N>(
    key: &str,
    input: Input<'_>,
    parse: impl Fn(&str) -> Result<N, NameError>,
    problems: &mut Vec<Problem>,
) -> Option<N> {
    parse(key)
        .map_err(|wrong| problems.push(Problem::bare(input.key, wrong.to_string())))
        .ok()
}
