//! A session whose every wait is ours.
//!
//! libssh2 never blocks here: it says that it would, and we wait for the socket, until the deadline at most. Before each
//! wait the kernel is told to acknowledge at once; else the machine's sshd, which holds small packets back until
//! the last one was acknowledged, stalls for 40 ms at a time.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::config::Route;
use super::proxy::Lead;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use ssh2::{BlockDirections, ErrorCode, Session};

/// `LIBSSH2_ERROR_EAGAIN`.
const AGAIN: ErrorCode = ErrorCode::Session(-37);
/// A connection that rests is kept alive this often, so that no firewall forgets it.
const ALIVE: Duration = Duration::from_secs(15);
/// And taken as gone after so many questions without an answer.
const ALIVE_COUNT: u32 = 3;

/// Why a step of the session stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// libssh2 says no.
    Refused(ssh2::Error),
    /// Time is up.
    TimedOut,
    /// It was asked whether it lives, and did not answer.
    Dead(Duration),
    /// The socket cannot be waited for.
    Socket(io::Error),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => f.write_str(error.message()),
            Self::TimedOut => f.write_str("timed out"),
            Self::Dead(silence) => write!(
                f,
                "nothing was heard for {} s, although it was asked whether it lives",
                silence.as_secs()
            ),
            Self::Socket(error) => error.fmt(f),
        }
    }
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(error) => error.into(),
            Stop::TimedOut => io::ErrorKind::TimedOut.into(),
            stop @ Stop::Dead(_) => io::Error::other(stop.to_string()),
            Stop::Socket(error) => error,
        }
    }
}

/// A session and its socket.
pub(super) struct Wire {
    pub session: Session,
    socket: Socket,
    alive: Duration,
    alive_count: u32,
    /// Questions whether it lives that were not answered yet.
    unanswered: Cell<u32>,
}

/// What a session goes over.
pub(super) enum Socket {
    /// Straight.
    Tcp(TcpStream),
    /// Through a child.
    Led(UnixStream, Lead),
}

impl Socket {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Led(socket, _) => socket.as_fd(),
        }
    }

    /// What the child that leads there said.
    fn said(&self) -> Option<String> {
        match self {
            Self::Tcp(_) => None,
            Self::Led(_, lead) => lead.said(),
        }
    }
}

impl Wire {
    /// A session over `socket`; nothing was said yet.
    ///
    /// # Errors
    /// When the system or libssh2 has no room for it.
    pub(super) fn new(socket: Socket, route: &Route) -> io::Result<Self> {
        let mut session = Session::new()?;
        session.set_blocking(false);
        match &socket {
            Socket::Tcp(tcp) => {
                tcp.set_nodelay(true)?;
                tcp.set_nonblocking(true)?;
                session.set_tcp_stream(tcp.try_clone()?);
            }
            Socket::Led(led, _) => {
                led.set_nonblocking(true)?;
                session.set_tcp_stream(led.try_clone()?);
            }
        }
        // Of nothing, which turns it off for `ssh`, a firewall or a dead machine would hold us up.
        let alive = route
            .alive
            .filter(|alive| !alive.is_zero())
            .unwrap_or(ALIVE);
        session.set_keepalive(true, u32::try_from(alive.as_secs()).unwrap_or(u32::MAX));
        Ok(Self {
            session,
            socket,
            alive,
            alive_count: route.alive_count.unwrap_or(ALIVE_COUNT).max(1),
            unanswered: Cell::new(0),
        })
    }

    /// What the child that leads there said, for the end of a message.
    pub(super) fn lead_said(&self) -> String {
        self.socket
            .said()
            .map_or_else(String::new, |said| format!("; on the way there: {said}"))
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
        if let Socket::Tcp(tcp) = &self.socket {
            let _ = rustix::net::sockopt::set_tcp_quickack(tcp, true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Stop::TimedOut);
        }
        let wait = left.min(self.alive);
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let fd = self.socket.fd();
        let mut sockets = [PollFd::new(&fd, flags)];
        match poll(&mut sockets, Some(&timeout)) {
            Ok(0) if self.session.authenticated() && wait == self.alive => {
                let unanswered = self.unanswered.get();
                if unanswered >= self.alive_count {
                    return Err(Stop::Dead(
                        self.alive.saturating_mul(unanswered.saturating_add(1)),
                    ));
                }
                self.unanswered.set(unanswered.saturating_add(1));
                // Whether it could be said now does not matter: it is tried again.
                let _ = self.session.keepalive_send();
                Ok(())
            }
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
            Ok(_) => {
                self.unanswered.set(0);
                Ok(())
            }
            Err(error) => Err(Stop::Socket(error.into())),
        }
    }
}
