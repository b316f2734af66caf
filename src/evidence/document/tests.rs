//! What is written is read back, and nothing else is read.

use super::*;
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn of(number: u8, sequence: u64, rejected: u64, clean: bool) -> Report {
    let replica = Replica::new(&format!("gw-{number}")).unwrap();
    Report::new(
        Epoch::from_bytes([number; 16]),
        sequence,
        rejected,
        clean,
        replica,
    )
    .unwrap()
}

/// A clean one, a rejected one with the greatest numbers, one that was cleared.
fn document() -> Document {
    let mut ledger = Ledger::new();
    ledger.report(&of(1, 1, 0, true), at(0));
    ledger.report(&of(2, u64::MAX, u64::MAX, false), at(1));
    ledger.report(&of(3, 7, 2, true), at(2));
    ledger.clear(Epoch::from_bytes([3; 16]), at(3));
    Document::new(ledger, None, at(4))
}

fn text() -> String {
    String::from_utf8(document().to_json().unwrap()).unwrap()
}

fn why(json: &str) -> String {
    Document::from_json(json.as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn a_document_is_json_for_people_too_and_is_read_back() {
    insta::assert_snapshot!(text(), @r#"
    {
      "format": 1,
      "condition": {
        "type": "GatewayIngest",
        "status": "False",
        "reason": "Rejected",
        "message": "rejected evidence is in force from gw-2 (epoch 02020202020202020202020202020202, 18446744073709551615 rejected in all), of 3 gateway processes",
        "lastTransitionTime": "2027-01-15T08:00:04Z"
      },
      "epochs": [
        {
          "epoch": "01010101010101010101010101010101",
          "sequence": "1",
          "rejected": "0",
          "clean": true,
          "replica": "gw-1",
          "received": "2027-01-15T08:00:00Z",
          "standing": "clean"
        },
        {
          "epoch": "02020202020202020202020202020202",
          "sequence": "18446744073709551615",
          "rejected": "18446744073709551615",
          "clean": false,
          "replica": "gw-2",
          "received": "2027-01-15T08:00:01Z",
          "standing": "rejected"
        },
        {
          "epoch": "03030303030303030303030303030303",
          "sequence": "7",
          "rejected": "2",
          "clean": true,
          "replica": "gw-3",
          "received": "2027-01-15T08:00:02Z",
          "standing": "cleared",
          "cleared": "2027-01-15T08:00:03Z"
        }
      ]
    }
    "#);
    assert_eq!(Document::from_json(text().as_bytes()), Ok(document()));
}

#[test]
fn a_newer_format_is_told_from_damage() {
    let newer = text().replace("\"format\": 1", "\"format\": 2");
    assert_eq!(
        Document::from_json(newer.as_bytes()),
        Err(DocumentError::Newer { format: 2 })
    );
    let strange = r#"{ "format": 7, "ledger": [] }"#;
    insta::assert_snapshot!(why(strange), @"it has format 7, this grid reads format 1: a newer grid wrote it, use that one");
}

#[test]
fn a_damaged_document_is_refused_and_never_taken_for_an_empty_one() {
    let whole = text();
    for end in (0..whole.trim_end().len()).step_by(7) {
        let refused = Document::from_json(&whole.as_bytes()[..end]);
        assert!(
            matches!(refused, Err(DocumentError::Damaged { .. })),
            "{end}"
        );
    }
    for (old, new) in [
        ("\"format\": 1", "\"format\": 0"),
        ("\"format\": 1", "\"format\": \"1\""),
        ("\"format\": 1", "\"format\": 1, \"mood\": 1"),
        ("\"sequence\": \"7\"", "\"sequence\": 7"),
        ("\"sequence\": \"7\"", "\"sequence\": \"07\""),
        (
            "\"sequence\": \"7\"",
            "\"sequence\": \"18446744073709551616\"",
        ),
        ("\"replica\": \"gw-1\"", "\"replica\": \"GW\""),
        ("\"epoch\": \"0101", "\"epoch\": \"0X01"),
        // Three of them now.
        (
            "\"epoch\": \"01010101010101010101010101010101\"",
            "\"epoch\": \"03030303030303030303030303030303\"",
        ),
        // Evidence that is in force, without the condition that says so, and the reverse.
        ("\"standing\": \"clean\"", "\"standing\": \"cleared\""),
        ("\"standing\": \"rejected\"", "\"standing\": \"clean\""),
        ("\"status\": \"False\"", "\"status\": \"True\""),
        ("\"reason\": \"Rejected\"", "\"reason\": \"Stale\""),
        ("\"clean\": false", "\"clean\": true"),
        ("\"message\": \"", "\"message\": \"\\u001b[2J"),
        ("\"type\": \"GatewayIngest\"", "\"type\": \"Ready\""),
    ] {
        let wrong = whole.replace(old, new);
        assert_ne!(wrong, whole, "{old}");
        let refused = Document::from_json(wrong.as_bytes());
        assert!(
            matches!(refused, Err(DocumentError::Damaged { .. })),
            "{new}: {refused:?}"
        );
    }
}

#[test]
fn a_document_is_bounded() {
    let mut large = document().to_json().unwrap();
    large.resize(DOCUMENT_MOST, b' ');
    assert_eq!(Document::from_json(&large), Ok(document()));
    large.push(b' ');
    assert_eq!(Document::from_json(&large), Err(DocumentError::TooLarge));

    let mut json: serde_json::Value = serde_json::from_str(&text()).unwrap();
    let entry = json["epochs"][1].clone();
    let entries = json["epochs"].as_array_mut().unwrap();
    for number in 3..=64 {
        let mut one = entry.clone();
        one["epoch"] = format!("{number:032x}").into();
        entries.push(one);
    }
    assert_eq!(entries.len(), 65);
    insta::assert_snapshot!(why(&json.to_string()), @"it is damaged: an epoch stands twice, or there are more than 64");
    json["epochs"].as_array_mut().unwrap().pop();
    assert!(Document::from_json(json.to_string().as_bytes()).is_ok());
}

#[test]
fn the_words_about_a_damaged_document_are_bounded_and_clean() {
    let field = format!("\\u001b[2J{}", "a".repeat(5000));
    let wrong = text().replace("\"format\": 1", &format!("\"format\": 1, \"{field}\": 1"));
    let why = why(&wrong);
    assert!(!why.contains(char::is_control), "{why:?}");
    assert!(why.chars().count() < 300, "{why}");
}

#[test]
fn the_fullest_document_is_far_below_its_bound() {
    let mut ledger = Ledger::new();
    for number in 0..64 {
        let replica = Replica::new(&"a".repeat(63)).unwrap();
        let epoch = Epoch::from_bytes([number; 16]);
        let report = Report::new(epoch, u64::MAX, u64::MAX, false, replica).unwrap();
        ledger.report(&report, at(0));
        ledger.clear(epoch, at(0));
    }
    let json = Document::new(ledger, None, at(0)).to_json().unwrap();
    assert!(json.len() < DOCUMENT_MOST / 16, "{}", json.len());
}

proptest! {
    #[test]
    fn every_ledger_is_read_back_as_it_was(
        steps in proptest::collection::vec((0_u8..70, any::<u64>(), 0_u64..3, any::<bool>(), any::<bool>()), 0..80),
        nanosecond in 0_i32..1_000_000_000
    ) {
        let now = Timestamp::new(1_800_000_000, nanosecond).unwrap();
        let mut ledger = Ledger::new();
        for (number, sequence, rejected, clean, clears) in steps {
            let replica = Replica::new("gw-0").unwrap();
            let epoch = Epoch::from_bytes([number; 16]);
            if let Ok(report) = Report::new(epoch, sequence, rejected, clean, replica) {
                ledger.report(&report, now);
            }
            if clears {
                ledger.clear(epoch, now);
            }
        }
        let document = Document::new(ledger, None, now);
        let json = document.to_json().unwrap();
        prop_assert_eq!(Document::from_json(&json), Ok(document));
    }
}
