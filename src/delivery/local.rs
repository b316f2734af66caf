//! The courier `local`: a directory of the controller's own machine.
//!
//! The machine side is a child in a process group of its own, so that Ctrl-C on the controller's terminal does
//! not reach it: it finishes what it began, as on any other machine.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::courier::Target;
use super::error::DeliveryError;
use super::link::{Courier, Link, READS, keep_said};
use super::script::Launch;

/// Starts the machine side as a child.
#[derive(Debug, Clone)]
pub(super) struct Local {
    /// What runs `-c SCRIPT ARGUMENTS`.
    pub shell: Vec<String>,
}

/// A child at the other end of a socket pair.
pub(super) struct Pipe {
    stream: UnixStream,
    /// Its standard error; `None`: it is closed.
    error: Option<UnixStream>,
    said: Vec<u8>,
    child: Option<Child>,
    code: Option<i32>,
}

impl Pipe {
    /// Its exit code, once it was found to have ended.
    pub(super) fn code(&self) -> Option<i32> {
        self.code
    }
}

impl Pipe {
    /// Waits until something was said, or it ended.
    fn wait(&self, deadline: Instant) -> io::Result<()> {
        let left = left(deadline)?;
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut streams = vec![PollFd::new(&self.stream, PollFlags::IN)];
        streams.extend(
            self.error
                .iter()
                .map(|error| PollFd::new(error, PollFlags::IN)),
        );
        match poll(&mut streams, Some(&timeout)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what there is on standard error; whoever writes there must not be held up.
    fn hear_error(&mut self) {
        let mut buffer = [0; 1024];
        for _ in 0..READS {
            let Some(error) = &mut self.error else { return };
            match error.read(&mut buffer) {
                Ok(n) if n > 0 => {
                    keep_said(&mut self.said, buffer.get(..n).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => self.error = None,
            }
        }
    }
}

/// The variables that the machine side gets, besides `LC_*`.
const PASSED_ON: &[&str] = &[
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
];

impl Courier for Local {
    fn start(
        &self,
        _: &Target,
        launch: &Launch,
        _: Instant,
    ) -> Result<Box<dyn Link>, DeliveryError> {
        let words = launch.words(&self.shell);
        let program = words.first().cloned().unwrap_or_default();
        let mut command = Command::new(program);
        // As a login would: a secret of the operator's, or the identity, may stand in a variable.
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            PASSED_ON.contains(&name.as_ref()) || name.starts_with("LC_")
        }));
        let pipe = start(command.args(words.get(1..).unwrap_or_default()))?;
        Ok(Box::new(pipe))
    }
}

/// Starts a child in a process group of its own, input and output in one socket, standard error in another.
///
/// # Errors
/// When the system does not start it.
pub(super) fn start(command: &mut Command) -> Result<Pipe, DeliveryError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| DeliveryError::Spawn {
        program: program.clone(),
        why: error.to_string(),
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let (error, their_error) = UnixStream::pair().map_err(failed)?;
    error.set_nonblocking(true).map_err(failed)?;
    let end = || {
        theirs
            .try_clone()
            .map(|end| Stdio::from(OwnedFd::from(end)))
    };
    let child = command
        .stdin(end().map_err(failed)?)
        .stdout(end().map_err(failed)?)
        .stderr(Stdio::from(OwnedFd::from(their_error)))
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    // The command holds the child's end open, else its end would not be heard.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(Pipe {
        stream: ours,
        error: Some(error),
        said: Vec::new(),
        child: Some(child),
        code: None,
    })
}

/// What is left until `deadline`; a socket takes no timeout of zero.
pub(super) fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        Err(io::ErrorKind::TimedOut.into())
    } else {
        Ok(left)
    }
}

fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Link for Pipe {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            self.wait(deadline)?;
            self.hear_error();
            match recv(&self.stream, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((n, _)) => return Ok(n),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // It ended without having read all that was sent to it.
                Err(Errno::CONNRESET) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn said(&self) -> &[u8] {
        &self.said
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(Some(left(deadline)?))?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(timed_out(error)),
            }
        }
        Ok(())
    }

    fn ended(&mut self, deadline: Instant) -> Option<String> {
        let child = self.child.as_mut()?;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => {
                    self.code = status.code();
                    return Some(status.to_string());
                }
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Whoever still waits for bytes learns that none will come.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        if let Some(mut child) = self.child.take() {
            // It is reaped when it ends; it is not waited for.
            if !matches!(child.try_wait(), Ok(Some(_))) {
                let _ = thread::Builder::new().spawn(move || child.wait());
            }
        }
    }
}
