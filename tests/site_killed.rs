//! A daemon that is killed, or told to end, while eight gateways' processes report: no acknowledged report is lost.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use grid::evidence::{Document, Epoch, Report};
use grid::words::Replica;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use site_bed::client::{Caller, post, report};
use site_bed::{Authority, Certified, Site, until};

/// How often the daemon is killed.
const KILLS: u64 = 50;

/// How many processes report.
const PROCESSES: usize = 8;

/// A process, from one start of the daemon to the next.
#[derive(Clone, Copy, Default)]
struct Process {
    /// The last sequence that was acknowledged; 0: none.
    acknowledged: u64,
    /// The last sequence that was sent.
    sent: u64,
}

fn epoch(number: u64) -> String {
    format!("{:032x}", number + 1)
}

/// What a report of this sequence says: each third one counts a rejected ingest, and a clean one comes after it.
fn says(sequence: u64) -> (u64, bool) {
    (sequence.div_ceil(3), sequence % 3 != 1)
}

/// Reports until the daemon is gone. What is not acknowledged is said again first.
fn reports(
    number: u64,
    mut process: Process,
    (to, identity): (SocketAddr, Certified),
    total: Arc<AtomicU64>,
) -> JoinHandle<Process> {
    std::thread::spawn(move || {
        let Ok(mut caller) = Caller::connect(to, Some(&identity)) else {
            return process;
        };
        loop {
            let sequence = process.acknowledged + 1;
            let (rejected, clean) = says(sequence);
            process.sent = sequence;
            let request = post(&report(&epoch(number), sequence, rejected, clean));
            match caller.ask(&request) {
                Ok(answer) if answer.status == 204 => {
                    let echoed = |name, value: &str| answer.header(name) == Some(value);
                    assert!(echoed("x-grid-ingest-epoch", &epoch(number)));
                    assert!(echoed("x-grid-ingest-sequence", &sequence.to_string()));
                    process.acknowledged = sequence;
                    total.fetch_add(1, Ordering::SeqCst);
                }
                // Nothing else was ever said of this epoch.
                Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
                Err(_) => return process,
            }
        }
    })
}

/// One start of the daemon: it ends by `ends` once so many reports were acknowledged, in the middle of others.
fn under_load(
    site: &mut Site,
    processes: &mut [Process],
    acknowledged: u64,
    ends: impl FnOnce(&mut Site),
) {
    site.start();
    let total = Arc::new(AtomicU64::new(0));
    let reporting: Vec<_> = (0..)
        .zip(processes.iter())
        .map(|(number, process)| {
            let to = (site.socket(), site.identity.clone());
            reports(number, *process, to, Arc::clone(&total))
        })
        .collect();
    until("reports are acknowledged", || {
        (total.load(Ordering::SeqCst) >= acknowledged).then_some(())
    });
    ends(site);
    for (process, reporting) in processes.iter_mut().zip(reporting) {
        *process = reporting.join().unwrap();
    }
    holds_what_was_acknowledged(site, processes);
}

fn holds_what_was_acknowledged(site: &Site, processes: &[Process]) {
    let document = std::fs::read(site.state("evidence.json")).unwrap();
    // One that is not whole fails here.
    let document = Document::from_json(&document).unwrap();
    for (number, process) in (0..).zip(processes) {
        let epoch: Epoch = epoch(number).parse().unwrap();
        let held = document
            .ledger()
            .record(epoch)
            .map(|record| record.report());
        let sequence = held.map_or(0, Report::sequence);
        assert!(
            (process.acknowledged..=process.sent).contains(&sequence),
            "{number}: {} was acknowledged, {} was sent, {sequence} is held",
            process.acknowledged,
            process.sent
        );
        if let Some(held) = held {
            let (rejected, clean) = says(sequence);
            let replica = Replica::new("gw-0").unwrap();
            let whole = Report::new(epoch, sequence, rejected, clean, replica).unwrap();
            assert_eq!(held, &whole);
        }
    }
}

#[test]
fn kill_9_fifty_times_under_load_loses_no_acknowledged_report() {
    let mut site = Site::new("atlas", &Authority::new());
    let mut processes = [Process::default(); PROCESSES];
    let mut chance = StdRng::seed_from_u64(0);
    let mut in_the_middle = 0;
    for _ in 0..KILLS {
        let acknowledged = chance.random_range(1..40);
        under_load(&mut site, &mut processes, acknowledged, Site::kill);
        in_the_middle += processes.iter().filter(|p| p.sent > p.acknowledged).count();
    }
    assert!(
        in_the_middle >= 25,
        "only {in_the_middle} reports were under way when the daemon was killed"
    );
}

#[test]
fn sigterm_under_load_loses_no_acknowledged_report() {
    let mut site = Site::new("atlas", &Authority::new());
    let mut processes = [Process::default(); PROCESSES];
    for acknowledged in [1, 10, 20, 40] {
        under_load(&mut site, &mut processes, acknowledged, |site| {
            site.terminate();
            assert!(site.ended().success(), "{}", site.log());
        });
    }
}
