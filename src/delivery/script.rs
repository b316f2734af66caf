//! What is run on a machine, as it is sent: one command line. Mostly it is the receiving script.
//!
//! Invariant: with everything that is added to it, the command stays below [`LONGEST`], since libssh2 sends it
//! in one packet (DESIGN.md, section 5).

use std::sync::LazyLock;

use crate::mesh::Become;

/// The longest command, in bytes, quoting included.
pub(super) const LONGEST: usize = 30_000;

/// The script with its comments and indentation taken out.
static PACKED: LazyLock<String> = LazyLock::new(|| pack(include_str!("receive.sh")));

/// The receiving script.
pub(super) fn receiving() -> &'static str {
    &PACKED
}

fn pack(source: &str) -> String {
    let mut packed = String::with_capacity(source.len());
    for line in source.lines().map(str::trim_start) {
        if !line.is_empty() && !line.starts_with('#') {
            packed.push_str(line);
            packed.push('\n');
        }
    }
    packed
}

/// A machine side: what it runs, and with which arguments.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    /// How it gains root.
    pub become_root: Option<Become>,
    /// What the shell runs.
    pub script: &'static str,
    /// The arguments of the script; none is secret, for all can be seen in the machine's process list.
    pub arguments: Vec<String>,
}

impl Launch {
    /// The words of the command, where `shell` runs the script.
    pub(super) fn words(&self, shell: &[String]) -> Vec<String> {
        let sudo: &[&str] = match self.become_root {
            Some(Become::Sudo) => &["sudo", "-n"],
            None => &[],
        };
        sudo.iter()
            .map(|&word| word.to_owned())
            .chain(shell.iter().cloned())
            .chain(["-c".to_owned(), self.script.to_owned(), "grid".to_owned()])
            .chain(self.arguments.iter().cloned())
            .collect()
    }

    /// One line for a login shell.
    pub(super) fn line(&self) -> String {
        let words: Vec<String> = self
            .words(&["sh".to_owned()])
            .iter()
            .map(|word| quote(word))
            .collect();
        words.join(" ")
    }
}

fn quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/' | b'.' | b',');
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_fits_into_one_packet_with_the_longest_arguments() {
        let launch = Launch {
            become_root: Some(Become::Sudo),
            script: receiving(),
            arguments: vec!["x".repeat(3_000)],
        };
        let length = launch.line().len();
        assert!(length <= LONGEST, "{length}");
    }

    #[test]
    fn the_script_has_no_single_quote_and_no_trace_of_test_hooks() {
        assert!(!PACKED.contains('\''));
        assert!(!PACKED.contains("#@"));
        assert!(!PACKED.contains("GRID_TEST"));
        assert!(include_str!("receive.sh").contains("#@ switched"));
    }

    #[test]
    fn words_are_quoted_for_a_login_shell() {
        assert_eq!(quote("/var/lib/grid/prod"), "/var/lib/grid/prod");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
    }
}
