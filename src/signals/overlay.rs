//! The routing overlay: the document that gateways read, replaced atomically by the daemon (DESIGN.md, section 7).
//!
//! One row a provider a site. A signal that is missing or stale stands there as such and without a value, so that nobody
//! reads it as zero. Under gossip a row has a score, if the site scores; under poll none has: the gateway ranks from the
//! signals. The document says its format; one of a newer format is refused by name, and one past its bound unread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::clock::EpochMs;
use super::measure::{Load, Measured};
use super::observation::Observation;
use super::score::Score;
use crate::words::ProviderName;
use crate::words::{MeshName, NodeName, SignalMode};

/// The format that this grid writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The largest document that is read, in bytes: 64 MiB, some 200,000 rows.
pub const LARGEST: usize = 64 * 1024 * 1024;

/// Why a document is no overlay.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// Past the bound.
    #[error("the routing overlay is {0} bytes, and at most {LARGEST} are read")]
    TooLarge(usize),
    /// Written by a newer grid.
    #[error(
        "the routing overlay has format {0}, and this grid reads up to {FORMAT}: read it with the grid that wrote it"
    )]
    Format(u32),
    /// Not an overlay. What stands there is not repeated: it may be anything.
    #[error("the routing overlay cannot be read: {what} at line {line}, column {column}")]
    Damaged {
        /// What kind of damage.
        what: &'static str,
        /// In which line, from 1 on.
        line: usize,
        /// In which column of it.
        column: usize,
    },
}

impl From<serde_json::Error> for OverlayError {
    fn from(error: serde_json::Error) -> Self {
        use serde_json::error::Category;
        Self::Damaged {
            what: match error.classify() {
                Category::Syntax => "no JSON",
                Category::Data => "another value than a routing overlay has",
                Category::Eof | Category::Io => "it breaks off",
            },
            line: error.line(),
            column: error.column(),
        }
    }
}

/// What gateways read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Overlay {
    /// The document's format: 1.
    pub format: u32,
    /// The mesh; absent: the site belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshName>,
    /// The site that wrote it.
    pub site: NodeName,
    /// How signals cross sites.
    pub mode: SignalMode,
    /// When it was written, in milliseconds of the epoch. Ages are as of then.
    pub written: EpochMs,
    /// One a provider a site, by site and provider.
    pub rows: Vec<OverlayRow>,
}

/// A provider at a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OverlayRow {
    /// The site.
    pub site: NodeName,
    /// The provider.
    pub provider: ProviderName,
    /// From 0, it can take nothing, to 1, it is idle; 0.5 where nothing is known. None under poll, or where its site does
    /// not score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// What is known of it.
    pub signals: OverlaySignals,
}

/// Every signal, whether known or not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OverlaySignals {
    /// How many requests or messages wait.
    pub queue_depth: Known,
    /// Which part of the KV cache is in use, from 0 to 1.
    pub kv_cache_pressure: Known,
    /// Whether, or which part of it, is ready, from 0 to 1.
    pub ready: Known,
}

/// How a signal is known. Only a fresh one has a value; every other one is neutral.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Known {
    /// It is known.
    Fresh {
        /// The value.
        value: Load,
        /// How old it is, in milliseconds.
        age_ms: u64,
    },
    /// It was known, too long ago to say anything.
    Stale {
        /// How old it is, in milliseconds.
        age_ms: u64,
    },
    /// It is not known.
    Missing,
}

/// The JSON Schema (2020-12) of the document.
#[must_use]
pub fn schema() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Overlay>()
}

impl Known {
    fn of(measured: Option<Measured>, now: EpochMs) -> Self {
        let Some(measured) = measured else {
            return Self::Missing;
        };
        let age_ms = measured.stamp.age_at(now);
        match measured.fresh(now) {
            Some(value) => Self::Fresh { value, age_ms },
            None => Self::Stale { age_ms },
        }
    }
}

impl Overlay {
    /// What `site` knows at `now`. Of two observations of one provider at one site the later one given holds.
    #[must_use]
    pub fn new(
        mesh: Option<MeshName>,
        site: NodeName,
        mode: SignalMode,
        now: EpochMs,
        observations: impl IntoIterator<Item = Observation>,
    ) -> Self {
        let by_name: BTreeMap<(NodeName, ProviderName), OverlayRow> = observations
            .into_iter()
            .map(|observed| {
                let key = (observed.site.clone(), observed.provider.clone());
                (key, OverlayRow::new(observed, mode, now))
            })
            .collect();
        Self {
            format: FORMAT,
            mesh,
            site,
            mode,
            written: now,
            rows: by_name.into_values().collect(),
        }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// When it is past its bound, of a newer format, or no overlay.
    pub fn read(document: &[u8]) -> Result<Self, OverlayError> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        if document.len() > LARGEST {
            return Err(OverlayError::TooLarge(document.len()));
        }
        let Header { format } = serde_json::from_slice(document)?;
        if format != FORMAT {
            return Err(OverlayError::Format(format));
        }
        Ok(serde_json::from_slice(document)?)
    }
}

impl OverlayRow {
    fn new(observed: Observation, mode: SignalMode, now: EpochMs) -> Self {
        let signals = observed.signals;
        let scored = match mode {
            SignalMode::Gossip => observed.scored,
            SignalMode::Poll => None,
        };
        Self {
            site: observed.site,
            provider: observed.provider,
            score: scored.map(|scored| scored.at(now)),
            signals: OverlaySignals {
                queue_depth: Known::of(signals.queue_depth, now),
                kv_cache_pressure: Known::of(signals.kv_cache_pressure, now),
                ready: Known::of(signals.ready, now),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::measure::Signals;
    use crate::signals::score::Strategy;

    const NOW: EpochMs = EpochMs::new(1_700_000_000_000);

    fn observation(site: &str, pressure: f64, age: i64) -> Observation {
        let signals = Signals {
            kv_cache_pressure: Some(Measured {
                value: Load::new(pressure).unwrap(),
                stamp: NOW.before(age),
            }),
            ..Signals::default()
        };
        Observation {
            site: NodeName::new(site).unwrap(),
            provider: ProviderName::new("pool").unwrap(),
            signals,
            scored: Strategy::KvCachePressure.score(&signals, NOW.before(age)),
        }
    }

    fn overlay(mode: SignalMode, observations: Vec<Observation>) -> Overlay {
        let (mesh, site) = (MeshName::new("prod"), NodeName::new("atlas"));
        Overlay::new(Some(mesh.unwrap()), site.unwrap(), mode, NOW, observations)
    }

    #[test]
    fn a_row_says_what_is_known_how_old_it_is_and_what_is_not_known() {
        let overlay = overlay(
            SignalMode::Gossip,
            vec![
                observation("borealis", 0.9, 120_000),
                observation("atlas", 0.25, 2_500),
            ],
        );
        insta::assert_snapshot!(serde_json::to_string_pretty(&overlay).unwrap(), @r#"
        {
          "format": 1,
          "mesh": "prod",
          "site": "atlas",
          "mode": "gossip",
          "written": 1700000000000,
          "rows": [
            {
              "site": "atlas",
              "provider": "pool",
              "score": 0.75,
              "signals": {
                "queue_depth": {
                  "state": "missing"
                },
                "kv_cache_pressure": {
                  "state": "fresh",
                  "value": 0.25,
                  "age_ms": 2500
                },
                "ready": {
                  "state": "missing"
                }
              }
            },
            {
              "site": "borealis",
              "provider": "pool",
              "score": 0.5,
              "signals": {
                "queue_depth": {
                  "state": "missing"
                },
                "kv_cache_pressure": {
                  "state": "stale",
                  "age_ms": 120000
                },
                "ready": {
                  "state": "missing"
                }
              }
            }
          ]
        }
        "#);
        let document = serde_json::to_vec(&overlay).unwrap();
        assert_eq!(Overlay::read(&document).unwrap(), overlay);
    }

    #[test]
    fn under_poll_nothing_has_a_score() {
        let overlay = overlay(SignalMode::Poll, vec![observation("atlas", 0.25, 0)]);
        assert_eq!(overlay.rows.first().unwrap().score, None);
        assert!(!serde_json::to_string(&overlay).unwrap().contains("score"));
    }

    #[test]
    fn the_later_observation_of_a_provider_at_a_site_holds() {
        let overlay = overlay(
            SignalMode::Gossip,
            vec![observation("atlas", 0.25, 0), observation("atlas", 0.5, 0)],
        );
        assert_eq!(overlay.rows.len(), 1);
        assert_eq!(overlay.rows.first().unwrap().score, Some(Score::NEUTRAL));
    }

    #[test]
    fn a_document_of_a_newer_format_is_refused_by_name_and_a_damaged_one_too() {
        let newer = br#"{"format": 2, "rows": "of another kind"}"#;
        insta::assert_snapshot!(Overlay::read(newer).unwrap_err(), @"the routing overlay has format 2, and this grid reads up to 1: read it with the grid that wrote it");
        for damaged in [&b""[..], b"{}", b"[]", br#"{"format": 1}"#, b"\xff"] {
            assert!(matches!(
                Overlay::read(damaged),
                Err(OverlayError::Damaged { .. })
            ));
        }
        assert!(matches!(
            Overlay::read(&vec![b' '; LARGEST + 1]),
            Err(OverlayError::TooLarge(_))
        ));
        let overlay = overlay(SignalMode::Gossip, vec![observation("atlas", 0.25, 0)]);
        let text = serde_json::to_string(&overlay).unwrap();
        assert!(Overlay::read(text.replace("0.75", "1.5").as_bytes()).is_err());
        let odd = text.replace("missing", "\\u001b[31m");
        insta::assert_snapshot!(Overlay::read(odd.as_bytes()).unwrap_err(), @r#"the routing overlay cannot be read: another value than a routing overlay has at line 1, column 182"#);
        assert!(Overlay::read(text.replace("0.25", "-1").as_bytes()).is_err());
    }
}
