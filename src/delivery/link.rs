//! The bytes between us and a machine side that was started; every courier has its own kind.

use std::io;
use std::time::Instant;

use super::courier::Target;
use super::error::DeliveryError;
use super::receipt::Failure;
use super::script::Launch;

/// The most of a standard error that is kept, in bytes.
pub(super) const MOST_SAID: usize = 4096;

/// Reads of a standard error between two of the output: who floods it holds nothing up.
pub(super) const READS: usize = 64;

/// A machine side that runs: its standard input and output. Its standard error is nothing but what a login shell or sudo
/// says, since the script closes it; it is kept apart, for it may come at any moment and forge no message.
pub(super) trait Link {
    /// Reads some bytes; none: it has ended.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] past the deadline; else the connection broke.
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize>;

    /// The end of what came on standard error so far, at most [`MOST_SAID`] bytes.
    fn said(&self) -> &[u8];

    /// Writes all bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] past the deadline; else the connection broke, or the machine side takes no more.
    fn write(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()>;

    /// How it ended, once it has: for people. `None`: nobody knows.
    fn ended(&mut self, deadline: Instant) -> Option<String>;

    /// Why the courier itself failed, where that is known only at the end: the machine side was then never started.
    fn failed_itself(&mut self) -> Option<Failure> {
        None
    }
}

/// Keeps the end of what is said.
pub(super) fn keep_said(said: &mut Vec<u8>, bytes: &[u8]) {
    said.extend_from_slice(bytes);
    let over = said.len().saturating_sub(MOST_SAID);
    said.drain(..over);
}

/// Starts machine sides.
pub(super) trait Courier {
    /// Reaches the machine and starts its side.
    ///
    /// # Errors
    /// When that is not possible: the machine has then received nothing.
    fn start(
        &self,
        target: &Target,
        launch: &Launch,
        deadline: Instant,
    ) -> Result<Box<dyn Link>, DeliveryError>;
}
