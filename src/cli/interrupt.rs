//! Ctrl-C: the first one is noted, and the push ends in order; a second one ends the process at once.
//!
//! Nothing runs in a signal handler but the setting of a flag, or what the signal does by default. Quitting in the
//! middle loses nothing: whatever the store has committed is on disk, and a machine in mid send is uncertain.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Notes signals from now on, for the rest of the process.
///
/// `announce` is called on a thread of its own when the first one comes. What was ignored when the process
/// started (`nohup`, a shell's `&`) stays ignored.
///
/// # Errors
/// When the system refuses.
pub(super) fn note(announce: impl FnOnce() + Send + 'static) -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let noted: Vec<i32> = [SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| ignored & mask(*signal) == 0)
        .collect();
    for signal in &noted {
        // In this order: what is found set was set by an earlier signal.
        signal_hook::flag::register_conditional_default(*signal, Arc::clone(&flag))?;
        signal_hook::flag::register(*signal, Arc::clone(&flag))?;
    }
    let mut signals = Signals::new(noted)?;
    std::thread::Builder::new().spawn(move || {
        if signals.forever().next().is_some() {
            announce();
        }
    })?;
    Ok(flag)
}

fn mask(signal: i32) -> u64 {
    1 << signal.saturating_sub(1).clamp(0, 63)
}

/// The signals that this process ignores, as `/proc/self/status` tells; none where it does not.
fn ignored(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ignored_from_the_start_is_told() {
        let status = "Name:\tgrid\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000002\n";
        assert_eq!(ignored(status) & mask(SIGINT), 2);
        assert_eq!(ignored(status) & mask(SIGTERM), 0);
        assert_eq!(ignored(""), 0);
    }
}
