//! A body of metrics: of a provider that is scraped, and of a peer that is polled.

use grid::signals::EpochMs;
use grid::signals::contract::{Accepted, OLDEST_MS, scrape};
use grid::signals::exposition::{Item, Limits, Reader};
use grid::signals::query::Query;
use grid::signals::reading;
use grid::signals::response::respond;
use grid::words::{NodeName, ProviderName};

const NOW: EpochMs = EpochMs::new(784_111_777_000);

/// Small ones beside the contract's, so that a small body reaches them.
const SMALL: Limits = Limits {
    body: 4096,
    line: 200,
    labels: 4,
    samples: 12,
    name: 24,
};

/// # Panics
/// When a bound or the contract is passed, or what is served or was taken is read otherwise than it was written.
pub fn check(body: &[u8]) {
    for limits in [Limits::CONTRACT, SMALL] {
        if let Ok(reader) = Reader::new(body, limits) {
            within(reader, body, limits);
        } else {
            assert!(body.len() > limits.body);
        }
    }
    if body.len() <= Limits::CONTRACT.body {
        serve(body);
        take(body);
    }
}

fn within(mut reader: Reader<'_>, body: &[u8], limits: Limits) {
    let (mut items, mut samples) = (0_u64, 0);
    while let Some(item) = reader.next_item() {
        items += 1;
        let name = match item {
            Item::Type { name, .. } => name,
            Item::Sample(sample) => {
                samples += 1;
                assert!(sample.labels.len() <= limits.labels);
                assert!(sample.labels.is_sorted_by(|a, b| a.name < b.name));
                assert!(sample.labels.iter().all(|l| l.name.len() <= limits.name));
                sample.name
            }
        };
        assert!(!name.is_empty() && name.len() <= limits.name);
    }
    assert!(samples <= limits.samples);
    let lines = body.split(|&byte| byte == b'\n').count() as u64;
    let flaws: u64 = reader.flaws().iter().map(|(_, count)| count).sum();
    // What does not end in a line feed is a flaw beside those of the line itself.
    assert!(items + flaws <= lines + 1, "{items} {flaws} {lines}");
}

fn serve(body: &[u8]) {
    let site = NodeName::new("atlas").unwrap();
    let provider = ProviderName::new("pool").unwrap();
    let scrape = scrape(&site, &provider, body, NOW, Limits::CONTRACT).unwrap();
    for row in &scrape.rows {
        assert!(row.value.is_finite());
        assert!((0..=OLDEST_MS).contains(&NOW.since(row.stamp)));
        assert!(row.site == site && row.provider == provider);
    }
    let response = respond(&scrape.rows, &Query::default(), NOW, Limits::CONTRACT);
    assert!(response.body.len() <= Limits::CONTRACT.body);
    let mut reader = Reader::new(response.body.as_bytes(), Limits::CONTRACT).unwrap();
    let mut served = 0_u64;
    while let Some(item) = reader.next_item() {
        let Item::Sample(sample) = item else {
            panic!("a TYPE line is served")
        };
        let of = |label: &str| sample.labels.iter().find(|l| l.name == label);
        assert_eq!(of("grid_site").unwrap().value, "atlas");
        assert_eq!(of("grid_provider").unwrap().value, "pool");
        served += 1;
    }
    assert!(reader.flaws().is_empty(), "{}", response.body);
    assert_eq!(served + response.left_out, scrape.rows.len() as u64);
}

fn take(body: &[u8]) {
    let site = NodeName::new("atlas").unwrap();
    let accepted = Accepted::contract();
    let date = NOW.http_date();
    let read = |body: &[u8]| {
        reading::read(&site, body, Some(&date), NOW, &accepted, Limits::CONTRACT).unwrap()
    };
    let pulled = read(body);
    for row in &pulled.rows {
        let scale = accepted.scale(row.name.as_str()).unwrap();
        assert!(scale.holds(row.value));
        assert!((0..=OLDEST_MS).contains(&NOW.since(row.stamp)));
        assert!(row.site == site);
    }
    let response = respond(&pulled.rows, &Query::default(), NOW, Limits::CONTRACT);
    if response.left_out == 0 {
        let again = read(response.body.as_bytes());
        assert!(again.flaws.is_empty() && again.refused.is_empty());
        assert_eq!(again.rows, pulled.rows);
    }
}
