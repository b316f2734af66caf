//! What is right and worth a second look.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use crate::cli::phrases::{gossip, list, not_by_our_unit};
use crate::compose::templates::reads_like_one;
use crate::delivery::CourierSettings;
use crate::mesh::{CourierKind, FileContent, FilePath, Mesh};
use crate::words::NodeName;

/// The ends of names that templates have.
const TEMPLATE_ENDS: [&str; 3] = ["j2", "jinja", "jinja2"];

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
