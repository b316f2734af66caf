//! JSON values printed as YAML, for `kubectl apply -f -`.
//!
//! Written here and not by a library: `kubectl` reads YAML 1.1, libraries write 1.2, and what differs is what stands in our
//! documents: a site named `no`, a fingerprint of digits with one `e` in it. The rule is simple and on the safe side of
//! both: a text stands without quotes only where it starts with a letter, holds nothing but letters, digits and `_ . - /`,
//! and is no word that YAML 1.1 reads as a truth value or as nothing. Everything else is quoted, in ASCII. Keys are sorted,
//! so that a value has one text.

use std::fmt::Write as _;

use serde_json::Value;

/// Words that YAML 1.1 or 1.2 reads as something else than a text, in lower case; those that do not start with a letter
/// are quoted anyway.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// One value as one YAML document.
#[must_use]
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0, false);
    out
}

/// Several values as one stream of documents.
#[must_use]
pub fn documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let documents: Vec<String> = values.into_iter().map(document).collect();
    documents.join("---\n")
}

/// Writes `value` as lines of their own; `begun` where the indentation of the first one is there already.
fn block(out: &mut String, value: &Value, indent: usize, begun: bool) {
    let mut begun = begun;
    let mut start = |out: &mut String| {
        if !std::mem::take(&mut begun) {
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match value {
        Value::Object(object) if !object.is_empty() => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_unstable_by_key(|(key, _)| key.as_str());
            for (key, member) in members {
                start(out);
                out.push_str(&scalar(key));
                out.push(':');
                match member {
                    Value::Object(inner) if !inner.is_empty() => {
                        out.push('\n');
                        block(out, member, indent.saturating_add(2), false);
                    }
                    Value::Array(inner) if !inner.is_empty() => {
                        out.push('\n');
                        block(out, member, indent, false);
                    }
                    _ => {
                        out.push(' ');
                        block(out, member, indent, true);
                    }
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                start(out);
                out.push_str("- ");
                block(out, item, indent.saturating_add(2), true);
            }
        }
        single => {
            start(out);
            match single {
                Value::String(text) => out.push_str(&scalar(text)),
                Value::Object(_) => out.push_str("{}"),
                Value::Array(_) => out.push_str("[]"),
                // Null, a truth value, a number: as in JSON.
                other => {
                    let _ = write!(out, "{other}");
                }
            }
            out.push('\n');
        }
    }
}

/// A text, quoted where it has to be.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len().saturating_add(2));
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            ' '..='~' => quoted.push(character),
            other => {
                let code = u32::from(other);
                // Writing to a String does not fail.
                let _ = if code <= 0xffff {
                    write!(quoted, "\\u{code:04x}")
                } else {
                    write!(quoted, "\\U{code:08x}")
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

fn is_plain(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/');
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(allowed)
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_tables_nest() {
        let value = json!({
            "b": [{ "y": 1, "x": [] }, [1, [2, {}]], "text", { "deep": { "er": [{}] } }],
            "a": { "no": true, "empty": {}, "nothing": null, "minus": -1.5 },
            "": "",
        });
        insta::assert_snapshot!(document(&value), @r#"
        "": ""
        a:
          empty: {}
          minus: -1.5
          "no": true
          nothing: null
        b:
        - x: []
          "y": 1
        - - 1
          - - 2
            - {}
        - text
        - deep:
            er:
            - {}
        "#);
        assert_eq!(document(&json!("x")), "x\n");
        assert_eq!(document(&json!([])), "[]\n");
        assert_eq!(
            documents([&json!({ "a": 1 }), &json!({ "b": 2 })]),
            "a: 1\n---\nb: 2\n"
        );
    }

    #[test]
    fn a_text_that_another_version_of_yaml_reads_as_something_else_is_quoted() {
        for text in [
            "",
            "no",
            "No",
            "NO",
            "y",
            "on",
            "off",
            "null",
            "True",
            "~",
            "1",
            "1e3",
            "0x1f",
            "0o7",
            "12:30:45",
            ".inf",
            "-1",
            "1_000",
            "2026-11-30",
            "123e4567",
            "=",
            "<<",
            "-",
            "?",
            "a: b",
            "a #b",
            "- a",
            "{a}",
            "[a]",
            "&a",
            "*a",
            "!a",
            "|",
            ">",
            "%",
            "@",
            "`",
            "'",
            " a",
            "a ",
            "a\nb",
            "a\tb",
            "é",
            "\u{feff}",
            "\u{2028}",
            "\u{1f600}",
            "\u{7f}",
            "---",
            "...",
            "a:",
        ] {
            let quoted = scalar(text);
            assert!(quoted.starts_with('"') && quoted.is_ascii(), "{text:?}");
        }
        for text in [
            "prod",
            "tls.crt",
            "kubernetes.io/tls",
            "v1alpha1",
            "e1",
            "nope",
            "a-b_c",
        ] {
            assert_eq!(scalar(text), text);
        }
        assert_eq!(
            scalar("a\"\\\n\u{1f600}é\u{0}"),
            "\"a\\\"\\\\\\n\\U0001f600\\u00e9\\u0000\""
        );
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z0-9:.~ -]{0,6}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map("[a-z0-9:~ ]{0,5}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_reader_of_yaml_gets_the_value_back(value in any_value()) {
            let read: Value = serde_yaml_ng::from_str(&document(&value)).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
