//! Each way in which a header can be wrong.

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
            "", " ", " 7", "7 ", "\t7", "+7", "-7", "-0", "07", "00", "0x7", "7f", "7.0", "7e1",
            "٧",
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
