//! What goes wrong on the controller: its disk is full, its clock goes back, its store is an older copy, names are odd.
//! Nothing is lost, and the next push converges or says what to type. Needs root, as CI has, and faketime.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;
mod support;

use std::collections::BTreeSet;

use delivery_bed::mount::Mount;
use support::{Bench, three_machines};

/// Every secret that was minted, as the store has it.
fn secrets(bench: &Bench, store: &str) -> BTreeSet<String> {
    let shown = bench
        .grid_with(
            ("GRID_STORE", store),
            &["provisions", "--show-secrets", "--json"],
        )
        .exits(0);
    let view: serde_json::Value = serde_json::from_slice(shown.raw()).unwrap();
    let all = view["provisions"].as_array().unwrap().iter();
    all.flat_map(|provision| provision["generations"].as_array().unwrap().clone())
        .filter_map(|generation| generation["secret"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn an_older_copy_of_the_store_is_fenced_and_the_newest_one_goes_on() {
    let bench = three_machines();
    let copy = |from: &str, to: &str| bench.copy(from, to);
    bench.grid(&["push", "--all"]).exits(0);
    copy(".grid", "older");
    // The newest one grants an account, of which the older one knows nothing.
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    bench.grid(&["push", "borealis"]).exits(0);
    copy(".grid", "newest");
    let machines = || {
        let all = bench.everything().into_iter();
        let all = all.filter(|(path, _)| path.to_str().unwrap().contains("/machines/"));
        all.filter(|(path, _)| !path.to_str().unwrap().contains("/lock/"))
            .collect::<Vec<_>>()
    };
    let before = machines();
    copy("older", ".grid");
    let fenced = bench.grid(&["push", "atlas", "borealis"]).exits(8);
    let told = fenced.all();
    for says in [
        "fenced: it holds what a later push (2) of another copy of this store sent",
        "what push 2 of this store sent, which this copy of the store does not know",
        "Put the newest copy back in its place and push from that; or `grid push atlas borealis --take-over`",
    ] {
        assert!(told.contains(says), "{says}: {told}");
    }
    let names = |all: &[(std::path::PathBuf, Vec<u8>)]| -> Vec<String> {
        all.iter()
            .map(|(path, _)| path.display().to_string())
            .collect()
    };
    let log = |path: &std::path::Path| path.ends_with("log");
    assert_eq!(names(&machines()), names(&before));
    for ((path, now), (_, was)) in machines().iter().zip(&before) {
        assert!(now == was || log(path), "{} changed", path.display());
    }
    // And so it is as long as that one is in use.
    bench.grid(&["push", "--behind"]).exits(8);
    copy("newest", ".grid");
    bench.grid(&["push", "--all"]).exits(0);
    bench.grid(&["status", "--probe", "--exit-code"]).exits(0);
}

#[test]
fn a_full_disk_of_the_controller_is_told_and_no_secret_that_was_minted_is_lost() {
    let mut hit = (0, 0);
    for leaving in [0, 8, 64, 520, 640, 800, 1100, 1600, 2200] {
        let bench = three_machines();
        let disk = Mount::new(&bench.path("disk"), 12 * 1024);
        let store = disk.at.join("store");
        let store = store.to_str().unwrap();
        let grid = |arguments: &[&str]| bench.grid_with(("GRID_STORE", store), arguments);
        grid(&["push", "--all"]).exits(0);
        let before = secrets(&bench, store);
        bench.edit(
            "[services.billing]\n",
            "[services.billing]\nnode = \"borealis\"\n",
        );
        disk.fill(leaving);
        let pushed = grid(&["push", "borealis"]);
        match pushed.code() {
            0 => hit.1 += 1,
            1 => {
                let told = pushed.stderr();
                assert_eq!(
                    told.matches("No space left on device").count(),
                    1,
                    "{leaving}: {told}"
                );
                assert!(told.contains("make room there"), "{leaving}: {told}");
                hit.0 += 1;
            }
            other => panic!("{leaving}: exit {other}: {}", pushed.all()),
        }
        disk.empty();
        let minted = secrets(&bench, store);
        assert!(minted.is_superset(&before), "{leaving}");
        grid(&["push", "borealis"]).exits(0);
        grid(&["status", "--exit-code"]).exits(0);
        let after = secrets(&bench, store);
        assert!(after.is_superset(&minted), "{leaving}: a secret is lost");
        assert_eq!(after.len(), before.len() + 1, "{leaving}");
    }
    assert!(hit.0 > 0 && hit.1 > 0, "full and not full: {hit:?}");
}

#[test]
fn a_disk_of_the_controller_that_fills_up_in_mid_push_leaves_the_machine_uncertain_and_the_next_push_asks()
 {
    let bench = three_machines();
    let disk = Mount::new(&bench.path("disk"), 4 * 1024);
    let store = disk.at.join("store");
    let filler = disk.at.join("filler");
    let grid =
        |arguments: &[&str]| bench.grid_with(("GRID_STORE", store.to_str().unwrap()), arguments);
    grid(&["push", "--all"]).exits(0);
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nnode = \"borealis\"\n",
    );
    // Its account is minted and stored, and its provider told; the store cannot keep that.
    let script = bench.read("accounts.sh");
    let fills = format!(
        "load)\n\tcat /dev/zero >'{}' 2>/dev/null || :\n",
        filler.display()
    );
    bench.file("accounts.sh", &script.replacen("load)", &fills, 1));
    let full = grid(&["push", "borealis"]).exits(1);
    let told = full.all();
    assert!(told.contains("No space left on device"), "{told}");
    assert!(told.contains("grid push --behind"), "{told}");
    disk.empty();
    let minted = secrets(&bench, store.to_str().unwrap());
    assert_eq!(
        minted.len(),
        1,
        "the account was stored before anybody heard of it"
    );
    bench.file("accounts.sh", &script);
    let pushed = grid(&["push", "--behind"]).exits(0);
    assert!(pushed.stdout().contains("settled"), "{}", pushed.all());
    assert_eq!(secrets(&bench, store.to_str().unwrap()), minted);
    grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_clock_that_was_set_back_or_far_ahead_keeps_nobody_from_pushing() {
    let bench = three_machines();
    let years = bench.grid_at("+1500d", &["push", "--all"]).exits(0);
    assert!(
        years.stdout().contains("3 machines sent"),
        "{}",
        years.all()
    );
    // The clock goes back, by years; accounts are minted and granted, and one rotated.
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nnode = \"borealis\"\n",
    );
    bench.grid(&["push", "borealis"]).exits(0);
    bench
        .grid_at("-4000d", &["rotate", "accounts/billing"])
        .exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["status", "--probe", "--exit-code"]).exits(0);
    // The journal is in the order in which it was written, whatever its clocks said, and its chain holds.
    let history = bench.grid(&["history", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(history.raw()).unwrap();
    let entries = view["entries"].as_array().unwrap();
    let numbers: Vec<u64> = entries
        .iter()
        .map(|e| e["number"].as_u64().unwrap())
        .collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let mut back = sorted.clone();
    back.reverse();
    assert!(numbers == sorted || numbers == back, "{numbers:?}");
    // A store of this instant, and the lock of one who died in the future.
    let holder =
        r#"{"who":"eva@far","host":"far","pid":1,"since":"2099-01-01T00:00:00Z","what":"push 9"}"#;
    bench.file(".grid/lock", holder);
    bench.grid(&["push", "--all"]).exits(0);
    // A hold ends by the clock as it is now.
    bench
        .grid(&["hold", "cygnus", "moved", "--until", "2999-01-01"])
        .exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid_at("+365000d", &["push", "cygnus"]).exits(0);
}

#[test]
fn a_name_with_a_newline_is_refused_where_it_is_declared() {
    let bench =
        Bench::new("[mesh]\nname = \"try\"\n\n[nodes.atlas]\ncourier = \"local\"\nroot = \"m\"\n");
    let mesh = bench.read("mesh.toml");
    let files =
        |line: &str| format!("[services.a]\nnode = \"atlas\"\n[[services.a.files]]\n{line}\n");
    let cases = [
        files("path = \"a\\nb\"\ncontent = \"x\""),
        files("path = \"/etc/a\\nb\"\ncontent = \"x\""),
        files("path = \"a\"\nsource = \"a\\nb\""),
        files("path = \"a\"\ncontent = \"x\"\nowner = \"a\\nb\""),
        "[services.\"a\\nb\"]\nnode = \"atlas\"\n".to_owned(),
        "[nodes.\"a\\nb\"]\ncourier = \"local\"\n".to_owned(),
        "[nodes.zeus]\naddress = \"a\\nb\"\n".to_owned(),
        "[nodes.zeus]\nuser = \"a\\nb\"\n".to_owned(),
        "[nodes.zeus]\nroot = \"/var/a\\nb\"\n".to_owned(),
        "[nodes.zeus]\ntags = [\"a\\nb\"]\n".to_owned(),
    ];
    bench.file("a\nb", "a file of that name");
    for case in cases {
        bench.file("mesh.toml", &format!("{mesh}\n{case}"));
        let wrong = bench.grid(&["check"]).exits(3).all();
        assert!(wrong.contains("\\n"), "{case}: {wrong}");
        bench.grid(&["push", "--all"]).exits(3);
    }
    // Text is text: a command, a content and a reason may have lines.
    bench.file(
        "mesh.toml",
        &format!("{mesh}\n{}\n[services.b]\nnode = \"atlas\"\napply = [\"sh\", \"-c\", \"true\\ntrue\"]\n", files("path = \"a\"\ncontent = \"x\\ny\"")),
    );
    bench.grid(&["push", "--all"]).exits(0);
    assert_eq!(bench.read("m/current/services/a/a"), "x\ny");
}

#[test]
fn a_folder_with_an_odd_name_is_a_folder_like_any_other() {
    let bench = Bench::new("[mesh]\nname = \"any\"\n");
    let odd = bench.path("-rf it's \"odd\" ü $HOME");
    std::fs::create_dir(&odd).unwrap();
    let text = "[mesh]\nname = \"try\"\n\n[nodes.atlas]\ncourier = \"local\"\nroot = \"m\"\n\n[services.a]\nnode = \"atlas\"\n\n[[services.a.files]]\npath = \"a\"\nsource = \"the file\"\n";
    std::fs::write(odd.join("mesh.toml"), text).unwrap();
    std::fs::write(odd.join("the file"), "x".repeat(70_000)).unwrap();
    let push = ["--mesh", odd.to_str().unwrap(), "push", "--all"];
    bench.grid(&push).exits(0);
    let file = odd.join("m/current/services/a/a");
    assert_eq!(std::fs::metadata(file).unwrap().len(), 70_000);
    bench.grid(&push).exits(0);
}
