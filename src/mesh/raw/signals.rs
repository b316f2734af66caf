//! What is written of signals: of the mesh's, of a machine's site, of a provider's metrics.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Limits, Port};
use crate::mesh::place::At;
use crate::mesh::text::{Address, LocalPath, Metric, OwnerAndGroup, Transport, Trust};
use crate::words::{
    AbsolutePath, ApiVersion, Capacity, Command, FieldNames, GridId, ObjectName, Region, Seed,
    Settings, Zone,
};

/// How provider load crosses sites. Every machine then is a site, with an identity and a daemon that is configured as the
/// service `site`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mesh) struct Signals {
    /// "gossip": each site scrapes and scores, and samples ride the membership; "poll": sites serve what they scraped, and
    /// the gateway ranks. Absent: "gossip".
    pub mode: Option<Transport>,
    /// By what sites know each other: "pin", their certificates, or "spiffe", the mesh's authority and their names. Absent:
    /// "pin".
    pub trust: Option<Trust>,
    /// Where sites listen, one port for the mesh; absent: 9091.
    pub port: Option<Port>,
    /// Where each daemon shows its own metrics, on its machine's loopback; absent: 9092. Two meshes on one machine have two.
    pub metrics_port: Option<At<Port>>,
    /// The folder on each machine for what outlives a release; absent: `/var/lib/grid-site/<mesh>`.
    pub state: Option<At<LocalPath>>,
    /// The owner of the site's files: whom the daemon runs as, `user` or `user:group`.
    pub owner: Option<OwnerAndGroup>,
    /// The program `grid` for the machines, relative to the declaration; it is installed as `/usr/local/bin/grid`. Absent:
    /// it is there already, from a package.
    pub binary: Option<At<LocalPath>>,
    /// Has the daemon run, like `["systemctl", "enable", "--now", "grid-site"]`. What changes later it takes up by itself, or it
    /// exits with 75, and its supervisor starts it again.
    pub apply: Option<Command>,
    /// Holds when the daemon runs as declared; absent: `["grid", "site", "check", "--config", "{release}/site.toml"]`.
    pub check: Option<Command>,
    /// Runs when the site leaves the machine, like `["systemctl", "disable", "--now", "grid-site"]`.
    pub remove: Option<Command>,
    /// How long each step may take.
    pub limits: Option<Limits>,
    /// A file with the certificates of authorities that issue identities elsewhere, PEM, relative to the declaration; under
    /// "spiffe" sites trust them besides the mesh's own.
    pub authorities: Option<At<LocalPath>>,
    /// Intervals and limits of the daemons, where they are not the usual ones.
    pub settings: Option<Settings>,
    /// The network's own id, in the resources that are rendered.
    #[serde(rename = "gridId")]
    pub grid_id: Option<GridId>,
    /// The region of machines that name none.
    pub region: Option<Region>,
    /// The zone of machines that name no region and no zone.
    pub zone: Option<Zone>,
    /// Where membership begins: `host:port`, `[v6]:port`, a name, with the port 7946 where none is named; at most 1024.
    #[schemars(length(max = 1024))]
    pub seeds: Option<At<Vec<Seed>>>,
    /// How the mesh is written as Kubernetes resources.
    pub resources: Option<Resources>,
}

/// How the mesh is written as Kubernetes resources, by `grid signals render` and `grid signals crd`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mesh) struct Resources {
    /// Their group; absent: `grid.praxis-proxy.io`.
    pub group: Option<ObjectName>,
    /// Their version; absent: `v1alpha1`.
    pub version: Option<ApiVersion>,
    /// Which names fields have: "new" (`swimKeySecretRef`, `gatewayEndpoint`) or "old" (`swimKeyRef`, `egress`); absent:
    /// "new".
    #[serde(rename = "fieldNames")]
    pub field_names: Option<FieldNames>,
    /// The namespace of the Secrets; absent: `grid-system`.
    pub namespace: Option<ObjectName>,
}

/// An identity that is made elsewhere: PEM files on the machine, which the site's daemon reads.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mesh) struct SiteFiles {
    /// Its certificate: an absolute path on the machine.
    #[schemars(required)]
    pub certificate: Option<AbsolutePath>,
    /// Its key: an absolute path on the machine.
    #[schemars(required)]
    pub key: Option<AbsolutePath>,
}

/// Where a gateway is reached: an address, or a table that says how it is spoken to.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub(in crate::mesh) enum Gateway {
    /// Its host and port.
    Address(Address),
    /// Its host and port, and how it is spoken to.
    Spoken(SpokenGateway),
}

/// Where a gateway is reached, and how it is spoken to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mesh) struct SpokenGateway {
    /// Its host and port; the port is 443 where none is named.
    #[schemars(required)]
    pub address: Option<Address>,
    /// "mutual": mutual TLS, in which it shows a certificate for `serverName`; "plaintext": no TLS.
    pub tls: Option<GatewayTls>,
    /// The name in its certificate; with `tls = "mutual"`.
    #[serde(rename = "serverName")]
    pub server_name: Option<ObjectName>,
}

/// How a gateway is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::mesh) enum GatewayTls {
    /// Mutual TLS.
    Mutual,
    /// No TLS.
    Plaintext,
}

// Not derived, for the reason that `Hold` is not.
impl<'de> Deserialize<'de> for Gateway {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::IntoDeserializer as _;
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = Gateway;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a host and port in quotes, or `{ address = \"…\", tls = \"mutual\", serverName = \"…\" }`",
                )
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Gateway, E> {
                Address::deserialize(text.into_deserializer()).map(Gateway::Address)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Gateway, A::Error> {
                SpokenGateway::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(Gateway::Spoken)
            }
        }
        deserializer.deserialize_map(Either)
    }
}

/// What the metrics of a provider mean, to every site of the mesh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mesh) struct ServiceSignals {
    /// By what it is scored, under "gossip": `{ by = "queue-depth", capacity = 100 }` or `{ by = "kv-cache-pressure" }`; absent:
    /// by nothing.
    pub score: Option<Score>,
    /// Of which metrics its signals are made, before those of the contract.
    pub map: Option<SignalMap>,
}

/// By what a provider is scored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mesh) struct Score {
    /// By how many wait, "queue-depth", or by the pressure on its KV cache, "kv-cache-pressure".
    #[schemars(required)]
    pub by: Option<ScoreBy>,
    /// How many may wait until it is full; of "queue-depth" only.
    pub capacity: Option<At<Capacity>>,
}

/// By what a provider is scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::mesh) enum ScoreBy {
    /// By how many wait.
    QueueDepth,
    /// By the pressure on its KV cache.
    KvCachePressure,
}

/// Metrics by their exact names, the preferred first. Where one has several rows, as one a queue, depths are added up, of
/// pressures the largest counts, of readinesses the smallest.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mesh) struct SignalMap {
    /// How many requests or messages wait, like `["rabbitmq_queue_messages_ready"]`.
    #[serde(rename = "queue-depth", default)]
    pub queue_depth: Vec<At<Metric>>,
    /// Which part of the KV cache is in use, from 0 to 1.
    #[serde(rename = "kv-cache-pressure", default)]
    pub kv_cache_pressure: Vec<At<Metric>>,
    /// Whether, or which part of it, is ready: from 0 to 1.
    #[serde(default)]
    pub ready: Vec<At<Metric>>,
}
