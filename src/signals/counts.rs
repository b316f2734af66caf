//! How often each reason was met. Counters of a daemon are fed from it; a reason is an enum, so a counter's label never
//! carries what a peer wrote.

use std::collections::BTreeMap;

/// How often each reason was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts<R>(BTreeMap<R, u64>);

impl<R> Default for Counts<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: Ord + Copy> Counts<R> {
    /// Once more.
    pub fn add(&mut self, reason: R) {
        self.add_many(reason, 1);
    }

    /// So many times more.
    pub fn add_many(&mut self, reason: R, times: u64) {
        if times > 0 {
            let count = self.0.entry(reason).or_default();
            *count = count.saturating_add(times);
        }
    }

    /// How often this one was met.
    #[must_use]
    pub fn of(&self, reason: R) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// How often any was met.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().copied().fold(0, u64::saturating_add)
    }

    /// Whether none was met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reasons that were met, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (R, u64)> + '_ {
        self.0.iter().map(|(reason, count)| (*reason, *count))
    }
}

impl<R: Ord> FromIterator<(R, u64)> for Counts<R> {
    fn from_iter<I: IntoIterator<Item = (R, u64)>>(counts: I) -> Self {
        Self(counts.into_iter().filter(|(_, n)| *n > 0).collect())
    }
}
