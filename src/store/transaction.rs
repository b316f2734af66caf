//! One opening of a sled database: late, and closed before anything else happens (DESIGN.md, section 6).
//!
//! Invariants:
//! - Nobody else has the database open: the file `transaction` is locked for as long.
//! - A database that was emptied, truncated or lost commits is found out by what it should hold (`meta`, the
//!   head) and by the witness beside it, since sled itself takes an empty file for a new database.
//! - A database takes another one's place by renaming; a death in between leaves the old one or the new one.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::StoreError;
use super::database::Database;
use super::lock::{FileLock, Holder, LockError, Taking};
use super::place::{self, Place};
use super::vault::{Changed, Rows, damaged};

/// How long another process's transaction is waited for.
const WAIT: Duration = Duration::from_secs(10);
/// How often it is asked for again, at first; each further time twice as long, up to the last.
const POLL_FIRST: Duration = Duration::from_millis(2);
const POLL_LAST: Duration = Duration::from_millis(32);
/// How many bytes are written in one step while a database is copied.
const COPIED_AT_ONCE: usize = 8 * 1024 * 1024;

/// Makes a row's new bytes of its name and its old ones.
type Rewrite<'a> = &'a mut dyn FnMut(&str, &[u8]) -> Result<Vec<u8>, StoreError>;

/// An open database, until it is dropped.
pub(super) struct Transaction {
    place: Place,
    database: Database,
    /// Let go after the database is closed.
    _lock: FileLock,
}

/// What lies beside the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Witness {
    /// Which store.
    pub store: String,
    /// The commits that it took, at least.
    pub commits: u64,
    /// How large its files were when its live data was last counted.
    #[serde(default)]
    pub counted_at: u64,
    /// The number of its newest push: what whoever may not open the database completes numbers by.
    #[serde(default)]
    pub push: u64,
}

impl Witness {
    /// The witness of a store; `None`: there is none, or it was cut short by a crash of the system.
    pub fn read(place: &Place) -> Option<Self> {
        serde_json::from_slice(&fs::read(place.witness()).ok()?).ok()
    }

    pub fn write(&self, place: &Place) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        place::write_file(&place.witness(), &bytes)
            .map_err(StoreError::io("cannot write", place.witness()))
    }
}

/// Locks the store for a transaction. Whoever comes passes `queue` first, and keeps it until the transaction is theirs:
/// so a process that commits without a pause cannot shut out one that waits.
fn lock(place: &Place, holder: &Holder) -> Result<FileLock, StoreError> {
    let until = Instant::now() + WAIT;
    let _turn = take(place, &place.queue(), holder, until)?;
    take(place, &place.transaction(), holder, until)
}

fn take(
    place: &Place,
    path: &Path,
    holder: &Holder,
    until: Instant,
) -> Result<FileLock, StoreError> {
    let mut poll = POLL_FIRST;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match FileLock::try_take(path, holder).map_err(|e| of_lock(e, place))? {
            Taking::Taken(lock, _) => return Ok(lock),
            Taking::Held(_) if left.is_zero() => return Err(busy(place)),
            Taking::Held(_) => std::thread::sleep(poll.min(left)),
        }
        poll = poll.saturating_mul(2).min(POLL_LAST);
    }
}

fn busy(place: &Place) -> StoreError {
    StoreError::Busy {
        path: place.path().to_owned(),
        holder: FileLock::holder(&place.transaction()).map(Box::new),
        seconds: WAIT.as_secs(),
    }
}

fn of_lock(e: LockError, place: &Place) -> StoreError {
    match e {
        LockError::Io {
            doing,
            path,
            source,
        } => StoreError::Io {
            doing,
            path,
            source,
        },
        other => StoreError::Io {
            doing: "cannot lock",
            path: place.transaction(),
            source: io::Error::other(other.to_string()),
        },
    }
}

/// Whether there is a store: its database, or what a death in the middle of a replacement left of it.
fn is_there(place: &Place) -> Result<bool, StoreError> {
    let exists = |path: std::path::PathBuf| {
        path.try_exists()
            .map_err(StoreError::io("cannot look at", path))
    };
    if exists(place.database())? || exists(place.previous())? {
        return Ok(true);
    }
    if exists(place.witness())? {
        return Err(damaged(place.path(), "its database is gone"));
    }
    Ok(false)
}

impl Transaction {
    /// Opens the database of an existing store.
    pub fn open(place: &Place, holder: &Holder) -> Result<Self, StoreError> {
        if !is_there(place)? {
            return Err(StoreError::Missing {
                path: place.path().to_owned(),
            });
        }
        let lock = lock(place, holder)?;
        let tidied = settle_replacement(place).and_then(|()| drop_torn_snapshots(place));
        tidied.map_err(StoreError::io("cannot tidy", place.path()))?;
        let database = Database::open(&place.database(), place.path())?;
        place::set_modes(place.path())
            .map_err(StoreError::io("cannot set the modes in", place.path()))?;
        Ok(Self {
            place: place.clone(),
            database,
            _lock: lock,
        })
    }

    /// Makes the database of a new store.
    pub fn create(
        place: &Place,
        holder: &Holder,
        rows: Vec<(String, Vec<u8>)>,
    ) -> Result<(), StoreError> {
        let _lock = lock(place, holder)?;
        if is_there(place)? {
            return Err(StoreError::Exists {
                path: place.path().to_owned(),
            });
        }
        let mut next = Next::begin(place)?;
        for (name, row) in rows {
            next.put(name, row)?;
        }
        next.take_place()
    }

    /// The rows.
    pub fn rows(&self) -> &dyn Rows {
        &self.database
    }

    /// Applies all changes or none; they are on disk when it returns.
    pub fn apply(&self, changed: Changed) -> Result<(), StoreError> {
        self.database.apply(changed)
    }

    /// How many bytes its files have, and its rows.
    pub fn sizes(&self) -> Result<(u64, u64), StoreError> {
        let mut live = 0_u64;
        self.database.scan("", &mut |name, row| {
            let bytes = name.len().saturating_add(row.len());
            live = live.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
            Ok(())
        })?;
        Ok((self.files()?, live))
    }

    /// How many bytes its files have.
    pub fn files(&self) -> Result<u64, StoreError> {
        let path = self.place.database();
        place::size(&path).map_err(StoreError::io("cannot measure", path))
    }

    /// Writes every row anew, as `change` makes it, into a fresh database that takes this one's place. Nothing that
    /// was removed or replaced is left in any file.
    pub fn rewrite(self, change: Rewrite<'_>) -> Result<(), StoreError> {
        let mut next = Next::begin(&self.place)?;
        self.database.scan("", &mut |name, row| {
            next.put(name.to_owned(), change(name, row)?)
        })?;
        // Closed before its files are moved; the lock is held until the end.
        let Self {
            database, _lock, ..
        } = self;
        drop(database);
        next.take_place()
    }
}

/// What a death in the middle of a replacement left: the old database goes back, unless the new one is in its place.
fn settle_replacement(place: &Place) -> io::Result<()> {
    if !place.database().exists() {
        fs::rename(place.previous(), place.database())?;
        place::sync_folder(&place.database())?;
    }
    for left in [place.previous(), place.next()] {
        if left.exists() {
            fs::remove_dir_all(left)?;
        }
    }
    Ok(())
}

/// sled writes what it found at an opening to `snap.N.generating`, renames it to `snap.N`, and then drops the one
/// before. After a death in between it takes the torn file for its latest snapshot and refuses to open (seen
/// with kill -9). Without that file it goes on from the one before, to the same end.
fn drop_torn_snapshots(place: &Place) -> io::Result<()> {
    for entry in fs::read_dir(place.database())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "generating")
        {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A database that is to take the place of the present one.
struct Next<'a> {
    place: &'a Place,
    database: Database,
    waiting: Changed,
    bytes: usize,
}

impl<'a> Next<'a> {
    fn begin(place: &'a Place) -> Result<Next<'a>, StoreError> {
        let path = place.next();
        if path.exists() {
            fs::remove_dir_all(&path).map_err(StoreError::io("cannot remove", &path))?;
        }
        Ok(Next {
            place,
            database: Database::open(&path, place.path())?,
            waiting: Changed::new(),
            bytes: 0,
        })
    }

    fn put(&mut self, name: String, row: Vec<u8>) -> Result<(), StoreError> {
        self.bytes = self.bytes.saturating_add(row.len());
        self.waiting.insert(name, Some(row));
        if self.bytes < COPIED_AT_ONCE {
            return Ok(());
        }
        self.bytes = 0;
        self.database.apply(std::mem::take(&mut self.waiting))
    }

    fn take_place(self) -> Result<(), StoreError> {
        self.database.apply(self.waiting)?;
        drop(self.database);
        let place = self.place;
        let replace = || {
            place::set_modes(&place.next())?;
            if place.database().exists() {
                fs::rename(place.database(), place.previous())?;
            }
            fs::rename(place.next(), place.database())?;
            place::sync_folder(&place.database())?;
            settle_replacement(place)
        };
        replace().map_err(StoreError::io(
            "cannot replace the database in",
            place.path(),
        ))
    }
}
