//! What the site daemon is told: `services/site/site.toml` and `peers.toml` of a release (DESIGN.md, section 7).
//!
//! Compose writes these types and `grid site run` reads them, so that neither can mean what the other does not.
//! Every file says its format; unknown keys, a newer format and whatever is past a bound are refused. What is absent
//! has the contract's value, and what has that value is not written: composing the same facts gives the same bytes.
//!
//! Threat: the files come from whoever may write the machine's release, so they are trusted as root is; the bounds are
//! there so that a mistake ends in a message and not in a daemon without memory.

mod error;
mod peers;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::contract::Accepted;
use super::measure::Mapping;
use super::observation::Watch;
use crate::words::{
    AbsolutePath, METRICS_PORT, MachinePath, MeshName, NodeName, PeerTrust, ReleasePath,
    SIGNALS_PORT, ScrapeUrl, Signal, SignalMode, Strategy,
};
use crate::words::{MetricName, ProviderName};

pub use crate::words::{MOST_MAPS, Milliseconds, Settings, SettingsError};
pub use error::SiteError;
pub use peers::{MOST_PEERS, Peer, Peers, Pins, PinsError};

/// The file of the site's certificate, with what issued it.
pub const CERTIFICATE: &str = "identity.pem";
/// The file of the certificate's key.
pub const KEY: &str = "identity.key";
/// The file of the other sites.
pub const PEERS: &str = "peers.toml";
/// The file of the mesh's authorities.
pub const AUTHORITIES: &str = "authorities.pem";

/// The format of both files that this grid writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The largest file that is read, in bytes: 8 MiB.
pub const LARGEST: usize = 8 * 1024 * 1024;

/// The most providers that a site scrapes.
pub const MOST_SCRAPES: usize = 256;

/// The most providers of which a declaration says something.
pub const MOST_WATCHES: usize = 10_000;

/// What a site daemon is: `site.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// 1.
    pub format: u32,
    /// The mesh that the site belongs to; none: then it is gossip and pin.
    #[serde(default)]
    pub network: Network,
    /// Its name: the machine's.
    pub site: NodeName,
    /// How signals cross sites.
    #[serde(default)]
    pub mode: SignalMode,
    /// By what it knows its peers.
    #[serde(default)]
    pub trust: PeerTrust,
    /// Where sites listen: one port for the mesh.
    #[serde(default = "port")]
    pub port: u16,
    /// Absolute: the folder of what outlives a release: `evidence.json`, `overlay.json`, `status.json`.
    pub state: AbsolutePath,
    /// Where it shows its own metrics, for this machine only.
    #[serde(default = "metrics", skip_serializing_if = "is_default_metrics")]
    pub metrics: std::net::SocketAddr,
    /// The file of its peers, beside this one.
    #[serde(default = "peers_file", skip_serializing_if = "is_default_peers_file")]
    pub peers: ReleasePath,
    /// Who it is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identity: Identity,
    /// Its intervals and limits, where they are not the contract's.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: Settings,
    /// The providers that it scrapes.
    #[serde(default, rename = "scrape", skip_serializing_if = "Vec::is_empty")]
    pub scrapes: Vec<Scrape>,
    /// What the declaration says of the signals of providers, wherever in the mesh they are.
    #[serde(default, rename = "watch", skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<Watched>,
}

/// The one network that a daemon serves, or none. A list is read, so that two can be refused by saying why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "OneOrMany", into = "OneOrMany")]
pub struct Network(Option<MeshName>);

impl Network {
    /// The mesh, if there is one.
    #[must_use]
    pub fn mesh(&self) -> Option<&MeshName> {
        self.0.as_ref()
    }
}

impl From<MeshName> for Network {
    fn from(mesh: MeshName) -> Self {
        Self(Some(mesh))
    }
}

impl From<Network> for OneOrMany {
    fn from(network: Network) -> Self {
        match network.0 {
            Some(mesh) => Self::One(mesh.to_string()),
            None => Self::Many(Vec::new()),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl TryFrom<OneOrMany> for Network {
    type Error = String;
    fn try_from(written: OneOrMany) -> Result<Self, String> {
        let name = match written {
            OneOrMany::One(name) => name,
            OneOrMany::Many(names) if names.is_empty() => return Ok(Self(None)),
            OneOrMany::Many(names) => match <[String; 1]>::try_from(names) {
                Ok([name]) => name,
                Err(names) => return Err(SiteError::Networks(names.len()).to_string()),
            },
        };
        MeshName::try_from(name)
            .map(Self::from)
            .map_err(|error| error.to_string())
    }
}

/// Who a site is: PEM files, beside `site.toml` or wherever else on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    /// Its certificate.
    pub certificate: MachinePath,
    /// The certificate's key, which nobody else reads.
    pub key: MachinePath,
    /// The mesh's authorities; read under `spiffe`.
    pub authorities: ReleasePath,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            certificate: MachinePath::Beside(fixed(CERTIFICATE)),
            key: MachinePath::Beside(fixed(KEY)),
            authorities: fixed(AUTHORITIES),
        }
    }
}

/// A provider that the site scrapes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scrape {
    /// Its name.
    pub provider: ProviderName,
    /// Where it shows its metrics.
    pub url: ScrapeUrl,
}

/// What the declaration says of a provider's signals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watched {
    /// The provider's name.
    pub provider: ProviderName,
    /// By what it is scored, under gossip.
    #[serde(default, skip_serializing_if = "is_default")]
    pub score: Strategy,
    /// Metrics of which its signals are made, before the contract's.
    #[serde(default, rename = "map", skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<Map>,
}

/// A metric that a signal is made of, and that is taken of peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// The signal.
    pub signal: Signal,
    /// The metric's exact name.
    pub metric: MetricName,
}

impl Site {
    /// A site with the contract's values wherever it has any.
    #[must_use]
    pub fn new(network: MeshName, site: NodeName, state: AbsolutePath) -> Self {
        Self {
            format: FORMAT,
            network: Network::from(network),
            site,
            mode: SignalMode::default(),
            trust: PeerTrust::default(),
            port: SIGNALS_PORT,
            state,
            metrics: metrics(),
            peers: peers_file(),
            identity: Identity::default(),
            settings: Settings::default(),
            scrapes: Vec::new(),
            watches: Vec::new(),
        }
    }

    /// What is said of providers, by name.
    #[must_use]
    pub fn watches(&self) -> BTreeMap<ProviderName, Watch> {
        let watch = |watched: &Watched| {
            let maps = watched.maps.iter();
            let mapping = Mapping::with(maps.map(|map| (map.signal, map.metric.clone())));
            let strategy = watched.score;
            (watched.provider.clone(), Watch { mapping, strategy })
        };
        self.watches.iter().map(watch).collect()
    }

    /// The metrics that are taken of peers.
    #[must_use]
    pub fn accepted(&self) -> Accepted {
        let maps = self.watches.iter().flat_map(|watched| &watched.maps);
        Accepted::with(maps.map(|map| (map.metric.clone(), map.signal.scale())))
    }

    /// Reads `site.toml`.
    ///
    /// # Errors
    /// When it is no such file, or past a bound.
    pub fn read(bytes: &[u8]) -> Result<Self, SiteError> {
        let site: Self = parse(bytes)?;
        site.check()?;
        Ok(site)
    }

    /// Writes it, the same bytes for the same facts.
    ///
    /// # Errors
    /// When it breaks a rule that reading it would refuse.
    pub fn write(&self) -> Result<String, SiteError> {
        self.check()?;
        toml::to_string(self).map_err(|error| SiteError::Syntax(error.to_string()))
    }

    fn check(&self) -> Result<(), SiteError> {
        is_format(self.format)?;
        at_most("scrapes", self.scrapes.len(), MOST_SCRAPES)?;
        at_most("watches", self.watches.len(), MOST_WATCHES)?;
        let (mode, trust) = (self.mode, self.trust);
        if self.network.mesh().is_none() && (mode, trust) != (SignalMode::Gossip, PeerTrust::Pin) {
            return Err(SiteError::NoNetwork { mode, trust });
        }
        if self.port == 0 {
            return Err(SiteError::Port);
        }
        if !self.metrics.ip().to_canonical().is_loopback() {
            return Err(SiteError::Metrics(self.metrics));
        }
        self.settings.check()?;
        once(
            "the provider",
            self.scrapes.iter().map(|s| s.provider.as_str()),
        )?;
        once(
            "the watched provider",
            self.watches.iter().map(|watch| watch.provider.as_str()),
        )?;
        let mut scales = BTreeMap::new();
        for watch in &self.watches {
            at_most("maps of one provider", watch.maps.len(), MOST_MAPS)?;
            for map in &watch.maps {
                let scale = map.signal.scale();
                if *scales.entry(&map.metric).or_insert(scale) != scale {
                    return Err(SiteError::Scales(map.metric.clone()));
                }
            }
        }
        Ok(())
    }
}

/// Reads TOML of a bounded size, its format first: a newer one may have keys that are unknown here.
fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, SiteError> {
    #[derive(Deserialize)]
    struct Header {
        format: u32,
    }
    if bytes.len() > LARGEST {
        return Err(SiteError::TooLarge(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| SiteError::NotText)?;
    let syntax =
        |error: toml::de::Error| SiteError::Syntax(error.to_string().trim_end().to_owned());
    let header: Header = toml::from_str(text).map_err(syntax)?;
    is_format(header.format)?;
    toml::from_str(text).map_err(syntax)
}

fn is_format(format: u32) -> Result<(), SiteError> {
    if format == FORMAT {
        Ok(())
    } else {
        Err(SiteError::Format(format))
    }
}

fn at_most(what: &'static str, count: usize, most: usize) -> Result<(), SiteError> {
    if count > most {
        return Err(SiteError::TooMany { what, count, most });
    }
    Ok(())
}

fn once<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), SiteError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let name = name.to_owned();
            return Err(SiteError::Twice { what, name });
        }
    }
    Ok(())
}

fn port() -> u16 {
    SIGNALS_PORT
}

fn metrics() -> std::net::SocketAddr {
    (std::net::Ipv4Addr::LOCALHOST, METRICS_PORT).into()
}

fn is_default_metrics(address: &std::net::SocketAddr) -> bool {
    *address == metrics()
}

fn peers_file() -> ReleasePath {
    fixed(PEERS)
}

fn is_default_peers_file(path: &ReleasePath) -> bool {
    *path == peers_file()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::expect_used, reason = "the names are written in this file")]
fn fixed(path: &str) -> ReleasePath {
    ReleasePath::new(path).expect("a plain name is a path")
}

#[cfg(test)]
mod tests;
