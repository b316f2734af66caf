//! What every command starts from: where the mesh is, who asks, and where its store lies. How that is opened stands in `opened`, which
//! machines somebody means in `naming`.

mod naming;
mod opened;
pub(super) mod recipients;
mod under_way;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::exit::CommandError;
use super::sources::FsSources;
use super::ui::{Line, Look, Ui};
use super::{GlobalArgs, folder, interrupt, who};
use crate::delivery::Gate;
use crate::mesh::{self, Loaded, Mesh, Recipient};
use crate::store::{Holder, Identity, IdentityError, Place, running};
pub(super) use opened::is_missing;
pub use opened::{Reading, Writing};
pub(super) use under_way::UnderWay;

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
    /// The machines whose send is under way, as a thread that is told to quit sees them.
    pub(super) under_way: UnderWay,
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
            under_way: UnderWay::default(),
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
                let (tell, under_way) = (self.ui.last_teller(), self.under_way.clone());
                let quits = move || {
                    under_way.leave_in_order();
                    let line = Line::new()
                        .look(Look::Bad, "quit: ")
                        .plain(under_way.left());
                    tell(&line);
                };
                let flag = interrupt::note(self.ui.announcement(line), quits).map_err(|error| {
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

    /// The sources of a declaration. `sealed_for`: who may open its store.
    #[must_use]
    pub fn sources(
        &self,
        folder: &Utf8Path,
        mesh: &Mesh,
        sealed_for: &[Recipient],
    ) -> Arc<FsSources> {
        let identity = self.identity.clone();
        let tell = self.ui.teller();
        let sources = FsSources::new(
            folder.to_owned(),
            mesh.secrets.clone(),
            Box::new(move || identity.find().map_err(|e| e.to_string())),
        );
        let keys = sealed_for.iter().map(|one| one.key.trim().to_owned());
        let sources = sources.sealed_for(keys.collect());
        Arc::new(sources.heard_by(Arc::new(move |secret, line| {
            tell(&Line::of(format!("secret {secret} | {line}")));
        })))
    }
}
