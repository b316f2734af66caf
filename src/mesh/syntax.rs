//! Parses the declaration's files, and reports what is not TOML.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::diagnostic::DiagnosticKind;
use super::place::{Place, Problem};
use super::source::{Source, Sources};

/// For how many names declared twice in one file the other place is looked up: it costs a walk over
/// the file's lines.
const MOST_LOOKUPS: usize = 50;

/// The parsed files.
pub(super) struct Parsed<'a> {
    /// One for each file, as far as it could be parsed.
    pub tables: Vec<Spanned<DeTable<'a>>>,
    /// Whether nothing is missing in them; a name that is declared twice is there.
    pub whole: bool,
}

/// Parses all files; what is wrong in them is added to `problems`.
pub(super) fn parse<'a>(sources: &'a Sources, problems: &mut Vec<Problem>) -> Parsed<'a> {
    let mut whole = true;
    let mut tables = Vec::with_capacity(sources.files.len());
    for (file, source) in sources.files.iter().enumerate() {
        if let Some(at) = source.not_utf8 {
            whole = false;
            problems.push(
                Problem::new(
                    Place::new(file, at..at),
                    "this is not UTF-8",
                    "TOML is text in UTF-8; save the file as that",
                )
                .of(DiagnosticKind::Syntax),
            );
            tables.push(Spanned::new(0..0, DeTable::new()));
            continue;
        }
        let (table, errors) = DeTable::parse_recoverable(&source.text);
        let mut lookups = 0_usize;
        let mut last_line = None;
        for error in errors {
            let end = source.text.len();
            let span = error.span().unwrap_or(end..end);
            let place = Place::new(file, span.clone());
            if error.message() == "duplicate key" {
                lookups = lookups.saturating_add(1);
                let first = (lookups <= MOST_LOOKUPS)
                    .then(|| first_place(source, span))
                    .flatten();
                let first = first.map(|span| Place::new(file, span));
                problems.push(twice(sources, &source.text, place, first));
                continue;
            }
            whole = false;
            // What follows on the same line is mostly the parser looking for its way back.
            let line = line_around(&source.text, span.start).start;
            if last_line != Some(line) {
                let message = format!("this is not TOML: {}", error.message());
                problems.push(Problem::bare(place, message).of(DiagnosticKind::Syntax));
            }
            last_line = Some(line);
        }
        tables.push(table);
    }
    Parsed { tables, whole }
}

/// A name that is declared twice.
pub(super) fn twice(sources: &Sources, text: &str, second: Place, first: Option<Place>) -> Problem {
    let name = text.get(second.start..second.end).unwrap_or("this").trim();
    let message = format!("{name} is declared twice");
    match first {
        Some(first) => Problem::new(
            second,
            message,
            format!("the other one is at {}", sources.reference(first)),
        ),
        None => Problem::new(second, message, "take one of the two away"),
    }
}

/// The line in which a byte stands, without its end.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let (before, after) = match (text.get(..at), text.get(at..)) {
        (Some(before), Some(after)) => (before, after),
        _ => (text, ""),
    };
    let start = before
        .rfind('\n')
        .map_or(0, |newline| newline.saturating_add(1));
    let end = after
        .find('\n')
        .map_or(text.len(), |newline| at.saturating_add(newline));
    start..end
}

/// Where the name at `second` was declared first in the same file. The parser knows, but does not say.
fn first_place(source: &Source, second: Range<usize>) -> Option<Range<usize>> {
    let text = source.text.as_str();
    let line = line_around(text, second.start);
    let line_text = text.get(line.clone())?;
    let before = text.get(..line.start)?;
    if line_text.trim_start().starts_with('[') {
        let path = path_of(line_text)?;
        return headers(before).find_map(|(at, header)| {
            let found = path_of(header)?;
            let same =
                found.len() == path.len() && found.iter().zip(&path).all(|(a, b)| a.0 == b.0);
            let (_, span) = found.last().filter(|_| same)?;
            Some(at.saturating_add(span.start)..at.saturating_add(span.end))
        });
    }
    // A key: the first one of its table is before it, after the last header.
    let start = headers(before).last().map_or(0, |(at, _)| at);
    let block = text.get(start..line.start)?;
    let (table, _) = DeTable::parse_recoverable(block);
    let path = match block.trim_start().starts_with('[') {
        true => path_of(block.lines().next()?)?,
        false => Vec::new(),
    };
    let mut table = table.into_inner();
    for (name, _) in &path {
        table = match table.remove(name.as_str())?.into_inner() {
            DeValue::Table(table) => table,
            DeValue::Array(items) => match items.last()?.get_ref() {
                DeValue::Table(table) => table.clone(),
                _ => return None,
            },
            _ => return None,
        };
    }
    for (name, span) in path_of(line_text)? {
        let (key, value) = table.remove_entry(name.as_str())?;
        if span.start.saturating_add(line.start) == second.start {
            let span = key.span();
            return Some(span.start.saturating_add(start)..span.end.saturating_add(start));
        }
        table = match value.into_inner() {
            DeValue::Table(table) => table,
            _ => return None,
        };
    }
    None
}

/// The lines that look like headers, with where they begin. A line of a text of several lines may look
/// like one; then the other place is not found, or not the first.
fn headers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0_usize;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at = at.saturating_add(line.len());
        line.trim_start().starts_with('[').then_some((start, line))
    })
}

/// The dotted path of a line that is a header or a key and its value, with the place of each part in it.
fn path_of(line: &str) -> Option<Vec<(String, Range<usize>)>> {
    let (table, _) = DeTable::parse_recoverable(line);
    let mut path = Vec::new();
    let header = line.trim_start().starts_with('[');
    descend(table.get_ref(), header, &mut path);
    (!path.is_empty()).then_some(path)
}

fn descend(table: &DeTable<'_>, header: bool, path: &mut Vec<(String, Range<usize>)>) {
    let Some((key, value)) = table.iter().next() else {
        return;
    };
    let key: &Spanned<DeString<'_>> = key;
    path.push((key.get_ref().to_string(), key.span()));
    match value.get_ref() {
        DeValue::Table(below) if header || below.len() == 1 => descend(below, header, path),
        DeValue::Array(items) if header => {
            if let Some(DeValue::Table(below)) = items.first().map(Spanned::get_ref) {
                descend(below, header, path);
            }
        }
        _ => {}
    }
}
