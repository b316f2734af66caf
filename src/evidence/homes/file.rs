//! The file home: one JSON file, outside the releases, replaced atomically (DESIGN.md, section 7).
//!
//! Invariants:
//! - A reader sees a whole document or none, and needs no lock: a writer writes `NAME.next` beside it, puts that on
//!   disk, renames it over the file, and puts the folder on disk, before it says that anything is published. One that
//!   is killed leaves the old file or the new one, and perhaps a `NAME.next` that the next writer removes.
//! - One writer at a time: whoever publishes holds the lock on `NAME.lock` (`flock`, which goes with its process), and
//!   compares under it what is there with what it read.
//! - The file is 0640, whatever the umask, and belongs to whom it belonged: `grid evidence clear`, run by root, takes it
//!   from no daemon that runs as somebody else.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Held, Home, HomeError, PublishError, Version};
use crate::evidence::Document;
use crate::evidence::document::{DOCUMENT_MOST, DocumentError};
use crate::words::Digest;

/// The mode of the document.
const MODE: u32 = 0o640;

/// The mode of the lock.
const LOCK_MODE: u32 = 0o600;

/// How often a held lock is asked for again.
const POLL: Duration = Duration::from_millis(5);

/// A status document in a file.
#[derive(Debug, Clone)]
pub struct FileHome {
    path: PathBuf,
}

impl FileHome {
    /// The home at `path`. Its folder has to be there; the file need not.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn beside(&self, ending: &str) -> PathBuf {
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

    /// The bytes that are there; `None`: no file.
    fn bytes(&self) -> Result<Option<Vec<u8>>, HomeError> {
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
        let most = u64::try_from(DOCUMENT_MOST).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(failed("cannot read"))?;
        Ok(Some(bytes))
    }

    fn held(&self) -> Result<Held, HomeError> {
        let bytes = self.bytes()?;
        let version = version(bytes.as_deref());
        let document = bytes.map(|bytes| Document::from_json(&bytes)).transpose();
        let document = document.map_err(|source| self.unreadable(source))?;
        Ok(Held { document, version })
    }

    fn unreadable(&self, source: DocumentError) -> HomeError {
        HomeError::Document {
            place: self.path.display().to_string(),
            source,
        }
    }

    /// Puts `bytes` where the document is; on disk when it returns.
    fn replace(&self, bytes: &[u8]) -> Result<(), HomeError> {
        let next = self.beside(".next");
        let failed = |doing| io_error(doing, &next);
        match fs::remove_file(&next) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(failed("cannot remove")(e));
            }
            _ => {}
        }
        // A new one, so that nothing that lies in its place, a link least of all, is written through.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&next)
            .map_err(failed("cannot make"))?;
        self.give(&file).map_err(failed(
            "cannot give to the owner of the status file the new",
        ))?;
        file.set_permissions(Permissions::from_mode(MODE))
            .map_err(failed("cannot set the mode of"))?;
        file.write_all(bytes).map_err(failed("cannot write"))?;
        file.sync_all().map_err(failed("cannot put on disk"))?;
        fs::rename(&next, &self.path).map_err(failed("cannot put in place"))?;
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

impl Home for FileHome {
    fn read(&mut self, _within: Duration) -> Result<Held, HomeError> {
        self.held()
    }

    fn publish(
        &mut self,
        document: &Document,
        expected: &Version,
        within: Duration,
    ) -> Result<Held, PublishError> {
        let lock = self.beside(".lock");
        let _locked = Lock::take(self, &lock, within)?;
        if version(self.bytes()?.as_deref()) != *expected {
            return Err(PublishError::Conflict);
        }
        let json = document.to_json().map_err(io::Error::from);
        let json = json.map_err(io_error("cannot write", &self.path))?;
        if let Err(error) = self.replace(&json) {
            // On a full disk it would only take room.
            let _ = fs::remove_file(self.beside(".next"));
            return Err(error.into());
        }
        Ok(self.held()?)
    }
}

/// The lock, until it is dropped.
struct Lock(File);

impl Lock {
    fn take(home: &FileHome, path: &Path, within: Duration) -> Result<Self, HomeError> {
        let failed = |doing| io_error(doing, path);
        let began = Instant::now();
        loop {
            let file = Self::open(home, path).map_err(failed("cannot open the lock"))?;
            match file.try_lock() {
                // Somebody may have removed the file, and made another, since it was opened.
                Ok(()) if is_at(&file, path) => return Ok(Self(file)),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) if knows_no_locks(&e) => {
                    return Err(HomeError::NoLocks {
                        path: path.to_owned(),
                    });
                }
                Err(TryLockError::Error(e)) => return Err(failed("cannot lock")(e)),
            }
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(HomeError::Locked {
                    path: path.to_owned(),
                    waited: within,
                });
            }
            std::thread::sleep(POLL.min(left));
        }
    }

    fn open(home: &FileHome, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(LOCK_MODE);
        match options.clone().create_new(true).open(path) {
            Ok(file) => {
                home.give(&file)?;
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

fn version(bytes: Option<&[u8]>) -> Version {
    bytes.map_or(Version::Absent, |bytes| {
        Version::At(Digest::of(bytes).to_string().into())
    })
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HomeError {
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
    use jiff::Timestamp;

    use super::*;
    use crate::evidence::{Epoch, Ledger, Report};
    use crate::words::Replica;

    const NONE: Duration = Duration::ZERO;

    fn document(sequence: u64) -> Document {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let replica = Replica::new("gw-0").unwrap();
        let epoch = Epoch::from_bytes([1; 16]);
        let report = Report::new(epoch, sequence, 0, true, replica).unwrap();
        let mut ledger = Ledger::new();
        ledger.report(&report, now);
        Document::new(ledger, None, now)
    }

    fn home() -> (tempfile::TempDir, FileHome) {
        let dir = tempfile::tempdir().unwrap();
        let home = FileHome::new(dir.path().join("status.json"));
        (dir, home)
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_published_is_read_back_and_reading_leaves_nothing_behind() {
        let (dir, mut home) = home();
        let empty = home.read(NONE).unwrap();
        assert_eq!((empty.document, &empty.version), (None, &Version::Absent));
        assert!(names(&dir).is_empty());
        let shown = home.publish(&document(1), &Version::Absent, NONE).unwrap();
        assert_eq!(shown.document, Some(document(1)));
        assert_eq!(home.read(NONE).unwrap(), shown);
        let again = home.publish(&document(2), &shown.version, NONE).unwrap();
        assert_ne!(again.version, shown.version);
        assert_eq!(names(&dir), ["status.json", "status.json.lock"]);
        let mode = fs::metadata(home.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
    }

    #[test]
    fn who_expects_another_state_writes_nothing() {
        let (_dir, mut home) = home();
        let first = home.publish(&document(1), &Version::Absent, NONE).unwrap();
        let second = home.publish(&document(2), &first.version, NONE).unwrap();
        for expected in [Version::Absent, first.version] {
            let refused = home.publish(&document(3), &expected, NONE);
            assert!(matches!(refused, Err(PublishError::Conflict)));
        }
        assert_eq!(home.read(NONE).unwrap(), second);
        // One that vanished is another state too.
        fs::remove_file(home.path()).unwrap();
        let refused = home.publish(&document(3), &second.version, NONE);
        assert!(matches!(refused, Err(PublishError::Conflict)));
    }

    #[test]
    fn who_holds_the_lock_is_waited_for_within_the_time_given() {
        let (_dir, mut home) = home();
        let lock = Lock::take(&home, &home.beside(".lock"), NONE).unwrap();
        let refused = home.publish(&document(1), &Version::Absent, Duration::from_millis(20));
        let Err(PublishError::Home(locked @ HomeError::Locked { .. })) = refused else {
            panic!("{refused:?}");
        };
        assert!(
            locked.to_string().ends_with("status.json.lock for 20 ms"),
            "{locked}"
        );
        assert_eq!(home.read(NONE).unwrap().version, Version::Absent);
        let waits = std::thread::spawn({
            let mut home = home.clone();
            move || home.publish(&document(1), &Version::Absent, Duration::from_secs(60))
        });
        drop(lock);
        assert!(waits.join().unwrap().is_ok());
    }

    #[test]
    fn a_lock_that_is_let_go_is_free_although_a_process_that_starts_still_has_its_file() {
        let (_dir, home) = home();
        let path = home.beside(".lock");
        let lock = Lock::take(&home, &path, NONE).unwrap();
        let inherited = lock.0.try_clone().unwrap();
        drop(lock);
        assert!(Lock::take(&home, &path, NONE).is_ok());
        drop(inherited);
    }

    #[test]
    fn what_a_killed_writer_left_is_no_hindrance_and_no_link_is_followed() {
        let (dir, mut home) = home();
        fs::write(home.beside(".next"), b"{ \"format\": 1, \"con").unwrap();
        let first = home.publish(&document(1), &Version::Absent, NONE).unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, b"whole").unwrap();
        std::os::unix::fs::symlink(&victim, home.beside(".next")).unwrap();
        home.publish(&document(2), &first.version, NONE).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"whole");
        assert!(!fs::symlink_metadata(home.path()).unwrap().is_symlink());
    }

    #[test]
    fn a_damaged_or_newer_file_is_refused_and_stays_as_it_is() {
        let (_dir, mut home) = home();
        let large = vec![b' '; DOCUMENT_MOST + 1];
        let newer = br#"{ "format": 2 }"#;
        for bytes in [b"".as_slice(), b"{}", b"\x00\xff", newer, &large] {
            fs::write(home.path(), bytes).unwrap();
            let Err(HomeError::Document { .. }) = home.read(NONE) else {
                panic!("{:?}", bytes.get(..20));
            };
            let refused = home.publish(&document(1), &Version::Absent, NONE);
            assert!(matches!(refused, Err(PublishError::Conflict)));
            assert_eq!(fs::read(home.path()).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_not_a_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut home = FileHome::new(dir.path());
        assert!(matches!(home.read(NONE), Err(HomeError::NotAFile { .. })));
        let mut home = FileHome::new(dir.path().join("none/status.json"));
        assert_eq!(home.read(NONE).unwrap().version, Version::Absent);
        let refused = home.publish(&document(1), &Version::Absent, NONE);
        assert!(matches!(
            refused,
            Err(PublishError::Home(HomeError::Io { .. }))
        ));
    }

    #[test]
    fn a_home_that_cannot_be_read_says_where_why_and_what_to_do() {
        let home = FileHome::new("/var/lib/grid/prod/status.json");
        let damaged = DocumentError::Damaged {
            why: "EOF while parsing a value at line 1 column 0".to_owned(),
        };
        let said = [damaged, DocumentError::Newer { format: 2 }]
            .map(|source| home.unreadable(source).to_string())
            .join("\n");
        insta::assert_snapshot!(said, @"
        the status document /var/lib/grid/prod/status.json cannot be read: it is damaged: EOF while parsing a value at line 1 column 0; look at it, and move it away: then gateways report anew, and what they reported before is lost
        the status document /var/lib/grid/prod/status.json cannot be read: it has format 2, this grid reads format 1: a newer grid wrote it, use that one
        ");
    }
}
