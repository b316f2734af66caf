//! Exit codes (DESIGN.md, section 9), and the error that carries one to the edge of the program.
//!
//! Every error of a room is turned into a [`CommandError`] here and nowhere else: what it means for the exit
//! code is decided in this file, and printed by [`super::run`].

use std::fmt;
use std::io;

use crate::mesh::{Diagnostics, EditError, SelectError};
use crate::push::{PushError, Verdict};
use crate::store::{IdentityError, LockError, StoreError};

/// How the program ends. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done; after a push nothing is behind or waiting.
    Done = 0,
    /// grid failed.
    Failed = 1,
    /// Usage: an unknown flag, machine or service; a selector that matches nothing.
    Usage = 2,
    /// The declaration is wrong, or asks for another version of grid.
    Declaration = 3,
    /// Some machine could not be sent to, applied or checked, or waits for one.
    Incomplete = 4,
    /// Rounds ran out.
    OutOfRounds = 5,
    /// With `--exit-code`: something is behind, waits, failed, or is owed by a machine on hold; evidence is not clean.
    Behind = 6,
    /// Another process holds the lock.
    Locked = 7,
    /// The store is damaged, sealed for somebody else, or not the one that a machine knows.
    Store = 8,
    /// `site run`: restart me.
    Restart = 75,
    /// Interrupted.
    Interrupted = 130,
}

impl Exit {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::Declaration,
        Self::Incomplete,
        Self::OutOfRounds,
        Self::Behind,
        Self::Locked,
        Self::Store,
        Self::Restart,
        Self::Interrupted,
    ];

    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Declaration => 3,
            Self::Incomplete => 4,
            Self::OutOfRounds => 5,
            Self::Behind => 6,
            Self::Locked => 7,
            Self::Store => 8,
            Self::Restart => 75,
            Self::Interrupted => 130,
        }
    }

    /// What it means, for the help and the man page.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done; after a push nothing is behind or waiting",
            Self::Failed => "grid failed",
            Self::Usage => {
                "usage: an unknown flag, machine or service; a selector that matches nothing"
            }
            Self::Declaration => {
                "the declaration is wrong, or asks for another version of grid; site run: more than one network"
            }
            Self::Incomplete => {
                "some machine could not be sent to, applied or checked, or waits for one"
            }
            Self::OutOfRounds => "rounds ran out",
            Self::Behind => {
                "status --exit-code: something is behind, waits, failed, is owed by a machine on hold, or (--probe) is not as it was sent; evidence --exit-code: it is not clean; signals diff --exit-code: a push would change a site"
            }
            Self::Locked => "another process holds the lock of the mesh, or of a reporter's state",
            Self::Store => {
                "the store is damaged, sealed for somebody else, or not the one that a machine knows"
            }
            Self::Restart => "site run: restart me, another mode, trust or identity is declared",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Done => Self::Done,
            Verdict::Fenced => Self::Store,
            Verdict::Incomplete => Self::Incomplete,
            Verdict::Interrupted => Self::Interrupted,
            Verdict::OutOfRounds => Self::OutOfRounds,
        }
    }
}

/// Why a command ends without having done what it was asked for.
#[derive(Debug)]
pub struct CommandError {
    /// How the program ends.
    pub exit: Exit,
    /// What happened, with its causes.
    pub cause: anyhow::Error,
    /// What to type or do next, one line each.
    pub hints: Vec<String>,
}

impl CommandError {
    /// An error with its exit code.
    pub fn new(exit: Exit, cause: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            cause: cause.into(),
            hints: Vec::new(),
        }
    }

    /// A usage error.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, anyhow::anyhow!("{message}"))
    }

    /// grid failed.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, anyhow::anyhow!("{message}"))
    }

    /// The same, said of what was being done.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display + Send + Sync + 'static) -> Self {
        self.cause = self.cause.context(doing);
        self
    }

    /// The same, with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(cause: anyhow::Error) -> Self {
        Self::new(Exit::Failed, cause)
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::Damaged { .. }
            | StoreError::SealedForOthers { .. }
            | StoreError::Format { .. } => Exit::Store,
            StoreError::NotLocked => Exit::Locked,
            _ => Exit::Failed,
        };
        let hints = match &error {
            StoreError::Io { source, .. } => of_the_store(source)
                .map(str::to_owned)
                .into_iter()
                .collect(),
            StoreError::SealedForOthers { path, .. } => sealed(path),
            _ => Vec::new(),
        };
        hints.into_iter().fold(Self::new(exit, error), Self::hint)
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        let exit = match &error {
            LockError::Held { .. } | LockError::HolderLives { .. } => Exit::Locked,
            _ => Exit::Failed,
        };
        let hint = match &error {
            LockError::Io { source, .. } => of_the_store(source).map(str::to_owned),
            LockError::Held { .. } => Some(
                "try again once that is done. If that process is gone for good, `grid unlock` takes the lock away"
                    .to_owned(),
            ),
            LockError::HolderLives { holder } => Some(format!(
                "wait for it, or end it: `kill {}`, which finishes the sends under way",
                holder.pid
            )),
            LockError::NoLocks { .. } => None,
        };
        hint.into_iter().fold(Self::new(exit, error), Self::hint)
    }
}

/// What to do where the identity at hand opens a store's seal not: whether it is another one of the same person, nobody
/// but them knows.
pub(super) fn sealed(store: &std::path::Path) -> Vec<String> {
    vec![
        "if one of these keys was yours: put the backup of that identity back in its place, or name it with $GRID_IDENTITY".to_owned(),
        "if they are others': `recipients` in mesh.toml has to name your key too, and then one of them to push".to_owned(),
        format!(
            "if nobody has such a key any more: move {} away, then `grid push --all --take-over` makes all accounts anew",
            store.display()
        ),
    ]
}

/// No identity is there, for a store that is: another one than the store was sealed for opens nothing of it.
pub(super) fn identity_lost(error: IdentityError, store: &std::path::Path) -> CommandError {
    if !matches!(error, IdentityError::Missing { .. }) {
        return error.into();
    }
    CommandError::new(Exit::Failed, error)
        .hint(format!(
            "put the backup of the identity that {} is sealed for back in its place, or name it with $GRID_IDENTITY",
            store.display()
        ))
        .hint(
            "if you never had one for it: `grid init` makes you one, and whoever pushes this mesh adds its public key to `recipients` in \
             mesh.toml and pushes",
        )
}

/// What to do where the system lets nobody write in the store's folder.
fn of_the_store(error: &io::Error) -> Option<&'static str> {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        PermissionDenied => Some(
            "run grid as whoever owns the store; a command that only reads locks files in it too",
        ),
        ReadOnlyFilesystem => Some(
            "make its file system writable; a command that only reads locks files in the store too",
        ),
        StorageFull | QuotaExceeded => Some(
            "make room there. No account is lost: what was minted before is stored, and after a push that broke off \
             `grid push --behind` asks the machines and goes on",
        ),
        _ => None,
    }
}

impl From<Diagnostics> for CommandError {
    fn from(error: Diagnostics) -> Self {
        Self::new(Exit::Declaration, error)
    }
}

impl From<EditError> for CommandError {
    fn from(error: EditError) -> Self {
        let exit = match &error {
            EditError::UnknownService { .. } | EditError::UnknownNode { .. } => Exit::Usage,
            EditError::Declaration(_) | EditError::Refused(_) => Exit::Declaration,
            _ => Exit::Failed,
        };
        Self::new(exit, error)
    }
}

impl From<SelectError> for CommandError {
    fn from(error: SelectError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<IdentityError> for CommandError {
    fn from(error: IdentityError) -> Self {
        let is_missing = matches!(error, IdentityError::Missing { .. });
        let error = Self::new(Exit::Failed, error);
        if is_missing {
            error.hint("`grid init` makes one, or name yours with $GRID_IDENTITY")
        } else {
            error
        }
    }
}

impl From<PushError> for CommandError {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Store(error) => error.into(),
            error @ PushError::UnknownNode(_) => Self::new(Exit::Usage, error),
            error @ PushError::Certificate(_) => Self::new(Exit::Failed, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_ones_that_are_documented() {
        let table: Vec<String> = Exit::ALL
            .iter()
            .map(|exit| format!("{} {}", exit.code(), exit.meaning()))
            .collect();
        insta::assert_snapshot!(table.join("\n"), @r#"
        0 done; after a push nothing is behind or waiting
        1 grid failed
        2 usage: an unknown flag, machine or service; a selector that matches nothing
        3 the declaration is wrong, or asks for another version of grid; site run: more than one network
        4 some machine could not be sent to, applied or checked, or waits for one
        5 rounds ran out
        6 status --exit-code: something is behind, waits, failed, is owed by a machine on hold, or (--probe) is not as it was sent; evidence --exit-code: it is not clean; signals diff --exit-code: a push would change a site
        7 another process holds the lock of the mesh, or of a reporter's state
        8 the store is damaged, sealed for somebody else, or not the one that a machine knows
        75 site run: restart me, another mode, trust or identity is declared
        130 interrupted
        "#);
    }

    #[test]
    fn a_push_ends_with_the_code_of_its_verdict() {
        let code = |verdict| Exit::from(verdict).code();
        assert_eq!(code(Verdict::Done), 0);
        assert_eq!(code(Verdict::Incomplete), 4);
        assert_eq!(code(Verdict::OutOfRounds), 5);
        assert_eq!(code(Verdict::Fenced), 8);
        assert_eq!(code(Verdict::Interrupted), 130);
    }

    #[test]
    fn a_store_that_nobody_may_write_in_has_a_hint_and_says_the_cause_once() {
        let error = |kind: io::ErrorKind| {
            CommandError::from(StoreError::Io {
                doing: "cannot lock",
                path: ".grid".into(),
                source: kind.into(),
            })
        };
        for kind in [
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::StorageFull,
        ] {
            let error = error(kind);
            assert_eq!(error.hints.len(), 1, "{kind}");
            let told = super::super::ui::causes(&error.cause);
            assert_eq!(told, format!("cannot lock .grid: {kind}"));
        }
        assert!(error(io::ErrorKind::NotADirectory).hints.is_empty());
    }

    #[test]
    fn what_a_store_and_a_lock_refuse_has_its_code() {
        let code = |error: StoreError| CommandError::from(error).exit.code();
        let path = std::path::PathBuf::from("x");
        let damaged = StoreError::Damaged {
            path: path.clone(),
            why: "torn".into(),
        };
        let sealed = StoreError::SealedForOthers {
            path: path.clone(),
            recipients: vec![],
            identity: "age1".into(),
        };
        let format = StoreError::Format {
            record: "machine/atlas".into(),
            why: "2".into(),
        };
        assert_eq!([code(damaged), code(sealed), code(format)], [8, 8, 8]);
        assert_eq!(code(StoreError::NotLocked), 7);
        assert_eq!(code(StoreError::Missing { path }), 1);
        let held = LockError::Held { holder: None };
        assert_eq!(CommandError::from(held).exit.code(), 7);
    }
}
