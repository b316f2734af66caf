//! The only place that writes to the program's streams: results on stdout, everything else on stderr.
//!
//! Threats: what a machine, a file or an environment says must not steer the terminal, so every text goes through
//! [`clean`] on its way into a [`Line`], and only this file writes escapes. A reader that goes away (`grid status |
//! head`) is no error.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::exit::CommandError;

/// When there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

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

    /// Goes on in this look, filled up with spaces to `width` characters.
    #[must_use]
    pub fn column(self, look: Look, text: impl Display, width: usize) -> Self {
        let text = text.to_string();
        let rest = width.saturating_sub(text.chars().count());
        self.look(look, text).plain(" ".repeat(rest))
    }

    /// The line with its escapes, without spaces at its end.
    fn styled(&self) -> String {
        let mut text = String::new();
        let last = self
            .pieces
            .iter()
            .rposition(|(_, piece)| !piece.trim_end().is_empty());
        for (index, (look, piece)) in self.pieces.iter().enumerate() {
            let piece = match last {
                Some(last) if index < last => piece.as_str(),
                Some(last) if index == last => piece.trim_end(),
                _ => continue,
            };
            let style = look.style();
            text.push_str(&format!("{style}{piece}{style:#}"));
        }
        text
    }
}

/// The program's streams.
pub struct Ui {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    bars: Arc<Bars>,
    choice: ColorChoice,
    /// `--json`.
    pub json: bool,
    /// `-v`.
    pub verbose: bool,
    /// `--quiet`.
    pub quiet: bool,
    /// Whether a person can be asked: stdin and stderr are a terminal.
    pub interactive: bool,
}

impl std::fmt::Debug for Ui {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ui")
    }
}

impl Ui {
    /// The streams of this process.
    #[must_use]
    pub fn new(color: Color) -> Self {
        let choice = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self {
            out: AutoStream::new(io::stdout(), choice),
            err: AutoStream::new(io::stderr(), choice),
            bars: Arc::default(),
            choice,
            json: false,
            verbose: false,
            quiet: false,
            interactive: io::stdin().is_terminal() && io::stderr().is_terminal(),
        }
    }

    /// Shows progress bars from now on, if stderr is a terminal. Lines are written between them.
    pub(super) fn show_bars(&mut self) -> Option<indicatif::MultiProgress> {
        if self.json || self.quiet || !io::stderr().is_terminal() {
            return None;
        }
        let bars = indicatif::MultiProgress::new();
        *lock(&self.bars) = Some(bars.clone());
        Some(bars)
    }

    /// Takes the bars away.
    pub(super) fn hide_bars(&mut self) {
        if let Some(bars) = lock(&self.bars).take() {
            // A terminal that is gone shows no bars.
            let _ = bars.clear();
        }
    }

    /// A line of the result.
    ///
    /// # Errors
    /// When stdout cannot be written to, but for a reader that went away.
    pub fn result(&mut self, line: &Line) -> Result<(), CommandError> {
        self.results(std::slice::from_ref(line))
    }

    /// Lines of the result, written at once.
    ///
    /// # Errors
    /// Those of [`Ui::result`].
    pub fn results(&mut self, lines: &[Line]) -> Result<(), CommandError> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.styled());
            text.push('\n');
        }
        self.write_out(text.as_bytes())
    }

    /// A result as JSON, on one line where it is one event of many.
    ///
    /// # Errors
    /// Those of [`Ui::result`].
    pub fn json(&mut self, value: &impl Serialize, one_line: bool) -> Result<(), CommandError> {
        let text = if one_line {
            serde_json::to_string(value)
        } else {
            serde_json::to_string_pretty(value)
        };
        // JSON escapes control characters; what turns directions is escaped here.
        let mut text: String = text
            .map_err(|error| CommandError::new(super::exit::Exit::Failed, error))?
            .chars()
            .map(|c| match c {
                '\n' => c.to_string(),
                c if clean(c.encode_utf8(&mut [0; 4])).starts_with('\u{fffd}')
                    && c != '\u{fffd}' =>
                {
                    format!("\\u{:04x}", u32::from(c))
                }
                c => c.to_string(),
            })
            .collect();
        text.push('\n');
        self.write_out(text.as_bytes())
    }

    /// Bytes of the result that are this program's own: help, completions, man pages, a manifest.
    ///
    /// # Errors
    /// Those of [`Ui::result`].
    pub fn own_bytes(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.write_out(bytes)
    }

    /// A line besides the result.
    pub fn note(&mut self, line: &Line) {
        let mut text = line.styled();
        text.push('\n');
        self.write_err(text.as_bytes());
    }

    /// A line besides the result that `--quiet` leaves out.
    pub fn chat(&mut self, line: &Line) {
        if !self.quiet {
            self.note(line);
        }
    }

    /// What to type or do next.
    pub fn hint(&mut self, hint: &str) {
        self.note(&Line::new().look(Look::Strong, "next: ").plain(hint));
    }

    /// An error, with its causes and hints.
    pub fn error(&mut self, error: &CommandError) {
        let text = told(&error.cause);
        for (index, line) in text.lines().enumerate() {
            let begin = Line::new();
            let begin = if index == 0 {
                begin.look(Look::Bad, "error: ")
            } else {
                begin
            };
            self.note(&begin.plain(line));
        }
        for hint in &error.hints {
            self.hint(hint);
        }
    }

    /// Help or a usage error of the argument parser, as it styles it.
    pub(super) fn usage(&mut self, error: &clap::Error) {
        let text = error.render().ansi().to_string();
        if error.use_stderr() {
            self.write_err(text.as_bytes());
        } else {
            // Help that cannot be written has nobody to read it.
            let _ = self.write_out(text.as_bytes());
        }
    }

    /// Writes a line besides the result from another thread, whatever is going on in this one.
    pub(super) fn announcement(&self, line: Line) -> impl FnOnce() + Send + 'static {
        let (bars, choice) = (Arc::clone(&self.bars), self.choice);
        move || {
            let mut text = line.styled();
            text.push('\n');
            write_err(
                &mut AutoStream::new(io::stderr(), choice),
                &bars,
                text.as_bytes(),
            );
        }
    }

    /// Asks on a terminal; `None` where nobody can be asked.
    pub fn ask(&mut self, question: &str) -> Option<bool> {
        if !self.interactive {
            return None;
        }
        let text = Line::of(question).plain(" [y/N] x").styled();
        self.write_err(text.trim_end_matches('x').as_bytes());
        let mut answer = String::new();
        let read =
            io::BufRead::read_line(&mut io::Read::take(io::stdin().lock(), 100), &mut answer);
        read.ok()?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    fn write_out(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        let out = &mut self.out;
        let mut write = || out.write_all(bytes).and_then(|()| out.flush());
        let written = match &*lock(&self.bars) {
            Some(bars) => bars.suspend(write),
            None => write(),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(CommandError::new(
                super::exit::Exit::Failed,
                anyhow::Error::new(error).context("cannot write to stdout"),
            )),
            Ok(()) => Ok(()),
        }
    }

    fn write_err(&mut self, bytes: &[u8]) {
        write_err(&mut self.err, &self.bars, bytes);
    }
}

type Bars = Mutex<Option<indicatif::MultiProgress>>;

fn lock(bars: &Bars) -> MutexGuard<'_, Option<indicatif::MultiProgress>> {
    bars.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_err(err: &mut AutoStream<io::Stderr>, bars: &Bars, bytes: &[u8]) {
    let mut write = || err.write_all(bytes).and_then(|()| err.flush());
    // Nobody is left to be told.
    let _ = match &*lock(bars) {
        Some(bars) => bars.suspend(write),
        None => write(),
    };
}

/// An error and its causes. A cause that the error before has told already is not told twice.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_can_steer_a_terminal() {
        let line = Line::new()
            .look(Look::Plain, "a\u{1b}[2Jb\r\u{202e}c")
            .plain("d\n");
        assert_eq!(line.styled(), "a\u{fffd}[2Jb\u{fffd}\u{fffd}cd\u{fffd}");
    }

    #[test]
    fn columns_are_counted_in_characters_and_a_line_ends_without_spaces() {
        let line = Line::new()
            .column(Look::Plain, "größe", 8)
            .column(Look::Plain, "x", 4)
            .plain("  ");
        assert_eq!(line.styled(), "größe   x");
    }
}
