//! Who may open the store, as recipients come and go.

use grid::mesh::Recipient;
use grid::store::{Identity, SledStore, Store, StoreError};

use crate::fixture::{Home, holder, push};

fn recipient(name: &str, identity: &Identity) -> Recipient {
    Recipient {
        name: name.to_owned(),
        key: identity.public(),
    }
}

fn opens(home: &Home, identity: &Identity) -> bool {
    let mut store = SledStore::open_reading(home.place(), identity.clone(), holder("status"));
    match store.load() {
        Ok(_) => true,
        Err(StoreError::SealedForOthers { .. }) => false,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_recipient_who_is_declared_opens_the_store_after_the_next_commit() {
    let (home, otto) = (Home::filled(), Identity::generate());
    let declared = [recipient("otto", &otto)];
    let mut store = SledStore::open_locked(home.lock(), home.identity.clone(), &declared);
    assert!(!opens(&home, &otto));
    store.commit(&push(21)).unwrap();
    assert!(opens(&home, &otto) && opens(&home, &home.identity));
    let names: Vec<_> = store
        .sealed_for()
        .unwrap()
        .into_iter()
        .map(|r| r.name)
        .collect();
    assert_eq!(names[1..], ["otto"]);
    drop(store);
    // Left out of the declaration, he is not shut out by the way.
    home.write().commit(&push(22)).unwrap();
    assert!(opens(&home, &otto));
}

#[test]
fn resealing_shuts_out_who_is_not_named_and_keeps_everything_else() {
    let (home, otto, eve) = (Home::new(), Identity::generate(), Identity::generate());
    let declared = [recipient("otto", &otto), recipient("eve", &eve)];
    let mut store = SledStore::create(
        home.lock(),
        home.identity.clone(),
        &declared,
        crate::fixture::NOW,
    )
    .unwrap();
    for n in 1..=5 {
        store.commit(&push(n)).unwrap();
    }
    assert!(opens(&home, &otto) && opens(&home, &eve));
    let (state, journal) = (store.load().unwrap(), store.journal(9).unwrap());
    store.reseal(&declared[..1]).unwrap();
    assert!(opens(&home, &otto) && opens(&home, &home.identity));
    assert!(!opens(&home, &eve));
    assert_eq!(
        (store.load().unwrap(), store.journal(9).unwrap()),
        (state, journal)
    );
    assert_eq!(store.check_journal().unwrap(), None);
    // The next commit does not let her in again.
    store.commit(&push(6)).unwrap();
    assert!(!opens(&home, &eve));
    assert!(!home.place().path().join("db.previous").exists());
}

#[test]
fn a_death_in_the_middle_of_a_replacement_leaves_a_whole_store() {
    let home = Home::filled();
    let folder = home.place().path().to_owned();
    // Between the two renamings, and before the first.
    std::fs::rename(folder.join("db"), folder.join("db.previous")).unwrap();
    std::fs::create_dir(folder.join("db.next")).unwrap();
    assert_eq!(home.read().load().unwrap().push, 20);
    std::fs::create_dir(folder.join("db.next")).unwrap();
    assert_eq!(home.read().load().unwrap().push, 20);
    assert!(!folder.join("db.next").exists() && !folder.join("db.previous").exists());
    let before = home.read().load().unwrap();
    let compacted = home.write().compact().unwrap();
    assert!(compacted.before > 0 && compacted.after > 0, "{compacted:?}");
    assert_eq!(home.read().load().unwrap(), before);
}
