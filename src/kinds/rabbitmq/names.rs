//! The texts that a consumer's wants are made of: the name of a vhost, and permissions.
//!
//! Threat: a vhost's name goes into a URI, into a JSON document that plain shell reads when the broker
//! has no better way (`admit.sh`), and into messages. So it has no quote, no backslash and no control
//! character; a permission has no control character.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The broker's own default vhost.
pub(super) const DEFAULT: &str = "/";
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

    pub(super) fn is_all(&self) -> bool {
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
