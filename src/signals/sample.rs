//! Rows for tests.

use super::clock::EpochMs;
use super::row::{Labels, Row};
use crate::words::NodeName;
use crate::words::{MetricName, ProviderName};

/// A row without labels of its own.
pub(super) fn row(site: &str, provider: &str, name: &str, value: f64, stamp: i64) -> Row {
    Row {
        site: NodeName::new(site).unwrap(),
        provider: ProviderName::new(provider).unwrap(),
        name: MetricName::new(name).unwrap(),
        labels: Labels::default(),
        value,
        stamp: EpochMs::new(stamp),
    }
}
