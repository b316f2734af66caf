//! Every kind's load and check is a text of POSIX shell: clean under shellcheck, and parsed by each shell
//! that a machine may have as its `sh`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test's helpers are tests too"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use grid::kinds::{NAMES, Owner, Provider};
use grid::words::{MeshName, ServiceName};

/// Settings of a kind, with what is hardest to quote.
fn settings(name: &str) -> &'static str {
    match name {
        "rabbitmq" => r#"rabbitmqctl = ["it's", "a $b", "-x"]"#,
        "custom" => {
            r#"
            template = "a"
            load = ["{release}/it's", "$b; c", "-x", ""]
            check = ["{release}/it's", "`b`"]
            "#
        }
        other => panic!("give the kind {other} settings here"),
    }
}

/// Name of the kind, name of the script, text.
fn scripts() -> Vec<(String, String)> {
    let mesh = MeshName::new("prod").unwrap();
    let service = ServiceName::new("broker").unwrap();
    let owner = Owner {
        mesh: &mesh,
        provider: &service,
    };
    NAMES
        .iter()
        .flat_map(|name| {
            let settings = toml::de::Deserializer::parse(settings(name)).unwrap();
            let provider = Provider::read(name, settings).unwrap().unwrap();
            let kind = provider.kind();
            [
                (format!("{name} load"), kind.load(owner).0),
                (format!("{name} check"), kind.check(owner).0),
            ]
        })
        .collect()
}

/// Runs a tool over every script, and over one that it must refuse. A tool that is absent fails the test on
/// CI, and skips it elsewhere.
fn every_script_passes(tool: &[&str]) {
    let broken = ("broken".to_owned(), "if true; then echo\n".to_owned());
    for (name, text) in scripts().into_iter().chain([broken]) {
        let child = Command::new(tool[0])
            .args(&tool[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) if std::env::var_os("CI").is_none() => {
                eprintln!("skipped: {}: {error}", tool[0]);
                return;
            }
            Err(error) => panic!("{} is needed on CI: {error}", tool[0]),
        };
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.success(),
            name != "broken",
            "{name} under {tool:?}:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn every_script_is_clean_under_shellcheck() {
    // SC2016: that a `$` in single quotes does not expand is what the quoting of commands is for.
    every_script_passes(&["shellcheck", "-s", "sh", "-e", "SC2016", "-"]);
}

#[test]
fn dash_parses_every_script() {
    every_script_passes(&["dash", "-n"]);
}

#[test]
fn bash_parses_every_script() {
    every_script_passes(&["bash", "--posix", "-n"]);
}

#[test]
fn busybox_parses_every_script() {
    every_script_passes(&["busybox", "sh", "-n"]);
}
