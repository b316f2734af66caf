//! The machines that a push is sending to, as a thread sees them that is told to quit.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cli::phrases;
use crate::words::NodeName;

/// The machines whose send has begun and not ended.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct UnderWay(Arc<Mutex<BTreeSet<NodeName>>>);

impl UnderWay {
    /// A send to it begins.
    pub fn begins(&self, node: &NodeName) {
        self.all().insert(node.clone());
    }

    /// It has ended, however.
    pub fn ends(&self, node: &NodeName) {
        self.all().remove(node);
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
