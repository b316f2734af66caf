//! What a store is, whatever the backend: named rows, each a sealed record; and what reading and changing
//! one means. A backend only gives rows and takes a set of changed ones, in one atomic step.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::chance::SystemChance;
use super::journal::{Entry, Walk};
use super::record::{self, HeadRecord, MachineRecord, Meta, ProvisionRecord, SealedFor, name};
use super::seal::Sealer;
use super::{
    BrokenLink, Change, Identity, IdentityError, JournalRecord, State, StoreError, check_contents,
};
use crate::compose::manifest::Manifest;
use crate::compose::sent::Machine;
use crate::mesh::Recipient;
use crate::provision::ProvisionId;
use crate::words::{Digest, NodeName, ServiceName};

/// What is asked of each row of a scan.
pub(super) type Each<'a> = &'a mut dyn FnMut(&str, &[u8]) -> Result<(), StoreError>;

/// Rows to read.
pub(super) trait Rows {
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// The rows whose name begins with `prefix`, in order of name.
    fn scan(&self, prefix: &str, each: Each<'_>) -> Result<(), StoreError>;
}

/// Rows to write, in one step: their new bytes, or `None` to drop them.
pub(super) type Changed = BTreeMap<String, Option<Vec<u8>>>;

/// A store that was opened: its rows and its data key.
pub(super) struct Vault<'a> {
    pub rows: &'a dyn Rows,
    pub sealer: Arc<Sealer>,
    pub meta: Meta,
    /// Of the store, for errors.
    pub path: &'a Path,
}

/// Damage, named.
pub(super) fn damaged(path: &Path, why: impl Into<String>) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        why: why.into(),
    }
}

impl<'a> Vault<'a> {
    /// Opens a store's rows with an identity. `known` is a data key that was opened before, with the text it was
    /// wrapped in: opening it again is spared.
    pub fn open(
        rows: &'a dyn Rows,
        path: &'a Path,
        identity: &Identity,
        known: Option<&(Vec<u8>, Arc<Sealer>)>,
    ) -> Result<Self, StoreError> {
        let row = rows.get(name::META)?;
        let row = row.ok_or_else(|| damaged(path, "it is empty"))?;
        let meta: Meta = record::decode(name::META, &row)?;
        let sealer = match known {
            Some((wrapped, sealer)) if *wrapped == meta.key => Arc::clone(sealer),
            _ => Arc::new(Sealer::unwrap(&meta.key, identity).map_err(|e| match e {
                IdentityError::NotForUs { identity } => StoreError::SealedForOthers {
                    path: path.to_owned(),
                    recipients: meta.recipients.iter().map(describe).collect(),
                    identity,
                },
                other => damaged(path, format!("its data key: {other}")),
            })?),
        };
        if sealer.open(&meta.seal_name(), &meta.seal).is_err() {
            return Err(damaged(path, "the record meta was changed"));
        }
        Ok(Self {
            rows,
            sealer,
            meta,
            path,
        })
    }

    fn plain(&self, name: &str, row: &[u8]) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let opened = self.sealer.open(name, row);
        opened.map_err(|_| damaged(self.path, format!("the record {name} does not open")))
    }

    fn get(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        let row = self.rows.get(name)?;
        row.map(|row| self.plain(name, &row)).transpose()
    }

    fn each<R: record::Versioned>(
        &self,
        prefix: &str,
        mut take: impl FnMut(&str, R) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.rows.scan(prefix, &mut |name, row| {
            let plain = self.plain(name, row)?;
            let rest = name.strip_prefix(prefix).unwrap_or(name);
            take(rest, record::decode(name, &plain)?)
        })
    }

    pub fn head(&self) -> Result<HeadRecord, StoreError> {
        let plain = self.get(name::HEAD)?;
        let plain = plain.ok_or_else(|| damaged(self.path, "the record head is missing"))?;
        record::decode(name::HEAD, &plain)
    }

    pub fn load(&self) -> Result<State, StoreError> {
        let head = self.head()?;
        let mut state = State::new(self.meta.id(), self.meta.era);
        state.push = head.push;
        let odd =
            |prefix: &str, rest: &str| damaged(self.path, format!("{prefix}{rest} is no name"));
        self.each(name::PROVISIONS, |rest, record: ProvisionRecord| {
            let id = provision_id(rest).ok_or_else(|| odd(name::PROVISIONS, rest))?;
            let provision = record.into_provision();
            let none = || damaged(self.path, format!("the provision {id} has no generation"));
            state
                .provisions
                .insert(id.clone(), provision.ok_or_else(none)?);
            Ok(())
        })?;
        let mut manifests: HashMap<String, Arc<Manifest>> = HashMap::new();
        self.each(name::MANIFESTS, |rest, manifest: Manifest| {
            manifests.insert(rest.to_owned(), Arc::new(manifest));
            Ok(())
        })?;
        self.each(name::MACHINES, |rest, record: MachineRecord| {
            let node = NodeName::new(rest).map_err(|_| odd(name::MACHINES, rest))?;
            let machine =
                record.into_machine(|digest| manifests.get(&format!("{node}/{digest}")).cloned());
            let none = || damaged(self.path, format!("a manifest of {node} is missing"));
            state.fleet.insert(node.clone(), machine.ok_or_else(none)?);
            Ok(())
        })?;
        for (what, is, was) in [
            ("provisions", state.provisions.len(), head.provisions),
            ("machines", state.fleet.len(), head.machines),
        ] {
            if u64::try_from(is) != Ok(was) {
                return Err(damaged(self.path, format!("it has {is} of {was} {what}")));
            }
        }
        Ok(state)
    }

    pub fn content(&self, digest: &Digest) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        self.get(&name::content(digest))
    }

    /// The contents that are not among `keep`.
    pub fn unneeded(&self, keep: &BTreeSet<Digest>) -> Result<Vec<Digest>, StoreError> {
        let mut found = Vec::new();
        self.rows.scan(name::CONTENTS, &mut |name, _| {
            let digest = name.strip_prefix(name::CONTENTS).map(str::parse::<Digest>);
            found.extend(
                digest
                    .and_then(Result::ok)
                    .filter(|digest| !keep.contains(digest)),
            );
            Ok(())
        })?;
        Ok(found)
    }

    pub fn journal(&self, last: usize) -> Result<Vec<JournalRecord>, StoreError> {
        let end = self.head()?.journal.number;
        let last = u64::try_from(last.min(JournalRecord::LISTED_MOST)).unwrap_or(0);
        (end.saturating_sub(last)..end)
            .map(|before| {
                let name = name::journal(before.saturating_add(1));
                let plain = self.get(&name)?;
                let plain = plain
                    .ok_or_else(|| damaged(self.path, format!("the record {name} is missing")))?;
                record::decode(&name, &plain)
            })
            .collect()
    }

    pub fn check_journal(&self) -> Result<Option<BrokenLink>, StoreError> {
        let mut walk = Walk::of(self.meta.id());
        let mut broken = None;
        self.rows.scan(name::JOURNAL, &mut |name, row| {
            if broken.is_none() {
                broken = walk.step(&self.plain(name, row)?).err();
            }
            Ok(())
        })?;
        match broken {
            Some(broken) => Ok(Some(broken)),
            None => Ok(walk.end(self.head()?.journal)),
        }
    }

    /// The rows that `changes` change; with each commit the head, and `meta` where somebody was added.
    pub fn plan(&self, changes: &[Change], declared: &[Recipient]) -> Result<Changed, StoreError> {
        check_contents(changes)?;
        let mut plan = Plan {
            vault: self,
            changed: Changed::new(),
            head: self.head()?,
        };
        for change in changes {
            plan.add(change)?;
        }
        plan.head.commits = plan.head.commits.saturating_add(1);
        let head = record::encode(&plan.head);
        plan.put(name::HEAD.to_owned(), &head);
        let mut changed = plan.changed;
        if let Some(meta) = self.widened(declared)? {
            changed.insert(name::META.to_owned(), Some(record::encode(&meta).to_vec()));
        }
        Ok(changed)
    }

    /// `meta` with the declared recipients added; `None`: it is for all of them already.
    fn widened(&self, declared: &[Recipient]) -> Result<Option<Meta>, StoreError> {
        let recipients = united(&self.meta.recipients, declared);
        if recipients.len() == self.meta.recipients.len() {
            return Ok(None);
        }
        let meta = Meta {
            recipients,
            ..self.meta.clone()
        };
        sealed_meta(meta, &self.sealer).map(Some)
    }
}

fn describe(recipient: &SealedFor) -> String {
    format!("{} {}", recipient.name, recipient.key)
}

fn provision_id(text: &str) -> Option<ProvisionId> {
    let (provider, consumer) = text.split_once('/')?;
    Some(ProvisionId {
        provider: ServiceName::new(provider).ok()?,
        consumer: ServiceName::new(consumer).ok()?,
    })
}

/// `already`, and those of `more` whose key is not among them.
pub(super) fn united(already: &[SealedFor], more: &[Recipient]) -> Vec<SealedFor> {
    let mut all = already.to_vec();
    for recipient in more {
        let key = recipient.key.trim();
        if !all.iter().any(|known| known.key == key) {
            all.push(SealedFor {
                name: recipient.name.clone(),
                key: key.to_owned(),
            });
        }
    }
    all
}

/// `meta` with the data key wrapped for its recipients, and its seal.
pub(super) fn sealed_meta(mut meta: Meta, sealer: &Sealer) -> Result<Meta, StoreError> {
    let recipients: Vec<Recipient> = meta
        .recipients
        .iter()
        .map(|recipient| Recipient {
            name: recipient.name.clone(),
            key: recipient.key.clone(),
        })
        .collect();
    meta.key = sealer.wrap(&recipients)?;
    meta.seal = sealer.seal(&meta.seal_name(), &[], &mut SystemChance);
    Ok(meta)
}

/// The rows of a new store.
pub(super) fn new_rows(meta: Meta, sealer: &Sealer) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    let head = record::encode(&HeadRecord::of_new(meta.id()));
    let meta = record::encode(&sealed_meta(meta, sealer)?).to_vec();
    let head = sealer.seal(name::HEAD, &head, &mut SystemChance);
    Ok(vec![
        (name::META.to_owned(), meta),
        (name::HEAD.to_owned(), head),
    ])
}

/// The changes of one commit, as they add up. A later one sees what an earlier one did.
struct Plan<'v, 'r> {
    vault: &'v Vault<'r>,
    changed: Changed,
    head: HeadRecord,
}

impl Plan<'_, '_> {
    fn put(&mut self, name: String, plain: &[u8]) {
        let row = self.vault.sealer.seal(&name, plain, &mut SystemChance);
        self.changed.insert(name, Some(row));
    }

    fn exists(&self, name: &str) -> Result<bool, StoreError> {
        match self.changed.get(name) {
            Some(row) => Ok(row.is_some()),
            None => Ok(self.vault.rows.get(name)?.is_some()),
        }
    }

    fn add(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Push(number) => self.head.push = *number,
            Change::Provision(id, provision) => {
                let name = name::provision(id);
                if !self.exists(&name)? {
                    self.head.provisions = self.head.provisions.saturating_add(1);
                }
                self.put(name, &record::encode(&ProvisionRecord::from(provision)));
            }
            Change::Machine(node, machine) => self.machine(node, machine)?,
            Change::ForgetMachine(node) => self.forget(node)?,
            Change::Content(digest, bytes) => {
                let name = name::content(digest);
                if !self.exists(&name)? {
                    self.put(name, bytes);
                }
            }
            Change::DropContent(digest) => {
                self.changed.insert(name::content(digest), None);
            }
            Change::Journal(entry) => self.journal(entry),
        }
        Ok(())
    }

    fn machine(&mut self, node: &NodeName, machine: &Machine) -> Result<(), StoreError> {
        let name = name::machine(node);
        if !self.exists(&name)? {
            self.head.machines = self.head.machines.saturating_add(1);
        }
        let (record, manifests) = MachineRecord::of(machine);
        self.put(name, &record::encode(&record));
        let wanted: BTreeSet<String> = manifests
            .iter()
            .map(|(digest, _)| name::manifest(node, digest))
            .collect();
        self.drop_manifests(node, &wanted)?;
        for (digest, bytes) in manifests {
            let name = name::manifest(node, &digest);
            if !self.exists(&name)? {
                self.put(name, &bytes);
            }
        }
        Ok(())
    }

    fn forget(&mut self, node: &NodeName) -> Result<(), StoreError> {
        let name = name::machine(node);
        if self.exists(&name)? {
            self.head.machines = self.head.machines.saturating_sub(1);
        }
        self.changed.insert(name, None);
        self.drop_manifests(node, &BTreeSet::new())
    }

    /// Drops the manifests of a machine but for `wanted`.
    fn drop_manifests(
        &mut self,
        node: &NodeName,
        wanted: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let prefix = name::manifests(node);
        let mut there: BTreeSet<String> = self
            .changed
            .keys()
            .filter(|name| name.starts_with(&prefix))
            .cloned()
            .collect();
        self.vault.rows.scan(&prefix, &mut |name, _| {
            there.insert(name.to_owned());
            Ok(())
        })?;
        for name in there.difference(wanted) {
            self.changed.insert(name.clone(), None);
        }
        Ok(())
    }

    fn journal(&mut self, entry: &Entry) {
        let (head, bytes) = self.head.journal.chain(entry.clone());
        self.head.journal = head;
        self.put(name::journal(head.number), &bytes);
    }
}
