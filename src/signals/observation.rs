//! Observations: what a site knows of one provider, made of the rows that it holds.
//!
//! Under gossip this is what rides the overlay of SWIM: signals, and the score that the observing site gave. Under poll
//! rows cross sites, and observations are made of these at the site that pulled them, without a score.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::clock::EpochMs;
use super::measure::{Mapping, Signals};
use super::row::Row;
use super::score::{Scored, Strategy};
use crate::words::ProviderName;
use crate::words::{NodeName, SignalMode};

/// What is known of one provider at one site, by the clock of whoever holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Observation {
    /// The site that observes it.
    pub site: NodeName,
    /// The provider.
    pub provider: ProviderName,
    /// What is known.
    pub signals: Signals,
    /// Its score at that site, if that site scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scored: Option<Scored>,
}

/// What the declaration says of a provider's signals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Watch {
    /// Of which metrics they are made.
    pub mapping: Mapping,
    /// By what it is scored.
    pub strategy: Strategy,
}

/// What is observed by these rows of any number of providers at any number of sites, by site and provider. A provider of
/// which `watches` says nothing has the contract's mapping and no score.
#[must_use]
pub fn observe(
    rows: &[Row],
    watches: &BTreeMap<ProviderName, Watch>,
    mode: SignalMode,
    now: EpochMs,
) -> Vec<Observation> {
    let unwatched = Watch::default();
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|one, other| one.order(other));
    rows.chunk_by(|one, other| one.site == other.site && one.provider == other.provider)
        .filter_map(|of_one| {
            let first = of_one.first()?;
            let watch = watches.get(&first.provider).unwrap_or(&unwatched);
            let signals = watch.mapping.measure(of_one.iter().copied());
            let scored = match mode {
                SignalMode::Gossip => watch.strategy.score(&signals, now),
                SignalMode::Poll => None,
            };
            Some(Observation {
                site: first.site.clone(),
                provider: first.provider.clone(),
                signals,
                scored,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::measure::Signal;
    use crate::signals::sample::row;
    use crate::words::MetricName;

    fn shown(mode: SignalMode) -> Vec<String> {
        let rows = [
            row(
                "borealis",
                "pool",
                "llm_d_epp_average_kv_cache_utilization",
                0.25,
                900,
            ),
            row(
                "atlas",
                "pool",
                "llm_d_epp_average_kv_cache_utilization",
                0.75,
                900,
            ),
            row("atlas", "broker", "rabbitmq_queue_messages", 8.0, 900),
            row("atlas", "broker", "rabbitmq_queue_messages", 2.0, 900),
            row("atlas", "other", "grid_provider_ready", 1.0, 900),
        ];
        let name = |text: &str| ProviderName::new(text).unwrap();
        let messages = MetricName::new("rabbitmq_queue_messages").unwrap();
        let watches = BTreeMap::from([
            (
                name("pool"),
                Watch {
                    strategy: Strategy::KvCachePressure,
                    ..Watch::default()
                },
            ),
            (
                name("broker"),
                Watch {
                    mapping: Mapping::with([(Signal::QueueDepth, messages)]),
                    ..Watch::default()
                },
            ),
        ]);
        let observations = observe(&rows, &watches, mode, EpochMs::new(1_000));
        let line = |of: Observation| {
            let value = |known: Option<crate::signals::measure::Measured>| {
                known.map_or("-".to_owned(), |measured| measured.value.get().to_string())
            };
            let score = of.scored.map(|scored| scored.score.get());
            format!(
                "{} {} {} {} {} {score:?}",
                of.site,
                of.provider,
                value(of.signals.queue_depth),
                value(of.signals.kv_cache_pressure),
                value(of.signals.ready),
            )
        };
        observations.into_iter().map(line).collect()
    }

    #[test]
    fn rows_are_observed_by_site_and_provider_as_each_is_watched() {
        assert_eq!(
            shown(SignalMode::Gossip),
            [
                "atlas broker 10 - - None",
                "atlas other - - 1 None",
                "atlas pool - 0.75 - Some(0.25)",
                "borealis pool - 0.25 - Some(0.75)",
            ]
        );
    }

    #[test]
    fn under_poll_scoring_is_off() {
        assert!(
            shown(SignalMode::Poll)
                .iter()
                .all(|line| line.ends_with("None"))
        );
    }
}
