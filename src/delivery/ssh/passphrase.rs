//! Passphrases of key files: asked for once a file, however many machines want it, and never where nobody can be asked.
//!
//! Threat: a passphrase is a secret. It is kept in memory that is wiped, for as long as the couriers live, and goes to
//! libssh2 only.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::words::Secret;

/// How often a passphrase may be wrong.
const TRIES: u32 = 3;
/// How long all of it may take: the machine, which waits meanwhile, hangs up after two minutes (LoginGraceTime).
const PATIENCE: Duration = Duration::from_secs(90);

/// Asks a person for a passphrase.
pub trait AskPassphrase: Send + Sync + fmt::Debug {
    /// The passphrase of the key in this file; `attempt` is counted from 1. Returns at `until` at the latest; `None`:
    /// nobody says it.
    fn ask(&self, file: &Path, attempt: u32, until: Instant) -> Option<Secret>;
}

/// What became of a key with a passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unlocked {
    /// It was unlocked, and the machine said whether it wants it.
    Tried(bool),
    /// The passphrase was wrong each time.
    Wrong,
    /// Nobody said it, or can be asked.
    Unasked,
}

#[derive(Debug, Clone)]
enum Known {
    Right(Secret),
    Not(Unlocked),
}

/// What is known of the passphrases of all files.
#[derive(Debug, Default)]
pub(super) struct Passphrases {
    ask: Option<Arc<dyn AskPassphrase>>,
    known: Mutex<BTreeMap<PathBuf, Known>>,
}

impl Passphrases {
    pub(super) fn new(ask: Option<Arc<dyn AskPassphrase>>) -> Self {
        Self {
            ask,
            known: Mutex::default(),
        }
    }

    /// Tries a key file with its passphrase, which is asked for if it is not known. `tries` says whether the machine
    /// wants the key; `None`: the passphrase is wrong.
    ///
    /// # Errors
    /// Those of `tries`.
    pub(super) fn unlock<E>(
        &self,
        file: &Path,
        mut tries: impl FnMut(&Secret) -> Result<Option<bool>, E>,
    ) -> Result<Unlocked, E> {
        let Some(ask) = &self.ask else {
            return Ok(Unlocked::Unasked);
        };
        // Whoever else wants this file, or another, waits: one question at a time.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(file).cloned() {
            Some(Known::Right(secret)) => {
                drop(known);
                return Ok(tries(&secret)?.map_or(Unlocked::Wrong, Unlocked::Tried));
            }
            Some(Known::Not(why)) => return Ok(why),
            None => {}
        }
        let until = Instant::now() + PATIENCE;
        for attempt in 1..=TRIES {
            let Some(secret) = ask.ask(file, attempt, until) else {
                known.insert(file.to_owned(), Known::Not(Unlocked::Unasked));
                return Ok(Unlocked::Unasked);
            };
            if let Some(wanted) = tries(&secret)? {
                known.insert(file.to_owned(), Known::Right(secret));
                return Ok(Unlocked::Tried(wanted));
            }
        }
        known.insert(file.to_owned(), Known::Not(Unlocked::Wrong));
        Ok(Unlocked::Wrong)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Says these words, one after the other, and then nothing.
    #[derive(Debug, Default)]
    struct Person {
        says: Vec<&'static str>,
        asked: AtomicU32,
    }

    impl AskPassphrase for Person {
        fn ask(&self, _: &Path, attempt: u32, until: Instant) -> Option<Secret> {
            let number = self.asked.fetch_add(1, Ordering::SeqCst);
            assert_eq!(attempt, number % TRIES + 1);
            assert!(until <= Instant::now() + PATIENCE);
            let word = self.says.get(usize::try_from(number).unwrap())?;
            Some(Secret::new((*word).to_owned()))
        }
    }

    fn person(says: &[&'static str]) -> (Arc<Person>, Passphrases) {
        let person = Arc::new(Person {
            says: says.to_vec(),
            asked: AtomicU32::default(),
        });
        let passphrases = Passphrases::new(Some(Arc::clone(&person) as Arc<dyn AskPassphrase>));
        (person, passphrases)
    }

    fn is_right(secret: &Secret) -> Result<Option<bool>, Infallible> {
        Ok((secret.expose() == "right").then_some(true))
    }

    #[test]
    fn a_passphrase_is_asked_for_once_for_many_machines() {
        let (person, passphrases) = person(&["wrong", "right"]);
        for _ in 0..5 {
            let Ok(unlocked) = passphrases.unlock(Path::new("key"), is_right);
            assert_eq!(unlocked, Unlocked::Tried(true));
        }
        assert_eq!(person.asked.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn three_wrong_ones_are_enough_and_silence_is_not_asked_again() {
        let (wrong, passphrases) = person(&["a", "b", "c", "right"]);
        for _ in 0..2 {
            let Ok(unlocked) = passphrases.unlock(Path::new("key"), is_right);
            assert_eq!(unlocked, Unlocked::Wrong);
        }
        assert_eq!(wrong.asked.load(Ordering::SeqCst), 3);
        let (silent, passphrases) = person(&[]);
        for _ in 0..2 {
            let Ok(unlocked) = passphrases.unlock(Path::new("key"), is_right);
            assert_eq!(unlocked, Unlocked::Unasked);
        }
        assert_eq!(silent.asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn nobody_is_asked_where_there_is_nobody() {
        let Ok(unlocked) = Passphrases::new(None).unlock(Path::new("key"), is_right);
        assert_eq!(unlocked, Unlocked::Unasked);
    }
}
