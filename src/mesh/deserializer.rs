//! A deserializer over parsed TOML that knows what `toml`'s own does not tell: which key or element an
//! error belongs to, and what would have been right.

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::at::AT;
use super::input::{Input, Keys, Table};
use super::place::Problem;
use super::read_error::{Error, known_keys};
use super::reader::Pass;

/// Reads a value once.
#[derive(Clone, Copy)]
pub(super) struct ValueReader<'a> {
    /// The value.
    pub input: Input<'a>,
    /// What is known from before.
    pub pass: &'a Pass,
}

impl<'a> ValueReader<'a> {
    fn entries(
        self,
        items: &'a DeTable<'a>,
        fields: Option<&'static [&'static str]>,
    ) -> Entries<'a> {
        let table = Table {
            file: self.input.file,
            key: self.input.key,
            items,
            keys: Keys::All,
        };
        Entries::new(table, self.pass, fields)
    }

    /// Gives the visitor what is there. A date is what it is only to who asks for a text.
    fn visit<'de, V: Visitor<'de>>(self, visitor: V, dates: bool) -> Result<V::Value, Error> {
        match self.input.value.get_ref() {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => visitor.visit_i64(number),
                    Err(_) => Err(Error::custom("a number this large has no meaning here")),
                }
            }
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(Error::custom("this number has no meaning here")),
            },
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            DeValue::Datetime(date) if dates => visitor.visit_string(date.to_string()),
            DeValue::Datetime(_) => Err(serde::de::Error::invalid_type(
                serde::de::Unexpected::Other("a date"),
                &visitor,
            )),
            DeValue::Array(items) => visitor.visit_seq(Elements {
                items: items.iter(),
                file: self.input.file,
                pass: self.pass,
            }),
            DeValue::Table(items) => visitor.visit_map(self.entries(items, None)),
        }
        .map_err(|error: Error| error.or_at(self.input.place()))
    }
}

macro_rules! as_it_is {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.visit(visitor, false)
        })*
    };
}

impl<'de> Deserializer<'de> for ValueReader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit(visitor, true)
    }

    as_it_is! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.visit(visitor, false)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == AT {
            let place = self.input.place();
            visitor.visit_seq(Placed {
                numbers: [place.file, place.start, place.end].into_iter(),
                value: Some(self),
            })
        } else {
            visitor
                .visit_newtype_struct(self)
                .map_err(|error: Error| error.or_at(self.input.place()))
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.visit(visitor, false)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.visit(visitor, false)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.input.value.get_ref() {
            DeValue::Table(items) => visitor
                .visit_map(self.entries(items, Some(fields)))
                .map_err(|error: Error| error.or_at(self.input.place())),
            _ => self.visit(visitor, false),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.input.value.get_ref() {
            DeValue::String(text) => {
                let text: StrDeserializer<'_, Error> = text.as_ref().into_deserializer();
                text.deserialize_enum(name, variants, visitor)
            }
            DeValue::Table(items) if items.len() == 1 => {
                MapAccessDeserializer::new(self.entries(items, None))
                    .deserialize_enum(name, variants, visitor)
            }
            _ => self.visit(visitor, false),
        }
        .map_err(|error: Error| error.or_at(self.input.place()))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

/// Reads a table once.
pub(super) struct TableReader<'a> {
    /// The table.
    pub table: Table<'a>,
    /// What is known from before.
    pub pass: &'a Pass,
}

impl<'de> Deserializer<'de> for TableReader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Entries::new(self.table, self.pass, None))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Entries::new(self.table, self.pass, Some(fields)))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The entries of a table, one after the other.
struct Entries<'a> {
    items: toml::map::Iter<'a, Spanned<DeString<'a>>, Spanned<DeValue<'a>>>,
    file: usize,
    keys: Keys,
    fields: Option<&'static [&'static str]>,
    pass: &'a Pass,
    current: Option<Input<'a>>,
    name: &'a str,
}

impl<'a> Entries<'a> {
    fn new(table: Table<'a>, pass: &'a Pass, fields: Option<&'static [&'static str]>) -> Self {
        Self {
            items: table.items.iter(),
            file: table.file,
            keys: table.keys,
            fields,
            pass,
            current: None,
            name: "",
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        for (key, value) in self.items.by_ref() {
            let (name, span) = (key.get_ref().as_ref(), key.span());
            if !self.keys.has(name) || self.pass.skips(span.start) {
                continue;
            }
            let input = Input::new(self.file, key, value);
            if self.fields.is_some_and(|fields| !fields.contains(&name)) {
                self.pass.skip.borrow_mut().insert(span.start);
                let elsewhere = match self.keys {
                    Keys::Without(taken) => taken,
                    Keys::All | Keys::Only(_) => &[],
                };
                let known = self.fields.into_iter().flatten().chain(elsewhere);
                self.pass.unknown.borrow_mut().push(Problem::new(
                    input.key,
                    format!("there is no key `{name}` here"),
                    known_keys(name, known.copied()),
                ));
                continue;
            }
            self.current = Some(input);
            self.name = name;
            let key: StrDeserializer<'_, Error> = name.into_deserializer();
            return seed
                .deserialize(key)
                .map(Some)
                .map_err(|error| error.or_at(input.key).or_skip(span.start).or_key(name));
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some(input) = self.current.take() else {
            return Err(Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(ValueReader {
            input,
            pass: self.pass,
        })
        .map_err(|error| {
            let error = if error.is_missing().is_some() && error.skip.is_none() {
                error.at(input.key)
            } else {
                error.or_at(input.place())
            };
            error.or_skip(input.key.start).or_key(self.name)
        })
    }
}

/// The elements of a list, one after the other.
struct Elements<'a> {
    items: std::slice::Iter<'a, Spanned<DeValue<'a>>>,
    file: usize,
    pass: &'a Pass,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        for value in self.items.by_ref() {
            let span = value.span();
            if self.pass.skips(span.start) {
                continue;
            }
            let input = Input::element(self.file, value);
            return seed
                .deserialize(ValueReader {
                    input,
                    pass: self.pass,
                })
                .map(Some)
                .map_err(|error| error.or_at(input.place()).or_skip(span.start).in_list());
        }
        Ok(None)
    }
}

/// What [`At`] is given: three numbers and the value.
struct Placed<'a> {
    numbers: std::array::IntoIter<usize, 3>,
    value: Option<ValueReader<'a>>,
}

impl<'de> SeqAccess<'de> for Placed<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if let Some(number) = self.numbers.next() {
            return seed.deserialize(number.into_deserializer()).map(Some);
        }
        match self.value.take() {
            Some(value) => seed.deserialize(value).map(Some),
            None => Ok(None),
        }
    }
}
