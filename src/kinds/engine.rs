//! The template engine: Jinja2 (minijinja), strict about what is undefined, escaping nothing, keeping the last newline; and the names
//! that a value has for it.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::printed::print;

/// The most names that are told of what has more.
const TOLD_MOST: usize = 12;

/// The names that a value has, where iterating over it does not give them.
pub type Names = fn(&Value) -> Option<Vec<String>>;

/// The engine for every template of the operator's, without any.
#[must_use]
pub fn engine(names: Names) -> Environment<'static> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    engine.set_formatter(move |out, state, value| print(out, state, value, names));
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    if let Ok(syntax) = syntax {
        engine.set_syntax(syntax);
    }
    engine
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
