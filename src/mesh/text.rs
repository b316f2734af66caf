//! Texts of the declaration that have a rule of their own.
//!
//! Threat: these texts reach shells, lists of the receiving script, URIs and the operator's terminal.
//! Each rule names the characters that are allowed, so that what nobody thought of is refused.

use std::net::Ipv6Addr;
use std::str::FromStr as _;
use std::time::Duration;

use super::declaration::{FileMode, Owner};
use crate::kinds::UserName;
use crate::words::{
    Digest, GATEWAY_PORT, MetricName, NodeName, PeerTrust, ScrapeUrl, Seed, SeedError, SignalMode,
    Tag,
};

/// The longest host name or address, in bytes (RFC 1123 allows 253).
const LONGEST_HOST: usize = 253;
/// The longest login.
const LONGEST_LOGIN: usize = 255;
/// The longest reason of a hold, in characters.
const LONGEST_REASON: usize = 200;
/// The longest limit of a step, in seconds.
const LONGEST_LIMIT: u64 = 3600;

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

fn user(text: &str) -> Result<UserName, String> {
    UserName::parse(text).ok_or_else(|| {
        "a user's name is at most 32 letters, digits, dots, dashes and underscores".into()
    })
}

fn host(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a host name or address cannot be empty; leave the key out instead".into());
    }
    if text.len() > LONGEST_HOST {
        return Err(format!("at most {LONGEST_HOST} characters"));
    }
    if text.contains('[') || text.contains(']') {
        return Err("an IPv6 address stands without brackets".into());
    }
    if text.contains('@') {
        return Err("the login stands in `user`, not in the address".into());
    }
    if text.starts_with('-') {
        return Err("a host name does not begin with a dash".into());
    }
    let plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
    };
    if text.contains(':') {
        let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
        if Ipv6Addr::from_str(address).is_ok() && plain(zone) && !zone.is_empty() {
            return Ok(text.to_owned());
        }
        if text.matches(':').count() == 1 {
            return Err("the port stands in `port`, not in the address".into());
        }
        return Err("this is no IPv6 address".into());
    }
    if !plain(text) {
        return Err("a host name has only letters, digits, dots, hyphens and underscores".into());
    }
    Ok(text.to_owned())
}

fn login(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > LONGEST_LOGIN {
        return Err(format!("a login has 1 to {LONGEST_LOGIN} characters"));
    }
    if text.starts_with('-') {
        return Err("a login does not begin with a dash".into());
    }
    let allowed =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@' | '\\' | '+' | '$');
    match text.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(format!("a login cannot have {c:?}")),
        None => Ok(text.to_owned()),
    }
}

/// The reason of a hold: one line that says something, of at most so many characters.
///
/// # Errors
/// What is wrong with it.
pub fn reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("say why, for whoever reads the status".into());
    }
    if text.chars().count() > LONGEST_REASON {
        return Err(format!("a reason has at most {LONGEST_REASON} characters"));
    }
    if text.chars().any(char::is_control) {
        return Err("a reason is one line without control characters".into());
    }
    Ok(text.to_owned())
}

fn day(text: &str) -> Result<jiff::civil::Date, String> {
    let wrong = || "a day is written like 2026-12-01".to_owned();
    if text.len() != "2026-12-01".len() {
        return Err(wrong());
    }
    text.parse().map_err(|_| wrong())
}

fn limit(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(['s', 'm']);
    let seconds_each = match text.strip_prefix(digits) {
        Some("s") => 1,
        Some("m") => 60,
        _ => 0,
    };
    if seconds_each == 0 || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("a time is whole seconds or minutes, like \"30s\" or \"2m\"".into());
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds_each))
        .filter(|seconds| (1..=LONGEST_LIMIT).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "a step may take from \"1s\" to \"60m\"".into())
}

fn mode(text: &str) -> Result<FileMode, String> {
    FileMode::parse(text).ok_or_else(|| "a mode is octal digits, like \"0640\"".into())
}

fn owner(text: &str) -> Result<Owner, String> {
    Owner::parse(text).ok_or_else(|| {
        "an owner is `user` or `user:group`, of letters, digits, `.`, `_` and `-`".into()
    })
}

fn variable(text: &str) -> Result<String, String> {
    let head = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if head && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(text.to_owned())
    } else {
        Err("a variable's name has only letters, digits and underscores".into())
    }
}

fn store(text: &str) -> Result<(), String> {
    match text {
        "sled" => Ok(()),
        other if other.starts_with("etcd:") => Err(
            "this version of grid has only the embedded store: leave the key out, or write \"sled\""
                .into(),
        ),
        _ => Err("the store is \"sled\"".into()),
    }
}

fn address(text: &str) -> Result<Seed, SeedError> {
    Seed::parse(text, GATEWAY_PORT)
}

fn versions(text: &str) -> Result<semver::VersionReq, String> {
    text.parse()
        .map_err(|cause| format!("{cause}; versions are written like \">=0.1\" or \">=0.1, <0.3\""))
}

fn machines(text: &str) -> Result<MachinesRef, String> {
    match text.strip_prefix('@') {
        Some(tag) => Tag::new(tag).map(MachinesRef::Tag),
        None => NodeName::new(text).map(MachinesRef::Node),
    }
    .map_err(|wrong| wrong.to_string())
}

fn age_key(text: &str) -> Result<String, String> {
    if text.starts_with("AGE-SECRET-KEY-") {
        return Err("this is a secret key; what belongs here is its public key, `age1…`".into());
    }
    text.parse::<age::x25519::Recipient>()
        .map(|_| text.to_owned())
        .map_err(|_| "this is no age public key; `age-keygen -y` prints one, `age1…`".into())
}

/// Colons and case are left out of account, as `openssl x509 -fingerprint` has them.
fn pin(text: &str) -> Result<Digest, String> {
    let plain = text.replace(':', "").to_ascii_lowercase();
    plain
        .parse()
        .map_err(|_| "a pin is the SHA-256 of a certificate: 64 hexadecimal digits".into())
}

fn local_path(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 4096 {
        return Err("a path has 1 to 4096 bytes".into());
    }
    if text.chars().any(char::is_control) {
        return Err("a path has no control character".into());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_nothing_that_could_be_an_option_or_a_line() {
        for good in [
            "10.0.0.1",
            "atlas.example.org",
            "fd00::1",
            "fe80::1%eth0",
            "a_b",
        ] {
            assert_eq!(host(good).as_deref(), Ok(good));
        }
        for wrong in [
            "",
            "-oProxyCommand=x",
            "[fd00::1]",
            "a b",
            "a\nb",
            "10.0.0.1:22",
            "me@host",
            "fd00:::1",
            "fe80::1%",
            "a/b",
            "a;b",
            "ü",
        ] {
            assert!(host(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_limit_is_whole_seconds_or_minutes_up_to_an_hour() {
        assert_eq!(limit("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(limit("60m"), Ok(Duration::from_secs(3600)));
        for wrong in [
            "",
            "s",
            "0s",
            "61m",
            "3601s",
            "1h",
            "1.5s",
            "30",
            "-1s",
            "1ms",
            "1sm",
            "99999999999999999999m",
        ] {
            assert!(limit(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_secret_key_is_refused_by_name() {
        assert!(age_key("AGE-SECRET-KEY-1").unwrap_err().contains("secret"));
        assert!(age_key("age1nonsense").is_err());
    }

    #[test]
    fn a_day_is_a_day_and_no_moment() {
        assert!(day("2026-12-01").is_ok());
        for wrong in ["2026-13-01", "2026-12-01T10:00:00Z", "20261201", "tomorrow"] {
            assert!(day(wrong).is_err(), "{wrong}");
        }
    }
}
