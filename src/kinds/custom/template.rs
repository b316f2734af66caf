//! The operator's templates: Jinja2 (minijinja), strict about what is undefined, escaping nothing.
//!
//! Threat: an engine that fails while it holds passwords may quote one in what it says. So an error of
//! *rendering* is told in words of ours, with the line, and with the expression as it stands in the template
//! if that holds no quoted text; the engine's own detail is told only of a template that does not parse,
//! when no value is there yet.

use minijinja::value::Value;
use serde::{Deserialize, Serialize};

use super::super::engine::engine;
use super::super::missing::missing;
use super::super::printed::Names;
use super::super::printed::no_text;
use super::super::template_error::TemplateError;
use super::asked::{self, Unknown};
use crate::words::Secret;

/// The longest expression that an error quotes, in bytes.
const LONGEST_QUOTE: usize = 60;
/// Every value that these templates see gives its names when it is iterated over.
const ITERATED: Names = |_| None;

/// A template that stands in the declaration itself. It parses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Inline(String);

impl TryFrom<String> for Inline {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        engine(ITERATED)
            .template_from_str(&text)
            .map(|_| ())
            .map_err(|error| unparsed(&error))?;
        Ok(Self(text))
    }
}

impl From<Inline> for String {
    fn from(inline: Inline) -> String {
        inline.0
    }
}

impl Inline {
    /// The names in it that it asks for and that neither it nor `known` fills in.
    pub(super) fn unknown(&self, known: &[&str]) -> Vec<Unknown> {
        unknown(&self.0, known)
    }

    /// What it says of `values`. `name` is what an error calls it.
    /// It is text of the declaration, so that a line within it is told only where it has several.
    pub(super) fn render(&self, name: &str, values: Value) -> Result<Secret, TemplateError> {
        render(name, &self.0, values).map_err(|mut error| {
            if self.0.lines().count() < 2 {
                error.line = None;
                error.more.iter_mut().for_each(|more| more.line = None);
            }
            error
        })
    }
}

impl schemars::JsonSchema for Inline {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Inline".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// The names that the template `source` asks for and that neither it nor `known` fills in.
pub(super) fn unknown(source: &str, known: &[&str]) -> Vec<Unknown> {
    asked::unknown(&engine(ITERATED), source, known)
}

/// What the template `source` says of `values`. `name` is what an error calls it.
///
/// # Errors
/// When it does not parse, or says something of a value that is not there or not of that type.
pub(super) fn render(name: &str, source: &str, values: Value) -> Result<Secret, TemplateError> {
    let engine = engine(ITERATED);
    let template = engine
        .template_from_str(source)
        .map_err(|error| TemplateError::new(name, error.line(), unparsed(&error)))?;
    template.render(&values).map(Secret::new).map_err(|error| {
        let of = |_: &minijinja::Error| (name.to_owned(), source.to_owned());
        let found = missing(&error, &values, ITERATED, of, |values| {
            template.render(values)
        });
        TemplateError::of_missing(found, |_| String::new()).unwrap_or_else(|| {
            // Its values hold passwords, always.
            let no_text = no_text(&error, source, false);
            let why = no_text.unwrap_or_else(|| unrendered(&error, source));
            TemplateError::new(name, error.line(), why)
        })
    })
}

fn unparsed(error: &minijinja::Error) -> String {
    error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned)
}

/// The expression of the template `source` that an error of rendering is about, if it is short and holds no quoted text.
#[must_use]
pub fn quoted<'a>(error: &minijinja::Error, source: &'a str) -> Option<&'a str> {
    error
        .range()
        .and_then(|range| source.get(range))
        .filter(|text| is_quotable(text))
}

/// Whether an expression of a template is short and holds no quoted text.
pub(in crate::kinds) fn is_quotable(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.|()[], ".contains(c);
    text.len() <= LONGEST_QUOTE && text.chars().all(plain)
}

fn unrendered(error: &minijinja::Error, source: &str) -> String {
    match quoted(error, source) {
        Some(expression) => format!("{}: {expression}", error.kind()),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANTED: &str = "hunter2-hunter2";

    fn why(source: &str) -> String {
        let account = minijinja::context! { username => "prod.billing.1", password => PLANTED };
        let values =
            minijinja::context! { password => PLANTED, accounts => vec![account], number => 7 };
        let error = render("list.j2", source, values).unwrap_err();
        assert!(!format!("{error} {error:?} {error:#?}").contains("hunter"));
        error.to_string()
    }

    #[test]
    fn an_error_names_the_template_and_the_line_and_prints_no_value() {
        let errors = [
            "a\nb {{ accounts[0].nme }}",
            "{{ passwort }}",
            "{{ password|upcase }}",
            "{{ password + 1 }}",
            "{{ password|int }}",
            "{{ password * password }}",
            "{{ password|tojson|float }}",
            "{{ password.upper().nope() }}",
            "{{ password() }}",
            "{{ {password: 1}[password].x }}",
            "{% for a, b, c in accounts %}{% endfor %}",
            "{% for a, b in [password] %}{% endfor %}",
            "{{ number[password] }}",
            "{{ range(password) }}",
            "{{ range(1, 2, password) }}",
            "{{ password|replace }}",
            "{{ accounts|map(password)|list }}",
            "{{ accounts|batch(password) }}",
            "{% include password %}",
            "{{ \"it is \" ~ password ~ nothing }}",
            "{{ password is defind }}",
            "{{ dict(password) }}",
            "{{ namespace(password) }}",
            "{{ password[password] }}",
            "{{ -password }}",
            "{{ 1 in 2 }}",
            "{% if %}",
            "{{ a b }}",
            "{{ 'a",
        ]
        .map(why);
        insta::assert_snapshot!(errors.join("\n"), @"
        list.j2:2: undefined value: `accounts[…]` has no `nme`; it has username, password
        list.j2:1: undefined value: there is no `passwort`; there are password, accounts, number; did you mean `password`?
        list.j2:1: unknown filter: upcase
        list.j2:1: invalid operation
        list.j2:1: invalid operation: int
        list.j2:1: invalid operation
        list.j2:1: invalid operation: float
        list.j2:1: unknown method: .upper()
        list.j2:1: invalid operation: password()
        list.j2:1: undefined value
        list.j2:1: cannot unpack: a, b, c
        list.j2:1: cannot unpack: a, b
        list.j2:1: undefined value: number[password]
        list.j2:1: invalid operation: range(password)
        list.j2:1: invalid operation: range(1, 2, password)
        list.j2:1: missing argument: replace
        list.j2:1: unknown filter: map(password)
        list.j2:1: invalid operation: batch(password)
        list.j2:1: template not found: include password
        list.j2:1: undefined value: there is no `nothing`; there are password, accounts, number
        list.j2:1: unknown test: defind
        list.j2:1: invalid operation: dict(password)
        list.j2:1: invalid operation: namespace(password)
        list.j2:1: undefined value: password[password]
        list.j2:1: invalid operation
        list.j2:1: invalid operation
        list.j2:1: unexpected end of block
        list.j2:1: unexpected identifier, expected end of variable block
        list.j2:1: unexpected end of string
        ");
    }

    #[test]
    fn a_template_says_what_it_says_and_keeps_its_last_newline() {
        let said = render(
            "t",
            "{{ a }}<&>{{ b|tojson }}\n",
            minijinja::context! { a => "<&>", b => "\"" },
        );
        assert_eq!(said.unwrap().expose(), "<&><&>\"\\\"\"\n");
    }

    #[test]
    fn a_template_in_the_declaration_parses_or_is_refused() {
        assert!(Inline::try_from("{{ host }}:{{ port }}".to_owned()).is_ok());
        insta::assert_snapshot!(Inline::try_from("{{ host }".to_owned()).unwrap_err(), @"unexpected `}`, expected end of variable block");
    }
}
