//! Where something on the network is: an address or a name.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The longest DNS name, in bytes (RFC 1035, section 2.3.4, without the root's dot).
const LONGEST_HOST: usize = 253;

/// Why a text is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a host is an IP address without brackets or port, or a DNS name")]
pub struct HostError;

/// Where a peer is: an IP address or a DNS name, without a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PeerHost {
    /// An address.
    Address(IpAddr),
    /// A name, lowercase, that is resolved anew for every connection.
    Name(Box<str>),
}

impl PeerHost {
    /// Parses a host.
    ///
    /// # Errors
    /// When it is neither an address nor a name.
    pub fn new(text: &str) -> Result<Self, HostError> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let is_part = |part: &str| {
            let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            (1..=63).contains(&part.len())
                && part.bytes().all(inner)
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        let name = text.strip_suffix('.').unwrap_or(text);
        // A last part of digits is a mistyped address, and resolvers read some of these as one.
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_name = (1..=LONGEST_HOST).contains(&name.len())
            && name.split('.').all(is_part)
            && !last.bytes().all(|b| b.is_ascii_digit());
        if is_name {
            Ok(Self::Name(name.to_ascii_lowercase().into()))
        } else {
            Err(HostError)
        }
    }
}

impl fmt::Display for PeerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl TryFrom<String> for PeerHost {
    type Error = HostError;
    fn try_from(text: String) -> Result<Self, HostError> {
        Self::new(&text)
    }
}

impl From<PeerHost> for String {
    fn from(host: PeerHost) -> Self {
        host.to_string()
    }
}
