//! The declaration with its store: to read from, without a lock, or to write to, under the mesh lock.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::{Context, recipients};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::git::{self, GitPlace};
use crate::cli::ui::Line;
use crate::cli::who;
use crate::mesh::{self, Loaded, Recipient};
use crate::store::{
    Change, Entry, Holder, LockError, MeshLock, Outcome, SledStore, State, Store as _, StoreError,
    Touched,
};
use crate::words::{Era, NodeName, StoreId};

/// A store that is open for writing, under the mesh lock, and the declaration as it was read under that lock.
#[derive(Debug)]
pub struct Writing {
    /// The declaration.
    pub loaded: Loaded,
    /// Its folder.
    pub folder: Utf8PathBuf,
    /// The store.
    pub store: SledStore,
    /// Its state when it was opened.
    pub state: State,
    /// The public key of the identity that opened it.
    pub identity: String,
    /// Who may open it.
    pub sealed_for: Vec<Recipient>,
    /// Where the declaration stands in git.
    pub git: Option<GitPlace>,
}

/// What a command reads: the declaration and the state, without a lock.
#[derive(Debug)]
pub struct Reading {
    /// The declaration.
    pub loaded: Loaded,
    /// Its folder.
    pub folder: Utf8PathBuf,
    /// The state; of a mesh that was never pushed, an empty one.
    pub state: State,
    /// Whether there is a store at all.
    pub has_store: bool,
    /// Who opens it, and does not once it is written to: the declaration names them no more.
    pub to_be_taken_out: Vec<Recipient>,
    /// Who opens it once it is written to; of a mesh that was never pushed, whom the declaration names.
    pub sealed_for: Vec<Recipient>,
    /// Where the declaration stands in git.
    pub git: Option<GitPlace>,
}

impl Context {
    /// Reads the declaration and the state, under no lock. A mesh that was never pushed has an empty state.
    ///
    /// # Errors
    /// When the declaration is wrong, or the store cannot be read.
    pub fn reading(&self) -> Result<Reading, CommandError> {
        let (folder, loaded) = self.load()?;
        let git = git::place(&folder);
        let recipients = &loaded.mesh.recipients;
        let read = self.open_reading(&folder, "read").and_then(|mut store| {
            let state = store.load()?;
            Ok((state, store))
        });
        let (state, store) = match read {
            Ok((state, store)) => (state, Some(store)),
            Err(error) if is_missing(&error) => (State::new(StoreId([0; 8]), Era(0)), None),
            Err(error) => return Err(error),
        };
        let (to_be_taken_out, sealed_for) = match &store {
            Some(store) => (
                store.to_be_taken_out(recipients),
                store.to_be_sealed_for(recipients),
            ),
            None => (Vec::new(), recipients.clone()),
        };
        let has_store = store.is_some();
        Ok(Reading {
            loaded,
            folder,
            state,
            has_store,
            to_be_taken_out,
            sealed_for,
            git,
        })
    }

    /// Opens the store to read from.
    ///
    /// # Errors
    /// When there is no identity and there is a store.
    pub fn open_reading(&self, folder: &Utf8Path, what: &str) -> Result<SledStore, CommandError> {
        let place = self.place(folder);
        if !place.path().exists() {
            // Told before a missing identity is: without a store none is needed.
            return Err(StoreError::Missing {
                path: place.path().to_owned(),
            }
            .into());
        }
        let identity = self.identity_for(&place)?;
        Ok(SledStore::open_reading(place, identity, self.holder(what)))
    }

    /// Takes the mesh lock, reads the declaration under it, and opens the store, or makes it.
    ///
    /// # Errors
    /// When the declaration is wrong, the lock is held, or the store cannot be opened.
    pub fn writing(&mut self, what: &str, wait: Duration) -> Result<Writing, CommandError> {
        // A declaration that is wrong is told at once, and leaves no store behind.
        let (folder, loaded) = self.load()?;
        self.writing_to(folder, loaded, what, wait)
    }

    /// The same for a declaration that was read without the lock. It is read again only if it changed meanwhile.
    ///
    /// # Errors
    /// Those of [`Context::writing`].
    pub fn writing_to(
        &mut self,
        folder: Utf8PathBuf,
        loaded: Loaded,
        what: &str,
        wait: Duration,
    ) -> Result<Writing, CommandError> {
        let place = self.place(&folder);
        let identity = self.identity_for(&place)?;
        let lock = MeshLock::take(&place, self.holder(what), wait).map_err(|error| {
            let is_held = matches!(error, LockError::Held { .. });
            let error = CommandError::from(error);
            // Only a push can wait; and one that did was told how long.
            if is_held && what == Holder::PUSH && wait.is_zero() {
                error.hint(format!(
                    "`grid {} --wait` waits for it by itself",
                    self.typed
                ))
            } else {
                error
            }
        })?;
        self.under_way.locks(&lock);
        if let Some(dead) = &lock.took_over_from_dead {
            let text = format!("{dead} died and left the lock of this mesh behind");
            self.ui.note(&Line::note(text));
        }
        let loaded = mesh::load_again(&folder, loaded)?;
        let public = identity.public();
        let mut store =
            SledStore::open_or_create(lock, identity, &loaded.mesh.recipients, self.started)?;
        let state = store.load()?;
        let is_not_named = store.is_not_named(&loaded.mesh.recipients);
        // Asked before it is sealed anew: what the store is sealed for is known of the one that was read.
        let sealed_for = store.to_be_sealed_for(&loaded.mesh.recipients);
        let taken_out = store.take_out()?;
        let git = git::place(&folder);
        let mut writing = Writing {
            loaded,
            folder,
            store,
            state,
            identity: public,
            sealed_for,
            git,
        };
        self.tell_of_recipients(&mut writing, &taken_out, is_not_named)?;
        Ok(writing)
    }

    /// Says who was taken out of the store, since the declaration names them no more, and writes it into the journal before the command
    /// does anything that may fail.
    fn tell_of_recipients(
        &mut self,
        writing: &mut Writing,
        taken_out: &[Recipient],
        is_not_named: bool,
    ) -> Result<(), CommandError> {
        if !taken_out.is_empty() {
            let mut entry = self.entry(writing, Exit::Done);
            entry.taken_out = taken_out
                .iter()
                .map(|one| format!("{} {}", one.name.trim(), one.key))
                .collect();
            let text = recipients::taken_out(taken_out, &writing.loaded.mesh, &writing.state);
            self.ui.note(&Line::note(text));
            writing.store.commit(&[Change::Journal(entry)])?;
        }
        if is_not_named {
            self.ui
                .note(&Line::note(recipients::not_named(&writing.identity)));
        }
        Ok(())
    }

    /// An entry of the journal for this command.
    #[must_use]
    pub fn entry(&self, writing: &Writing, exit: Exit) -> Entry {
        Entry {
            started: self.started,
            ended: Some(Timestamp::now()),
            who: self.holder("").who,
            identity: Some(writing.identity.clone()),
            taken_out: Vec::new(),
            ci: who::ci_job(),
            command: self.typed.clone(),
            push: None,
            machines: std::collections::BTreeMap::new(),
            declaration: Some(writing.loaded.digest),
            commit: writing.git.as_ref().map(|place| place.commit.clone()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            outcome: Outcome::Exit(exit.code()),
        }
    }

    /// Commits what a command changed, with its entry in the journal, in one transaction.
    ///
    /// # Errors
    /// When the store fails; then nothing was changed.
    pub fn commit(
        &self,
        writing: &mut Writing,
        mut changes: Vec<Change>,
        machines: impl IntoIterator<Item = (NodeName, Touched)>,
    ) -> Result<(), CommandError> {
        let mut entry = self.entry(writing, Exit::Done);
        entry.machines.extend(machines);
        changes.push(Change::Journal(entry));
        Ok(writing.store.commit(&changes)?)
    }
}

/// Whether an error says that there is no store yet.
pub(in crate::cli) fn is_missing(error: &CommandError) -> bool {
    matches!(
        error.cause.downcast_ref::<StoreError>(),
        Some(StoreError::Missing { .. })
    )
}
