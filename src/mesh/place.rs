//! Where something stands in the declaration.

use super::diagnostic::DiagnosticKind;

/// A range of bytes in one of the declaration's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// Which file, in the order in which they were read.
    pub file: usize,
    /// Its first byte.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
}

impl Place {
    /// The bytes of `span` in a file.
    pub fn new(file: usize, span: std::ops::Range<usize>) -> Self {
        Self {
            file,
            start: span.start,
            end: span.end,
        }
    }
}

/// A value, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    /// Where.
    pub place: Place,
    /// What.
    pub value: T,
}

/// What is wrong with a declaration, before the line it stands on is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// What sort of thing is wrong.
    pub kind: DiagnosticKind,
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// Whether values on its line are not shown: somebody may have written the secret itself there.
    pub hidden: bool,
}

impl Problem {
    /// Something wrong, with what would be right.
    pub fn new(place: Place, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            kind: DiagnosticKind::Declaration,
            place,
            message: message.into(),
            help: Some(help.into()),
            hidden: false,
        }
    }

    /// Something wrong whose message says what would be right, too.
    pub fn bare(place: Place, message: impl Into<String>) -> Self {
        Self {
            kind: DiagnosticKind::Declaration,
            place,
            message: message.into(),
            help: None,
            hidden: false,
        }
    }

    /// Whether it stands in a place.
    pub fn is_in(&self, place: Place) -> bool {
        self.place.file == place.file && (place.start..place.end).contains(&self.place.start)
    }

    /// The same as another sort of thing.
    pub fn of(self, kind: DiagnosticKind) -> Self {
        Self { kind, ..self }
    }
}
