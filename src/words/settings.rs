//! Intervals and limits of the site daemon, each with the contract's value where nothing is said.
//!
//! The declaration says them once for the mesh (`[signals.settings]`) and every `site.toml` carries them, by the same keys.
//! The resources in Kubernetes have no fields for them (the contract's section on resources).

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest interval, in milliseconds: a day.
const LONGEST_MS: u32 = 24 * 60 * 60 * 1000;

impl SettingsError {
    /// The key that is wrong.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Range { key, .. } => key,
            Self::Local { .. } => "local_connections",
        }
    }
}

/// Why settings are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A number outside its bounds.
    #[error("{key} = {value} is not between {least} and {most}")]
    Range {
        /// Which.
        key: &'static str,
        /// What it is.
        value: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// No connection is left for peers.
    #[error("local_connections = {local} leaves nothing of connections = {all} for peers")]
    Local {
        /// What is kept for local callers.
        local: u32,
        /// All of them.
        all: u32,
    },
}

/// A time, in whole milliseconds, from 1 up to a day.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Milliseconds(u32);

impl Milliseconds {
    /// So many milliseconds.
    #[must_use]
    pub const fn new(milliseconds: u32) -> Self {
        Self(milliseconds)
    }

    /// As a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $key:ident: $type:ty = $default:expr, $bounds:expr;)*) => {
        /// The daemon's intervals and limits.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Settings {
            $(
                $(#[$doc])*
                #[schemars(extend("minimum" = $bounds.0, "maximum" = $bounds.1))]
                pub $key: $type,
            )*
            /// Where to listen; every address of the machine, IPv6 and IPv4, unless said otherwise.
            pub listen: IpAddr,
            /// Whether peers may be at loopback, link-local, unspecified and cloud-metadata addresses. For tests on one
            /// machine.
            pub special_addresses: bool,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self {
                    $($key: $default,)*
                    listen: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                    special_addresses: false,
                }
            }
        }

        impl Settings {
            /// Whether each is within its bounds.
            ///
            /// # Errors
            /// The first that is not.
            pub fn check(&self) -> Result<(), SettingsError> {
                $(
                    let (least, most): (u32, u32) = $bounds;
                    let value = u64::from(self.$key.number());
                    if !(u64::from(least)..=u64::from(most)).contains(&value) {
                        return Err(SettingsError::Range {
                            key: stringify!($key),
                            value,
                            least: least.into(),
                            most: most.into(),
                        });
                    }
                )*
                if self.local_connections >= self.connections {
                    let (local, all) = (self.local_connections, self.connections);
                    return Err(SettingsError::Local { local, all });
                }
                Ok(())
            }
        }
    };
}

trait Number {
    fn number(self) -> u32;
}

impl Number for u32 {
    fn number(self) -> u32 {
        self
    }
}

impl Number for Milliseconds {
    fn number(self) -> u32 {
        self.0
    }
}

const TIME: (u32, u32) = (1, LONGEST_MS);

settings! {
    /// How often the site's own providers are scraped: 5 s.
    scrape_interval_ms: Milliseconds = Milliseconds(5_000), (100, LONGEST_MS);
    /// How long a scrape may take: 4 s.
    scrape_timeout_ms: Milliseconds = Milliseconds(4_000), TIME;
    /// The largest answer of a provider that is read, in bytes: 8 MiB.
    scrape_bytes: u32 = 8 * 1024 * 1024, (1024, 64 * 1024 * 1024);
    /// How often peers are polled: 30 s.
    poll_interval_ms: Milliseconds = Milliseconds(30_000), (100, LONGEST_MS);
    /// How many peers are polled at a time: 8.
    poll_parallel: u32 = 8, (1, 256);
    /// How often a poll is tried: 3 times.
    poll_attempts: u32 = 3, (1, 16);
    /// How long one attempt may take: 5 s.
    poll_attempt_ms: Milliseconds = Milliseconds(5_000), TIME;
    /// How long a poll may take with all its attempts: 10 s.
    poll_total_ms: Milliseconds = Milliseconds(10_000), TIME;
    /// The largest answer of a peer that is read, in bytes: 1 MiB.
    poll_bytes: u32 = 1024 * 1024, (1024, 64 * 1024 * 1024);
    /// How many connections the listener holds: 256.
    connections: u32 = 256, (2, 65_536);
    /// How many of them neither peers nor unknown handshakes may take: 8.
    local_connections: u32 = 8, (1, 65_535);
    /// How many connections one peer may hold: 8.
    site_connections: u32 = 8, (1, 65_535);
    /// How many handshakes one source address (of IPv6: one /64) may have at a time: 8.
    source_handshakes: u32 = 8, (1, 65_535);
    /// How long a handshake may take: 3 s.
    handshake_ms: Milliseconds = Milliseconds(3_000), TIME;
    /// How long a request's head may take: 10 s.
    head_ms: Milliseconds = Milliseconds(10_000), TIME;
    /// How long a write may stall: 10 s.
    write_ms: Milliseconds = Milliseconds(10_000), TIME;
    /// How old a connection may become: 300 s.
    connection_ms: Milliseconds = Milliseconds(300_000), TIME;
    /// How long a gateway's report may take in all: 5 s.
    ingest_ms: Milliseconds = Milliseconds(5_000), TIME;
    /// How often the files are looked at: 2 s.
    reread_ms: Milliseconds = Milliseconds(2_000), (50, 60_000);
}
