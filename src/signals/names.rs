//! Names on a line of metrics, and of who is measured.
//!
//! A name is written without quotes or escapes, on a line and into a manifest: it holds nothing but the characters that
//! its rule allows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::ServiceName;

/// The longest name of a metric or a label, in bytes.
pub const LONGEST_NAME: usize = 256;

/// The longest DNS-1123 subdomain, in bytes.
const LONGEST_SUBDOMAIN: usize = 253;

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// More than this many bytes.
    #[error("a name has at most {0} characters")]
    TooLong(usize),
    /// No metric.
    #[error("the name of a metric is letters, digits, underscores and colons, and no digit first")]
    Metric,
    /// No label.
    #[error("the name of a label is letters, digits and underscores, and no digit first")]
    Label,
    /// No subdomain.
    #[error(
        "a name is lowercase letters, digits, hyphens and dots, and each part starts and ends with a letter or a digit"
    )]
    Subdomain,
}

/// Whether a byte may stand in a metric's name after its first one.
pub(super) const fn is_metric_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':'
}

/// Whether a byte may stand in a label's name after its first one.
pub(super) const fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn check(text: &str, allowed: fn(u8) -> bool, otherwise: NameError) -> Result<(), NameError> {
    if text.len() > LONGEST_NAME {
        return Err(NameError::TooLong(LONGEST_NAME));
    }
    match text.as_bytes() {
        [first, ..] if !first.is_ascii_digit() && text.bytes().all(allowed) => Ok(()),
        _ => Err(otherwise),
    }
}

fn check_metric(text: &str) -> Result<(), NameError> {
    check(text, is_metric_byte, NameError::Metric)
}

fn check_label(text: &str) -> Result<(), NameError> {
    check(text, is_label_byte, NameError::Label)
}

fn check_subdomain(text: &str) -> Result<(), NameError> {
    if text.len() > LONGEST_SUBDOMAIN {
        return Err(NameError::TooLong(LONGEST_SUBDOMAIN));
    }
    let is_part = |part: &str| {
        let edge =
            |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(part.bytes().next())
            && edge(part.bytes().last())
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if text.split('.').all(is_part) {
        Ok(())
    } else {
        Err(NameError::Subdomain)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident, $pattern:literal, $longest:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Parses a name.
            ///
            /// # Errors
            /// When `text` does not follow the rule.
            pub fn new(text: &str) -> Result<Self, NameError> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.into()
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
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
                schemars::json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    "maxLength": $longest
                })
            }
        }
    };
}

name!(
    /// The name of a metric: `[a-zA-Z_:][a-zA-Z0-9_:]*`, at most 256 bytes.
    MetricName,
    check_metric,
    "^[a-zA-Z_:][a-zA-Z0-9_:]*$",
    LONGEST_NAME
);
name!(
    /// The name of a label: `[a-zA-Z_][a-zA-Z0-9_]*`, at most 256 bytes.
    LabelName,
    check_label,
    "^[a-zA-Z_][a-zA-Z0-9_]*$",
    LONGEST_NAME
);
name!(
    /// The name of a provider as a site observes it: a DNS-1123 subdomain, at most 253 bytes. Ours are services; those of
    /// a Kubernetes site may hold dots.
    ProviderName,
    check_subdomain,
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    LONGEST_SUBDOMAIN
);
name!(
    /// The name of a Kubernetes object or namespace: a DNS-1123 subdomain, at most 253 bytes.
    ObjectName,
    check_subdomain,
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    LONGEST_SUBDOMAIN
);

impl From<&ServiceName> for ProviderName {
    fn from(service: &ServiceName) -> Self {
        Self(service.as_str().into()) // a label is a subdomain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_metric_may_hold_colons_and_that_of_a_label_may_not() {
        for good in ["a", "_", ":", "vllm:num_requests_waiting", "A9_:"] {
            assert_eq!(MetricName::new(good).unwrap().as_str(), good);
        }
        for wrong in ["", "9a", "a-b", "a b", "é", "a\n"] {
            assert_eq!(MetricName::new(wrong), Err(NameError::Metric), "{wrong:?}");
        }
        assert!(LabelName::new("model_name").is_ok());
        assert_eq!(LabelName::new("a:b"), Err(NameError::Label));
        assert_eq!(LabelName::new("0"), Err(NameError::Label));
        assert!(MetricName::new(&"a".repeat(256)).is_ok());
        assert_eq!(
            MetricName::new(&"a".repeat(257)),
            Err(NameError::TooLong(256))
        );
    }

    #[test]
    fn a_provider_is_a_subdomain() {
        for good in ["broker", "0", "pool.team-a", "a-b.c"] {
            assert!(ProviderName::new(good).is_ok(), "{good}");
        }
        for wrong in [
            "", ".", "a.", ".a", "a..b", "-a", "a-", "a-.b", "A", "a_b", "a/b",
        ] {
            assert_eq!(
                ProviderName::new(wrong),
                Err(NameError::Subdomain),
                "{wrong:?}"
            );
        }
        assert_eq!(
            ProviderName::new(&"a".repeat(254)),
            Err(NameError::TooLong(253))
        );
    }
}
