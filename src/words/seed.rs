//! Where a site is reached: `host:port`, `[v6]:port`, or a DNS name, with a port or without.
//!
//! Used for the SWIM seeds and for a gateway's endpoint. A name is kept as it is: it is resolved each time it is used, so
//! that a seed may move (operators stumble over seeds that have to be addresses).

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// SWIM's port, and a seed's where it names none.
pub const SWIM_PORT: u16 = 7946;

/// The longest host name, in bytes (RFC 1035, section 2.3.4).
const LONGEST_HOST: usize = 253;

/// Why a text is no seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// No host, or one that is neither a name nor an address.
    #[error("{0:?} is no host: a DNS name, an IPv4 address, or an IPv6 address in brackets")]
    Host(String),
    /// No port from 1 on.
    #[error("{0:?} is no port: a number from 1 to 65535")]
    Port(String),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Seed {
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Host {
    Address(IpAddr),
    Name(Box<str>),
}

impl Seed {
    /// Reads a seed; where it names no port it has `port`.
    ///
    /// # Errors
    /// When the host is none, or the port.
    pub fn parse(text: &str, port: u16) -> Result<Self, SeedError> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let (address, rest) = inner
                    .split_once(']')
                    .ok_or_else(|| SeedError::Host(shown(text)))?;
                let address: Ipv6Addr = address
                    .parse()
                    .map_err(|_| SeedError::Host(shown(address)))?;
                (Host::Address(address.into()), rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (host, rest) = text.split_at_checked(end).unwrap_or((text, ""));
                (read_host(host)?, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => port,
            Some(digits) => read_port(digits)?,
            None => return Err(SeedError::Port(shown(rest))),
        };
        Ok(Self { host, port })
    }

    /// The host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> String {
        match &self.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.to_string(),
        }
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// A text in an error: at most as long as a host may be.
fn shown(text: &str) -> String {
    text.chars().take(LONGEST_HOST).collect()
}

fn read_port(digits: &str) -> Result<u16, SeedError> {
    let is_canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    let port = digits.parse().ok().filter(|_| is_canonical);
    port.ok_or_else(|| SeedError::Port(shown(digits)))
}

fn read_host(host: &str) -> Result<Host, SeedError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(Host::Address(address));
    }
    let is_label = |label: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len())
            && label.bytes().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    // The last label of a name is no number: `10.0.0.256` is a mistyped address.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|b| b.is_ascii_digit());
    if name.len() > LONGEST_HOST || is_number || !name.split('.').all(is_label) {
        return Err(SeedError::Host(shown(host)));
    }
    Ok(Host::Name(host.into()))
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            Host::Address(address) => write!(f, "{address}:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl TryFrom<String> for Seed {
    type Error = SeedError;
    fn try_from(text: String) -> Result<Self, SeedError> {
        Self::parse(&text, SWIM_PORT)
    }
}

impl schemars::JsonSchema for Seed {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Seed".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 260 })
    }
}

impl From<Seed> for String {
    fn from(seed: Seed) -> String {
        seed.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_seeds_with_a_port_or_without() {
        for (text, shown) in [
            ("10.0.0.1", "10.0.0.1:7946"),
            ("10.0.0.1:1", "10.0.0.1:1"),
            ("[2001:db8::1]:65535", "[2001:db8::1]:65535"),
            ("[::1]", "[::1]:7946"),
            ("atlas.example.net", "atlas.example.net:7946"),
            ("atlas.example.net.:80", "atlas.example.net.:80"),
            ("Seed_1:7946", "Seed_1:7946"),
        ] {
            let seed = Seed::parse(text, SWIM_PORT).unwrap();
            assert_eq!(seed.to_string(), shown);
            assert_eq!(Seed::parse(shown, 1).unwrap(), seed);
        }
    }

    #[test]
    fn what_cannot_be_dialled_is_none() {
        for wrong in [
            "",
            ":",
            ":80",
            "a:",
            "a:0",
            "a:080",
            "a:65536",
            "a:+1",
            "a:1 ",
            "a b",
            "a..b",
            "-a",
            "a-",
            ".",
            "10.0.0.256",
            "10.0.0",
            "2001:db8::1",
            "[10.0.0.1]:1",
            "[::1",
            "[::1]1",
            "[fe80::1%eth0]:1",
            "http://a",
            "a/b",
            "é",
            "a\n",
        ] {
            assert!(Seed::parse(wrong, SWIM_PORT).is_err(), "{wrong:?}");
        }
        assert!(Seed::parse(&format!("{}.de", "a".repeat(64)), 1).is_err());
    }
}
