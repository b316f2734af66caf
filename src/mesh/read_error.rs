//! What serde finds wrong in a value, in words of the declaration.

use std::fmt;

use serde::de::{Expected, Unexpected};

use super::diagnostic::without_secret_keys;
use super::place::{Place, Problem};
use crate::words::nearest;

/// How much of a wrong text is repeated in a message.
const LONGEST_TEXT: usize = 60;
/// What a list is called.
const LIST: &str = "a list in brackets";
/// For how many names that do not exist the nearest one is looked for.
const MOST_SUGGESTIONS: usize = 20;

/// An error of one reading: what is wrong, where, and what to leave out in the next.
#[derive(Debug)]
pub(super) struct Error {
    what: Box<What>,
    place: Option<Place>,
    /// The first byte of the innermost key or element that is wrong.
    pub skip: Option<usize>,
    /// The innermost key that is wrong.
    pub key: Option<Box<str>>,
    in_list: bool,
}

#[derive(Debug)]
enum What {
    /// Said by a type's own rule.
    Rule(String),
    /// One thing was expected, another found.
    Mismatch { found: String, expected: String },
    /// One of some words was expected.
    Word {
        found: String,
        known: &'static [&'static str],
    },
    /// A key that is not known.
    Unknown {
        key: String,
        known: &'static [&'static str],
    },
    /// A key that has to be there.
    Missing(&'static str),
}

impl Error {
    fn new(what: What) -> Self {
        Self {
            what: Box::new(what),
            place: None,
            skip: None,
            key: None,
            in_list: false,
        }
    }

    /// An error of the reader's own.
    pub fn custom(message: &str) -> Self {
        Self::new(What::Rule(message.to_owned()))
    }

    /// Sets the place.
    pub fn at(self, place: Place) -> Self {
        Self {
            place: Some(place),
            ..self
        }
    }

    /// Sets the place, unless a narrower one is known.
    pub fn or_at(self, place: Place) -> Self {
        Self {
            place: self.place.or(Some(place)),
            ..self
        }
    }

    /// Sets what to leave out, unless something narrower is known.
    pub fn or_skip(self, start: usize) -> Self {
        Self {
            skip: self.skip.or(Some(start)),
            ..self
        }
    }

    /// Sets the key, unless a narrower one is known.
    pub fn or_key(mut self, key: &str) -> Self {
        if self.key.is_none() {
            self.key = Some(key.into());
        }
        self
    }

    /// The error is in an element of the list that stands at the key, unless the key is known already.
    pub fn in_list(mut self) -> Self {
        if self.key.is_none() {
            self.in_list = true;
        }
        self
    }

    /// The key that has to be there and is not.
    pub fn is_missing(&self) -> Option<&'static str> {
        match &*self.what {
            What::Missing(key) => Some(key),
            _ => None,
        }
    }

    /// As it is reported; `fallback` is where it stands if nothing narrower is known.
    pub fn problem(&self, fallback: Place) -> Problem {
        let place = self.place.unwrap_or(fallback);
        let subject = match (&self.key, self.in_list) {
            (Some(key), false) => format!("`{key}`"),
            (Some(key), true) => format!("an element of `{key}`"),
            (None, _) => "this".to_owned(),
        };
        match &*self.what {
            What::Rule(rule) => Problem::bare(place, format!("{subject}: {rule}")),
            What::Mismatch { found, expected } => Problem {
                help: match self.key.as_deref().and_then(form_of) {
                    Some(form) => Some(format!("write `{form}`")),
                    None if self.key.as_deref() == Some("nodes") && *expected == LIST => Some(
                        "write `node = \"atlas\"`, or `nodes = [\"atlas\", \"@eu\"]`".to_owned(),
                    ),
                    None => (*expected == LIST && found == "a text").then(|| {
                        "write each word in quotes of its own, like [\"a\", \"b\"]".to_owned()
                    }),
                },
                ..Problem::bare(
                    place,
                    format!("{subject} has to be {expected}, not {found}"),
                )
            },
            What::Word { found, known } => Problem::new(
                place,
                format!("{subject} cannot be {}", quoted(found)),
                known_words(found, known),
            ),
            What::Unknown { key, known } => Problem::new(
                place,
                format!("there is no key `{key}` here"),
                known_keys(key, known.iter().copied()),
            ),
            What::Missing(key) => missing_key(place, key),
        }
    }
}

/// What is written at a key that holds a list of tables, which a text stands for elsewhere.
fn form_of(key: &str) -> Option<&'static str> {
    match key {
        "recipients" => Some("recipients = [{ name = \"maria\", key = \"age1…\" }]"),
        _ => None,
    }
}

/// A key has to be there and is not.
pub(super) fn missing_key(place: Place, key: &str) -> Problem {
    Problem::new(
        place,
        format!("the key `{key}` is missing"),
        match key {
            // Only the kind `custom` needs these.
            "load" | "check" => format!(
                "add `{key} = [\"sh\", \"{{release}}/x.sh\", \"{key}\"]`: a command that reads the list from standard input"
            ),
            "template" => {
                "add `template = \"x.j2\"`: a file beside mesh.toml, which makes the list"
                    .to_owned()
            }
            _ => format!("add `{key} = …`"),
        },
    )
}

/// A suggestion for a key that is not known: the nearest, or all.
pub(super) fn known_keys<'a>(wrong: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(wrong, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match listed(known.map(|key| format!("`{key}`")).collect(), "and") {
            keys if keys.is_empty() => "no key stands here".to_owned(),
            keys => format!("known here: {keys}"),
        },
    }
}

/// The nearest of names that may be very many: looked for only while few problems are known, since it
/// is a walk over all of them.
pub(super) fn nearest_of_many<'a>(
    wrong: &str,
    names: impl Iterator<Item = &'a str>,
    problems: usize,
) -> Option<String> {
    (problems < MOST_SUGGESTIONS)
        .then(|| nearest(wrong, names))
        .flatten()
}

fn known_words(wrong: &str, known: &[&str]) -> String {
    match nearest(wrong, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!(
            "it can be {}",
            listed(
                known.iter().map(|word| format!("\"{word}\"")).collect(),
                "or"
            )
        ),
    }
}

/// `a, b and c`.
pub(super) fn listed(words: Vec<String>, and: &str) -> String {
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} {and} {last}", first.join(", ")),
    }
}

/// A text in quotes, shortened, without anything that steers a terminal.
pub(super) fn quoted(text: &str) -> String {
    let text = without_secret_keys(text);
    let mut short: String = text.chars().take(LONGEST_TEXT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

fn found(unexpected: &Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        // What it says is on the line that is shown, unless that may be a secret.
        Unexpected::Str(_) => "a text".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        Unexpected::Other(other) => (*other).to_owned(),
        other => other.to_string(),
    }
}

fn expected(expected: &dyn Expected) -> String {
    let words = expected.to_string();
    match words.as_str() {
        "a string" | "str" => "a text in quotes".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a sequence" => LIST.to_owned(),
        "a map" => "a table".to_owned(),
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u16" => "a whole number from 0 to 65535".to_owned(),
        "u32" | "u64" | "usize" => "a whole number, not below 0".to_owned(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other if other.starts_with("enum ") => "one of its words, in quotes".to_owned(),
        other if other.starts_with("tuple ") => LIST.to_owned(),
        _ => words,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem(Place::new(0, 0..0)).message)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(What::Rule(message.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expecting: &dyn Expected) -> Self {
        Self::new(What::Mismatch {
            found: found(&unexpected),
            expected: expected(expecting),
        })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expecting: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expecting)
    }

    fn invalid_length(length: usize, expecting: &dyn Expected) -> Self {
        Self::new(What::Mismatch {
            found: format!("{length} elements"),
            expected: expected(expecting),
        })
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::Word {
            found: variant.to_owned(),
            known,
        })
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::Unknown {
            key: key.to_owned(),
            known,
        })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(What::Missing(key))
    }
}
