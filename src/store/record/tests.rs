//! Records read back as what was written, today and with the text of format 1 that lies in stores already.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::compose::Release;
use crate::compose::former::Former;
use crate::compose::location::Location;
use crate::compose::manifest::Manifest;
use crate::compose::sent::{Attempt, Machine, Sent};
use crate::compose::unwell::Unwell;
use crate::store::journal::{Entry, Head, Walk};
use crate::words::{AbsolutePath, Chance, ServiceName, Token};

/// Bytes from proptest's own seed.
struct Seeded(u64);
impl Chance for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            // xorshift64: any will do.
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            *byte = self.0.to_le_bytes()[0];
        }
    }
}

fn generation() -> impl Strategy<Value = Generation> {
    (any::<u32>(), any::<u64>()).prop_map(|(number, era)| Generation {
        number,
        era: Era(era),
    })
}

fn credential() -> impl Strategy<Value = Credential> {
    let state = prop_oneof![Just(State::Live), Just(State::Revoked), Just(State::Cut)];
    (generation(), state, any::<String>(), any::<[u8; 16]>()).prop_map(
        |(generation, state, secret, salt)| Credential {
            generation,
            state,
            secret: Secret::new(secret),
            salt: Salt(salt),
        },
    )
}

fn manifest() -> impl Strategy<Value = Arc<Release>> {
    ("[a-z]{1,9}", any::<u16>(), any::<u64>(), generation()).prop_map(|(service, mode, size, generation)| {
        let manifest = serde_json::json!({
            "format": 1, "mesh": "prod", "node": "atlas",
            "services": { service: {
                "grants": [{ "consumer": "billing", "generation": generation, "wants": { "kind": "rabbitmq" } }],
                "files": [{ "path": "services/a b/é", "mode": mode, "sha256": Digest::of(b""), "size": size }],
                "limits": { "test": 1, "load": 2, "apply": 3, "check": 4, "remove": 5 },
            }},
        });
        Arc::new(Release::of(serde_json::from_value(manifest).unwrap()))
    })
}

fn token() -> impl Strategy<Value = Token> {
    (any::<[u8; 8]>(), any::<u64>(), any::<u64>(), 1..u64::MAX).prop_map(
        |(store, era, push, seed)| Token::draw(StoreId(store), Era(era), push, &mut Seeded(seed)),
    )
}

fn machine() -> impl Strategy<Value = Machine> {
    let service = || "[a-z]{1,9}".prop_map(|name| ServiceName::new(&name).unwrap());
    let sent = (manifest(), any::<String>(), any::<bool>(), service()).prop_map(
        |(manifest, address, rooted, service)| Sent {
            lists: manifest
                .services
                .values()
                .filter_map(|of| Some((service.clone(), of.grants.clone()?)))
                .collect(),
            manifest,
            at: Location {
                address,
                root: rooted.then(|| AbsolutePath::new("/srv/grid").unwrap()),
            },
            is_foreign: rooted,
        },
    );
    let sent = sent.boxed();
    let at = |(address, rooted): (String, bool)| Location {
        address,
        root: rooted.then(|| AbsolutePath::new("/srv/other").unwrap()),
    };
    let at = move || (any::<String>(), any::<bool>()).prop_map(at);
    let attempt =
        (token(), manifest(), proptest::option::of(at())).prop_map(|(token, manifest, at)| {
            Attempt {
                token,
                manifest,
                at,
            }
        });
    let attempt = attempt.boxed();
    let former = (
        at(),
        proptest::option::of(token()),
        proptest::option::of(sent.clone()),
        proptest::option::of(attempt.clone()),
    );
    let former = former.prop_map(|(at, token, sent, attempt)| Former {
        at,
        token,
        sent,
        attempt,
    });
    let former = proptest::collection::vec(former, 0..3);
    let forgotten = proptest::collection::btree_set(service(), 0..3);
    (
        proptest::option::of(token()),
        (
            proptest::option::of(sent),
            proptest::option::of(at()),
            proptest::option::of(attempt),
        ),
        proptest::option::of(any::<[u8; 32]>()),
        forgotten,
        (
            any::<Option<u64>>(),
            proptest::collection::btree_map(service(), any::<u64>(), 0..3),
        ),
        former,
    )
        .prop_map(
            |(token, (sent, put_back, attempt), rolled_back, forgotten, unwell, former)| Machine {
                token,
                sent,
                put_back,
                attempt,
                rolled_back: rolled_back.map(Digest::from_bytes),
                forgotten,
                unwell: Unwell {
                    machine: unwell.0,
                    services: unwell.1,
                },
                former,
            },
        )
}

fn read_back(machine: &Machine) -> Machine {
    let (record, manifests) = MachineRecord::of(machine);
    let manifests: HashMap<Digest, Arc<Release>> = manifests
        .into_iter()
        .map(|release| {
            let manifest = decode("manifest", &release.canonical()).unwrap();
            (release.digest(), Arc::new(Release::of(manifest)))
        })
        .collect();
    let record: MachineRecord = decode("machine", &encode(&record)).unwrap();
    record
        .into_machine(|digest| manifests.get(digest).cloned())
        .unwrap()
}

proptest! {
    #[test]
    fn a_provision_reads_back_as_it_was(by_hand: bool, credentials in proptest::collection::vec(credential(), 1..5)) {
        let provision = Provision::from_stored(by_hand, credentials).unwrap();
        let bytes = encode(&ProvisionRecord::from(&provision));
        let record: ProvisionRecord = decode("provision", &bytes).unwrap();
        prop_assert_eq!(record.into_provision().unwrap(), provision);
    }

    #[test]
    fn a_machine_reads_back_as_it_was(machine in machine()) {
        prop_assert_eq!(read_back(&machine), machine);
    }
}

/// A record of each type as a store of format 1 holds it. These texts never change: stores hold them.
const PINNED: [(&str, &str); 6] = [
    (
        "meta",
        include_str!("../../../tests/fixtures/store-format-1/meta.json"),
    ),
    (
        "head",
        include_str!("../../../tests/fixtures/store-format-1/head.json"),
    ),
    (
        "provision",
        include_str!("../../../tests/fixtures/store-format-1/provision.json"),
    ),
    (
        "machine",
        include_str!("../../../tests/fixtures/store-format-1/machine.json"),
    ),
    (
        "manifest",
        include_str!("../../../tests/fixtures/store-format-1/manifest.json"),
    ),
    (
        "journal",
        include_str!("../../../tests/fixtures/store-format-1/journal.json"),
    ),
];

fn pinned<R: Versioned>(name: &str) -> R {
    let (_, text) = PINNED.iter().find(|(known, _)| *known == name).unwrap();
    let record: R = decode(name, text.as_bytes()).unwrap();
    // Nothing is lost by a grid that reads it and writes it again.
    let (written, text): (serde_json::Value, serde_json::Value) = (
        serde_json::from_slice(&encode(&record)).unwrap(),
        serde_json::from_str(text).unwrap(),
    );
    assert_eq!(written, text, "{name}");
    record
}

#[test]
fn records_of_format_1_are_read_for_what_they_meant() {
    let meta: Meta = pinned("meta");
    assert_eq!(meta.id().to_string(), "0123456789abcdef");
    assert_eq!(
        (meta.era, meta.recipients.len(), meta.key.as_slice()),
        (Era(1_764_444_387), 2, b"wrapped".as_slice())
    );
    let head: HeadRecord = pinned("head");
    assert_eq!(
        (
            head.push,
            head.commits,
            head.provisions,
            head.machines,
            head.journal.number
        ),
        (413, 1700, 1, 1, 2)
    );

    let provision = pinned::<ProvisionRecord>("provision")
        .into_provision()
        .unwrap();
    assert_eq!(
        provision.newest().secret.expose(),
        "an-example-and-no-secret-0123456789abcdefghi"
    );
    assert_eq!(provision.newest().salt, Salt([0x11; 16]));
    let states: Vec<_> = provision
        .generations()
        .map(|c| (c.generation.number, c.state))
        .collect();
    assert_eq!(
        states,
        [(1, State::Cut), (2, State::Revoked), (3, State::Live)]
    );
    assert!(provision.by_hand);

    let manifest = Arc::new(Release::of(pinned("manifest")));
    let machine = pinned::<MachineRecord>("machine")
        .into_machine(|digest| (*digest == manifest.digest()).then(|| manifest.clone()))
        .unwrap();
    assert_eq!(
        machine.token.unwrap().to_string(),
        "0123456789abcdef-1764444387-413-0101010101010101"
    );
    let sent = machine.sent.as_ref().unwrap();
    assert_eq!(
        (sent.at.address.as_str(), sent.lists.len()),
        ("10.0.0.1", 1)
    );
    assert_eq!(sent.at.root, None, "it was written before roots were kept");
    assert!(machine.attempt.is_some() && machine.rolled_back.is_some());
    assert_eq!(machine.forgotten.len(), 1);
    assert_eq!(read_back(&machine), machine);

    let record: JournalRecord = pinned("journal");
    assert_eq!((record.number, record.entry.push), (2, Some(413)));
    assert_eq!(record.entry.machines.len(), 2);
    assert!(
        record
            .entry
            .commit
            .as_ref()
            .is_some_and(|commit| commit.dirty)
    );
}

#[test]
fn every_record_of_a_future_format_is_an_error_of_its_own() {
    fn refused<R: Versioned>(name: &str, text: &str) {
        let mut future: serde_json::Value = serde_json::from_str(text).unwrap();
        future["format"] = 2.into();
        let newer = decode::<R>(name, future.to_string().as_bytes())
            .err()
            .unwrap();
        assert!(
            newer.to_string().contains("format 2, this grid knows 1"),
            "{newer}"
        );
        // Told by the number, whatever else became of it.
        let newer = decode::<R>(name, br#"{"format":7,"all":"new"}"#)
            .err()
            .unwrap();
        assert!(
            newer.to_string().contains("format 7, this grid knows 1"),
            "{newer}"
        );
    }
    for (name, text) in PINNED {
        match name {
            "meta" => refused::<Meta>(name, text),
            "head" => refused::<HeadRecord>(name, text),
            "provision" => refused::<ProvisionRecord>(name, text),
            "machine" => refused::<MachineRecord>(name, text),
            "manifest" => refused::<Manifest>(name, text),
            "journal" => refused::<JournalRecord>(name, text),
            other => panic!("{other} is not tried"),
        }
    }
}

#[test]
fn a_record_that_cannot_be_read_is_told_without_its_values() {
    let text =
        r#"{"format":1,"by_hand":true,"generations":[{"generation":"hunter2","state":"live"}]}"#;
    let told = decode::<ProvisionRecord>("provision/broker/billing", text.as_bytes())
        .err()
        .unwrap();
    insta::assert_snapshot!(told, @"provision/broker/billing in the store has a format that this grid cannot read (format 1 with something unknown at line 1, column 65): a newer grid wrote it, use that one");
}

fn entry(command: &str) -> Entry {
    let text = PINNED
        .iter()
        .find(|(name, _)| *name == "journal")
        .unwrap()
        .1;
    let record: JournalRecord = serde_json::from_str(text).unwrap();
    Entry {
        command: command.to_owned(),
        ..record.entry
    }
}

#[test]
fn a_journal_that_was_tampered_with_names_the_first_entry_that_does_not_hold() {
    let id = StoreId([1; 8]);
    let (mut head, mut chain) = (Head::of_new(id), Vec::new());
    for n in 1..=5 {
        let (next, bytes) = head.chain(entry(&format!("grid push node-{n}")));
        head = next;
        chain.push(bytes);
    }
    let check = |id, chain: &[Vec<u8>]| {
        let mut walk = Walk::of(id);
        let broken = chain.iter().find_map(|bytes| walk.step(bytes).err());
        broken
            .or_else(|| walk.end(head))
            .map(|broken| broken.number)
    };
    assert_eq!(check(id, &chain), None);
    assert_eq!(check(StoreId([2; 8]), &chain), Some(1));
    for at in 0..5 {
        let number = u64::try_from(at).unwrap() + 1;
        let mut changed = chain.clone();
        let text = String::from_utf8(changed[at].clone()).unwrap();
        changed[at] = text.replace("grid push", "grid pull").into_bytes();
        // Its own text is not checked until the next one speaks of it; the last one's digest is in the head.
        assert_eq!(
            check(id, &changed),
            Some((number + 1).min(5)),
            "changed {number}"
        );
        let mut removed = chain.clone();
        removed.remove(at);
        assert_eq!(check(id, &removed), Some(number), "removed {number}");
        assert_eq!(check(id, &chain[..at]), Some(number), "cut before {number}");
    }
}

#[test]
fn an_entry_is_kept_short_and_without_control_characters() {
    let long = format!("grid push \u{1b}[31m{}", "x".repeat(9000));
    let (_, bytes) = Head::of_new(StoreId([1; 8])).chain(entry(&long));
    let record: JournalRecord = decode("journal", &bytes).unwrap();
    assert_eq!(record.entry.command.chars().count(), 500);
    assert!(
        record
            .entry
            .command
            .starts_with("grid push \u{fffd}[31mxxx")
    );
}
