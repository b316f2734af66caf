//! A planted secret is searched for in the argument lists and environments of all processes while a push goes on, on
//! both sides, and in what is printed at `-vv`. The search is proven by finding planted words that are no secrets.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

/// Which of `words` stand in the argument list or environment of some process now.
fn look(words: &[&str], found: &mut [bool]) {
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(process.path().join(file)).unwrap_or_default();
            for (word, found) in words.iter().zip(found.iter_mut()) {
                *found |= holds(&bytes, word);
            }
        }
    }
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes
        .windows(word.len())
        .any(|part| part == word.as_bytes())
}

#[test]
fn no_secret_is_in_any_argument_list_or_environment_while_a_push_goes_on() {
    let bench = support::three_machines();
    // The load, which reads the list, waits until it was looked at.
    let script = bench.read("accounts.sh");
    let gate = bench.path("gate");
    bench.file(
        "accounts.sh",
        &script.replace(
            "load)",
            &format!(
                "load)\n\tsh -c 'until [ -e \"$1\" ]; do sleep 0.05; done' planted-argument-7291 {}",
                gate.display()
            ),
        ),
    );
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    let shown = bench
        .grid(&["provisions", "--show-secrets", "--json"])
        .exits(0);
    let view: serde_json::Value = serde_json::from_slice(shown.raw()).unwrap();
    let secret = view["provisions"][0]["generations"][0]["secret"]
        .as_str()
        .unwrap();
    assert!(holds(shown.raw(), secret), "the search finds what is there");

    let words = [secret, "planted-argument-7291", "planted-variable-7291"];
    let mut found = [false; 3];
    let arguments = ["push", "--all", "-vv"];
    let mut child = bench
        .command(&arguments)
        .env("PLANTED", "planted-variable-7291")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        look(&words, &mut found);
        if found[1] && found[2] {
            std::fs::write(&gate, "").unwrap();
        }
    }
    let seen = bench
        .seen(child.wait_with_output().unwrap(), &arguments)
        .exits(0);
    assert_eq!(found, [false, true, true], "{}", seen.all());
    assert!(!holds(&seen.bytes(), secret));
    assert!(holds(&seen.bytes(), "load of accounts"), "{}", seen.all());
}
