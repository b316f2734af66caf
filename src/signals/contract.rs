//! What crosses sites: which metrics a peer takes, and which samples a site serves of what it scraped.
//!
//! Only gauges and untyped samples are served, of a metric by whatever name; of a peer's, only those by an accepted name
//! are taken. A name that ends in `_bucket`, `_sum` or `_count` is not served, whatever its type: it is part of a
//! distribution, or looks so to whoever reads it. A metric whose `TYPE` lines contradict each other is not served.
//!
//! Who is measured is said by the server: `grid_site` and `grid_provider` are its own. A label of these names that the
//! provider wrote is kept as `exported_grid_site` and `exported_grid_provider`; where that is taken too, `exported_` is
//! put before it again until it is free, as Prometheus does it.
//!
//! A stamp that the provider wrote is kept unless it lies after the scrape: then the scrape's holds, since no clock but
//! this machine's may put a sample in the future. One older than 24 hours is left out: peers would, and the response's
//! `Age` speaks of what is of use.

mod accepted;

pub use accepted::{Accepted, Scale};

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::clock::EpochMs;
use super::counts::Counts;
use super::exposition::{ExpositionError, Flaw, Item, Kind, Label, Limits, Reader, Sample};
use super::row::{Labels, PROVIDER, Row, SITE};
use crate::words::NodeName;
use crate::words::{LabelName, MetricName, ProviderName};

/// The oldest row that is served or taken, in milliseconds: 24 hours.
pub const OLDEST_MS: i64 = 24 * 60 * 60 * 1000;

/// Why a sample that was read is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Withheld {
    /// It is a counter's, a histogram's, a summary's, or of contradicting types.
    Kind,
    /// Its name ends as a distribution's part does.
    Suffix,
    /// Its value is not finite.
    NotFinite,
    /// It is older than 24 hours.
    Old,
    /// With the server's two it has more labels than a reader takes, one of too long a name, or one named `__name__`.
    Labels,
    /// The same metric with the same labels was there before it.
    Repeated,
}

impl Withheld {
    /// The word for a counter's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Suffix => "suffix",
            Self::NotFinite => "not_finite",
            Self::Old => "old",
            Self::Labels => "labels",
            Self::Repeated => "repeated",
        }
    }
}

/// What a site serves of one scrape.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scrape {
    /// The rows, in the order of [`Row::order`].
    pub rows: Vec<Row>,
    /// Lines that could not be read.
    pub flaws: Counts<Flaw>,
    /// Samples that were read and are not served.
    pub withheld: Counts<Withheld>,
}

impl Scrape {
    /// How many samples were read, whether they are served or not: none, of what is no exposition at all.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let served = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        served.saturating_add(self.withheld.total())
    }
}

/// Makes rows of what `provider` answered at `site` when it was scraped at `scraped`.
///
/// # Errors
/// When the body is over its bound.
pub fn scrape(
    site: &NodeName,
    provider: &ProviderName,
    body: &[u8],
    scraped: EpochMs,
    limits: Limits,
) -> Result<Scrape, ExpositionError> {
    let mut reader = Reader::new(body, limits)?;
    let mut types: BTreeMap<&str, Kind> = BTreeMap::new();
    let mut withheld = Counts::default();
    let mut rows = Vec::new();
    while let Some(item) = reader.next_item() {
        match item {
            Item::Type { name, kind } => {
                let known = types.entry(name).or_insert(kind);
                if *known != kind {
                    *known = Kind::Other;
                }
            }
            Item::Sample(sample) => {
                // A type may still follow; one that is known spares the row.
                let known = types.get(sample.name).copied().unwrap_or(Kind::Untyped);
                match served(&sample, known, scraped)
                    .and_then(|stamp| row(site, provider, &sample, stamp))
                {
                    Ok(row) => rows.push(row),
                    Err(reason) => withheld.add(reason),
                }
            }
        }
    }
    rows.retain(|row: &Row| {
        let stays = types
            .get(row.name.as_str())
            .is_none_or(|kind| is_served(*kind));
        if !stays {
            withheld.add(Withheld::Kind);
        }
        stays
    });
    rows.sort_by(Row::order); // stable: of equal rows the first one read stays
    rows.dedup_by(|later, first| {
        let same = later.order(first).is_eq();
        if same {
            withheld.add(Withheld::Repeated);
        }
        same
    });
    Ok(Scrape {
        rows,
        flaws: reader.into_flaws(),
        withheld,
    })
}

const fn is_served(kind: Kind) -> bool {
    matches!(kind, Kind::Gauge | Kind::Untyped)
}

/// The stamp of a sample that is served.
fn served(sample: &Sample<'_, '_>, kind: Kind, scraped: EpochMs) -> Result<EpochMs, Withheld> {
    let suffixes = ["_bucket", "_sum", "_count"];
    if !is_served(kind) {
        Err(Withheld::Kind)
    } else if suffixes.iter().any(|end| sample.name.ends_with(end)) {
        Err(Withheld::Suffix)
    } else if !sample.value.is_finite() {
        Err(Withheld::NotFinite)
    } else {
        let stamp = sample.stamp.map_or(scraped, |own| own.min(scraped));
        if scraped.since(stamp) > OLDEST_MS {
            Err(Withheld::Old)
        } else {
            Ok(stamp)
        }
    }
}

/// The row of a sample, attributed to its site and its provider.
fn row(
    site: &NodeName,
    provider: &ProviderName,
    sample: &Sample<'_, '_>,
    stamp: EpochMs,
) -> Result<Row, Withheld> {
    let taken: BTreeSet<&str> = if sample.labels.iter().any(is_the_servers) {
        sample.labels.iter().map(|label| label.name).collect()
    } else {
        BTreeSet::new()
    };
    let labels = sample.labels.iter().map(|label| {
        let mut name = Cow::Borrowed(label.name);
        if is_the_servers(label) {
            while taken.contains(name.as_ref()) {
                name = Cow::Owned(format!("exported_{name}"));
            }
        }
        let name = LabelName::new(&name).map_err(|_| Withheld::Labels)?;
        Ok((name, Box::from(label.value.as_ref())))
    });
    let labels = labels.collect::<Result<Vec<_>, Withheld>>()?;
    Ok(Row {
        site: site.clone(),
        provider: provider.clone(),
        name: MetricName::new(sample.name).map_err(|_| Withheld::Labels)?,
        labels: Labels::new(labels).map_err(|_| Withheld::Labels)?,
        value: sample.value,
        stamp,
    })
}

fn is_the_servers(label: &Label<'_>) -> bool {
    matches!(label.name, SITE | PROVIDER)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const SCRAPED: EpochMs = EpochMs::new(1_700_000_000_000);

    fn scraped(body: &str) -> String {
        let site = NodeName::new("atlas").unwrap();
        let provider = ProviderName::new("broker").unwrap();
        let scrape = scrape(&site, &provider, body.as_bytes(), SCRAPED, Limits::CONTRACT).unwrap();
        let mut text = String::new();
        for row in &scrape.rows {
            row.write(&mut text);
        }
        for (reason, count) in scrape.withheld.iter() {
            writeln!(text, "{} {count}", reason.as_str()).unwrap();
        }
        for (flaw, count) in scrape.flaws.iter() {
            writeln!(text, "flaw {} {count}", flaw.as_str()).unwrap();
        }
        text
    }

    #[test]
    fn gauges_and_untyped_samples_are_served_and_nothing_else_is() {
        let body = "\
# TYPE queue gauge
queue{q=\"b\"} 2
queue{q=\"a\"} 1
untyped 3
# TYPE sent counter
sent 4
# TYPE took histogram
took_bucket{le=\"1\"} 5
took_sum 6
took_count 7
# TYPE lasted summary
lasted{quantile=\"0.5\"} 8
# TYPE info info
info 9
not_a_number NaN
endless +Inf
negative -1
broken
";
        insta::assert_snapshot!(scraped(body), @r#"
        negative{grid_provider="broker",grid_site="atlas"} -1 1700000000000
        queue{grid_provider="broker",grid_site="atlas",q="a"} 1 1700000000000
        queue{grid_provider="broker",grid_site="atlas",q="b"} 2 1700000000000
        untyped{grid_provider="broker",grid_site="atlas"} 3 1700000000000
        kind 3
        suffix 3
        not_finite 2
        flaw syntax 1
        "#);
    }

    #[test]
    fn what_is_no_exposition_has_no_sample() {
        let samples = |body: &str| {
            let (site, provider) = ("atlas", "broker");
            let site = NodeName::new(site).unwrap();
            let provider = ProviderName::new(provider).unwrap();
            let scrape = scrape(&site, &provider, body.as_bytes(), SCRAPED, Limits::CONTRACT);
            scrape.unwrap().samples()
        };
        for nothing in [
            "",
            "# HELP a b\n# TYPE a gauge\n",
            "<html>\n<body>\nno metrics\n</body>\n</html>\n",
            "# TYPE a gauge\r\na 1\r\na{b=\"c\"} 2\r\n",
        ] {
            assert_eq!(samples(nothing), 0, "{nothing}");
        }
        assert_eq!(samples("a 1\n"), 1);
        assert_eq!(samples("# TYPE a counter\na 1\n"), 1);
    }

    #[test]
    fn a_type_that_follows_its_samples_holds_for_them() {
        let body = "sent 1\ntold 2\n# TYPE sent counter\n# TYPE told gauge\n";
        insta::assert_snapshot!(scraped(body), @r#"
        told{grid_provider="broker",grid_site="atlas"} 2 1700000000000
        kind 1
        "#);
    }

    #[test]
    fn types_that_contradict_each_other_have_the_metric_left_out() {
        let twice = "# TYPE a gauge\n# TYPE a gauge\na 1\n";
        assert!(scraped(twice).starts_with("a{"));
        let contradicting = "# TYPE a gauge\na 1\n# TYPE a counter\na 1\n";
        assert_eq!(scraped(contradicting), "kind 2\n");
        let otherwise = "# TYPE a counter\na 1\n# TYPE a gauge\na 1\n";
        assert_eq!(scraped(otherwise), "kind 2\n");
    }

    #[test]
    fn a_provider_cannot_say_who_it_is() {
        let body = "\
m{grid_site=\"borealis\",grid_provider=\"other\",exported_grid_provider=\"third\"} 1
";
        insta::assert_snapshot!(scraped(body), @r#"m{exported_exported_grid_provider="other",exported_grid_provider="third",exported_grid_site="borealis",grid_provider="broker",grid_site="atlas"} 1 1700000000000"#);
    }

    #[test]
    fn a_provider_cannot_say_another_metric_than_it_shows() {
        let body = "m{__name__=\"grid_provider_ready\"} 1\nm{a=\"1\"} 2\n";
        insta::assert_snapshot!(scraped(body), @r#"
        m{a="1",grid_provider="broker",grid_site="atlas"} 2 1700000000000
        labels 1
        "#);
    }

    #[test]
    fn a_stamp_is_kept_unless_it_is_of_the_future_or_of_another_day() {
        let body = "\
past 1 1699999990000
future 1 1700000000001
edge 1 1699913600000
old 1 1699913599999
first 1 -9223372036854775808
";
        insta::assert_snapshot!(scraped(body), @r#"
        edge{grid_provider="broker",grid_site="atlas"} 1 1699913600000
        future{grid_provider="broker",grid_site="atlas"} 1 1700000000000
        past{grid_provider="broker",grid_site="atlas"} 1 1699999990000
        old 2
        "#);
    }

    #[test]
    fn a_row_has_no_more_labels_than_a_peer_reads() {
        let labels = |count: usize| {
            let labels: Vec<String> = (0..count).map(|n| format!("l{n}=\"\"")).collect();
            format!("m{{{}}} 1\n", labels.join(","))
        };
        let line = scraped(&labels(62));
        let mut reader = Reader::new(line.as_bytes(), Limits::CONTRACT).unwrap();
        assert!(reader.next_item().is_some());
        assert_eq!(scraped(&labels(63)), "labels 1\n");
    }

    #[test]
    fn of_rows_that_say_the_same_the_first_is_served() {
        insta::assert_snapshot!(scraped("m{a=\"1\",b=\"2\"} 1\nm{b=\"2\",a=\"1\"} 2\nm 3\n"), @r#"
        m{grid_provider="broker",grid_site="atlas"} 3 1700000000000
        m{a="1",b="2",grid_provider="broker",grid_site="atlas"} 1 1700000000000
        repeated 1
        "#);
    }
}
