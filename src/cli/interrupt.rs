//! Ctrl-C: the first one is noted, and the push ends in order; a second one ends the process at once, with a word.
//!
//! Nothing runs in a signal handler but the setting of a flag, or what the signal does by default: what is said is said by
//! threads, and a terminal that takes nothing holds up none of this. Quitting in the middle loses nothing: whatever the store
//! has committed is on disk, and a machine in mid send is uncertain.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long the last line may take to be written.
const QUIT_SAID: Duration = Duration::from_millis(500);

/// Notes signals from now on, for the rest of the process.
///
/// `announce` is called on a thread of its own when the first one comes, and `quits` when the second one does: it has a short
/// while, and then the process ends as that signal ends one; a third one ends it at once. What was ignored when the process
/// started (`nohup`, a shell's `&`) stays ignored.
///
/// # Errors
/// When the system refuses.
pub(super) fn note(
    announce: impl FnOnce() + Send + 'static,
    quits: impl FnOnce() + Send + 'static,
) -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let quitting = Arc::new(AtomicBool::new(false));
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let noted: Vec<i32> = [SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| ignored & mask(*signal) == 0)
        .collect();
    for signal in &noted {
        signal_hook::flag::register_conditional_default(*signal, Arc::clone(&quitting))?;
        signal_hook::flag::register(*signal, Arc::clone(&flag))?;
    }
    let mut signals = Signals::new(noted)?;
    thread::Builder::new().spawn(move || {
        let mut coming = signals.forever();
        if coming.next().is_some() {
            said(announce, Duration::ZERO);
        }
        if let Some(signal) = coming.next() {
            quitting.store(true, Ordering::SeqCst);
            said(quits, QUIT_SAID);
            // It does not come back from this one, whatever it says.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    Ok(flag)
}

/// Says something on a thread of its own, and waits for that so long at most.
fn said(say: impl FnOnce() + Send + 'static, at_most: Duration) {
    let (tell, told) = mpsc::channel();
    let thread = thread::Builder::new().spawn(move || {
        say();
        // Nobody listens once the time is up.
        let _ = tell.send(());
    });
    if thread.is_ok() {
        let _ = told.recv_timeout(at_most);
    }
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
