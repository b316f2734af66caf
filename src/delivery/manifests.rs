//! The courier `manifests`: a site without sshd. A push writes the mesh's resources for it to a folder of the controller's, for
//! GitOps: `resources.yaml`, and the Secrets in `secrets.yaml` (0600), which is to be sealed before it is committed.
//!
//! **Nobody observes such a site.** The receipt says that the files were written, and that is all that anybody acknowledges: the
//! cluster has them once whoever applies the folder has. What that means for rule 6 (DESIGN.md, section 7, *Identities*):
//!
//! - The site never blocks a renewal of others: it admits them as soon as its folder says so. Until the folder is applied, the
//!   cluster refuses a peer that was renewed meanwhile; a poll that fails is tried again, so that this ends by itself.
//! - Its own renewal counts as taken up once it is written, though the cluster may show the older certificate for days. So its
//!   peers go on admitting that one too: the identity before the newest of a site that nobody observes is kept, and its pin
//!   stays, until the next renewal takes its place (`compose::identities`). Past its last day nobody admits it anyway.
//!
//! The folder's `.grid.json` holds the fence token, what was written by hash, and who wrote it last; it is written before the
//! files, so that a file is never there that no record claims. What grid did not write it does not touch: a file of one of its
//! names that it did not write refuses the send by name.
//!
//! Threat: whoever may write the folder may forge the record. They gain nothing by it that they could not write themselves;
//! what is read is bounded, and a text of it is cleaned before it is shown.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::courier::{Parcel, Question};
use super::ear::failure;
use super::protocol::clean;
use super::receipt::{Answer, Applied, FailedStep, Failure, Holding, Outcome};
use crate::compose::Release;
use crate::compose::bundle::Content;
use crate::compose::manifest::{FileEntry, Manifest};
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
    fn none() -> Self {
        Self {
            format: FORMAT,
            token: None,
            manifest: None,
            begun: None,
            files: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// The token that the folder holds, be that send ended or not.
    fn held(&self) -> Option<Token> {
        self.begun.as_ref().map(|begun| begun.token).or(self.token)
    }

    fn said(&self) -> Vec<String> {
        self.log.iter().map(|line| clean(line)).collect()
    }
}

/// A folder, locked.
struct Folder {
    path: Utf8PathBuf,
    _lock: File,
    record: Record,
}

fn failed(step: FailedStep, path: &Utf8Path, error: &io::Error) -> Failure {
    failure(step, format!("{path}: {error}"))
}

impl Folder {
    /// Opens it; `None`: there is none, and none is made.
    fn open(path: &Utf8Path, make: bool) -> Result<Option<Self>, Failure> {
        if make {
            let made = fs::DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(path);
            made.map_err(|e| failed(FailedStep::Start, path, &e))?;
        }
        let lock = match File::open(path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !make => return Ok(None),
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

    fn write_record(&self) -> Result<(), Failure> {
        let path = self.path.join(RECORD);
        let text = serde_json::to_vec_pretty(&self.record)
            .map_err(|e| failure(FailedStep::Install, format!("{path}: {e}")))?;
        replace(&path, &text, 0o600).map_err(|e| failed(FailedStep::Install, &path, &e))
    }

    /// Whether every file of a manifest is there as it says.
    fn is_whole(&self, manifest: &Manifest) -> bool {
        named(manifest).all(|(name, file)| {
            let found = content_of(&self.path.join(name));
            found.is_ok_and(|found| found == Some(file.sha256))
        })
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
fn named(manifest: &Manifest) -> impl Iterator<Item = (&str, &FileEntry)> {
    manifest.files().filter_map(|file| {
        let name = Utf8Path::new(file.path.as_str()).file_name()?;
        (name != RECORD).then_some((name, file))
    })
}

/// The digest of a file; `None`: there is none.
fn content_of(path: &Utf8Path) -> io::Result<Option<Digest>> {
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

/// Replaces a file by one rename; what was there stays until the new one is on disk.
fn replace(path: &Utf8Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Utf8Path::new("."));
    let name = path.file_name().unwrap_or_default();
    let aside = folder.join(format!(".{name}.{:016x}", rand::random::<u64>()));
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&aside)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        File::open(folder)?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&aside);
    })
}

/// Writes a site's resources to its folder.
pub(super) fn send(parcel: &Parcel) -> Outcome {
    match write(parcel) {
        Ok(outcome) => outcome,
        // Nothing was begun, or what was begun stands in the record: the next send or question ends it.
        Err((failure, false)) => Outcome::Refused(failure),
        Err((failure, true)) => Outcome::Uncertain(failure),
    }
}

fn write(parcel: &Parcel) -> Result<Outcome, (Failure, bool)> {
    let refused = |failure: Failure| (failure, false);
    let path = Utf8Path::new(parcel.target.node.root.as_str());
    let folder = Folder::open(path, true).map_err(refused)?;
    let Some(mut folder) = folder else {
        return Err(refused(failure(FailedStep::Start, "there is no folder")));
    };
    let held = folder.record.held();
    let is_replaced = match held {
        None => parcel.replaces.is_empty(),
        Some(held) => held == parcel.token || parcel.replaces.contains(&held),
    };
    if !is_replaced && !parcel.take_over {
        let log = folder.record.said();
        return Ok(Outcome::Fenced { held, log });
    }
    let manifest: &Manifest = &parcel.bundle.manifest;
    let contents = contents(parcel, &folder).map_err(refused)?;
    foreign(&folder, manifest).map_err(refused)?;

    // From here on the record says what may be there.
    let before = folder.record.files.clone();
    for (name, file) in named(manifest) {
        folder.record.files.insert(name.to_owned(), file.sha256);
    }
    folder.record.begun = Some(Begun {
        token: parcel.token,
        manifest: manifest.clone(),
    });
    let line = format!("{:.0} {}", Timestamp::now(), clean(&parcel.sender));
    folder.record.log.push(line);
    let surplus = folder.record.log.len().saturating_sub(LOG_MOST);
    folder.record.log.drain(..surplus);
    folder.write_record().map_err(refused)?;

    let begun = |failure: Failure| (failure, true);
    let mut applied = Applied::default();
    for (name, file) in named(manifest) {
        let path = folder.path.join(name);
        let found = content_of(&path).unwrap_or(None);
        let mode = u32::from(file.mode) & 0o777;
        if found == Some(file.sha256) && mode_of(&path) == Some(mode) {
            continue;
        }
        let Some(bytes) = contents.get(&file.sha256) else {
            continue; // it is there as it should be: `contents` has looked
        };
        replace(&path, bytes, mode).map_err(|e| begun(failed(FailedStep::Install, &path, &e)))?;
        applied.files = applied.files.saturating_add(1);
        applied.bytes = applied.bytes.saturating_add(file.size);
        // One that should have been there already was changed, or taken away, by somebody else.
        if before.get(name) == Some(&file.sha256) {
            applied.mended.push(format!("{name} was written again"));
        }
    }
    let stays: Vec<String> = named(manifest).map(|(name, _)| name.to_owned()).collect();
    for name in before.keys().filter(|name| !stays.contains(name)) {
        let path = folder.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(begun(failed(FailedStep::Remove, &path, &error)));
            }
            _ => folder.record.files.remove(name),
        };
    }
    folder.record.token = Some(parcel.token);
    folder.record.manifest = Some(manifest.clone());
    folder.record.begun = None;
    folder.write_record().map_err(begun)?;
    if applied.files > 0 {
        applied.applied = manifest.services.keys().cloned().collect();
    }
    applied.notes = vec![NOT_OBSERVED.to_owned()];
    Ok(Outcome::Applied(applied))
}

/// What a receipt of this courier says.
pub const NOT_OBSERVED: &str = "rendered, not observed";

fn mode_of(path: &Utf8Path) -> Option<u32> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(found.permissions().mode() & 0o777)
}

/// Refuses where a file stands that grid would write and did not write.
fn foreign(folder: &Folder, manifest: &Manifest) -> Result<(), Failure> {
    for (name, _) in named(manifest) {
        if folder.record.files.contains_key(name) {
            continue;
        }
        let path = folder.path.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            let mut failure = failure(
                FailedStep::Install,
                format!("{path} is there, and grid did not write it"),
            );
            failure.hint = Some("move it away, or give the machine another `folder`".to_owned());
            return Err(failure);
        }
    }
    Ok(())
}

/// What is to be written, by digest. A content that only the folder has must be there as it should be.
fn contents<'a>(
    parcel: &'a Parcel,
    folder: &Folder,
) -> Result<BTreeMap<Digest, &'a [u8]>, Failure> {
    let mut all = BTreeMap::new();
    for (name, file) in named(&parcel.bundle.manifest) {
        match parcel.bundle.contents.get(&file.sha256) {
            Some(Content::Bytes(bytes)) => {
                all.insert(file.sha256, bytes.as_slice());
            }
            _ => {
                let path = folder.path.join(name);
                let found = content_of(&path).map_err(|e| failed(FailedStep::Verify, &path, &e))?;
                if found != Some(file.sha256) {
                    let cause = format!("{path} is not what was written, and nobody else has that");
                    return Err(failure(FailedStep::Verify, cause));
                }
            }
        }
    }
    Ok(all)
}

/// What the folder holds. A send that was cut short counts as taken where all its files are there, and else as not begun: the
/// next one writes them again.
pub(super) fn ask(question: &Question) -> Answer {
    let path = Utf8Path::new(question.target.node.root.as_str());
    let folder = match Folder::open(path, false) {
        Ok(folder) => folder,
        Err(failure) => return Answer::Unknown(failure),
    };
    let Some(mut folder) = folder else {
        return Answer::Holds(Holding {
            token: None,
            manifest: None,
            lists: BTreeMap::new(),
            log: Vec::new(),
        });
    };
    if let Some(begun) = folder.record.begun.take() {
        if folder.is_whole(&begun.manifest) {
            folder.record.token = Some(begun.token);
            folder.record.manifest = Some(begun.manifest);
        }
        if !question.peek
            && let Err(failure) = folder.write_record()
        {
            return Answer::Unknown(failure);
        }
    }
    let log = folder.record.said();
    let manifest = folder.record.manifest.map(|m| Arc::new(Release::of(m)));
    Answer::Holds(Holding {
        token: folder.record.token,
        manifest,
        lists: BTreeMap::new(),
        log,
    })
}
