//! The ledger against a second reading of its text: random interleavings of reporting processes, an operator and a clock
//! go through `Ledger` and through the model in `evidence_model/model.rs`, and after each step every verdict, every
//! record and the condition are the same.
//!
//! `GRID_CASES=n` runs n interleavings (default below), `GRID_SEED=n` other ones. What fails is shrunk before it is shown.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

#[path = "evidence_model/coverage.rs"]
mod coverage;
#[path = "evidence_model/interleaving.rs"]
mod interleaving;
#[path = "evidence_model/model.rs"]
mod model;
#[path = "evidence_model/plan.rs"]
mod plan;

use std::cell::RefCell;
use std::time::Instant;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use coverage::{Seen, TO_SEE};
use interleaving::Interleaving;

/// How many interleavings a run goes through where nothing else is said.
const CASES: u32 = 2_000;

/// They are drawn in so many streams, however many cores there are, so that a run can be repeated elsewhere.
const STREAMS: u32 = 4;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// One stream of interleavings, and what it came to.
fn stream(seed: u64, cases: u32) -> Result<Seen, String> {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let seen = RefCell::new(Seen::new());
    let failed = TestRunner::new_with_rng(config, rng).run(&plan::plan(), |steps| {
        let mut interleaving = Interleaving::new();
        for step in &steps {
            interleaving.goes_on(step)?;
        }
        let mut seen = seen.borrow_mut();
        for (what, count) in interleaving.seen {
            *seen.entry(what).or_default() += count;
        }
        Ok(())
    });
    match failed {
        Ok(()) => Ok(seen.into_inner()),
        Err(why) => Err(format!("in the stream of seed {seed}: {why}")),
    }
}

#[test]
fn the_ledger_does_what_its_text_says_in_every_interleaving() {
    let cases = number("GRID_CASES").map_or(CASES, |cases| u32::try_from(cases).unwrap());
    let first = number("GRID_SEED").unwrap_or(0) * u64::from(STREAMS);
    let began = Instant::now();
    let streams: Vec<Result<Seen, String>> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..STREAMS)
            .map(|nth| scope.spawn(move || stream(first + u64::from(nth), cases / STREAMS)))
            .collect();
        started.into_iter().map(|s| s.join().unwrap()).collect()
    });
    let mut seen = Seen::new();
    for stream in streams {
        for (what, count) in stream.unwrap_or_else(|why| panic!("{why}")) {
            *seen.entry(what).or_default() += count;
        }
    }
    for (what, count) in &seen {
        println!("{count:10} {what}");
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{cases} interleavings in {seconds:.1} s");
    if cases >= CASES {
        let often = |what: &str| seen.get(what).copied().unwrap_or_default();
        let missed: Vec<_> = TO_SEE
            .iter()
            .filter(|(what, least)| often(what) < least * u64::from(cases) / 1_000)
            .map(|(what, least)| format!("{what}: {} (at least {least} in 1,000)", often(what)))
            .collect();
        assert!(missed.is_empty(), "too seldom seen: {missed:#?}");
        let unknown: Vec<_> = seen
            .keys()
            .filter(|what| TO_SEE.iter().all(|(known, _)| known != *what))
            .collect();
        assert!(unknown.is_empty(), "not in the list: {unknown:?}");
    }
}
