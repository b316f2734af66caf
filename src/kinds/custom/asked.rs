//! Which names the text of a template asks for that nothing fills in, wherever in it, also where no rendering has led yet.
//!
//! The engine knows the names that a text does not declare, but takes a name that is set within an `{% if %}` as not declared after
//! it, where it is, and knows nothing of `default` and `is defined`. Such names are left out here, and one too many rather than one
//! too few: what is found is wrong wherever it is reached. Whether a name is declared is the engine's to say; only where it stands, and
//! whether it is asked for as if it were there, is read here, since the engine shows its parsed text to nobody.

use std::collections::{BTreeMap, BTreeSet};
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
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let before = std::iter::once("").chain(words.iter().map(|word| word.text));
    for (word, before) in words.iter().zip(before) {
        if before != "." {
            first.entry(word.text).or_insert(word.start);
        }
    }
    let unknown = undeclared.into_iter().filter(|name| {
        let name = name.as_str();
        !known.contains(&name) && !globals.contains(name) && !fine.contains(name)
    });
    let mut unknown: Vec<Unknown> = unknown
        .filter_map(|name| {
            let start = *first.get(name.as_str())?;
            let at = start..start.saturating_add(name.len());
            Some(Unknown { name, at })
        })
        .collect();
    unknown.sort_by_key(|unknown| unknown.at.start);
    unknown
}

/// A name or a sign within the tags of a template; of a block, also what opens and closes it.
struct Word<'a> {
    text: &'a str,
    start: usize,
}

/// What stands within the tags of `source`, texts in quotes left out. It parses.
fn words(source: &str) -> Vec<Word<'_>> {
    let mut reader = Reader {
        source,
        at: 0,
        words: Vec::new(),
    };
    while reader.pass("{") {
        match reader.rest().chars().next() {
            Some('{') => reader.tag("}}"),
            Some('%') => reader.block(),
            Some('#') => {
                reader.forward(1);
                reader.pass("#}");
            }
            _ => {}
        }
    }
    reader.words
}

/// Reads a template as the engine does. It only ever goes on from where it is, so that a text is read in one go, however many tags
/// it has.
struct Reader<'a> {
    source: &'a str,
    at: usize,
    words: Vec<Word<'a>>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn forward(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    /// Goes past the next `text`, or to the end where there is none.
    fn pass(&mut self, text: &str) -> bool {
        let found = self.rest().find(text);
        let bytes = found.map_or(self.rest().len(), |found| found.saturating_add(text.len()));
        self.forward(bytes);
        found.is_some()
    }

    fn word(&mut self, bytes: usize) {
        let text = self.rest().get(..bytes).unwrap_or("");
        let start = self.at;
        self.words.push(Word { text, start });
        self.forward(bytes);
    }

    /// A `{%` is behind, but for its `%`.
    fn block(&mut self) {
        if is_only(self.rest(), "raw") {
            while self.pass("{%") && !is_only(self.rest(), "endraw") {}
            return;
        }
        let start = self.at.saturating_sub(1);
        let text = self.source.get(start..self.at.saturating_add(1));
        let text = text.unwrap_or("");
        self.words.push(Word { text, start });
        self.tag("%}");
    }

    /// A tag whose first sign is behind, to its end. What closes it is no end of it within brackets.
    fn tag(&mut self, close: &str) {
        self.forward(1);
        let mut open = 0_usize;
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        while let Some(first) = self.rest().chars().next() {
            match first {
                _ if open == 0 && self.rest().starts_with(close) => {
                    return self.word(close.len());
                }
                '"' | '\'' => self.quoted(first),
                '-' | '+' => self.forward(1),
                _ if first.is_whitespace() => self.forward(first.len_utf8()),
                _ if is_name(first) => {
                    let rest = self.rest();
                    self.word(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
                }
                _ => {
                    match first {
                        '(' | '[' | '{' => open = open.saturating_add(1),
                        ')' | ']' | '}' => open = open.saturating_sub(1),
                        _ => {}
                    }
                    self.word(first.len_utf8());
                }
            }
        }
    }

    /// A text in quotes, in which a `\` takes what follows it as it is.
    fn quoted(&mut self, quote: char) {
        self.forward(1);
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.find(|c: char| {
            let is_end = c == quote && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        self.forward(end.map_or(rest.len(), |end| end.saturating_add(1)));
    }
}

/// Whether the tag of a block holds only the word `name`, and ends; its `{%` is behind, or all of it but the `%`.
fn is_only(rest: &str, name: &str) -> bool {
    let rest = rest.strip_prefix('%').unwrap_or(rest);
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let blank = |c: char| c.is_ascii_whitespace();
    let after = rest.trim_start_matches(blank).strip_prefix(name);
    after.is_some_and(|after| {
        let after = after.trim_start_matches(blank);
        after
            .strip_prefix(['-', '+'])
            .unwrap_or(after)
            .starts_with("%}")
    })
}

/// The names that the text gives itself, or asks for as what may be missing.
fn fine<'a>(words: &[Word<'a>]) -> BTreeSet<&'a str> {
    let mut fine = BTreeSet::new();
    let text = |at: usize| words.get(at).map_or("", |word| word.text);
    for (at, word) in words.iter().enumerate() {
        let next = |by: usize| text(at.saturating_add(by));
        // `(name) | default`
        let after = match word.text {
            ")" => 1,
            _ => (1..).find(|by| next(*by) != ")").unwrap_or(1),
        };
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

    #[test]
    fn a_tag_ends_where_the_engine_has_it_end() {
        let ends = [
            (r#"{{ "\"" ~ a }}"#, "a at 10"),
            (r#"{{ "\\" ~ a ~ "a" }}"#, "a at 10"),
            (r#"{{ '\'}}' ~ a }} a {{ b }}"#, "a at 12, b at 22"),
            (r#"{{ "it's" ~ a }}{{ 'b' }}"#, "a at 12"),
            ("{{ {'a': {}}['a'] ~ a }}", "a at 20"),
            ("{#}{{ a }} #}{{ b }}", "b at 16"),
            ("{#- {{ \"a -#}{%- if a -%}{% endif %}", "a at 20"),
            (
                "{%- raw -%} {{ a }} {% a %}{% \" {%- endraw -%}{{ a }}",
                "a at 49",
            ),
            (
                "{% raw %}{% set a = 1 %}{{ b is defined }}{% endraw %}{{ a }}{{ b }}",
                "a at 57, b at 64",
            ),
            ("{ {a} {{ a }", ""),
            ("é{{ 'é' ~ a }}", "a at 12"),
        ];
        for (source, names) in ends {
            assert_eq!(found(source), names, "{source}");
        }
    }

    /// To look through the rest of the text at each of its tags, or for each of its names, would take minutes.
    #[test]
    fn a_text_of_many_tags_and_of_many_names_is_read_in_one_go() {
        let many = 40_000;
        let tags = "{{ accounts }}\n".repeat(many);
        assert_eq!(found(&format!("{tags}{{{{ a }}}}")), "a at 600003");
        let names: String = (0..many).map(|n| format!("{{{{ a{n} }}}}\n")).collect();
        assert_eq!(found(&names).split(", ").count(), many);
        let brackets = format!("{{% raw %}}{}{{% endraw %}}", "{% set (".repeat(many));
        assert_eq!(found(&brackets), "");
    }
}
