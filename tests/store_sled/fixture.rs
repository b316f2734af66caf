//! A store in a folder of its own, and something to put into it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grid::compose::Release;
use grid::compose::location::Location;
use grid::compose::sent::{Attempt, Machine, Sent};
use grid::provision::{Provision, ProvisionId};
use grid::store::{
    Change, Entry, Holder, Identity, MeshLock, Outcome, Place, SledStore, Store as _, SystemChance,
};
use grid::words::{Digest, Era, NodeName, ServiceName, StoreId, Token};
use jiff::Timestamp;
use tempfile::TempDir;
use zeroize::Zeroizing;

pub const NOW: Timestamp = Timestamp::constant(1_764_444_387, 0);

pub struct Home {
    dir: TempDir,
    pub identity: Identity,
}

impl Home {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            identity: Identity::generate(),
        }
    }

    pub fn place(&self) -> Place {
        Place::beside(self.dir.path())
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn lock(&self) -> MeshLock {
        MeshLock::take(&self.place(), holder("push 1"), Duration::ZERO).unwrap()
    }

    pub fn create(&self) -> SledStore {
        SledStore::create(self.lock(), self.identity.clone(), &[], NOW).unwrap()
    }

    pub fn write(&self) -> SledStore {
        SledStore::open_locked(self.lock(), self.identity.clone(), &[])
    }

    pub fn read(&self) -> SledStore {
        SledStore::open_reading(self.place(), self.identity.clone(), holder("status"))
    }

    /// A store with a bit of everything in it.
    pub fn filled() -> Self {
        let home = Self::new();
        let mut store = home.create();
        for n in 1..=20 {
            store.commit(&push(n)).unwrap();
        }
        home
    }
}

pub fn holder(what: &str) -> Holder {
    Holder::here("maria", what, NOW)
}

/// What the `n`th push of a simple mesh changes; a machine, an account and a content of its own.
pub fn push(n: u64) -> Vec<Change> {
    let (digest, bytes) = content(n);
    vec![
        Change::Push(n),
        Change::Provision(
            account(n),
            Provision::draw(false, Era(1), &mut SystemChance),
        ),
        Change::Machine(node(n), machine(n, digest)),
        Change::Content(digest, Arc::new(Zeroizing::new(bytes))),
        Change::Journal(entry(n)),
    ]
}

pub fn content(n: u64) -> (Digest, Vec<u8>) {
    let bytes = format!("listen = {n}\n").repeat(50).into_bytes();
    (Digest::of(&bytes), bytes)
}

pub fn node(n: u64) -> NodeName {
    NodeName::new(&format!("node-{n}")).unwrap()
}

pub fn account(n: u64) -> ProvisionId {
    ProvisionId {
        provider: ServiceName::new("broker").unwrap(),
        consumer: ServiceName::new(&format!("consumer-{n}")).unwrap(),
    }
}

pub fn token(n: u64) -> Token {
    Token::draw(StoreId([1; 8]), Era(1), n, &mut SystemChance)
}

pub fn machine(n: u64, content: Digest) -> Machine {
    Machine {
        token: Some(token(n)),
        sent: Some(Sent {
            manifest: manifest(n, content, 1),
            lists: [].into(),
            at: Location {
                address: format!("10.0.0.{n}"),
                root: None,
            },
            is_foreign: false,
        }),
        attempt: Some(Attempt {
            token: token(n),
            manifest: manifest(n, content, 2),
            at: None,
        }),
        ..Machine::unknown()
    }
}

/// A manifest of five services with four files each: about 5 KB.
pub fn manifest(n: u64, content: Digest, size: u64) -> Arc<Release> {
    let services: serde_json::Map<String, serde_json::Value> = (0..5)
        .map(|service| {
            let files: Vec<_> = (0..4)
                .map(|file| {
                    serde_json::json!({
                        "path": format!("services/service-{service}/etc/file-{file}.toml"),
                        "mode": 0o640, "owner": "billing:billing", "sha256": content, "size": size,
                    })
                })
                .collect();
            let value = serde_json::json!({
                "bindings": { "broker": {
                    "generation": "1@1", "wants": { "kind": "rabbitmq" }, "nodes": ["atlas"]
                } },
                "files": files,
                "limits": { "test": 30, "load": 30, "apply": 60, "check": 60, "remove": 60 },
            });
            (format!("service-{service}"), value)
        })
        .collect();
    let manifest = serde_json::json!({
        "format": 1, "mesh": "prod", "node": node(n), "services": services,
    });
    Arc::new(Release::of(serde_json::from_value(manifest).unwrap()))
}

pub fn entry(n: u64) -> Entry {
    Entry {
        started: NOW,
        ended: Some(NOW),
        who: "maria@laptop".to_owned(),
        identity: None,
        taken_out: Vec::new(),
        ci: None,
        command: format!("grid push node-{n}"),
        push: Some(n),
        machines: [].into(),
        declaration: Some(Digest::of(b"mesh")),
        commit: None,
        version: "0.1.0".to_owned(),
        outcome: Outcome::Exit(0),
    }
}
