//! The bytes between us and a machine side that was started; every courier has its own kind.

use std::io;
use std::time::Instant;

use super::courier::Target;
use super::error::DeliveryError;
use super::receipt::Failure;
use super::script::Launch;

/// A machine side that runs: its standard input, and its output with standard error in it.
pub(super) trait Link {
    /// Reads some bytes; none: it has ended.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] past the deadline; else the connection broke.
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize>;

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
