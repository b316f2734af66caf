//! The Prometheus text format 0.0.4, read.
//!
//! The reader is strict, bounded and streaming: it walks a body line by line, borrows from it, and holds one line's
//! labels. A line that is not what the format says is left out and counted by a reason ([`Flaw`]), and the lines after
//! it are read: one odd line of an exporter costs no other signal. Only a body over its bound is refused whole
//! ([`ExpositionError`]), since what was cut off of it is unknown.
//!
//! Threats: the body is written by a provider or a peer. Nothing in it makes the reader panic, hold more than the body
//! and one line's labels, or spend more than time linear in its length (labels are sorted: `n log n`, `n` at most 64; a
//! value costs at most 19 digits). What it decides where the format is silent:
//!
//! - A last line without a line feed is left out: it may be half a value of a body that broke off.
//! - A line of more than 16 KiB, a sample with more than 64 labels, a name of more than 256 bytes, and every sample after
//!   the first 100,000 are left out.
//! - A sample that says a label twice is left out.
//! - A timestamp past an `i64` has the sample left out; a negative one is read.
//! - Labels come out sorted by name, with `\\`, `\"` and `\n` resolved; another escape is a flaw.
//! - A carriage return is no blank: a body with Windows line ends holds no sample. The format's lines end with a line feed,
//!   and Prometheus takes `1\r` for no number either.
//! - Bytes that are not UTF-8 spoil their line only; in a comment they spoil nothing.

mod bounds;

use std::borrow::Cow;

pub use bounds::{ExpositionError, Flaw, Limits};

use super::clock::EpochMs;
use super::counts::Counts;
use super::number;
use crate::words::{is_label_byte, is_metric_byte};

/// What a `TYPE` line says of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Buckets, a sum and a count.
    Histogram,
    /// Quantiles, a sum and a count.
    Summary,
    /// Not said.
    Untyped,
    /// A word that this format does not have.
    Other,
}

/// One label of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label<'a> {
    /// Its name, which follows the rule for names.
    pub name: &'a str,
    /// Its value, with escapes resolved: any text.
    pub value: Cow<'a, str>,
}

/// One sample. `'a` is the body's life, `'r` lasts until the next item is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'r, 'a> {
    /// The metric, whose name follows the rule for names.
    pub name: &'a str,
    /// Its labels, sorted by name, each once.
    pub labels: &'r [Label<'a>],
    /// Any float, not-a-number and the infinities included.
    pub value: f64,
    /// When it was taken, if it says so.
    pub stamp: Option<EpochMs>,
}

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item<'r, 'a> {
    /// What kind of metric a name is. It may stand after the samples.
    Type {
        /// The metric.
        name: &'a str,
        /// Its kind.
        kind: Kind,
    },
    /// A sample.
    Sample(Sample<'r, 'a>),
}

/// Reads a body. See the module's top for what it decides.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    limits: Limits,
    labels: Vec<Label<'a>>,
    samples: usize,
    flaws: Counts<Flaw>,
}

/// An item without its labels, which lie in the reader.
enum Found<'a> {
    Type(&'a str, Kind),
    Sample(&'a str, f64, Option<EpochMs>),
}

impl<'a> Reader<'a> {
    /// A reader of `body`.
    ///
    /// # Errors
    /// When the body is over its bound.
    pub fn new(body: &'a [u8], limits: Limits) -> Result<Self, ExpositionError> {
        if body.len() > limits.body {
            return Err(ExpositionError::TooLarge {
                bytes: body.len(),
                most: limits.body,
            });
        }
        Ok(Self {
            rest: body,
            limits,
            labels: Vec::new(),
            samples: 0,
            flaws: Counts::default(),
        })
    }

    /// The next item; none at the end.
    pub fn next_item(&mut self) -> Option<Item<'_, 'a>> {
        let found = loop {
            let line = self.next_line()?;
            match self.read(line) {
                Ok(Some(found)) => break found,
                Ok(None) => {}
                Err(flaw) => self.flaws.add(flaw),
            }
        };
        Some(match found {
            Found::Type(name, kind) => Item::Type { name, kind },
            Found::Sample(name, value, stamp) => Item::Sample(Sample {
                name,
                labels: &self.labels,
                value,
                stamp,
            }),
        })
    }

    /// What was left out so far; all of it once [`Self::next_item`] has given none.
    #[must_use]
    pub fn flaws(&self) -> &Counts<Flaw> {
        &self.flaws
    }

    /// The flaws, for keeps.
    #[must_use]
    pub fn into_flaws(self) -> Counts<Flaw> {
        self.flaws
    }

    /// The next line that has a line feed and a length within its bound, without blanks around it.
    fn next_line(&mut self) -> Option<&'a [u8]> {
        loop {
            let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') else {
                if !self.rest.trim_ascii().is_empty() {
                    self.flaws.add(Flaw::Unterminated);
                }
                self.rest = &[];
                return None;
            };
            let (line, rest) = self.rest.split_at_checked(end)?;
            self.rest = rest.get(1..).unwrap_or_default();
            if line.len() > self.limits.line {
                self.flaws.add(Flaw::LineTooLong);
                continue;
            }
            return Some(line);
        }
    }

    fn read(&mut self, line: &'a [u8]) -> Result<Option<Found<'a>>, Flaw> {
        let Ok(text) = std::str::from_utf8(line) else {
            let start = line.iter().find(|byte| !is_blank(**byte));
            return match start {
                Some(b'#') => Ok(None),
                _ => Err(Flaw::NotUtf8),
            };
        };
        let text = after_blanks(text);
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(comment) = text.strip_prefix('#') {
            return self.comment(comment);
        }
        let (name, value, stamp) = self.sample(text)?;
        if self.samples >= self.limits.samples {
            return Err(Flaw::TooManySamples);
        }
        self.samples = self.samples.saturating_add(1);
        Ok(Some(Found::Sample(name, value, stamp)))
    }

    fn comment(&self, comment: &'a str) -> Result<Option<Found<'a>>, Flaw> {
        let mut words = comment.split([' ', '\t']).filter(|word| !word.is_empty());
        // `#TYPE` is a comment like any other: the word stands apart.
        if !comment.starts_with([' ', '\t']) || words.next() != Some("TYPE") {
            return Ok(None);
        }
        let (Some(name), Some(kind), None) = (words.next(), words.next(), words.next()) else {
            return Err(Flaw::Type);
        };
        let (name, rest) = self.name(name, is_metric_byte)?;
        if !rest.is_empty() {
            return Err(Flaw::Type);
        }
        let kind = match kind {
            "counter" => Kind::Counter,
            "gauge" => Kind::Gauge,
            "histogram" => Kind::Histogram,
            "summary" => Kind::Summary,
            "untyped" => Kind::Untyped,
            _ => Kind::Other,
        };
        Ok(Some(Found::Type(name, kind)))
    }

    fn sample(&mut self, text: &'a str) -> Result<(&'a str, f64, Option<EpochMs>), Flaw> {
        self.labels.clear();
        let (name, rest) = self.name(text, is_metric_byte)?;
        let rest = match after_blanks(rest).strip_prefix('{') {
            Some(inner) => self.labels(inner)?,
            None if rest.starts_with([' ', '\t']) => rest,
            None => return Err(Flaw::Syntax),
        };
        let (value, rest) = token(rest);
        if value.is_empty() {
            return Err(Flaw::Syntax);
        }
        let value = number::read(value).ok_or(Flaw::Value)?;
        let (stamp, rest) = token(rest);
        let stamp = match stamp {
            "" => None,
            digits => Some(EpochMs::new(digits.parse().map_err(|_| Flaw::Timestamp)?)),
        };
        if !after_blanks(rest).is_empty() {
            return Err(Flaw::Syntax);
        }
        Ok((name, value, stamp))
    }

    /// Reads labels up to their closing brace; gives what follows it.
    fn labels(&mut self, inner: &'a str) -> Result<&'a str, Flaw> {
        let mut rest = after_blanks(inner);
        let rest = loop {
            if let Some(after) = rest.strip_prefix('}') {
                break after;
            }
            let (name, after) = self.name(rest, is_label_byte)?;
            let after = after_blanks(after).strip_prefix('=').ok_or(Flaw::Syntax)?;
            let after = after_blanks(after).strip_prefix('"').ok_or(Flaw::Syntax)?;
            let (value, after) = label_value(after)?;
            if self.labels.len() >= self.limits.labels {
                return Err(Flaw::TooManyLabels);
            }
            self.labels.push(Label { name, value });
            rest = after_blanks(after);
            if let Some(after) = rest.strip_prefix(',') {
                rest = after_blanks(after);
            } else if !rest.starts_with('}') {
                return Err(Flaw::Syntax);
            }
        };
        self.labels.sort_unstable_by(|a, b| a.name.cmp(b.name));
        let mut pairs = self.labels.iter().zip(self.labels.iter().skip(1));
        if pairs.any(|(first, second)| first.name == second.name) {
            return Err(Flaw::RepeatedLabel);
        }
        Ok(rest)
    }

    /// A name at the start of `text`, and what follows it.
    fn name(&self, text: &'a str, allowed: fn(u8) -> bool) -> Result<(&'a str, &'a str), Flaw> {
        let end = text
            .bytes()
            .position(|byte| !allowed(byte))
            .unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end).ok_or(Flaw::Syntax)?;
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(Flaw::Syntax);
        }
        if name.len() > self.limits.name {
            return Err(Flaw::NameTooLong);
        }
        Ok((name, rest))
    }
}

const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn after_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// What stands before the next blank, blanks before it left out; and what follows.
fn token(text: &str) -> (&str, &str) {
    let text = after_blanks(text);
    let end = text.bytes().position(is_blank).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A label's value up to its closing quote, which is consumed; and what follows.
fn label_value(text: &str) -> Result<(Cow<'_, str>, &str), Flaw> {
    let stop = |byte: u8| byte == b'"' || byte == b'\\';
    let end = text.bytes().position(stop).ok_or(Flaw::Syntax)?;
    let (plain, mut rest) = text.split_at_checked(end).ok_or(Flaw::Syntax)?;
    if let Some(after) = rest.strip_prefix('"') {
        return Ok((Cow::Borrowed(plain), after));
    }
    let mut value = plain.to_owned();
    loop {
        let mut characters = rest.chars();
        match (characters.next(), characters.clone().next()) {
            (Some('"'), _) => return Ok((Cow::Owned(value), characters.as_str())),
            (Some('\\'), Some(escaped)) => {
                value.push(match escaped {
                    '\\' => '\\',
                    '"' => '"',
                    'n' => '\n',
                    _ => return Err(Flaw::Syntax),
                });
                characters.next();
                let after = characters.as_str();
                let end = after.bytes().position(stop).ok_or(Flaw::Syntax)?;
                let (plain, next) = after.split_at_checked(end).ok_or(Flaw::Syntax)?;
                value.push_str(plain);
                rest = next;
            }
            _ => return Err(Flaw::Syntax),
        }
    }
}

#[cfg(test)]
mod tests;
