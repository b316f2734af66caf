//! Reads values of the declaration into types, by serde, and goes on after an error, so that one run
//! reports all of them.
//!
//! The reader is a deserializer of its own over parsed TOML, because it knows what `toml`'s does not
//! tell: which key or element an error belongs to, and what would have been right. [`read`] tries again
//! without that key or element until the rest passes; what is left out is at most [`MOST_TRIES`]
//! things a table, so that no file makes it run long. Unknown keys are recorded in passing.

use std::cell::RefCell;
use std::collections::HashSet;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::place::{At, Place, Problem};
use super::read_error::{Error, known_keys};

/// How many errors of one table are reported.
const MOST_TRIES: usize = 100;
/// The name by which [`At`] asks for its place.
const AT: &str = "grid::At";

/// A value in a file.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    /// Which file.
    pub file: usize,
    /// The key that it stands at; empty for an element of a list.
    pub name: &'a str,
    /// Where that key stands, else its own place.
    pub key: Place,
    /// The value.
    pub value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Input<'a> {
    /// The value of a key.
    pub fn new(
        file: usize,
        key: &'a Spanned<DeString<'a>>,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Self {
        Self {
            file,
            name: key.get_ref(),
            key: Place::new(file, key.span()),
            value,
        }
    }

    /// An element of a list.
    pub fn element(file: usize, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self {
            file,
            name: "",
            key: Place::new(file, value.span()),
            value,
        }
    }

    /// The value as a table, or what is wrong.
    pub fn table(self, what: &str) -> Result<Table<'a>, Problem> {
        match self.value.get_ref() {
            DeValue::Table(items) => Ok(Table {
                file: self.file,
                key: self.key,
                items,
                keys: Keys::All,
            }),
            _ => Err(Problem::new(
                self.place(),
                format!("{what} is a table"),
                "write its keys in `{ … }`, or below a `[header]` of its own",
            )),
        }
    }

    /// Where the value itself stands.
    pub fn place(self) -> Place {
        Place::new(self.file, self.value.span())
    }
}

/// A table in a file.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    /// Which file.
    pub file: usize,
    /// The key that it stands at.
    pub key: Place,
    /// Its items.
    items: &'a DeTable<'a>,
    keys: Keys,
}

/// Which keys of a table are read.
#[derive(Clone, Copy)]
enum Keys {
    /// All.
    All,
    /// All but these, which somebody else reads.
    Without(&'static [&'static str]),
    /// Only these; somebody else reads the rest.
    Only(&'static [&'static str]),
}

impl Keys {
    fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Without(taken) => !taken.contains(&name),
            Self::Only(meant) => meant.contains(&name),
        }
    }
}

impl<'a> Table<'a> {
    /// The top of a file.
    pub fn top(file: usize, items: &'a DeTable<'a>) -> Self {
        Self {
            file,
            key: Place::new(file, 0..0),
            items,
            keys: Keys::All,
        }
    }

    /// The same table without keys that somebody else reads.
    pub fn without(self, taken: &'static [&'static str]) -> Self {
        Self {
            keys: Keys::Without(taken),
            ..self
        }
    }

    /// The same table with only these keys; somebody else reads the rest.
    pub fn only(self, meant: &'static [&'static str]) -> Self {
        Self {
            keys: Keys::Only(meant),
            ..self
        }
    }

    /// Its keys and values.
    pub fn entries(self) -> impl Iterator<Item = (&'a str, Input<'a>)> {
        self.items
            .iter()
            .map(move |(key, value)| (key.get_ref().as_ref(), Input::new(self.file, key, value)))
    }

    /// The value of a key.
    pub fn get(self, key: &str) -> Option<Input<'a>> {
        self.items
            .get_key_value(key)
            .map(|(key, value)| Input::new(self.file, key, value))
    }
}

/// Something that can be read again and again.
pub(super) trait Readable: Copy {
    /// Reads it once.
    fn once<T: Deserialize<'static>>(self, pass: &Pass) -> Result<T, Error>;
    /// Where an error stands that has no place of its own.
    fn fallback(self) -> Place;
}

impl Readable for Input<'_> {
    fn once<T: Deserialize<'static>>(self, pass: &Pass) -> Result<T, Error> {
        T::deserialize(ValueReader { input: self, pass }).map_err(|error| match self.name {
            "" => error,
            name => error.or_key(name),
        })
    }
    fn fallback(self) -> Place {
        self.place()
    }
}

impl Readable for Table<'_> {
    fn once<T: Deserialize<'static>>(self, pass: &Pass) -> Result<T, Error> {
        T::deserialize(TableReader { table: self, pass })
    }
    fn fallback(self) -> Place {
        self.key
    }
}

/// Reads a type. `None`: nothing could be made of it. Whatever was wrong is added to `problems`.
pub(super) fn read<T: Deserialize<'static>>(
    input: impl Readable,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    read_with(input, problems, |pass| input.once(pass))
}

/// Like [`read`], with another way to read a table once: a provider kind's.
pub(super) fn read_table_with<T>(
    table: Table<'_>,
    problems: &mut Vec<Problem>,
    once: impl Fn(TableReader<'_>) -> Result<T, Error>,
) -> Option<T> {
    read_with(table, problems, |pass| once(TableReader { table, pass }))
}

fn read_with<T>(
    input: impl Readable,
    problems: &mut Vec<Problem>,
    once: impl Fn(&Pass) -> Result<T, Error>,
) -> Option<T> {
    let pass = Pass::default();
    let mut read = None;
    for left in (0..MOST_TRIES).rev() {
        match once(&pass) {
            Ok(value) => {
                read = Some(value);
                break;
            }
            Err(error) => {
                let fallback = input.fallback();
                let skipped = error
                    .skip
                    .is_some_and(|at| pass.skip.borrow_mut().insert(at));
                if let Some(key) = error.is_missing() {
                    // What is there but wrong has been reported as that.
                    if !pass.wrong_keys.borrow().contains(key) {
                        problems.push(error.problem(fallback));
                    }
                } else {
                    let key = error.key.iter().map(|key| key.to_string());
                    pass.wrong_keys.borrow_mut().extend(key);
                    problems.push(error.problem(fallback));
                }
                if !skipped {
                    break;
                }
                if left == 0 {
                    problems.push(Problem::bare(
                        fallback,
                        "there is more wrong here than is shown",
                    ));
                }
            }
        }
    }
    problems.append(&mut pass.unknown.borrow_mut());
    read
}

/// What was learnt while reading one table.
#[derive(Default)]
pub(super) struct Pass {
    /// First bytes of the keys and elements that are left out.
    skip: RefCell<HashSet<usize>>,
    /// Keys that were there, but wrong.
    wrong_keys: RefCell<HashSet<String>>,
    /// Unknown keys.
    unknown: RefCell<Vec<Problem>>,
}

impl Pass {
    fn skips(&self, at: usize) -> bool {
        let skip = self.skip.borrow();
        !skip.is_empty() && skip.contains(&at)
    }
}

/// Reads a value once.
#[derive(Clone, Copy)]
struct ValueReader<'a> {
    input: Input<'a>,
    pass: &'a Pass,
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
    table: Table<'a>,
    pass: &'a Pass,
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
