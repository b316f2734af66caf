//! Scores: how well a provider at a site can take more, from 0 (not at all) to 1 (it is idle).
//!
//! A signal that is missing or stale is neutral: it counts as the middle of the scale, never as zero, which would read as
//! idle or as full. A provider that says it is ready in part has that part of its score; one that says nothing of it has
//! all. Under poll nothing is scored (DESIGN.md, section 7): the gateway ranks from what was pulled.

use serde::{Deserialize, Serialize};

use super::clock::EpochMs;
use super::contract::Scale;
use super::measure::{Measured, STALE_MS, Signals};
pub use crate::words::{Capacity, CapacityError, Strategy};

/// A score, from 0 to 1, in steps of a thousandth.
#[derive(
    Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "f64", into = "f64")]
pub struct Score(#[schemars(range(min = 0.0, max = 1.0))] f64);

/// A number that is no score.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a score is from 0 to 1, and {0} is not")]
pub struct ScoreError(f64);

impl Score {
    /// What a provider of which nothing is known has: the middle of the scale.
    pub const NEUTRAL: Self = Self(0.5);

    /// Takes a number, to the next thousandth.
    ///
    /// # Errors
    /// When it is not from 0 to 1.
    pub fn new(value: f64) -> Result<Self, ScoreError> {
        if Scale::Part.holds(value) {
            // Thousandths, so that a file of scores changes when they do and not with a float's last bits.
            Ok(Self((value * 1000.0).round() / 1000.0 + 0.0))
        } else {
            Err(ScoreError(value))
        }
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Score {
    type Error = ScoreError;
    fn try_from(value: f64) -> Result<Self, ScoreError> {
        Self::new(value)
    }
}

impl From<Score> for f64 {
    fn from(score: Score) -> f64 {
        score.0
    }
}

/// A score, and the moment of the oldest signal that it was made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scored {
    /// The score.
    pub score: Score,
    /// When the oldest signal of it was taken; none where nothing was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<EpochMs>,
}

impl Scored {
    /// The score, which is neutral once what it was made of is stale.
    #[must_use]
    pub fn at(&self, now: EpochMs) -> Score {
        match self.stamp {
            Some(stamp) if stamp.age_at(now) >= STALE_MS => Score::NEUTRAL,
            _ => self.score,
        }
    }
}

impl Strategy {
    /// The score of a provider with these signals; none where nothing is scored.
    #[must_use]
    pub fn score(self, signals: &Signals, now: EpochMs) -> Option<Scored> {
        let fresh = |of: Option<Measured>| of.filter(|measured| measured.fresh(now).is_some());
        let (measured, full_at) = match self {
            Self::None => return None,
            Self::QueueDepth { capacity } => (fresh(signals.queue_depth), capacity.get()),
            Self::KvCachePressure => (fresh(signals.kv_cache_pressure), 1.0),
        };
        let ready = fresh(signals.ready);
        let free = match measured {
            Some(measured) => 1.0 - (measured.value.get() / full_at).clamp(0.0, 1.0),
            None => Score::NEUTRAL.get(),
        };
        let part = ready.map_or(1.0, |ready| ready.value.get().clamp(0.0, 1.0));
        let stamps = measured.into_iter().chain(ready).map(|used| used.stamp);
        Some(Scored {
            score: Score::new(free * part).unwrap_or(Score::NEUTRAL), // both are from 0 to 1
            stamp: stamps.min(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Strategy, *};
    use crate::signals::measure::Load;

    const NOW: EpochMs = EpochMs::new(1_700_000_000_000);

    fn measured(value: f64, age: i64) -> Option<Measured> {
        Some(Measured {
            value: Load::new(value).unwrap(),
            stamp: NOW.before(age),
        })
    }

    fn depth(capacity: f64) -> Strategy {
        Strategy::QueueDepth {
            capacity: Capacity::new(capacity).unwrap(),
        }
    }

    fn score(strategy: Strategy, signals: &Signals) -> f64 {
        strategy.score(signals, NOW).unwrap().score.get()
    }

    #[test]
    fn a_provider_is_scored_by_what_is_free_of_it() {
        let signals = Signals {
            queue_depth: measured(25.0, 0),
            kv_cache_pressure: measured(0.9, 0),
            ready: None,
        };
        assert_eq!(score(depth(100.0), &signals), 0.75);
        assert_eq!(score(depth(10.0), &signals), 0.0);
        assert_eq!(score(Strategy::KvCachePressure, &signals), 0.1);
        assert_eq!(Strategy::None.score(&signals, NOW), None);
    }

    #[test]
    fn what_is_missing_or_stale_is_the_middle_of_the_scale_and_never_zero() {
        let missing = Signals::default();
        assert_eq!(score(depth(100.0), &missing), 0.5);
        assert_eq!(score(Strategy::KvCachePressure, &missing), 0.5);
        let stale = Signals {
            queue_depth: measured(0.0, 120_000),
            kv_cache_pressure: measured(1.0, 120_000),
            ready: measured(0.0, 120_000),
        };
        assert_eq!(score(depth(100.0), &stale), 0.5);
        assert_eq!(score(Strategy::KvCachePressure, &stale), 0.5);
        let edge = Signals {
            queue_depth: measured(0.0, 119_999),
            ..Signals::default()
        };
        assert_eq!(score(depth(100.0), &edge), 1.0);
    }

    #[test]
    fn a_score_that_was_told_long_ago_is_neutral() {
        let signals = Signals {
            kv_cache_pressure: measured(1.0, 10_000),
            ready: measured(1.0, 30_000),
            ..Signals::default()
        };
        let scored = Strategy::KvCachePressure.score(&signals, NOW).unwrap();
        assert_eq!(scored.stamp, Some(NOW.before(30_000)));
        assert_eq!(scored.at(NOW).get(), 0.0);
        let later = EpochMs::new(NOW.get() + 90_000);
        assert_eq!(scored.at(later), Score::NEUTRAL);
    }

    #[test]
    fn a_provider_that_is_not_ready_can_take_nothing_however_idle() {
        let ready = |part: f64| Signals {
            queue_depth: measured(0.0, 0),
            ready: measured(part, 0),
            ..Signals::default()
        };
        assert_eq!(score(depth(10.0), &ready(0.0)), 0.0);
        assert_eq!(score(depth(10.0), &ready(0.5)), 0.5);
        assert_eq!(score(depth(10.0), &ready(1.0)), 1.0);
    }

    #[test]
    fn a_capacity_is_more_than_nothing() {
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Capacity::new(wrong).is_err(), "{wrong}");
        }
        let read = serde_json::from_str::<Strategy>(r#"{"by":"queue-depth","capacity":0}"#);
        assert!(read.is_err());
        let read = serde_json::from_str::<Strategy>(r#"{"by":"queue-depth","capacity":8}"#);
        assert_eq!(read.unwrap(), depth(8.0));
        assert!(Score::new(1.001).is_err());
    }

    proptest! {
        #[test]
        fn more_load_never_scores_better(
            capacity in 1e-6f64..1e12, one in 0.0f64..1e12, more in 0.0f64..1e12, tiny in any::<bool>()
        ) {
            let one = if tiny { one / 1e15 } else { one };
            let of = |value| Signals { queue_depth: measured(value, 0), ..Signals::default() };
            let (less, greater) = (score(depth(capacity), &of(one)), score(depth(capacity), &of(one + more)));
            prop_assert!(greater <= less);
            prop_assert!((0.0..=1.0).contains(&less) && (0.0..=1.0).contains(&greater));
        }
    }
}
