//! `grid init`: files to start from. Nothing that is there is overwritten.

use std::fs;
use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;

use super::change::name;
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit, sealed};
use crate::cli::ui::Line;
use crate::mesh::starter;
use crate::store::{Identity, IdentityError};
use crate::words::MeshName;

/// Arguments of `grid init`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid init\n  \
        grid init ops/mesh --name prod\n\n\
        Writes mesh.toml with examples to take up, its JSON Schema for your editor, and what git leaves out. If you have no identity (the \
        key that opens the stored secrets), it makes one in ~/.config/grid/identity.txt, for you alone: back it up. What exists is left as it is.")]
pub struct Arguments {
    /// The folder; absent: this one
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: Utf8PathBuf,
    /// The mesh's name; absent: the folder's
    #[arg(long)]
    name: Option<String>,
}

pub(super) fn run(context: &mut Context, arguments: Arguments) -> crate::cli::Result {
    let mesh = mesh_name(&arguments)?;
    let failed = |path: &Utf8Path| {
        let path = path.to_owned();
        move |e: std::io::Error| CommandError::failed(format!("cannot write {path}: {e}"))
    };
    if let Some(file) = arguments
        .dir
        .ancestors()
        .find(|path| path.exists() && !path.is_dir())
    {
        return Err(CommandError::usage(format!(
            "{file} is a file, and no mesh can be made in it: name a folder, new or not"
        )));
    }
    let mut lines = Vec::new();
    let dir = match arguments.dir.as_str() {
        "." => Utf8PathBuf::new(),
        _ => arguments.dir.clone(),
    };
    for (path, content) in starter(&mesh) {
        let path = dir.join(path);
        if let Some(folder) = path.parent().filter(|folder| !folder.as_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed(folder))?;
        }
        match fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
        {
            Ok(mut file) => {
                file.write_all(content.as_bytes()).map_err(failed(&path))?;
                lines.push(Line::of(format!("wrote  {path}")));
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                lines.push(Line::of(format!("kept   {path}, which was there")));
            }
            Err(e) => return Err(failed(&path)(e)),
        }
    }
    let place = context.place(&dir);
    let (line, is_new) = identity(context)?;
    lines.push(line);
    context.ui.results(&lines)?;
    if is_new && place.path().exists() {
        let store = place.path().display();
        context.ui.note(&Line::note(format!(
            "{store} is a store that was there before this identity, which does not open it"
        )));
        for hint in sealed(place.path()) {
            context.ui.hint(&hint);
        }
        return Ok(Exit::Done);
    }
    context.ui.hint(&format!(
        "write your machines into {}, then `grid check` says whether all is right",
        dir.join("mesh.toml")
    ));
    context.ui.hint("`grid push --all` sends to all of them");
    Ok(Exit::Done)
}

fn mesh_name(arguments: &Arguments) -> Result<MeshName, CommandError> {
    if let Some(given) = &arguments.name {
        return name(given, MeshName::new);
    }
    let absolute = std::path::absolute(&arguments.dir).ok();
    let folder = absolute
        .as_deref()
        .and_then(|path| path.file_name())
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let label: String = folder
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(63)
        .collect();
    MeshName::new(label.trim_matches('-')).map_err(|_| {
        CommandError::usage("the folder's name is no name for a mesh")
            .hint("`grid init --name NAME`")
    })
}

/// Makes an identity if there is none: what was done, and whether it is new.
fn identity(context: &Context) -> Result<(Line, bool), CommandError> {
    let path = match context.identity() {
        Ok(identity) => {
            let line = format!("kept   your identity, {}", identity.public());
            return Ok((Line::of(line), false));
        }
        // Where it is looked for, which $GRID_IDENTITY may say.
        Err(error) => match error.cause.downcast_ref::<IdentityError>() {
            Some(IdentityError::Missing { path }) => path.clone(),
            _ => return Err(error),
        },
    };
    let identity = Identity::generate();
    identity.write_new(&path, context.started)?;
    let line = format!(
        "wrote  {}, your identity: what is stored from now on is sealed for it, so back it up",
        path.display()
    );
    Ok((Line::of(line), true))
}
