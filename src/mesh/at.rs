//! A value with its place, read from a file: the reader's deserializer gives it the place, others
//! know none.

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

use super::place::{At, Place};

/// The name by which [`At`] asks for its place.
pub(super) const AT: &str = "grid::At";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlacedVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PlacedVisitor<T> {
            type Value = At<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value with its place")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<At<T>, A::Error> {
                let missing = || serde::de::Error::custom("a value came without its place");
                let mut number = || parts.next_element()?.ok_or_else(missing);
                let (file, start, end) = (number()?, number()?, number()?);
                Ok(At {
                    place: Place { file, start, end },
                    value: parts.next_element()?.ok_or_else(missing)?,
                })
            }
        }
        deserializer.deserialize_newtype_struct(AT, PlacedVisitor(std::marker::PhantomData))
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}
