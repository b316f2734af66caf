//! What happened last to each peer or provider, so that the log tells what changes and not, twice a minute, what is known.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The last outcomes.
#[derive(Debug, Default)]
pub struct Outcomes(Mutex<HashMap<String, &'static str>>);

impl Outcomes {
    /// Notes an outcome. Whether it is another one than the last; at first, whether it is not `success`.
    pub fn is_news(&self, of: &str, outcome: &'static str) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.insert(of.to_owned(), outcome);
        before.unwrap_or("success") != outcome
    }

    /// Forgets those that are no more.
    pub fn keep(&self, is_there: impl Fn(&str) -> bool) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.retain(|name, _| is_there(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_is_news() {
        let outcomes = Outcomes::default();
        assert!(!outcomes.is_news("atlas", "success"));
        assert!(outcomes.is_news("atlas", "timeout"));
        assert!(!outcomes.is_news("atlas", "timeout"));
        assert!(outcomes.is_news("atlas", "success"));
        assert!(outcomes.is_news("borealis", "refused"));
        outcomes.keep(|name| name == "atlas");
        assert!(outcomes.is_news("borealis", "refused"));
    }
}
