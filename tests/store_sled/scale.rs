//! How large and how fast: to be looked at, not to pass or fail. `cargo test --release --test store_sled scale -- --ignored --nocapture`

use std::sync::Arc;
use std::time::Instant;

use grid::provision::{Provision, ProvisionId};
use grid::store::{Change, Identity, Store, SystemChance};
use grid::words::{Digest, Era, ServiceName};
use zeroize::Zeroizing;

use crate::fixture::{Home, content, entry, machine, node};

/// How long something took, and how much of a processor: the first says little while others work on the machine.
struct Clock(Instant, u64);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), processor())
    }
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.0?} ({} ms of a processor)",
            self.0.elapsed(),
            processor() - self.1
        )
    }
}

/// Of this process, all threads, in milliseconds (a tick is 10).
fn processor() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

fn size(home: &Home) -> u64 {
    let out = std::process::Command::new("du")
        .args(["-sm"])
        .arg(home.place().path())
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "a measurement"]
fn ten_thousand_machines_and_fifty_thousand_provisions() {
    let home = Home::new();
    let mut store = home.create();
    let began = Clock::start();
    for chunk in (0..50_000_u64).collect::<Vec<_>>().chunks(5000) {
        let changes: Vec<Change> = chunk
            .iter()
            .flat_map(|&n| {
                let id = ProvisionId {
                    provider: ServiceName::new(&format!("provider-{}", n % 50)).unwrap(),
                    consumer: ServiceName::new(&format!("consumer-{n}")).unwrap(),
                };
                let provision =
                    Change::Provision(id, Provision::draw(false, Era(1), &mut SystemChance));
                let mut machine = machine(n, content(n).0);
                machine.attempt = None;
                let machine = (n % 5 == 0).then(|| Change::Machine(node(n), machine));
                [Some(provision), machine]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
            })
            .collect();
        store.commit(&changes).unwrap();
    }
    println!("written in {}, {} MB on disk", began, size(&home));
    drop(store);
    for _ in 0..3 {
        let before = resident();
        let began = Clock::start();
        let state = home.read().load().unwrap();
        println!(
            "loaded {} machines, {} provisions in {}, {} MB more",
            state.fleet.len(),
            state.provisions.len(),
            began,
            resident().saturating_sub(before)
        );
    }
    let mut store = home.write();
    let began = Clock::start();
    store
        .commit(&[Change::Push(1), Change::Journal(entry(1))])
        .unwrap();
    println!("a small commit in {}", began);
    println!("compacted: {:?}", store.compact().unwrap());
    let began = Clock::start();
    home.read().load().unwrap();
    println!("loaded after that in {}", began);
    drop(store);
    take_somebody_out(&home);
}

/// How long the push after somebody was taken out of the recipients takes longer than another one.
fn take_somebody_out(home: &Home) {
    let eve = [crate::resealing::recipient("eve", &Identity::generate())];
    let mut store = crate::resealing::writing(home, &home.identity, &eve);
    store.commit(&[Change::Journal(entry(2))]).unwrap();
    drop(store);
    let mut store = crate::resealing::writing(home, &home.identity, &[]);
    let began = Clock::start();
    assert_eq!(store.take_out().unwrap().len(), 1);
    println!("sealed anew in {}, {} MB on disk", began, size(home));
}

#[test]
#[ignore = "a measurement"]
fn sealing_a_thousand_machines_with_their_contents_anew() {
    for machines in [1000, 10_000_u64] {
        let home = Home::new();
        let mut store = home.create();
        for chunk in (1..=machines).collect::<Vec<_>>().chunks(1000) {
            let all: Vec<Change> = chunk
                .iter()
                .flat_map(|&n| crate::fixture::push(n))
                .collect();
            store.commit(&all).unwrap();
        }
        drop(store);
        println!("{machines} machines, accounts, contents and entries of the journal:");
        take_somebody_out(&home);
    }
}

#[test]
#[ignore = "a measurement"]
fn many_contents() {
    let home = Home::new();
    let mut store = home.create();
    for size_of_each in [4096, 65_536_usize] {
        let began = Clock::start();
        for chunk in 0..10_u64 {
            let changes: Vec<Change> = (0..100_u64)
                .map(|n| {
                    let bytes = format!("{size_of_each} {chunk} {n};")
                        .repeat(size_of_each)
                        .into_bytes()[..size_of_each]
                        .to_vec();
                    Change::Content(Digest::of(&bytes), Arc::new(Zeroizing::new(bytes)))
                })
                .collect();
            store.commit(&changes).unwrap();
        }
        println!(
            "1000 contents of {size_of_each} in {}, {} MB on disk",
            began,
            size(&home)
        );
    }
    let began = Clock::start();
    store.commit(&[Change::Push(1)]).unwrap();
    println!("a small commit in {}", began);
    let began = Clock::start();
    store.commit(&[Change::KeepContents([].into())]).unwrap();
    println!("all contents dropped in {}", began);
    println!(
        "{} MB on disk; {:?}, {} MB",
        size(&home),
        store.compact().unwrap(),
        size(&home)
    );
}

#[test]
#[ignore = "a measurement"]
fn one_record_of_twenty_kilobytes_written_three_thousand_times() {
    let home = Home::new();
    let mut store = home.create();
    let mut machine = machine(1, content(1).0);
    let began = Clock::start();
    for n in 0..3000_u64 {
        machine.sent.as_mut().unwrap().at.address =
            format!("{n}").repeat(20_000)[..20_000].to_owned();
        store
            .commit(&[Change::Machine(node(1), machine.clone())])
            .unwrap();
    }
    println!("3000 commits in {}, {} MB on disk", began, size(&home));
}

#[test]
#[ignore = "a measurement"]
fn a_small_store() {
    let home = Home::new();
    let began = Clock::start();
    let mut store = home.create();
    println!("made in {}", began);
    for n in 1..=5 {
        let began = Clock::start();
        store.commit(&crate::fixture::push(n)).unwrap();
        println!("commit in {}", began);
    }
    for _ in 0..5 {
        let began = Clock::start();
        store.load().unwrap();
        println!("load in {}", began);
    }
}
