//! Reads what the daemon is told: `site.toml` and the files beside it, each bounded.
//!
//! All of one look come from one release: the folder is resolved first, since the push switches it by a link.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::TrustAnchor;
use zeroize::Zeroizing;

use super::identity::{Identity, IdentityError, authorities};
use crate::signals::ProviderName;
use crate::signals::contract::Accepted;
use crate::signals::observation::Watch as Watched;
use crate::signals::site::{LARGEST, Peers, Pins, Site, SiteError};
use crate::words::{Digest, PeerTrust, SignalMode};

/// Why files cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Several networks.
    #[error(
        "{0} configurations are named: one daemon serves one network, since how signals cross sites holds for the whole process; run one daemon for each"
    )]
    Networks(usize),
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file says something wrong.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: SiteError,
    },
    /// The certificate, its key or the authorities.
    #[error("{}: {source}", path.display())]
    Identity {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: IdentityError,
    },
}

/// Where the daemon is told what it is.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
}

/// What the files say, at one moment.
#[derive(Debug)]
pub struct Loaded {
    /// `site.toml`.
    pub site: Site,
    /// `peers.toml`, without the site itself.
    pub peers: Peers,
    /// The pins of the site itself there; none: it does not stand there.
    pub own_pins: Option<Pins>,
    /// What the declaration says of providers' signals.
    pub watches: BTreeMap<ProviderName, Watched>,
    /// The names that are taken of peers.
    pub accepted: Arc<Accepted>,
    /// The site's certificate and key. Under gossip, which has no listener, there may be none.
    pub identity: Option<Arc<Identity>>,
    /// The mesh's authorities; none under `pin`.
    pub authorities: Vec<TrustAnchor<'static>>,
    /// The files that were looked at, and the digest of each that was there.
    files: Vec<(PathBuf, Option<Digest>)>,
}

impl Loaded {
    /// What all files say, in one digest: which of them are there, and their bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut said = Vec::new();
        for (_, digest) in &self.files {
            said.push(u8::from(digest.is_some()));
            said.extend(digest.iter().flat_map(|digest| *digest.as_bytes()));
        }
        Digest::of(&said)
    }
}

impl Source {
    /// The one configuration.
    ///
    /// # Errors
    /// When there is not exactly one.
    pub fn new(paths: &[PathBuf]) -> Result<Self, ConfigError> {
        match paths {
            [path] => Ok(Self { path: path.clone() }),
            paths => Err(ConfigError::Networks(paths.len())),
        }
    }

    /// Whether the files say what they said when `loaded` was read, byte for byte: most looks end here, unparsed.
    #[must_use]
    pub fn is_unchanged(&self, loaded: &Loaded) -> bool {
        let path = self.path.canonicalize().ok();
        let first = loaded.files.first().map(|(path, _)| path);
        path.as_ref() == first
            && loaded.files.iter().all(|(path, digest)| {
                let now = bounded(path).ok().map(|bytes| Digest::of(&bytes));
                now == *digest
            })
    }

    /// Reads all files.
    ///
    /// # Errors
    /// When one cannot be read, or says something wrong.
    pub fn read(&self) -> Result<Loaded, ConfigError> {
        let path = self.path.canonicalize().map_err(unreadable(&self.path))?;
        let mut files = Vec::new();
        let mut read = |path: &Path| {
            let bytes = bounded(path);
            let digest = bytes.as_ref().ok().map(|bytes| Digest::of(bytes));
            files.push((path.to_owned(), digest));
            bytes
        };
        let site = Site::read(&read(&path)?).map_err(wrong(&self.path))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        // What is absolute stays so.
        let beside = |file: &str| folder.join(file);

        let peers_path = beside(site.peers.as_str());
        let mut peers = Peers::read(&read(&peers_path)?).map_err(wrong(&peers_path))?;
        // One list goes to all sites, so the site itself stands on it.
        let own = peers.peers.iter().find(|peer| peer.name == site.site);
        let own_pins = own.map(|own| own.pins.clone());
        peers.peers.retain(|peer| peer.name != site.site);

        let certificate_path = beside(site.identity.certificate.as_str());
        let identity = match read(&certificate_path) {
            Ok(certificate) => {
                let key = read(&beside(site.identity.key.as_str()))?;
                let identity =
                    Identity::read(&certificate, &key).map_err(not_identity(&certificate_path))?;
                Some(Arc::new(identity))
            }
            Err(ConfigError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && site.mode == SignalMode::Gossip =>
            {
                None
            }
            Err(error) => return Err(error),
        };
        let authorities = match site.trust {
            PeerTrust::Pin => Vec::new(),
            PeerTrust::Spiffe => {
                let path = beside(site.identity.authorities.as_str());
                authorities(&read(&path)?).map_err(not_identity(&path))?
            }
        };
        Ok(Loaded {
            accepted: Arc::new(site.accepted()),
            watches: site.watches(),
            site,
            peers,
            own_pins,
            identity,
            authorities,
            files,
        })
    }
}

/// Reads a file that is not past the bound.
pub(super) fn bounded(path: &Path) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
    let most = u64::try_from(LARGEST).unwrap_or(u64::MAX);
    let mut bytes = Zeroizing::new(Vec::new());
    File::open(path)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(unreadable(path))?;
    if bytes.len() > LARGEST {
        return Err(wrong(path)(SiteError::TooLarge(bytes.len())));
    }
    Ok(bytes)
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ConfigError {
    let path = path.to_owned();
    move |source| ConfigError::Io { path, source }
}

fn wrong(path: &Path) -> impl FnOnce(SiteError) -> ConfigError {
    let path = path.to_owned();
    move |source| ConfigError::File { path, source }
}

pub(super) fn not_identity(path: &Path) -> impl FnOnce(IdentityError) -> ConfigError {
    let path = path.to_owned();
    move |source| ConfigError::Identity { path, source }
}
