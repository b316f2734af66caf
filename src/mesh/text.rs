//! Texts of the declaration that have a rule of their own.
//!
//! Threat: these texts reach shells, lists of the receiving script, URIs and the operator's terminal.
//! Each rule names the characters that are allowed, so that what nobody thought of is refused.

mod rules;

use std::str::FromStr as _;
use std::time::Duration;

use super::declaration::{FileMode, Owner};
use crate::kinds::UserName;
use crate::words::{Digest, MetricName, NodeName, PeerTrust, ScrapeUrl, Seed, SignalMode, Tag};
pub use rules::reason;
use rules::{
    address, age_key, day, host, limit, local_path, login, machines, mode, owner, pin, store, user,
    variable, versions,
};

macro_rules! text {
    ($(#[doc = $doc:literal])* $name:ident($inner:ty), $expecting:literal, $method:ident, $parse:path, $schema:tt) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(super) struct $name(pub $inner);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $parse(text).map($name).map_err(E::custom)
                    }
                }
                deserializer.$method(Text)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

text!(
    /// A host name or an address, as it stands in a connection: IPv6 without brackets.
    Host(String),
    "a host name or an address, in quotes",
    deserialize_str,
    host,
    { "type": "string", "minLength": 1, "maxLength": 253 }
);
text!(
    /// A login on a machine.
    Login(String),
    "a login, in quotes",
    deserialize_str,
    login,
    { "type": "string", "minLength": 1, "maxLength": 255 }
);
text!(
    /// Why a machine is on hold.
    Reason(String),
    "a reason, in quotes",
    deserialize_str,
    reason,
    { "type": "string", "minLength": 1, "maxLength": 200 }
);
text!(
    /// The first day on which a hold is over.
    Day(jiff::civil::Date),
    "a date like 2026-12-01",
    deserialize_any, // TOML has dates of its own
    day,
    { "type": "string", "format": "date" }
);
text!(
    /// How long a step may take.
    Limit(Duration),
    "a time in quotes, like \"30s\" or \"2m\"",
    deserialize_str,
    limit,
    { "type": "string", "pattern": "^[0-9]{1,4}[sm]$" }
);
text!(
    /// Permission bits.
    Mode(FileMode),
    "octal digits in quotes, like \"0640\"",
    deserialize_str,
    mode,
    { "type": "string", "pattern": "^0?[0-7]{3,4}$" }
);
text!(
    /// An owner and a group.
    OwnerAndGroup(Owner),
    "`user` or `user:group`, in quotes",
    deserialize_str,
    owner,
    { "type": "string", "pattern": "^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31})?$" }
);
text!(
    /// A user of a machine.
    User(UserName),
    "the name of a user, in quotes",
    deserialize_str,
    user,
    { "type": "string", "pattern": "^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}$" }
);
text!(
    /// A variable of the environment.
    Variable(String),
    "the name of a variable, in quotes",
    deserialize_str,
    variable,
    { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }
);
text!(
    /// The embedded store.
    Store(()),
    "\"sled\"",
    deserialize_str,
    store,
    { "type": "string", "enum": ["sled"] }
);
text!(
    /// How signals cross sites.
    Transport(SignalMode),
    "\"gossip\" or \"poll\"",
    deserialize_str,
    SignalMode::from_str,
    { "type": "string", "enum": ["gossip", "poll"] }
);
text!(
    /// By what sites know each other.
    Trust(PeerTrust),
    "\"pin\" or \"spiffe\"",
    deserialize_str,
    PeerTrust::from_str,
    { "type": "string", "enum": ["pin", "spiffe"] }
);
text!(
    /// The SHA-256 of a certificate.
    Pin(Digest),
    "64 hexadecimal digits, in quotes",
    deserialize_str,
    pin,
    { "type": "string", "pattern": "^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$" }
);
text!(
    /// Where a provider shows its metrics.
    Metrics(ScrapeUrl),
    "a URL in quotes, like \"http://127.0.0.1:15692/metrics\"",
    deserialize_str,
    ScrapeUrl::new,
    { "type": "string", "pattern": "^http://" }
);
text!(
    /// The exact name of a metric.
    Metric(MetricName),
    "the name of a metric, in quotes",
    deserialize_str,
    MetricName::new,
    { "type": "string", "pattern": "^[a-zA-Z_:][a-zA-Z0-9_:]*$", "maxLength": 256 }
);
text!(
    /// Where a gateway is reached.
    Address(Seed),
    "a host and port, in quotes",
    deserialize_str,
    address,
    { "type": "string", "minLength": 1, "maxLength": 260 }
);
text!(
    /// Which versions of grid may push it.
    Versions(semver::VersionReq),
    "versions in quotes, like \">=0.1\"",
    deserialize_str,
    versions,
    { "type": "string" }
);
text!(
    /// A machine's name, or `@tag` for all that carry it.
    Machines(MachinesRef),
    "a machine's name, or \"@tag\"",
    deserialize_str,
    machines,
    { "type": "string", "pattern": "^@?[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 64 }
);
text!(
    /// An age public key.
    AgeKey(String),
    "an age public key, in quotes",
    deserialize_str,
    age_key,
    { "type": "string", "pattern": "^age1[a-z0-9]+$" }
);
text!(
    /// A path on the operator's own machine.
    LocalPath(String),
    "a path, in quotes",
    deserialize_str,
    local_path,
    { "type": "string", "minLength": 1, "maxLength": 4096 }
);

/// One machine, or all that carry a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MachinesRef {
    /// By name.
    Node(NodeName),
    /// By tag.
    Tag(Tag),
}

impl MachinesRef {
    /// Reads one; the error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        machines(text)
    }
}
