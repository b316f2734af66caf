//! `peers.toml`: the other sites of the mesh, where they are, and by which certificates they are known.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{FORMAT, SiteError, at_most, is_format, once, parse};
use crate::words::{Digest, MOST_PINS, NodeName, PeerHost};

/// The most peers of a site.
pub const MOST_PEERS: usize = 10_000;

/// The other sites of the mesh: `peers.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    /// 1.
    pub format: u32,
    /// The peers, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
}

/// Another site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name.
    pub name: NodeName,
    /// Where it is, until SWIM membership says it.
    pub host: PeerHost,
    /// By which certificates it is known under `pin`; without one it is refused both ways.
    #[serde(default, skip_serializing_if = "Pins::is_empty")]
    pub pins: Pins,
}

impl Peers {
    /// These peers, by name.
    #[must_use]
    pub fn new(mut peers: Vec<Peer>) -> Self {
        peers.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            format: FORMAT,
            peers,
        }
    }

    /// Reads `peers.toml`.
    ///
    /// # Errors
    /// When it is no such file, or past a bound; when a name or a pin stands there twice: a certificate is one peer's.
    pub fn read(bytes: &[u8]) -> Result<Self, SiteError> {
        let peers: Self = parse(bytes)?;
        peers.check()?;
        Ok(peers)
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
        at_most("peers", self.peers.len(), MOST_PEERS)?;
        once("the peer", self.peers.iter().map(|peer| peer.name.as_str()))?;
        let mut seen = HashMap::new();
        for peer in &self.peers {
            for pin in peer.pins.iter() {
                if let Some(first) = seen.insert(pin, &peer.name) {
                    return Err(SiteError::SharedPin {
                        pin: *pin,
                        first: first.clone(),
                        second: peer.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Why texts are no pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PinsError {
    /// Too many.
    #[error("a peer has at most {MOST_PINS} pins, this one has {0}")]
    TooMany(usize),
    /// Not a SHA-256.
    #[error("a pin is the SHA-256 of a certificate: 64 hexadecimal digits, with or without colons")]
    Form,
}

/// The SHA-256 of each certificate by which a peer is known: at most two, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Pins(Vec<Digest>);

impl Pins {
    /// Takes the digests of certificates (DER).
    ///
    /// # Errors
    /// When there are more than two.
    pub fn new(pins: impl IntoIterator<Item = Digest>) -> Result<Self, PinsError> {
        let mut kept: Vec<Digest> = Vec::new();
        for pin in pins {
            if !kept.contains(&pin) {
                kept.push(pin);
            }
        }
        if kept.len() > MOST_PINS {
            return Err(PinsError::TooMany(kept.len()));
        }
        Ok(Self(kept))
    }

    /// Whether it has none: then the peer is refused under `pin`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pins.
    pub fn iter(&self) -> impl Iterator<Item = &Digest> {
        self.0.iter()
    }

    /// Whether a certificate is one of them.
    #[must_use]
    pub fn contains(&self, certificate: &Digest) -> bool {
        self.0.contains(certificate)
    }
}

impl TryFrom<Vec<String>> for Pins {
    type Error = PinsError;
    fn try_from(written: Vec<String>) -> Result<Self, PinsError> {
        let pins: Vec<Digest> = written
            .iter()
            .map(|pin| {
                let plain: String = pin.chars().filter(|c| *c != ':').collect();
                let plain = plain.to_ascii_lowercase();
                plain.parse().map_err(|_| PinsError::Form)
            })
            .collect::<Result<_, _>>()?;
        Self::new(pins)
    }
}

impl From<Pins> for Vec<String> {
    fn from(pins: Pins) -> Self {
        pins.0.iter().map(ToString::to_string).collect()
    }
}
