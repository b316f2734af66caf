//! Reads `[services.*.signals]`: what the metrics of a provider mean.

use std::collections::HashMap;

use super::input::Table;
use super::place::{At, Place, Problem};
use super::raw;
use super::service::Drafts;
use super::text::Metric;
use crate::words::{MOST_MAPS, MetricName, Signal, Strategy};

/// What the metrics of a provider mean, to every site of the mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceSignals {
    /// By what it is scored, under gossip.
    pub score: Strategy,
    /// Of which metrics its signals are made, the preferred first; at most [`MOST_MAPS`].
    pub maps: Vec<(Signal, MetricName)>,
}

/// Takes what a service says; `table` is the service's.
pub(super) fn read(
    raw: raw::ServiceSignals,
    table: Table<'_>,
    problems: &mut Vec<Problem>,
) -> ServiceSignals {
    let key = table.get("signals").map_or(table.key, |input| input.key);
    if table.get("metrics").is_none() {
        problems.push(Problem::new(
            key,
            "`signals` says what a service's metrics mean, and this one shows none",
            "add `metrics = \"http://…\"`",
        ));
    }
    let maps: Vec<_> = raw.map.into_iter().flat_map(mapped).collect();
    if maps.len() > MOST_MAPS {
        problems.push(Problem::new(
            key,
            format!("{} metrics are mapped for one provider", maps.len()),
            format!("map at most {MOST_MAPS}"),
        ));
    }
    ServiceSignals {
        score: score(raw.score, key, problems).unwrap_or_default(),
        maps: maps
            .into_iter()
            .map(|(signal, metric)| (signal, metric.value.0))
            .collect(),
    }
}

fn score(raw: Option<raw::Score>, key: Place, problems: &mut Vec<Problem>) -> Option<Strategy> {
    let raw = raw?;
    let Some(by) = raw.by else {
        problems.push(Problem::new(
            key,
            "a score says by what a provider is scored",
            "write `score = { by = \"queue-depth\", capacity = … }`, or `{ by = \"kv-cache-pressure\" }`",
        ));
        return None;
    };
    match (by, raw.capacity) {
        (raw::ScoreBy::QueueDepth, Some(capacity)) => Some(Strategy::QueueDepth {
            capacity: capacity.value,
        }),
        (raw::ScoreBy::QueueDepth, None) => {
            problems.push(Problem::new(
                key,
                "a score by queue depth is taken against how many may wait",
                "add `capacity = …`, the depth at which the provider is full",
            ));
            None
        }
        (raw::ScoreBy::KvCachePressure, None) => Some(Strategy::KvCachePressure),
        (raw::ScoreBy::KvCachePressure, Some(capacity)) => {
            problems.push(Problem::new(
                capacity.place,
                "a score by KV-cache pressure has no capacity",
                "leave it out: a full cache is 1",
            ));
            None
        }
    }
}

fn mapped(map: raw::SignalMap) -> impl Iterator<Item = (Signal, At<Metric>)> {
    let of = |signal, metrics: Vec<At<Metric>>| metrics.into_iter().map(move |one| (signal, one));
    of(Signal::QueueDepth, map.queue_depth)
        .chain(of(Signal::KvCachePressure, map.kv_cache_pressure))
        .chain(of(Signal::Ready, map.ready))
}

/// A metric has one scale in the whole mesh, since sites take it of their peers by its name alone.
pub(super) fn one_scale_a_metric(drafts: &Drafts<'_>, problems: &mut Vec<Problem>) {
    let mut known = HashMap::new();
    for (name, draft) in drafts {
        let maps = draft
            .service
            .signals
            .iter()
            .flat_map(|signals| &signals.maps);
        for (signal, metric) in maps {
            let is_part = signal.is_part();
            let (first, was_part) = *known.entry(metric).or_insert((name, is_part));
            if was_part == is_part {
                continue;
            }
            let place = draft.table.and_then(|table| table.get("signals"));
            problems.push(Problem::new(
                place.map_or(draft.place, |input| input.key),
                format!(
                    "{metric} is mapped to a queue depth, which has no upper end, and to a part of the whole, which is at most 1{}",
                    match first == name {
                        true => String::new(),
                        false => format!(", the one for {first} and the other for {name}"),
                    }
                ),
                "map it to one of them",
            ));
        }
    }
}
