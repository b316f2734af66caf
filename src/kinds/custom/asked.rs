//! Which names the text of a template asks for that nothing fills in, wherever in it, also where no rendering has led yet.
//!
//! The engine knows the names that a text does not declare, but takes a name that is set within an `{% if %}` as not declared after
//! it, where it is, and knows nothing of `default` and `is defined`. Such names are left out here, and one too many rather than one
//! too few: what is found is wrong wherever it is reached.

use std::collections::BTreeSet;
use std::ops::Range;

use minijinja::Environment;

/// A name that is asked for and that nothing fills in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unknown {
    pub name: String,
    /// Where it stands first, in bytes.
    pub at: Range<usize>,
}

/// The names in the template `source` that are none of `known`, none of the engine's own, that it gives itself nowhere and that
/// are asked for as if they were there, in the order in which they stand in it; none, if it does not parse.
pub(super) fn unknown(engine: &Environment<'_>, source: &str, known: &[&str]) -> Vec<Unknown> {
    let Ok(template) = engine.template_from_str(source) else {
        return Vec::new();
    };
    let undeclared = template.undeclared_variables(false);
    let globals: BTreeSet<&str> = engine.globals().map(|(name, _)| name).collect();
    let words = words(source);
    let fine = fine(&words);
    let unknown = undeclared.into_iter().filter(|name| {
        let name = name.as_str();
        !known.contains(&name) && !globals.contains(name) && !fine.contains(name)
    });
    let mut unknown: Vec<Unknown> = unknown
        .filter_map(|name| {
            let before = std::iter::once("").chain(words.iter().map(|word| word.text));
            let mut stands = words.iter().zip(before);
            let (first, _) = stands.find(|(word, before)| word.text == name && *before != ".")?;
            let start = first.start;
            let at = start..start.saturating_add(name.len());
            Some(Unknown { name, at })
        })
        .collect();
    unknown.sort_by_key(|unknown| unknown.at.start);
    unknown
}

/// A name or a sign within the tags of a template.
struct Word<'a> {
    text: &'a str,
    start: usize,
}

/// What stands within the tags of `source`, texts in quotes left out.
fn words(source: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some((begin, end)) = next_tag(source, at) {
        let tag = source.get(begin..end).unwrap_or("");
        if !tag.starts_with("{#") {
            split(tag, begin, &mut words);
        }
        at = end;
    }
    words
}

/// Where the next tag from `from` on begins and ends.
fn next_tag(source: &str, from: usize) -> Option<(usize, usize)> {
    let rest = source.get(from..)?;
    let (open, close) = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")]
        .into_iter()
        .filter_map(|(open, close)| Some((rest.find(open)?, close)))
        .min_by_key(|(open, _)| *open)?;
    let begin = from.saturating_add(open);
    let inside = source.get(begin..)?;
    let mut quote = None;
    for (at, c) in inside.char_indices() {
        match quote {
            Some(of) if c == of => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') && close != "#}" => quote = Some(c),
            None if inside.get(at..).is_some_and(|rest| rest.starts_with(close)) => {
                let length = at.saturating_add(close.len());
                return Some((begin, begin.saturating_add(length)));
            }
            None => {}
        }
    }
    None
}

fn split<'a>(tag: &'a str, begin: usize, words: &mut Vec<Word<'a>>) {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = tag;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => {
                let inside = rest.get(1..).unwrap_or("");
                inside
                    .find(first)
                    .map_or(rest.len(), |end| end.saturating_add(2))
            }
            first if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("{%") || rest.starts_with("%}") => 2,
            first => first.len_utf8(),
        };
        let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if !matches!(first, '"' | '\'' | '-' | '+') && !first.is_whitespace() {
            let start = begin.saturating_add(tag.len().saturating_sub(rest.len()));
            words.push(Word { text, start });
        }
        rest = after;
    }
}

/// The names that the text gives itself, or asks for as what may be missing.
fn fine<'a>(words: &[Word<'a>]) -> BTreeSet<&'a str> {
    let mut fine = BTreeSet::new();
    let text = |at: usize| words.get(at).map_or("", |word| word.text);
    for (at, word) in words.iter().enumerate() {
        let next = |by: usize| text(at.saturating_add(by));
        // `(name) | default`
        let after = (1..).find(|by| next(*by) != ")").unwrap_or(1);
        let next_after = |by: usize| next(after.saturating_add(by));
        let is_maybe = match next_after(0) {
            "|" => matches!(next_after(1), "default" | "d"),
            "is" if next_after(1) == "not" => is_test(next_after(2)),
            "is" => is_test(next_after(1)),
            _ => false,
        };
        if is_maybe {
            fine.insert(word.text);
        }
        if word.text == "{%" && matches!(next(1), "set" | "macro" | "import" | "from") {
            let given = words.iter().skip(at).skip(2).map(|word| word.text);
            fine.extend(given.take_while(|text| !matches!(*text, "=" | "%}")));
        }
    }
    fine
}

fn is_test(word: &str) -> bool {
    matches!(word, "defined" | "undefined")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> String {
        let engine = crate::kinds::engine::engine(|_| None);
        let unknown = unknown(&engine, source, &["accounts"]);
        let found = unknown.iter().map(|unknown| {
            assert_eq!(source[unknown.at.clone()], unknown.name);
            format!("{} at {}", unknown.name, unknown.at.start)
        });
        found.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_a_text_gives_itself_or_says_may_be_missing_is_not_asked_for_in_vain() {
        let fine = [
            "{% if accounts %}{% set a = 1 %}{% else %}{%- set a = 2 %}{% endif %}{{ a }}",
            "{% if accounts %}{% set a, b = [1, 2] %}{% endif %}{{ a }}{{ b }}",
            "{% if accounts %}{% set a %}x{% endset %}{% endif %}{{ a }}",
            "{% if accounts %}{% macro a(x) %}{{ x }}{% endmacro %}{% endif %}{{ a(1) }}",
            "{{ a|default(\"\") }}",
            "{{ a | d('x') }}",
            "{{ (a)|default(1) }}",
            "{% if a is defined %}{{ a }}{% endif %}",
            "{% if a is not defined %}x{% elif a is undefined %}y{% endif %}",
            "{{ a if a is defined else 7 }}",
            "{% for a in accounts %}{{ a }}{{ loop.index }}{% endfor %}{{ range(3) }}",
            "{# {{ a }} #}a {{ \"a\" }}",
            "{% raw %}a{% endraw %}",
        ];
        for source in fine {
            assert_eq!(found(source), "", "{source}");
        }
    }

    #[test]
    fn what_nothing_fills_in_is_found_where_a_tag_asks_for_it() {
        assert_eq!(
            found("a {# a #}{{ accounts.a ~ \"a\" }}{{ b ~ a }}"),
            "b at 34, a at 38"
        );
        assert_eq!(
            found("{% if accounts %}{{ a }}{% endif %}{% set b = a %}"),
            "a at 20"
        );
        assert_eq!(found("{{ a.b|default(1) }}"), "a at 3");
        assert_eq!(found("{{ a|upper }} is defined"), "a at 3");
        assert_eq!(found("{{ \"}}\" ~ a }}"), "a at 10");
        assert_eq!(found("{{ a"), "");
    }
}
