//! Whether further machines may be reached: shut by whoever interrupts, narrowed once too many have failed.
//!
//! What is under way is never cut short by it: a machine in the middle of a send would be uncertain for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether further sends may start. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    shut: Arc<AtomicBool>,
    narrowed: Arc<AtomicBool>,
}

impl Gate {
    /// A gate that is shut once this flag is set, as by a signal.
    #[must_use]
    pub fn shut_by(flag: Arc<AtomicBool>) -> Self {
        Self {
            shut: flag,
            narrowed: Arc::default(),
        }
    }

    /// From now on nobody is reached any more.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    /// Whether nobody is reached any more.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        self.shut.load(Ordering::SeqCst)
    }

    /// From now on only those are reached whom somebody waits for.
    pub fn narrow(&self) {
        self.narrowed.store(true, Ordering::SeqCst);
    }

    /// Whether only those are reached whom somebody waits for.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        self.narrowed.load(Ordering::SeqCst)
    }

    /// Whether a machine may be reached; `awaited`: somebody waits for a provider on it.
    #[must_use]
    pub fn admits(&self, awaited: bool) -> bool {
        !self.is_shut() && (awaited || !self.is_narrow())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_gate_admits_whom_somebody_waits_for_and_a_shut_one_nobody() {
        let gate = Gate::default();
        let admits = || (gate.admits(false), gate.admits(true));
        assert_eq!(admits(), (true, true));
        gate.clone().narrow();
        assert_eq!(admits(), (false, true));
        gate.clone().shut();
        assert_eq!(admits(), (false, false));
    }
}
