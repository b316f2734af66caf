//! What a reporter keeps between two reports: a file, which is on disk before anything is sent, and which nobody else has meanwhile.

use std::time::Duration;

use super::Arguments;
use crate::cli::exit::{CommandError, Exit};
use crate::evidence::homes::{HomeError, KeptFile, Lock};
use crate::evidence::reporter::{Reporter, STATE_MOST, StateError};
use crate::store::SystemChance;

/// The mode of the state.
const MODE: u32 = 0o600;
/// How long another reporter with the same state is waited for: as long as it may take to send, and more.
const LOCK_WAITS: Duration = Duration::from_secs(30);

/// The state, and its file while nobody else has it.
pub(super) struct Kept {
    pub reporter: Reporter,
    file: KeptFile,
    /// As it is on disk.
    pub written: Option<Reporter>,
    _lock: Lock,
}

impl Kept {
    /// Takes the state, which the first report makes.
    pub fn open(arguments: &Arguments) -> Result<Self, CommandError> {
        let file = KeptFile::new(&arguments.state, MODE, STATE_MOST);
        let lock = Lock::take(&file, LOCK_WAITS).map_err(|error| match error {
            error @ HomeError::Locked { .. } => CommandError::new(Exit::Locked, error).hint(
                "another `grid evidence report` with this state runs; try again once it has ended",
            ),
            error => CommandError::new(Exit::Failed, error),
        })?;
        let bytes = file
            .bytes()
            .map_err(|error| CommandError::new(Exit::Failed, error))?;
        let written = bytes
            .map(|bytes| Reporter::from_json(&bytes))
            .transpose()
            .map_err(|error| unreadable(error, arguments))?;
        let reporter = match (&written, &arguments.replica) {
            (Some(reporter), _) => reporter.clone(),
            (None, _) if arguments.observed().is_none() => {
                return Err(CommandError::usage(format!(
                    "there is no state {}, so nothing waits to be acknowledged; say --clean or --not-clean, and --replica, to \
                     begin one",
                    file.path().display()
                )));
            }
            (None, Some(replica)) => Reporter::new(replica.clone(), &mut SystemChance),
            (None, None) => {
                return Err(CommandError::usage(format!(
                    "there is no state {} yet: its first report needs --replica, what the process calls itself",
                    file.path().display()
                )));
            }
        };
        Ok(Self {
            reporter,
            file,
            written,
            _lock: lock,
        })
    }

    /// Puts the state on disk, if it is not there.
    pub fn keep(&mut self) -> Result<(), CommandError> {
        if self.written.as_ref() == Some(&self.reporter) {
            return Ok(());
        }
        let json = self
            .reporter
            .to_json()
            .map_err(|error| CommandError::new(Exit::Failed, error))?;
        self.file.replace(&json).map_err(|error| {
            CommandError::new(Exit::Failed, error)
                .context("the state could not be kept, and nothing more was sent")
        })?;
        self.written = Some(self.reporter.clone());
        Ok(())
    }
}

fn unreadable(error: StateError, arguments: &Arguments) -> CommandError {
    let hint = match &error {
        StateError::Newer(_) => "use that one",
        StateError::Damaged(_) | StateError::TooLarge => {
            "move it away and report with --replica: that is another process for the site, and what this one had not \
             acknowledged is lost"
        }
    };
    let place = arguments.state.display().to_string();
    CommandError::new(Exit::Failed, error)
        .context(format!("the reporter's state {place} cannot be read"))
        .hint(hint)
}
