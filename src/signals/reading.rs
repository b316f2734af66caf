//! What a poller keeps of a peer's answer: the verified site, its body and its `Date` in, readings and refusals out.
//!
//! Invariants: a reading stands under the identity that the connection verified, never under what the body says; its
//! metric is accepted and its value on that metric's scale; its stamp is by this machine's clock, since it was computed
//! from an age, so that clocks that differ make no row old or young. Threats: the peer may be hostile. Whatever it writes,
//! at most 64 providers and the exposition's bounds hold, each row of an accepted metric that is refused is counted by a
//! reason, and the
//! providers kept are the first by name, so that a peer cannot choose by order of lines.
//!
//! A row without `grid_site` is taken as the verified site's; one without a provider or without a stamp is refused:
//! nothing says what it is about, or how old it is. Without a `Date` in the form of RFC 9110 there is no age at all, and
//! the answer is refused whole.

use std::collections::BTreeSet;

use super::clock::EpochMs;
use super::contract::{Accepted, OLDEST_MS, Scale};
use super::counts::Counts;
use super::exposition::{ExpositionError, Flaw, Item, Limits, Reader, Sample};
use super::row::{Labels, PROVIDER, Row, SITE};
use crate::words::NodeName;
use crate::words::{LabelName, MetricName, ProviderName};

/// How long a row lives after it was scraped or pulled, in milliseconds that passed, whatever the time is set to.
pub const LIVES_MS: u64 = crate::words::READINGS_LIVE_MS;

/// How far after the peer's `Date` a stamp may lie, in milliseconds: `Date` has whole seconds.
pub const SLACK_MS: i64 = 1_000;

/// How many providers of a peer are kept.
pub const MOST_PROVIDERS: usize = 64;

/// Why an answer is refused whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The body is too large.
    #[error(transparent)]
    Exposition(#[from] ExpositionError),
    /// No `Date`, or in another form.
    #[error("the answer has no Date as RFC 9110 writes it, so that no row of it has an age")]
    NoDate,
}

/// Why a row is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// It names another site.
    Site,
    /// It names no provider, or not as a provider is named.
    Provider,
    /// Its provider is not among the first 64.
    TooManyProviders,
    /// Its value is not finite, negative, or past 1 where that is the most.
    Value,
    /// It does not say when it was taken.
    NoStamp,
    /// It is of the future.
    Future,
    /// It is older than 24 hours.
    Old,
    /// It has more labels than a row has, or a name that none has.
    Labels,
    /// The same metric with the same labels was there before it.
    Repeated,
}

impl Refusal {
    /// The word for the label `reason` of `grid_peer_signals_refused_total`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Provider => "provider",
            Self::TooManyProviders => "too_many_providers",
            Self::Value => "value",
            Self::NoStamp => "no_stamp",
            Self::Future => "future",
            Self::Old => "old",
            Self::Labels => "labels",
            Self::Repeated => "repeated",
        }
    }
}

/// What an answer gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pulled {
    /// The rows, in the order of [`Row::order`]; their stamps are by this machine's clock.
    pub rows: Vec<Row>,
    /// Rows that were read and refused.
    pub refused: Counts<Refusal>,
    /// Lines that could not be read.
    pub flaws: Counts<Flaw>,
}

/// Takes from the answer of `site`, whose identity the connection verified, what is accepted of it.
///
/// `date` is the answer's header of that name, if it had exactly one; `now` is when the answer arrived.
///
/// # Errors
/// When the body is over its bound, or there is no date.
pub fn read(
    site: &NodeName,
    body: &[u8],
    date: Option<&str>,
    now: EpochMs,
    accepted: &Accepted,
    limits: Limits,
) -> Result<Pulled, AnswerError> {
    let mut reader = Reader::new(body, limits)?;
    let date = date
        .and_then(EpochMs::from_http_date)
        .ok_or(AnswerError::NoDate)?;
    let mut rows = Vec::new();
    let mut refused = Counts::default();
    while let Some(item) = reader.next_item() {
        let Item::Sample(sample) = item else { continue };
        // A site serves all its gauges. What nobody asked it for is no fault of its, and is not counted as one.
        let Some(scale) = accepted.scale(sample.name) else {
            continue;
        };
        let age = is_on(scale, &sample).and_then(|()| age(&sample, date));
        match age.and_then(|age| row(site, &sample, now.before(age))) {
            Ok(row) => rows.push(row),
            Err(refusal) => refused.add(refusal),
        }
    }
    rows.sort_by(Row::order); // stable: of equal rows the first one read stays
    rows.dedup_by(|later, first| {
        let same = later.order(first).is_eq();
        if same {
            refused.add(Refusal::Repeated);
        }
        same
    });
    let mut providers = BTreeSet::new();
    rows.retain(|row: &Row| {
        // Rows come by provider, so the first 64 that are met are the first by name.
        let stays = providers.contains(&row.provider) || providers.len() < MOST_PROVIDERS;
        if stays {
            providers.insert(row.provider.clone());
        } else {
            refused.add(Refusal::TooManyProviders);
        }
        stays
    });
    Ok(Pulled {
        rows,
        refused,
        flaws: reader.into_flaws(),
    })
}

fn is_on(scale: Scale, sample: &Sample<'_, '_>) -> Result<(), Refusal> {
    if scale.holds(sample.value) {
        Ok(())
    } else {
        Err(Refusal::Value)
    }
}

/// How old a sample is by its own machine's clock, in milliseconds.
pub(super) fn age(sample: &Sample<'_, '_>, date: EpochMs) -> Result<i64, Refusal> {
    let age = date.since(sample.stamp.ok_or(Refusal::NoStamp)?);
    if age < -SLACK_MS {
        Err(Refusal::Future)
    } else if age > OLDEST_MS {
        Err(Refusal::Old)
    } else {
        Ok(age.max(0))
    }
}

pub(super) fn row(
    site: &NodeName,
    sample: &Sample<'_, '_>,
    stamp: EpochMs,
) -> Result<Row, Refusal> {
    let of = |name: &str| {
        let label = sample.labels.iter().find(|label| label.name == name);
        label.map(|label| label.value.as_ref())
    };
    if of(SITE).is_some_and(|named| named != site.as_str()) {
        return Err(Refusal::Site);
    }
    let provider = of(PROVIDER).ok_or(Refusal::Provider)?;
    let provider = ProviderName::new(provider).map_err(|_| Refusal::Provider)?;
    let labels = sample
        .labels
        .iter()
        .filter(|label| !matches!(label.name, SITE | PROVIDER));
    let labels = labels.map(|label| {
        let name = LabelName::new(label.name).map_err(|_| Refusal::Labels)?;
        Ok((name, Box::from(label.value.as_ref())))
    });
    let labels = labels.collect::<Result<Vec<_>, Refusal>>()?;
    Ok(Row {
        site: site.clone(),
        provider,
        name: MetricName::new(sample.name).map_err(|_| Refusal::Labels)?,
        labels: Labels::new(labels).map_err(|_| Refusal::Labels)?,
        value: sample.value,
        stamp,
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::signals::contract::scrape;
    use crate::signals::query::Query;
    use crate::signals::response::respond;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    /// What [`DATE`] is, in milliseconds.
    const PEERS: i64 = 784_111_777_000;
    /// This machine's clock is an hour ahead of the peer's.
    const NOW: EpochMs = EpochMs::new(PEERS + 3_600_000);

    fn site() -> NodeName {
        NodeName::new("atlas").unwrap()
    }

    fn pulled(body: &str) -> Pulled {
        read(
            &site(),
            body.as_bytes(),
            Some(DATE),
            NOW,
            &Accepted::contract(),
            Limits::CONTRACT,
        )
        .unwrap()
    }

    fn shown(body: &str) -> String {
        let pulled = pulled(body);
        let mut text = String::new();
        for row in &pulled.rows {
            let mut line = String::new();
            row.write(&mut line);
            let age = row.stamp.age_at(NOW);
            writeln!(text, "{} [{age} ms]", line.trim_end()).unwrap();
        }
        for (reason, count) in pulled.refused.iter() {
            writeln!(text, "{} {count}", reason.as_str()).unwrap();
        }
        text
    }

    /// A line of the ready metric.
    fn ready(labels: &str, value: &str, stamp: i64) -> String {
        format!("grid_provider_ready{{{labels}}} {value} {stamp}\n")
    }

    #[test]
    fn a_row_is_kept_under_the_verified_site_with_an_age_that_no_clock_spoils() {
        let body = ready(
            "grid_provider=\"pool\",grid_site=\"atlas\"",
            "1",
            PEERS - 2_500,
        ) + &ready("grid_provider=\"other\"", "0.5", PEERS + 1_000);
        insta::assert_snapshot!(shown(&body), @r#"
        grid_provider_ready{grid_provider="other",grid_site="atlas"} 0.5 784115377000 [0 ms]
        grid_provider_ready{grid_provider="pool",grid_site="atlas"} 1 784115374500 [2500 ms]
        "#);
    }

    #[test]
    fn every_reason_is_counted_and_costs_no_other_row() {
        let own = "grid_provider=\"pool\",grid_site=\"atlas\"";
        let good = ready(own, "1", PEERS);
        for (refused, body) in [
            (
                "site",
                ready("grid_provider=\"pool\",grid_site=\"borealis\"", "1", PEERS),
            ),
            ("provider", ready("grid_site=\"atlas\"", "1", PEERS)),
            ("provider", ready("grid_provider=\"../pool\"", "1", PEERS)),
            ("provider", ready("grid_provider=\"\"", "1", PEERS)),
            ("value", ready(own, "1.5", PEERS)),
            ("value", ready(own, "-1", PEERS)),
            ("value", ready(own, "NaN", PEERS)),
            (
                "value",
                format!("llm_d_epp_average_queue_size{{{own}}} +Inf {PEERS}\n"),
            ),
            ("no_stamp", format!("grid_provider_ready{{{own}}} 1\n")),
            ("future", ready(own, "1", PEERS + 1_001)),
            ("future", ready(own, "1", i64::MAX)),
            ("old", ready(own, "1", PEERS - OLDEST_MS - 1)),
            ("old", ready(own, "1", i64::MIN)),
            ("repeated", ready(own, "0", PEERS)),
        ] {
            let body = format!("{good}{body}");
            assert_eq!(
                shown(&body),
                format!(
                    "{} [0 ms]\n{refused} 1\n",
                    good.trim_end()
                        .replace(&PEERS.to_string(), &NOW.get().to_string())
                ),
                "{body}"
            );
        }
        let labels: Vec<String> = (0..63).map(|n| format!("l{n}=\"\"")).collect();
        let body = ready(
            &format!("{},grid_provider=\"p\"", labels.join(",")),
            "1",
            PEERS,
        );
        assert_eq!(shown(&body), "labels 1\n");
        let body = ready(&format!("{own},__name__=\"other\""), "1", PEERS);
        assert_eq!(shown(&body), "labels 1\n");
        assert_eq!(pulled("broken\n").flaws.total(), 1);
        assert!(!shown(&ready(own, "1", PEERS - OLDEST_MS)).contains("old"));
    }

    #[test]
    fn a_metric_that_nobody_asked_for_is_neither_taken_nor_counted() {
        let own = "grid_provider=\"pool\"";
        for odd in ["1", "-1", "NaN"] {
            let body = format!("go_goroutines{{{own}}} {odd} {PEERS}\nrabbitmq_x {odd}\n");
            assert_eq!(shown(&body), "");
        }
    }

    #[test]
    fn the_first_64_providers_by_name_are_kept_wherever_they_stand() {
        let mut body = String::new();
        for n in (0..70).rev() {
            body += &ready(&format!("grid_provider=\"p{n:02}\""), "1", PEERS);
            body += &format!("llm_d_epp_ready_endpoints{{grid_provider=\"p{n:02}\"}} 2 {PEERS}\n");
        }
        let pulled = pulled(&body);
        assert_eq!(pulled.rows.len(), 128);
        assert_eq!(pulled.refused.of(Refusal::TooManyProviders), 12);
        let last = pulled.rows.last().unwrap();
        assert_eq!(last.provider.as_str(), "p63");
    }

    #[test]
    fn an_answer_without_a_date_is_refused_whole() {
        for date in [None, Some(""), Some("yesterday")] {
            let read = read(
                &site(),
                b"",
                date,
                NOW,
                &Accepted::contract(),
                Limits::CONTRACT,
            );
            assert_eq!(read, Err(AnswerError::NoDate));
        }
    }

    #[test]
    fn what_one_site_serves_the_other_takes_whole() {
        let body = "\
# TYPE inference_pool_average_queue_size gauge
inference_pool_average_queue_size{name=\"a\\\"b\",grid_site=\"elsewhere\"} 3.25
grid_provider_ready 1
";
        let provider = ProviderName::new("pool").unwrap();
        let theirs = EpochMs::new(PEERS + 999); // within the second of their Date
        let scrape = scrape(
            &site(),
            &provider,
            body.as_bytes(),
            theirs,
            Limits::CONTRACT,
        )
        .unwrap();
        let response = respond(&scrape.rows, &Query::default(), theirs, Limits::CONTRACT);
        assert_eq!(response.date, DATE);
        let pulled = pulled(&response.body);
        assert!(pulled.refused.is_empty() && pulled.flaws.is_empty());
        let expected: Vec<Row> = scrape
            .rows
            .into_iter()
            .map(|row| Row { stamp: NOW, ..row })
            .collect();
        assert_eq!(pulled.rows, expected);
    }
}
