//! What a command has begun and not ended, as a thread sees it that is told to quit: sends, and the lock of the mesh.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cli::phrases;
use crate::store::{LockRecord, MeshLock};
use crate::words::NodeName;

/// The machines whose send has begun and not ended, and the record of the lock that was taken last.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct UnderWay {
    machines: Arc<Mutex<BTreeSet<NodeName>>>,
    lock: Arc<Mutex<Option<LockRecord>>>,
}

impl UnderWay {
    /// A send to it begins.
    pub fn begins(&self, node: &NodeName) {
        self.all().insert(node.clone());
    }

    /// It has ended, however.
    pub fn ends(&self, node: &NodeName) {
        self.all().remove(node);
    }

    /// The lock is taken.
    pub(super) fn locks(&self, lock: &MeshLock) {
        // Without it, the next one says that this one died.
        *self.record() = LockRecord::of(lock).ok();
    }

    /// Says in the lock's file that nobody died with it.
    pub(super) fn leave_in_order(&self) {
        if let Some(record) = &mut *self.record() {
            record.clear();
        }
    }

    fn record(&self) -> MutexGuard<'_, Option<LockRecord>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left by quitting now.
    pub(super) fn left(&self) -> String {
        let nodes = self.all();
        let asks = "`grid push --behind` goes on from here";
        match nodes.len() {
            0 => format!("no send was under way; {asks}"),
            1 => format!(
                "nobody knows what {} holds, whose send was under way: the next push asks it first; {asks}",
                phrases::list(&*nodes)
            ),
            _ => format!(
                "nobody knows what {} hold, whose sends were under way: the next push asks them first; {asks}",
                phrases::list(&*nodes)
            ),
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeSet<NodeName>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
