//! The names that a custom provider's settings and wants are made of.
//!
//! Threat: each becomes a file name, a variable of an environment file or a name in a template, unquoted.

use serde::{Deserialize, Serialize};

/// The longest of them, in bytes, where nothing shorter is said.
const LONGEST: usize = 63;
/// What a binding always has (or, `uri`, has by a setting of its own).
const RESERVED: [&str; 7] = [
    "type", "provider", "host", "port", "username", "password", "uri",
];

/// Why a text is not such a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(&'static str);

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $pattern:literal, $wrong:literal, $right:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses it.
            ///
            /// # Errors
            /// When the text is no such name.
            pub fn new(text: &str) -> Result<Self, NameError> {
                let right: fn(&str) -> bool = $right;
                if right(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(NameError($wrong))
                }
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
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
                name.0
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
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

fn all(text: &str, longest: usize, good: fn(u8) -> bool) -> bool {
    !text.is_empty() && text.len() <= longest && text.bytes().all(good)
}

fn is_entry(text: &str, longest: usize) -> bool {
    all(
        text,
        longest,
        |b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'),
    ) && !text.starts_with('.')
}

text!(
    /// What the grant list's file is called after the dot.
    Extension,
    "^[a-z0-9]{1,16}$",
    "an extension is 1 to 16 lowercase letters and digits",
    |text| all(text, 16, |b| matches!(b, b'a'..=b'z' | b'0'..=b'9'))
);
text!(
    /// The `type` of a binding (servicebinding.io: lower case).
    BindingType,
    "^[a-z0-9-][a-z0-9.-]{0,62}$",
    "a binding's type is 1 to 63 lowercase letters, digits, dots and hyphens, no dot first",
    |text| is_entry(text, LONGEST)
);
text!(
    /// A file of a binding (servicebinding.io), besides those that every binding has.
    EntryName,
    "^[a-z0-9-][a-z0-9.-]{0,252}$",
    "a binding's entry is 1 to 253 lowercase letters, digits, dots and hyphens, no dot first, and not one \
     of type, provider, host, port, username, password, uri",
    |text| is_entry(text, 253) && !RESERVED.contains(&text)
);
text!(
    /// A variable of the environment file.
    Variable,
    "^[A-Z_][A-Z0-9_]{0,62}$",
    "a variable is 1 to 63 uppercase letters, digits and underscores, no digit first",
    |text| all(text, LONGEST, |b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
        && !text.starts_with(|c: char| c.is_ascii_digit())
);
text!(
    /// The name of something that a consumer wants.
    WantName,
    "^[A-Za-z_][A-Za-z0-9_]{0,62}$",
    "what a consumer wants is named by 1 to 63 letters, digits and underscores, no digit first, so that \
     a template can say wants.NAME; 'kind' is taken",
    |text| all(text, LONGEST, |b| b.is_ascii_alphanumeric() || b == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text != "kind" // the tag of stored wants
);

impl Default for Extension {
    fn default() -> Self {
        Self("txt".to_owned())
    }
}

impl Default for BindingType {
    fn default() -> Self {
        Self("custom".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_files_variables_and_templates_take() {
        assert!(Extension::new("json5").is_ok());
        for wrong in ["", "a.b", "TXT", "../x", &"a".repeat(17)] {
            assert!(Extension::new(wrong).is_err(), "{wrong}");
        }
        assert!(BindingType::new("my-api.v2").is_ok());
        for wrong in ["", "Custom", "a_b", "..", "a/b"] {
            assert!(BindingType::new(wrong).is_err(), "{wrong}");
        }
        assert!(EntryName::new("database").is_ok());
        for wrong in ["password", "type", "DB", "..", &"a".repeat(254)] {
            assert!(EntryName::new(wrong).is_err(), "{wrong}");
        }
        assert!(Variable::new("_API_URL2").is_ok());
        for wrong in ["", "api", "2A", "A-B", "A B", "A\nB"] {
            assert!(Variable::new(wrong).is_err(), "{wrong}");
        }
        assert!(WantName::new("max_rate").is_ok());
        for wrong in ["", "kind", "2a", "a-b", "a.b"] {
            assert!(WantName::new(wrong).is_err(), "{wrong}");
        }
    }
}
