//! What somebody does who can write rows and has no key; what a backend does that loses some.

use super::*;
use crate::compose::sent::Machine;
use crate::provision::Provision;
use crate::store::SystemChance;
use crate::words::{Era, StoreId};

impl Rows for BTreeMap<String, Vec<u8>> {
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(BTreeMap::get(self, name).cloned())
    }

    fn scan(&self, prefix: &str, each: Each<'_>) -> Result<(), StoreError> {
        self.iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .try_for_each(|(name, row)| each(name, row))
    }
}

type Table = BTreeMap<String, Vec<u8>>;

fn account(consumer: &str) -> ProvisionId {
    ProvisionId {
        provider: ServiceName::new("broker").unwrap(),
        consumer: ServiceName::new(consumer).unwrap(),
    }
}

/// A store with two accounts and two machines, and who may open it.
fn store() -> (Table, Identity) {
    let identity = Identity::generate();
    let sealer = Sealer::draw(&mut SystemChance);
    let meta = Meta {
        format: record::FORMAT,
        store: [7; 8],
        era: Era(5),
        created: jiff::Timestamp::UNIX_EPOCH,
        recipients: vec![SealedFor {
            name: "maria".to_owned(),
            key: identity.public(),
        }],
        all_are_named: false,
        key: Vec::new(),
        seal: Vec::new(),
    };
    let mut table: Table = new_rows(meta, &sealer).unwrap().into_iter().collect();
    let mint = |consumer| {
        Change::Provision(
            account(consumer),
            Provision::draw(false, Era(5), &mut SystemChance),
        )
    };
    let changes = [
        mint("billing"),
        mint("mailer"),
        Change::Machine(NodeName::new("atlas").unwrap(), Machine::unknown()),
        Change::Machine(NodeName::new("borealis").unwrap(), Machine::unknown()),
    ];
    commit(&mut table, &identity, &changes);
    (table, identity)
}

fn commit(table: &mut Table, identity: &Identity, changes: &[Change]) {
    let changed = open(table, identity).unwrap().plan(changes, &[]).unwrap();
    for (name, row) in changed {
        match row {
            Some(row) => table.insert(name, row),
            None => table.remove(&name),
        };
    }
}

fn open<'a>(table: &'a Table, identity: &Identity) -> Result<Vault<'a>, StoreError> {
    Vault::open(table, Path::new("STORE"), identity, None)
}

fn load(table: &Table, identity: &Identity) -> Result<State, StoreError> {
    open(table, identity)?.load()
}

fn why(table: &Table, identity: &Identity) -> String {
    match load(table, identity) {
        Err(StoreError::Damaged { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_store_loads() {
    let (table, identity) = store();
    let state = load(&table, &identity).unwrap();
    assert_eq!((state.id, state.era), (StoreId([7; 8]), Era(5)));
    assert_eq!((state.provisions.len(), state.fleet.len()), (2, 2));
    let names: Vec<_> = table.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "head",
            "machine/atlas",
            "machine/borealis",
            "meta",
            "provision/broker/billing",
            "provision/broker/mailer"
        ]
    );
}

#[test]
fn a_row_that_is_lost_changed_or_in_another_ones_place_is_damage() {
    let (table, identity) = store();
    let mut lost = table.clone();
    lost.remove("provision/broker/mailer");
    assert_eq!(why(&lost, &identity), "it has 1 of 2 provisions");
    let mut lost = table.clone();
    lost.remove("machine/atlas");
    assert_eq!(why(&lost, &identity), "it has 1 of 2 machines");
    let mut lost = table.clone();
    lost.remove("head");
    assert_eq!(why(&lost, &identity), "the record head is missing");
    assert_eq!(why(&Table::new(), &identity), "it is empty");

    let mut swapped = table.clone();
    let other = swapped["provision/broker/billing"].clone();
    swapped.insert("provision/broker/mailer".to_owned(), other);
    assert_eq!(
        why(&swapped, &identity),
        "the record provision/broker/mailer does not open"
    );

    for name in table.keys().filter(|name| *name != "meta") {
        let mut flipped = table.clone();
        if let Some(byte) = flipped.get_mut(name).unwrap().last_mut() {
            *byte ^= 1;
        }
        assert_eq!(
            why(&flipped, &identity),
            format!("the record {name} does not open")
        );
    }
}

#[test]
fn meta_cannot_be_changed_by_who_has_no_key_though_it_lies_in_the_open() {
    let (table, identity) = store();
    let text = String::from_utf8(table["meta"].clone()).unwrap();
    for (from, to) in [
        ("\"era\":5", "\"era\":6"),
        ("maria", "eve"),
        ("0707", "0708"),
    ] {
        assert!(text.contains(from));
        let mut changed = table.clone();
        changed.insert("meta".to_owned(), text.replacen(from, to, 1).into_bytes());
        assert_eq!(why(&changed, &identity), "the record meta was changed");
    }
}

#[test]
fn a_store_of_a_future_format_is_told_and_is_neither_empty_nor_damaged() {
    let (table, identity) = store();
    let mut future = table.clone();
    let text = String::from_utf8(table["meta"].clone()).unwrap();
    let text = text.replacen("\"format\":1", "\"format\":2", 1);
    future.insert("meta".to_owned(), text.into_bytes());
    let told = load(&future, &identity).unwrap_err();
    insta::assert_snapshot!(told, @"meta in the store has a format that this grid cannot read (format 2, this grid knows 1): a newer grid wrote it, use that one");
}

#[test]
fn no_row_that_is_sealed_anew_opens_under_the_key_before() {
    let (table, identity) = store();
    let vault = open(&table, &identity).unwrap();
    let due = vault.due(&[]);
    let resealed = vault.resealing(&due).unwrap();
    let anew: Table = table
        .iter()
        .map(|(name, row)| (name.clone(), resealed.row(name, row).unwrap()))
        .collect();
    for (name, row) in anew.iter().filter(|(name, _)| *name != "meta") {
        assert!(vault.sealer.open(name, row).is_err(), "{name}");
        assert_ne!(row, &table[name], "{name}");
    }
    assert_eq!(load(&anew, &identity).unwrap(), vault.load().unwrap());
}

#[test]
fn changes_of_one_commit_add_up_in_their_order() {
    let (mut table, identity) = store();
    let atlas = NodeName::new("atlas").unwrap();
    let changes = [
        Change::ForgetMachine(atlas.clone()),
        Change::Machine(atlas.clone(), Machine::unknown()),
        Change::ForgetMachine(atlas.clone()),
        Change::ForgetMachine(atlas),
        Change::Push(1),
        Change::Push(2),
    ];
    commit(&mut table, &identity, &changes);
    let state = load(&table, &identity).unwrap();
    assert_eq!((state.push, state.fleet.len()), (2, 1));
}
