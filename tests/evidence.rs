//! `grid evidence` and `grid evidence clear` on a file, beside the real daemon.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod site_bed;
mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use grid::evidence::homes::FileHome;
use grid::evidence::{BUDGET, Epoch, Report, Writer};
use grid::words::Replica;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use site_bed::client::{Caller, post, report};
use site_bed::{Authority, Site, until};
use support::schema::hold;
use support::{Bench, Seen};

fn epoch(number: u8) -> Epoch {
    Epoch::from_bytes([number; 16])
}

/// A document: process 1 rejected three hours ago, process 2 rejects, process 3 is clean.
fn document(path: &Path) {
    let mut writer = Writer::new(FileHome::new(path));
    for (number, sequence, rejected, clean, ago) in [
        (1, 4, 2, true, 11_000),
        (2, 1, 0, false, 20),
        (3, 9, 0, true, 10),
    ] {
        let replica = Replica::new(&format!("gw-{number}")).unwrap();
        let report = Report::new(epoch(number), sequence, rejected, clean, replica).unwrap();
        let received = Timestamp::now() - SignedDuration::from_secs(ago);
        let outcome = writer.take(&[report], received, &|| BUDGET);
        assert!(outcome.failure.is_none());
    }
}

fn json(seen: &Seen) -> Value {
    serde_json::from_slice(seen.raw()).unwrap()
}

/// What `grid` does with this on standard input.
fn piped(bench: &Bench, arguments: &[&str], input: &[u8]) -> Seen {
    let mut child = bench
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Who reads no more than its bound may close before everything is written.
    let _ = child.stdin.take().unwrap().write_all(input);
    bench.seen(child.wait_with_output().unwrap(), arguments)
}

/// Without ages, which differ from run to run, without epochs, and without what columns are filled up with.
fn told(seen: &Seen) -> String {
    let mut text = seen.all();
    for number in 1..=3 {
        text = text.replace(&epoch(number).to_string(), &format!("[EPOCH {number}]"));
    }
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = line.replace(" since ", "\u{0}since ");
        let (line, _) = line.split_once('\u{0}').unwrap_or((&line, ""));
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| match word.parse::<u64>() {
                Ok(number) if number >= 10 && number != 300 => "[N]".to_owned(),
                _ => word.to_owned(),
            })
            .collect();
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

#[test]
fn a_file_and_standard_input_show_what_was_reported_and_what_it_comes_to() {
    let bench = Bench::bare();
    let path = bench.path("evidence.json");
    document(&path);
    let shown = bench
        .grid(&["evidence", "--file", "evidence.json"])
        .exits(0);
    insta::assert_snapshot!(told(&shown), @"
    $ grid evidence --file evidence.json
    GatewayIngest False Rejected
    rejected evidence is in force from gw-2 (epoch [EPOCH 2], 0 rejected in all), gw-1 (epoch [EPOCH 1], 2 rejected in all), of 3 gateway processes
    gw-2 rejected 0 rejected report 1: not clean, [N] s ago epoch [EPOCH 2]
    gw-1 rejected 2 rejected report 4: clean, 3 h ago, stale epoch [EPOCH 1]
    gw-3 clean 0 rejected report 9: clean, [N] s ago epoch [EPOCH 3]
    ! next: one process with evidence in force reported nothing for more than 300 s: once it is seen to, `grid evidence clear --file evidence.json --stale` ends it
    ");
    let bytes = std::fs::read(&path).unwrap();
    for from in [&["evidence", "-"][..], &["evidence", "--file", "-"]] {
        let piped = piped(&bench, from, &bytes).exits(0);
        let lines = |seen: &Seen| {
            told(seen)
                .lines()
                .skip(1)
                .take(5)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&piped), lines(&shown));
    }
    bench
        .grid(&["evidence", "--file", "evidence.json", "--exit-code"])
        .exits(6);

    let view = json(&bench.grid(&["evidence", "--file", "evidence.json", "--json"]));
    hold("evidence", std::slice::from_ref(&view));
    assert_eq!(view["condition"]["reason"], "Rejected");
    assert_eq!(view["written"], Value::Null);
    let processes = view["processes"].as_array().unwrap();
    let told: Vec<_> = processes
        .iter()
        .map(|p| {
            (
                p["replica"].as_str().unwrap(),
                p["standing"].as_str().unwrap(),
                p["fresh"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("gw-2", "rejected", true),
            ("gw-1", "rejected", false),
            ("gw-3", "clean", true)
        ]
    );
    assert!(processes[1]["age_seconds"].as_u64().unwrap() >= 11_000);
}

#[test]
fn what_is_no_document_is_told_with_what_to_do_and_steers_no_terminal() {
    let bench = Bench::bare();
    let large = vec![b' '; 1024 * 1024 + 1];
    for input in [
        &b""[..],
        b"{\"format\": 1, \"\x1b[2J\": 0}",
        b"{\"format\": 2}",
        &large,
    ] {
        let seen = piped(&bench, &["evidence", "-"], input).exits(1);
        assert!(!seen.bytes().contains(&0x1b));
        let text = seen.all();
        let does = text.contains("a newer grid wrote it, use that one")
            || text.contains("! next: look at it");
        assert!(does, "{text}");
        assert!(
            text.contains("standard input holds no status document"),
            "{text}"
        );
    }
    bench.file("evidence.json", "{");
    let seen = bench
        .grid(&["evidence", "--file", "evidence.json"])
        .exits(1);
    insta::assert_snapshot!(seen.all(), @"
    $ grid evidence --file evidence.json
    ! error: evidence.json holds no status document that can be read: it is damaged: EOF while parsing an object at line 1 column 1
    ! next: look at it: a status document is evidence.json in a site's state folder. A damaged one is to be moved away there; then gateways report anew, and what they reported before is lost
    [exit 1]
    ");
    let seen = bench
        .grid(&["evidence", "--file", "none.json"])
        .exits(1)
        .all();
    assert!(seen.contains("there is no file none.json"), "{seen}");
    let seen = bench.grid(&["evidence", "--file", "."]).exits(1).all();
    assert!(
        seen.contains("is not a file") && seen.contains("grid evidence -"),
        "{seen}"
    );
    let seen = bench.grid(&["evidence"]).exits(2).all();
    assert!(seen.contains("say whose evidence"), "{seen}");
}

#[test]
fn a_message_that_turns_directions_is_shown_without_doing_so() {
    let bench = Bench::bare();
    let path = bench.path("evidence.json");
    document(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    let turned = text.replace("rejected evidence is", "rejected \u{202e}evidence is");
    let seen = piped(&bench, &["evidence", "-"], turned.as_bytes()).exits(0);
    assert!(!seen.all().contains('\u{202e}'));
    let seen = piped(&bench, &["evidence", "-", "--json"], turned.as_bytes()).exits(0);
    assert!(!seen.all().contains('\u{202e}'));
}

#[test]
fn a_file_is_cleared_of_one_epoch_or_of_all_that_are_silent() {
    let bench = Bench::bare();
    let path = bench.path("evidence.json");
    document(&path);
    let clear = |arguments: &[&str], exit| {
        let all = [&["evidence", "clear", "--file", "evidence.json"], arguments].concat();
        bench.grid(&all).exits(exit)
    };
    let standing = |number: usize| {
        let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        document["epochs"][number - 1]["standing"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    clear(&[], 2);
    clear(&["--stale", "--epoch", &epoch(1).to_string()], 2);
    let wrong = epoch(2).to_string().replacen('0', "1", 1);
    let seen = clear(&["--epoch", &wrong], 2).all();
    assert!(
        seen.contains(&format!("did you mean {}?", epoch(2))),
        "{seen}"
    );

    let seen = clear(&["--stale", "--json"], 0);
    hold("evidence-clear", &[json(&seen)]);
    assert_eq!(
        json(&seen)["cleared"],
        serde_json::json!([epoch(1).to_string()])
    );
    assert_eq!(
        (standing(1), standing(2)),
        ("cleared".into(), "rejected".into())
    );
    let seen = clear(&["--stale"], 0).all();
    assert!(seen.contains("nothing was changed"), "{seen}");
    let seen = clear(&["--epoch", &epoch(2).to_string()], 0).all();
    assert!(
        seen.contains("cleared the evidence from epoch 0202"),
        "{seen}"
    );
    let seen = clear(&["--epoch", &epoch(3).to_string()], 0).all();
    assert!(seen.contains("nothing was changed"), "{seen}");
    bench
        .grid(&["evidence", "--file", "evidence.json", "--exit-code"])
        .exits(0);
    std::fs::write(&path, "{\"format\": 2}").unwrap();
    clear(&["--stale"], 1);
    std::fs::remove_file(&path).unwrap();
    clear(&["--stale"], 1);
}

const GONE: &str = "0123456789abcdef0123456789abcdef";
const BUSY: &str = "fedcba9876543210fedcba9876543210";

#[test]
fn what_is_cleared_while_the_daemon_writes_stays_cleared_and_is_the_baseline() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    site.start();
    let bench = Bench::bare();
    let path = site.state("evidence.json").display().to_string();
    let standing = |epoch: &str| {
        let document = site.json("evidence.json")?;
        let epochs = document["epochs"].as_array()?.clone();
        let entry = epochs.into_iter().find(|entry| entry["epoch"] == epoch)?;
        Some(entry["standing"].as_str()?.to_owned())
    };
    let mut gone = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let mut say = |sequence, rejected, clean| {
        let request = post(&report(GONE, sequence, rejected, clean));
        gone.ask(&request).unwrap().status
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Another process reports all the while, so that the daemon never stops writing.
        scope.spawn(|| {
            let mut busy = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
            for sequence in 1.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let request = post(&report(BUSY, sequence, 0, true));
                // 503: the clearing was there first three times.
                while busy.ask(&request).unwrap().status == 503 {}
            }
        });
        until("the busy one is heard", || standing(BUSY));
        for round in 1..=5 {
            assert_eq!(say(2 * round, round, false), 204);
            assert_eq!(standing(GONE).unwrap(), "rejected");
            let clear = ["evidence", "clear", "--file", &path, "--epoch", GONE];
            // A file that changes all the time may do so three times in a row.
            until("it is cleared", || {
                (bench.grid(&clear).code() == 0).then_some(())
            });
            // The report that was cleared, again: nothing comes back.
            assert_eq!(say(2 * round, round, false), 204);
            assert_eq!(say(2 * round - 1, round, true), 409);
            assert_eq!(standing(GONE).unwrap(), "cleared");
            let seen = site.json("evidence.json").unwrap()["epochs"].clone();
            until("the daemon wrote after it", || {
                (site.json("evidence.json")?["epochs"] != seen).then_some(())
            });
            assert_eq!(standing(GONE).unwrap(), "cleared");
            // The counter stays the baseline: the same one, clean, is clean.
            assert_eq!(say(2 * round + 1, round, true), 204);
            assert_eq!(standing(GONE).unwrap(), "clean");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(site.runs());
}
