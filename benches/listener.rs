//! The signals listener of a real daemon that is pinned to one core, with all its 256 connections held: GET/s and their
//! 99th percentile, and durable reports a second. What a second of the daemon's own processor time gives stands beside
//! it: that figure does not depend on what else the machine does.
//!
//! `cargo bench --bench listener`; GETs are made by ab (Debian: apache2-utils), if it is there, else by this program.
//!
//! `cargo bench --bench listener -- --minutes 60` keeps the daemon under load for so long, and prints its memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark may fall, prints, and counts in floating point"
)]

mod bed;
#[path = "../tests/site_bed/mod.rs"]
mod site_bed;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use site_bed::client::{Caller, post, report};
use site_bed::{Authority, Certified, Provider, Site, until};

const SIGNALS: &str = "/v1/site/signals";
/// How long each part takes.
const SECONDS: u64 = 15;
/// Connections that make load; the others of the 256 ask once in some seconds, as peers do.
const LOAD: usize = 64;
/// Sites that hold eight connections each.
const PEERS: usize = 24;
/// Own providers of the site, and the rows of each.
const PROVIDERS: usize = 4;
const ROWS: usize = 12;

fn main() {
    bed::conditions();
    let minutes = minutes();
    let authority = Authority::new();
    let peers: Vec<Certified> = (0..PEERS)
        .map(|n| authority.site(&format!("peer-{n}")))
        .collect();
    let mut site = Site::new("atlas", &authority);
    site.settings = vec![("special_addresses", "true".to_owned())];
    for (n, peer) in peers.iter().enumerate() {
        site.knows_caller(&format!("peer-{n}"), peer);
    }
    let rows: String = (0..ROWS)
        .map(|n| format!("llm_d_epp_average_queue_size{{pool=\"pool-{n}\"}} {n}\n"))
        .collect();
    let provider = Provider::new(&rows);
    let names = ["one", "two", "three", "four"];
    for name in names.iter().take(PROVIDERS) {
        site.scrapes.push((name, provider.url.clone()));
    }
    let is_pinned = pin(0);
    site.start();
    if is_pinned {
        pin(1);
    }
    let page = until("all rows are served", || {
        let page = Caller::connect(site.socket(), Some(&site.identity))
            .and_then(|mut caller| caller.get(SIGNALS))
            .unwrap();
        (page.body.lines().count() == PROVIDERS * ROWS).then_some(page)
    });
    println!(
        "the daemon on the cores {}; {} rows, {} bytes a GET",
        status(&site, "Cpus_allowed_list:"),
        PROVIDERS * ROWS,
        page.body.len()
    );

    let held = Held::default();
    std::thread::scope(|scope| {
        for peer in &peers {
            scope.spawn(|| held.hold(&site, peer));
        }
        until("the connections are held", || {
            (held.now.load(Ordering::Relaxed) == (PEERS * 8) as u64).then_some(())
        });
        match minutes {
            Some(minutes) => under_load(&site, minutes),
            None => {
                gets(&site);
                reports(&site);
            }
        }
        println!(
            "{} connections were held beside these, and {} were lost",
            held.now.load(Ordering::Relaxed),
            held.lost.load(Ordering::Relaxed)
        );
        held.ends.store(true, Ordering::Relaxed);
    });
    print_refused(&site);
}

/// The value of `--minutes`.
fn minutes() -> Option<u64> {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments
        .iter()
        .position(|argument| argument == "--minutes")?;
    Some(arguments[at + 1].parse().expect("--minutes is a number"))
}

/// Has what is started from here on run on one core; false where there is but one, or no taskset.
fn pin(core: usize) -> bool {
    let own = std::process::id().to_string();
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1 || core == 1)
        && Command::new("taskset")
            .args(["-cp", &core.to_string(), &own])
            .output()
            .is_ok_and(|output| output.status.success())
}

/// Connections of peers that ask now and then.
#[derive(Default)]
struct Held {
    now: AtomicU64,
    lost: AtomicU64,
    ends: AtomicBool,
}

impl Held {
    fn hold(&self, site: &Site, peer: &Certified) {
        let connect = || Caller::connect(site.socket(), Some(peer));
        let mut callers: Vec<Caller> = (0..8).map(|_| connect().unwrap()).collect();
        self.now.fetch_add(8, Ordering::Relaxed);
        while !self.ends.load(Ordering::Relaxed) {
            for caller in &mut callers {
                if caller.get(SIGNALS).is_err() {
                    // Its age is bounded, so a new one takes its place; the next round, if it is refused now.
                    self.lost.fetch_add(1, Ordering::Relaxed);
                    if let Ok(next) = connect() {
                        *caller = next;
                    }
                }
                if self.ends.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(400));
            }
        }
    }
}

/// What the daemon used of the processor, in seconds.
fn used(site: &Site) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", site.pid())).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0 // the kernel's USER_HZ
}

/// Prints what was done in a time, beside what the daemon used for it.
fn figures(what: &str, count: f64, wall: f64, cpu: f64, target: f64, more: &str) {
    println!(
        "{what:<28} {:>8.0}/s  {:>8.0} a second of its processor time ({:.2} cores)  {:>5.2} × the target of {target:.0}{more}",
        count / wall,
        count / cpu,
        cpu / wall,
        count / cpu / target,
    );
}

fn gets(site: &Site) {
    let both = site.folder().join("both.pem");
    std::fs::write(&both, format!("{}{}", site.identity.pem, site.identity.key)).unwrap();
    let mut command = Command::new("ab");
    command
        .args(["-q", "-k", "-t", &SECONDS.to_string(), "-n", "2000000"])
        .args(["-c", &LOAD.to_string(), "-E"])
        .arg(both)
        .arg(format!("https://{}{SIGNALS}", site.socket()));
    let counted = || site.counter("grid_signals_requests_total{code=\"200\"}") as f64;
    let counted_before = counted();
    let (began, before) = (Instant::now(), used(site));
    if let Ok(output) = command.output() {
        let (wall, cpu) = (began.elapsed().as_secs_f64(), used(site) - before);
        let said = String::from_utf8_lossy(&output.stdout);
        let of = |name: &str| {
            let line = said.lines().find_map(|line| line.trim().strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        };
        let count = of("Complete requests:");
        let count = count
            .unwrap_or_else(|| panic!("ab: {said}{}", String::from_utf8_lossy(&output.stderr)));
        assert!(
            counted() - counted_before >= count,
            "ab counts what was not answered"
        );
        let other = of("Non-2xx responses:").unwrap_or_default() + of("Failed requests:").unwrap();
        let more = format!("; p99 {} ms; {other} failed", of("99%").unwrap());
        figures("GET, by ab", count, wall, cpu, 5_000.0, &more);
    } else {
        println!("there is no ab: GETs are made by this program");
        let mut waits = parallel(
            |caller, _, _| caller.get(SIGNALS).unwrap().status == 200,
            site,
        );
        let (wall, cpu) = (began.elapsed().as_secs_f64(), used(site) - before);
        told("GET, by this program", &mut waits, (wall, cpu), 5_000.0);
    }
}

fn reports(site: &Site) {
    let (began, before) = (Instant::now(), used(site));
    let mut waits = parallel(
        |caller, epoch, sequence| {
            let asked = post(&report(&format!("{epoch:032x}"), sequence, 0, true));
            let answer = caller.ask(&asked).unwrap();
            // Durable: 204, with what was persisted.
            answer.status == 204
                && answer.header("x-grid-ingest-sequence") == Some(&sequence.to_string())
        },
        site,
    );
    let (wall, cpu) = (began.elapsed().as_secs_f64(), used(site) - before);
    told("durable reports", &mut waits, (wall, cpu), 500.0);
}

/// Prints what came of what took so long each.
fn told(what: &str, waits: &mut [Duration], (wall, cpu): (f64, f64), least: f64) {
    waits.sort_unstable();
    let p99 = waits[waits.len() * 99 / 100].as_secs_f64() * 1e3;
    let more = format!("; p99 {p99:.1} ms");
    figures(what, waits.len() as f64, wall, cpu, least, &more);
}

/// Has as many callers as make load ask one thing after the other, and says how long each that succeeded took.
fn parallel(ask: impl Fn(&mut Caller, usize, u64) -> bool + Sync, site: &Site) -> Vec<Duration> {
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let ask = &ask;
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..LOAD)
            .map(|n| {
                scope.spawn(move || {
                    let mut caller = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
                    let mut waits = Vec::new();
                    let mut sequence = 0;
                    while Instant::now() < end {
                        sequence += 1;
                        let began = Instant::now();
                        if ask(&mut caller, n, sequence) {
                            waits.push(began.elapsed());
                        }
                    }
                    waits
                })
            })
            .collect();
        callers
            .into_iter()
            .flat_map(|caller| caller.join().unwrap())
            .collect()
    })
}

/// Keeps the daemon busy with GETs, with reports and with connections that come and go, and prints its memory.
fn under_load(site: &Site, minutes: u64) {
    let end = Instant::now() + Duration::from_secs(minutes * 60);
    let done = [const { AtomicU64::new(0) }; 3];
    std::thread::scope(|scope| {
        let done = &done;
        for n in 0..24_usize {
            scope.spawn(move || {
                let mut caller = None;
                let mut sequence = 0;
                while Instant::now() < end {
                    let connected = match caller.take() {
                        Some(caller) => Ok(caller),
                        None => Caller::connect(site.socket(), Some(&site.identity)),
                    };
                    let Ok(mut asking) = connected else { continue };
                    sequence += 1;
                    // A third each: GETs, reports, and GETs that each have a connection of their own.
                    let asked = match n % 3 {
                        1 => asking.ask(&post(&report(&format!("{n:032x}"), sequence, 0, true))),
                        _ => asking.get(SIGNALS),
                    };
                    match asked {
                        Ok(_) if n % 3 != 2 => caller = Some(asking),
                        _ => {}
                    }
                    done[n % 3].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        println!(
            "{:>8} {:>10} {:>12} {:>12} {:>12}",
            "minute", "RSS KiB", "GETs", "reports", "connections"
        );
        let began = Instant::now();
        let every = Duration::from_secs(minutes * 60) / 30;
        while Instant::now() < end {
            let [gets, reports, connections] =
                [0, 1, 2].map(|n: usize| done[n].load(Ordering::Relaxed));
            println!(
                "{:>8.1} {:>10} {gets:>12} {reports:>12} {connections:>12}",
                began.elapsed().as_secs_f64() / 60.0,
                resident(site)
            );
            std::thread::sleep(every);
        }
    });
    println!("{:>8} {:>10}", "end", resident(site));
}

/// The daemon's resident memory, in KiB.
fn resident(site: &Site) -> u64 {
    let resident = status(site, "VmRSS:");
    resident.trim_end_matches(" kB").parse().unwrap()
}

/// What the kernel says of the daemon.
fn status(site: &Site, of: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", site.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(of));
    line.unwrap().trim().to_owned()
}

fn print_refused(site: &Site) {
    for line in site.metrics().lines() {
        let counts = [
            "grid_signals_connections_refused_total",
            "grid_gateway_feedback_events_total",
        ];
        if counts.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0") {
            println!("{line}");
        }
    }
}
