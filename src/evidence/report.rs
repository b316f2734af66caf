//! What a gateway's process says of its completed ingests.

use super::Epoch;
use super::headers::{Header, Refusal};
use crate::words::Replica;

/// A report, version 1 (DESIGN.md, section 7).
///
/// Invariant: one that says `clean` has neither the greatest sequence nor the greatest counter: those are for terminal
/// rejected evidence, after which nothing newer, or no greater count, can come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    epoch: Epoch,
    sequence: u64,
    rejected: u64,
    clean: bool,
    replica: Replica,
}

impl Report {
    /// A report.
    ///
    /// # Errors
    /// When it says clean with the greatest sequence or the greatest counter.
    pub fn new(
        epoch: Epoch,
        sequence: u64,
        rejected: u64,
        clean: bool,
        replica: Replica,
    ) -> Result<Self, Refusal> {
        let terminal = [(Header::Sequence, sequence), (Header::Rejected, rejected)]
            .into_iter()
            .find(|(_, value)| clean && *value == u64::MAX);
        if let Some((header, _)) = terminal {
            return Err(Refusal::TerminalClean { header });
        }
        Ok(Self {
            epoch,
            sequence,
            rejected,
            clean,
            replica,
        })
    }

    /// The run of the process that reports.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Rises strictly within the epoch.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// How many ingests the process has rejected since its start, in all.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Whether the process calls itself clean.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.clean
    }

    /// What the process calls itself. Diagnostic: it authorizes nothing.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }
}
