//! The courier `manifests` cut short: killed at each of its system calls, refused by the system at each, and on a full disk. What
//! lies in the folder then is the older set of files or the newer one, or the next push makes it so (DESIGN.md, section 7).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod delivery_bed;
mod support;

use std::collections::BTreeMap;
use std::process::Output;

use support::Bench;

/// The folder of the site, below the declaration's.
const FOLDER: &str = "gitops/eridanus";
/// What reads or changes files, or what they are on disk.
const CALLS: [&str; 8] = [
    "openat", "write", "fchmod", "fsync", "rename", "unlink", "mkdir", "flock",
];
/// More of one of these calls than one send makes.
const CALLS_MOST: usize = 60;

/// eridanus is a cluster that nobody reaches; both of its files say the namespace.
fn bench() -> Bench {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    bench.file(
        "mesh.toml",
        "[mesh]\nname = \"prod\"\n[signals]\nmode = \"poll\"\n[signals.resources]\nnamespace = \"older\"\n\
         [nodes.eridanus]\ncourier = \"manifests\"\nfolder = \"gitops/eridanus\"\naddress = \"10.0.0.2\"\n",
    );
    bench
}

fn files(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(bench.path(FOLDER)).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// The site's two files, as they lie there.
fn rendered(bench: &Bench) -> [Vec<u8>; 2] {
    ["resources.yaml", "secrets.yaml"]
        .map(|name| std::fs::read(bench.path(FOLDER).join(name)).unwrap())
}

/// Pushes while the `nth` of these system calls that touches the folder is tampered with.
fn push_tampered(bench: &Bench, call: &str, nth: usize, how: &str) -> Output {
    let folder = bench.path(FOLDER);
    let mut traced = bench.around("strace");
    traced.args(["-f", "-qq", "-e", "signal=none", "-o"]);
    traced.arg(bench.path("trace"));
    for name in ["", "resources.yaml", "secrets.yaml", ".grid.json"] {
        traced.arg("-P").arg(folder.join(name));
        if !name.is_empty() {
            traced.arg("-P").arg(folder.join(format!(".{name}.next")));
        }
    }
    traced
        .args(["-e", &format!("trace={}", CALLS.join(","))])
        .args(["-e", &format!("inject={call}:{how}:when={nth}")])
        .arg(env!("CARGO_BIN_EXE_grid"))
        .args(["push", "--behind"]);
    traced.output().unwrap()
}

/// Tampers with each call of a push in turn, and looks at what is there then, and after the next push: of the declaration as it
/// is, or taken back to what it was (`is_reverted`).
fn at_each_call(how: &str, is_reverted: bool) {
    let bench = bench();
    bench.grid(&["push", "--all"]).exits(0);
    let mut older = rendered(&bench);
    for call in CALLS {
        let mut nth = 1;
        while tampered(&bench, &mut older, (call, nth), how, is_reverted) {
            nth += 1;
            assert!(nth < CALLS_MOST, "{call}");
        }
        assert!(nth > 1, "{call} is none of a send's calls");
    }
}

/// Whether there was such a call. `older` is what lay there before, and then what lies there.
fn tampered(
    bench: &Bench,
    older: &mut [Vec<u8>; 2],
    (call, nth): (&str, usize),
    how: &str,
    is_reverted: bool,
) -> bool {
    let (before, after) = match bench.read("mesh.toml").contains("\"older\"") {
        true => ("older", "newer"),
        false => ("newer", "older"),
    };
    let quoted = |name: &str| format!("{name:?}");
    bench.edit(&quoted(before), &quoted(after));
    let output = push_tampered(bench, call, nth, how);
    let cut = rendered(bench);
    let is_whole = output.status.code().is_some() && !bench.read("trace").contains("(INJECTED)");
    if is_whole {
        assert!(output.status.success(), "{output:?}");
        *older = cut;
        return false;
    }
    if is_reverted {
        bench.edit(&quoted(after), &quoted(before));
    }
    let at = format!("{call} {nth}: {}", bench.read("trace"));
    bench.grid(&["push", "--behind"]).exits(0);
    let now = rendered(bench);
    let says = |file: &[u8], namespace: &str| {
        String::from_utf8_lossy(file).contains(&format!("namespace: {namespace}\n"))
    };
    for index in [0, 1] {
        // None was torn.
        let is_older = cut[index] == older[index];
        assert!(is_older || is_reverted || cut[index] == now[index], "{at}");
        assert_ne!(says(&cut[index], before), says(&cut[index], after), "{at}");
        assert!(
            says(&now[index], if is_reverted { before } else { after }),
            "{at}"
        );
    }
    assert_eq!(now == *older, is_reverted, "{at}");
    let left: Vec<String> = files(bench).into_keys().collect();
    assert_eq!(
        left,
        [".grid.json", "resources.yaml", "secrets.yaml"],
        "{at}"
    );
    bench.grid(&["status", "--exit-code"]).exits(0);
    *older = now;
    true
}

#[test]
fn a_push_killed_at_any_call_is_ended_by_the_next_one() {
    at_each_call("signal=SIGKILL", false);
}

#[test]
fn a_push_killed_at_any_call_and_taken_back_leaves_what_was_there_before() {
    at_each_call("signal=SIGKILL", true);
}

#[test]
fn a_push_that_the_system_refuses_any_call_is_ended_by_the_next_one() {
    at_each_call("error=ENOSPC", false);
}

#[test]
fn a_push_to_a_full_disk_changes_nothing_and_goes_on_once_there_is_room() {
    let bench = bench();
    std::fs::create_dir(bench.path("gitops")).unwrap();
    let disk = delivery_bed::mount::Mount::new(&bench.path(FOLDER), 64);
    bench.grid(&["push", "--all"]).exits(0);
    let older = rendered(&bench);
    // Fills it to the last byte.
    let filler = disk.at.join("kustomization.yaml");
    let mut filled = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write(&mut filled, &[b'#'; 512]).is_ok_and(|written| written > 0) {}
    drop(filled);
    bench.edit("\"older\"", "\"newer\"");
    let refused = bench.grid(&["push", "--behind"]).exits(4).all();
    assert!(refused.contains("No space left on device"), "{refused}");
    assert_eq!(rendered(&bench), older);
    assert_eq!(files(&bench).len(), 4, "what was put aside is gone");
    std::fs::remove_file(&filler).unwrap();
    bench.grid(&["push", "--behind"]).exits(0);
    for file in rendered(&bench) {
        assert!(String::from_utf8_lossy(&file).contains("namespace: newer"));
    }
}
