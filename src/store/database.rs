//! sled, with its panics caught and its errors told apart (DESIGN.md, section 6).
//!
//! Threat: sled trusts its files. On some damage it panics instead of failing; a panic is caught, kept quiet, and is
//! damage like any other. So the binary is built with unwinding panics, which is what cargo does unless told otherwise.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use super::StoreError;
use super::vault::{Changed, Each, Rows, damaged};

/// sled's page cache, in bytes. Its default is 1 GiB; here everything is read once and closed.
const CACHE: u64 = 32 * 1024 * 1024;
/// How long, and how often, a lock of sled's own is waited for.
const WAIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// sled, with its panics caught and its errors told apart.
pub(super) struct Database {
    /// Taken out only when it is dropped.
    sled: Option<::sled::Db>,
    /// The folder of the database.
    folder: PathBuf,
    /// The folder of the store, for errors.
    store: PathBuf,
}

impl Database {
    pub fn open(folder: &Path, store: &Path) -> Result<Self, StoreError> {
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
                    std::thread::sleep(POLL);
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

    /// Applies all changes or none; they are on disk when it returns.
    pub fn apply(&self, changed: Changed) -> Result<(), StoreError> {
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
        other => damaged(store, kind_of(&other)),
    }
}

/// What is wrong, in words of ours: sled's speak of its inside, and at length.
fn kind_of(e: &::sled::Error) -> String {
    match e {
        ::sled::Error::Corruption { .. } => "its database does not add up".to_owned(),
        ::sled::Error::Io(e) => format!("its database cannot be read: {}", e.kind()),
        ::sled::Error::Unsupported(_) => {
            "its database is of a form that this grid does not know".to_owned()
        }
        ::sled::Error::CollectionNotFound(_) | ::sled::Error::ReportableBug(_) => {
            "its database contradicts itself".to_owned()
        }
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
    // What the panic says is about sled's inside.
    result.map_err(|_| "its database cannot be made sense of".to_owned())
}
