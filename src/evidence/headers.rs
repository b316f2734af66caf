//! The six headers of `POST /v1/site/signals/ingest`, version 1 (DESIGN.md, section 7, "Ingest feedback").
//!
//! Threat: whoever holds the site's certificate may send any bytes. Each value is bounded before it is looked at,
//! nothing of it but its length is kept in a refusal, and a value is taken only in its one canonical spelling.
//! The version is judged first: another version may have other headers. Headers of other names are not looked at.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use super::decimal::{self, DecimalError};
use super::{Epoch, Report};
use crate::words::Replica;

/// The longest value that is looked at, in bytes. The longest correct one, a replica, has 63.
pub const VALUE_MOST: usize = 128;

/// A header of version 1, in the order in which they are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Header {
    /// `x-grid-ingest-version`: `1`.
    Version,
    /// `x-grid-ingest-epoch`: the run of the reporting process.
    Epoch,
    /// `x-grid-ingest-sequence`: rises within the epoch.
    Sequence,
    /// `x-grid-ingest-rejected`: the process's cumulative count.
    Rejected,
    /// `x-grid-ingest-clean`: `true` or `false`.
    Clean,
    /// `x-grid-ingest-replica`: a DNS-1123 label.
    Replica,
}

impl Header {
    /// All six.
    pub const ALL: [Self; 6] = [
        Self::Version,
        Self::Epoch,
        Self::Sequence,
        Self::Rejected,
        Self::Clean,
        Self::Replica,
    ];

    /// Its name, in lowercase.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "x-grid-ingest-version",
            Self::Epoch => "x-grid-ingest-epoch",
            Self::Sequence => "x-grid-ingest-sequence",
            Self::Rejected => "x-grid-ingest-rejected",
            Self::Clean => "x-grid-ingest-clean",
            Self::Replica => "x-grid-ingest-replica",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|header| header.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a report is refused before it is held against anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A header is not there.
    #[error("{header} is missing")]
    Missing {
        /// Which.
        header: Header,
    },
    /// A header is there more than once, or has several values joined by commas.
    #[error("{header} has more than one value")]
    Repeated {
        /// Which.
        header: Header,
    },
    /// A value is longer than [`VALUE_MOST`].
    #[error("{header} has a value of {bytes} bytes; at most {VALUE_MOST} are read")]
    Oversized {
        /// Which.
        header: Header,
        /// How long its value is.
        bytes: usize,
    },
    /// A version other than 1.
    #[error("{} is not 1, the one version that this grid knows", Header::Version)]
    Version,
    /// Not 32 lowercase hexadecimal digits.
    #[error("{} is not 32 lowercase hexadecimal digits", Header::Epoch)]
    Epoch,
    /// Empty, or with a sign, a leading zero, a space, or another character that is not a digit.
    #[error("{header} is not a plain decimal number: no sign, no space, no leading zero")]
    NotDecimal {
        /// Which.
        header: Header,
    },
    /// A number past `u64::MAX`.
    #[error("{header} is greater than {}", u64::MAX)]
    TooGreat {
        /// Which.
        header: Header,
    },
    /// Neither `true` nor `false`.
    #[error("{} is neither true nor false", Header::Clean)]
    Clean,
    /// Not a DNS-1123 label.
    #[error(
        "{} is not a DNS-1123 label: at most 63 lowercase letters, digits and hyphens, no hyphen first or last",
        Header::Replica
    )]
    Replica,
    /// The greatest sequence or counter in a report that says clean.
    #[error(
        "{header} is {}, which is for terminal rejected evidence, in a report that says clean",
        u64::MAX
    )]
    TerminalClean {
        /// Which.
        header: Header,
    },
    /// The request has a body.
    #[error("a report has no body, this one has")]
    Body,
}

impl Refusal {
    /// The HTTP status that says so: 431 for an oversized value, 413 for a body, else 400.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Oversized { .. } => 431,
            Self::Body => 413,
            Self::Missing { .. }
            | Self::Repeated { .. }
            | Self::Version
            | Self::Epoch
            | Self::NotDecimal { .. }
            | Self::TooGreat { .. }
            | Self::Clean
            | Self::Replica
            | Self::TerminalClean { .. } => 400,
        }
    }
}

/// What stands in a request under one name.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    One(&'a [u8]),
    Several,
}

/// Reads a report out of a request's headers: names in any case, values as they came over the wire.
///
/// # Errors
/// The first refusal, in the order of [`Header::ALL`].
pub fn parse<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Report, Refusal> {
    let mut values = BTreeMap::new();
    for (name, value) in headers {
        let Some(header) = Header::named(name) else {
            continue;
        };
        match values.entry(header) {
            Entry::Vacant(free) => {
                free.insert(Value::One(value));
            }
            Entry::Occupied(mut taken) => {
                taken.insert(Value::Several);
            }
        }
    }
    let only = |header| match values.get(&header) {
        None => Err(Refusal::Missing { header }),
        Some(Value::Several) => Err(Refusal::Repeated { header }),
        Some(Value::One(value)) if value.len() > VALUE_MOST => Err(Refusal::Oversized {
            header,
            bytes: value.len(),
        }),
        Some(Value::One(value)) if value.contains(&b',') => Err(Refusal::Repeated { header }),
        Some(Value::One(value)) => Ok(*value),
    };
    let number = |header| {
        decimal::parse(only(header)?).map_err(|error| match error {
            DecimalError::Form => Refusal::NotDecimal { header },
            DecimalError::TooGreat => Refusal::TooGreat { header },
        })
    };
    if only(Header::Version)? != b"1" {
        return Err(Refusal::Version);
    }
    let epoch = Epoch::parse(only(Header::Epoch)?).map_err(|_| Refusal::Epoch)?;
    let sequence = number(Header::Sequence)?;
    let rejected = number(Header::Rejected)?;
    let clean = match only(Header::Clean)? {
        b"true" => true,
        b"false" => false,
        _ => return Err(Refusal::Clean),
    };
    let replica = std::str::from_utf8(only(Header::Replica)?)
        .ok()
        .and_then(|text| Replica::new(text).ok())
        .ok_or(Refusal::Replica)?;
    Report::new(epoch, sequence, rejected, clean, replica)
}

/// The headers that say `report`: what a reporter sends.
#[must_use]
pub fn write(report: &Report) -> [(Header, String); 6] {
    Header::ALL.map(|header| {
        let value = match header {
            Header::Version => "1".to_owned(),
            Header::Epoch => report.epoch().to_string(),
            Header::Sequence => report.sequence().to_string(),
            Header::Rejected => report.rejected().to_string(),
            Header::Clean => report.clean().to_string(),
            Header::Replica => report.replica().to_string(),
        };
        (header, value)
    })
}

#[cfg(test)]
mod tests;
