//! `grid check`.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::phrases::{self, NO_MACHINES, count, gossip, list};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{CheckView, Checked};
use crate::compose::sources::Sources as _;
use crate::compose::templates::parse;
use crate::delivery::CourierSettings;
use crate::mesh::{self, CourierKind, Diagnostic, Diagnostics, Mesh};
use crate::words::NodeName;

/// The most wrong templates that one run shows.
const SHOWN_MOST: usize = 100;

/// Arguments of `grid check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid check\n\nReads mesh.toml, mesh.d/*.toml and the templates, reports all errors of a run at once, and exits with 3 if there is one. It contacts \
        no machine and opens no store."
)]
pub struct Arguments {}

pub(super) fn run(context: &mut Context, _: Arguments) -> crate::cli::Result {
    let folder = context.folder()?;
    let loaded = match mesh::load(&folder) {
        Ok(loaded) => loaded,
        Err(wrong) if context.ui.json => {
            context.ui.json(&CheckView::Wrong(wrong), false)?;
            return Ok(Exit::Declaration);
        }
        Err(wrong) => return Err(wrong.into()),
    };
    let wrong = templates(context, &folder, &loaded.mesh);
    if !wrong.errors.is_empty() {
        if context.ui.json {
            context.ui.json(&CheckView::Wrong(wrong), false)?;
            return Ok(Exit::Declaration);
        }
        return Err(wrong.into());
    }
    let checked = Checked {
        mesh: loaded.mesh.name.clone(),
        digest: loaded.digest,
        files: loaded.files.iter().map(ToString::to_string).collect(),
        machines: loaded.mesh.nodes.len(),
        services: loaded.mesh.services.len(),
    };
    if context.ui.json {
        context.ui.json(&CheckView::Right(checked), false)?;
        return Ok(Exit::Done);
    }
    let line = Line::new().look(Look::Strong, &checked.mesh).plain(format!(
        ": {} and {} in {}, nothing wrong",
        count(checked.machines, "machine"),
        count(checked.services, "service"),
        count(checked.files.len(), "file"),
    ));
    context.ui.result(&line)?;
    if let Some(what) = gossip(&loaded.mesh) {
        context
            .ui
            .note(&Line::new().look(Look::Warn, "note: ").plain(what));
    }
    for what in phrases::not_by_our_unit(&loaded.mesh) {
        context
            .ui
            .note(&Line::new().look(Look::Warn, "note: ").plain(what));
    }
    for (file, nodes) in keys_not_here(&folder, &loaded.mesh) {
        // No error: who checks need not be who pushes.
        context.ui.note(&Line::new().look(Look::Warn, "note: ").plain(format!(
            "`identity` of {}: {file} does not exist, so a push from here logs in there only by another key",
            list(nodes)
        )));
    }
    if checked.machines == 0 {
        context.ui.hint(NO_MACHINES);
    }
    Ok(Exit::Done)
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

/// Templates that cannot be read or do not parse.
fn templates(context: &Context, folder: &Utf8Path, mesh: &Mesh) -> Diagnostics {
    let sources = context.sources(folder, mesh);
    let of_lists = mesh
        .services
        .values()
        .filter_map(|service| service.provides.as_ref())
        .flat_map(|provides| provides.provider.kind().sources())
        .map(|path| Utf8Path::new(path.as_str()));
    let paths: BTreeSet<&Utf8Path> = mesh.templates().chain(of_lists).collect();
    let wrong = |path: &Utf8Path| {
        let shown = folder.join(path);
        let shown = shown.strip_prefix(".").unwrap_or(&shown).to_string();
        let text = match sources.template(path) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("this template cannot be read: {}", error.why);
                return Some(Diagnostic::of_template(shown, message));
            }
        };
        let unparsed = parse(&text).err()?;
        Some(Diagnostic::in_template(
            shown,
            &text,
            unparsed.line,
            unparsed.range,
            unparsed.why,
        ))
    };
    let mut errors: Vec<Diagnostic> = paths.into_iter().filter_map(wrong).collect();
    let omitted = errors.len().saturating_sub(SHOWN_MOST);
    errors.truncate(SHOWN_MOST);
    Diagnostics { errors, omitted }
}
