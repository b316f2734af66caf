//! A row: one sample of one provider at one site, and the line on which it is served.
//!
//! Invariant: a row holds no label named `grid_site` or `grid_provider` but its site and its provider, none named
//! `__name__`, and as many labels
//! as a reader takes. What [`Row::write`] writes, [`super::exposition`] reads back as the same row.

use std::cmp::Ordering;

use super::clock::EpochMs;
use super::exposition::Limits;
use super::number;
use crate::words::NodeName;
use crate::words::{LabelName, MetricName, ProviderName};

/// The label that names the site, set by whoever serves.
pub const SITE: &str = "grid_site";
/// The label that names the provider, set by whoever serves.
pub const PROVIDER: &str = "grid_provider";

/// The label as which readers keep a metric's name: whoever wrote it would say another metric than the row's.
const NAME: &str = "__name__";

/// How many labels a row may have besides the two that the server sets.
pub const MOST_LABELS: usize = Limits::CONTRACT.labels - 2;

/// Why labels are not those of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// Too many.
    #[error("a row has at most {MOST_LABELS} labels of its own")]
    TooMany,
    /// One stands there twice.
    #[error("a label stands there twice")]
    Repeated,
    /// One of the server's, or the metric's name.
    #[error("{SITE} and {PROVIDER} are set by the server, and {NAME} is the metric's own")]
    Reserved,
}

/// The labels of a row, besides site and provider: sorted, each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Labels(Vec<(LabelName, Box<str>)>);

impl Labels {
    /// Takes labels, in any order.
    ///
    /// # Errors
    /// When there are too many, one twice, or one of the server's.
    pub fn new(mut labels: Vec<(LabelName, Box<str>)>) -> Result<Self, LabelsError> {
        if labels.len() > MOST_LABELS {
            return Err(LabelsError::TooMany);
        }
        labels.sort_unstable();
        let mut pairs = labels.iter().zip(labels.iter().skip(1));
        if pairs.any(|((first, _), (second, _))| first == second) {
            return Err(LabelsError::Repeated);
        }
        if labels
            .iter()
            .any(|(name, _)| matches!(name.as_str(), SITE | PROVIDER | NAME))
        {
            return Err(LabelsError::Reserved);
        }
        Ok(Self(labels))
    }

    /// The labels, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref()))
    }
}

/// One sample of one provider at one site.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The site that observes it.
    pub site: NodeName,
    /// The provider that it is about.
    pub provider: ProviderName,
    /// The metric.
    pub name: MetricName,
    /// Its labels.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
    /// When it was taken, by the clock of whoever holds the row.
    pub stamp: EpochMs,
}

impl Row {
    /// The order of rows on a page: by site, provider, metric and labels. Rows that are equal here say the same thing of
    /// the same thing.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let (site, provider) = (&self.site, &self.provider);
        (site, provider, &self.name, &self.labels).cmp(&(
            &other.site,
            &other.provider,
            &other.name,
            &other.labels,
        ))
    }

    /// Writes `name{sorted labels} value epoch_ms` and a line feed.
    pub fn write(&self, out: &mut String) {
        out.push_str(self.name.as_str());
        out.push('{');
        let set = [
            (PROVIDER, self.provider.as_str()),
            (SITE, self.site.as_str()),
        ];
        let mut set = set.into_iter().peekable();
        let mut first = true;
        for (name, value) in self.labels.iter() {
            while let Some((name, value)) = set.next_if(|(own, _)| *own < name) {
                label(out, &mut first, name, value);
            }
            label(out, &mut first, name, value);
        }
        for (name, value) in set {
            label(out, &mut first, name, value);
        }
        out.push_str("} ");
        number::write(out, self.value);
        out.push(' ');
        out.push_str(&self.stamp.get().to_string());
        out.push('\n');
    }
}

fn label(out: &mut String, first: &mut bool, name: &str, value: &str) {
    if !std::mem::take(first) {
        out.push(',');
    }
    out.push_str(name);
    out.push_str("=\"");
    for character in value.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signals::exposition::{Item, Reader};
    use crate::signals::sample::row;

    fn written(row: &Row) -> String {
        let mut line = String::new();
        row.write(&mut line);
        line
    }

    #[test]
    fn a_line_has_its_labels_sorted_and_escaped() {
        let mut row = row("atlas", "broker", "queue_size", 2.5, 1_700_000_000_123);
        row.labels = Labels::new(vec![
            (LabelName::new("vhost").unwrap(), "a\"b\\c\nd".into()),
            (LabelName::new("gz").unwrap(), "}".into()),
            (LabelName::new("a").unwrap(), "".into()),
            (LabelName::new("grid_q").unwrap(), "é".into()),
        ])
        .unwrap();
        insta::assert_snapshot!(
            written(&row),
            @r#"queue_size{a="",grid_provider="broker",grid_q="é",grid_site="atlas",gz="}",vhost="a\"b\\c\nd"} 2.5 1700000000123"#
        );
    }

    #[test]
    fn labels_that_a_reader_would_refuse_are_none() {
        let label = |name: &str| (LabelName::new(name).unwrap(), Box::from(""));
        assert_eq!(
            Labels::new(vec![label("a"), label("a")]),
            Err(LabelsError::Repeated)
        );
        for reserved in [SITE, PROVIDER] {
            assert_eq!(
                Labels::new(vec![label(reserved)]),
                Err(LabelsError::Reserved)
            );
        }
        let many = (0..=MOST_LABELS).map(|n| label(&format!("l{n}"))).collect();
        assert_eq!(Labels::new(many), Err(LabelsError::TooMany));
    }

    prop_compose! {
        fn any_row()(
            provider in "[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?(\\.[a-z0-9]{1,4})?",
            site in "[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?",
            name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,20}",
            labels in proptest::collection::btree_map("[a-zA-Z_][a-zA-Z0-9_]{0,12}", any::<String>(), 0..6),
            value in proptest::num::f64::ANY,
            stamp in any::<i64>(),
        ) -> Row {
            let labels = labels.into_iter().map(|(name, value)| (LabelName::new(&name).unwrap(), value.into()));
            Row {
                site: NodeName::new(&site).unwrap(),
                provider: ProviderName::new(&provider).unwrap(),
                name: MetricName::new(&name).unwrap(),
                labels: Labels::new(labels.collect()).unwrap(),
                value,
                stamp: EpochMs::new(stamp),
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same_row(row in any_row()) {
            let line = written(&row);
            let mut reader = Reader::new(line.as_bytes(), Limits::CONTRACT).unwrap();
            let Some(Item::Sample(sample)) = reader.next_item() else {
                panic!("{line}");
            };
            prop_assert_eq!(sample.name, row.name.as_str());
            prop_assert!(sample.value.to_bits() == row.value.to_bits() || sample.value.is_nan() && row.value.is_nan());
            prop_assert_eq!(sample.stamp, Some(row.stamp));
            let (set, own): (Vec<_>, Vec<_>) = sample
                .labels
                .iter()
                .map(|label| (label.name, label.value.as_ref()))
                .partition(|(name, _)| matches!(*name, SITE | PROVIDER));
            prop_assert_eq!(set, vec![(PROVIDER, row.provider.as_str()), (SITE, row.site.as_str())]);
            prop_assert_eq!(own, row.labels.iter().collect::<Vec<_>>());
            prop_assert_eq!(reader.next_item(), None);
            prop_assert!(reader.flaws().is_empty());
        }
    }
}
