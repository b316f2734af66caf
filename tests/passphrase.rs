//! A key with a passphrase, at a real terminal and without one, on a real sshd. Needs root, as CI has, and python3.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;
mod support;

use delivery_bed::sshd::{Sshd, runs};
use support::{Bench, Seen};

const RIGHT: &str = "the right words, with a ü";

/// Three machines that all want one key, which has a passphrase.
fn three() -> (Sshd, Bench) {
    let sshd = Sshd::start();
    let mut text = String::from(
        "[mesh]\nname = \"try\"\n\n[services.app]\nnodes = [\"atlas\", \"borealis\", \"cygnus\"]\n\n",
    );
    for (last, name) in [(2, "atlas"), (3, "borealis"), (4, "cygnus")] {
        text.push_str(&format!(
            "[nodes.{name}]\naddress = \"127.0.0.{last}\"\nport = {}\nuser = \"root\"\nidentity = \"{}\"\nroot = \"{}\"\n\n",
            sshd.port,
            sshd.home().join(".ssh/id_ed25519").display(),
            sshd.dir.path().join(name).display(),
        ));
    }
    let bench = Bench::new(&text);
    std::fs::copy(sshd.known_hosts(), bench.path("known_hosts")).unwrap();
    let key = sshd.home().join(".ssh/id_ed25519");
    runs(
        "ssh-keygen",
        &[
            "-q",
            "-p",
            "-P",
            "",
            "-N",
            RIGHT,
            "-f",
            key.to_str().unwrap(),
        ],
    );
    (sshd, bench)
}

/// Pushes at a terminal, where somebody types these answers.
fn pushed(bench: &Bench, answers: &[&str]) -> Seen {
    let arguments = ["push", "--all"];
    let grid = bench.command(&arguments);
    let mut python = std::process::Command::new("python3");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/passphrase.py"));
    python
        .args(answers)
        .arg("--")
        .arg(grid.get_program())
        .args(grid.get_args());
    python.current_dir(&bench.mesh).env_clear();
    for (name, value) in grid.get_envs() {
        python.env(name, value.unwrap());
    }
    bench.seen(python.output().unwrap(), &arguments)
}

fn questions(seen: &Seen) -> usize {
    seen.stdout().matches("Passphrase of ").count()
}

#[test]
fn a_passphrase_is_asked_for_at_a_terminal_once_for_all_machines_and_not_echoed() {
    let (_sshd, bench) = three();
    let seen = pushed(&bench, &[RIGHT]).exits(0);
    assert_eq!(questions(&seen), 1, "{}", seen.all());
    assert!(seen.stdout().contains("[quiet]"), "{}", seen.all());
    assert!(!seen.stdout().contains(RIGHT), "{}", seen.all());
    assert!(seen.stdout().contains("3 machines sent"), "{}", seen.all());
}

#[test]
fn a_wrong_passphrase_may_be_typed_again_but_not_more_than_three_times() {
    let (_sshd, bench) = three();
    // One is taken back before it is sent: Ctrl-U, and a letter by backspace.
    let corrected = format!("oops\u{15}{RIGHT}ü\u{7f}");
    let seen = pushed(&bench, &["wrong", &corrected]).exits(0);
    assert_eq!(questions(&seen), 2, "{}", seen.all());
    assert!(
        seen.stdout().contains("Wrong. Passphrase of "),
        "{}",
        seen.all()
    );
    bench.edit("[services.app]\n", "[services.app]\nowner = \"root\"\n");
    let seen = pushed(&bench, &["a", "b", "c"]).exits(4);
    assert_eq!(questions(&seen), 3, "{}", seen.all());
    let told = seen.stdout();
    assert!(
        told.contains("was wrong three times") && told.contains("ssh-add "),
        "{told}"
    );
    for machine in ["atlas", "borealis", "cygnus"] {
        assert!(told.contains(&format!("failed      {machine}")), "{told}");
    }
}

#[test]
fn who_interrupts_or_says_nothing_is_not_asked_again() {
    let (_sshd, bench) = three();
    let seen = pushed(&bench, &["^C"]).exits(130);
    assert_eq!(questions(&seen), 1, "{}", seen.all());
    let seen = pushed(&bench, &["\u{4}"]).exits(4);
    assert_eq!(questions(&seen), 1, "{}", seen.all());
    assert!(
        seen.stdout()
            .contains("has a passphrase, and no agent holds it"),
        "{}",
        seen.all()
    );
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let (_sshd, bench) = three();
    // `setsid`: whoever runs the tests may have one.
    let arguments = ["push", "--all"];
    let grid = bench.command(&arguments);
    let mut apart = std::process::Command::new("setsid");
    apart
        .arg("-w")
        .arg(grid.get_program())
        .args(grid.get_args());
    apart
        .current_dir(&bench.mesh)
        .env_clear()
        .stdin(std::process::Stdio::null());
    for (name, value) in grid.get_envs() {
        apart.env(name, value.unwrap());
    }
    let seen = bench.seen(apart.output().unwrap(), &arguments).exits(4);
    let told = seen.all();
    assert!(
        told.contains("has a passphrase, and no agent holds it"),
        "{told}"
    );
    assert!(told.contains("ssh-add "), "{told}");
    assert!(!told.contains("Passphrase of"), "{told}");
}
