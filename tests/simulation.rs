//! A simulated mesh: random declarations, histories and faults through the real rules, the real push and the real
//! store in memory; only machines and couriers are simulated (DESIGN.md, sections 3 and 4).
//!
//! `GRID_SIM_HISTORIES=n` runs n histories (default below), from `GRID_SIM_FIRST` on; `GRID_SIM_SEED=n` replays one and
//! tells every step. A history that fails is shrunk before it is printed; `GRID_SIM_SHRINK=n` sets how hard.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_wrap,
    missing_docs
)]

#[path = "simulation/courier.rs"]
mod courier;
#[path = "simulation/coverage.rs"]
mod coverage;
#[path = "simulation/deaths.rs"]
mod deaths;
#[path = "simulation/declared.rs"]
mod declared;
#[path = "simulation/eye.rs"]
mod eye;
#[path = "simulation/floor.rs"]
mod floor;
#[path = "simulation/history.rs"]
mod history;
#[path = "simulation/invariants.rs"]
mod invariants;
#[path = "simulation/machine.rs"]
mod machine;
#[path = "simulation/plan.rs"]
mod plan;
#[path = "simulation/progress.rs"]
mod progress;
#[path = "simulation/reports.rs"]
mod reports;
#[path = "simulation/waiting.rs"]
mod waiting;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use coverage::Coverage;
use history::History;
use plan::Plan;

/// How many histories a run goes through where nothing else is said: some 25 s on two idle cores.
const HISTORIES: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn tree_of(seed: u64) -> impl ValueTree<Value = Plan> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    plan::plan().new_tree(&mut runner).unwrap()
}

/// The smallest history found that fails too.
fn shrink(seed: u64) -> (Plan, String) {
    let mut tree = tree_of(seed);
    let mut smallest = (
        tree.current(),
        History::run(&tree.current(), false).expect_err("it failed before"),
    );
    let mut fails = true;
    for _ in 0..number("GRID_SIM_SHRINK").unwrap_or(4_000) {
        let moved = if fails {
            tree.simplify()
        } else {
            tree.complicate()
        };
        if !moved {
            break;
        }
        let plan = tree.current();
        match History::run(&plan, false) {
            Err(why) => {
                fails = true;
                smallest = (plan, why);
            }
            Ok(_) => fails = false,
        }
    }
    smallest
}

fn tell(seed: u64, plan: &Plan, why: &str) -> String {
    let mut text = format!("history {seed} breaks an invariant: {why}\n");
    text += &format!("  {} machines\n", plan.machines);
    for (nth, service) in plan.services.iter().enumerate() {
        text += &format!("  s{nth} {service:?}\n");
    }
    for (nth, op) in plan.ops.iter().enumerate() {
        text += &format!("  {nth} {op:?}\n");
    }
    text + &format!("GRID_SIM_SEED={seed} replays it as it was before it was shrunk")
}

#[test]
fn one_push_leaves_the_mesh_consistent_in_every_history() {
    if let Some(seed) = number("GRID_SIM_SEED") {
        let plan = tree_of(seed).current();
        let result = History::run(&plan, true);
        if let Err(why) = result {
            let (plan, smaller) = shrink(seed);
            println!("--- the smallest that fails too ---");
            let _ = History::run(&plan, true);
            panic!("{why}\n{}", tell(seed, &plan, &smaller));
        }
        return;
    }
    let histories = number("GRID_SIM_HISTORIES").unwrap_or(HISTORIES);
    let first = number("GRID_SIM_FIRST").unwrap_or(0);
    let next = AtomicU64::new(first);
    let failed: Mutex<Option<u64>> = Mutex::new(None);
    let stop = AtomicBool::new(false);
    let total = Mutex::new(Coverage::default());
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut seen = Coverage::default();
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + histories {
                        break;
                    }
                    match History::run(&tree_of(seed).current(), false) {
                        Ok(coverage) => seen.add(&coverage),
                        Err(_) => {
                            stop.store(true, Ordering::Relaxed);
                            let mut failed = failed.lock().unwrap();
                            *failed = Some(failed.map_or(seed, |other| other.min(seed)));
                        }
                    }
                }
                total.lock().unwrap().add(&seen);
            });
        }
    });
    if let Some(seed) = *failed.lock().unwrap() {
        let (plan, why) = shrink(seed);
        panic!(
            "after {} histories: {}",
            seed - first,
            tell(seed, &plan, &why)
        );
    }
    let total = total.lock().unwrap();
    total.print();
    println!(
        "{histories} histories in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    if histories >= HISTORIES {
        let missed = total.missed();
        assert!(missed.is_empty(), "no history covered {missed:?}");
    }
}
