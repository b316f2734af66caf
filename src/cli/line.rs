//! A line of output: pieces with a look, columns, and how it is broken where a terminal is narrower than it.
//!
//! Threat: what a machine, a file or an environment says must not steer the terminal, so every text goes through
//! [`clean`] on its way into a [`Line`].

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// On a narrower terminal lines are broken as for this width, in columns.
const NARROWEST: usize = 20;
/// How far what goes on in a further line is indented where no column says so.
const INDENT: usize = 4;
/// What is left between two columns where they have to stand closer.
const GAP: usize = 2;

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// As it is.
    Plain,
    /// A name, a heading.
    Strong,
    /// What is as it should be.
    Good,
    /// What waits or is on hold.
    Warn,
    /// What failed.
    Bad,
    /// What matters less.
    Faint,
}

impl Look {
    const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Faint => Style::new().dimmed(),
        }
    }
}

/// A text without anything that could steer a terminal: control characters, and the marks that turn the direction
/// of what is shown, become U+FFFD.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                '\u{fffd}'
            }
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// One line of output.
#[derive(Debug, Clone, Default)]
pub struct Line {
    pieces: Vec<(Look, String)>,
    /// Where columns begin, in characters.
    columns: Vec<usize>,
    verbatim: bool,
}

impl Line {
    /// An empty line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A plain line.
    #[must_use]
    pub fn of(text: impl Display) -> Self {
        Self::new().plain(text)
    }

    /// What is to be known besides the result: `note: …`.
    #[must_use]
    pub fn note(text: impl Display) -> Self {
        Self::new().look(Look::Warn, "note: ").plain(text)
    }

    /// Goes on in this look.
    #[must_use]
    pub fn look(mut self, look: Look, text: impl Display) -> Self {
        self.pieces.push((look, clean(&text.to_string())));
        self
    }

    /// Goes on as it is.
    #[must_use]
    pub fn plain(self, text: impl Display) -> Self {
        self.look(Look::Plain, text)
    }

    /// Goes on in this look, filled up with spaces to `width` characters. What follows is a column of its own.
    #[must_use]
    pub fn column(self, look: Look, text: impl Display, width: usize) -> Self {
        let text = text.to_string();
        let rest = width.saturating_sub(text.chars().count());
        let mut line = self.look(look, text).plain(" ".repeat(rest));
        let length = line.pieces.iter().map(|(_, piece)| piece.chars().count());
        line.columns.push(length.sum());
        line
    }

    /// The same, never broken: what stands in it has its place.
    #[must_use]
    pub fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    /// The line with its escapes, without spaces at its end, and with its newline. On a terminal that is `width` columns
    /// wide it is broken between words, and goes on below its last column that leaves it the room.
    pub(super) fn styled(&self, width: Option<usize>) -> String {
        let mut all: Vec<(Look, char)> = self
            .pieces
            .iter()
            .flat_map(|(look, piece)| piece.chars().map(move |c| (*look, c)))
            .collect();
        trim_end(&mut all);
        let mut text = String::new();
        match width.map(|width| width.max(NARROWEST)) {
            Some(width) if !self.verbatim && all.len() > width => {
                for line in self.broken(all, width) {
                    paint(&line, &mut text);
                    text.push('\n');
                }
            }
            _ => {
                paint(&all, &mut text);
                text.push('\n');
            }
        }
        text
    }

    fn broken(&self, mut all: Vec<(Look, char)>, width: usize) -> Vec<Vec<(Look, char)>> {
        let margin = all.iter().take_while(|(_, c)| *c == ' ').count();
        let mut columns = self.columns.clone();
        columns.push(margin);
        let hang = columns
            .iter()
            .copied()
            .filter(|column| *column > 0 && *column <= width.saturating_mul(2) / 5)
            .max()
            .unwrap_or(INDENT);
        // The last column comes closer first; those before it stay below those of other lines.
        let last = columns.iter().copied().max().unwrap_or(0).min(all.len());
        if last > hang {
            let before = all.get(..last).unwrap_or_default();
            let spaces = before.iter().rev().take_while(|(_, c)| *c == ' ').count();
            let surplus = spaces.saturating_sub(GAP);
            all.drain(last.saturating_sub(surplus)..last);
            for column in columns.iter_mut().filter(|column| **column >= last) {
                *column = column.saturating_sub(surplus);
            }
        }
        let mut lines = Vec::new();
        let mut rest = all;
        let mut indent = 0;
        // How much of the line stands in earlier ones.
        let mut gone: usize = 0;
        loop {
            let room = width.saturating_sub(indent);
            let at = if rest.len() <= room {
                rest.len()
            } else {
                let behind = columns.iter().filter(|column| **column > hang);
                break_at(
                    &rest,
                    room,
                    behind.map(|column| column.saturating_sub(gone)),
                )
            };
            let mut further = rest.split_off(at.min(rest.len()));
            let spaces = further.iter().take_while(|(_, c)| *c == ' ').count();
            further.drain(..spaces);
            gone = gone.saturating_add(at).saturating_add(spaces);
            trim_end(&mut rest);
            let mut line = vec![(Look::Plain, ' '); indent];
            line.append(&mut rest);
            lines.push(line);
            if further.is_empty() {
                return lines;
            }
            rest = further;
            indent = hang;
        }
    }
}

/// Where to break a line: before its last column, so that this stands together; else at the last space that there is
/// room for; else at the first one behind: a word is never cut, so that a fingerprint can be copied.
fn break_at(line: &[(Look, char)], room: usize, columns: impl Iterator<Item = usize>) -> usize {
    let column = columns
        .filter(|column| *column > 0 && *column <= room)
        .max();
    let is_space = |at: &usize| line.get(*at).is_some_and(|(_, c)| *c == ' ');
    let first = line.iter().take_while(|(_, c)| *c == ' ').count();
    let space = (first.saturating_add(1)..=room).rev().find(is_space);
    column
        .or(space)
        .or_else(|| (room..line.len()).find(is_space))
        .unwrap_or(line.len())
        .max(1)
}

fn trim_end(line: &mut Vec<(Look, char)>) {
    while line.last().is_some_and(|(_, c)| c.is_whitespace()) {
        line.pop();
    }
}

fn paint(line: &[(Look, char)], text: &mut String) {
    for run in line.chunk_by(|(a, _), (b, _)| a == b) {
        let style = run.first().map_or(Look::Plain, |(look, _)| *look).style();
        let piece: String = run.iter().map(|(_, c)| *c).collect();
        text.push_str(&format!("{style}{piece}{style:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_can_steer_a_terminal() {
        let line = Line::new()
            .look(Look::Plain, "a\u{1b}[2Jb\r\u{202e}c")
            .plain("d\n");
        let shown = "a\u{fffd}[2Jb\u{fffd}\u{fffd}cd\u{fffd}\n";
        assert_eq!(line.styled(None), shown);
    }

    #[test]
    fn columns_are_counted_in_characters_and_a_line_ends_without_spaces() {
        let line = Line::new()
            .column(Look::Plain, "größe", 8)
            .column(Look::Plain, "x", 4)
            .plain("  ");
        assert_eq!(line.styled(None), "größe   x\n");
    }

    fn of_a_push(outcome: &str) -> Line {
        Line::new()
            .column(Look::Plain, "round 0", 9)
            .column(Look::Plain, "atlas", 10)
            .column(Look::Plain, "named", 9)
            .column(Look::Plain, "never sent", 38)
            .plain(outcome)
    }

    #[test]
    fn a_line_is_broken_between_words_and_goes_on_below_a_column() {
        let line = of_a_push("sent 0.4 s, loaded accounts, applied billing and more, check ok");
        let at = |width| line.styled(Some(width));
        insta::assert_snapshot!([at(200), at(100), at(80), at(40), at(5)].join("---\n"), @r#"
        round 0  atlas     named    never sent                            sent 0.4 s, loaded accounts, applied billing and more, check ok
        ---
        round 0  atlas     named    never sent
                                    sent 0.4 s, loaded accounts, applied billing and more, check ok
        ---
        round 0  atlas     named    never sent
                                    sent 0.4 s, loaded accounts, applied billing and
                                    more, check ok
        ---
        round 0  atlas     named    never sent
                 sent 0.4 s, loaded accounts,
                 applied billing and more, check
                 ok
        ---
        round 0  atlas
            named
            never sent
            sent 0.4 s,
            loaded accounts,
            applied billing
            and more, check
            ok
        "#);
    }

    #[test]
    fn columns_come_closer_before_a_line_is_broken() {
        let line = of_a_push("sent 0.4 s, loaded accounts");
        insta::assert_snapshot!(line.styled(Some(80)), @"round 0  atlas     named    never sent  sent 0.4 s, loaded accounts");
    }

    #[test]
    fn a_word_that_is_longer_than_the_terminal_stays_whole() {
        let word = "x".repeat(95);
        for width in [1, 20, 33, 40, 95, 96] {
            let text = Line::of(format!("error: {word} and more")).styled(Some(width));
            assert!(text.contains(&word), "{text}");
            assert!(text.lines().count() > 1, "{text}");
        }
        assert_eq!(Line::of("a b").verbatim().styled(Some(1)), "a b\n");
    }
}
