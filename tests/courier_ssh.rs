//! The courier `ssh` against a real sshd. Needs root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use delivery_bed::sshd::{Sshd, free_port};
use delivery_bed::{failure, service};
use grid::delivery::{Answer, FailedStep, Outcome, Progress};

#[test]
fn a_bundle_goes_over_ssh_and_a_contact_sends_nothing() {
    let sshd = Sshd::start();
    // 127.0.0.1 stands hashed in known_hosts, 127.0.0.2 in plain.
    for address in ["127.0.0.1", "127.0.0.2"] {
        let mut bed = sshd.bed(address);
        let big = vec![b'x'; 3_000_000];
        let services = [
            service("app")
                .file("big", &big)
                .file("small", "s")
                .logged(&bed),
            service("broker").grants(&["app"], &bed).logged(&bed),
        ];
        let applied = bed.applied(&services);
        assert!(applied.bytes > 3_000_000);
        assert_eq!(bed.read("services/app/small").unwrap(), "s");
        bed.log();
        let applied = bed.applied(&services);
        assert_eq!((applied.bytes, applied.files), (0, 0));
        assert_eq!(bed.log(), ["check app", "check broker"]);
        let holding = bed.ask();
        assert_eq!(
            (holding.token, holding.manifest),
            (bed.held, bed.base.clone())
        );
    }
}

#[test]
fn an_unknown_and_a_changed_host_key_are_refused_with_their_fingerprint() {
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    let known = fs::read_to_string(sshd.known_hosts()).unwrap();
    fs::write(sshd.known_hosts(), "").unwrap();
    let outcome = bed.send(&[service("app")]);
    let (step, _, cause) = failure(&outcome);
    assert_eq!(step, FailedStep::HostKey);
    assert!(
        cause.contains("is not known: ssh-ed25519 SHA256:"),
        "{cause}"
    );
    let Outcome::NotReached(failure_) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(failure_.hint.unwrap().contains("grid trust atlas SHA256:"));

    let other = sshd.dir.path().join("other");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&other)
        .status()
        .unwrap();
    assert!(made.success());
    let other = fs::read_to_string(other.with_extension("pub")).unwrap();
    let address = format!("[127.0.0.1]:{}", sshd.port);
    fs::write(sshd.known_hosts(), format!("{address} {other}")).unwrap();
    let (step, _, cause) = failure(&bed.send(&[service("app")]));
    assert_eq!(step, FailedStep::HostKey);
    assert!(
        cause.contains("has changed") && cause.contains("known_hosts:1"),
        "{cause}"
    );

    // The mesh's own file vouches for it as well.
    fs::write(bed.dir.path().join("known_hosts"), known).unwrap();
    fs::write(sshd.known_hosts(), "").unwrap();
    bed.applied(&[service("app")]);

    let key = fs::read_to_string(sshd.dir.path().join("host_key.pub")).unwrap();
    fs::write(sshd.known_hosts(), format!("@revoked * {key}")).unwrap();
    let (step, _, cause) = failure(&bed.send(&[service("app")]));
    assert_eq!(step, FailedStep::HostKey);
    assert!(cause.contains("revoked"), "{cause}");
}

#[test]
fn who_is_not_let_in_is_told_what_was_tried() {
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    fs::write(sshd.dir.path().join("authorized_keys"), "").unwrap();
    let (step, _, cause) = failure(&bed.send(&[service("app")]));
    assert_eq!(step, FailedStep::Authenticate);
    assert!(cause.contains("id_ed25519"), "{cause}");
    let key = sshd.home().join(".ssh/id_ed25519");
    let locked = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "", "-N", "a passphrase", "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(locked.success());
    let (step, _, cause) = failure(&bed.send(&[service("app")]));
    assert_eq!(step, FailedStep::Authenticate);
    assert!(cause.contains("has a passphrase"), "{cause}");
}

#[test]
fn a_refused_port_is_retried_and_named() {
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    bed.ssh = Some(("127.0.0.1".into(), free_port(), sshd.home()));
    let outcome = bed.send(&[service("app")]);
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::NotReached(_)));
    assert_eq!(step, FailedStep::Connect);
    assert!(cause.contains("connection refused"), "{cause}");
    let retries = bed
        .progress
        .iter()
        .filter(|p| matches!(p, Progress::Retrying { .. }))
        .count();
    assert_eq!(retries, 2);
    assert!(matches!(bed.answer(), Answer::Unknown(f) if f.step == FailedStep::Connect));
}

#[test]
fn what_sudo_says_is_told_when_it_is_not_there() {
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    bed.become_root = Some(grid::mesh::Become::Sudo);
    // A machine without sudo: the login's shell says so.
    sshd.authorize(
        "command=\"PATH=/nowhere; export PATH; exec /bin/sh -c \\\"$SSH_ORIGINAL_COMMAND\\\"\" ",
    );
    let outcome = bed.send(&[service("app")]);
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Start);
    assert!(cause.contains("sudo: not found"), "{cause}");
}

/// Passes bytes on to sshd, and cuts both ways once the controller has sent `limit`.
fn cutter(to: u16, limit: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let Ok((mut client, _)) = listener.accept() else {
            return;
        };
        let mut server = TcpStream::connect(("127.0.0.1", to)).unwrap();
        let (mut back_from, mut back_to) =
            (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let (mut buffer, mut passed) = ([0; 4096], 0);
        while passed < limit {
            match client.read(&mut buffer) {
                Ok(n) if n > 0 => {
                    passed += n;
                    server.write_all(&buffer[..n]).unwrap();
                }
                _ => break,
            }
        }
        let _ = client.shutdown(std::net::Shutdown::Both);
        let _ = server.shutdown(std::net::Shutdown::Both);
    });
    port
}

#[test]
fn a_connection_that_is_cut_in_the_middle_of_the_files_has_changed_nothing() {
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    let app = service("app").file("a", "1").logged(&bed);
    bed.applied(std::slice::from_ref(&app));
    let held = bed.held;
    let big = app.clone().file("big", vec![7; 8_000_000]);
    let port = cutter(sshd.port, 1_000_000);
    let key = fs::read_to_string(sshd.dir.path().join("host_key.pub")).unwrap();
    fs::write(
        bed.dir.path().join("known_hosts"),
        format!("[127.0.0.1]:{port} {key}"),
    )
    .unwrap();
    bed.ssh = Some(("127.0.0.1".into(), port, sshd.home()));
    let outcome = bed.send(std::slice::from_ref(&big));
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Unpack, "{cause}");
    bed.ssh = Some(("127.0.0.1".into(), sshd.port, sshd.home()));
    assert_eq!(bed.ask().token, held);
    assert!(bed.read("services/app/big").is_none());
    bed.applied(&[big]);
}

#[test]
fn a_machine_that_says_nothing_is_not_waited_for_beyond_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    bed.timeout = std::time::Duration::from_secs(1);
    bed.ssh = Some(("127.0.0.1".into(), port, sshd.home()));
    let (step, _, cause) = failure(&bed.send(&[service("app")]));
    assert_eq!(step, FailedStep::Connect);
    assert!(cause.contains("timed out"), "{cause}");
    drop(listener);
}

#[test]
fn a_machine_behind_jump_hosts_or_a_proxy_command_is_reached_through_them() {
    let sshd = Sshd::start();
    let proxies = [
        ("ProxyJump root@127.0.0.3", 2),
        ("ProxyJump root@127.0.0.3,root@127.0.0.4", 3),
        ("ProxyCommand busybox nc \"%h\" %p", 1),
    ];
    for (proxy, logins) in proxies {
        // Nobody but the one at its end knows this name: straight it is not reached.
        sshd.config(&format!(
            "Host atlas.invalid\n HostName 127.0.0.2\n {proxy}"
        ));
        let mut bed = sshd.bed("atlas.invalid");
        let before = sshd.logins();
        bed.applied(&[service("app").file("a", "1")]);
        assert_eq!(sshd.logins() - before, logins, "{proxy}");
    }
    sshd.config(
        "Host atlas.invalid\n HostName 127.0.0.2\n ProxyCommand sh -c 'echo no way >&2; exit 1'",
    );
    let outcome = sshd.bed("atlas.invalid").send(&[service("app")]);
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::NotReached(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Connect);
    assert!(cause.contains("on the way there: no way"), "{cause}");
}

/// A host without IPv6 has nothing to show here.
#[test]
fn a_machine_is_reached_over_ipv6_and_known_by_its_port() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let sshd = Sshd::start();
    sshd.config("");
    let mut bed = sshd.bed("::1");
    let app = service("app").file("a", "1").logged(&bed);
    let (step, _, cause) = failure(&bed.send(std::slice::from_ref(&app)));
    assert_eq!(step, FailedStep::HostKey, "{cause}");
    let key = fs::read_to_string(sshd.dir.path().join("host_key.pub")).unwrap();
    let line = format!("[::1]:{} {key}", sshd.port);
    fs::write(sshd.known_hosts(), line).unwrap();
    for openssh in [false, true] {
        bed.openssh = openssh;
        bed.applied(std::slice::from_ref(&app));
        assert_eq!(bed.ask().token, bed.held, "openssh: {openssh}");
    }
}

#[test]
fn the_systems_ssh_delivers_too_and_its_failures_are_told_from_the_machines() {
    let sshd = Sshd::start();
    sshd.config("");
    let mut bed = sshd.bed("127.0.0.1");
    bed.openssh = true;
    let app = service("app")
        .file("big", vec![b'x'; 3_000_000])
        .logged(&bed);
    bed.applied(std::slice::from_ref(&app));
    assert_eq!(bed.ask().token, bed.held);

    // The command over there ends with 255, as `ssh` does where it fails itself.
    sshd.authorize("command=\"exit 255\" ");
    let outcome = bed.send(std::slice::from_ref(&app));
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Start);
    assert!(cause.contains("exit status: 255"), "{cause}");

    fs::write(sshd.dir.path().join("authorized_keys"), "").unwrap();
    let outcome = bed.send(std::slice::from_ref(&app));
    let (step, _, cause) = failure(&outcome);
    assert!(matches!(outcome, Outcome::NotReached(_)), "{outcome:?}");
    assert_eq!(step, FailedStep::Authenticate);
    assert!(cause.contains("Permission denied"), "{cause}");

    let known = fs::read_to_string(sshd.known_hosts()).unwrap();
    fs::write(sshd.known_hosts(), "").unwrap();
    let (step, ..) = failure(&bed.send(std::slice::from_ref(&app)));
    assert_eq!(step, FailedStep::HostKey);

    // The mesh's own file vouches for it as well.
    fs::write(bed.dir.path().join("known_hosts"), known).unwrap();
    sshd.authorize("");
    bed.applied(std::slice::from_ref(&app));

    bed.ssh = Some(("127.0.0.1".into(), free_port(), sshd.home()));
    let (step, _, cause) = failure(&bed.send(std::slice::from_ref(&app)));
    assert_eq!(step, FailedStep::Connect);
    assert!(cause.contains("Connection refused"), "{cause}");
    bed.ssh = Some(("nowhere.invalid".into(), sshd.port, sshd.home()));
    let (step, ..) = failure(&bed.send(std::slice::from_ref(&app)));
    assert_eq!(step, FailedStep::Resolve);
}

#[test]
fn a_machine_is_trusted_by_exactly_the_key_that_was_named() {
    let sshd = Sshd::start();
    let key = fs::read_to_string(sshd.dir.path().join("host_key.pub")).unwrap();
    let shown = Command::new("ssh-keygen")
        .arg("-lf")
        .arg(sshd.dir.path().join("host_key.pub"))
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let fingerprint = shown.split_whitespace().nth(1).unwrap();
    let bench = support::Bench::new(&format!(
        "[mesh]\nname = \"try\"\n[nodes.atlas]\naddress = \"127.0.0.1\"\nport = {}\nuser = \"root\"\n\
         identity = \"{}\"\nroot = \"{}\"\n[services.app]\nnode = \"atlas\"\n",
        sshd.port,
        sshd.home().join(".ssh/id_ed25519").display(),
        sshd.dir.path().join("machine").display(),
    ));
    let unknown = bench.grid(&["push", "atlas"]).exits(4);
    let typed = format!("grid trust atlas {fingerprint}");
    assert!(unknown.all().contains(&typed), "{}", unknown.all());

    let other = format!("SHA256:{}", "A".repeat(43));
    let refused = bench.grid(&["trust", "atlas", &other]).exits(4);
    assert!(
        refused
            .stderr()
            .contains(&format!("it shows ssh-ed25519 {fingerprint}")),
        "{}",
        refused.all()
    );
    assert!(!bench.path("known_hosts").exists());
    bench.grid(&["trust", "atlas", "SHA256:short"]).exits(2);
    bench.grid(&["trust", "atlsa", fingerprint]).exits(2);

    bench.grid(&["trust", "atlas", fingerprint]).exits(0);
    let words: Vec<&str> = key.split_whitespace().collect();
    assert_eq!(
        bench.read("known_hosts"),
        format!("[127.0.0.1]:{} {} {}\n", sshd.port, words[0], words[1])
    );
    let home = bench.mesh.parent().unwrap().join("home/.ssh");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("config"), "Match host 127.0.0.*\n Port 1\n").unwrap();
    let pushed = bench.grid(&["push", "atlas"]).exits(0);
    assert!(
        pushed
            .stderr()
            .contains("~/.ssh/config:1: this `Match` block may apply to atlas, and is not read"),
        "{}",
        pushed.all()
    );
    bench.grid(&["status", "--probe", "--exit-code"]).exits(0);
}
