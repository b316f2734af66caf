//! The folder of a site that nobody reaches: its lock, its record, and how files in it are replaced.
//!
//! `.grid.json` holds the fence token, what was written by hash, and who wrote it last.
//!
//! **A send that is cut short**, by a kill, a full disk or the end of the machine, leaves either the older files or the newer ones:
//!
//! 1. The new files are put aside, each whole and on disk: `.NAME.next`. Until all of them are, nothing else has changed, and
//!    what fails here takes away what it put aside.
//! 2. The record says what has begun. From here on the send counts.
//! 3. Each file takes its place by one rename, what is grid's and is not wanted any more goes, and the record says so.
//!
//! Whoever opens the folder next ends step 3 first. Between two renames a reader without the lock sees one newer and one older
//! file; nobody can rename two at once. Where a file that was put aside is gone (somebody else removed it), what was begun
//! is dropped: what the folder holds is then told by its files when a push names the machine.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::compose::manifest::{FileEntry, Manifest};
use crate::delivery::ear::failure;
use crate::delivery::message::clean;
use crate::delivery::receipt::{FailedStep, Failure};
use crate::words::{Digest, Token};

/// The record's name in the folder.
const RECORD: &str = ".grid.json";
/// The record's format.
const FORMAT: u32 = 1;
/// The largest record that is read, in bytes.
const RECORD_MOST: u64 = 1024 * 1024;
/// The largest file that is compared with what was written, in bytes.
const FILE_MOST: u64 = 64 * 1024 * 1024;
/// How many lines of who wrote here are kept.
const LOG_MOST: usize = 20;
/// How long a send waits for another one to the same folder.
const WAITS: Duration = Duration::from_secs(5);

/// What stands in the folder's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u32,
    /// The send that was last taken.
    token: Option<Token>,
    /// What it brought.
    manifest: Option<Manifest>,
    /// A send that was begun and not ended: what it brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<Begun>,
    /// The files that are grid's own.
    files: BTreeMap<String, Digest>,
    /// Who wrote here, oldest first.
    log: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begun {
    token: Token,
    manifest: Manifest,
}

impl Record {
    const fn none() -> Self {
        Self {
            format: FORMAT,
            token: None,
            manifest: None,
            begun: None,
            files: BTreeMap::new(),
            log: Vec::new(),
        }
    }
}

/// A folder, locked.
pub(super) struct Folder {
    path: Utf8PathBuf,
    _lock: File,
    record: Record,
}

pub(super) fn failed(step: FailedStep, path: &Utf8Path, error: &io::Error) -> Failure {
    failure(step, format!("{path}: {error}"))
}

impl Folder {
    /// Opens it, and ends what was begun there; one that is not there is made.
    pub fn make(path: &Utf8Path) -> Result<Self, Failure> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path);
        made.map_err(|e| failed(FailedStep::Start, path, &e))?;
        Self::open(path)?.ok_or_else(|| failure(FailedStep::Start, format!("{path} is gone")))
    }

    /// Opens it, and ends what was begun there; `None`: there is none.
    pub fn open(path: &Utf8Path) -> Result<Option<Self>, Failure> {
        let Some(mut folder) = Self::look(path)? else {
            return Ok(None);
        };
        if folder.can_finish()? {
            folder.finish()?;
        } else if folder.record.begun.take().is_some() {
            folder.write_record()?;
        }
        folder.clear_aside(&[]);
        Ok(Some(folder))
    }

    /// Opens it as it is; `None`: there is none.
    pub fn look(path: &Utf8Path) -> Result<Option<Self>, Failure> {
        let lock = match File::open(path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(FailedStep::Start, path, &error)),
        };
        let until = Instant::now() + WAITS;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(50));
                }
                Err(fs::TryLockError::WouldBlock) => {
                    let cause = format!("{path}: another send is writing there");
                    return Err(failure(FailedStep::Lock, cause));
                }
                Err(fs::TryLockError::Error(error)) => {
                    return Err(failed(FailedStep::Lock, path, &error));
                }
            }
        }
        let record = read_record(&path.join(RECORD))?;
        Ok(Some(Self {
            path: path.to_owned(),
            _lock: lock,
            record,
        }))
    }

    /// Where it is.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The token that it holds.
    pub fn held(&self) -> Option<Token> {
        self.record.token
    }

    /// Whether a send has begun that nobody has ended.
    pub fn has_begun(&self) -> bool {
        self.record.begun.is_some()
    }

    /// Whether a file is there as a release says, with its mode.
    pub fn has(&self, name: &str, file: &FileEntry) -> bool {
        let path = self.path.join(name);
        let found = content_of(&path).unwrap_or(None);
        found == Some(file.sha256) && mode_of(&path) == Some(mode(file))
    }

    /// What grid wrote last as `name`; `None`: grid did not write it.
    pub fn wrote(&self, name: &str) -> Option<&Digest> {
        self.record.files.get(name)
    }

    /// Who wrote here, for people.
    pub fn said(&self) -> Vec<String> {
        self.record.log.iter().map(|line| clean(line)).collect()
    }

    /// The send that it holds, and what that brought; one that has begun and can be ended counts as ended.
    pub fn holds(self) -> Result<(Option<Token>, Option<Manifest>), Failure> {
        let can_finish = self.can_finish()?;
        Ok(match self.record.begun {
            Some(begun) if can_finish => (Some(begun.token), Some(begun.manifest)),
            _ => (self.record.token, self.record.manifest),
        })
    }

    /// Writes these files beside those that they are to replace: name, content, mode. Where one cannot be, none is left.
    pub fn put_aside(&mut self, news: &BTreeMap<&str, (&[u8], u32)>) -> Result<(), Failure> {
        let names: Vec<&str> = news.keys().copied().collect();
        self.clear_aside(&names);
        for (name, (bytes, mode)) in news {
            let path = self.path.join(name);
            if let Err(error) = put_aside(&path, bytes, *mode) {
                self.clear_aside(&names);
                return Err(failed(FailedStep::Install, &path, &error));
            }
        }
        Ok(())
    }

    /// From here on the send counts: whatever happens, what was put aside takes its place. A failure says whether it has begun
    /// all the same.
    pub fn begin(
        &mut self,
        token: Token,
        manifest: &Manifest,
        line: String,
    ) -> Result<(), (Failure, bool)> {
        for (name, file) in named(manifest) {
            self.record.files.insert(name.to_owned(), file.sha256);
        }
        self.record.begun = Some(Begun {
            token,
            manifest: manifest.clone(),
        });
        self.record.log.push(line);
        let surplus = self.record.log.len().saturating_sub(LOG_MOST);
        self.record.log.drain(..surplus);
        self.write_record().map_err(|failure| {
            // The record may be in its place though the disk refused to say so.
            let has_begun = read_record(&self.path.join(RECORD))
                .is_ok_and(|record| record.begun.is_some_and(|begun| begun.token == token));
            if !has_begun {
                let names: Vec<&str> = named(manifest).map(|(name, _)| name).collect();
                self.clear_aside(&names);
            }
            (failure, has_begun)
        })
    }

    /// Whether a send has begun, and each of its files is in its place or aside.
    fn can_finish(&self) -> Result<bool, Failure> {
        let Some(begun) = &self.record.begun else {
            return Ok(false);
        };
        for (name, file) in named(&begun.manifest) {
            let path = self.path.join(name);
            if !is(&aside(&path), file)? && !is(&path, file)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the send that has begun.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let Some(begun) = self.record.begun.clone() else {
            return Ok(());
        };
        for (name, file) in named(&begun.manifest) {
            let path = self.path.join(name);
            let aside = aside(&path);
            if is(&aside, file)? {
                fs::rename(&aside, &path).map_err(|e| failed(FailedStep::Install, &path, &e))?;
            } else if !is(&path, file)? {
                let cause =
                    format!("{path} is not what was written, and what was put aside is gone");
                return Err(failure(FailedStep::Verify, cause));
            }
        }
        let stays: Vec<&str> = named(&begun.manifest).map(|(name, _)| name).collect();
        let goes: Vec<String> = self.record.files.keys().cloned().collect();
        for name in goes.iter().filter(|name| !stays.contains(&name.as_str())) {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(FailedStep::Remove, &path, &error));
                }
                _ => self.record.files.remove(name),
            };
        }
        sync(&self.path).map_err(|e| failed(FailedStep::Install, &self.path, &e))?;
        self.record.token = Some(begun.token);
        self.record.manifest = Some(begun.manifest);
        self.record.begun = None;
        self.write_record()
    }

    /// Takes away what was put aside of these files, and of all that the record knows. One that cannot be taken away is in
    /// nobody's way: the next send of that file takes it away, or fails there.
    fn clear_aside(&self, names: &[&str]) {
        let known = self.record.files.keys().map(String::as_str);
        for name in known.chain(names.iter().copied()).chain([RECORD]) {
            let _ = fs::remove_file(aside(&self.path.join(name)));
        }
    }

    fn write_record(&self) -> Result<(), Failure> {
        let path = self.path.join(RECORD);
        let text = serde_json::to_vec_pretty(&self.record)
            .map_err(|e| failure(FailedStep::Install, format!("{path}: {e}")))?;
        let _ = fs::remove_file(aside(&path));
        put_aside(&path, &text, 0o600)
            .and_then(|()| fs::rename(aside(&path), &path))
            .and_then(|()| sync(&self.path))
            .map_err(|e| failed(FailedStep::Install, &path, &e))
    }
}

fn read_record(path: &Utf8Path) -> Result<Record, Failure> {
    let wrong = |why: String| {
        let mut failure = failure(FailedStep::Start, format!("{path}: {why}"));
        failure.hint = Some(
            "the file says what grid wrote there; without it grid takes nothing in the folder for its own".to_owned(),
        );
        failure
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Record::none()),
        Err(error) => return Err(failed(FailedStep::Start, path, &error)),
    };
    let mut bytes = Vec::new();
    file.take(RECORD_MOST.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| failed(FailedStep::Start, path, &e))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > RECORD_MOST {
        return Err(wrong(format!("it is larger than {RECORD_MOST} bytes")));
    }
    let record: Record = serde_json::from_slice(&bytes)
        .map_err(|e| wrong(format!("it is no record of grid's: {e}")))?;
    if record.format != FORMAT {
        return Err(wrong(format!(
            "it has format {}, and this grid reads {FORMAT}",
            record.format
        )));
    }
    Ok(record)
}

/// The files of a release by the names that they have in the folder.
pub(super) fn named(manifest: &Manifest) -> impl Iterator<Item = (&str, &FileEntry)> {
    manifest.files().filter_map(|file| {
        let name = Utf8Path::new(file.path.as_str()).file_name()?;
        (name != RECORD).then_some((name, file))
    })
}

/// The digest of a file; `None`: there is none.
pub(super) fn content_of(path: &Utf8Path) -> io::Result<Option<Digest>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !found.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = zeroize::Zeroizing::new(Vec::new());
    File::open(path)?.take(FILE_MOST).read_to_end(&mut bytes)?;
    Ok(Some(Digest::of(&bytes)))
}

/// Whether a file is there as it should be.
fn is(path: &Utf8Path, wanted: &FileEntry) -> Result<bool, Failure> {
    let found = content_of(path).map_err(|e| failed(FailedStep::Verify, path, &e))?;
    Ok(found == Some(wanted.sha256))
}

/// Where the new content of a file waits.
fn aside(path: &Utf8Path) -> Utf8PathBuf {
    let name = path.file_name().unwrap_or_default();
    path.with_file_name(format!(".{name}.next"))
}

/// Writes the new content of a file beside it; it is on disk when this returns, or not there.
fn put_aside(path: &Utf8Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let aside = aside(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&aside)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .inspect_err(|_| {
            let _ = fs::remove_file(&aside);
        })
}

/// Puts the renames in a folder on disk.
fn sync(folder: &Utf8Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The mode that a file is to have.
pub(super) fn mode(file: &FileEntry) -> u32 {
    u32::from(file.mode) & 0o777
}

fn mode_of(path: &Utf8Path) -> Option<u32> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(found.permissions().mode() & 0o777)
}
