//! Commands that run on a machine.
//!
//! Threat: a command is turned into a line of shell on the machine. It is an argument vector, never a
//! text for a shell, and [`Command::to_shell`] is the only place where it is quoted.

use serde::{Deserialize, Serialize};

/// Stands for the service's own folder in the release, and is filled in on the machine.
const RELEASE: &str = "{release}";

/// A program and its arguments; never empty, without NUL.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
#[schemars(with = "Vec<String>")]
pub struct Command(Vec<String>);

/// Why a list is not a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No program, or an empty one.
    #[error("a command names at least a program")]
    Empty,
    /// A NUL byte, which no argument can carry.
    #[error("a command cannot carry a NUL byte")]
    Nul,
}

impl Command {
    /// A command from its program and arguments.
    ///
    /// # Errors
    /// When there is no program, or a NUL byte in it.
    pub fn new(words: Vec<String>) -> Result<Self, CommandError> {
        if words.first().is_none_or(String::is_empty) {
            return Err(CommandError::Empty);
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(CommandError::Nul);
        }
        Ok(Self(words))
    }

    /// The program and its arguments, `{release}` not filled in.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// One line of POSIX shell that runs it; `{release}` becomes `$GRID_RELEASE`.
    #[must_use]
    pub fn to_shell(&self) -> String {
        let quoted: Vec<String> = self.0.iter().map(|word| quote(word)).collect();
        quoted.join(" ")
    }
}

fn quote(word: &str) -> String {
    let parts: Vec<String> = word
        .split(RELEASE)
        .map(|part| {
            if part.is_empty() {
                String::new()
            } else {
                format!("'{}'", part.replace('\'', "'\\''"))
            }
        })
        .collect();
    let line = parts.join("\"$GRID_RELEASE\"");
    if line.is_empty() {
        "''".to_owned()
    } else {
        line
    }
}

impl TryFrom<Vec<String>> for Command {
    type Error = CommandError;
    fn try_from(words: Vec<String>) -> Result<Self, CommandError> {
        Self::new(words)
    }
}

impl From<Command> for Vec<String> {
    fn from(command: Command) -> Vec<String> {
        command.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(words: &[&str]) -> String {
        Command::new(words.iter().map(|&w| w.to_owned()).collect())
            .unwrap()
            .to_shell()
    }

    #[test]
    fn every_word_is_quoted_and_the_release_is_filled_in() {
        assert_eq!(
            shell(&["a b", "it's", "", "{release}/x y", "$HOME;rm"]),
            r#"'a b' 'it'\''s' '' "$GRID_RELEASE"'/x y' '$HOME;rm'"#
        );
    }

    #[test]
    fn a_command_without_a_program_cannot_be_made() {
        assert_eq!(Command::new(vec![]), Err(CommandError::Empty));
        assert_eq!(Command::new(vec![String::new()]), Err(CommandError::Empty));
        assert_eq!(Command::new(vec!["a\0".to_owned()]), Err(CommandError::Nul));
    }
}
