//! Which metrics a peer takes, by name, and what values each may have.

use std::collections::BTreeMap;

use crate::words::MetricName;

/// What values a metric may have, when a peer says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scale {
    /// From 0 on: a number of requests, of seconds.
    Amount,
    /// From 0 to 1: readiness, a part of the whole.
    Part,
}

impl Scale {
    /// Whether a value is on it. Not-a-number and the infinities never are.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::Amount => value.is_finite() && value >= 0.0,
            Self::Part => (0.0..=1.0).contains(&value),
        }
    }
}

/// The names that the contract has peers take.
const CONTRACT: [(&str, Scale); 18] = [
    ("grid_provider_ready", Scale::Part),
    ("grid_provider_ready_endpoints", Scale::Amount),
    ("grid_provider_in_flight_requests", Scale::Amount),
    ("grid_provider_ttft_p50_seconds", Scale::Amount),
    ("grid_provider_ttft_p90_seconds", Scale::Amount),
    ("grid_provider_tpot_seconds", Scale::Amount),
    ("grid_provider_error_ratio", Scale::Part),
    ("inference_pool_average_queue_size", Scale::Amount),
    ("inference_pool_average_running_requests", Scale::Amount),
    ("inference_pool_average_kv_cache_utilization", Scale::Part),
    ("llm_d_epp_average_queue_size", Scale::Amount),
    ("llm_d_epp_average_running_requests", Scale::Amount),
    ("llm_d_epp_average_kv_cache_utilization", Scale::Part),
    ("llm_d_epp_ready_endpoints", Scale::Amount),
    ("inference_pool_ready_pods", Scale::Amount),
    ("llm_d_epp_flow_control_queue_size", Scale::Amount),
    ("inference_pool_per_pod_queue_size", Scale::Amount),
    ("llm_d_epp_per_endpoint_queue_size", Scale::Amount),
];

/// The metrics that are taken from peers: the contract's and those that the declaration adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    added: BTreeMap<MetricName, Scale>,
}

impl Accepted {
    /// The contract's names, and these. A name of the contract's keeps its scale.
    #[must_use]
    pub fn with(added: impl IntoIterator<Item = (MetricName, Scale)>) -> Self {
        Self {
            added: added.into_iter().collect(),
        }
    }

    /// The contract's names.
    #[must_use]
    pub fn contract() -> Self {
        Self::with([])
    }

    /// The scale of a metric that is taken; none of another.
    #[must_use]
    pub fn scale(&self, name: &str) -> Option<Scale> {
        let of_contract = CONTRACT.iter().find(|(own, _)| *own == name);
        of_contract
            .map(|(_, scale)| *scale)
            .or_else(|| self.added.get(name).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_adds_names_and_takes_none_away() {
        let name = |text: &str| MetricName::new(text).unwrap();
        let accepted = Accepted::with([
            (name("rabbitmq_queue_messages"), Scale::Amount),
            (name("grid_provider_ready"), Scale::Amount),
        ]);
        assert_eq!(
            accepted.scale("rabbitmq_queue_messages"),
            Some(Scale::Amount)
        );
        assert_eq!(accepted.scale("grid_provider_ready"), Some(Scale::Part));
        assert_eq!(accepted.scale("go_goroutines"), None);
        assert_eq!(Accepted::contract().scale("rabbitmq_queue_messages"), None);
    }

    #[test]
    fn a_part_is_at_most_one_and_an_amount_is_finite() {
        for (value, amount, part) in [
            (0.0, true, true),
            (-0.0, true, true),
            (1.0, true, true),
            (1.0 + f64::EPSILON, true, false),
            (-f64::MIN_POSITIVE, false, false),
            (f64::MAX, true, false),
            (f64::INFINITY, false, false),
            (f64::NAN, false, false),
        ] {
            assert_eq!(Scale::Amount.holds(value), amount, "{value}");
            assert_eq!(Scale::Part.holds(value), part, "{value}");
        }
    }
}
