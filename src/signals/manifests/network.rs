//! `GridNetwork`: the mesh, as its sites' operators read it.

use std::fmt;

use serde_json::{Value, json};

use super::secret::DataKey;
use super::{put, resource, swim_key};
use crate::words::{
    ApiGeneration, GridId, MeshName, ObjectName, PeerTrust, Region, Seed, SignalMode, Zone,
};

/// The resource's kind.
pub const KIND: &str = "GridNetwork";

/// A whole number of seconds, as resources write it: `5s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(u32);

impl Seconds {
    /// So many seconds; none of 0.
    #[must_use]
    pub fn new(seconds: u32) -> Option<Self> {
        (seconds > 0).then_some(Self(seconds))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

/// How often metrics are refreshed: whole seconds, or 1000 ms or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshInterval {
    /// Seconds.
    Seconds(Seconds),
    /// Milliseconds.
    Milliseconds(RefreshMilliseconds),
}

/// Milliseconds, 1000 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshMilliseconds(u32);

impl RefreshInterval {
    /// The pattern that a resource's `metricsRefreshInterval` matches.
    pub const PATTERN: &str = "^([1-9][0-9]*s|[1-9][0-9]{3,}ms)$";

    /// Reads an interval, as [`Self::PATTERN`] has it and within a `u32`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| {
            let is_canonical =
                digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse::<u32>().ok().filter(|_| is_canonical)
        };
        if let Some(digits) = text.strip_suffix("ms") {
            let milliseconds = number(digits).filter(|n| *n >= 1000)?;
            Some(Self::Milliseconds(RefreshMilliseconds(milliseconds)))
        } else {
            let seconds = number(text.strip_suffix('s')?)?;
            Seconds::new(seconds).map(Self::Seconds)
        }
    }
}

impl fmt::Display for RefreshInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => seconds.fmt(f),
            Self::Milliseconds(RefreshMilliseconds(n)) => write!(f, "{n}ms"),
        }
    }
}

/// SWIM's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swim {
    /// How many members probe indirectly.
    pub gossip_nodes: u32,
    /// How often a member probes.
    pub probe_interval: Seconds,
    /// How long a member is suspected before it counts as dead.
    pub suspicion_timeout: Seconds,
}

impl Default for Swim {
    fn default() -> Self {
        Self {
            gossip_nodes: 3,
            probe_interval: Seconds(5),
            suspicion_timeout: Seconds(10),
        }
    }
}

/// Which Secret, and which key in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReference {
    /// Its name.
    pub name: ObjectName,
    /// Its namespace.
    pub namespace: ObjectName,
    /// The key in it; absent: what its kind of Secret has.
    pub key: Option<DataKey>,
}

impl SecretReference {
    fn value(&self) -> Value {
        let mut value = json!({
            "name": self.name.as_str(),
            "namespace": self.namespace.as_str(),
        });
        put(&mut value, "key", self.key.as_ref().map(DataKey::as_str));
        value
    }
}

/// The Secrets that a network refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsReferences {
    /// The mesh's authority.
    pub authority: Option<SecretReference>,
    /// The site's own certificate and key.
    pub site: Option<SecretReference>,
    /// The key that seals SWIM's frames.
    pub swim_key: Option<SecretReference>,
}

/// What a network's resource is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkInput {
    /// The mesh.
    pub name: MeshName,
    /// How load crosses sites, if the declaration says so.
    pub mode: Option<SignalMode>,
    /// By what sites know each other, if the declaration says so.
    pub trust: Option<PeerTrust>,
    /// Where SWIM begins.
    pub seeds: Vec<Seed>,
    /// The network's own id, if it has one.
    pub grid_id: Option<GridId>,
    /// Where the site is.
    pub region: Option<Region>,
    /// Where in the region it is.
    pub zone: Option<Zone>,
    /// SWIM's settings, if they are not the operator's own.
    pub swim: Option<Swim>,
    /// The Secrets.
    pub tls: TlsReferences,
    /// How often metrics are refreshed, if that is said.
    pub metrics_refresh: Option<RefreshInterval>,
}

/// The `GridNetwork`.
#[must_use]
pub fn network(input: &NetworkInput, generation: &ApiGeneration) -> Value {
    let mut spec = json!({});
    let mode = |word: &str| json!({ "mode": word });
    put(
        &mut spec,
        "signalTransport",
        input.mode.map(|of| mode(of.as_str())),
    );
    put(
        &mut spec,
        "peerTrust",
        input.trust.map(|of| mode(of.as_str())),
    );
    let seeds: Vec<String> = input.seeds.iter().map(Seed::to_string).collect();
    put(&mut spec, "seeds", (!seeds.is_empty()).then_some(seeds));
    put(
        &mut spec,
        "gridId",
        input.grid_id.as_ref().map(GridId::as_str),
    );
    put(
        &mut spec,
        "region",
        input.region.as_ref().map(Region::as_str),
    );
    put(&mut spec, "zone", input.zone.as_ref().map(Zone::as_str));
    let swim = input.swim.map(|swim| {
        json!({
            "gossipNodes": swim.gossip_nodes,
            "probeInterval": swim.probe_interval.to_string(),
            "suspicionTimeout": swim.suspicion_timeout.to_string(),
        })
    });
    put(&mut spec, "swim", swim);
    let mut tls = json!({});
    let reference = |of: &Option<SecretReference>| of.as_ref().map(SecretReference::value);
    put(&mut tls, "caSecretRef", reference(&input.tls.authority));
    put(&mut tls, "siteSecretRef", reference(&input.tls.site));
    let swim_key = swim_key(generation.field_names);
    put(&mut tls, swim_key, reference(&input.tls.swim_key));
    let is_said = input.tls != TlsReferences::default();
    put(&mut spec, "tls", is_said.then_some(tls));
    let interval = input.metrics_refresh.map(|of| of.to_string());
    put(&mut spec, "metricsRefreshInterval", interval);
    resource(generation, KIND, input.name.as_str(), spec)
}

#[cfg(test)]
pub(super) mod sample {
    use super::*;
    use crate::words::SWIM_PORT;

    pub(super) fn bare() -> NetworkInput {
        NetworkInput {
            name: MeshName::new("prod").unwrap(),
            mode: None,
            trust: None,
            seeds: Vec::new(),
            grid_id: None,
            region: None,
            zone: None,
            swim: None,
            tls: TlsReferences::default(),
            metrics_refresh: None,
        }
    }

    pub(super) fn input() -> NetworkInput {
        let secret = |name: &str, key: Option<&str>| {
            Some(SecretReference {
                name: ObjectName::new(name).unwrap(),
                namespace: ObjectName::new("grid-system").unwrap(),
                key: key.and_then(DataKey::new),
            })
        };
        NetworkInput {
            mode: Some(SignalMode::Poll),
            trust: Some(PeerTrust::Spiffe),
            seeds: ["10.0.0.1", "[2001:db8::1]:7000", "seed.example.net"]
                .map(|text| Seed::parse(text, SWIM_PORT).unwrap())
                .into(),
            grid_id: GridId::new("00000000000000000000000000000e10").ok(),
            region: Region::new("eu").ok(),
            zone: Zone::new("no").ok(),
            swim: Some(Swim::default()),
            tls: TlsReferences {
                authority: secret("grid-ca", None),
                site: secret("grid-site", None),
                swim_key: secret("grid-swim-key", Some("key")),
            },
            metrics_refresh: RefreshInterval::parse("1500ms"),
            ..bare()
        }
    }

    /// A network that says everything.
    pub(in crate::signals::manifests) fn whole(generation: &ApiGeneration) -> Value {
        network(&input(), generation)
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{bare, whole};
    use super::*;
    use crate::signals::manifests::yaml;
    use crate::words::FieldNames;

    #[test]
    fn a_network_that_says_nothing_renders_no_signal_transport() {
        let network = network(&bare(), &ApiGeneration::default());
        insta::assert_snapshot!(yaml::document(&network), @r#"
        apiVersion: grid.praxis-proxy.io/v1alpha1
        kind: GridNetwork
        metadata:
          labels:
            app.kubernetes.io/managed-by: grid
          name: prod
        spec: {}
        "#);
    }

    #[test]
    fn gossip_that_is_written_down_is_rendered() {
        let input = NetworkInput {
            mode: Some(SignalMode::Gossip),
            ..bare()
        };
        let network = network(&input, &ApiGeneration::default());
        assert_eq!(
            network["spec"],
            json!({ "signalTransport": { "mode": "gossip" } })
        );
    }

    #[test]
    fn a_network_says_everything_that_it_is_told() {
        let network = whole(&ApiGeneration::default());
        insta::assert_snapshot!(yaml::document(&network), @r#"
        apiVersion: grid.praxis-proxy.io/v1alpha1
        kind: GridNetwork
        metadata:
          labels:
            app.kubernetes.io/managed-by: grid
          name: prod
        spec:
          gridId: "00000000000000000000000000000e10"
          metricsRefreshInterval: "1500ms"
          peerTrust:
            mode: spiffe
          region: eu
          seeds:
          - "10.0.0.1:7946"
          - "[2001:db8::1]:7000"
          - "seed.example.net:7946"
          signalTransport:
            mode: poll
          swim:
            gossipNodes: 3
            probeInterval: "5s"
            suspicionTimeout: "10s"
          tls:
            caSecretRef:
              name: grid-ca
              namespace: grid-system
            siteSecretRef:
              name: grid-site
              namespace: grid-system
            swimKeySecretRef:
              key: key
              name: grid-swim-key
              namespace: grid-system
          zone: "no"
        "#);
    }

    #[test]
    fn group_version_and_names_are_settings() {
        let generation = ApiGeneration {
            group: ObjectName::new("grid.praxis.fast").unwrap(),
            version: crate::words::ApiVersion::new("v1beta1").unwrap(),
            field_names: FieldNames::Old,
        };
        let network = whole(&generation);
        assert_eq!(network["apiVersion"], "grid.praxis.fast/v1beta1");
        assert_eq!(network["spec"]["tls"]["swimKeyRef"]["key"], "key");
        assert!(network["spec"]["tls"]["swimKeySecretRef"].is_null());
    }

    #[test]
    fn an_interval_is_whole_seconds_or_a_thousand_milliseconds() {
        for good in ["1s", "30s", "1000ms", "1500ms"] {
            assert_eq!(RefreshInterval::parse(good).unwrap().to_string(), good);
        }
        for wrong in [
            "", "s", "0s", "05s", "999ms", "0999ms", "1.5s", "+1s", "1m", "1 s", "5",
        ] {
            assert_eq!(RefreshInterval::parse(wrong), None, "{wrong}");
        }
    }
}
