//! A session whose every wait is ours.
//!
//! libssh2 never blocks here: it says that it would, and we wait for the socket, until the deadline at most. Before each
//! wait the kernel is told to acknowledge at once; else the machine's sshd, which holds small packets back until
//! the last one was acknowledged, stalls for 40 ms at a time.

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use ssh2::{BlockDirections, ErrorCode, Session};

/// `LIBSSH2_ERROR_EAGAIN`.
const AGAIN: ErrorCode = ErrorCode::Session(-37);
/// A connection that rests is kept alive this often, so that no firewall forgets it.
const ALIVE: u32 = 15;

/// Why a step of the session stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// libssh2 says no.
    Refused(ssh2::Error),
    /// Time is up.
    TimedOut,
    /// The socket cannot be waited for.
    Socket(io::Error),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => f.write_str(error.message()),
            Self::TimedOut => f.write_str("timed out"),
            Self::Socket(error) => error.fmt(f),
        }
    }
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(error) => error.into(),
            Stop::TimedOut => io::ErrorKind::TimedOut.into(),
            Stop::Socket(error) => error,
        }
    }
}

/// A session and its socket.
pub(super) struct Wire {
    pub session: Session,
    socket: TcpStream,
}

impl Wire {
    /// A session over `socket`; nothing was said yet.
    ///
    /// # Errors
    /// When the system or libssh2 has no room for it.
    pub(super) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut session = Session::new()?;
        session.set_blocking(false);
        session.set_tcp_stream(socket.try_clone()?);
        session.set_keepalive(true, ALIVE);
        Ok(Self { session, socket })
    }

    /// Does `step` again until it no longer would block.
    ///
    /// # Errors
    /// What it says; or that time is up.
    pub(super) fn drive<T>(
        &self,
        deadline: Instant,
        mut step: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, Stop> {
        loop {
            match step() {
                Err(error) if error.code() == AGAIN => self.wait(deadline)?,
                other => return other.map_err(Stop::Refused),
            }
        }
    }

    /// The same for what speaks of input and output.
    ///
    /// # Errors
    /// What it says; or that time is up.
    pub(super) fn drive_io<T>(
        &self,
        deadline: Instant,
        mut step: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match step() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(deadline)?,
                other => return other,
            }
        }
    }

    /// Waits for the socket, whichever way the session needs it.
    fn wait(&self, deadline: Instant) -> Result<(), Stop> {
        let flags = match self.session.block_directions() {
            BlockDirections::Outbound => PollFlags::OUT,
            BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
            BlockDirections::Inbound | BlockDirections::None => PollFlags::IN,
        };
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.socket, true);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Stop::TimedOut);
        }
        let wait = left.min(Duration::from_secs(u64::from(ALIVE)));
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let mut sockets = [PollFd::new(&self.socket, flags)];
        match poll(&mut sockets, Some(&timeout)) {
            Ok(0) if self.session.authenticated() => {
                // Whether it could be said now does not matter: it is tried again.
                let _ = self.session.keepalive_send();
                Ok(())
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Stop::Socket(error.into())),
        }
    }
}
