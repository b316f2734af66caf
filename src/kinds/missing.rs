//! What a template asked for that is not there, and what there is instead.
//!
//! A template that failed is rendered once more over the same values, which now remember what they were asked for in vain. So what
//! is missing is known at any depth and under any name that the template gave to what it asked.
//!
//! Threat: a key may be computed, so that it may be a secret. Of keys that were asked for, only what stands in the template's own text is
//! told.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};

use crate::words::nearest;

/// The most names that are told of what has more.
const TOLD_MOST: usize = 12;
/// The most vain askings that are remembered; the last ones are.
const REMEMBERED_MOST: usize = 64;
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
        let told = self.there.get(..TOLD_MOST).unwrap_or(&self.there);
        match &self.of {
            _ if told.is_empty() => f.write_str("; it is empty")?,
            Some(_) => write!(f, "; it has {}", told.join(", "))?,
            None => write!(f, "; there are {}", told.join(", "))?,
        }
        let more = self.there.len().saturating_sub(told.len());
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        match self.meant() {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

/// The names that a value has, where iterating over it does not give them.
pub type Names = fn(&Value) -> Option<Vec<String>>;

/// What the template was missing that failed with `error` over `context`, if it was something. `source` is the text of the
/// template that the error names, and `render` renders once more.
#[must_use]
pub fn missing(
    error: &minijinja::Error,
    source: &str,
    context: &Value,
    names: Names,
    render: impl FnOnce(Value) -> Result<String, minijinja::Error>,
) -> Option<Missing> {
    if error.kind() != minijinja::ErrorKind::UndefinedError {
        return None;
    }
    let at = error.range()?;
    let expression = source.get(at.clone())?;
    let vain = Arc::new(Mutex::new(Vec::new()));
    let root = Watched {
        value: context.clone(),
        path: Vec::new(),
        names,
        vain: Arc::clone(&vain),
    };
    // What it says is of no interest, and may be a secret.
    drop(render(Value::from_object(root)).map(zeroize::Zeroizing::new));
    let vain = vain.lock().ok()?;
    let asked = vain
        .iter()
        .rev()
        .find(|asked| has_word(expression, &asked.key))?;
    Some(Missing {
        of: (!asked.path.is_empty()).then(|| written(&asked.path, source)),
        name: asked.key.clone(),
        there: asked.there.clone(),
        at,
    })
}

/// One step from a value to one in it.
#[derive(Debug, Clone)]
enum Step {
    Key(String),
    /// Of a sequence, or by a key that is no text.
    Some,
}

/// A vain asking.
struct Asked {
    path: Vec<Step>,
    key: String,
    there: Vec<String>,
}

/// A value that remembers what it was asked for in vain, as do those in it.
struct Watched {
    value: Value,
    path: Vec<Step>,
    names: Names,
    vain: Arc<Mutex<Vec<Asked>>>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl Watched {
    fn there(&self) -> Vec<String> {
        (self.names)(&self.value).unwrap_or_else(|| {
            let keys = self.value.try_iter().into_iter().flatten();
            keys.filter_map(|key| key.as_str().map(str::to_owned))
                .collect()
        })
    }
}

impl Object for Watched {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.value.kind() {
            ValueKind::Seq => ObjectRepr::Seq,
            _ => ObjectRepr::Map,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let found = self.value.get_item(key).ok()?;
        if found.is_undefined() {
            if let (Some(key), Ok(mut vain)) = (key.as_str(), self.vain.lock()) {
                if vain.len() >= REMEMBERED_MOST {
                    vain.remove(0);
                }
                vain.push(Asked {
                    path: self.path.clone(),
                    key: key.to_owned(),
                    there: self.there(),
                });
            }
            return None;
        }
        if !matches!(found.kind(), ValueKind::Map | ValueKind::Seq) {
            return Some(found);
        }
        let step = key.as_str().map(|key| Step::Key(key.to_owned()));
        let step = std::iter::once(step.unwrap_or(Step::Some));
        Some(Value::from_object(Self {
            value: found,
            path: self.path.iter().cloned().chain(step).collect(),
            names: self.names,
            vain: Arc::clone(&self.vain),
        }))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match (self.value.kind(), self.value.len()) {
            (ValueKind::Seq, Some(length)) => Enumerator::Seq(length),
            _ => match self.value.try_iter() {
                Ok(keys) => Enumerator::Values(keys.collect()),
                Err(_) => Enumerator::NonEnumerable,
            },
        }
    }
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
    word_in(text, word).is_some()
}

/// Where `word` first stands in a text as a word of its own.
pub(super) fn word_in(text: &str, word: &str) -> Option<Range<usize>> {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let edge = |c: Option<char>| c.is_none_or(|c| !inside(c));
    if word.is_empty() {
        return None;
    }
    text.match_indices(word).find_map(|(at, found)| {
        let end = at.saturating_add(found.len());
        let before = text.get(..at)?.chars().next_back();
        let after = text.get(end..)?.chars().next();
        (edge(before) && edge(after)).then_some(at..end)
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
        let again = |values| template.render(values);
        let found = missing(&error, source, &context, |_| None, again);
        let said = found.map_or_else(|| "nothing".to_owned(), |missing| missing.to_string());
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
