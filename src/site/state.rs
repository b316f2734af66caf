//! The daemon's files in its state folder: `overlay.json` for gateways, `status.json` for the push's check. Each is
//! replaced atomically; a reader sees a whole one. Neither has to survive the machine: both are written again.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::words::{Digest, MeshName, NodeName, PeerTrust, SignalMode};

/// The format of `status.json`.
pub const FORMAT: u32 = 1;

/// What the daemon is doing: `status.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SiteStatus {
    /// The document's format: 1.
    pub format: u32,
    /// The daemon's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// The mesh; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<MeshName>,
    /// The site.
    pub site: NodeName,
    /// How signals cross sites, as it runs.
    pub mode: SignalMode,
    /// The trust that holds now; under gossip it may have changed since the start.
    pub trust: PeerTrust,
    /// Where it listens; nowhere under gossip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens: Option<String>,
    /// The SHA-256 of the certificate that it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Digest>,
    /// The SHA-256 of what its files said when it last took them up, by which a push sees that it knows what was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Digest>,
    /// How many peers it knows.
    pub peers: usize,
    /// Whether signals cross sites. Under gossip nothing does, until that is built.
    pub crosses: bool,
    /// Whether it was told to end, or ends to be started again: it serves nobody new.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
    /// What it waits for, or what of its files it could not take up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// Where the evidence of gateways' reports is in a state folder.
#[must_use]
pub fn evidence_in(folder: &Path) -> PathBuf {
    folder.join("evidence.json")
}

/// The state folder.
#[derive(Debug, Clone)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Where the evidence of gateways' reports is.
    #[must_use]
    pub fn evidence(&self) -> PathBuf {
        evidence_in(&self.0)
    }

    /// Whether a document is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// Replaces a document. A folder that was taken away meanwhile is made again, and what else is written there, the
    /// evidence, has one again too.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn replace(&self, name: &str, document: &impl Serialize) -> io::Result<()> {
        let mut json = serde_json::to_vec(document)?;
        json.push(b'\n');
        match self.put(name, &json) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Self::open(&self.0)?;
                self.put(name, &json)
            }
            put => put,
        }
    }

    fn put(&self, name: &str, json: &[u8]) -> io::Result<()> {
        let next = self.0.join(format!("{name}.next"));
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&next)
            .and_then(|mut file| file.write_all(json))
            .and_then(|()| fs::rename(&next, self.0.join(name)));
        if written.is_err() {
            let _ = fs::remove_file(&next);
        }
        written
    }
}
