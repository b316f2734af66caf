//! The bounds of a body, why one is refused whole, and why a line of it is left out.

use crate::words::LONGEST_NAME;

/// The bounds of a body. The daemon's own settings may be others; these are the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body.
    pub body: usize,
    /// Bytes of a line, its line feed left out.
    pub line: usize,
    /// Labels of a sample.
    pub labels: usize,
    /// Samples of the body.
    pub samples: usize,
    /// Bytes of a metric's or a label's name.
    pub name: usize,
}

impl Limits {
    /// 1 MiB a body, 16 KiB a line, 64 labels a sample, 100,000 samples, 256 bytes a name.
    pub const CONTRACT: Self = Self {
        body: 1024 * 1024,
        line: 16 * 1024,
        labels: 64,
        samples: 100_000,
        name: LONGEST_NAME,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::CONTRACT
    }
}

/// Why a body is refused whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExpositionError {
    /// More bytes than the bound.
    #[error("the metrics are {bytes} bytes, and at most {most} are read")]
    TooLarge {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        most: usize,
    },
}

/// Why a line is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// The last line has no line feed.
    Unterminated,
    /// The line is too long.
    LineTooLong,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A name is too long.
    NameTooLong,
    /// Too many labels.
    TooManyLabels,
    /// A label stands there twice.
    RepeatedLabel,
    /// The value is no number, or too large a one.
    Value,
    /// The timestamp is no whole number, or past an `i64`.
    Timestamp,
    /// Any other departure from the format.
    Syntax,
    /// A `TYPE` line that says no name and type.
    Type,
    /// A sample past the bound.
    TooManySamples,
}

impl Flaw {
    /// The word for a counter's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unterminated => "unterminated",
            Self::LineTooLong => "line_too_long",
            Self::NotUtf8 => "not_utf8",
            Self::NameTooLong => "name_too_long",
            Self::TooManyLabels => "too_many_labels",
            Self::RepeatedLabel => "repeated_label",
            Self::Value => "value",
            Self::Timestamp => "timestamp",
            Self::Syntax => "syntax",
            Self::Type => "type",
            Self::TooManySamples => "too_many_samples",
        }
    }
}
