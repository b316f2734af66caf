//! Intervals and limits of the site daemon, each with the contract's value where nothing is said.
//!
//! The declaration says them once for the mesh (`[signals.settings]`) and every `site.toml` carries them, by the same keys.
//! The resources in Kubernetes have no fields for them (the contract's section on resources).

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest interval, in milliseconds: a day.
const LONGEST_MS: u32 = 24 * 60 * 60 * 1000;

/// How long readings live, in milliseconds (the contract's section on the poller).
pub const READINGS_LIVE_MS: u64 = 120_000;

impl SettingsError {
    /// The keys that are wrong; of two that contradict each other, either may be written and the other left out.
    #[must_use]
    pub fn keys(&self) -> [&'static str; 2] {
        match self {
            Self::Range { key, .. } | Self::Outlives { key, .. } => [key, key],
            Self::Local { .. } => ["local_connections", "connections"],
            Self::Above { key, of, .. } => [key, of],
            Self::Share { key, .. } => [key, "connections"],
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
    /// A time that is part of another one, and longer.
    #[error("{key} = {value} is more than {of} = {most}, within which it ends")]
    Above {
        /// The part.
        key: &'static str,
        /// How long it is.
        value: u64,
        /// The whole.
        of: &'static str,
        /// How long that is.
        most: u64,
    },
    /// An interval as long as what is read in it lives.
    #[error(
        "{key} = {value}, and what is read lives {READINGS_LIVE_MS} ms: signals would be missing in between, so it is less than that"
    )]
    Outlives {
        /// Which.
        key: &'static str,
        /// How long it is.
        value: u64,
    },
    /// A share of the connections that is more than peers have in all.
    #[error(
        "{key} = {value} is more than peers have in all: connections = {all}, {local} of them kept for local callers"
    )]
    Share {
        /// Which.
        key: &'static str,
        /// How many it is.
        value: u64,
        /// How many connections there are.
        all: u32,
        /// What is kept for local callers.
        local: u32,
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

/// A time, in whole milliseconds, up to a day.
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
            /// Every one that is outside its bounds.
            fn out_of_bounds(&self) -> Vec<SettingsError> {
                let mut wrong = Vec::new();
                $(
                    let (least, most): (u32, u32) = $bounds;
                    let value = u64::from(self.$key.number());
                    if !(u64::from(least)..=u64::from(most)).contains(&value) {
                        wrong.push(SettingsError::Range {
                            key: stringify!($key),
                            value,
                            least: least.into(),
                            most: most.into(),
                        });
                    }
                )*
                wrong
            }
        }
    };
}

impl Settings {
    /// Whether a daemon can run by them.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.unusable().into_iter().next().map_or(Ok(()), Err)
    }

    /// All for which no daemon could run by them.
    fn unusable(&self) -> Vec<SettingsError> {
        let mut wrong = self.out_of_bounds();
        if self.local_connections >= self.connections {
            let (local, all) = (self.local_connections, self.connections);
            wrong.push(SettingsError::Local { local, all });
        }
        wrong
    }

    /// All for which nobody should declare them: what no daemon could run by; and, where that is right, what contradicts
    /// itself or the contract. A daemon that is told such things by hand runs all the same, as well as that goes.
    #[must_use]
    pub fn undeclarable(&self) -> Vec<SettingsError> {
        let unusable = self.unusable();
        match unusable.is_empty() {
            true => self.contradictions(),
            false => unusable,
        }
    }

    fn contradictions(&self) -> Vec<SettingsError> {
        let mut wrong = Vec::new();
        let intervals = [
            ("poll_interval_ms", self.poll_interval_ms),
            ("scrape_interval_ms", self.scrape_interval_ms),
        ];
        for (key, interval) in intervals {
            let value = u64::from(interval.number());
            if value >= READINGS_LIVE_MS {
                wrong.push(SettingsError::Outlives { key, value });
            }
        }
        let parts = [
            (
                "poll_attempt_ms",
                self.poll_attempt_ms,
                "poll_total_ms",
                self.poll_total_ms,
            ),
            (
                "scrape_timeout_ms",
                self.scrape_timeout_ms,
                "scrape_interval_ms",
                self.scrape_interval_ms,
            ),
        ];
        for (key, part, of, whole) in parts {
            if part > whole {
                let (value, most) = (part.number().into(), whole.number().into());
                wrong.push(SettingsError::Above {
                    key,
                    value,
                    of,
                    most,
                });
            }
        }
        let (all, local) = (self.connections, self.local_connections);
        let shares = [
            ("site_connections", self.site_connections),
            ("source_handshakes", self.source_handshakes),
        ];
        for (key, share) in shares {
            if share > all.saturating_sub(local) {
                let value = share.into();
                wrong.push(SettingsError::Share {
                    key,
                    value,
                    all,
                    local,
                });
            }
        }
        wrong
    }
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

/// A shorter time would end what goes well on a network.
const TIME: (u32, u32) = (100, LONGEST_MS);

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
    connection_ms: Milliseconds = Milliseconds(300_000), (1000, LONGEST_MS);
    /// How long a gateway's report may take in all: 5 s.
    ingest_ms: Milliseconds = Milliseconds(5_000), TIME;
    /// How often the files are looked at: 2 s.
    reread_ms: Milliseconds = Milliseconds(2_000), (50, 60_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut Settings)) -> Vec<String> {
        let mut settings = Settings::default();
        change(&mut settings);
        let wrong = settings.undeclarable();
        wrong.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_usual_settings_contradict_nothing() {
        assert_eq!(wrong(|_| ()), [""; 0]);
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn what_contradicts_itself_or_the_contract_is_told_all_at_once_and_a_daemon_runs_by_it() {
        let change = |settings: &mut Settings| {
            settings.poll_interval_ms = Milliseconds(120_000);
            settings.scrape_interval_ms = Milliseconds(600_000);
            settings.scrape_timeout_ms = Milliseconds(600_001);
            settings.poll_total_ms = Milliseconds(4_999);
            settings.site_connections = 249;
            settings.source_handshakes = 300;
        };
        insta::assert_snapshot!(wrong(change).join("\n"), @"
        poll_interval_ms = 120000, and what is read lives 120000 ms: signals would be missing in between, so it is less than that
        scrape_interval_ms = 600000, and what is read lives 120000 ms: signals would be missing in between, so it is less than that
        poll_attempt_ms = 5000 is more than poll_total_ms = 4999, within which it ends
        scrape_timeout_ms = 600001 is more than scrape_interval_ms = 600000, within which it ends
        site_connections = 249 is more than peers have in all: connections = 256, 8 of them kept for local callers
        source_handshakes = 300 is more than peers have in all: connections = 256, 8 of them kept for local callers
        ");
        let mut settings = Settings::default();
        change(&mut settings);
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(
            wrong(|s| s.poll_interval_ms = Milliseconds(119_999)),
            [""; 0]
        );
        assert_eq!(wrong(|s| s.site_connections = 248), [""; 0]);
    }

    #[test]
    fn no_daemon_runs_by_what_is_outside_its_bounds() {
        let change = |settings: &mut Settings| {
            settings.handshake_ms = Milliseconds(1);
            settings.poll_parallel = 0;
            settings.local_connections = 256;
        };
        insta::assert_snapshot!(wrong(change).join("\n"), @"
        poll_parallel = 0 is not between 1 and 256
        handshake_ms = 1 is not between 100 and 86400000
        local_connections = 256 leaves nothing of connections = 256 for peers
        ");
        let mut settings = Settings::default();
        change(&mut settings);
        assert!(settings.check().is_err());
    }
}
