//! What a machine is given as a site (DESIGN.md, section 7): the configuration of its daemon, its identity, its peers.
//!
//! They are the files of a service that every machine of a mesh with `[signals]` has, and that no declaration may call its
//! own: so they are delivered, switched, checked and put back like everything else. What is the same for all sites is
//! composed once a mesh.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::bundle::Content;
use super::files::{Files, mode_of};
use super::identities::{authorities, identity, pins};
use super::manifest::{FileEntry, Manifest, SiteManifest};
use super::resources;
use super::{ComposeError, World};
use crate::mesh::{Move, Node, SITE_SERVICE as SERVICE, Service, Signals};
use crate::provision::{Identity, certificate};
use crate::signals::manifests::{secret::Notation, yaml};
use crate::signals::site::{Map, Peer, Peers, Pins, Scrape, Site, Watched};
use crate::words::{Digest, MachinePath, PeerHost, ProviderName, ServiceName};

/// The file of the daemon's configuration.
pub const CONFIG: &str = "site.toml";
// As the daemon finds them where its configuration names no others.
pub use crate::signals::site::{AUTHORITIES, CERTIFICATE, KEY, PEERS};

/// A file of the site's in a release, by its name.
#[must_use]
pub fn file<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a FileEntry> {
    let service = manifest.services.get(SERVICE)?;
    let path = path(name);
    service.files.iter().find(|file| file.path.as_str() == path)
}

/// A content that many machines get.
#[derive(Debug)]
struct SharedFile {
    digest: Digest,
    bytes: Arc<Zeroizing<Vec<u8>>>,
}

impl SharedFile {
    fn of(text: String) -> Self {
        let bytes = text.into_bytes();
        Self {
            digest: Digest::of(&bytes),
            bytes: Arc::new(Zeroizing::new(bytes)),
        }
    }
}

/// What is the same for all sites of a mesh.
#[derive(Debug)]
pub struct Shared {
    peers: SharedFile,
    authorities: SharedFile,
    /// What is said of providers.
    watches: Vec<Watched>,
    /// Up to which serial these admit what was minted.
    knows: u64,
}

impl Shared {
    /// Composes it.
    ///
    /// # Errors
    /// When there are more peers than a site takes, or one cannot be dialled.
    pub(super) fn of(world: &World<'_>) -> Result<Self, ComposeError> {
        let authorities = authorities(world);
        let mut knows = authorities.iter().map(|one| one.serial).max().unwrap_or(0);
        let trust = world.mesh.signals.as_ref().map(|signals| signals.trust());
        let by_pin = trust.unwrap_or_default() == crate::words::PeerTrust::Pin;
        let mut peers = Vec::new();
        for node in world.mesh.nodes.values() {
            let failed = |why: String| ComposeError::Site {
                node: node.name.to_string(),
                why,
            };
            let (pins, serial) = pins(world, node);
            if by_pin {
                knows = knows.max(serial);
            }
            let pins = if by_pin { pins } else { Default::default() };
            peers.push(Peer {
                name: node.name.clone(),
                host: PeerHost::new(node.host()).map_err(|e| failed(e.to_string()))?,
                pins: Pins::new(pins).map_err(|e| failed(e.to_string()))?,
            });
        }
        let all = |why: String| ComposeError::Site {
            node: "every machine".to_owned(),
            why,
        };
        let peers = Peers::new(peers).write().map_err(|e| all(e.to_string()))?;
        Ok(Self {
            peers: SharedFile::of(peers),
            authorities: SharedFile::of(authorities_pem(world)),
            watches: watches(world),
            knows,
        })
    }
}

/// The certificates of all authorities that sites trust, as PEM: the mesh's own, and those that the declaration adds.
#[must_use]
pub fn authorities_pem(world: &World<'_>) -> String {
    let own = authorities(world).into_iter();
    let own = own.map(|one| certificate::pem(&one.certificate));
    let signals = world.mesh.signals.iter();
    let more = signals.map(|signals| signals.authorities.clone());
    own.chain(more).collect()
}

/// What the site of a machine should be, as far as its daemon looks at it.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its configuration.
    pub config: Site,
    /// The SHA-256 of its certificate; absent: that is made elsewhere.
    pub certificate: Option<Digest>,
    /// Of the list of sites; the list itself is [`peers`].
    pub peers: Digest,
    /// Of the mesh's authorities.
    pub authorities: Digest,
}

/// What the site of a machine should be; `None`: it gets none, or has no identity yet.
///
/// # Errors
/// When it cannot be composed.
pub fn wanted(world: &World<'_>, node: &Node) -> Result<Option<Wanted>, ComposeError> {
    let Some(signals) = &world.mesh.signals else {
        return Ok(None);
    };
    let Some(identity) = sent_identity(world, node).filter(|_| node.is_observed()) else {
        return Ok(None);
    };
    let shared = world.shared()?;
    Ok(Some(Wanted {
        config: config(world, node, signals)?,
        certificate: identity.map(Identity::pin),
        peers: shared.peers.digest,
        authorities: shared.authorities.digest,
    }))
}

/// The list of sites, which is the same for all of them.
///
/// # Errors
/// When it cannot be composed.
pub fn peers(world: &World<'_>) -> Result<Peers, ComposeError> {
    let bytes = &world.shared()?.peers.bytes;
    Peers::read(bytes).map_err(|e| ComposeError::Site {
        node: "every machine".to_owned(),
        why: e.to_string(),
    })
}

/// The identity that a machine is sent as a site, `None` within where it has one of its own there; `None`: it is sent no site,
/// or has no identity yet.
fn sent_identity<'a>(world: &World<'a>, node: &Node) -> Option<Option<&'a Identity>> {
    let identity = match node.has_own_identity() {
        true => None,
        false => identity(world, &node.name),
    };
    // Of one that grid makes and has not made yet nothing is sent.
    let is_sent = node.is_sent_a_site() && (identity.is_some() || node.has_own_identity());
    is_sent.then_some(identity)
}

/// The site of a machine: the service that it is delivered as, with whatever it shares in `files` already, and what its
/// manifest says. `None`: the mesh has no signals, the machine's site is somebody else's, or it has no identity yet.
pub(super) fn site(
    world: &World<'_>,
    node: &Node,
    files: &mut Files<'_>,
) -> Result<Option<SiteManifest>, ComposeError> {
    let Some(signals) = &world.mesh.signals else {
        return Ok(None);
    };
    let Some(identity) = sent_identity(world, node) else {
        return Ok(None);
    };
    if !node.is_observed() {
        return rendered(world, node, signals, identity, files).map(Some);
    }
    let failed = |why: String| ComposeError::Site {
        node: node.name.to_string(),
        why,
    };
    let shared = world.shared()?;
    for (name, file) in [(PEERS, &shared.peers), (AUTHORITIES, &shared.authorities)] {
        let size = u64::try_from(file.bytes.len()).unwrap_or(u64::MAX);
        let content = || Content::Bytes(Arc::clone(&file.bytes));
        let path = path(name);
        files.push(
            path,
            0o644,
            signals.owner.as_ref(),
            (file.digest, size),
            content,
            None,
        )?;
    }
    let owner = signals.owner.as_ref();
    let config = config(world, node, signals)?
        .write()
        .map_err(|e| failed(e.to_string()))?;
    files.add(path(CONFIG), 0o644, owner, config.as_bytes(), None)?;
    if let Some(identity) = identity {
        let certificate = certificate::pem(&identity.certificate);
        let pem = certificate.as_bytes();
        files.add(path(CERTIFICATE), 0o644, owner, pem, None)?;
        let key = identity.key.pem().map_err(|e| failed(e.to_string()))?;
        let (mode, pem) = (mode_of(true, owner), key.expose().as_bytes());
        files.add(path(KEY), mode, owner, pem, None)?;
    }
    Ok(Some(SiteManifest {
        identity: identity.map(|identity| identity.number),
        knows: shared.knows,
    }))
}

/// What is written for a site that nobody reaches: the mesh's resources, and in a file of their own the Secrets.
fn rendered(
    world: &World<'_>,
    node: &Node,
    signals: &Signals,
    identity: Option<&Identity>,
    files: &mut Files<'_>,
) -> Result<SiteManifest, ComposeError> {
    let failed = |why: resources::ResourceError| ComposeError::Site {
        node: node.name.to_string(),
        why: why.to_string(),
    };
    let how = &signals.resources;
    let objects = resources::resources(world, how, Some(node)).map_err(failed)?;
    let text = yaml::documents(&objects);
    files.add(path("resources.yaml"), 0o644, None, text.as_bytes(), None)?;
    let secrets = resources::secrets(world, how, node, Notation::Yaml).map_err(failed)?;
    let texts: Vec<&str> = secrets.iter().map(|secret| secret.expose()).collect();
    let text = Zeroizing::new(texts.join("---\n"));
    files.add(path("secrets.yaml"), 0o600, None, text.as_bytes(), None)?;
    Ok(SiteManifest {
        identity: identity.map(|identity| identity.number),
        knows: world.shared()?.knows,
    })
}

/// What the daemon is told. Absent and written-down defaults are the same text.
fn config(world: &World<'_>, node: &Node, signals: &Signals) -> Result<Site, ComposeError> {
    let name = world.mesh.name.clone();
    let mut site = Site::new(name, node.name.clone(), signals.state.clone());
    site.mode = signals.mode.unwrap_or_default();
    site.trust = signals.trust();
    site.port = signals.port;
    site.metrics.set_port(signals.metrics_port);
    site.settings = signals.settings.clone();
    if let Some(files) = &node.site {
        site.identity.certificate = MachinePath::At(files.certificate.clone());
        site.identity.key = MachinePath::At(files.key.clone());
    }
    site.watches.clone_from(&world.shared()?.watches);
    for service in world.services_on(&node.name) {
        let Some(url) = &service.metrics else {
            continue;
        };
        site.scrapes.push(Scrape {
            provider: ProviderName::from(&service.name),
            url: url.clone(),
        });
    }
    Ok(site)
}

/// What is said of providers, wherever in the mesh they are.
fn watches(world: &World<'_>) -> Vec<Watched> {
    let services = world.mesh.services.values();
    let watched = services.filter_map(|service| {
        let signals = service.signals.as_ref()?;
        let maps = signals.maps.iter().cloned();
        Some(Watched {
            provider: ProviderName::from(&service.name),
            score: signals.score,
            maps: maps
                .map(|(signal, metric)| Map { signal, metric })
                .collect(),
        })
    });
    watched.collect()
}

/// The service whose files these are, as far as its commands go: nobody runs any where nobody is reached.
pub(super) fn service(signals: &Signals, node: &Node, name: &ServiceName) -> Service {
    let here =
        |command: &Option<crate::words::Command>| command.clone().filter(|_| node.is_observed());
    Service {
        name: name.clone(),
        nodes: Default::default(),
        provides: None,
        consumes: Default::default(),
        owner: signals.owner.clone(),
        files: match node.is_observed() {
            true => signals.files.clone(),
            false => Vec::new(),
        },
        test: None,
        apply: here(&signals.apply),
        check: here(&signals.check),
        remove: here(&signals.remove),
        metrics: None,
        signals: None,
        moves: Move::StopFirst,
        limits: signals.limits,
    }
}

fn path(name: &str) -> String {
    format!("services/{SERVICE}/{name}")
}
