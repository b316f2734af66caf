//! What is right and worth a second look.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use crate::cli::phrases::{gossip, list, not_by_our_unit};
use crate::compose::templates::reads_like_one;
use crate::delivery::CourierSettings;
use crate::kinds::Provider;
use crate::mesh::{CourierKind, FileContent, FilePath, Mesh, SecretSource};
use crate::words::{Command, NodeName};

/// The ends of names that templates have.
const TEMPLATE_ENDS: [&str; 3] = ["j2", "jinja", "jinja2"];

/// What stands between commands in a line of shell.
const SHELL_WORDS: [&str; 7] = ["&&", "||", "|", ";", ">", ">>", "<"];

/// A sentence each.
pub(super) fn of(folder: &Utf8Path, mesh: &Mesh) -> Vec<String> {
    let mut notes: Vec<String> = gossip(mesh).map(str::to_owned).into_iter().collect();
    notes.extend(not_by_our_unit(mesh));
    for (file, nodes) in keys_not_here(folder, mesh) {
        // No error: who checks need not be who pushes.
        notes.push(format!(
            "`identity` of {}: {file} does not exist, so a push from here logs in there only by another key",
            list(nodes)
        ));
    }
    notes.extend(not_rendered(mesh));
    notes.extend(like_a_shell(mesh));
    notes
}

/// Commands that read like a line of a shell, and are run as they are. No error: a program may be called anything.
fn like_a_shell(mesh: &Mesh) -> Vec<String> {
    let mut notes = Vec::new();
    let mut look = |key: &str, of: &str, command: &Command| {
        let words = command.words();
        let first = words.first().map_or("", String::as_str);
        // `find` has a use of its own for `;`.
        let finds = words.iter().any(|word| word.starts_with("-exec"));
        let told = if first.contains(char::is_whitespace) {
            format!("is the program \"{first}\", white space and all")
        } else if let Some(word) = words
            .iter()
            .find(|word| SHELL_WORDS.contains(&word.as_str()) && !finds)
        {
            format!("gives `{first}` the word \"{word}\", which no shell reads")
        } else {
            return;
        };
        notes.push(format!(
            "`{key}` of {of} {told}: each word stands in quotes of its own, and a line of shell is [\"sh\", \"-c\", \"…\"]"
        ));
    };
    for (name, secret) in &mesh.secrets {
        if let SecretSource::Command(command) = secret {
            look("command", &format!("[secrets.{name}]"), command);
        }
    }
    for (name, service) in &mesh.services {
        let own = [
            ("test", &service.test),
            ("apply", &service.apply),
            ("check", &service.check),
            ("remove", &service.remove),
        ];
        for (key, command) in own {
            if let Some(command) = command {
                look(key, name.as_str(), command);
            }
        }
        let provides = service.provides.as_ref();
        if let Some(Provider::Custom(custom)) = provides.map(|provides| &provides.provider) {
            let of = format!("[services.{name}.provides]");
            look("load", &of, &custom.load);
            look("check", &of, &custom.check);
        }
    }
    notes
}

/// Files that read like a template, or are named like one, and are sent as they are. No error: they may be another program's.
fn not_rendered(mesh: &Mesh) -> Vec<String> {
    let mut notes = Vec::new();
    for (service, declared) in &mesh.services {
        for file in &declared.files {
            match &file.content {
                FileContent::Inline(text) if reads_like_one(text) => notes.push(format!(
                    "`content` of {} of {service} is sent as it is, with what stands in braces: what is to be rendered stands in a file that \
                     `template` names",
                    shown(&file.path)
                )),
                FileContent::Source(path)
                    if path.extension().is_some_and(|end| TEMPLATE_ENDS.contains(&end)) =>
                {
                    notes.push(format!(
                        "`source = \"{path}\"` of {service} is sent as it is: `template = \"{path}\"` renders it"
                    ));
                }
                FileContent::Inline(_) | FileContent::Source(_) | FileContent::Template(_) => {}
            }
        }
    }
    notes
}

fn shown(path: &FilePath) -> &str {
    match path {
        FilePath::Release(path) => path.as_str(),
        FilePath::Absolute(path) => path.as_str(),
    }
}

/// The key files of machines that are not on this one.
fn keys_not_here<'a>(
    folder: &Utf8Path,
    mesh: &'a Mesh,
) -> BTreeMap<String, BTreeSet<&'a NodeName>> {
    let settings = CourierSettings::new(folder.to_owned());
    let mut missing: BTreeMap<String, BTreeSet<&NodeName>> = BTreeMap::new();
    for node in mesh.nodes.values() {
        if matches!(node.courier, CourierKind::Ssh | CourierKind::Openssh)
            && let Some(file) = settings.identity_of(node)
            && !file.exists()
        {
            let shown = file.strip_prefix(".").unwrap_or(&file).display();
            missing
                .entry(shown.to_string())
                .or_default()
                .insert(&node.name);
        }
    }
    missing
}
