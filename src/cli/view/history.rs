//! `grid history --json`.

use crate::store::Entry;

/// The newest entries of the journal. What began a push is listed only where nothing ended it.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct HistoryView {
    /// Oldest first.
    pub entries: Vec<HistoryEntry>,
}

/// An entry, by its number in the journal.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct HistoryEntry {
    /// Counted from 1.
    pub number: u64,
    /// What became of a push that nothing ended; absent: it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unended: Option<Unended>,
    /// What happened.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What became of a push that nothing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unended {
    /// It holds the lock of the mesh, so it runs.
    Runs,
    /// Its controller was killed, or lost.
    KilledOrLost,
}
