//! Why a file of the site daemon's is refused.

use super::{FORMAT, LARGEST, SettingsError};
use crate::words::{Digest, MetricName, NodeName, PeerTrust, SignalMode};

/// Why a file of the site's is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// Past the bound.
    #[error("it is {0} bytes, and at most {LARGEST} are read")]
    TooLarge(usize),
    /// Not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// Not TOML, an unknown key, or a value that is none of its key's.
    #[error("{0}")]
    Syntax(String),
    /// Written by a newer grid.
    #[error(
        "it has format {0}, and this grid reads format {FORMAT}: install the grid that wrote it"
    )]
    Format(u32),
    /// Without a network, and not as one is without.
    #[error(
        "it names no network, so its mode is {} and its trust {}, and it says {mode} and {trust}: name the network, or leave them out",
        SignalMode::Gossip,
        PeerTrust::Pin
    )]
    NoNetwork {
        /// What it says.
        mode: SignalMode,
        /// What it says.
        trust: PeerTrust,
    },
    /// More than one network.
    #[error(
        "it names {0} networks: one daemon serves one network, since how signals cross sites holds for the whole process"
    )]
    Networks(usize),
    /// Too many of something.
    #[error("it has {count} {what}, and at most {most} are taken")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many are taken.
        most: usize,
    },
    /// Something stands there twice.
    #[error("{what} {name} stands there twice")]
    Twice {
        /// What it is.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// One certificate of two sites.
    #[error(
        "{first} and {second} have the pin {pin}, and a certificate is one site's: take it out of `pins` of the one whose certificate it is not"
    )]
    SharedPin {
        /// Which.
        pin: Digest,
        /// Of whom.
        first: NodeName,
        /// And of whom.
        second: NodeName,
    },
    /// A metric that speaks of signals of two scales.
    #[error(
        "the metric {0} is mapped to a queue depth, which has no upper end, and to a part of the whole, which is at most 1"
    )]
    Scales(MetricName),
    /// The listener's port is 0.
    #[error("the port is 0; it has to be one that peers can dial")]
    Port,
    /// Its own metrics are not on the loopback.
    #[error("metrics = {0} is not on the loopback: they are unencrypted and for this machine only")]
    Metrics(std::net::SocketAddr),
    /// A setting.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}
