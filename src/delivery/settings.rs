//! How machines are reached: what the declaration does not say of each.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::gate::Gate;
use super::ssh::AskPassphrase;
use crate::mesh::Node;

/// How long a question waits for the machine's lock: the send that was interrupted may still run there.
const ASK_WAITS: Duration = Duration::from_secs(120);

/// How machines are reached.
#[derive(Debug, Clone)]
pub struct CourierSettings {
    /// Machines at a time; at least 1.
    pub parallel: usize,
    /// How long a machine may take to be reached, and how long it may be silent where nothing
    /// else (a service's own time limit, the size of its files) allows it more.
    pub timeout: Duration,
    /// How long a question waits for the machine's lock, which the send that was cut short may still hold.
    pub ask_waits: Duration,
    /// The folder of the declaration: its `known_hosts`, and what identity files are relative to.
    pub declaration_dir: Utf8PathBuf,
    /// The operator's home folder, for `.ssh`; `None`: there is none.
    pub home: Option<PathBuf>,
    /// How often a connection is tried that a retry can help; at least 1.
    pub attempts: u32,
    /// What runs the receiving script where the courier is `local`.
    pub local_shell: Vec<String>,
    /// Who asks, for the machine's own log: one line.
    pub sender: String,
    /// How long a whole send to a machine may take; `None`: as long as its steps may.
    pub limit: Option<Duration>,
    /// Whether further machines may be reached.
    pub gate: Gate,
    /// Who is asked for the passphrase of a key file that no agent holds; `None`: nobody. Only the courier `ssh` asks.
    pub passphrases: Option<Arc<dyn AskPassphrase>>,
}

impl CourierSettings {
    /// The defaults: 16 machines at a time, 30 seconds, three attempts; the home folder from `HOME`.
    #[must_use]
    pub fn new(declaration_dir: Utf8PathBuf) -> Self {
        Self {
            parallel: 16,
            timeout: Duration::from_secs(30),
            ask_waits: ASK_WAITS,
            declaration_dir,
            home: std::env::var_os("HOME").map(PathBuf::from),
            attempts: 3,
            local_shell: vec!["sh".to_owned()],
            sender: "grid".to_owned(),
            limit: None,
            gate: Gate::default(),
            passphrases: None,
        }
    }

    /// Where the key file lies that the declaration names for a machine; `None`: it names none.
    #[must_use]
    pub fn identity_of(&self, node: &Node) -> Option<PathBuf> {
        let folder = self.declaration_dir.as_std_path();
        let path = node.identity.as_ref()?;
        Some(within(self.home.as_deref(), folder, path.as_str()))
    }
}

/// Where a file lies that is named with `~/` or relative to `folder`.
pub(super) fn within(home: Option<&Path>, folder: &Path, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(path),
    }
}
