//! The files of a declaration as a whole: read, replaced and put back.

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::{EditError, Loaded};

/// The files of a declaration with their texts.
pub(super) fn texts(
    folder: &Utf8Path,
    loaded: &Loaded,
) -> Result<Vec<(Utf8PathBuf, String)>, EditError> {
    let read = |file: &Utf8PathBuf| {
        let path = folder.join(file);
        let read = path
            .canonicalize_utf8()
            .and_then(|real| Ok((real.clone(), std::fs::read_to_string(&real)?)));
        read.map_err(|cause| EditError::File { path, cause })
    };
    loaded.files.iter().map(read).collect()
}

/// Puts these texts back where others are now.
pub(super) fn put_back(texts: Vec<(Utf8PathBuf, String)>) -> Result<(), EditError> {
    for (path, text) in texts {
        if std::fs::read_to_string(&path).is_ok_and(|now| now == text) {
            continue;
        }
        write(&path, text.as_bytes()).map_err(|cause| EditError::NotPutBack { path, cause })?;
    }
    Ok(())
}

/// Replaces a file by one rename; it keeps its permissions.
pub(super) fn write(path: &Utf8Path, bytes: &[u8]) -> std::io::Result<()> {
    // Hidden, so that nobody reads it as a file of the declaration.
    let name = path.file_name().unwrap_or("mesh.toml");
    let new = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = (|| {
        let permissions = path.metadata()?.permissions();
        let mut file = std::fs::File::create(&new)?;
        file.set_permissions(permissions)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    })();
    if written.is_err() {
        // The first cause is the one to report.
        let _ = std::fs::remove_file(&new);
    }
    written
}
