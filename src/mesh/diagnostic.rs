//! What is wrong with a declaration: all of it at once, each with its place, the line itself, what is
//! wrong and what would be right (DESIGN.md, section 2).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// How many characters of a line are shown, so that one long line does not fill the terminal.
const WIDEST_EXCERPT: usize = 120;
/// How many characters stand before the caret when a long line is cut.
const BEFORE_CARET: usize = 40;
/// How many characters an age secret key has at most, and then some.
const LONGEST_SECRET: usize = 128;

/// What sort of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiagnosticKind {
    /// There is no declaration in this folder.
    Missing,
    /// A file cannot be read, or is too large.
    Unreadable,
    /// It is not TOML.
    Syntax,
    /// It is TOML, but not a declaration that could be right.
    Declaration,
    /// It asks for another version of grid.
    Version,
    /// A template of it cannot be read, or is none.
    Template,
}

/// Where in a file something is wrong, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The line itself, control characters replaced; a long one is cut at `…`.
    pub excerpt: String,
    /// How many characters of the excerpt stand before what is wrong.
    pub caret: usize,
    /// How many characters of the excerpt are wrong; at least one.
    pub width: usize,
}

impl Position {
    /// The position of the bytes `start..end` of a line. A line may be as long as a file, and have many
    /// errors; only the column is counted over all of it.
    pub(super) fn new(line: usize, text: &str, start: usize, end: usize) -> Self {
        let start = text.floor_char_boundary(start);
        let end = text.floor_char_boundary(end).max(start);
        let (before, after) = text.split_at_checked(start).unwrap_or((text, ""));
        let column = before.chars().count().saturating_add(1);

        // How many characters are shown before the caret, and whether all of them fit.
        let short = text.chars().nth(WIDEST_EXCERPT).is_none();
        let lead = if short {
            column.saturating_sub(1)
        } else {
            column.saturating_sub(1).min(BEFORE_CARET)
        };
        let back = |count: usize| {
            let mut chars = before.char_indices().rev();
            match count.checked_sub(1) {
                None => before.len(),
                Some(last) => chars.nth(last).map_or(0, |(at, _)| at),
            }
        };
        let (from, far) = (back(lead), back(lead.saturating_add(LONGEST_SECRET)));
        let room = WIDEST_EXCERPT.saturating_sub(lead);
        let to = after
            .char_indices()
            .nth(room)
            .map_or(text.len(), |(at, _)| start.saturating_add(at));

        // A secret key may begin before what is shown.
        let shown = without_secret_keys(text.get(far..to).unwrap_or(""));
        let shown = shown.get(from.saturating_sub(far)..).unwrap_or("");
        let mut excerpt = String::new();
        if from > 0 {
            excerpt.push('…');
        }
        excerpt.extend(shown.chars().map(|c| match c {
            '\t' => ' ', // one column, as it is counted
            c if c.is_control() => '\u{fffd}',
            c => c,
        }));
        if to < text.len() {
            excerpt.push('…');
        }
        let wrong = text.get(start..end.min(to)).unwrap_or("");
        Self {
            line,
            column,
            excerpt,
            caret: lead.saturating_add(usize::from(from > 0)),
            width: wrong.chars().count().max(1),
        }
    }
}

impl Position {
    /// Shows the key of the line at most, and no value.
    pub(super) fn without_values(mut self) -> Self {
        if self.excerpt.trim_start().starts_with('[') {
            return self;
        }
        let keys = self.excerpt.find('=').unwrap_or(0);
        self.excerpt.truncate(keys);
        let shown = self.excerpt.chars().count();
        self.excerpt.push_str(if keys > 0 { "= …" } else { "…" });
        if self.caret >= shown {
            self.caret = shown.saturating_add(if keys > 0 { 2 } else { 0 });
            self.width = 1;
        }
        self
    }
}

/// The text with age's secret keys blotted out, character by character: somebody may have mistaken
/// one for a public key.
pub(super) fn without_secret_keys(text: &str) -> Cow<'_, str> {
    const MARK: &str = "AGE-SECRET-KEY-";
    let Some((before, after)) = text.split_once(MARK) else {
        return Cow::Borrowed(text);
    };
    let digits = |c: char| c.is_ascii_alphanumeric();
    let rest = after.trim_start_matches(digits);
    let blots = after.len().saturating_sub(rest.len());
    let rest = without_secret_keys(rest);
    Cow::Owned(format!("{before}{MARK}{}{rest}", "*".repeat(blots)))
}

/// One thing that is wrong with a declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Diagnostic {
    /// What sort of thing.
    pub kind: DiagnosticKind,
    /// The file, from where grid was started.
    pub file: String,
    /// Where in it; absent where the file as a whole is meant.
    #[serde(flatten)]
    pub at: Option<Position>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Diagnostic {
    /// Of a template's text; `range`: the bytes of it that are wrong, where that is known of the line.
    #[must_use]
    pub fn in_template(
        file: String,
        text: &str,
        line: usize,
        range: Option<Range<usize>>,
        message: String,
    ) -> Self {
        let number = line.max(1);
        let start = text
            .split_inclusive('\n')
            .take(number.saturating_sub(1))
            .map(str::len)
            .sum();
        let shown = text.get(start..).and_then(|rest| rest.lines().next());
        let shown = shown.unwrap_or("");
        let end = usize::saturating_add(start, shown.len());
        let in_line = range.filter(|range| range.start >= start && range.start <= end);
        let at = match in_line {
            Some(range) => Position::new(
                number,
                shown,
                range.start.saturating_sub(start),
                range.end.min(end).saturating_sub(start),
            ),
            None => {
                let indent = shown.len().saturating_sub(shown.trim_start().len());
                Position::new(number, shown, indent, shown.len())
            }
        };
        Self {
            kind: DiagnosticKind::Template,
            file,
            at: Some(at),
            message,
            help: None,
        }
    }

    /// Of a template that cannot be read.
    #[must_use]
    pub fn of_template(file: String, message: String) -> Self {
        Self {
            kind: DiagnosticKind::Template,
            file,
            at: None,
            message,
            help: None,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = &self.at else {
            write!(f, "{}: {}", self.file, self.message)?;
            return match &self.help {
                Some(help) => write!(f, "\n  = {help}"),
                None => Ok(()),
            };
        };
        let number = at.line.to_string();
        let margin = number.len();
        writeln!(f, "{}:{number}:{}: {}", self.file, at.column, self.message)?;
        writeln!(f, "  {number} | {}", at.excerpt)?;
        write!(
            f,
            "  {:margin$} | {:caret$}{}",
            "",
            "",
            "^".repeat(at.width),
            caret = at.caret
        )?;
        match &self.help {
            Some(help) => write!(f, "\n  {:margin$} = {help}", ""),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a declaration, in order of file and line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Diagnostics {
    /// At least one.
    pub errors: Vec<Diagnostic>,
    /// How many more there are than one run shows.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Diagnostics {
    /// One error.
    pub(super) fn one(diagnostic: Diagnostic) -> Self {
        Self {
            errors: vec![diagnostic],
            omitted: 0,
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.errors.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::Position;

    #[test]
    fn columns_are_counted_in_characters() {
        let text = "größe = \"ü\" # x";
        let at = Position::new(3, text, text.find('"').unwrap(), text.find(" #").unwrap());
        assert_eq!((at.line, at.column, at.caret, at.width), (3, 9, 8, 3));
    }

    #[test]
    fn a_long_line_is_cut_around_what_is_wrong() {
        let text = format!("{}WRONG{}", "a".repeat(1000), "b".repeat(1000));
        let at = Position::new(1, &text, 1000, 1005);
        assert_eq!(at.column, 1001);
        let marked: String = at.excerpt.chars().skip(at.caret).take(at.width).collect();
        assert_eq!(marked, "WRONG");
        assert_eq!(at.excerpt.chars().count(), 122);
    }

    #[test]
    fn a_place_after_the_end_of_its_line_is_marked_once() {
        let at = Position::new(1, "a = ", 4, 9);
        assert_eq!((at.column, at.width), (5, 1));
        let at = Position::new(1, "", 0, 0);
        assert_eq!((at.column, at.width), (1, 1));
    }

    #[test]
    fn no_secret_is_shown_that_was_written_by_mistake() {
        let text = "key = \"AGE-SECRET-KEY-1XYZ9\", \"AGE-SECRET-KEY-1A\"";
        let at = Position::new(1, text, 6, 10);
        assert_eq!(
            at.excerpt,
            "key = \"AGE-SECRET-KEY-*****\", \"AGE-SECRET-KEY-**\""
        );
        let long = format!("{}AGE-SECRET-KEY-1{}x", " ".repeat(500), "Z".repeat(60));
        let at = Position::new(1, &long, 570, 571);
        assert!(!at.excerpt.contains('Z'), "{}", at.excerpt);
        let hidden = |text: &str, start, end| {
            let at = Position::new(1, text, start, end).without_values();
            (at.excerpt, at.caret, at.width)
        };
        let value = "pass = \"hunter2\"";
        assert_eq!(hidden(value, 0, 4), ("pass = …".into(), 0, 4));
        assert_eq!(hidden(value, 7, 16), ("pass = …".into(), 7, 1));
        assert_eq!(hidden("  hunter2", 2, 9), ("…".into(), 0, 1));
        assert_eq!(hidden("[secrets.x]", 9, 10), ("[secrets.x]".into(), 9, 1));
    }

    #[test]
    fn nothing_in_a_line_can_steer_a_terminal() {
        let at = Position::new(1, "\u{1b}[2J\tx", 0, 1);
        assert_eq!(at.excerpt, "\u{fffd}[2J x");
    }
}
