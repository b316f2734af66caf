//! Signals: what a gateway wants to know of a provider, made of rows.
//!
//! Queue depth is made of `*_average_queue_size`, else of `llm_d_epp_flow_control_queue_size`; KV-cache pressure of
//! `*_kv_cache_utilization`; readiness of `grid_provider_ready` (the contract's section on mapping). The declaration may map
//! others, as a broker's queue length; these come before the contract's. Of the metrics of a signal the first that has a
//! row is taken. Where it has several rows, as one a queue, depths are added up, of pressures the largest counts, of
//! readinesses the smallest; the signal is as old as the oldest of them.
//!
//! A value that is not on the signal's scale makes no signal: it is missing then, which is neutral and never zero.

use serde::{Deserialize, Serialize};

use super::clock::EpochMs;
use super::contract::Scale;
use super::row::Row;
use crate::words::MetricName;
pub use crate::words::Signal;

/// How old a signal may be until it says nothing any more, in milliseconds: as long as a reading lives.
pub const STALE_MS: u64 = super::reading::LIVES_MS;

/// A number that is finite and not negative.
#[derive(
    Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "f64", into = "f64")]
pub struct Load(#[schemars(range(min = 0.0))] f64);

/// A number that is no load.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is not finite, or negative")]
pub struct LoadError(f64);

impl Load {
    /// Takes a number.
    ///
    /// # Errors
    /// When it is negative, infinite or not a number.
    pub fn new(value: f64) -> Result<Self, LoadError> {
        if Scale::Amount.holds(value) {
            Ok(Self(value + 0.0)) // of the two zeros the one without a sign
        } else {
            Err(LoadError(value))
        }
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Load {
    type Error = LoadError;
    fn try_from(value: f64) -> Result<Self, LoadError> {
        Self::new(value)
    }
}

impl From<Load> for f64 {
    fn from(load: Load) -> f64 {
        load.0
    }
}

impl Signal {
    /// The metrics that the contract makes it of, the preferred first.
    fn of_contract(self) -> &'static [&'static str] {
        match self {
            Self::QueueDepth => &[
                "llm_d_epp_average_queue_size",
                "inference_pool_average_queue_size",
                "llm_d_epp_flow_control_queue_size",
            ],
            Self::KvCachePressure => &[
                "llm_d_epp_average_kv_cache_utilization",
                "inference_pool_average_kv_cache_utilization",
            ],
            Self::Ready => &["grid_provider_ready"],
        }
    }

    /// The values that it may have.
    #[must_use]
    pub fn scale(self) -> Scale {
        if self.is_part() {
            Scale::Part
        } else {
            Scale::Amount
        }
    }

    fn join(self, one: f64, other: f64) -> f64 {
        match self {
            Self::QueueDepth => one + other,
            Self::KvCachePressure => one.max(other),
            Self::Ready => one.min(other),
        }
    }
}

/// Of which metrics the signals of a provider are made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    declared: Vec<(Signal, MetricName)>,
}

impl Mapping {
    /// The contract's, and before it the declaration's own.
    #[must_use]
    pub fn with(declared: impl IntoIterator<Item = (Signal, MetricName)>) -> Self {
        Self {
            declared: declared.into_iter().collect(),
        }
    }

    /// The names that it adds to those which peers take ([`super::contract::Accepted::with`]).
    pub fn added(&self) -> impl Iterator<Item = (MetricName, Scale)> + '_ {
        self.declared
            .iter()
            .map(|(signal, name)| (name.clone(), signal.scale()))
    }

    /// Makes the signals of one provider at one site of its rows.
    #[must_use]
    pub fn measure<'a>(&self, rows: impl Iterator<Item = &'a Row> + Clone) -> Signals {
        let of = |signal| self.measured(signal, rows.clone());
        Signals {
            queue_depth: of(Signal::QueueDepth),
            kv_cache_pressure: of(Signal::KvCachePressure),
            ready: of(Signal::Ready),
        }
    }

    fn measured<'a>(
        &self,
        signal: Signal,
        rows: impl Iterator<Item = &'a Row> + Clone,
    ) -> Option<Measured> {
        let declared = self.declared.iter().filter(|(of, _)| *of == signal);
        let mut names = declared
            .map(|(_, name)| name.as_str())
            .chain(signal.of_contract().iter().copied());
        names.find_map(|name| {
            let of_name = rows.clone().filter(|row| row.name.as_str() == name);
            let usable = of_name.filter(|row| signal.scale().holds(row.value));
            let joined = usable.map(|row| (row.value, row.stamp)).reduce(
                |(value, stamp), (other, its)| (signal.join(value, other), stamp.min(its)),
            )?;
            let value = Load::new(joined.0).ok()?;
            Some(Measured {
                value,
                stamp: joined.1,
            })
        })
    }
}

/// A signal's value, and when it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measured {
    /// The value.
    pub value: Load,
    /// When it was taken, by the clock of whoever holds it.
    pub stamp: EpochMs,
}

impl Measured {
    /// The value, unless it is too old to say anything.
    #[must_use]
    pub fn fresh(&self, now: EpochMs) -> Option<Load> {
        (self.stamp.age_at(now) < STALE_MS).then_some(self.value)
    }
}

/// What is known of one provider at one site. What is not known is neutral.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Signals {
    /// How many requests or messages wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<Measured>,
    /// Which part of the KV cache is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache_pressure: Option<Measured>,
    /// Which part of it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Measured>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::sample::row;

    fn of(rows: &[(&str, f64, i64)]) -> Signals {
        with(&Mapping::default(), rows)
    }

    fn with(mapping: &Mapping, rows: &[(&str, f64, i64)]) -> Signals {
        let rows: Vec<Row> = rows
            .iter()
            .map(|(name, value, stamp)| row("atlas", "pool", name, *value, *stamp))
            .collect();
        mapping.measure(rows.iter())
    }

    fn value(measured: Option<Measured>) -> Option<f64> {
        measured.map(|measured| measured.value.get())
    }

    #[test]
    fn signals_are_made_of_the_contracts_metrics_in_their_order() {
        let signals = of(&[
            ("llm_d_epp_flow_control_queue_size", 9.0, 1),
            ("inference_pool_average_queue_size", 2.0, 2),
            ("inference_pool_average_kv_cache_utilization", 0.5, 3),
            ("grid_provider_ready", 1.0, 4),
        ]);
        assert_eq!(value(signals.queue_depth), Some(2.0));
        assert_eq!(value(signals.kv_cache_pressure), Some(0.5));
        assert_eq!(value(signals.ready), Some(1.0));
        let signals = of(&[("llm_d_epp_flow_control_queue_size", 9.0, 1)]);
        assert_eq!(value(signals.queue_depth), Some(9.0));
        assert_eq!(signals.ready, None);
    }

    #[test]
    fn several_rows_make_one_signal_as_old_as_the_oldest() {
        let signals = of(&[
            ("inference_pool_average_queue_size", 2.0, 30),
            ("inference_pool_average_queue_size", 3.0, 10),
            ("llm_d_epp_average_kv_cache_utilization", 0.25, 1),
            ("llm_d_epp_average_kv_cache_utilization", 0.75, 1),
            ("grid_provider_ready", 1.0, 1),
            ("grid_provider_ready", 0.0, 1),
        ]);
        let depth = signals.queue_depth.unwrap();
        assert_eq!((depth.value.get(), depth.stamp.get()), (5.0, 10));
        assert_eq!(value(signals.kv_cache_pressure), Some(0.75));
        assert_eq!(value(signals.ready), Some(0.0));
    }

    #[test]
    fn what_is_off_its_scale_is_missing_and_not_zero() {
        let signals = of(&[
            ("inference_pool_average_queue_size", -1.0, 1),
            ("llm_d_epp_average_kv_cache_utilization", 75.0, 1),
            ("grid_provider_ready", f64::NAN, 1),
        ]);
        assert_eq!(signals, Signals::default());
        let signals = of(&[
            ("inference_pool_average_queue_size", f64::MAX, 1),
            ("inference_pool_average_queue_size", f64::MAX, 1),
        ]);
        assert_eq!(signals.queue_depth, None);
    }

    #[test]
    fn a_declared_metric_comes_before_the_contracts_and_is_taken_from_peers() {
        let name = MetricName::new("rabbitmq_queue_messages").unwrap();
        let mapping = Mapping::with([(Signal::QueueDepth, name.clone())]);
        let signals = with(
            &mapping,
            &[
                ("inference_pool_average_queue_size", 2.0, 2),
                ("rabbitmq_queue_messages", 40.0, 2),
                ("rabbitmq_queue_messages", 2.0, 2),
            ],
        );
        assert_eq!(value(signals.queue_depth), Some(42.0));
        let added: Vec<_> = mapping.added().collect();
        assert_eq!(added, [(name, Scale::Amount)]);
        let without = with(&mapping, &[("inference_pool_average_queue_size", 2.0, 2)]);
        assert_eq!(value(without.queue_depth), Some(2.0));
    }

    #[test]
    fn a_load_is_finite_and_not_negative_in_json_too() {
        assert_eq!(Load::new(-0.0).unwrap().get().to_bits(), 0);
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Load::new(wrong).is_err());
        }
        assert!(serde_json::from_str::<Load>("-1").is_err());
        assert!(serde_json::from_str::<Load>("null").is_err());
        assert_eq!(
            serde_json::to_string(&Load::new(2.5).unwrap()).unwrap(),
            "2.5"
        );
    }
}
