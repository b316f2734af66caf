//! Changes one key in the text of a declaration's file, and leaves every other byte as it is: comments,
//! order, formatting, line ends.
//!
//! Where the key stands on lines of its own, exactly its bytes are replaced. What stands in an inline
//! table, or has no header to stand below, is left to `toml_edit`.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use toml_edit::{Array, DocumentMut, Item, Value};

/// Which key is to be set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    /// `services` or `nodes`.
    pub section: &'a str,
    /// The name of the table in it.
    pub name: &'a str,
    /// The keys that are replaced, whichever stands there.
    pub old: &'a [&'a str],
}

/// The text with the key set, or taken away. `None`: the table does not stand in this text, or the
/// text is not TOML.
pub(super) fn set(text: &str, target: Target<'_>, new: Option<(&str, Value)>) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let item = table_of(document.get_ref(), target.section)?.get(target.name)?;
    let DeValue::Table(table) = item.get_ref() else {
        return None;
    };
    let below_header = starts_with(text, item.span(), '[');
    let entry = target.old.iter().find_map(|key| table.get_key_value(*key));
    match (entry, new) {
        (None, None) => Some(text.to_owned()),
        (Some((key, value)), Some((name, new))) if is_written_out(text, value) => {
            replaced(text, key, value, name, new)
        }
        (Some((key, value)), None)
            if is_written_out(text, value)
                && (below_header || is_dotted_line(text, key.span().start, target.section)) =>
        {
            without_line(text, key.span().start, value.span().end)
        }
        (None, Some((name, new))) if below_header => {
            below(text, item.span(), &format!("{name} = {}", plain(new)))
        }
        (_, new) => by_document(text, target, new),
    }
}

fn table_of<'a>(table: &'a DeTable<'a>, key: &str) -> Option<&'a DeTable<'a>> {
    match table.get(key)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

fn starts_with(text: &str, span: Range<usize>, first: char) -> bool {
    text.get(span).is_some_and(|text| text.starts_with(first))
}

/// Whether the bytes of a value are where its key is: not so for a table with a header of its own, or
/// one that is made of dotted keys.
fn is_written_out(text: &str, value: &Spanned<DeValue<'_>>) -> bool {
    match value.get_ref() {
        DeValue::Table(_) => starts_with(text, value.span(), '{'),
        DeValue::Array(_) => !text
            .get(value.span())
            .is_some_and(|text| text.starts_with("[[")),
        _ => true,
    }
}

/// Whether a key ends a dotted path that begins its line at the top: `services.billing.node`.
fn is_dotted_line(text: &str, key: usize, section: &str) -> bool {
    let before = text.get(..key).unwrap_or("");
    let line = before.rsplit('\n').next().unwrap_or("").trim();
    line.starts_with(section) && line.ends_with('.')
}

/// A value without what stands around it.
fn plain(mut value: Value) -> Value {
    value.decor_mut().clear();
    value
}

fn replaced(
    text: &str,
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    name: &str,
    new: Value,
) -> Option<String> {
    let new = plain(match new {
        Value::Array(new) => Value::Array(merged(text.get(value.span())?, new)),
        other => other,
    });
    let before = text.get(..key.span().start)?;
    let key_text = if key.get_ref() == name {
        text.get(key.span())?
    } else {
        name
    };
    let between = text.get(key.span().end..value.span().start)?;
    let after = text.get(value.span().end..)?;
    Some(format!("{before}{key_text}{between}{new}{after}"))
}

/// The new list in the formatting of the old one: what stays keeps its place and its comments.
fn merged(old: &str, new: Array) -> Array {
    let Ok(Value::Array(mut list)) = old.parse::<Value>() else {
        return new;
    };
    let wanted: Vec<&str> = new.iter().filter_map(Value::as_str).collect();
    let mut at = 0;
    while let Some(value) = list.get(at) {
        if value.as_str().is_some_and(|text| wanted.contains(&text)) {
            at = at.saturating_add(1);
            continue;
        }
        // What stands on the line before an element is a comment on the one before that; so the next
        // one's is on this one, and goes with it.
        let before = prefix(value).to_owned();
        list.remove(at);
        let joined = |next: &str| match (before.rfind('\n'), next.find('\n')) {
            (Some(line), Some(rest)) => {
                let (line, rest) = (before.get(..line), next.get(rest..));
                line.zip(rest).map(|(line, rest)| format!("{line}{rest}"))
            }
            _ => None,
        };
        if let Some(next) = list.get_mut(at) {
            if let Some(joined) = joined(prefix(next)) {
                next.decor_mut().set_prefix(joined);
            }
        } else if let Some(joined) = joined(list.trailing().as_str().unwrap_or("")) {
            list.set_trailing(joined);
        }
    }
    let line = list
        .iter()
        .map(prefix)
        .find_map(|prefix| prefix.rfind('\n').and_then(|at| prefix.get(at..)))
        .map(str::to_owned);
    for text in wanted {
        if list.iter().any(|known| known.as_str() == Some(text)) {
            continue;
        }
        let Some(line) = &line else {
            list.push(text);
            continue;
        };
        let last = list.len().saturating_sub(1);
        if !list.trailing_comma()
            && let Some(last) = list.get_mut(last)
        {
            let after = last.decor().suffix().and_then(|suffix| suffix.as_str());
            let after = after.unwrap_or("").to_owned();
            last.decor_mut().set_suffix("");
            list.set_trailing(after);
        }
        // A comment on the line of the last element stays on that line.
        let trailing = list.trailing().as_str().unwrap_or("").to_owned();
        let end = trailing.find('\n').unwrap_or(trailing.len());
        let (comment, rest) = trailing.split_at_checked(end).unwrap_or(("", "\n"));
        let mut value = Value::from(text);
        value.decor_mut().set_prefix(format!("{comment}{line}"));
        list.push_formatted(value);
        list.set_trailing(rest);
    }
    list
}

fn prefix(value: &Value) -> &str {
    let prefix = value.decor().prefix();
    prefix.and_then(|prefix| prefix.as_str()).unwrap_or("")
}

/// Takes a key away with its line; a comment after it stays, on the line alone.
fn without_line(text: &str, start: usize, end: usize) -> Option<String> {
    let (before, after) = (text.get(..start)?, text.get(end..)?);
    let line_start = before.rfind('\n').map_or(0, |at| at.saturating_add(1));
    let (rest, next) = match after.find('\n') {
        Some(at) => after.split_at_checked(at.saturating_add(1))?,
        None => (after, ""),
    };
    let line = text.get(line_start..start)?;
    let indent = line.len().saturating_sub(line.trim_start().len());
    let kept = match rest.trim_start() {
        "" => String::new(),
        comment => format!("{}{comment}", line.get(..indent)?),
    };
    Some(format!("{}{kept}{next}", text.get(..line_start)?))
}

/// Adds a line below a header, indented like its neighbour.
fn below(text: &str, header: Range<usize>, line: &str) -> Option<String> {
    let newline = text.get(header.end..)?.find('\n');
    let at = newline.map_or(text.len(), |at| {
        header.end.saturating_add(at).saturating_add(1)
    });
    let (before, after) = (text.get(..at)?, text.get(at..)?);
    let ending = if before.ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let opening = if newline.is_some() { "" } else { ending };
    let indent =
        |line: &str| -> String { line.chars().take_while(|c| " \t".contains(*c)).collect() };
    let next = after.lines().next().unwrap_or("");
    let indent = if next.trim().is_empty() || next.trim_start().starts_with(['[', '#']) {
        let header_line = text.get(..header.start)?;
        indent(header_line.rsplit('\n').next().unwrap_or(""))
    } else {
        indent(next)
    };
    Some(format!("{before}{opening}{indent}{line}{ending}{after}"))
}

fn by_document(text: &str, target: Target<'_>, new: Option<(&str, Value)>) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let item = document
        .get_mut(target.section)?
        .as_table_like_mut()?
        .get_mut(target.name)?;
    let table = item.as_table_like_mut()?;
    for key in target.old {
        table.remove(key);
    }
    if let Some((key, value)) = new {
        table.insert(key, Item::Value(value));
    }
    if let Some(inline) = item.as_inline_table_mut()
        && !inline.to_string().contains('\n')
    {
        inline.fmt(); // the spaces before and after what came or went
    }
    Some(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str, names: &[&str]) -> String {
        let new = match names {
            [] => None,
            [one] => Some(("node", Value::from(*one))),
            more => Some(("nodes", Value::Array(more.iter().copied().collect()))),
        };
        let target = Target {
            section: "services",
            name: "billing",
            old: &["node", "nodes"],
        };
        set(text, target, new).unwrap()
    }

    const FULL: &str = "\
# Who sends the invoices.
[services.billing]    # maria's

# It has to be near the customers.
node   =   \"atlas\"   # since May
apply = [\"true\"]

[services.other]
node = \"atlas\"
";

    #[test]
    fn a_key_is_replaced_where_it_stands_and_all_else_stays() {
        insta::assert_snapshot!(nodes(FULL, &["borealis"]), @r#"
        # Who sends the invoices.
        [services.billing]    # maria's

        # It has to be near the customers.
        node   =   "borealis"   # since May
        apply = ["true"]

        [services.other]
        node = "atlas"
        "#);
        insta::assert_snapshot!(nodes(FULL, &["borealis", "@eu"]), @r#"
        # Who sends the invoices.
        [services.billing]    # maria's

        # It has to be near the customers.
        nodes   =   ["borealis", "@eu"]   # since May
        apply = ["true"]

        [services.other]
        node = "atlas"
        "#);
    }

    #[test]
    fn a_key_is_taken_away_and_its_comments_stay() {
        insta::assert_snapshot!(nodes(FULL, &[]), @r#"
        # Who sends the invoices.
        [services.billing]    # maria's

        # It has to be near the customers.
        # since May
        apply = ["true"]

        [services.other]
        node = "atlas"
        "#);
        let bare = "[services.billing]\nnode = \"atlas\"\napply = [\"true\"]\n";
        assert_eq!(nodes(bare, &[]), "[services.billing]\napply = [\"true\"]\n");
        let last = "[services.billing]\nnode = \"atlas\"";
        assert_eq!(nodes(last, &[]), "[services.billing]\n");
    }

    #[test]
    fn a_key_is_added_below_its_header() {
        let text =
            "[services.billing] # maria's\n  apply = [\"true\"]\n[services.billing.limits]\n";
        insta::assert_snapshot!(nodes(text, &["atlas"]), @r#"
        [services.billing] # maria's
          node = "atlas"
          apply = ["true"]
        [services.billing.limits]
        "#);
        assert_eq!(
            nodes("[services.billing]", &["atlas"]),
            "[services.billing]\nnode = \"atlas\"\n"
        );
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        let text = "[services.billing]\r\napply = [\"true\"]\r\n";
        let with = nodes(text, &["atlas"]);
        assert_eq!(
            with,
            "[services.billing]\r\nnode = \"atlas\"\r\napply = [\"true\"]\r\n"
        );
        assert_eq!(nodes(&with, &[]), text);
    }

    #[test]
    fn a_list_over_several_lines_keeps_its_form_and_its_comments() {
        let text = "\
[services.billing]
nodes = [
  \"atlas\",     # the first
  \"borealis\",  # the second
  \"eridanus\",  # the third
]
";
        insta::assert_snapshot!(nodes(text, &["atlas", "eridanus", "@eu"]), @r#"
        [services.billing]
        nodes = [
          "atlas",     # the first
          "eridanus",  # the third
          "@eu",
        ]
        "#);
        let text = "[services.billing]\nnodes = [\n  \"atlas\",\n  \"borealis\"\n]\n";
        insta::assert_snapshot!(nodes(text, &["atlas", "borealis", "eridanus"]), @r#"
        [services.billing]
        nodes = [
          "atlas",
          "borealis",
          "eridanus"
        ]
        "#);
        insta::assert_snapshot!(nodes(text, &["eridanus"]), @r#"
        [services.billing]
        node = "eridanus"
        "#);
    }

    #[test]
    fn inline_and_dotted_tables_and_tables_without_a_header_are_edited_too() {
        let inline = "services.billing = { apply = [\"true\"], node = \"atlas\" } # x\n";
        insta::assert_snapshot!(nodes(inline, &["borealis"]), @r#"
        services.billing = { apply = ["true"], node = "borealis" } # x
        "#);
        insta::assert_snapshot!(nodes(inline, &[]), @r#"
        services.billing = { apply = ["true"] } # x
        "#);
        let inline = "[services]\nbilling = { apply = [\"true\"] } # x\n";
        insta::assert_snapshot!(nodes(inline, &["borealis"]), @r#"
        [services]
        billing = { apply = ["true"], node = "borealis" } # x
        "#);
        let dotted = "services.billing.node = \"atlas\" # x\nservices.billing.apply = [\"true\"]\n";
        insta::assert_snapshot!(nodes(dotted, &["borealis"]), @r#"
        services.billing.node = "borealis" # x
        services.billing.apply = ["true"]
        "#);
        insta::assert_snapshot!(nodes(dotted, &[]), @r#"
        # x
        services.billing.apply = ["true"]
        "#);
        let implied = "[[services.billing.files]] # x\npath = \"a\"\ncontent = \"b\"\n";
        insta::assert_snapshot!(nodes(implied, &["atlas"]), @r#"
        [services.billing]
        node = "atlas"
        [[services.billing.files]] # x
        path = "a"
        content = "b"
        "#);
    }

    #[test]
    fn a_table_with_a_header_of_its_own_gives_way_to_a_key() {
        let text =
            "[nodes.atlas]\nuser = \"x\"\n[nodes.atlas.hold] # y\nreason = \"z\"\n[nodes.b]\n";
        let target = Target {
            section: "nodes",
            name: "atlas",
            old: &["hold"],
        };
        insta::assert_snapshot!(set(text, target, Some(("hold", "now".into()))).unwrap(), @r#"
        [nodes.atlas]
        user = "x"
        hold = "now"
        [nodes.b]
        "#);
        insta::assert_snapshot!(set(text, target, None).unwrap(), @r#"
        [nodes.atlas]
        user = "x"
        [nodes.b]
        "#);
    }

    #[test]
    fn a_table_that_is_elsewhere_is_not_made_up() {
        let target = Target {
            section: "nodes",
            name: "atlas",
            old: &["hold"],
        };
        assert_eq!(set("[nodes.b]\n", target, None), None);
    }
}
