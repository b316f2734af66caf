//! What happens to a running daemon's files, disk and clock. Needs root, as CI has, and faketime.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod delivery_bed;
mod site_bed;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use delivery_bed::mount::Mount;
use grid::evidence::{Document, Reason};
use site_bed::client::{Caller, get, post, report};
use site_bed::{Authority, Provider, Site, until};

const EPOCH: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";
const SIGNALS: &str = "/v1/site/signals";
const FAILED: &str = "grid_gateway_feedback_events_total{event=\"write_failure\"}";

/// A site that writes nothing to its state folder but evidence, once it runs.
fn quiet() -> Site {
    let mut site = Site::new("atlas", &Authority::new());
    site.settings
        .retain(|(key, _)| !["scrape_interval_ms", "poll_interval_ms"].contains(key));
    for key in ["scrape_interval_ms", "poll_interval_ms"] {
        site.settings.push((key, "3600000".to_owned()));
    }
    // A slow machine makes nothing unknown here.
    site.settings.push(("ingest_ms", "60000".to_owned()));
    site
}

/// What a report is answered with.
fn says(site: &Site, epoch: &str, sequence: u64, rejected: u64, clean: bool) -> u16 {
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let request = post(&report(epoch, sequence, rejected, clean));
    local.ask(&request).unwrap().status
}

fn document(site: &Site) -> Option<Document> {
    Document::from_json(&fs::read(site.state("evidence.json")).ok()?).ok()
}

/// The sequence that is held of an epoch.
fn held(site: &Site, epoch: &str) -> Option<u64> {
    let document = document(site)?;
    let record = document.ledger().record(epoch.parse().unwrap())?;
    Some(record.report().sequence())
}

fn comes_to(site: &Site, reason: Reason) {
    until(&format!("the condition is {reason:?}"), || {
        (document(site)?.condition().reason() == reason).then_some(())
    });
}

fn is_served(site: &Site) -> bool {
    get(site.socket(), &site.identity, SIGNALS).is_ok_and(|answer| answer.status == 200)
}

#[test]
fn a_full_disk_under_the_daemon_is_503_and_the_same_report_is_taken_once_there_is_room() {
    let mut site = quiet();
    let disk = Mount::new(&site.state(""), 256);
    site.start();
    comes_to(&site, Reason::NoReports);
    assert_eq!(says(&site, EPOCH, 1, 0, true), 204);
    disk.fill(0);
    assert_eq!(says(&site, EPOCH, 2, 0, true), 503);
    assert_eq!(says(&site, EPOCH, 2, 0, true), 503);
    assert!(site.counter(FAILED) >= 2);
    assert!(is_served(&site) && site.runs());
    assert_eq!(held(&site, EPOCH), Some(1));
    assert!(site.log().contains("make room"), "{}", site.log());
    disk.empty();
    assert_eq!(says(&site, EPOCH, 2, 0, true), 204);
    assert_eq!(held(&site, EPOCH), Some(2));
}

#[test]
fn a_daemon_that_is_killed_and_started_on_a_full_disk_serves_and_goes_on_once_there_is_room() {
    let mut site = quiet();
    let disk = Mount::new(&site.state(""), 256);
    site.start();
    assert_eq!(says(&site, EPOCH, 1, 0, true), 204);
    disk.fill(0);
    site.kill();
    site.spawn();
    until("it serves", || is_served(&site).then_some(()));
    assert_eq!(says(&site, EPOCH, 2, 0, true), 503);
    assert_eq!(held(&site, EPOCH), Some(1));
    disk.empty();
    assert_eq!(says(&site, EPOCH, 2, 0, true), 204);
    let pid = site.pid();
    until("its status is written after all", || {
        (site.json("status.json")?["pid"] == pid).then_some(())
    });
}

#[test]
fn a_disk_that_turns_read_only_is_503_until_it_is_writable_again() {
    let mut site = quiet();
    let disk = Mount::new(&site.state(""), 256);
    site.start();
    assert_eq!(says(&site, EPOCH, 1, 1, false), 204);
    disk.read_only();
    assert_eq!(says(&site, EPOCH, 2, 1, true), 503);
    assert!(site.counter(FAILED) >= 1);
    assert!(is_served(&site) && site.runs());
    disk.writable();
    assert_eq!(says(&site, EPOCH, 2, 1, true), 204);
    comes_to(&site, Reason::Clean);
}

#[test]
fn a_status_file_that_is_damaged_is_left_as_it_is_and_nothing_is_acknowledged_over_it() {
    let mut site = quiet();
    site.start();
    assert_eq!(says(&site, EPOCH, 1, 1, false), 204);
    let path = site.state("evidence.json");
    let good = fs::read_to_string(&path).unwrap();
    let contradicts = good.replace("\"False\"", "\"True\"");
    assert_ne!(contradicts, good);
    let half = &good[..good.len() / 2];
    let damages: [(&str, Vec<u8>); 7] = [
        ("an empty file", Vec::new()),
        ("half of it", half.into()),
        ("noughts", vec![0; 4096]),
        ("another document", b"[]".to_vec()),
        ("a condition that contradicts it", contradicts.into()),
        ("two mebibytes", vec![b' '; 2 * 1024 * 1024]),
        (
            "of a newer version",
            good.replace("\"format\": 1", "\"format\": 2").into(),
        ),
    ];
    for (what, damage) in damages {
        assert_ne!(damage, good.as_bytes(), "{what}");
        fs::write(&path, &damage).unwrap();
        let failed = site.counter(FAILED);
        for _ in 0..2 {
            // Whether the daemon saw the good one before or not.
            assert_eq!(says(&site, EPOCH, 1, 1, false), 503, "{what}");
            assert_eq!(says(&site, EPOCH, 2, 1, true), 503, "{what}");
            assert!(is_served(&site) && site.runs(), "{what}");
            assert!(site.counter(FAILED) >= failed + 2, "{what}");
            assert_eq!(fs::read(&path).unwrap(), damage, "{what}");
            assert!(site.log().contains("evidence.json"), "{what}");
            site.kill();
            site.start();
            // The counters of the new one begin at nought.
            if site.counter(FAILED) < failed {
                break;
            }
        }
        assert_eq!(says(&site, EPOCH, 2, 1, true), 503, "{what}");
        assert_eq!(fs::read(&path).unwrap(), damage, "{what}");
    }
    // What is taken away is a first start: the reporter's count is held against nought, so nothing is hidden.
    fs::remove_file(&path).unwrap();
    assert_eq!(says(&site, EPOCH, 2, 1, true), 204);
    comes_to(&site, Reason::Rejected);
}

/// A clock that the test sets: the daemon reads how far it is off from a file.
struct Clock(PathBuf);

impl Clock {
    fn of(site: &mut Site) -> Self {
        let path = site.folder().join("clock");
        let preload = Command::new("faketime")
            .args(["-f", "+0", "printenv", "LD_PRELOAD"])
            .output()
            .unwrap();
        // The loader knows what stands for the machine's own folder in it.
        let preload = String::from_utf8(preload.stdout).unwrap();
        let clock = Self(path);
        clock.is_off_by(0);
        for (name, value) in [
            ("LD_PRELOAD", preload.trim().to_owned()),
            (
                "FAKETIME_TIMESTAMP_FILE",
                clock.0.to_str().unwrap().to_owned(),
            ),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ] {
            site.variables.push((name, value));
        }
        clock
    }

    fn is_off_by(&self, seconds: i64) {
        let next = self.0.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n")).unwrap();
        fs::rename(next, &self.0).unwrap();
    }
}

#[test]
fn a_clock_that_jumps_makes_reports_stale_or_fresh_and_loses_none() {
    let mut site = quiet();
    let clock = Clock::of(&mut site);
    site.start();
    assert_eq!(says(&site, EPOCH, 1, 0, true), 204);
    comes_to(&site, Reason::Clean);
    // An hour on: nobody reported lately. The identical report makes nothing fresh, a newer one does.
    clock.is_off_by(3_600);
    comes_to(&site, Reason::Stale);
    assert_eq!(says(&site, EPOCH, 1, 0, true), 204);
    comes_to(&site, Reason::Stale);
    assert_eq!(says(&site, EPOCH, 2, 0, true), 204);
    comes_to(&site, Reason::Clean);
    // And back by two: what comes from the future is as if it came now, so it goes stale when it should.
    clock.is_off_by(-3_600);
    until("it is dated anew", || {
        let document = document(&site)?;
        let record = document.ledger().record(EPOCH.parse().unwrap())?;
        let ahead = record.received().duration_since(jiff::Timestamp::now());
        (ahead.as_secs() < -3_000).then_some(())
    });
    comes_to(&site, Reason::Clean);
    assert_eq!(says(&site, EPOCH, 2, 0, true), 204);
    assert_eq!(says(&site, EPOCH, 1, 0, true), 409);
    assert_eq!(says(&site, OTHER, 1, 1, true), 204);
    comes_to(&site, Reason::Rejected);
    // Evidence does not age out, by ten years neither.
    clock.is_off_by(315_360_000);
    assert_eq!(says(&site, EPOCH, 3, 0, true), 204);
    comes_to(&site, Reason::Rejected);
    assert_eq!(says(&site, OTHER, 2, 1, true), 204);
    comes_to(&site, Reason::Clean);
    assert_eq!((held(&site, EPOCH), held(&site, OTHER)), (Some(3), Some(2)));
    assert!(site.runs());
}

/// How old a site's overlay says that the queue of a peer's pool is, in milliseconds.
fn age(of: &Site, peer: &str) -> Option<u64> {
    let overlay = of.json("overlay.json")?;
    let row = overlay["rows"]
        .as_array()?
        .iter()
        .find(|row| row["site"] == peer)?;
    let depth = &row["signals"]["queue_depth"];
    assert_eq!(depth["value"], 3.0, "{depth}");
    depth["age_ms"].as_u64()
}

#[test]
fn a_peer_that_is_cut_off_grows_old_however_often_the_time_is_set() {
    let authority = Authority::new();
    let provider = Provider::new("llm_d_epp_average_queue_size 3\n");
    let (mut atlas, mut borealis) = (
        Site::new("atlas", &authority),
        Site::new("borealis", &authority),
    );
    borealis.scrapes.push(("pool", provider.url.clone()));
    atlas.knows(&borealis);
    borealis.knows(&atlas);
    let clock = Clock::of(&mut atlas);
    borealis.start();
    atlas.start();
    until("it was pulled", || age(&atlas, "borealis"));
    borealis.kill();
    let mut least = age(&atlas, "borealis").unwrap();
    for off in [-3_600, 3_600, -315_360_000, 0] {
        clock.is_off_by(off);
        until("it grew older by what passed, and by no more", || {
            let age = age(&atlas, "borealis").unwrap();
            assert!(age < 100_000, "{age} after {off}");
            (age >= least + 1_000).then(|| least = age)
        });
    }
}

#[test]
fn a_state_folder_that_is_taken_away_is_made_again() {
    let mut site = Site::new("atlas", &Authority::new());
    site.start();
    assert_eq!(says(&site, EPOCH, 1, 0, true), 204);
    fs::remove_dir_all(site.state("")).unwrap();
    for file in ["overlay.json", "status.json"] {
        until(file, || site.json(file).map(drop));
    }
    // What was held is gone with it: the next report is a first one.
    assert_eq!(says(&site, EPOCH, 2, 0, true), 204);
    assert_eq!(held(&site, EPOCH), Some(2));
    assert!(site.runs());
}
