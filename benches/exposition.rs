//! How fast a body of metrics is read, by what it is made of: MB/s, and how long 64 bodies of 1 MiB take, which is what a
//! site with 64 peers reads a round.
//!
//! `cargo bench --bench exposition`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark may fall and prints"
)]

#[path = "../src/signals/exposition/tests/dear.rs"]
mod dear;

use std::time::Instant;

use grid::signals::contract::Accepted;
use grid::signals::exposition::{Limits, Reader};
use grid::signals::{EpochMs, reading};
use grid::words::NodeName;

const BODIES: u32 = 64;

fn main() {
    let limits = Limits::CONTRACT;
    let site = NodeName::new("atlas").unwrap();
    let accepted = Accepted::contract();
    println!(
        "{:<10} {:>12} {:>12} {:>14}",
        "body", "read", "64 bodies", "64, as a peer"
    );
    for (name, body) in dear::bodies(limits.body) {
        let begun = Instant::now();
        let mut items = 0_u64;
        for _ in 0..BODIES {
            let mut reader = Reader::new(body.as_bytes(), limits).unwrap();
            while reader.next_item().is_some() {
                items += 1;
            }
        }
        let read = begun.elapsed();
        let begun = Instant::now();
        for _ in 0..BODIES {
            let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
            let now = EpochMs::new(784_111_777_000);
            let pulled = reading::read(&site, body.as_bytes(), date, now, &accepted, limits);
            assert!(pulled.is_ok());
        }
        let pulled = begun.elapsed();
        let megabytes = f64::from(BODIES) * f64::from(u32::try_from(body.len()).unwrap()) / 1e6;
        println!(
            "{name:<10} {:>7.0} MB/s {:>9.0} ms {:>11.0} ms   {items} items",
            megabytes / read.as_secs_f64(),
            read.as_secs_f64() * 1e3,
            pulled.as_secs_f64() * 1e3,
        );
    }
}
