//! What a store is, whatever the backend: named rows, each a sealed record; and what reading and changing
//! one means. A backend only gives rows and takes a set of changed ones, in one atomic step.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::chance::SystemChance;
use super::journal::Walk;
use super::plan::Plan;
use super::recipients::Due;
use super::record::{
    self, AuthoritiesRecord, HeadRecord, IdentityRecord, MachineRecord, Meta, ProvisionRecord,
    SealedFor, name,
};
use super::seal::Sealer;
use super::{BrokenLink, Change, Identity, IdentityError, JournalRecord, State, StoreError, many};
use crate::compose::Release;
use crate::compose::manifest::Manifest;
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

/// A store as it was last opened: its data key is opened again only where it is wrapped in another text.
#[derive(Debug)]
pub(super) struct Known {
    pub meta: Meta,
    sealer: Arc<Sealer>,
}

/// A store that was opened: its rows and its data key.
pub(super) struct Vault<'a> {
    pub rows: &'a dyn Rows,
    pub sealer: Arc<Sealer>,
    pub meta: Meta,
    /// The public key of the identity that opened it.
    pub opened_by: String,
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
        known: Option<&Known>,
    ) -> Result<Self, StoreError> {
        let row = rows.get(name::META)?;
        let row = row.ok_or_else(|| damaged(path, "it is empty"))?;
        let meta: Meta = record::decode(name::META, &row)?;
        let sealer = match known {
            Some(known) if known.meta.key == meta.key => Arc::clone(&known.sealer),
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
            opened_by: identity.public(),
            path,
        })
    }

    /// What spares the next opening.
    pub fn known(&self) -> Known {
        Known {
            meta: self.meta.clone(),
            sealer: Arc::clone(&self.sealer),
        }
    }

    fn plain(&self, name: &str, row: &[u8]) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        plain(&self.sealer, self.path, name, row)
    }

    fn get(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        let row = self.rows.get(name)?;
        row.map(|row| self.plain(name, &row)).transpose()
    }

    /// What `take` makes of each record below `prefix` and of its name there; in no order.
    fn all<R: record::Versioned, T: Send>(
        &self,
        prefix: &str,
        take: impl Fn(&str, R) -> Result<T, StoreError> + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let (sealer, path) = (&*self.sealer, self.path);
        many::read_all(self.rows, prefix, |name, row| {
            let plain = plain(sealer, path, name, row)?;
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
        let path = self.path;
        let odd = |prefix: &str, rest: &str| damaged(path, format!("{prefix}{rest} is no name"));
        let provisions = self.all(name::PROVISIONS, |rest, record: ProvisionRecord| {
            let id = provision_id(rest).ok_or_else(|| odd(name::PROVISIONS, rest))?;
            let provision = record.into_provision();
            let none = || damaged(path, format!("the provision {id} has no generation"));
            Ok((id.clone(), provision.ok_or_else(none)?))
        })?;
        for (id, provision) in provisions {
            state.provisions.insert(id, provision);
        }
        self.load_identities(&mut state)?;
        let manifests: HashMap<String, Arc<Release>> = self
            .all(name::MANIFESTS, |rest, mut manifest: Manifest| {
                for service in manifest.services.values_mut() {
                    service.files.shrink_to_fit(); // there are many, for as long as the state is
                }
                // The seal binds a record to its name, so the digest there is the one it was written under.
                let digest = rest.rsplit_once('/').map(|(_, digest)| digest.parse());
                let Some(Ok(digest)) = digest else {
                    return Err(odd(name::MANIFESTS, rest));
                };
                Ok((rest.to_owned(), Arc::new(Release::named(manifest, digest))))
            })?
            .into_iter()
            .collect();
        let machines = self.all(name::MACHINES, |rest, record: MachineRecord| {
            let node = NodeName::new(rest).map_err(|_| odd(name::MACHINES, rest))?;
            let manifest = |digest: &Digest| manifests.get(&format!("{node}/{digest}")).cloned();
            let machine = record.into_machine(manifest);
            let none = || damaged(path, format!("a manifest of {node} is missing"));
            let machine = machine.ok_or_else(none)?;
            Ok((node, machine))
        })?;
        state.fleet.extend(machines);
        for (what, is, was) in [
            ("provisions", state.provisions.len(), head.provisions),
            ("machines", state.fleet.len(), head.machines),
            (
                "identities",
                state.identities.iter().count(),
                head.identities,
            ),
            (
                "authorities",
                state.identities.authorities().all().len(),
                head.authorities,
            ),
        ] {
            if u64::try_from(is) != Ok(was) {
                return Err(damaged(self.path, format!("it has {is} of {was} {what}")));
            }
        }
        Ok(state)
    }

    fn load_identities(&self, state: &mut State) -> Result<(), StoreError> {
        let path = self.path;
        if let Some(plain) = self.get(name::AUTHORITIES)? {
            let record: AuthoritiesRecord = record::decode(name::AUTHORITIES, &plain)?;
            let none = || damaged(path, "an authority has no key");
            let authorities = record.into_authorities().ok_or_else(none)?;
            state.identities.set_authorities(authorities);
        }
        let identities = self.all(name::IDENTITIES, |rest, record: IdentityRecord| {
            let odd = || damaged(path, format!("{}{rest} is no name", name::IDENTITIES));
            let site = NodeName::new(rest).map_err(|_| odd())?;
            let none = || damaged(path, format!("the identity of {rest} has no key"));
            Ok((site, record.into_identity().ok_or_else(none)?))
        })?;
        for (site, identity) in identities {
            state.identities.insert(site, identity);
        }
        Ok(())
    }

    pub fn content(&self, digest: &Digest) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        self.get(&name::content(digest))
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
        let mut changed = Plan::of(self, changes)?;
        if let Some(meta) = self.due(declared).added_to(&self.meta) {
            let meta = record::encode(&sealed_meta(meta, &self.sealer)?);
            changed.insert(name::META.to_owned(), Some(meta.to_vec()));
        }
        Ok(changed)
    }

    /// What is due to who may open it.
    pub fn due(&self, declared: &[Recipient]) -> Due {
        Due::of(&self.meta, &self.opened_by, declared)
    }

    /// What seals each row anew, under a new data key for whom `due` leaves in.
    pub fn resealing(&self, due: &Due) -> Result<Resealing, StoreError> {
        let new = Sealer::draw(&mut SystemChance);
        let meta = record::encode(&sealed_meta(due.applied_to(&self.meta), &new)?);
        Ok(Resealing {
            old: Arc::clone(&self.sealer),
            new,
            meta: meta.to_vec(),
            path: self.path.to_owned(),
        })
    }
}

/// From one data key to another.
pub(super) struct Resealing {
    old: Arc<Sealer>,
    new: Sealer,
    /// The row of `meta`, for the new one.
    meta: Vec<u8>,
    path: PathBuf,
}

impl Resealing {
    /// A row as it is under the new key.
    pub fn row(&self, name: &str, row: &[u8]) -> Result<Vec<u8>, StoreError> {
        if name == name::META {
            return Ok(self.meta.clone());
        }
        let plain = plain(&self.old, &self.path, name, row)?;
        Ok(self.new.seal(name, &plain, &mut SystemChance))
    }
}

fn plain(
    sealer: &Sealer,
    path: &Path,
    name: &str,
    row: &[u8],
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let opened = sealer.open(name, row);
    opened.map_err(|_| damaged(path, format!("the record {name} does not open")))
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

#[cfg(test)]
mod tests;
