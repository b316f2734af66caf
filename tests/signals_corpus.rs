//! The seeds of the exposition's fuzzing, each of which once stood for a case that a parser gets wrong: what is read of
//! them, what is served of them, and what a poller takes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers are tests too"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;

use grid::signals::contract::{Accepted, OLDEST_MS, scrape};
use grid::signals::exposition::{Item, Limits, Reader};
use grid::signals::query::Query;
use grid::signals::reading::{self, AnswerError};
use grid::signals::response::respond;
use grid::signals::{EpochMs, ProviderName};
use grid::words::NodeName;

const NOW: EpochMs = EpochMs::new(784_111_777_000);

fn corpus() -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/exposition");
    let files = std::fs::read_dir(folder).unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // What was found by fuzzing has a digest for a name; fuzz_corpus.rs runs it.
        let is_seed = name.ends_with(".txt");
        is_seed.then(|| (name, std::fs::read(entry.path()).unwrap()))
    });
    files.collect()
}

#[test]
fn every_seed_is_read_as_before() {
    let mut seen = String::new();
    for (name, body) in corpus() {
        let mut reader = Reader::new(&body, Limits::CONTRACT).unwrap();
        let (mut types, mut samples) = (0, 0);
        while let Some(item) = reader.next_item() {
            match item {
                Item::Type { .. } => types += 1,
                Item::Sample(_) => samples += 1,
            }
        }
        write!(seen, "{name}: {types} types, {samples} samples").unwrap();
        for (flaw, count) in reader.flaws().iter() {
            write!(seen, ", {} {count}", flaw.as_str()).unwrap();
        }
        let site = NodeName::new("atlas").unwrap();
        let provider = ProviderName::new("pool").unwrap();
        let scrape = scrape(&site, &provider, &body, NOW, Limits::CONTRACT).unwrap();
        write!(seen, "; {} served", scrape.rows.len()).unwrap();
        for (reason, count) in scrape.withheld.iter() {
            write!(seen, ", {} {count}", reason.as_str()).unwrap();
        }
        seen.push('\n');
    }
    insta::assert_snapshot!(seen, @r#"
    bad-escapes.txt: 0 types, 1 samples, unterminated 1, syntax 2; 1 served
    blanks.txt: 1 types, 3 samples, type 1; 2 served, old 1
    broke-off.txt: 0 types, 1 samples, unterminated 1; 1 served
    colons.txt: 0 types, 3 samples; 3 served
    controls.txt: 0 types, 2 samples, value 1, syntax 1; 2 served
    empty.txt: 0 types, 0 samples; 0 served
    escapes.txt: 0 types, 1 samples; 1 served
    halfway.txt: 0 types, 4 samples; 4 served
    histogram.txt: 2 types, 7 samples; 0 served, kind 1, suffix 6
    impostor.txt: 0 types, 2 samples; 2 served
    long-line.txt: 0 types, 1 samples, line_too_long 1; 1 served
    long-name.txt: 0 types, 1 samples, name_too_long 1; 1 served
    many-labels.txt: 0 types, 1 samples, too_many_labels 1; 0 served, labels 1
    newline-only.txt: 0 types, 0 samples; 0 served
    not-utf8.txt: 0 types, 1 samples, not_utf8 2, syntax 1; 1 served
    open-braces.txt: 0 types, 0 samples, syntax 13; 0 served
    openmetrics.txt: 2 types, 2 samples, timestamp 1, syntax 1; 1 served, kind 1
    ordinary.txt: 2 types, 3 samples; 3 served
    peer.txt: 0 types, 4 samples; 4 served
    repeated-labels.txt: 0 types, 1 samples, repeated_label 2; 1 served
    timestamps.txt: 0 types, 4 samples, timestamp 3, syntax 1; 1 served, old 3
    type-after-samples.txt: 2 types, 2 samples; 1 served, kind 1
    types-contradict.txt: 2 types, 2 samples; 0 served, kind 2
    values.txt: 0 types, 10 samples, value 3; 6 served, not_finite 4
    windows.txt: 1 types, 0 samples, value 1, timestamp 1; 0 served
    "#);
}

#[test]
fn what_is_served_of_a_seed_reads_back_without_a_flaw() {
    let (mut rows, mut lines) = (0, 0);
    for (name, body) in corpus() {
        let site = NodeName::new("atlas").unwrap();
        let provider = ProviderName::new("pool").unwrap();
        let scrape = scrape(&site, &provider, &body, NOW, Limits::CONTRACT).unwrap();
        let response = respond(&scrape.rows, &Query::default(), NOW, Limits::CONTRACT);
        assert_eq!(response.left_out, 0, "{name}");
        let mut reader = Reader::new(response.body.as_bytes(), Limits::CONTRACT).unwrap();
        while reader.next_item().is_some() {
            lines += 1;
        }
        assert!(reader.flaws().is_empty(), "{name}: {}", response.body);
        rows += scrape.rows.len();
    }
    assert!(rows > 20);
    assert_eq!(rows, lines);
}

#[test]
fn a_poller_takes_every_seed_as_a_peers_answer() {
    let site = NodeName::new("atlas").unwrap();
    let take = |body: &[u8], date: Option<&str>| {
        let accepted = Accepted::contract();
        reading::read(&site, body, date, NOW, &accepted, Limits::CONTRACT)
    };
    let mut seen = String::new();
    for (name, body) in corpus() {
        assert_eq!(take(&body, None), Err(AnswerError::NoDate));
        let pulled = take(&body, Some("Sun, 06 Nov 1994 08:49:37 GMT")).unwrap();
        if pulled.rows.is_empty() {
            continue;
        }
        write!(seen, "{name}:").unwrap();
        for (refusal, count) in pulled.refused.iter() {
            write!(seen, " {} {count}", refusal.as_str()).unwrap();
        }
        seen.push('\n');
        for row in pulled.rows {
            row.write(&mut seen);
        }
    }
    insta::assert_snapshot!(seen, @r#"
    peer.txt: site 1 value 1 future 1
    grid_provider_ready{grid_provider="pool",grid_site="atlas"} 1 784111777000
    "#);
}

/// Bodies whose lines are nearly right: made of the pieces that lines are made of.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("grid_provider_ready".to_owned()),
        Just("llm_d_epp_average_queue_size".to_owned()),
        Just("grid_site=\"atlas\",".to_owned()),
        Just("grid_site=\"other\"".to_owned()),
        "grid_provider=\"[a-c.]{0,2}\"".prop_map(|label| label),
        Just("exported_grid_site=\"x\",".to_owned()),
        Just("{".to_owned()),
        Just("} ".to_owned()),
        Just(" ".to_owned()),
        Just("\n".to_owned()),
        Just("# TYPE grid_provider_ready ".to_owned()),
        Just("gauge".to_owned()),
        Just("counter".to_owned()),
        "(0|1|0\\.5|-1|2|NaN|1e999)".prop_map(|value| value),
        any::<i64>().prop_map(|stamp| stamp.to_string()),
        (-2_000i64..90_000_000).prop_map(|age| NOW.get().saturating_sub(age).to_string()),
        "\\PC{0,3}".prop_map(|text| text),
    ];
    let whole = (any::<bool>(), "[a-z]{1,2}", -3..3i32, -2_000i64..90_000_000).prop_map(
        |(of_site, provider, value, age)| {
            let site = if of_site { "atlas" } else { "other" };
            let stamp = NOW.get().saturating_sub(age);
            format!("grid_provider_ready{{grid_site=\"{site}\",grid_provider=\"{provider}\"}} {value} {stamp}\n")
        },
    );
    proptest::collection::vec(prop_oneof![4 => piece, 1 => whole], 0..120)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_body_gets_anything_past_the_contract(body in nearly()) {
        let site = NodeName::new("atlas").unwrap();
        let provider = ProviderName::new("pool").unwrap();
        let scrape = scrape(&site, &provider, body.as_bytes(), NOW, Limits::CONTRACT).unwrap();
        for row in &scrape.rows {
            prop_assert!(row.value.is_finite());
            prop_assert!((0..=OLDEST_MS).contains(&NOW.since(row.stamp)));
            prop_assert!(row.site == site && row.provider == provider);
        }
        let accepted = Accepted::contract();
        let date = NOW.http_date();
        let pulled =
            reading::read(&site, body.as_bytes(), Some(&date), NOW, &accepted, Limits::CONTRACT).unwrap();
        for row in &pulled.rows {
            prop_assert!(accepted.scale(row.name.as_str()).unwrap().holds(row.value));
            prop_assert!((0..=OLDEST_MS).contains(&NOW.since(row.stamp)));
            prop_assert!(row.site == site);
        }
        // What was taken is what a poller of this site would be told, and takes whole.
        let response = respond(&pulled.rows, &Query::default(), NOW, Limits::CONTRACT);
        let again = reading::read(
            &site,
            response.body.as_bytes(),
            Some(&response.date),
            NOW,
            &accepted,
            Limits::CONTRACT,
        );
        let again = again.unwrap();
        prop_assert!(again.flaws.is_empty() && again.refused.is_empty());
        prop_assert_eq!(again.rows, pulled.rows);
    }
}
