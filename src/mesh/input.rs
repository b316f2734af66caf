//! Parsed values of the declaration with their places, before they are read into types.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::place::{Place, Problem};

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
    /// Its items, whichever are read.
    pub items: &'a DeTable<'a>,
    /// Which of them are read.
    pub keys: Keys,
}

/// Which keys of a table are read.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    /// All.
    All,
    /// All but these, which somebody else reads.
    Without(&'static [&'static str]),
    /// Only these; somebody else reads the rest.
    Only(&'static [&'static str]),
}

impl Keys {
    /// Whether a key is read.
    pub fn has(self, name: &str) -> bool {
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
