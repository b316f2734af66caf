//! Completion in a shell: what may follow the words that were typed so far (DESIGN.md, section 9).
//!
//! `grid completions SHELL` prints a few lines that ask this program at each press of the key: `GRID_COMPLETE` names the
//! shell, and the arguments after `--` are what was typed. Commands and options come from the tree of commands; names
//! come from the declaration, be it half written.
//!
//! Invariants: no lock is taken, nothing is written, nobody is contacted and no secret is opened. Whatever goes wrong,
//! there is nothing to offer and nothing is printed: somebody is in the middle of typing.

mod candidates;
mod line;

use std::ffi::OsString;

use camino::{Utf8Path, Utf8PathBuf};
use clap_complete::CompletionCandidate;

use super::commands::Shell;
use super::exit::Exit;
use super::ui::{Color, Ui};

/// Names the shell that asks what may follow.
pub const VARIABLE: &str = "GRID_COMPLETE";

/// The most that is offered at once; more than anybody reads.
const OFFERED_MOST: usize = 10_000;

/// Answers a shell that asks what may follow; `None`: none asks, and this is a command to run.
pub(super) fn answer(arguments: &[OsString]) -> Option<Exit> {
    let shell = match std::env::var(VARIABLE).ok()?.as_str() {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => return None,
    };
    let typed: Vec<String> = arguments
        .iter()
        .skip_while(|word| *word != "--")
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let text = match shell {
        Shell::Bash => in_bash(&typed),
        Shell::Zsh => listed(&typed, |candidate| {
            let name = value(candidate).replace('\\', "\\\\").replace(':', "\\:");
            match help(candidate) {
                Some(help) => format!("{name}:{}", help.replace('\\', "\\\\")),
                None => name,
            }
        }),
        Shell::Fish => listed(&typed, |candidate| match help(candidate) {
            Some(help) => format!("{}\t{help}", value(candidate)),
            None => value(candidate),
        }),
    };
    // Who asked may be gone; nobody is told.
    let _ = Ui::new(Color::Never).own_bytes(text.as_bytes());
    Some(Exit::Done)
}

/// bash gives the line up to the cursor and the part of its last word that readline replaces.
fn in_bash(typed: &[String]) -> String {
    let [line, replaced] = typed else {
        return String::new();
    };
    let words = line::words(line);
    let stays = words
        .last()
        .and_then(|word| word.strip_suffix(replaced.as_str()))
        .unwrap_or_default()
        .to_owned();
    listed(&words, |candidate| {
        let value = value(candidate);
        line::escaped(value.strip_prefix(stays.as_str()).unwrap_or(&value))
    })
}

/// What may follow, one a line; the last word is the one under the cursor.
fn listed(words: &[String], shown: impl Fn(&CompletionCandidate) -> String) -> String {
    offered(words)
        .iter()
        .take(OFFERED_MOST)
        .map(shown)
        // A line is one candidate.
        .filter(|line| !line.contains(['\n', '\r']))
        .map(|line| line + "\n")
        .collect()
}

fn offered(words: &[String]) -> Vec<CompletionCandidate> {
    let Some(last) = words.len().checked_sub(1) else {
        return Vec::new();
    };
    let from = candidates::From {
        mesh: named_mesh(words),
        store: std::env::var_os("GRID_STORE").map(Into::into),
    };
    let mut tree = candidates::attach(super::tree(), from);
    let arguments = words.iter().map(OsString::from).collect();
    let here = std::env::current_dir().ok();
    let found = clap_complete::engine::complete(&mut tree, arguments, last, here.as_deref());
    let mut found = found.unwrap_or_default();
    // Options are offered once a hyphen is typed, or where there is nothing else.
    let is_option = |candidate: &CompletionCandidate| value(candidate).starts_with('-');
    if words.last().is_some_and(String::is_empty) && !found.iter().all(is_option) {
        found.retain(|candidate| !is_option(candidate));
    }
    found
}

/// The folder that `--mesh` or $GRID_MESH names. A shell may hand over `~` as it was typed.
fn named_mesh(words: &[String]) -> Option<Utf8PathBuf> {
    let mut typed = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--mesh" {
            typed = words.next().cloned();
        } else if let Some(folder) = word.strip_prefix("--mesh=") {
            typed = Some(folder.to_owned());
        }
    }
    let folder = typed.or_else(|| std::env::var("GRID_MESH").ok())?;
    let home = std::env::var("HOME").ok();
    Some(match (folder.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => Utf8Path::new(&home).join(below),
        _ => Utf8PathBuf::from(folder),
    })
}

fn value(candidate: &CompletionCandidate) -> String {
    candidate.get_value().to_string_lossy().into_owned()
}

/// The first line of what a candidate is.
fn help(candidate: &CompletionCandidate) -> Option<String> {
    let help = candidate.get_help()?.to_string();
    help.lines().next().map(str::to_owned)
}
