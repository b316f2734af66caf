//! What a template asked for that is not there, and what there is instead.
//!
//! A template that failed is rendered once more over the same values, which now remember what they were asked for in vain. So what
//! is missing is known at any depth and under any name that the template gave to what it asked. What is known to be missing is
//! given something to stand there, and the template is rendered again: so all that it misses is told at once.
//!
//! Threat: a key may be computed, so that it may be a secret. Of keys that were asked for, only what stands in the template's own text is
//! told.

mod watched;

pub(super) use watched::is_stand_in;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use minijinja::value::Value;

use self::watched::{Log, Step, Watched};
use super::printed::{Names, names_in, told};
use crate::words::nearest;

/// The most that one template is told to miss.
const FOUND_MOST: usize = 16;
/// From this many letters on, a name that begins or ends with what was asked for is likely meant.
const TELLING: usize = 3;

/// Something that a template asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What was asked, as a template writes it; absent: the template's own names.
    pub of: Option<String>,
    /// What it was asked for.
    pub name: String,
    /// What it has.
    pub there: Vec<String>,
    /// The bytes of the template that ask.
    pub at: Range<usize>,
}

impl Missing {
    /// The name that was likely meant.
    #[must_use]
    pub fn meant(&self) -> Option<String> {
        let names = || self.there.iter().map(String::as_str);
        let wrong = self.name.as_str();
        nearest(wrong, names()).or_else(|| {
            let alike = |name: &&str| {
                let (short, long) = match wrong.len() < name.len() {
                    true => (wrong, *name),
                    false => (*name, wrong),
                };
                short.len() >= TELLING && (long.starts_with(short) || long.ends_with(short))
            };
            let mut alike = names().filter(alike);
            let first = alike.next()?;
            alike.next().is_none().then(|| first.to_owned())
        })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(of) => write!(f, "`{of}` has no `{}`", self.name)?,
            None => write!(f, "there is no `{}`", self.name)?,
        }
        match &self.of {
            _ if self.there.is_empty() => f.write_str("; it is empty")?,
            Some(_) => write!(f, "; it has {}", told(&self.there))?,
            None => write!(f, "; there are {}", told(&self.there))?,
        }
        match self.meant() {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

/// Something missing, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In which template.
    pub template: String,
    /// In which line of it, counted from 1.
    pub line: Option<usize>,
    /// What.
    pub missing: Missing,
}

/// What is wrong in the template that another one includes, and not that including it failed.
#[must_use]
pub fn innermost(error: &minijinja::Error) -> &minijinja::Error {
    let source = std::error::Error::source(error);
    match source.and_then(|source| source.downcast_ref::<minijinja::Error>()) {
        Some(inner) => innermost(inner),
        None => error,
    }
}

/// All that a template was missing which failed with `error` over `context`, at most [`FOUND_MOST`], in the order in which it asks;
/// empty if it failed at something else first. `template` says of which template an error is, and its text; `render` renders once
/// more.
#[must_use]
pub fn missing(
    error: &minijinja::Error,
    context: &Value,
    names: Names,
    template: impl Fn(&minijinja::Error) -> (String, String),
    render: impl Fn(Value) -> Result<String, minijinja::Error>,
) -> Vec<Found> {
    let log = Arc::new(Log::default());
    let again = || {
        log.vain().clear();
        let root = Watched {
            value: context.clone(),
            path: Arc::default(),
            log: Arc::clone(&log),
        };
        // What it says is of no interest, and may be a secret.
        render(Value::from_object(root))
            .map(zeroize::Zeroizing::new)
            .err()
    };
    let mut all = Vec::new();
    let mut later = again();
    let mut first = Some(error);
    while all.len() < FOUND_MOST {
        let Some(error) = first.take().or(later.as_ref()) else {
            break;
        };
        let error = innermost(error);
        let (name, source) = template(error);
        let Some((asked, at)) = log.asked(error, &source) else {
            break;
        };
        all.push(Found {
            template: name,
            line: error.line(),
            missing: Missing {
                of: (!asked.path.is_empty()).then(|| written(&asked.path, &source)),
                name: asked.key.clone(),
                there: names_in(&asked.value, names),
                at,
            },
        });
        log.filled().push(asked.wherever(&source));
        later = again();
    }
    all
}

/// A path as a template writes it; a key that is not in its text, which a loop may have gone through, is not told.
fn written(path: &[Step], source: &str) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if has_word(source, key) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                match (text.is_empty(), key.chars().all(plain)) {
                    (true, _) => text.push_str(key),
                    (false, true) => text.extend([".", key]),
                    (false, false) => text.extend(["[\"", key, "\"]"]),
                }
            }
            _ => text.push_str("[…]"),
        }
    }
    text
}

fn has_word(text: &str, word: &str) -> bool {
    words_in(text, word).next().is_some()
}

/// Where `word` stands in a text as a word of its own.
fn words_in(text: &str, word: &str) -> impl Iterator<Item = usize> {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let edge = move |c: Option<char>| c.is_none_or(|c| !inside(c));
    let matches = text
        .match_indices(word)
        .filter(|(_, found)| !found.is_empty());
    matches.filter_map(move |(at, found)| {
        let end = at.saturating_add(found.len());
        let before = text.get(..at)?.chars().next_back();
        let after = text.get(end..)?.chars().next();
        (edge(before) && edge(after)).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANTED: &str = "hunter2-hunter2";

    /// What a template is said to be missing, over one of each sort of value.
    fn said(source: &str) -> String {
        let mut engine = minijinja::Environment::new();
        engine.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        let template = engine.template_from_str(source).unwrap();
        let node =
            minijinja::context! { name => "atlas", address => "10.0.0.1", tags => vec!["eu"] };
        let account = minijinja::context! { username => "prod.billing.1", password => PLANTED };
        let nodes: std::collections::BTreeMap<String, Value> = (0..20)
            .map(|n| (format!("m-{n:02}"), node.clone()))
            .collect();
        let context = minijinja::context! {
            node => node,
            mesh => minijinja::context! { nodes => nodes },
            accounts => vec![account],
            nothing => minijinja::context! {},
            secret => PLANTED,
        };
        let error = template.render(&context).unwrap_err();
        let of = |_: &minijinja::Error| (String::new(), source.to_owned());
        let again = |values| template.render(values);
        let found = missing(&error, &context, |_| None, of, again);
        let said = match found.is_empty() {
            true => "nothing".to_owned(),
            false => {
                let said = found.iter().map(|found| found.missing.to_string());
                said.collect::<Vec<_>>().join("\n    ")
            }
        };
        assert!(!said.contains("hunter2"), "{said}");
        format!("{source}\n    {said}\n")
    }

    #[test]
    fn what_is_missing_is_said_at_any_depth_and_under_any_name() {
        let all = [
            "{{ nodes }}",
            "{{ zeus.name }}",
            "{{ node.adress }}",
            "{{ node.user }}",
            "{{ node['adress'] ~ '!' }}",
            "{{ mesh.nodes['m-00'].adress }}",
            "{{ mesh.nodes['m-77'].address }}",
            "{% for name in mesh.nodes %}{{ mesh.nodes[name].adress }}{% endfor %}",
            "{% for a in accounts %}{{ a.user }}{% endfor %}",
            "{% set a = accounts[0] %}{{ a.pass }}",
            "{% for x in node.tagz %}{% endfor %}",
            "{% if node.adress %}{% endif %}",
            "{{ nothing.at_all }}",
            "{{ zeus is defined }}{{ node.name }}{{ node.adress }}",
            "{{ zeus }}{% for a in accounts %}{{ a.user|upper }}{% endfor %}{% for x in none_of %}{{ x }}{% endfor %}{{ maybe|default('') }}{{ hera.all ~ node.adress }}{{ zeus }}{{ last[0] }}",
            "{% if zeus == 1 or not hera %}{{ node.adress }}{% endif %}",
            "{{ zeus }}{{ node.name.first }}{{ hera }}",
        ];
        insta::assert_snapshot!(all.map(said).concat(), @r#"
        {{ nodes }}
            there is no `nodes`; there are node, mesh, accounts, nothing, secret; did you mean `node`?
        {{ zeus.name }}
            there is no `zeus`; there are node, mesh, accounts, nothing, secret
        {{ node.adress }}
            `node` has no `adress`; it has name, address, tags; did you mean `address`?
        {{ node.user }}
            `node` has no `user`; it has name, address, tags
        {{ node['adress'] ~ '!' }}
            `node` has no `adress`; it has name, address, tags; did you mean `address`?
        {{ mesh.nodes['m-00'].adress }}
            `mesh.nodes["m-00"]` has no `adress`; it has name, address, tags; did you mean `address`?
        {{ mesh.nodes['m-77'].address }}
            `mesh.nodes` has no `m-77`; it has m-00, m-01, m-02, m-03, m-04, m-05, m-06, m-07, m-08, m-09, m-10, m-11 and 8 more; did you mean `m-07`?
        {% for name in mesh.nodes %}{{ mesh.nodes[name].adress }}{% endfor %}
            `mesh.nodes[…]` has no `adress`; it has name, address, tags; did you mean `address`?
        {% for a in accounts %}{{ a.user }}{% endfor %}
            `accounts[…]` has no `user`; it has username, password; did you mean `username`?
        {% set a = accounts[0] %}{{ a.pass }}
            `accounts[…]` has no `pass`; it has username, password; did you mean `password`?
        {% for x in node.tagz %}{% endfor %}
            `node` has no `tagz`; it has name, address, tags; did you mean `tags`?
        {% if node.adress %}{% endif %}
            `node` has no `adress`; it has name, address, tags; did you mean `address`?
        {{ nothing.at_all }}
            `nothing` has no `at_all`; it is empty
        {{ zeus is defined }}{{ node.name }}{{ node.adress }}
            `node` has no `adress`; it has name, address, tags; did you mean `address`?
        {{ zeus }}{% for a in accounts %}{{ a.user|upper }}{% endfor %}{% for x in none_of %}{{ x }}{% endfor %}{{ maybe|default('') }}{{ hera.all ~ node.adress }}{{ zeus }}{{ last[0] }}
            there is no `zeus`; there are node, mesh, accounts, nothing, secret
            `accounts[…]` has no `user`; it has username, password; did you mean `username`?
            there is no `none_of`; there are node, mesh, accounts, nothing, secret
            there is no `hera`; there are node, mesh, accounts, nothing, secret
            `node` has no `adress`; it has name, address, tags; did you mean `address`?
            there is no `last`; there are node, mesh, accounts, nothing, secret
        {% if zeus == 1 or not hera %}{{ node.adress }}{% endif %}
            there is no `zeus`; there are node, mesh, accounts, nothing, secret
            there is no `hera`; there are node, mesh, accounts, nothing, secret
            `node` has no `adress`; it has name, address, tags; did you mean `address`?
        {{ zeus }}{{ node.name.first }}{{ hera }}
            there is no `zeus`; there are node, mesh, accounts, nothing, secret
        "#);
    }

    #[test]
    fn what_is_not_known_for_certain_is_not_said() {
        let all = [
            "{{ node.name.first }}",
            "{{ accounts[7] }}",
            "{% set x = zeus is defined %}{{ accounts[7] }}",
            "{{ node[secret] }}",
            "{{ node[secret].name }}",
            "{% for a in accounts %}{{ loop.nothing }}{% endfor %}",
        ];
        for source in all {
            assert!(said(source).ends_with("    nothing\n"), "{}", said(source));
        }
    }
}
