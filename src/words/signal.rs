//! What may be said of a provider's signals, in the declaration and to the site daemon.
//!
//! What a signal is made of and how a provider is scored is the room `signals`' to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most metrics that are mapped for one provider.
pub const MOST_MAPS: usize = 16;

/// What is observed of a provider.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// How many requests or messages wait.
    QueueDepth,
    /// Which part of the KV cache is in use, from 0 to 1.
    KvCachePressure,
    /// Whether, or which part of it, is ready: from 0 to 1.
    Ready,
}

impl Signal {
    /// Whether its values are a part of a whole, from 0 to 1; else they are amounts.
    #[must_use]
    pub fn is_part(self) -> bool {
        match self {
            Self::QueueDepth => false,
            Self::KvCachePressure | Self::Ready => true,
        }
    }
}

/// How many may wait until a provider is full: finite and more than 0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
pub struct Capacity(#[schemars(extend("exclusiveMinimum" = 0))] f64);

/// A number that is no capacity.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a capacity is more than 0 and finite, and {0} is not")]
pub struct CapacityError(f64);

impl Capacity {
    /// Takes a number.
    ///
    /// # Errors
    /// When it is not more than 0, or infinite.
    pub fn new(value: f64) -> Result<Self, CapacityError> {
        if value.is_finite() && value > 0.0 {
            Ok(Self(value))
        } else {
            Err(CapacityError(value))
        }
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Capacity {
    type Error = CapacityError;
    fn try_from(value: f64) -> Result<Self, CapacityError> {
        Self::new(value)
    }
}

impl From<Capacity> for f64 {
    fn from(capacity: Capacity) -> f64 {
        capacity.0
    }
}

/// By what a provider is scored.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum Strategy {
    /// By nothing: it has no score.
    #[default]
    None,
    /// By how many wait, against how many may.
    QueueDepth {
        /// How many may wait until it is full.
        capacity: Capacity,
    },
    /// By the pressure on its KV cache.
    KvCachePressure,
}
