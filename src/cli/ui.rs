//! The only place that writes to the program's streams: results on stdout, everything else on stderr.
//!
//! A reader that goes away (`grid status | head`) is no error.

use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use super::exit::CommandError;
pub use super::line::{Line, Look, clean};
use super::passphrase::Terminal;
use crate::delivery::{AskPassphrase, Gate};

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

/// A text without the numbers that the system's errors have besides their words.
pub(super) fn without_number(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                kept.push_str(rest);
            }
            _ => {
                kept.push_str(" (os error ");
                kept.push_str(part);
            }
        }
    }
    kept
}

/// How wide the terminal is that a stream goes to; `None`: it goes to none.
fn width_of(stream: &(impl AsFd + io::IsTerminal)) -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(stream.as_fd())?;
    (width.0 > 0).then(|| usize::from(width.0))
}

/// Whether a line shows what stands in a file, or marks it: `  12 | …`.
fn line_is_excerpt(line: &str) -> bool {
    line.starts_with("  ")
        && line
            .split_once(" | ")
            .is_some_and(|(number, _)| number.trim().bytes().all(|b| b.is_ascii_digit()))
}

/// An error with its causes, each said once: many an error says its cause itself.
pub(super) fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error
        .chain()
        .map(|cause| without_number(&cause.to_string()))
    {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
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

    /// How wide the terminal is that results go to; `None`: they go to none.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        width_of(&io::stdout())
    }

    /// Whether results go to a terminal.
    #[must_use]
    pub fn result_is_on_a_terminal(&self) -> bool {
        io::stdout().is_terminal()
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
            text.push_str(&line.styled(width_of(&io::stdout())));
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
        let text = line.styled(width_of(&io::stderr()));
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
        self.note(&Line::new().column(Look::Strong, "next:", 6).plain(hint));
    }

    /// An error, with its causes and hints.
    pub fn error(&mut self, error: &CommandError) {
        let text = causes(&error.cause);
        for (index, line) in text.lines().enumerate() {
            let begin = Line::new();
            let begin = if index == 0 {
                begin.column(Look::Bad, "error:", 7)
            } else {
                begin
            };
            let line = begin.plain(line);
            // An excerpt, and the mark below it.
            let is_excerpt = line_is_excerpt(text.lines().nth(index).unwrap_or(""));
            self.note(&if is_excerpt { line.verbatim() } else { line });
        }
        for hint in &error.hints {
            self.hint(hint);
        }
    }

    /// What the argument parser refuses, with the parser's escapes.
    pub(super) fn usage(&mut self, text: &str) {
        self.write_err(text.as_bytes());
    }

    /// Help, or the version, as the argument parser styles it.
    pub(super) fn help(&mut self, help: &clap::Error) {
        let text = help.render().ansi().to_string();
        if help.use_stderr() {
            self.write_err(text.as_bytes());
        } else {
            // Help that cannot be written has nobody to read it.
            let _ = self.write_out(text.as_bytes());
        }
    }

    /// Writes a line besides the result from another thread, whatever is going on in this one.
    pub(super) fn announcement(&self, line: Line) -> impl FnOnce() + Send + 'static {
        let tell = self.teller();
        move || tell(&line)
    }

    /// Writes lines besides the result from other threads.
    pub(super) fn teller(&self) -> impl Fn(&Line) + Send + Sync + 'static {
        let (bars, choice) = (Arc::clone(&self.bars), self.choice);
        move |line| {
            let mut err = AutoStream::new(io::stderr(), choice);
            let text = line.styled(width_of(&io::stderr()));
            write_err(&mut err, &bars, text.as_bytes());
        }
    }

    /// Writes the last line besides the result, from another thread: no bar is drawn any more.
    pub(super) fn last_teller(&self) -> impl FnOnce(&Line) + Send + 'static {
        let (bars, tell) = (Arc::clone(&self.bars), self.teller());
        move |line| {
            if let Some(bars) = lock(&bars).take() {
                // A terminal that is gone shows no bars.
                let _ = bars.clear();
                bars.set_draw_target(indicatif::ProgressDrawTarget::hidden());
            }
            tell(line);
        }
    }

    /// Who can be asked for a passphrase: a person at the terminal, until the gate is shut; `None`: nobody.
    pub(super) fn asks_passphrases(&self, gate: &Gate) -> Option<Arc<dyn AskPassphrase>> {
        let terminal = Terminal::new(Arc::clone(&self.bars), gate.clone());
        self.interactive
            .then(|| Arc::new(terminal) as Arc<dyn AskPassphrase>)
    }

    /// Asks on a terminal; `None` where nobody can be asked.
    pub fn ask(&mut self, question: &str) -> Option<bool> {
        if !self.interactive {
            return None;
        }
        let text = Line::of(question)
            .plain(" [y/N]")
            .styled(width_of(&io::stderr()));
        self.write_err(text.trim_end().as_bytes());
        self.write_err(b" ");
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

/// Where progress bars are drawn, if anywhere.
pub(super) type Bars = Mutex<Option<indicatif::MultiProgress>>;

fn lock(bars: &Bars) -> MutexGuard<'_, Option<indicatif::MultiProgress>> {
    bars.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something on the terminal while nothing else is written to it.
pub(super) fn meanwhile<T>(bars: &Bars, act: impl FnOnce() -> T) -> T {
    match &*lock(bars) {
        Some(bars) => bars.suspend(act),
        None => act(),
    }
}

fn write_err(err: &mut AutoStream<io::Stderr>, bars: &Bars, bytes: &[u8]) {
    let mut write = || err.write_all(bytes).and_then(|()| err.flush());
    // Nobody is left to be told.
    let _ = match &*lock(bars) {
        Some(bars) => bars.suspend(write),
        None => write(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_says_itself_is_not_said_again() {
        let denied = || anyhow::Error::new(io::Error::from(io::ErrorKind::PermissionDenied));
        let says = |text: &str| causes(&denied().context(text.to_owned()));
        assert_eq!(
            without_number("a: b (os error 13); c (os error x)"),
            "a: b; c (os error x)"
        );
        assert_eq!(says("cannot open x"), "cannot open x: permission denied");
        assert_eq!(
            says("cannot open x: permission denied"),
            "cannot open x: permission denied"
        );
    }
}
