//! What a consumer wants of a RabbitMQ provider: a vhost, and what it may do there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::{DEFAULT, Permission, Vhost, WantError};
use crate::words::ServiceName;

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
// Wants stand wherever an account does, so a copy shares them.
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
pub struct RabbitmqWants(Arc<Written>);

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
            _ => Ok(Self(Arc::new(written))),
        }
    }
}

impl From<RabbitmqWants> for Written {
    fn from(wants: RabbitmqWants) -> Written {
        Arc::unwrap_or_clone(wants.0)
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
