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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EPOCH: &str = "0123456789abcdef0123456789abcdef";

    /// The headers of a good report.
    fn good() -> Vec<(&'static str, Vec<u8>)> {
        [
            (Header::Version, "1"),
            (Header::Epoch, EPOCH),
            (Header::Sequence, "7"),
            (Header::Rejected, "2"),
            (Header::Clean, "true"),
            (Header::Replica, "gw-0"),
        ]
        .map(|(header, value)| (header.name(), value.as_bytes().to_vec()))
        .to_vec()
    }

    fn read(headers: &[(&str, Vec<u8>)]) -> Result<Report, Refusal> {
        parse(
            headers
                .iter()
                .map(|(name, value)| (*name, value.as_slice())),
        )
    }

    /// A good report but for one value.
    fn with(header: Header, value: impl AsRef<[u8]>) -> Result<Report, Refusal> {
        let mut headers = good();
        for (name, old) in &mut headers {
            if *name == header.name() {
                *old = value.as_ref().to_vec();
            }
        }
        read(&headers)
    }

    #[test]
    fn a_report_is_read_out_of_its_headers_whatever_their_case_order_and_company() {
        let replica = Replica::new("gw-0").unwrap();
        let report = Report::new(EPOCH.parse().unwrap(), 7, 2, true, replica).unwrap();
        assert_eq!(read(&good()), Ok(report.clone()));
        let mut others: Vec<_> = good()
            .into_iter()
            .rev()
            .map(|(name, value)| (name.to_uppercase(), value))
            .collect();
        others.push(("x-grid-ingest-mood".to_owned(), b"\xff,\xff".to_vec()));
        others.push(("host".to_owned(), vec![b'a'; 5000]));
        let others = others
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()));
        assert_eq!(parse(others), Ok(report));
    }

    #[test]
    fn each_header_is_there_exactly_once() {
        for header in Header::ALL {
            let mut without = good();
            without.retain(|(name, _)| *name != header.name());
            assert_eq!(read(&without), Err(Refusal::Missing { header }));
            for again in [header.name().to_owned(), header.name().to_uppercase()] {
                let twice = good();
                let same = twice.iter().find(|(name, _)| *name == header.name());
                let mut twice = twice.clone();
                twice.push((&again, same.unwrap().1.clone()));
                assert_eq!(read(&twice), Err(Refusal::Repeated { header }));
            }
            let joined = [
                (header, "1,1"),
                (header, "1, 1"),
                (header, ","),
                (header, "true,"),
            ];
            for (header, value) in joined {
                assert_eq!(with(header, value), Err(Refusal::Repeated { header }));
            }
        }
    }

    #[test]
    fn a_number_is_a_canonical_decimal() {
        for header in [Header::Sequence, Header::Rejected] {
            for wrong in [
                "", " ", " 7", "7 ", "\t7", "+7", "-7", "-0", "07", "00", "0x7", "7f", "7.0",
                "7e1", "٧",
            ] {
                assert_eq!(
                    with(header, wrong),
                    Err(Refusal::NotDecimal { header }),
                    "{wrong:?}"
                );
            }
            assert_eq!(
                with(header, b"\xff\xfe"),
                Err(Refusal::NotDecimal { header })
            );
            for past in [
                "18446744073709551616",
                "99999999999999999999",
                &"9".repeat(VALUE_MOST),
            ] {
                assert_eq!(with(header, past), Err(Refusal::TooGreat { header }));
            }
            assert!(with(header, "18446744073709551614").is_ok());
            assert!(with(header, "0").is_ok());
        }
    }

    #[test]
    fn every_other_value_has_one_spelling_too() {
        for wrong in ["", "2", "0", "01", "1.0", " 1", "1 ", "v1", "one"] {
            assert_eq!(
                with(Header::Version, wrong),
                Err(Refusal::Version),
                "{wrong:?}"
            );
        }
        let upper = EPOCH.to_uppercase();
        for wrong in [
            "",
            &EPOCH[1..],
            &format!("{EPOCH}0"),
            &format!(" {EPOCH}"),
            &upper,
        ] {
            assert_eq!(with(Header::Epoch, wrong), Err(Refusal::Epoch), "{wrong:?}");
        }
        for wrong in [
            "",
            "True",
            "TRUE",
            "1",
            "yes",
            "true ",
            " false",
            "falsetrue",
        ] {
            assert_eq!(with(Header::Clean, wrong), Err(Refusal::Clean), "{wrong:?}");
        }
        let long = "a".repeat(64);
        for wrong in [
            "",
            "-gw",
            "gw-",
            "Gw",
            "gw.0",
            "gw 0",
            "gw\u{1b}[2J",
            "gé",
            &long,
        ] {
            assert_eq!(
                with(Header::Replica, wrong),
                Err(Refusal::Replica),
                "{wrong:?}"
            );
        }
        assert!(with(Header::Replica, "a".repeat(63)).is_ok());
        for (header, refusal) in [
            (Header::Version, Refusal::Version),
            (Header::Epoch, Refusal::Epoch),
            (Header::Clean, Refusal::Clean),
            (Header::Replica, Refusal::Replica),
        ] {
            assert_eq!(with(header, b"\xff\x00\xfe"), Err(refusal));
        }
    }

    #[test]
    fn the_version_is_judged_before_what_another_version_may_not_have() {
        let headers = [(Header::Version.name(), b"2".to_vec())];
        assert_eq!(read(&headers), Err(Refusal::Version));
        assert_eq!(
            read(&[]),
            Err(Refusal::Missing {
                header: Header::Version
            })
        );
    }

    #[test]
    fn a_value_beyond_the_bound_is_431_a_body_413_and_all_else_400() {
        for header in Header::ALL {
            for bytes in [VALUE_MOST + 1, 1 << 20] {
                let refusal = with(header, vec![b','; bytes]).unwrap_err();
                assert_eq!(refusal, Refusal::Oversized { header, bytes });
                assert_eq!(refusal.status(), 431);
            }
            assert_ne!(
                with(header, vec![b'z'; VALUE_MOST]).unwrap_err().status(),
                431
            );
            assert_eq!(Refusal::Missing { header }.status(), 400);
            assert_eq!(Refusal::Repeated { header }.status(), 400);
            assert_eq!(Refusal::NotDecimal { header }.status(), 400);
            assert_eq!(Refusal::TooGreat { header }.status(), 400);
            assert_eq!(Refusal::TerminalClean { header }.status(), 400);
        }
        for refusal in [
            Refusal::Version,
            Refusal::Epoch,
            Refusal::Clean,
            Refusal::Replica,
        ] {
            assert_eq!(refusal.status(), 400);
        }
        assert_eq!(Refusal::Body.status(), 413);
    }

    #[test]
    fn the_greatest_sequence_and_counter_are_for_rejected_evidence() {
        let most = u64::MAX.to_string();
        for header in [Header::Sequence, Header::Rejected] {
            assert_eq!(with(header, &most), Err(Refusal::TerminalClean { header }));
            let mut rejected = good();
            for (name, value) in &mut rejected {
                if *name == header.name() {
                    *value = most.clone().into_bytes();
                } else if *name == Header::Clean.name() {
                    *value = b"false".to_vec();
                }
            }
            assert!(read(&rejected).is_ok());
        }
    }

    #[test]
    fn a_refusal_says_which_header_and_what_would_be_right() {
        let said = [
            with(Header::Sequence, "+1"),
            with(Header::Version, "2"),
            with(Header::Replica, vec![b'a'; 500]),
            with(Header::Rejected, u64::MAX.to_string()),
        ]
        .map(|refused| refused.unwrap_err().to_string())
        .join("\n");
        insta::assert_snapshot!(said, @r"
        x-grid-ingest-sequence is not a plain decimal number: no sign, no space, no leading zero
        x-grid-ingest-version is not 1, the one version that this grid knows
        x-grid-ingest-replica has a value of 500 bytes; at most 128 are read
        x-grid-ingest-rejected is 18446744073709551615, which is for terminal rejected evidence, in a report that says clean
        ");
    }

    proptest! {
        #[test]
        fn what_a_reporter_writes_is_read_back(
            bytes: [u8; 16], sequence: u64, rejected: u64, clean: bool, replica in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
        ) {
            let replica = Replica::new(&replica).unwrap();
            if let Ok(report) = Report::new(Epoch::from_bytes(bytes), sequence, rejected, clean, replica) {
                let headers = write(&report);
                let headers = headers.iter().map(|(header, value)| (header.name(), value.as_bytes()));
                prop_assert_eq!(parse(headers), Ok(report));
            }
        }

        #[test]
        fn no_bytes_are_read_as_a_report_that_writes_other_bytes(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 6)
        ) {
            let headers = Header::ALL.iter().zip(&values);
            let read = parse(headers.clone().map(|(header, value)| (header.name(), value.as_slice())));
            if let Ok(report) = read {
                let written = write(&report).map(|(_, value)| value.into_bytes());
                prop_assert_eq!(written.to_vec(), values);
            }
        }
    }
}
