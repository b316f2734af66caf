//! How signals cross sites, and how sites know each other (DESIGN.md, section 7).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where sites listen unless the declaration says otherwise (the signals contract).
pub const SIGNALS_PORT: u16 = 9091;

/// Where a site's daemon shows its own metrics, on its machine's loopback, where nothing else is said.
pub const METRICS_PORT: u16 = 9092;

/// The most pins of a site: a renewal overlaps with what it replaces (the signals contract, *Identity*).
pub const MOST_PINS: usize = 2;

/// How provider load crosses sites, mesh-wide. SWIM membership runs under both.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SignalMode {
    /// Each site scrapes and scores; samples ride the SWIM and CRDT overlay. What holds where nothing is said.
    #[default]
    Gossip,
    /// Each site serves what it scraped over mutual TLS, pulls its peers' and scores nothing.
    Poll,
}

/// By what a site knows a peer's certificate.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PeerTrust {
    /// By its SHA-256, pinned. What holds where nothing is said.
    #[default]
    Pin,
    /// By its chain to the mesh's authority and its SPIFFE identity.
    Spiffe,
}

/// A word that names no mode or no trust.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The membership protocol, which is not a choice.
    #[error(
        "\"swim\" is no mode: SWIM membership runs in both modes, and `mode` says only how load crosses sites: gossip or poll"
    )]
    Swim,
    /// No mode.
    #[error("a mode is gossip or poll, not {0:?}")]
    Mode(String),
    /// No trust.
    #[error("a trust is pin or spiffe, not {0:?}")]
    Trust(String),
}

impl SignalMode {
    /// The word in the declaration and in `spec.signalTransport.mode`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gossip => "gossip",
            Self::Poll => "poll",
        }
    }
}

impl PeerTrust {
    /// The word in the declaration and in `spec.peerTrust.mode`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Spiffe => "spiffe",
        }
    }
}

impl FromStr for SignalMode {
    type Err = TransportError;
    fn from_str(text: &str) -> Result<Self, TransportError> {
        match text {
            "gossip" => Ok(Self::Gossip),
            "poll" => Ok(Self::Poll),
            "swim" => Err(TransportError::Swim),
            other => Err(TransportError::Mode(other.to_owned())),
        }
    }
}

impl FromStr for PeerTrust {
    type Err = TransportError;
    fn from_str(text: &str) -> Result<Self, TransportError> {
        match text {
            "pin" => Ok(Self::Pin),
            "spiffe" => Ok(Self::Spiffe),
            other => Err(TransportError::Trust(other.to_owned())),
        }
    }
}

impl fmt::Display for SignalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for PeerTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_gossip_and_pin_and_every_word_reads_back() {
        assert_eq!(SignalMode::default(), SignalMode::Gossip);
        assert_eq!(PeerTrust::default(), PeerTrust::Pin);
        for mode in [SignalMode::Gossip, SignalMode::Poll] {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        for trust in [PeerTrust::Pin, PeerTrust::Spiffe] {
            assert_eq!(trust.as_str().parse(), Ok(trust));
        }
    }

    #[test]
    fn swim_is_refused_with_the_reason() {
        let error = "swim".parse::<SignalMode>().unwrap_err();
        insta::assert_snapshot!(error, @r#""swim" is no mode: SWIM membership runs in both modes, and `mode` says only how load crosses sites: gossip or poll"#);
        assert!("Poll".parse::<SignalMode>().is_err());
        assert!("".parse::<PeerTrust>().is_err());
    }
}
