//! What every command starts from: where the mesh is, who asks, and how its store is opened.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::exit::{CommandError, Exit};
use super::git::{self, GitPlace};
use super::sources::FsSources;
use super::ui::{Line, Look, Ui};
use super::{GlobalArgs, folder, interrupt, who};
use crate::delivery::Gate;
use crate::mesh::{self, Loaded, Mesh, SelectError, Selector, select};
use crate::store::{
    Change, Entry, Holder, Identity, IdentityError, LockError, MeshLock, Outcome, Place, SledStore,
    State, Store, StoreError, Touched, running,
};
use crate::words::{Era, NodeName, StoreId};

/// What every command starts from.
#[derive(Debug)]
pub struct Context {
    /// The streams.
    pub ui: Ui,
    /// `--yes`.
    pub yes: bool,
    /// When the command began.
    pub started: Timestamp,
    /// The day here: holds end on their day.
    pub today: jiff::civil::Date,
    /// The command as typed, for the journal.
    pub typed: String,
    mesh_dir: Option<Utf8PathBuf>,
    store_dir: Option<PathBuf>,
    identity: IdentityFrom,
    interrupted: Option<Arc<AtomicBool>>,
}

/// Where the operator's identity comes from.
#[derive(Debug, Clone)]
struct IdentityFrom {
    given: Option<IdentityText>,
    xdg_config_home: Option<OsString>,
    home: Option<OsString>,
}

/// `$GRID_IDENTITY`, which may be a key.
#[derive(Clone)]
struct IdentityText(Arc<zeroize::Zeroizing<String>>);

impl std::fmt::Debug for IdentityText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl IdentityFrom {
    fn environment() -> Self {
        Self {
            given: std::env::var("GRID_IDENTITY")
                .ok()
                .map(|text| IdentityText(Arc::new(zeroize::Zeroizing::new(text)))),
            xdg_config_home: std::env::var_os("XDG_CONFIG_HOME"),
            home: std::env::var_os("HOME"),
        }
    }

    fn find(&self) -> Result<Identity, IdentityError> {
        Identity::find(
            self.given.as_ref().map(|text| text.0.as_str()),
            self.xdg_config_home.as_deref(),
            self.home.as_deref(),
        )
    }
}

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
    /// Where the declaration stands in git.
    pub git: Option<GitPlace>,
}

impl Context {
    /// From the global arguments and the environment.
    #[must_use]
    pub fn new(global: &GlobalArgs, typed: String) -> Self {
        let mut ui = Ui::new(global.color);
        ui.json = global.json;
        ui.verbose = global.verbose > 0;
        ui.quiet = global.quiet;
        Self {
            ui,
            yes: global.yes,
            started: Timestamp::now(),
            today: jiff::ZonedDateTime::now().date(),
            typed,
            mesh_dir: global.mesh.clone(),
            store_dir: std::env::var_os("GRID_STORE").map(PathBuf::from),
            identity: IdentityFrom::environment(),
            interrupted: None,
        }
    }

    /// The same for a mesh in another folder, with its own store and this identity.
    pub(super) fn enter(&mut self, folder: &Utf8Path, identity: &Utf8Path) {
        self.mesh_dir = Some(folder.to_owned());
        self.store_dir = None;
        let path = zeroize::Zeroizing::new(identity.to_string());
        self.identity.given = Some(IdentityText(Arc::new(path)));
    }

    /// Notes Ctrl-C from now on: whatever looks at this gate starts nothing any more. A second one quits.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn gate(&mut self) -> Result<Gate, CommandError> {
        let flag = match &self.interrupted {
            Some(flag) => Arc::clone(flag),
            None => {
                let line = Line::new().look(Look::Warn, "interrupted: ").plain(
                    "no further machine is sent to, and the sends under way are finished; once more to quit at once, which leaves those uncertain until the next push asks them",
                );
                let flag = interrupt::note(self.ui.announcement(line)).map_err(|error| {
                    CommandError::failed(format!("signals cannot be noted: {error}"))
                })?;
                self.interrupted = Some(Arc::clone(&flag));
                flag
            }
        };
        Ok(Gate::shut_by(flag))
    }

    /// Begins a further command in the same process.
    pub(super) fn begin(&mut self, typed: &str) {
        self.started = Timestamp::now();
        self.typed = typed.to_owned();
    }

    /// The folder of the declaration; see [`folder::find`].
    ///
    /// # Errors
    /// When there is none.
    pub fn folder(&self) -> Result<Utf8PathBuf, CommandError> {
        folder::find(self.mesh_dir.as_deref())
    }

    /// Whether a folder of a mesh was named, by `--mesh` or $GRID_MESH.
    #[must_use]
    pub fn names_a_mesh(&self) -> bool {
        self.mesh_dir.is_some()
    }

    /// Reads and checks the declaration.
    ///
    /// # Errors
    /// When there is none, or it is wrong.
    pub fn load(&self) -> Result<(Utf8PathBuf, Loaded), CommandError> {
        let folder = self.folder()?;
        let loaded = mesh::load(&folder)?;
        Ok((folder, loaded))
    }

    /// The machines that are named: by name, or by `@tag`.
    ///
    /// # Errors
    /// When a name or a tag names none. One that left the declaration and may still hold what it was sent is told apart.
    pub fn choose(
        &self,
        folder: &Utf8Path,
        mesh: &Mesh,
        texts: &[String],
    ) -> Result<BTreeSet<NodeName>, CommandError> {
        let selectors: Vec<Selector> = texts
            .iter()
            .map(|text| {
                let Ok(selector) = text.parse();
                selector
            })
            .collect();
        select(mesh, &selectors).map_err(|error| {
            let hint = match &error {
                SelectError::UnknownNode { name, nearest } => {
                    if let Some(error) = self.undeclared(folder, name) {
                        return error;
                    }
                    self.instead_of(mesh, name, nearest.is_some())
                }
                SelectError::UnknownTag {
                    nearest: Some(_), ..
                } => None,
                SelectError::UnknownTag { tag, nearest: None } => {
                    let tags: BTreeSet<_> =
                        mesh.nodes.values().flat_map(|node| &node.tags).collect();
                    Some(if tags.is_empty() {
                        format!("`tags = [\"{tag}\"]` gives a machine that tag")
                    } else {
                        format!("the tags of this mesh: {}", some_of(tags))
                    })
                }
            };
            hint.into_iter().fold(error.into(), CommandError::hint)
        })
    }

    /// What to type where there is no machine of that name: a service may have been meant.
    fn instead_of(&self, mesh: &Mesh, name: &str, has_suggestion: bool) -> Option<String> {
        if let Some(service) = mesh.services.get(name) {
            if service.nodes.is_empty() {
                return Some(format!(
                    "{name} is a service, on no machine: `grid assign {name} NODE` puts it on one"
                ));
            }
            let nodes: Vec<String> = service.nodes.iter().map(ToString::to_string).collect();
            let nodes = nodes.join(" ");
            let typed: Vec<&str> = self
                .typed
                .split(' ')
                .map(|word| if word == name { nodes.as_str() } else { word })
                .collect();
            return Some(format!(
                "{name} is a service, on {}: `grid {}`",
                some_of(&service.nodes),
                typed.join(" ")
            ));
        }
        if mesh.nodes.is_empty() {
            return Some(super::phrases::NO_MACHINES.to_owned());
        }
        (!has_suggestion).then(|| {
            format!(
                "the machines of this mesh: {}; `[nodes.{name}]` in mesh.toml declares another",
                some_of(mesh.nodes.keys())
            )
        })
    }

    /// What is to be said of a machine that the declaration does not have, if the store knows it. What goes wrong
    /// here is not what was asked for.
    fn undeclared(&self, folder: &Utf8Path, name: &str) -> Option<CommandError> {
        let mut store = self.open_reading(folder, "read").ok()?;
        let state = store.load().ok()?;
        let machine = state.fleet.get(name)?;
        let at = match &machine.sent {
            Some(sent) => format!("; it was last reached at {}", sent.address),
            None if machine.attempt.is_some() => String::new(),
            None => return None,
        };
        let error = CommandError::usage(format!(
            "{name} left the declaration, and may still hold what it was sent{at}"
        ));
        Some(error.hint(format!(
            "`grid forget {name}` takes it as gone, once it is; to send to it again, declare it again"
        )))
    }

    /// Where the store of the declaration in `folder` lies.
    #[must_use]
    pub fn place(&self, folder: &Utf8Path) -> Place {
        match &self.store_dir {
            Some(store) => Place::at(store.clone()),
            None => Place::beside(folder.as_std_path()),
        }
    }

    /// Who holds the lock of the mesh just now, without waiting for it or taking it.
    #[must_use]
    pub fn running(&self, folder: &Utf8Path) -> Option<Holder> {
        running(&self.place(folder))
    }

    /// This process, as others see it.
    #[must_use]
    pub fn holder(&self, what: &str) -> Holder {
        Holder::here(&who::user(), what, self.started)
    }

    /// The operator's identity, for the store at `place`, if there is one.
    fn identity_for(&self, place: &Place) -> Result<Identity, CommandError> {
        self.identity.find().map_err(|error| {
            if place.path().exists() {
                super::exit::identity_lost(error, place.path())
            } else {
                error.into()
            }
        })
    }

    /// The operator's identity.
    ///
    /// # Errors
    /// When there is none.
    pub fn identity(&self) -> Result<Identity, CommandError> {
        Ok(self.identity.find()?)
    }

    /// The sources of a declaration.
    #[must_use]
    pub fn sources(&self, folder: &Utf8Path, mesh: &Mesh) -> Arc<FsSources> {
        let identity = self.identity.clone();
        let tell = self.ui.teller();
        let sources = FsSources::new(
            folder.to_owned(),
            mesh.secrets.clone(),
            Box::new(move || identity.find().map_err(|e| e.to_string())),
        );
        Arc::new(sources.heard_by(Arc::new(move |secret, line| {
            tell(&Line::of(format!("secret {secret} | {line}")));
        })))
    }

    /// Reads the declaration and the state, under no lock. A mesh that was never pushed has an empty state.
    ///
    /// # Errors
    /// When the declaration is wrong, or the store cannot be read.
    pub fn reading(&self) -> Result<Reading, CommandError> {
        let (folder, loaded) = self.load()?;
        let git = git::place(&folder);
        let (state, has_store) = match self
            .open_reading(&folder, "read")
            .and_then(|mut store| Ok(store.load()?))
        {
            Ok(state) => (state, true),
            Err(error) if is_missing(&error) => (State::new(StoreId([0; 8]), Era(0)), false),
            Err(error) => return Err(error),
        };
        Ok(Reading {
            loaded,
            folder,
            state,
            has_store,
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
            if is_held && what == "push" && wait.is_zero() {
                error.hint(format!(
                    "`grid {} --wait` waits for it by itself",
                    self.typed
                ))
            } else {
                error
            }
        })?;
        if let Some(dead) = &lock.took_over_from_dead {
            let text = format!("note: {dead} died and left the lock of this mesh behind");
            self.ui.note(&super::ui::Line::of(text));
        }
        let loaded = mesh::load_again(&folder, loaded)?;
        let public = identity.public();
        let mut store =
            SledStore::open_or_create(lock, identity, &loaded.mesh.recipients, self.started)?;
        let state = store.load()?;
        let git = git::place(&folder);
        Ok(Writing {
            loaded,
            folder,
            store,
            state,
            identity: public,
            git,
        })
    }

    /// An entry of the journal for this command.
    #[must_use]
    pub fn entry(&self, writing: &Writing, exit: Exit) -> Entry {
        Entry {
            started: self.started,
            ended: Some(Timestamp::now()),
            who: self.holder("").who,
            identity: Some(writing.identity.clone()),
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

/// The first of many names.
fn some_of<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    const SHOWN_MOST: usize = 12;
    let mut names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let more = names.len().saturating_sub(SHOWN_MOST);
    names.truncate(SHOWN_MOST);
    let shown = names.join(", ");
    if more > 0 {
        format!("{shown} and {more} more")
    } else {
        shown
    }
}

/// Whether an error says that there is no store yet.
pub(super) fn is_missing(error: &CommandError) -> bool {
    matches!(
        error.cause.downcast_ref::<StoreError>(),
        Some(StoreError::Missing { .. })
    )
}
