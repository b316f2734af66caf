//! `grid history --json`.

use crate::store::Entry;

/// The newest entries of the journal.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct HistoryView {
    /// Oldest first.
    pub entries: Vec<HistoryEntry>,
}

/// An entry, by its number in the journal.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct HistoryEntry {
    /// Counted from 1, without a gap.
    pub number: u64,
    /// What happened.
    #[serde(flatten)]
    pub entry: Entry,
}
