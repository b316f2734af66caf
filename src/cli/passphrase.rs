//! Asks on the terminal for the passphrase of a key: without an echo, and no longer than it may take.
//!
//! Whatever happens, the terminal gets its settings back: also at Ctrl-C, which is read as a key here and passed on as
//! the signal that it is once they are back.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use zeroize::Zeroizing;

use super::ui::{Bars, clean, meanwhile};
use crate::delivery::{AskPassphrase, Gate};
use crate::words::Secret;

/// How long a signal to this process may take until it is noted, in milliseconds.
const NOTED_WITHIN: usize = 1000;
/// The longest passphrase, in bytes.
const LONGEST: usize = 1024;

/// The terminal that this process belongs to.
pub(super) struct Terminal {
    bars: Arc<Bars>,
    gate: Gate,
}

impl Terminal {
    /// Asks between these bars, and nobody once the gate is shut.
    pub(super) fn new(bars: Arc<Bars>, gate: Gate) -> Self {
        Self { bars, gate }
    }
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Terminal")
    }
}

impl AskPassphrase for Terminal {
    fn ask(&self, file: &Path, attempt: u32, until: Instant) -> Option<Secret> {
        if self.gate.is_shut() {
            return None;
        }
        let again = if attempt > 1 { "Wrong. " } else { "" };
        let question = format!(
            "{again}Passphrase of {}: ",
            clean(&file.display().to_string())
        );
        let read = meanwhile(&self.bars, || read(&question, until));
        match read {
            Ok(Read::Line(secret)) => Some(secret),
            Ok(Read::Nothing) | Err(_) => None,
            Ok(Read::Interrupted) => {
                // Noted by whoever handles it; a signal is noted at once, but on whichever thread.
                let _ = kill_process(getpid(), Signal::INT);
                for _ in 0..NOTED_WITHIN {
                    if self.gate.is_shut() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                None
            }
        }
    }
}

/// What a person did.
enum Read {
    Line(Secret),
    Nothing,
    Interrupted,
}

/// A terminal that shows nothing of what is typed; as it was before once this goes.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
        let _ = (&mut &*self.terminal).write_all(b"\r\n");
    }
}

fn read(question: &str, until: Instant) -> io::Result<Read> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    // In the background the system would stop this process.
    if tcgetpgrp(&terminal)? != getpgrp() {
        return Ok(Read::Nothing);
    }
    let quiet = Quiet::new(&terminal)?;
    (&mut &terminal).write_all(question.as_bytes())?;
    let mut line = Zeroizing::new(String::with_capacity(LONGEST));
    let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST));
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(Read::Nothing),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut byte = [0];
        if (&mut &terminal).read(&mut byte)? == 0 {
            return Ok(Read::Nothing);
        }
        match byte {
            [b'\r' | b'\n'] => break,
            // Ctrl-C, Ctrl-\; Ctrl-D; Ctrl-U; backspace.
            [0x03 | 0x1c] => return Ok(Read::Interrupted),
            [0x04] if bytes.is_empty() => return Ok(Read::Nothing),
            [0x04] => break,
            [0x15] => bytes.clear(),
            [0x08 | 0x7f] => while bytes.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            [byte] if bytes.len() < LONGEST => bytes.push(byte),
            _ => return Ok(Read::Nothing),
        }
    }
    drop(quiet);
    line.push_str(std::str::from_utf8(&bytes).map_err(io::Error::other)?);
    Ok(Read::Line(Secret::new(std::mem::take(&mut *line))))
}
