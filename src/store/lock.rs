//! The mesh lock: who pushes, assigns or otherwise writes, one at a time (DESIGN.md, section 4).
//!
//! The lock is the system's (`flock`), on a file in the store's folder: it goes with the process that holds it,
//! however that dies. The record in the file says who that is; a record in a file that nobody has locked
//! was left by a holder that died.
//! Threat: `grid unlock` takes a lock away whose holder may live elsewhere. Whoever writes asks before each
//! commit whether the lock is [still held](MeshLock::is_held), and the fence on the machines does the rest.

mod record;

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::journal::clean;
use super::place::{self, Place};

pub use record::LockRecord;

/// How often a held lock is asked for again.
const POLL: Duration = Duration::from_millis(200);

/// The most bytes of a record that are read.
const RECORD_MOST: u64 = 16 * 1024;

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Holder {
    /// `user@host`, as claimed.
    pub who: String,
    /// The host's name.
    pub host: String,
    /// The process on that host.
    pub pid: u32,
    /// Since when.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// What for: `push`, `assign`.
    pub what: String,
}

impl Holder {
    /// What a push holds the lock for.
    pub const PUSH: &'static str = "push";

    /// Whether it pushes.
    #[must_use]
    pub fn is_a_push(&self) -> bool {
        self.what == Self::PUSH
    }

    /// This process on this host.
    #[must_use]
    pub fn here(user: &str, what: &str, since: Timestamp) -> Self {
        let host = here();
        Self {
            who: format!("{user}@{host}"),
            host,
            pid: std::process::id(),
            since,
            what: what.to_owned(),
        }
    }

    /// Whether its process is there; `None`: it is on another host, where nobody can look.
    #[must_use]
    pub fn lives(&self) -> Option<bool> {
        (self.host == here()).then(|| process_exists(self.pid))
    }

    fn cleaned(mut self) -> Self {
        self.who = clean(&self.who);
        self.host = clean(&self.host);
        self.what = clean(&self.what);
        self
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            who,
            host: _,
            pid,
            since,
            what,
        } = self;
        write!(f, "{who} ({what}, process {pid}, since {since:.0})")
    }
}

fn here() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

fn process_exists(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    else {
        return false;
    };
    // Another user's process refuses the question, and is there.
    rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

/// The holder for people; `None`: it has written no record yet.
pub(super) fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

/// Why a lock was not taken, or not taken away.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody has it. Exit 7.
    #[error("{} holds the lock of this mesh", by(holder.as_deref()))]
    Held {
        /// Who; `None`: it took the lock this instant.
        holder: Option<Box<Holder>>,
    },
    /// `grid unlock`, and the holder's process is there.
    #[error("{holder} holds the lock, and its process is running on this host")]
    HolderLives {
        /// Who.
        holder: Box<Holder>,
    },
    /// The file system knows no locks.
    #[error(
        "the file system of {} has no file locks, without which two pushes could run at once: put the store on \
         another one with $GRID_STORE",
        path.display()
    )]
    NoLocks {
        /// The file that was to be locked.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A locked file with the holder's record in it.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
    path: PathBuf,
}

/// How an attempt to take a lock ended.
pub(super) enum Taking {
    /// Taken; with the record that a dead holder left.
    Taken(FileLock, Option<Holder>),
    /// Somebody has it; `None`: it has written no record yet.
    Held(Option<Holder>),
}

impl FileLock {
    /// Asks once.
    pub fn try_take(path: &Path, holder: &Holder) -> Result<Taking, LockError> {
        let io = |doing| {
            let path = path.to_owned();
            move |source| LockError::Io {
                doing,
                path,
                source,
            }
        };
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(place::FILE)
                .open(path)
                .map_err(io("cannot open"))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Taking::Held(read(&mut file))),
                Err(TryLockError::Error(e)) if knows_no_locks(&e) => {
                    return Err(LockError::NoLocks {
                        path: path.to_owned(),
                    });
                }
                Err(TryLockError::Error(e)) => return Err(io("cannot lock")(e)),
            }
            let mut lock = Self {
                file,
                path: path.to_owned(),
            };
            // `grid unlock` may have put another file in its place since it was opened.
            if !lock.is_held() {
                continue;
            }
            let left = read(&mut lock.file);
            lock.write(holder).map_err(io("cannot write"))?;
            return Ok(Taking::Taken(lock, left));
        }
    }

    /// Asks until the lock is taken or `wait` has passed, every `poll`.
    pub fn take(
        path: &Path,
        holder: &Holder,
        wait: Duration,
        poll: Duration,
    ) -> Result<Taking, LockError> {
        let began = Instant::now();
        loop {
            let taking = Self::try_take(path, holder)?;
            let left = wait.saturating_sub(began.elapsed());
            if matches!(taking, Taking::Taken(..)) || left.is_zero() {
                return Ok(taking);
            }
            std::thread::sleep(poll.min(left));
        }
    }

    /// The record in a lock's file, whoever holds it.
    pub fn holder(path: &Path) -> Option<Holder> {
        read(&mut File::open(path).ok()?)
    }

    /// Whether the file that is locked is still the one that others would lock.
    pub fn is_held(&self) -> bool {
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(locked), Ok(there)) => (locked.dev(), locked.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    fn write(&mut self, holder: &Holder) -> io::Result<()> {
        let record = serde_json::to_vec(&holder.clone().cleaned())?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&record)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A record that could not be removed says no more than that a holder died.
        let _ = self.file.set_len(0);
        // Closing the file would not do: a process that another thread starts this instant has it open as well until
        // it runs its program, and would hold the lock till then.
        let _ = self.file.unlock();
    }
}

/// Whether a file system says that it has no locks at all: some say so plainly, NFS without its lock service does not.
fn knows_no_locks(e: &io::Error) -> bool {
    let none = rustix::io::Errno::NOLCK.raw_os_error();
    e.kind() == io::ErrorKind::Unsupported || e.raw_os_error() == Some(none)
}

/// The record in a lock's file; `None`: there is none, or nothing that could be one.
fn read(file: &mut File) -> Option<Holder> {
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.take(RECORD_MOST).read_to_end(&mut bytes).ok()?;
    let holder: Holder = serde_json::from_slice(&bytes).ok()?;
    Some(holder.cleaned())
}

/// The mesh lock, held until it is dropped.
#[derive(Debug)]
pub struct MeshLock {
    lock: FileLock,
    place: Place,
    /// Who holds it: this process.
    pub holder: Holder,
    /// The holder that died with the lock, if one did: worth a word, and an entry in the journal.
    pub took_over_from_dead: Option<Holder>,
}

impl MeshLock {
    /// Takes the lock of the store at `place`, at once or within `wait`. Makes the store's folder, not the store.
    ///
    /// # Errors
    /// When it is held, when the file system has no locks, when the folder cannot be made.
    pub fn take(place: &Place, holder: Holder, wait: Duration) -> Result<Self, LockError> {
        make(place)?;
        match FileLock::take(&place.lock(), &holder, wait, POLL)? {
            Taking::Taken(lock, left) => Ok(Self {
                lock,
                place: place.clone(),
                holder,
                took_over_from_dead: left,
            }),
            Taking::Held(holder) => Err(LockError::Held {
                holder: holder.map(Box::new),
            }),
        }
    }

    /// Whether nobody took it away. No further send starts once it is not.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.lock.is_held()
    }

    /// Which store it locks.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// Who holds the mesh lock, as its record says, without asking for the lock: asking would refuse somebody who takes it
/// this instant. `None`: nobody, or a holder that died on this host.
#[must_use]
pub fn running(place: &Place) -> Option<Holder> {
    FileLock::holder(&place.lock()).filter(|holder| holder.lives() != Some(false))
}

/// What `grid unlock` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlocked {
    /// Nobody held the lock.
    WasFree,
    /// Its holder is dead; its record is gone now.
    HolderWasDead(Holder),
    /// Its holder's process is not on this host. The lock was taken away from it: what it still commits is refused.
    TakenAway(Option<Holder>),
}

/// `grid unlock`: removes what a dead holder left, and takes the lock from one that is not on this host.
///
/// # Errors
/// When the holder's process runs on this host; when the system refuses.
pub fn unlock(place: &Place, by: &Holder) -> Result<Unlocked, LockError> {
    let path = place.lock();
    if !path.exists() {
        return Ok(Unlocked::WasFree);
    }
    let mut taking = FileLock::try_take(&path, by)?;
    if matches!(taking, Taking::Held(None)) {
        // It took the lock this instant: its record is about to be written.
        taking = FileLock::take(&path, by, Duration::from_secs(1), POLL)?;
    }
    match taking {
        Taking::Taken(_, None) => Ok(Unlocked::WasFree),
        Taking::Taken(_, Some(dead)) => Ok(Unlocked::HolderWasDead(dead)),
        Taking::Held(Some(holder)) if holder.lives() == Some(true) => Err(LockError::HolderLives {
            holder: Box::new(holder),
        }),
        Taking::Held(holder) => {
            fs::remove_file(&path).map_err(|source| LockError::Io {
                doing: "cannot remove",
                path,
                source,
            })?;
            Ok(Unlocked::TakenAway(holder))
        }
    }
}

fn make(place: &Place) -> Result<(), LockError> {
    place.make().map_err(|e| match e {
        super::StoreError::Io {
            doing,
            path,
            source,
        } => LockError::Io {
            doing,
            path,
            source,
        },
        other => LockError::Io {
            doing: "cannot make",
            path: place.path().to_owned(),
            source: io::Error::other(other.to_string()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_let_go_is_free_although_a_process_that_starts_still_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let holder = Holder::here("maria", "push 1", Timestamp::UNIX_EPOCH);
        let Taking::Taken(lock, None) = FileLock::try_take(&path, &holder).unwrap() else {
            panic!("somebody holds a new lock");
        };
        let inherited = lock.file.try_clone().unwrap();
        drop(lock);
        let again = FileLock::try_take(&path, &holder).unwrap();
        assert!(matches!(again, Taking::Taken(_, None)));
        drop(inherited);
    }
}
