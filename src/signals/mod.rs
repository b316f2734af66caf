//! Signals: provider load that a site observes, and how it crosses sites (DESIGN.md, section 7; the public contract
//! of the endpoint and of the resources).
//!
//! A pure room: no clock, no network, no file. Whatever comes from outside (a provider's metrics, a peer's answer, a
//! caller's query) is bounded, is read in time linear in its length, and is refused or left out by a counted reason;
//! nothing of it can end the daemon. Times are arguments: milliseconds of the epoch, and of a clock that nobody sets.
//!
//! The way of a sample: a provider's metrics are read by [`exposition`], what of them is served becomes [`row::Row`]s
//! in [`contract`], a caller's [`query`] picks among these for a [`response`]; a peer turns the response into rows of
//! its own in [`reading`]; [`observation`] makes signals
//! ([`measure`]) and a score ([`score`]) of rows, and [`overlay`] writes what gateways read.
//! [`manifests`] writes the same facts for Kubernetes, [`site`] for the daemon.

pub mod clock;
pub mod contract;
pub mod counts;
pub mod exposition;
pub mod manifests;
pub mod measure;
mod number;
pub mod observation;
pub mod overlay;
pub mod own;
pub mod query;
pub mod reading;
pub mod response;
pub mod row;
pub mod score;
pub mod site;

#[cfg(test)]
mod sample;

pub use crate::words::{LabelName, MetricName, ProviderName};
pub use clock::{EpochMs, Moment};
pub use counts::Counts;
pub use row::Row;
