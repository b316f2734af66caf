//! What a template prints: text, and no map or list in the engine's own notation.
//!
//! Threat: the keys of a map that a template makes may be secrets, so whoever holds one has them told to nobody.

use std::fmt;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State, escape_formatter};

use super::custom::is_quotable;
use super::missing::is_stand_in;

/// The most names that are told of what has more.
const TOLD_MOST: usize = 12;

/// The names that a value has, where iterating over it does not give them.
pub type Names = fn(&Value) -> Option<Vec<String>>;

/// What was to be printed and is no text; the source of the engine's error.
#[derive(Debug)]
enum NoText {
    Map(Vec<String>),
    List,
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Map(_) => "a map is no text",
            Self::List => "a list is no text",
        })
    }
}

impl std::error::Error for NoText {}

/// Prints a value, for [`minijinja::Environment::set_formatter`].
///
/// # Errors
/// Where it is a map or a list; [`no_text`] tells more of that error.
pub(super) fn print(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
    names: Names,
) -> Result<(), Error> {
    let wrong = match value.kind() {
        _ if is_stand_in(value) => return Ok(()),
        ValueKind::Map => NoText::Map(names_in(value, names)),
        ValueKind::Seq | ValueKind::Iterable => NoText::List,
        _ => return escape_formatter(out, state, value),
    };
    Err(Error::new(ErrorKind::InvalidOperation, wrong.to_string()).with_source(wrong))
}

/// What to say of an error of [`print`], and nothing of any other. `source` is the text of the template; the names in a map are
/// told where `names_told`.
#[must_use]
pub fn no_text(error: &Error, source: &str, names_told: bool) -> Option<String> {
    let wrong = std::error::Error::source(error)?.downcast_ref::<NoText>()?;
    let inner = |text: &'static [char]| move |c: char| text.contains(&c) || c.is_whitespace();
    let expression = error
        .range()
        .and_then(|range| source.get(range))
        .map(|text| text.trim_matches(inner(&['{', '}', '-', '+'])))
        .filter(|text| !text.is_empty() && is_quotable(text));
    let what = match expression {
        Some(text) => format!("`{text}`"),
        None => "what is printed here".to_owned(),
    };
    Some(match wrong {
        NoText::List => {
            let typed = expression.unwrap_or("…");
            format!(
                "{what} is a list, and no text: `{typed} | join(\", \")` is its elements, and `{typed} | tojson` is JSON"
            )
        }
        NoText::Map(names) => {
            let mut said = format!("{what} is a map, and no text");
            if names_told && !names.is_empty() {
                said.push_str("; it has ");
                said.push_str(&told(names));
            }
            match expression {
                Some(text) if names.iter().any(|name| name == "name") => {
                    said.push_str(&format!("; did you mean `{text}.name`?"));
                }
                _ => said.push_str("; say which of what it has"),
            }
            said
        }
    })
}

/// The names that a value has.
pub(super) fn names_in(value: &Value, names: Names) -> Vec<String> {
    names(value).unwrap_or_else(|| {
        let keys = value.try_iter().into_iter().flatten();
        keys.filter_map(|key| key.as_str().map(str::to_owned))
            .collect()
    })
}

/// Names as they are told: the first ones, and how many more there are.
pub(super) fn told(names: &[String]) -> String {
    let first = names.get(..TOLD_MOST).unwrap_or(names);
    let more = names.len().saturating_sub(first.len());
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
