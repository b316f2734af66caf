//! The template engine: Jinja2 (minijinja), strict about what is undefined, escaping nothing, keeping the last newline.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::printed::{Names, print};

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
