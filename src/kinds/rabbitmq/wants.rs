//! What a consumer wants of a RabbitMQ provider: a vhost, and what it may do there.
//!
//! Threat: a vhost's name goes into a URI, into a JSON document that plain shell reads when the broker
//! has no better way (`admit.sh`), and into messages. So it has no quote, no backslash and no control
//! character; a permission has no control character.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::ServiceName;

/// The broker's own default vhost.
const DEFAULT: &str = "/";
/// The longest name that the protocol carries, in bytes (AMQP 0-9-1, a short string).
const LONGEST_VHOST: usize = 255;
/// The longest permission, in bytes: far above any that a person writes, far below what the broker's
/// tables take.
const LONGEST_PERMISSION: usize = 1024;

/// Why a vhost or a permission cannot be wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WantError {
    /// No name at all.
    #[error("a vhost needs a name")]
    VhostEmpty,
    /// More than 255 bytes.
    #[error("a vhost's name has at most {LONGEST_VHOST} bytes, this one has {0}")]
    VhostTooLong(usize),
    /// A slash in a name that is not the default vhost's.
    #[error(
        "a vhost's name has no '/', which URLs cannot carry; only the broker's own vhost \"/\" has one"
    )]
    VhostSlash,
    /// A character that the name cannot have.
    #[error(
        "a vhost's name has no quote, backslash or control character, and no space at either end"
    )]
    VhostCharacter,
    /// The default vhost, not as a hand-made one.
    #[error(
        "the vhost \"/\" belongs to the broker: say existing = true beside it, or name another one"
    )]
    DefaultVhost,
    /// More than 1024 bytes.
    #[error("a permission has at most {LONGEST_PERMISSION} bytes, this one has {0}")]
    PermissionTooLong(usize),
    /// A control character.
    #[error("a permission is a regular expression on one line, without control characters")]
    PermissionCharacter,
}

/// The name of a vhost: 1 to 255 bytes, no `/` (but for the broker's own vhost `/`), no quote,
/// backslash or control character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Vhost(String);

impl Vhost {
    /// Parses a vhost's name.
    ///
    /// # Errors
    /// When no consumer can use a vhost of that name.
    pub fn new(text: &str) -> Result<Self, WantError> {
        if text.is_empty() {
            return Err(WantError::VhostEmpty);
        }
        if text.len() > LONGEST_VHOST {
            return Err(WantError::VhostTooLong(text.len()));
        }
        if text.contains('/') && text != DEFAULT {
            return Err(WantError::VhostSlash);
        }
        if text
            .chars()
            .any(|c| c.is_control() || matches!(c, '"' | '\'' | '\\'))
            || text.trim() != text
        {
            return Err(WantError::VhostCharacter);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Vhost {
    type Error = WantError;
    fn try_from(text: String) -> Result<Self, WantError> {
        Self::new(&text)
    }
}

impl From<Vhost> for String {
    fn from(vhost: Vhost) -> String {
        vhost.0
    }
}

impl fmt::Display for Vhost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl schemars::JsonSchema for Vhost {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Vhost".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^(/|[^/\"'\\\\]+)$",
            "maxLength": LONGEST_VHOST
        })
    }
}

/// A regular expression (PCRE, as the broker reads it) over the names of queues and exchanges. Empty:
/// none of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Permission(String);

impl Permission {
    /// Parses a permission. Whether it is a regular expression only the broker can say; the load asks it
    /// before it changes anything.
    ///
    /// # Errors
    /// When it is too long or has a control character.
    pub fn new(text: &str) -> Result<Self, WantError> {
        if text.len() > LONGEST_PERMISSION {
            return Err(WantError::PermissionTooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(WantError::PermissionCharacter);
        }
        Ok(Self(text.to_owned()))
    }

    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self(".*".to_owned())
    }

    /// The expression as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_all(&self) -> bool {
        *self == Self::all()
    }
}

impl Default for Permission {
    fn default() -> Self {
        Self::all()
    }
}

impl TryFrom<String> for Permission {
    type Error = WantError;
    fn try_from(text: String) -> Result<Self, WantError> {
        Self::new(&text)
    }
}

impl From<Permission> for String {
    fn from(permission: Permission) -> String {
        permission.0
    }
}

impl schemars::JsonSchema for Permission {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Permission".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "default": ".*",
            "maxLength": LONGEST_PERMISSION
        })
    }
}

/// What a consumer wants of a RabbitMQ provider.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RabbitmqWants")]
struct Written {
    /// The vhost; absent: the consumer's name. Two consumers may share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vhost: Option<Vhost>,
    /// Which queues and exchanges it may declare and delete: a regular expression; absent: all.
    #[serde(default, skip_serializing_if = "Permission::is_all")]
    configure: Permission,
    /// Which it may publish to: a regular expression; absent: all.
    #[serde(default, skip_serializing_if = "Permission::is_all")]
    write: Permission,
    /// Which it may consume from: a regular expression; absent: all.
    #[serde(default, skip_serializing_if = "Permission::is_all")]
    read: Permission,
    /// Take a vhost that was made by hand. grid then never creates, marks or purges it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    existing: bool,
}

/// What a consumer wants of a RabbitMQ provider: a vhost (of its own name where nothing is said), and
/// three permissions there. The broker's own vhost is wanted as an existing one only.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written")]
pub struct RabbitmqWants(Written);

impl RabbitmqWants {
    /// The vhost of this consumer.
    #[must_use]
    pub fn vhost<'a>(&'a self, consumer: &'a ServiceName) -> &'a str {
        self.0
            .vhost
            .as_ref()
            .map_or(consumer.as_str(), Vhost::as_str)
    }

    /// Which queues and exchanges it may declare and delete.
    #[must_use]
    pub fn configure(&self) -> &Permission {
        &self.0.configure
    }

    /// Which queues and exchanges it may publish to.
    #[must_use]
    pub fn write(&self) -> &Permission {
        &self.0.write
    }

    /// Which queues and exchanges it may consume from.
    #[must_use]
    pub fn read(&self) -> &Permission {
        &self.0.read
    }

    /// Whether the vhost was made by hand.
    #[must_use]
    pub fn existing(&self) -> bool {
        self.0.existing
    }
}

impl TryFrom<Written> for RabbitmqWants {
    type Error = WantError;
    fn try_from(written: Written) -> Result<Self, WantError> {
        match &written.vhost {
            Some(vhost) if vhost.as_str() == DEFAULT && !written.existing => {
                Err(WantError::DefaultVhost)
            }
            _ => Ok(Self(written)),
        }
    }
}

impl From<RabbitmqWants> for Written {
    fn from(wants: RabbitmqWants) -> Written {
        wants.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RabbitmqWants, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn nothing_said_is_a_vhost_of_the_consumers_name_and_everything_on_it() {
        let wants = read("").unwrap();
        assert_eq!(wants, RabbitmqWants::default());
        assert_eq!(
            wants.vhost(&ServiceName::new("billing").unwrap()),
            "billing"
        );
        assert_eq!(wants.configure().as_str(), ".*");
        assert!(!wants.existing());
        assert_eq!(serde_json::to_string(&wants).unwrap(), "{}");
    }

    #[test]
    fn what_is_said_reads_back_from_json() {
        let wants = read(
            r#"vhost = "/"
            existing = true
            configure = ""
            read = "^billing\\."
        "#,
        )
        .unwrap();
        let json = serde_json::to_string(&wants).unwrap();
        assert_eq!(
            json,
            r#"{"vhost":"/","configure":"","read":"^billing\\.","existing":true}"#
        );
        assert_eq!(serde_json::from_str::<RabbitmqWants>(&json).unwrap(), wants);
    }

    #[test]
    fn a_wrong_want_is_refused_where_it_stands_and_with_what_would_be_right() {
        let errors: Vec<String> = [
            "vhost = \"\"",
            "vhost = \"a/b\"",
            "vhost = \"it's\"",
            "vhost = \" a\"",
            "vhost = \"/\"",
            "read = \"a\\nb\"",
            "exising = true",
        ]
        .into_iter()
        .map(|text| read(text).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
TOML parse error at line 1, column 9
  |
1 | vhost = ""
  |         ^^
a vhost needs a name

TOML parse error at line 1, column 9
  |
1 | vhost = "a/b"
  |         ^^^^^
a vhost's name has no '/', which URLs cannot carry; only the broker's own vhost "/" has one

TOML parse error at line 1, column 9
  |
1 | vhost = "it's"
  |         ^^^^^^
a vhost's name has no quote, backslash or control character, and no space at either end

TOML parse error at line 1, column 9
  |
1 | vhost = " a"
  |         ^^^^
a vhost's name has no quote, backslash or control character, and no space at either end

the vhost "/" belongs to the broker: say existing = true beside it, or name another one

TOML parse error at line 1, column 8
  |
1 | read = "a\nb"
  |        ^^^^^^
a permission is a regular expression on one line, without control characters

TOML parse error at line 1, column 1
  |
1 | exising = true
  | ^^^^^^^
unknown field `exising`, expected one of `vhost`, `configure`, `write`, `read`, `existing`
"#);
        assert_eq!(
            Vhost::new(&"a".repeat(256)),
            Err(WantError::VhostTooLong(256))
        );
        assert_eq!(
            Permission::new(&"a".repeat(1025)),
            Err(WantError::PermissionTooLong(1025))
        );
    }
}
