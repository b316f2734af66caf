//! What is generated is current, and what the pages tell an operator to type is a command.
//! `GRID_UPDATE=1 cargo test --test cli_docs` writes what is generated anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod support;

use std::path::{Path, PathBuf};

use clap::Parser as _;
use grid::cli::commands::{Shell, man_pages};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a committed file with what it should be, or writes it.
fn hold(path: &str, content: &[u8], stale: &mut Vec<String>) {
    let full = root().join(path);
    if std::env::var_os("GRID_UPDATE").is_some() {
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(&full, content).unwrap();
    } else if std::fs::read(&full).unwrap_or_default() != content {
        stale.push(path.to_owned());
    }
}

fn named(folder: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn man_pages_completions_and_schemas_are_current() {
    let mut stale = Vec::new();
    let pages = man_pages().unwrap();
    for (name, page) in &pages {
        hold(&format!("man/{name}"), page, &mut stale);
    }
    // These have tests of their own, in tests/schemas.rs.
    let mut schemas: Vec<String> = [
        "gridnetworks.crd.yaml",
        "gridsites.crd.yaml",
        "mesh.schema.json",
        "overlay.schema.json",
    ]
    .map(str::to_owned)
    .to_vec();
    for (name, schema) in grid::cli::view::schemas() {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        hold(
            &format!("schemas/{name}.schema.json"),
            text.as_bytes(),
            &mut stale,
        );
        schemas.push(format!("{name}.schema.json"));
    }
    assert!(
        stale.is_empty(),
        "GRID_UPDATE=1 cargo test --test cli_docs writes these anew: {stale:?}"
    );
    // Nothing lies there that is not generated any more.
    let mut expected: Vec<String> = pages.into_iter().map(|(name, _)| name).collect();
    expected.sort();
    assert_eq!(named("man"), expected);
    schemas.sort();
    assert_eq!(named("schemas"), schemas);
    let mut shells = Shell::ALL.map(Shell::file);
    shells.sort_unstable();
    assert_eq!(named("completions"), shells);
}

#[test]
fn what_is_shipped_cites_no_page_that_is_not_shipped() {
    let mut citing = Vec::new();
    for folder in ["man", "completions", "schemas", "packaging", "examples/try"] {
        for name in named(folder) {
            citing.push(format!("{folder}/{name}"));
        }
    }
    citing.extend(["README.md", "CHANGELOG.md", "tests/support/help.txt"].map(str::to_owned));
    citing.retain(|path| {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        text.contains("DESIGN")
    });
    assert!(citing.is_empty(), "{citing:?}");
}

/// The help of every command, one after the other.
fn whole_help() -> String {
    let mut tree = grid::cli::tree().term_width(100);
    tree.build();
    let mut text = tree.render_long_help().to_string();
    let mut tell = |name: &str, command: &mut clap::Command| {
        text.push_str(&format!("\n\n==== grid {name} ====\n\n"));
        let help = command.render_long_help().to_string();
        // What all commands share stands above.
        let help = match help.split_once("Global options:") {
            Some((own, rest)) => {
                let after = rest.find("\nExample").map_or("", |at| &rest[at..]);
                format!("{own}{after}")
            }
            None => help,
        };
        text.push_str(help.trim_end());
    };
    for command in tree.get_subcommands_mut() {
        let name = command.get_name().to_owned();
        tell(&name, command);
        for below in command.get_subcommands_mut() {
            let name = format!("{name} {}", below.get_name());
            tell(&name, below);
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n"))
}

#[test]
fn the_whole_help_is_known() {
    let mut stale = Vec::new();
    hold(
        "tests/support/help.txt",
        whole_help().as_bytes(),
        &mut stale,
    );
    assert!(
        stale.is_empty(),
        "GRID_UPDATE=1 cargo test --test cli_docs writes it anew; then read the difference"
    );
}

#[test]
fn every_command_has_an_example() {
    for command in grid::cli::tree().get_subcommands() {
        let after = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let name = command.get_name();
        assert!(
            after.contains(&format!("grid {name}")),
            "{name} has no example"
        );
    }
}

/// The commands in a page: what follows `grid ` in backquotes, or after a prompt, or on an indented line.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut take = |command: &str| {
        for part in command.split(" && ") {
            if let Some(words) = part.trim().strip_prefix("grid ") {
                found.push(split(words));
            }
        }
    };
    for line in text.lines() {
        let trimmed = line.trim_start();
        let typed = trimmed.strip_prefix("$ ").unwrap_or(trimmed);
        let indented = line.starts_with("  ") || line.starts_with("$ ");
        if indented && typed.starts_with("grid ") && !typed.starts_with("grid failed") {
            take(typed);
        }
        for (index, quoted) in line.split('`').enumerate() {
            if index % 2 == 1 {
                take(quoted);
            }
        }
    }
    found
}

/// Words as a shell has them, up to a comment, a pipe, or the explanation that follows two spaces.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() && !rest.starts_with(['#', '|', '>', '&', ';']) {
        let (word, after) = match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            _ => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        if after.starts_with("  ") {
            break;
        }
        rest = after.trim_start();
    }
    words
}

fn pages() -> Vec<(String, String)> {
    let mut pages = vec![("the help".to_owned(), whole_help())];
    let mut read = |path: &Path| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        // Roff writes a hyphen and a dot of its own.
        let text = std::fs::read_to_string(path)
            .unwrap()
            .replace("\\-", "-")
            .replace("\\&", "")
            .replace("\\*(Aq", "'");
        pages.push((name, text));
    };
    for name in named("man") {
        read(&root().join("man").join(name));
    }
    read(&root().join("README.md"));
    read(&root().join("examples/cross-node/README.md"));
    read(&root().join("examples/sites/README.md"));
    pages
}

#[test]
fn every_command_that_a_page_shows_is_one() {
    let mut seen = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            // What a page writes for a name: NODE…, DIR, [DIR]; and for options, which may be none.
            let words = command.iter().filter(|word| *word != "[OPTIONS]");
            let words = words.map(|word| {
                word.trim_end_matches(['…', ',', '.', ':'])
                    .replace("NODE", "atlas")
                    .replace("PROVIDER/CONSUMER", "broker/billing")
                    .replace("P/C", "broker/billing")
            });
            let arguments: Vec<String> = std::iter::once("grid".to_owned()).chain(words).collect();
            seen += 1;
            if let Err(error) = grid::cli::Cli::try_parse_from(&arguments) {
                let shown = !error.use_stderr()
                    || error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
                // In running text a command may be named without its arguments.
                assert!(shown, "{page}: {arguments:?}: {error}");
            }
        }
    }
    assert!(seen > 100, "only {seen} commands were found");
}

#[test]
fn no_page_tells_an_operator_to_push_a_provider_too() {
    for (page, text) in pages() {
        for line in text.lines().map(str::to_lowercase) {
            let wrong = line.contains("push the provider")
                || line.contains("push the broker")
                || line.contains("push atlas") && !line.contains("grid push atlas --take-over");
            assert!(!wrong, "{page}: {line}");
        }
    }
}

/// Two tests may write the README.
static README: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The README, with what stands between two of its lines replaced.
fn readme_with(begin: &str, end: &str, text: &str) -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (before, rest) = readme.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    format!("{before}{begin}{text}{end}{after}")
}

#[test]
fn the_exit_codes_of_the_readme_are_those_of_the_program() {
    let rows: String = grid::cli::exit::Exit::ALL
        .iter()
        .map(|exit| format!("| {} | {} |\n", exit.code(), exit.meaning()))
        .collect();
    let _alone = README.lock();
    let readme = readme_with(
        "| exit | meaning |\n|---|---|\n",
        "\nWhere several hold",
        &rows,
    );
    let mut stale = Vec::new();
    hold("README.md", readme.as_bytes(), &mut stale);
    assert!(
        stale.is_empty(),
        "GRID_UPDATE=1 cargo test --test cli_docs writes the table anew"
    );
}

#[test]
fn the_transcript_of_the_readme_is_what_grid_try_prints() {
    let bench = support::Bench::bare();
    let grid = env!("CARGO_BIN_EXE_grid");
    let mut shell = bench.command(&[]);
    let environment: Vec<_> = shell
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    shell = std::process::Command::new("sh");
    shell
        .args(["-c", &format!("{grid} try 2>&1")])
        .env_clear()
        .envs(environment);
    let output = shell.current_dir(&bench.mesh).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    // Where it lies differs from run to run.
    let at = printed.find("/grid-try-").unwrap();
    let folder = &printed[printed[..at].rfind(' ').unwrap() + 1..at + "/grid-try-".len() + 12];
    let printed = printed.replace(folder, "/tmp/grid-try-5e1d20c4a7f3");
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let printed = printed.replace(&format!("maria@{host}"), "maria@lap3");
    let _alone = README.lock();
    let (begin, end) = ("```\n$ grid try\n", "```\n\nTwo commands");
    let updated = readme_with(begin, end, &printed);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let normal = |text: &str| support::normal(text, "/nowhere");
    let is_current = normal(&readme) == normal(&updated);
    if !is_current && std::env::var_os("GRID_UPDATE").is_some() {
        std::fs::write(root().join("README.md"), updated).unwrap();
        return;
    }
    assert!(
        is_current,
        "GRID_UPDATE=1 cargo test --test cli_docs writes it anew:\n{printed}"
    );
}
