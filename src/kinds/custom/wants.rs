//! What a consumer wants of a custom provider: any keys, for its templates.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::names::WantName;

/// A value that a consumer wants. No fractions: they have no one way of being written, and what is
/// wanted is compared and ordered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WantValue {
    /// A string.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// A boolean.
    Truth(bool),
}

impl WantValue {
    pub(super) fn to_template(&self) -> minijinja::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Whole(number) => (*number).into(),
            Self::Truth(truth) => (*truth).into(),
        }
    }
}

impl Serialize for WantValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Whole(number) => serializer.serialize_i64(*number),
            Self::Truth(truth) => serializer.serialize_bool(*truth),
        }
    }
}

impl<'de> Deserialize<'de> for WantValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = WantValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a whole number or a boolean")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<WantValue, E> {
                Ok(WantValue::Text(text.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<WantValue, E> {
                Ok(WantValue::Whole(number))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<WantValue, E> {
                i64::try_from(number)
                    .map(WantValue::Whole)
                    .map_err(|_| E::custom("a whole number has at most 63 bits"))
            }
            fn visit_bool<E: de::Error>(self, truth: bool) -> Result<WantValue, E> {
                Ok(WantValue::Truth(truth))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl schemars::JsonSchema for WantValue {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WantValue".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "integer", "boolean"] })
    }
}

/// What a consumer wants of a custom provider: any keys, for its templates, which say `wants.KEY`.
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
#[serde(transparent)]
pub struct CustomWants(pub BTreeMap<WantName, WantValue>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_whole_numbers_and_booleans_read_back_from_json() {
        let wants: CustomWants =
            toml::from_str("scope = \"read\"\nrate = -5\nadmin = false").unwrap();
        let json = serde_json::to_string(&wants).unwrap();
        assert_eq!(json, r#"{"admin":false,"rate":-5,"scope":"read"}"#);
        assert_eq!(serde_json::from_str::<CustomWants>(&json).unwrap(), wants);
    }

    #[test]
    fn what_no_template_could_take_is_refused_where_it_stands() {
        let errors: Vec<String> = ["a = 1.5", "a = [1]", "a-b = 1", "kind = 1"]
            .into_iter()
            .map(|text| toml::from_str::<CustomWants>(text).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(errors.join("\n"), @"
TOML parse error at line 1, column 5
  |
1 | a = 1.5
  |     ^^^
invalid type: floating point `1.5`, expected a string, a whole number or a boolean

TOML parse error at line 1, column 5
  |
1 | a = [1]
  |     ^^^
invalid type: sequence, expected a string, a whole number or a boolean

TOML parse error at line 1, column 1
  |
1 | a-b = 1
  | ^^^
what a consumer wants is named by 1 to 63 letters, digits and underscores, no digit first, so that a template can say wants.NAME; 'kind' is taken

TOML parse error at line 1, column 1
  |
1 | kind = 1
  | ^^^^
what a consumer wants is named by 1 to 63 letters, digits and underscores, no digit first, so that a template can say wants.NAME; 'kind' is taken
");
    }
}
