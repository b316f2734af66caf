//! `grid check`.

mod notes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8Path;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::phrases::{NO_MACHINES, count};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{CheckView, Checked};
use crate::compose::sources::Sources;
use crate::compose::templates::parse;
use crate::compose::trial;
use crate::mesh::{self, Diagnostic, Diagnostics, Loaded};

/// The most wrong templates that one run shows.
const SHOWN_MOST: usize = 100;

/// Arguments of `grid check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid check\n\nReads mesh.toml, mesh.d/*.toml and the templates, reports all errors of a run at once, and exits with 3 if there is one. Templates are tried \
        with secrets that are made up. It contacts no machine and opens no store."
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
    let (wrong, unreached) = templates(context, &folder, &loaded);
    if !wrong.errors.is_empty() {
        if context.ui.json {
            context.ui.json(&CheckView::Wrong(wrong), false)?;
            return Ok(Exit::Declaration);
        }
        return Err(wrong.into());
    }
    let mut notes = notes::of(&folder, &loaded.mesh);
    notes.extend(unreached);
    let checked = Checked {
        mesh: loaded.mesh.name.clone(),
        digest: loaded.digest,
        files: loaded.files.iter().map(ToString::to_string).collect(),
        machines: loaded.mesh.nodes.len(),
        services: loaded.mesh.services.len(),
        notes,
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
    for what in &checked.notes {
        context.ui.note(&Line::note(what));
    }
    if checked.machines == 0 {
        context.ui.hint(NO_MACHINES);
    }
    Ok(Exit::Done)
}

/// Templates that cannot be read, do not parse, or ask for what is not there; and a note of each name that nothing fills in where no
/// trial led.
fn templates(context: &Context, folder: &Utf8Path, loaded: &Loaded) -> (Diagnostics, Vec<String>) {
    let mesh = &loaded.mesh;
    let sources = context.sources(folder, mesh, &mesh.recipients);
    let of_lists = mesh
        .services
        .values()
        .filter_map(|service| service.provides.as_ref())
        .flat_map(|provides| provides.provider.kind().sources())
        .map(|path| Utf8Path::new(path.as_str()));
    let paths: BTreeSet<&Utf8Path> = mesh.templates().chain(of_lists).collect();
    let shown = |path: &Utf8Path| {
        let shown = folder.join(path);
        shown.strip_prefix(".").unwrap_or(&shown).to_string()
    };
    let wrong = |path: &Utf8Path| {
        let shown = shown(path);
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
    let mut errors: BTreeMap<&Utf8Path, Diagnostic> = BTreeMap::new();
    for path in paths {
        errors.extend(wrong(path).map(|wrong| (path, wrong)));
    }
    let sources: Arc<dyn Sources> = sources.clone();
    let tried = trial::templates(mesh, &sources);
    let wrong = tried.wrong.into_iter();
    let wrong = wrong.filter(|wrong| !errors.contains_key(Utf8Path::new(&wrong.template)));
    let wrong: Vec<Diagnostic> = wrong
        .map(|wrong| {
            let path = Utf8Path::new(&wrong.template);
            match (sources.included(path), wrong.line) {
                (Ok(text), Some(line)) => {
                    let range = wrong.missing.map(|missing| missing.at);
                    Diagnostic::in_template(shown(path), &text, line, range, wrong.why)
                }
                _ => Diagnostic::of_template(shown(path), wrong.why),
            }
        })
        .collect();
    let bindings = tried.bindings.into_iter().map(|wrong| {
        let message = format!("{}: {}", wrong.consumer, wrong.why);
        loaded.wrong_provides(&wrong.provider, message)
    });
    let errors = bindings.chain(errors.into_values());
    let mut errors: Vec<Diagnostic> = errors.chain(wrong).collect();
    let omitted = errors.len().saturating_sub(SHOWN_MOST);
    errors.truncate(SHOWN_MOST);
    let unreached = tried.unreached.into_iter().take(SHOWN_MOST);
    let unreached = unreached.map(|unknown| {
        let line = unknown.line.map(|line| format!(":{line}"));
        format!(
            "{}{}: nothing led here when the template was tried, and {}",
            unknown.template,
            line.unwrap_or_default(),
            unknown.why
        )
    });
    (Diagnostics { errors, omitted }, unreached.collect())
}
