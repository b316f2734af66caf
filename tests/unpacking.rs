//! What a machine's side costs: unpacking starts no process for each file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use std::fmt::Write as _;

use support::Bench;

/// What starts a process; what starts a thread of grid's is told by its flags.
const CALLS: &str = "trace=execve,clone,clone3,fork,vfork";
/// By so many the two counts may differ: a shell that waits naps more or less often.
const DIFFER_MOST: usize = 12;

/// The processes that a first push to a machine starts, where its service has so many files.
fn processes_of_a_push(files: usize) -> usize {
    let mut text =
        "[mesh]\nname = \"prod\"\n[nodes.atlas]\ncourier = \"local\"\nroot = \"machines/atlas\"\n\
                    [services.app]\nnode = \"atlas\"\n"
            .to_owned();
    for nth in 0..files {
        writeln!(
            text,
            "[[services.app.files]]\npath = \"d{}/f{nth}\"\ncontent = \"{nth}\"",
            nth % 7
        )
        .unwrap();
    }
    let bench = Bench::new(&text);
    let trace = bench.path("trace");
    let mut traced = bench.around("strace");
    traced
        .args(["-f", "-qq", "-e", "signal=none", "-e", CALLS, "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_grid"))
        .args(["push", "--all"]);
    let output = traced.output().expect("strace");
    assert!(output.status.success(), "{output:?}");
    let last = files - 1;
    let delivered = format!("machines/atlas/current/services/app/d{}/f{last}", last % 7);
    assert_eq!(bench.read(&delivered), last.to_string());
    let calls = std::fs::read_to_string(&trace).unwrap();
    let is_started = |line: &&str| {
        !line.contains("CLONE_THREAD") && !line.contains("resumed") && !line.contains("= -1 ")
    };
    calls.lines().filter(is_started).count()
}

#[test]
fn unpacking_starts_no_process_for_each_file() {
    let (few, many) = (processes_of_a_push(5), processes_of_a_push(405));
    assert!(few > 10, "{few}: what starts processes was traced");
    assert!(
        many <= few + DIFFER_MOST,
        "{few} processes for 5 files, {many} for 405"
    );
}
