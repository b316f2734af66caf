//! Names: DNS-1123 labels (RFC 1123, section 2.1; DESIGN.md, section 2).
//!
//! A name ends up in file names, host names, account names and log lines, unquoted. That is safe
//! because nothing but `[a-z0-9-]` can be in one; every other room relies on it.

/// The longest DNS-1123 label, in bytes.
const LONGEST: usize = 63;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing at all.
    #[error("a name cannot be empty")]
    Empty,
    /// More than 63 bytes.
    #[error("a name has at most {LONGEST} characters, this one has {0}")]
    TooLong(usize),
    /// A character outside `[a-z0-9-]`.
    #[error("a name has only lowercase letters, digits and hyphens, not {0:?}")]
    Character(char),
    /// A hyphen first or last.
    #[error("a name starts and ends with a letter or a digit")]
    Edge,
}

fn check(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if let Some(c) = text
        .chars()
        .find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-'))
    {
        return Err(NameError::Character(c));
    }
    if text.len() > LONGEST {
        return Err(NameError::TooLong(text.len()));
    }
    if text.starts_with('-') || text.ends_with('-') {
        return Err(NameError::Edge);
    }
    Ok(())
}

/// A type of names: the check of its rule, what that refuses with, and the rule as a schema says it.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident, $error:ident, $pattern:literal, $longest:expr) => {
        $(#[$doc])*
        #[derive(
            Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Parses a name.
            ///
            /// # Errors
            /// When `text` does not follow the rule.
            pub fn new(text: &str) -> Result<Self, $error> {
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
            type Err = $error;
            fn from_str(text: &str) -> Result<Self, $error> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.to_string()
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
pub(super) use name;

macro_rules! label {
    ($(#[$doc:meta])* $name:ident) => {
        name!(
            $(#[$doc])*
            $name, check, NameError, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", LONGEST
        );
    };
}

label!(
    /// The name of a mesh.
    MeshName
);
label!(
    /// The name of a machine.
    NodeName
);
label!(
    /// The name of a service.
    ServiceName
);
label!(
    /// The name of a secret of the operator's.
    SecretName
);
label!(
    /// A tag: `@tag` names every machine that carries it.
    Tag
);
label!(
    /// What a gateway's process calls itself. Diagnostic: it authorizes nothing.
    Replica
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_1123_label_is_a_name_and_nothing_else_is() {
        for good in ["a", "0", "a-b", "x9", &"a".repeat(63)] {
            assert_eq!(ServiceName::new(good).unwrap().as_str(), good);
        }
        assert_eq!(NodeName::new(""), Err(NameError::Empty));
        assert_eq!(NodeName::new("-a"), Err(NameError::Edge));
        assert_eq!(NodeName::new("a-"), Err(NameError::Edge));
        assert_eq!(NodeName::new("Atlas"), Err(NameError::Character('A')));
        assert_eq!(NodeName::new("a.b"), Err(NameError::Character('.')));
        assert_eq!(NodeName::new(&"a".repeat(64)), Err(NameError::TooLong(64)));
    }

    #[test]
    fn a_wrong_name_cannot_be_read_from_json() {
        assert!(serde_json::from_str::<MeshName>("\"../etc\"").is_err());
        assert_eq!(
            serde_json::from_str::<MeshName>("\"prod\"").unwrap(),
            MeshName::new("prod").unwrap()
        );
    }
}
