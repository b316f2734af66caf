//! Where the declaration lies.

use camino::{Utf8Path, Utf8PathBuf};

use super::exit::{CommandError, Exit};

/// The folder of the declaration: the one that is named, else the current one or the nearest parent with a `mesh.toml`.
///
/// # Errors
/// When there is none.
pub(super) fn find(named: Option<&Utf8Path>) -> Result<Utf8PathBuf, CommandError> {
    if let Some(folder) = named {
        if folder.is_dir() {
            return Ok(folder.to_owned());
        }
        let what = match folder.file_name() {
            _ if !folder.exists() => "there is no folder",
            Some("mesh.toml") => "name the folder that it lies in, not the file",
            _ => "not a folder, but a file",
        };
        return Err(CommandError::usage(format!("--mesh {folder}: {what}"))
            .hint("`--mesh DIR`, or $GRID_MESH, names the folder of a mesh.toml; `grid init DIR` makes one"));
    }
    let here = std::env::current_dir()
        .map_err(|e| CommandError::failed(format!("the current folder is gone: {e}")))?;
    let here = Utf8PathBuf::from_path_buf(here).map_err(|path| {
        CommandError::failed(format!("{}: its name is not UTF-8", path.display()))
    })?;
    here.ancestors()
        .find(|folder| folder.join("mesh.toml").is_file())
        .map(|folder| {
            // Shown as it is from here, where it is here.
            if folder == here {
                Utf8PathBuf::from(".")
            } else {
                folder.to_owned()
            }
        })
        .ok_or_else(|| {
            CommandError::new(
                Exit::Declaration,
                anyhow::anyhow!("there is no mesh.toml in this folder, nor in one above it"),
            )
            .hint("`grid init` makes one, `--mesh DIR` names another folder, `grid try` shows what grid does")
        })
}
