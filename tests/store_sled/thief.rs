//! What somebody reads who has the store's files and no identity.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use grid::provision::{Credential, Provision, State};
use grid::store::{Change, Store};
use grid::words::{Digest, Era, Generation, Salt, Secret};
use zeroize::Zeroizing;

use crate::fixture::{Home, account, entry, node};

const SECRET: &str = "planted-hunter2-secret-of-an-account";
const ADDRESS: &str = "planted-address.example";

pub fn everything(folder: &Path, found: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.extend_from_slice(path.to_string_lossy().as_bytes());
        if path.is_dir() {
            everything(&path, found);
        } else {
            found.extend(fs::read(&path).unwrap());
        }
    }
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn planted(secret: &str) -> Vec<Change> {
    let credential = Credential {
        generation: Generation {
            number: 1,
            era: Era(1),
        },
        state: State::Live,
        secret: Secret::new(secret.to_owned()),
        salt: Salt([9; 16]),
    };
    let content = format!("password = {secret}").into_bytes();
    let mut machine = crate::fixture::machine(1, Digest::of(&content));
    machine.sent.as_mut().unwrap().at.address = ADDRESS.to_owned();
    let mut entry = entry(1);
    entry.command = format!("grid push {ADDRESS}");
    vec![
        Change::Provision(
            account(1),
            Provision::from_stored(false, vec![credential]).unwrap(),
        ),
        Change::Content(Digest::of(&content), Arc::new(Zeroizing::new(content))),
        Change::Machine(node(1), machine),
        Change::Journal(entry),
    ]
}

#[test]
fn a_thief_reads_names_and_digests_and_no_secret_no_address_and_no_command() {
    let home = Home::new();
    let mut store = home.create();
    store.commit(&planted(SECRET)).unwrap();
    // Replaced and removed values stay readable in sled's files for a while.
    store.commit(&planted("planted-another-one")).unwrap();
    let digest = Digest::of(format!("password = {SECRET}").as_bytes());
    store.commit(&[Change::KeepContents([].into())]).unwrap();
    let mut bytes = Vec::new();
    everything(home.place().path(), &mut bytes);
    // The search finds what is there to be found.
    assert!(has(&bytes, "consumer-1"));
    assert!(has(&bytes, &digest.to_string()));
    for hidden in [
        SECRET,
        "planted",
        "hunter2",
        ADDRESS,
        "10.0.0.",
        "services/service-1",
    ] {
        assert!(!has(&bytes, hidden), "{hidden} is in the store's files");
    }
    let debugged = format!("{:?} {:?}", planted(SECRET), store);
    assert!(!debugged.contains("hunter2"), "{debugged}");
}

#[test]
fn every_folder_is_0700_and_every_file_0600_whatever_made_them() {
    fn modes(folder: &Path, loosen: bool) -> usize {
        let mut seen = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::metadata(&path).unwrap();
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(
                metadata.permissions().mode() & 0o7777,
                expected,
                "{}",
                path.display()
            );
            if path.is_dir() {
                seen += modes(&path, loosen);
            }
            if loosen {
                let mode = if path.is_dir() { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            seen += 1;
        }
        seen
    }
    let home = Home::filled();
    let folder = home.place().path().to_owned();
    assert_eq!(
        fs::metadata(&folder).unwrap().permissions().mode() & 0o7777,
        0o700
    );
    assert!(modes(&folder, true) >= 5);
    home.read().load().unwrap();
    modes(&folder, false);
}
