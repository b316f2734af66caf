//! `grid check`.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::phrases::count;
use crate::cli::ui::{Line, Look};
use crate::cli::view::{CheckView, Checked};
use crate::mesh;

/// Arguments of `grid check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid check\n\nReads mesh.toml and mesh.d/*.toml, reports all errors of a run at once, and exits with 3 if there is one. It contacts \
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
    Ok(Exit::Done)
}
