//! A file that is replaced atomically, by one writer at a time.
//!
//! Invariants:
//! - A reader sees a whole file or none, and needs no lock: a writer writes `NAME.next` beside it, puts that on disk,
//!   renames it over the file, and puts the folder on disk, before it says that anything is written. One that is killed
//!   leaves the old file or the new one, and perhaps a `NAME.next` that the next writer removes.
//! - One writer at a time: whoever writes holds the lock on `NAME.lock` (`flock`, which goes with its process).
//! - The file has its mode whatever the umask, and belongs to whom it belonged: what root writes it takes from nobody who
//!   runs as somebody else.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::HomeError;

/// The mode of the lock.
const LOCK_MODE: u32 = 0o600;

/// How often a held lock is asked for again.
const POLL: Duration = Duration::from_millis(5);

/// A file that is replaced atomically.
#[derive(Debug, Clone)]
pub struct KeptFile {
    path: PathBuf,
    mode: u32,
    most: usize,
}

impl KeptFile {
    /// The file at `path`, of this mode and of at most so many bytes. Its folder has to be there; the file need not.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, mode: u32, most: usize) -> Self {
        Self {
            path: path.into(),
            mode,
            most,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What lies beside it under its name with this ending.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut path = OsString::from(&self.path);
        path.push(ending);
        path.into()
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        }
    }

    /// The bytes that are there, and one past the bound at most; `None`: no file.
    ///
    /// # Errors
    /// When it is no file, or cannot be read.
    pub fn bytes(&self) -> Result<Option<Vec<u8>>, HomeError> {
        let failed = |doing| io_error(doing, &self.path);
        // Asked before it is opened, since opening a pipe would wait for its writer.
        let there = match fs::metadata(&self.path) {
            Ok(there) => there,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("cannot look at")(e)),
        };
        if !there.is_file() {
            return Err(HomeError::NotAFile {
                path: self.path.clone(),
            });
        }
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("cannot open")(e)),
        };
        let most = u64::try_from(self.most).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(failed("cannot read"))?;
        Ok(Some(bytes))
    }

    /// Puts `bytes` in its place; on disk when it returns. For who holds its lock.
    ///
    /// # Errors
    /// When that fails; unknown then whether it is there.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), HomeError> {
        let next = self.beside(".next");
        let replaced = self.put(&next, bytes);
        if replaced.is_err() {
            // On a full disk it would only take room.
            let _ = fs::remove_file(next);
        }
        replaced
    }

    fn put(&self, next: &Path, bytes: &[u8]) -> Result<(), HomeError> {
        let failed = |doing| io_error(doing, next);
        match fs::remove_file(next) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(failed("cannot remove")(e));
            }
            _ => {}
        }
        // A new one, so that nothing that lies in its place, a link least of all, is written through.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(self.mode)
            .open(next)
            .map_err(failed("cannot make"))?;
        self.give(&file)
            .map_err(failed("cannot give to the owner of the old file the new"))?;
        file.set_permissions(Permissions::from_mode(self.mode))
            .map_err(failed("cannot set the mode of"))?;
        file.write_all(bytes).map_err(failed("cannot write"))?;
        file.sync_all().map_err(failed("cannot put on disk"))?;
        fs::rename(next, &self.path).map_err(failed("cannot put in place"))?;
        File::open(self.folder())
            .and_then(|folder| folder.sync_all())
            .map_err(io_error("cannot put on disk the folder", self.folder()))
    }

    /// Gives a new file to the owner of the one that it replaces; the first one, made by root, to the folder's owner.
    fn give(&self, file: &File) -> io::Result<()> {
        let model = match fs::metadata(&self.path) {
            Ok(model) => model,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if !rustix::process::geteuid().is_root() {
                    return Ok(());
                }
                fs::metadata(self.folder())?
            }
            Err(e) => return Err(e),
        };
        let made = file.metadata()?;
        if made.uid() != model.uid() {
            fchown(file, Some(model.uid()), None)?;
        }
        if made.gid() != model.gid() {
            // Not everybody may give a file to a group. Without it the group reads no more; the daemon still does.
            let _ = fchown(file, None, Some(model.gid()));
        }
        Ok(())
    }
}

/// The lock, until it is dropped.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes the lock of `file`, waiting for whoever holds it.
    ///
    /// # Errors
    /// When it is still held after `within`, or there can be none.
    pub fn take(file: &KeptFile, within: Duration) -> Result<Self, HomeError> {
        let path = &file.beside(".lock");
        let failed = |doing| io_error(doing, path);
        let began = Instant::now();
        loop {
            let lock = Self::open(file, path).map_err(failed("cannot open the lock"))?;
            match lock.try_lock() {
                // Somebody may have removed the file, and made another, since it was opened.
                Ok(()) if is_at(&lock, path) => return Ok(Self(lock)),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) if knows_no_locks(&e) => {
                    return Err(HomeError::NoLocks { path: path.clone() });
                }
                Err(TryLockError::Error(e)) => return Err(failed("cannot lock")(e)),
            }
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(HomeError::Locked {
                    path: path.clone(),
                    waited: within,
                });
            }
            std::thread::sleep(POLL.min(left));
        }
    }

    fn open(owner: &KeptFile, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(LOCK_MODE);
        match options.clone().create_new(true).open(path) {
            Ok(file) => {
                owner.give(&file)?;
                Ok(file)
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => options.open(path),
            Err(e) => Err(e),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would not do: a process that another thread starts this instant has the file open until it runs.
        let _ = self.0.unlock();
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(locked), Ok(there)) => (locked.dev(), locked.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Some file systems say so plainly; NFS without its lock service does not.
fn knows_no_locks(error: &io::Error) -> bool {
    let none = rustix::io::Errno::NOLCK.raw_os_error();
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(none)
}

pub(super) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HomeError {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => HomeError::Full { path },
        io::ErrorKind::ReadOnlyFilesystem => HomeError::ReadOnly { path },
        _ => HomeError::Io {
            doing,
            path,
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_let_go_is_free_although_a_process_that_starts_still_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptFile::new(dir.path().join("kept"), 0o600, 10);
        let lock = Lock::take(&kept, Duration::ZERO).unwrap();
        let inherited = lock.0.try_clone().unwrap();
        drop(lock);
        assert!(Lock::take(&kept, Duration::ZERO).is_ok());
        drop(inherited);
    }
}
