//! The file home against a real file system: killed writers, racing ones, a full disk, one that nobody can write to, a
//! file that belongs to somebody else. Needs root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use delivery_bed::mount::Mount;
use grid::evidence::homes::{FileHome, Home as _, HomeError};
use grid::evidence::{
    Answer, BUDGET, Document, Epoch, Event, Failure, Outcome, Report, Verdict, Writer,
};
use grid::words::Replica;
use jiff::Timestamp;

/// Where a writer that is to be killed writes.
const KILLED: &str = "GRID_TEST_KILLED_WRITER";

/// Past it a test is stuck.
const STUCK: Duration = Duration::from_secs(120);

fn epoch(number: u8) -> Epoch {
    Epoch::from_bytes([number; 16])
}

fn report(number: u8, sequence: u64) -> Report {
    let replica = Replica::new("gw-0").unwrap();
    Report::new(epoch(number), sequence, 0, true, replica).unwrap()
}

fn writer(path: &Path) -> Writer<FileHome> {
    Writer::new(FileHome::new(path))
}

fn take(writer: &mut Writer<FileHome>, report: &Report) -> Outcome {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    writer.take(std::slice::from_ref(report), now, &|| BUDGET)
}

fn is_held(outcome: &Outcome) -> bool {
    matches!(
        outcome.answers[..],
        [Answer::Known(Verdict::Accepted { .. } | Verdict::Identical)]
    )
}

fn read(path: &Path) -> Option<Document> {
    FileHome::new(path).read(Duration::ZERO).unwrap().document
}

/// The sequence that is held of epoch 1; 0: none.
fn sequence(path: &Path) -> u64 {
    let document = read(path);
    let record = document.as_ref().and_then(|d| d.ledger().record(epoch(1)));
    record.map_or(0, |record| record.report().sequence())
}

/// Does nothing, but in the process that the test below starts, and kills.
#[test]
fn the_child_of_the_test_below() {
    let Some(path) = std::env::var_os(KILLED) else {
        return;
    };
    let path = Path::new(&path);
    let mut writer = writer(path);
    for next in sequence(path) + 1.. {
        assert!(is_held(&take(&mut writer, &report(1, next))));
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_document_and_what_was_seen_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("status.json");
    let mut seen = 0;
    for writes in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_child_of_the_test_below"])
            .env(KILLED, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (began, goal) = (Instant::now(), seen + 1 + writes % 5);
        while seen < goal {
            assert!(began.elapsed() < STUCK, "{seen} of {goal}");
            // A document that is not whole fails here.
            let now = sequence(&path);
            assert!(now >= seen);
            seen = now;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let left = sequence(&path);
        assert!(left >= seen);
        // The next writer goes on from there, whatever the last one left beside it.
        assert!(is_held(&take(&mut writer(&path), &report(1, left + 1))));
        seen = left + 1;
    }
}

#[test]
fn writers_that_race_lose_no_report() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("status.json");
    std::thread::scope(|scope| {
        for number in 1..=4 {
            let path = &path;
            scope.spawn(move || {
                let mut writer = writer(path);
                let began = Instant::now();
                for sequence in 1..=15 {
                    loop {
                        assert!(began.elapsed() < STUCK);
                        let outcome = take(&mut writer, &report(number, sequence));
                        if is_held(&outcome) {
                            break;
                        }
                        // Overtaken three times: unknown, so the same again.
                        assert_eq!(outcome.answers, [Answer::Unknown]);
                        assert!(outcome.events.contains(&Event::ConflictExhausted));
                    }
                }
            });
        }
    });
    let document = read(&path).unwrap();
    assert_eq!(document.ledger().records().len(), 4);
    for record in document.ledger().records() {
        assert_eq!(record.report().sequence(), 15);
    }
}

#[test]
fn a_full_disk_is_told_and_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Mount::new(&dir.path().join("disk"), 256);
    let path = disk.at.join("status.json");
    let mut writer = writer(&path);
    assert!(is_held(&take(&mut writer, &report(1, 1))));
    let before = fs::read(&path).unwrap();
    disk.fill(0);
    let outcome = take(&mut writer, &report(1, 2));
    assert_eq!(outcome.answers, [Answer::Unknown]);
    assert_eq!(outcome.events, [Event::WriteFailure]);
    let Some(Failure::Home(full @ HomeError::Full { .. })) = outcome.failure else {
        panic!("{:?}", outcome.failure);
    };
    assert!(full.to_string().contains("make room"), "{full}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!disk.at.join("status.json.next").exists());
    disk.empty();
    assert!(is_held(&take(&mut writer, &report(1, 2))));
    assert_eq!(sequence(&path), 2);
}

#[test]
fn a_read_only_file_system_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Mount::new(&dir.path().join("disk"), 256);
    let path = disk.at.join("status.json");
    let mut writer = writer(&path);
    assert!(is_held(&take(&mut writer, &report(1, 1))));
    disk.read_only();
    let outcome = take(&mut writer, &report(1, 2));
    assert_eq!(outcome.answers, [Answer::Unknown]);
    assert!(
        matches!(
            outcome.failure,
            Some(Failure::Home(HomeError::ReadOnly { .. }))
        ),
        "{:?}",
        outcome.failure
    );
    assert_eq!(sequence(&path), 1);
    disk.writable();
    assert!(is_held(&take(&mut writer, &report(1, 2))));
}

#[test]
fn a_file_that_root_rewrites_stays_its_owners() {
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(65534), Some(65534)).unwrap();
    let path = dir.path().join("status.json");
    // The first one is the folder's owner's, and so is the lock.
    assert!(is_held(&take(&mut writer(&path), &report(1, 1))));
    chown(&path, Some(65534), Some(1)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(is_held(&take(&mut writer(&path), &report(1, 2))));
    let there = fs::metadata(&path).unwrap();
    let mode = there.permissions().mode() & 0o7777;
    assert_eq!((there.uid(), there.gid(), mode), (65534, 1, 0o640));
    let lock = fs::metadata(dir.path().join("status.json.lock")).unwrap();
    assert_eq!((lock.uid(), lock.gid()), (65534, 65534));
}

#[test]
fn a_document_is_what_its_schema_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("status.json");
    let mut writer = writer(&path);
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let replica = Replica::new("gw-0").unwrap();
    let rejected = Report::new(epoch(2), u64::MAX, u64::MAX, false, replica).unwrap();
    take(&mut writer, &report(1, 1));
    take(&mut writer, &rejected);
    let text = fs::read_to_string(&path).unwrap();
    writer.clear(epoch(2), now, &|| BUDGET).unwrap();
    let cleared = fs::read_to_string(&path).unwrap();

    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/schemas/evidence-status.schema.json"
    );
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema.json", schema).unwrap();
    let compiled = compiler.compile("schema.json", &mut schemas).unwrap();
    let is_valid = |text: &str| {
        let document = serde_json::from_str(text).unwrap();
        schemas.validate(&document, compiled).is_ok()
    };
    assert!(is_valid(&text) && is_valid(&cleared));
    for (old, new) in [
        ("\"format\": 1", "\"format\": 2"),
        ("\"sequence\": \"1\"", "\"sequence\": 1"),
        ("\"replica\": \"gw-0\"", "\"replica\": \"GW\""),
        ("\"standing\": \"rejected\"", "\"standing\": \"gone\""),
    ] {
        let wrong = text.replace(old, new);
        assert!(wrong != text && !is_valid(&wrong), "{new}");
    }
}
