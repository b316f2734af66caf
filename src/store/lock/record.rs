//! The record of a lock that is held, for who ends the process without letting the lock go.

use std::fs::File;
use std::io;

use super::{Holder, MeshLock, read};

/// The record in the file of a lock that this process holds or held.
#[derive(Debug)]
pub struct LockRecord {
    file: File,
    holder: Holder,
}

impl LockRecord {
    /// That of a lock.
    ///
    /// # Errors
    /// When the system has no further file for this process.
    pub fn of(lock: &MeshLock) -> io::Result<Self> {
        Ok(Self {
            file: lock.lock.file.try_clone()?,
            holder: lock.holder.clone().cleaned(),
        })
    }

    /// Takes it away, so that nobody takes the holder for one that died. The lock itself stays held until the process ends. The record
    /// of somebody who holds the lock by now stays.
    pub fn clear(&mut self) {
        if read(&mut self.file).as_ref() == Some(&self.holder) {
            // A record that could not be removed says no more than that a holder died.
            let _ = self.file.set_len(0);
        }
    }
}
