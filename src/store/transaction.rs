//! One opening of a sled database: late, and closed before anything else happens (DESIGN.md, section 6).
//!
//! Invariants:
//! - Nobody else has the database open: the file `transaction` is locked for as long.
//! - A database that was emptied, truncated or lost commits is found out by what it should hold (`meta`, the
//!   head) and by the witness beside it, since sled itself takes an empty file for a new database.
//! - sled panics on some damage; a panic is caught, kept quiet, and is damage.
//! - A database takes another one's place by renaming; a death in between leaves the old one or the new one.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::StoreError;
use super::lock::{FileLock, Holder, LockError, Taking};
use super::place::{self, Place};
use super::vault::{Changed, Each, Rows, damaged};

/// How long another process's transaction is waited for.
const WAIT: Duration = Duration::from_secs(10);
/// How often it is asked for again, at first; each further time twice as long, up to the last.
const POLL_FIRST: Duration = Duration::from_millis(2);
const POLL_LAST: Duration = Duration::from_millis(100);
/// sled's page cache, in bytes. Its default is 1 GiB.
const CACHE: u64 = 64 * 1024 * 1024;
/// How many bytes are written in one step while a database is copied.
const COPIED_AT_ONCE: usize = 8 * 1024 * 1024;

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

/// Locks the store for a transaction.
fn lock(place: &Place, holder: &Holder) -> Result<FileLock, StoreError> {
    let began = Instant::now();
    let mut poll = POLL_FIRST;
    loop {
        let left = WAIT.saturating_sub(began.elapsed());
        let taking = FileLock::take(&place.transaction(), holder, poll.min(left), poll);
        match taking.map_err(|e| of_lock(e, place))? {
            Taking::Taken(lock, _) => return Ok(lock),
            Taking::Held(holder) if left.is_zero() => return Err(busy(place, holder)),
            Taking::Held(_) => poll = poll.saturating_mul(2).min(POLL_LAST),
        }
    }
}

fn busy(place: &Place, holder: Option<Holder>) -> StoreError {
    StoreError::Busy {
        path: place.path().to_owned(),
        holder: holder.map(Box::new),
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
    if place.database().exists() || place.previous().exists() {
        return Ok(true);
    }
    if place.witness().exists() {
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
        settle_replacement(place).map_err(StoreError::io("cannot tidy", place.path()))?;
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
    pub fn rewrite(
        self,
        change: &mut dyn FnMut(&str, &[u8]) -> Result<Vec<u8>, StoreError>,
    ) -> Result<(), StoreError> {
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

/// sled, with its panics caught and its errors told apart.
struct Database {
    /// Taken out only when it is dropped.
    sled: Option<::sled::Db>,
    /// The folder of the database.
    folder: PathBuf,
    /// The folder of the store, for errors.
    store: PathBuf,
}

impl Database {
    fn open(folder: &Path, store: &Path) -> Result<Self, StoreError> {
        let config = ::sled::Config::new()
            .path(folder)
            .cache_capacity(CACHE)
            .mode(::sled::Mode::LowSpace)
            .flush_every_ms(None)
            .use_compression(false);
        let began = Instant::now();
        loop {
            let sled = match caught(|| config.open()) {
                Ok(Ok(sled)) => sled,
                // An earlier opening of this process lets its lock go a moment after it was dropped.
                Ok(Err(e)) if is_locked(&e) && began.elapsed() < WAIT => {
                    std::thread::sleep(POLL_FIRST);
                    continue;
                }
                Ok(Err(e)) => return Err(reading(store, e)),
                Err(panicked) => return Err(damaged(store, panicked)),
            };
            return Ok(Self {
                sled: Some(sled),
                folder: folder.to_owned(),
                store: store.to_owned(),
            });
        }
    }

    fn read<T>(
        &self,
        act: impl FnOnce(&::sled::Db) -> Result<T, ::sled::Error>,
    ) -> Result<T, StoreError> {
        let sled = self
            .sled
            .as_ref()
            .ok_or_else(|| damaged(&self.store, "it is closed"))?;
        match caught(|| act(sled)) {
            Ok(result) => result.map_err(|e| reading(&self.store, e)),
            Err(panicked) => Err(damaged(&self.store, panicked)),
        }
    }

    fn apply(&self, changed: Changed) -> Result<(), StoreError> {
        let mut batch = ::sled::Batch::default();
        for (name, row) in changed {
            match row {
                Some(row) => batch.insert(name.into_bytes(), row),
                None => batch.remove(name.into_bytes()),
            }
        }
        let Some(sled) = &self.sled else {
            return Err(damaged(&self.store, "it is closed"));
        };
        let written = caught(|| {
            sled.apply_batch(batch)?;
            sled.flush()?;
            // sled's flush leaves the disk's own cache and the file's length to the system.
            File::open(self.folder.join("db"))?.sync_all()?;
            Ok(())
        });
        let failed = |source| StoreError::Io {
            doing: "cannot write the store in",
            path: self.store.clone(),
            source,
        };
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(::sled::Error::Io(source))) => Err(failed(source)),
            Ok(Err(e)) => Err(reading(&self.store, e)),
            Err(panicked) => Err(failed(io::Error::other(panicked))),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sled = self.sled.take();
        // Everything was flushed, or has failed already.
        let _ = caught(|| drop(sled));
    }
}

impl Rows for Database {
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|sled| Ok(sled.get(name)?.map(|row| row.to_vec())))
    }

    fn scan(&self, prefix: &str, each: Each<'_>) -> Result<(), StoreError> {
        self.read(|sled| {
            for item in sled.scan_prefix(prefix) {
                let (name, row) = item?;
                let name = String::from_utf8_lossy(&name);
                if let Err(e) = each(&name, &row) {
                    return Ok(Err(e));
                }
            }
            Ok(Ok(()))
        })?
    }
}

fn is_locked(e: &::sled::Error) -> bool {
    matches!(e, ::sled::Error::Io(e) if e.to_string().contains("could not acquire lock"))
}

/// What an error of sled means where it reads.
fn reading(store: &Path, e: ::sled::Error) -> StoreError {
    use io::ErrorKind::{
        OutOfMemory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    match e {
        ::sled::Error::Io(source)
            if matches!(
                source.kind(),
                PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull | OutOfMemory
            ) =>
        {
            StoreError::Io {
                doing: "cannot open the store in",
                path: store.to_owned(),
                source,
            }
        }
        other => damaged(store, other.to_string()),
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `act`; a panic in it is returned as its text, and prints nothing.
fn caught<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let was = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(act));
    QUIET.set(was);
    result.map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied());
        let first = text
            .and_then(|text| text.lines().next())
            .unwrap_or("no reason given");
        format!("sled gave up on it: {}", super::journal::clean(first))
    })
}
