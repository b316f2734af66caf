//! The declaration as it is written: what is read, and what its JSON Schema is made from, are these
//! types. Every key has a description, which editors show.
//!
//! Keys are optional here wherever the reader can say better than serde what is missing.

mod signals;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::declaration::{Become, CourierKind, Move};
use super::place::At;
use super::text::{
    AgeKey, Day, Host, Limit, LocalPath, Login, Machines, Metrics, Mode, OwnerAndGroup, Pin,
    Reason, Store, User, Variable, Versions,
};
use crate::words::{Command, MeshName, NodeName, Region, SecretName, ServiceName, Tag, Zone};
pub(super) use signals::{
    Gateway, GatewayTls, Resources, Score, ScoreBy, ServiceSignals, SignalMap, Signals, SiteFiles,
};

/// The keys of the whole declaration.
pub(super) const TOP: &[&str] = &[
    "defaults", "mesh", "nodes", "secrets", "services", "signals",
];
/// The keys of `provides` that all kinds share.
pub(super) const PROVIDES: &[&str] = &["as", "host", "kind", "port", "via"];
/// The keys of a consumption that all kinds share.
pub(super) const CONSUMPTION: &[&str] = &["wait"];

/// What every machine of a mesh should be: `mesh.toml`, and every `mesh.d/*.toml` beside it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Declaration")]
#[expect(
    dead_code,
    reason = "only its schema is used: its tables are read one by one"
)]
pub(super) struct Declaration {
    /// The mesh itself.
    mesh: Option<Mesh>,
    /// The operator's own secrets, for templates and loads.
    secrets: Option<BTreeMap<SecretName, Secret>>,
    /// Keys that every machine has that does not say otherwise.
    defaults: Option<Node>,
    /// The machines.
    nodes: Option<BTreeMap<NodeName, Node>>,
    /// The services, assigned to machines or not.
    services: Option<BTreeMap<ServiceName, Service>>,
    /// How provider load crosses sites; absent: grid configures no site daemon.
    signals: Option<Signals>,
}

/// The mesh itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mesh {
    /// The mesh's name. It marks every account on a provider, and is part of the default root.
    #[schemars(required)]
    pub name: Option<MeshName>,
    /// Which versions of grid may push it, like ">=0.1".
    pub grid: Option<At<Versions>>,
    /// Where last sent and accounts are kept: "sled", beside the declaration, in `.grid/`.
    #[expect(dead_code, reason = "there is only one")]
    pub store: Option<Store>,
    /// Who else may open the stored secrets.
    #[serde(default)]
    pub recipients: Vec<At<Recipient>>,
}

/// Somebody who may open the stored secrets.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipient {
    /// Who it is, for people.
    #[schemars(required)]
    pub name: Option<Reason>,
    /// Their age public key, `age1…`.
    #[schemars(required)]
    pub key: Option<AgeKey>,
}

/// A secret of the operator's: exactly one of `file`, `command` and `env`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Secret {
    /// A file that age encrypted for the operator's identity, relative to the declaration.
    pub file: Option<LocalPath>,
    /// A command that prints it; one newline at the end is taken off.
    pub command: Option<Command>,
    /// A variable of grid's environment that holds it.
    pub env: Option<Variable>,
}

/// A machine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    /// A host name or an address (IPv6 without brackets); absent: the machine's name, through
    /// ssh_config and DNS.
    pub address: Option<At<Host>>,
    /// The port of its sshd; absent: as ssh_config says, else 22.
    pub port: Option<Port>,
    /// The login; absent: as ssh_config says, else your own.
    pub user: Option<Login>,
    /// A private key file to offer besides the agent's and ssh_config's: absolute, below `~/`, or
    /// relative to the declaration.
    pub identity: Option<At<LocalPath>>,
    /// Where releases lie on it; absent: `/var/lib/grid/<mesh>`. For the courier "local" it may be
    /// relative to the declaration.
    pub root: Option<At<LocalPath>>,
    /// How the machine side gains root; absent: not at all.
    #[serde(rename = "become")]
    pub become_root: Option<Become>,
    /// How it is reached; absent: "ssh". "manifests": not at all, the resources of its site are written to `folder`.
    pub courier: Option<CourierKind>,
    /// With `courier = "manifests"`: the folder that the resources of its site are written to, relative to the declaration.
    pub folder: Option<At<LocalPath>>,
    /// Its tags: `@tag` names all machines that carry it.
    pub tags: Option<Vec<Tag>>,
    /// Declared, but not sent to: a reason, or `{ reason = "…", until = 2026-12-01 }`.
    pub hold: Option<Hold>,
    /// The pins of its site, at most two, where its identity is made elsewhere: the SHA-256 of its certificate, 64
    /// hexadecimal digits. Grid then sends it no site, unless `site` says where the identity lies on it.
    pub pins: Option<At<Vec<At<Pin>>>>,
    /// The region that its site is in; absent: that of `[signals]`.
    pub region: Option<Region>,
    /// The zone that its site is in; absent: that of `[signals]`, unless the machine names a region.
    pub zone: Option<Zone>,
    /// Where its gateway is reached: `host:port`, with the port 443 where none is named, or
    /// `{ address = "…", tls = "mutual", serverName = "…" }`.
    pub gateway: Option<At<Gateway>>,
    /// Where on the machine the identity of its site lies, if it is made elsewhere: grid then sends the rest of a site. Under
    /// "pin" the machine has `pins` too.
    pub site: Option<At<SiteFiles>>,
}

impl Node {
    /// The machine with what the defaults say where it says nothing.
    pub fn over(self, defaults: &Self) -> Self {
        fn or<T: Clone>(own: Option<T>, default: &Option<T>) -> Option<T> {
            own.or_else(|| default.clone())
        }
        Self {
            address: or(self.address, &defaults.address),
            port: or(self.port, &defaults.port),
            user: or(self.user, &defaults.user),
            identity: or(self.identity, &defaults.identity),
            root: or(self.root, &defaults.root),
            become_root: or(self.become_root, &defaults.become_root),
            courier: or(self.courier, &defaults.courier),
            folder: self.folder,
            tags: or(self.tags, &defaults.tags),
            hold: or(self.hold, &defaults.hold),
            pins: self.pins,
            site: self.site,
            // A zone is one of its region: the two are taken together.
            zone: match self.region {
                Some(_) => self.zone,
                None => or(self.zone, &defaults.zone),
            },
            region: or(self.region, &defaults.region),
            gateway: or(self.gateway, &defaults.gateway),
        }
    }
}

/// A TCP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port(pub u16);

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl serde::de::Visitor<'_> for Number {
            type Value = Port;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a port, from 1 to 65535")
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Port, E> {
                u16::try_from(number)
                    .ok()
                    .filter(|port| *port > 0)
                    .map(Port)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }
        }
        deserializer.deserialize_i64(Number)
    }
}

impl JsonSchema for Port {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Port".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": 65535 })
    }
}

/// Why a machine is not sent to: a reason, or a table with a day on which it ends.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub(super) enum Hold {
    /// A reason, for people.
    Reason(Reason),
    /// A reason, and until when.
    Until(HoldUntil),
}

/// Why a machine is not sent to, and until when.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HoldUntil {
    /// For people.
    #[schemars(required)]
    pub reason: Option<Reason>,
    /// The first day on which it is sent to again.
    pub until: Option<Day>,
}

// Not derived: an untagged enum of serde's forgets which key was wrong.
impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::IntoDeserializer as _;
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = Hold;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a reason in quotes, or `{ reason = \"…\", until = 2026-12-01 }`")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Hold, E> {
                Reason::deserialize(text.into_deserializer()).map(Hold::Reason)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Hold, A::Error> {
                HoldUntil::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(Hold::Until)
            }
        }
        deserializer.deserialize_map(Either)
    }
}

/// Something on machines that may give others an account, need one, or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    /// Where it is: a machine's name or "@tag"; without `node` and `nodes` it is declared, not assigned.
    pub node: Option<At<Machines>>,
    /// Where it is: names of machines and "@tag"s.
    pub nodes: Option<At<Vec<At<Machines>>>>,
    /// What it gives others an account on.
    #[serde(default)]
    #[schemars(with = "Option<super::schema::Provides>")]
    #[expect(dead_code, reason = "read on its own: its keys depend on the kind")]
    provides: Later,
    /// Whom it needs an account on: a list of services, or a table with what it wants of each.
    #[serde(default)]
    #[schemars(with = "Option<super::schema::Consumes>")]
    #[expect(dead_code, reason = "read on its own: its keys depend on the kind")]
    consumes: Later,
    /// The owner of its bindings, and of its files where they name none: `user` or `user:group`. They
    /// are readable to it and to nobody else where they hold a secret.
    pub owner: Option<OwnerAndGroup>,
    /// Its files.
    #[serde(default)]
    #[schemars(with = "Option<Vec<File>>")]
    #[expect(dead_code, reason = "read one by one")]
    files: Later,
    /// Runs before the new release takes over; the release stays out where it fails. `{release}` is the
    /// service's folder in it.
    pub test: Option<Command>,
    /// Makes the service take up its files.
    pub apply: Option<Command>,
    /// Holds when the service is well; it is run until it does, or time is up.
    pub check: Option<Command>,
    /// Runs when the service leaves the machine.
    pub remove: Option<Command>,
    /// Where it shows its metrics, like "http://127.0.0.1:15692/metrics", for the site daemon of its machine.
    pub metrics: Option<Metrics>,
    /// What its metrics mean; absent: what the contract of signals says.
    pub signals: Option<ServiceSignals>,
    /// Which comes first when it moves and nobody binds to it; absent: "stop-first".
    #[serde(rename = "move")]
    pub moves: Option<Move>,
    /// How long each step may take.
    pub limits: Option<Limits>,
}

/// Something that is read on its own.
#[derive(Debug, Default)]
struct Later;

impl<'de> Deserialize<'de> for Later {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// What `provides` says whatever the kind.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ProvidesCommon {
    /// What it is.
    #[schemars(skip)]
    pub kind: Option<At<String>>,
    /// Where consumers reach it; absent: the address of its machine. Needed where it is on several.
    pub host: Option<Host>,
    /// Its port; absent: the usual one of its kind.
    pub port: Option<Port>,
    /// The user of its machine as whom its list is loaded and checked; absent: whoever the machine side runs as.
    #[serde(rename = "as")]
    pub user: Option<User>,
    /// Words before the commands that load and check its list, for a provider in a container, like
    /// `["podman", "exec", "-i", "broker"]`; absent: none.
    pub via: Option<Command>,
}

/// What a consumption says whatever the kind.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ConsumptionCommon {
    /// Whether the service starts only once the provider knows its account; absent: it does. `false` is
    /// for a service that retries by itself.
    pub wait: Option<bool>,
}

/// A file of a service: exactly one of `template`, `source` and `content`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Where it goes: relative, in the service's folder of the release; absolute, installed there.
    #[schemars(required, length(min = 1))]
    pub path: Option<At<String>>,
    /// A Jinja2 template, relative to the declaration.
    pub template: Option<At<String>>,
    /// A file that goes as it is, relative to the declaration.
    pub source: Option<At<String>>,
    /// The text itself.
    pub content: Option<At<String>>,
    /// Its mode, like "0640"; absent: 0644, or where it holds a secret 0640 with an owner and 0600 without.
    pub mode: Option<Mode>,
    /// Its owner, `user` or `user:group`; absent: the service's, else whom the machine side runs as.
    pub owner: Option<OwnerAndGroup>,
}

/// How long each step of a service may take: whole seconds or minutes, like "30s" or "2m", up to an hour.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// `test`; absent: 30 s.
    pub test: Option<Limit>,
    /// Loading a grant list; absent: 60 s.
    pub load: Option<Limit>,
    /// `apply`; absent: 60 s.
    pub apply: Option<Limit>,
    /// Until `check` holds; absent: 30 s.
    pub check: Option<Limit>,
    /// `remove`; absent: 60 s.
    pub remove: Option<Limit>,
}
