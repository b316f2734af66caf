//! Where a store lies: the folder `.grid/` beside `mesh.toml`, or `$GRID_STORE` (DESIGN.md, section 6).
//!
//! Invariant: the folder is 0700 and every file in it 0600, whatever the umask and whatever the libraries
//! create: modes are set again after each opening.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::StoreError;

const FOLDER: u32 = 0o700;
pub(super) const FILE: u32 = 0o600;

/// The folder of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(PathBuf);

impl Place {
    /// Beside the declaration, in its folder `dir`.
    #[must_use]
    pub fn beside(dir: &Path) -> Self {
        Self(dir.join(".grid"))
    }

    /// Where `$GRID_STORE` says.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file of the mesh lock.
    pub(super) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The file that a transaction locks, a reading one too.
    pub(super) fn transaction(&self) -> PathBuf {
        self.0.join("transaction")
    }

    /// The file that is locked by who is next.
    pub(super) fn queue(&self) -> PathBuf {
        self.0.join("queue")
    }

    /// Says which store this is and how many commits it took; outside the database, so that one that lost
    /// some, or all, is found out.
    pub(super) fn witness(&self) -> PathBuf {
        self.0.join("witness")
    }

    /// The database.
    pub(super) fn database(&self) -> PathBuf {
        self.0.join("db")
    }

    /// A database that is being written, to take the place of the present one.
    pub(super) fn next(&self) -> PathBuf {
        self.0.join("db.next")
    }

    /// A database whose place was taken.
    pub(super) fn previous(&self) -> PathBuf {
        self.0.join("db.previous")
    }

    /// Makes the folder, if it is not there, and keeps it out of git.
    pub(super) fn make(&self) -> Result<(), StoreError> {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(FOLDER)
            .create(&self.0);
        made.map_err(StoreError::io("cannot make the folder", &self.0))?;
        set_mode(&self.0, FOLDER).map_err(StoreError::io("cannot set the mode of", &self.0))?;
        let ignore = self.0.join(".gitignore");
        if !ignore.exists() {
            write_file(&ignore, b"# A store is backed up, not versioned.\n*\n")
                .map_err(StoreError::io("cannot write", &ignore))?;
        }
        Ok(())
    }
}

/// Sets a mode, unless it is that already.
pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let is = fs::symlink_metadata(path)?.permissions().mode() & 0o7777;
    if is == mode {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Sets the modes of `folder` and of everything in it; what vanishes meanwhile is passed over.
pub(super) fn set_modes(folder: &Path) -> io::Result<()> {
    set_mode(folder, FOLDER)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let done = if kind.is_dir() {
            set_modes(&entry.path())
        } else if kind.is_file() {
            set_mode(&entry.path(), FILE)
        } else {
            Ok(())
        };
        match done {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// Replaces a file in one step: 0600, on disk when it returns.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let next = path.with_extension("next");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE)
        .open(&next)?;
    set_mode(&next, FILE)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    sync_folder(path)
}

/// Puts the renaming of `path` on disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

/// How many bytes the files in `folder` have.
pub(super) fn size(folder: &Path) -> io::Result<u64> {
    let mut sum = 0_u64;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let of_entry = if entry.file_type()?.is_dir() {
            size(&entry.path())
        } else {
            entry.metadata().map(|metadata| metadata.len())
        };
        match of_entry {
            Ok(bytes) => sum = sum.saturating_add(bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(sum)
}
