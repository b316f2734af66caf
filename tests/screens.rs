//! Screens as an operator sees them, on terminals of 80 and of 40 columns: what, which machine, which step, the cause,
//! and what to type next. `INSTA_UPDATE=always cargo test --test screens` writes them anew; then read each of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test may fall"
)]

mod delivery_bed;
mod support;

use std::io::Write as _;

use delivery_bed::sshd::Sshd;
use support::{Bench, in_order, three_machines};

/// Who operates; as long as what stands for it on every host, since lines are broken by their length.
const WHO: &str = "maria.lindqvist@laptop-3";

fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The user's name that makes `user@host` as long as [`WHO`].
fn user() -> (String, String) {
    let host = host();
    let user = "maria.lindqvist.of.operations"[..WHO.len() - 1 - host.len()].to_owned();
    (format!("{user}@{host}"), user)
}

/// On a host with a longer name: runs the test that runs now once more where the host has a short one.
fn is_run_under_a_shorter_name() -> bool {
    if host().len() + 2 <= WHO.len() {
        return false;
    }
    let test = std::thread::current().name().unwrap().to_owned();
    let renamed = "echo runner-1 >/proc/sys/kernel/hostname && exec \"$0\" \"$@\"";
    let anybody: &[&str] = match rustix::process::geteuid().is_root() {
        true => &[],
        false => &["--user", "--map-root-user"],
    };
    let status = std::process::Command::new("unshare")
        .args(anybody)
        .args(["--uts", "sh", "-c", renamed])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &test])
        .status();
    assert!(status.unwrap().success(), "{test}, with another host name");
    true
}

/// What is typed last on a bench that `set_up` made, at both widths.
fn screen(name: &str, arguments: &[&str], set_up: impl Fn() -> Bench) {
    screens(name, arguments, || (set_up(), ()));
}

/// The same, where something has to stay until it is over.
fn screens<Kept>(name: &str, arguments: &[&str], set_up: impl Fn() -> (Bench, Kept)) {
    if is_run_under_a_shorter_name() {
        return;
    }
    let (who, user) = user();
    let mut text = format!("$ grid {}\n", arguments.join(" "));
    for columns in [80, 40] {
        let (bench, _kept) = set_up();
        let seen = bench.on_a_terminal(columns, &user, arguments);
        let seen = seen.replace(&who, WHO);
        let rule = format!(
            "{:-<width$}",
            format!("-- {columns} columns "),
            width = usize::from(columns)
        );
        text.push_str(&format!("{rule}\n{}", in_order(&seen)));
        fits(&seen, columns);
    }
    // Each as long as what it stands for.
    let same_length = vec![
        (r"\b\d\.\d s\b", "0.0 s"),
        (
            r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ",
            "2026-01-01T00:00:00Z",
        ),
        (r"\b[0-9a-f]{16}\b", "0123456789abcdef"),
        (r"\b[0-9a-f]{12}\b", "0123456789ab"),
        (
            r"SHA256:[A-Za-z0-9+/]{43}",
            "SHA256:8ca2+Wap+5kV5tTAnBkyoCtb9zAVQ2qpdBZ4L2L8fyQ",
        ),
        (
            r"age1[a-z0-9]{58}",
            "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
        ),
        (r":[1-9]\d{4}\b", ":22222"),
        (r"process \d+", "process 4711"),
        (r"\bgrid \d+\.\d+\.\d+", "grid 0.1.0"),
    ];
    insta::with_settings!({filters => same_length, omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, text);
    });
}

/// No line is wider than the terminal, but for a single word, or what stands in a file.
fn fits(seen: &str, columns: u16) {
    for line in seen.lines() {
        let is_one_word = line.trim_start().split("  ").count() == 1 && !line.trim().contains(' ');
        let is_excerpt = line.starts_with("  ") && line.contains(" | ");
        let width = line.chars().count();
        assert!(
            width <= usize::from(columns) || is_one_word || is_excerpt,
            "{width} of {columns}: {line}"
        );
    }
}

/// `billing` is to go to borealis, and its account is minted.
fn assigned() -> Bench {
    let (_, user) = user();
    let bench = three_machines();
    for arguments in [&["push", "--all"][..], &["assign", "billing", "borealis"]] {
        bench.grid_with(("USER", &user), arguments).exits(0);
    }
    bench
}

#[test]
fn a_push() {
    screen("push", &["push", "borealis"], || {
        let bench = assigned();
        bench.file("notice.txt", "changed\n");
        bench
    });
}

#[test]
fn a_dry_run() {
    screen("dry-run", &["push", "--all", "--dry-run"], || {
        let bench = three_machines();
        bench.edit(
            "[services.billing]\n",
            "[services.billing]\nnode = \"borealis\"\n",
        );
        bench
    });
}

#[test]
fn a_failed_push() {
    screen("failed-push", &["push", "borealis"], || {
        let bench = assigned();
        let script = bench.read("accounts.sh");
        let fails = "load)\n\techo \"cannot write accounts: disk full\"\n\texit 1";
        bench.file("accounts.sh", &script.replace("load)", fails));
        bench
    });
}

#[test]
fn a_push_whose_rounds_ran_out() {
    screen(
        "rounds-ran-out",
        &["push", "borealis", "--max-rounds", "1"],
        assigned,
    );
}

#[test]
fn a_status() {
    screen("status", &["status"], || {
        let bench = assigned();
        bench
            .grid(&[
                "hold",
                "atlas",
                "in the rack on Monday",
                "--until",
                "2099-12-01",
            ])
            .exits(0);
        bench.file("notice.txt", "changed\n");
        bench.grid(&["push", "borealis"]).exits(4);
        bench.file("notice.txt", "changed again\n");
        bench
    });
}

#[test]
fn what_waits_for_a_machine_on_hold() {
    screen("waits", &["push", "borealis"], || {
        let bench = assigned();
        bench
            .grid(&["hold", "atlas", "in the rack on Monday"])
            .exits(0);
        bench
    });
}

#[test]
fn declaration_errors() {
    screen("declaration-errors", &["check"], || {
        Bench::new(
            "[mesh]\nname = \"prod\"\n\n[nodes.atlas]\nadress = \"10.0.0.1\"\n\n[services.billing]\nnode = \"atals\"\nconsumes = [\"broker\"]\n",
        )
    });
}

#[test]
fn a_check_that_finds_nothing_wrong() {
    screen("check-ok", &["check"], three_machines);
}

#[test]
fn accounts() {
    screen("provisions", &["provisions"], || {
        let bench = assigned();
        bench.grid(&["push", "borealis"]).exits(0);
        bench
            .grid(&["issue", "accounts/report", "--outside"])
            .exits(0);
        bench.grid(&["rotate", "accounts/billing"]).exits(0);
        bench
    });
}

#[test]
fn a_history() {
    screen("history", &["history"], || {
        let (_, user) = user();
        let bench = three_machines();
        let grid = |arguments: &[&str]| bench.grid_with(("USER", &user), arguments);
        grid(&["push", "--all"]).exits(0);
        grid(&["hold", "atlas", "in the rack on Monday"]).exits(0);
        grid(&["assign", "billing", "borealis"]).exits(0);
        grid(&["push", "borealis"]).exits(4);
        bench
    });
}

/// Holds the lock of a mesh as somebody on another host, whose process nobody here can ask for.
fn lock(bench: &Bench) -> std::fs::File {
    let mut file = std::fs::File::create(bench.path(".grid/lock")).unwrap();
    file.try_lock().unwrap();
    let record = format!(
        r#"{{"who":"{WHO}","host":"laptop-3","pid":4711,"since":"2026-01-01T00:00:00Z","what":"push"}}"#
    );
    file.write_all(record.as_bytes()).unwrap();
    file
}

#[test]
fn another_push_holds_the_lock() {
    screens("locked", &["push", "borealis"], || {
        let bench = assigned();
        let lock = lock(&bench);
        (bench, lock)
    });
}

#[test]
fn a_status_while_a_push_runs() {
    screens("status-locked", &["status"], || {
        let bench = assigned();
        let lock = lock(&bench);
        (bench, lock)
    });
}

#[test]
fn a_machine_that_another_store_sent_to() {
    screen("fence", &["push", "cygnus"], || {
        let (_, user) = user();
        let bench = three_machines();
        bench
            .grid_with(("USER", &user), &["push", "--all"])
            .exits(0);
        std::fs::rename(bench.path(".grid"), bench.path("lost")).unwrap();
        bench
    });
}

/// Two machines behind a real sshd; one service on each.
fn behind_sshd() -> (Bench, Sshd) {
    let sshd = Sshd::start();
    let bench = Bench::new(&format!(
        r#"
[mesh]
name = "prod"

[defaults]
address = "127.0.0.1"
port = {}
user = "root"
identity = "{}"

[nodes.atlas]
root = "{}"

[services.notice]
node = "atlas"

[[services.notice.files]]
path = "notice.txt"
content = "here"
"#,
        sshd.port,
        sshd.home().join(".ssh/id_ed25519").display(),
        sshd.dir.path().join("machine").display(),
    ));
    (bench, sshd)
}

#[test]
fn a_host_key_that_is_not_known() {
    screens("host-key-unknown", &["push", "atlas"], behind_sshd);
}

#[test]
fn a_host_key_that_has_changed() {
    screens("host-key-changed", &["push", "atlas"], || {
        let (bench, sshd) = behind_sshd();
        std::fs::copy(sshd.known_hosts(), bench.path("known_hosts")).unwrap();
        sshd.set_up_anew();
        (bench, sshd)
    });
}

#[test]
fn a_machine_that_is_down() {
    screens("unreachable", &["push", "atlas"], || {
        let (bench, sshd) = behind_sshd();
        let port = format!("port = {}", sshd.port);
        bench.edit(
            &port,
            &format!("port = {}", delivery_bed::sshd::free_port()),
        );
        (bench, sshd)
    });
}

#[test]
fn a_store_that_is_sealed_for_somebody_else() {
    screen("sealed", &["status"], || {
        let bench = assigned();
        let other = Bench::new("[mesh]\nname = \"other\"\n");
        let identity = |bench: &Bench| bench.path("../config/grid/identity.txt");
        std::fs::copy(identity(&other), identity(&bench)).unwrap();
        bench
    });
}

#[test]
fn colour_is_all_that_no_color_takes_away() {
    if is_run_under_a_shorter_name() {
        return;
    }
    let bench = assigned();
    bench.grid(&["hold", "atlas", "in the rack"]).exits(0);
    for arguments in [&["status"][..], &["check"], &["push", "zeus"], &["history"]] {
        let plain = bench.grid(arguments);
        let mut coloured = arguments.to_vec();
        coloured.push("--color=always");
        let coloured = bench.grid(&coloured).bytes();
        let coloured = String::from_utf8(coloured).unwrap();
        assert!(coloured.contains("\u{1b}["), "{coloured}");
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, escape)) = rest.split_once("\u{1b}[") {
            stripped.push_str(before);
            rest = escape.split_once('m').unwrap().1;
        }
        stripped.push_str(rest);
        let plain = String::from_utf8(plain.bytes()).unwrap();
        assert_eq!(stripped, plain);
    }
}
