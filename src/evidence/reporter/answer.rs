//! What a site's answer means for the report that it answers.

use crate::evidence::Report;
use crate::evidence::headers::Header;

/// What an answer to a report means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It was persisted.
    Acknowledged,
    /// Unknown whether it was: the identical report is repeated.
    Unknown,
    /// 204, without the echo that makes it one of this report.
    NotEchoed,
    /// It was judged, and is refused for good.
    Refused,
    /// There is no room for another process's evidence just now.
    NoRoom,
    /// The caller is not the site itself.
    NotLocal,
    /// Whoever answers takes no reports: an older site daemon.
    Unsupported,
    /// An answer that a site daemon does not give.
    Strange,
}

impl Meaning {
    /// What this status means for `report`; `headers` are those of the answer. 204 is believed only with the epoch and
    /// the sequence of the report, each exactly once.
    #[must_use]
    pub fn of<'a>(
        report: &Report,
        status: u16,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        match status {
            204 if is_echo(report, headers) => Self::Acknowledged,
            204 => Self::NotEchoed,
            400 | 409 | 413 | 431 => Self::Refused,
            403 => Self::NotLocal,
            404 | 405 | 501 => Self::Unsupported,
            507 => Self::NoRoom,
            500..=599 => Self::Unknown,
            _ => Self::Strange,
        }
    }
}

fn is_echo<'a>(report: &Report, headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> bool {
    let expected = [
        (Header::Epoch, report.epoch().to_string()),
        (Header::Sequence, report.sequence().to_string()),
    ];
    let mut seen = [0_u8; 2];
    for (name, value) in headers {
        for ((header, text), seen) in expected.iter().zip(&mut seen) {
            if header.name().eq_ignore_ascii_case(name) {
                // Another value makes two of it, right one or not.
                *seen = seen.saturating_add(if value == text.as_bytes() { 1 } else { 2 });
            }
        }
    }
    seen == [1, 1]
}
