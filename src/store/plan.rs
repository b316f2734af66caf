//! A commit's changes as rows: what is written, and what is dropped with it.

use std::collections::BTreeSet;

use super::chance::SystemChance;
use super::journal::Entry;
use super::packed;
use super::record::{
    self, AuthoritiesRecord, HeadRecord, IdentityRecord, MachineRecord, ProvisionRecord, name,
};
use super::vault::{Changed, Vault};
use super::{Change, StoreError, check_contents};
use crate::compose::sent::Machine;
use crate::words::{Digest, NodeName};

/// The changes of one commit, as they add up. A later one sees what an earlier one did.
pub(super) struct Plan<'v, 'r> {
    vault: &'v Vault<'r>,
    changed: Changed,
    head: HeadRecord,
}

impl<'v, 'r> Plan<'v, 'r> {
    /// The rows that `changes` change, the head's among them.
    pub fn of(vault: &'v Vault<'r>, changes: &[Change]) -> Result<Changed, StoreError> {
        check_contents(changes)?;
        let mut plan = Self {
            vault,
            changed: Changed::new(),
            head: vault.head()?,
        };
        for change in changes {
            plan.add(change)?;
        }
        plan.head.commits = plan.head.commits.saturating_add(1);
        let head = record::encode(&plan.head);
        plan.put(name::HEAD.to_owned(), &head);
        Ok(plan.changed)
    }

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
            Change::Authorities(authorities) => {
                self.head.authorities = u64::try_from(authorities.all().len()).unwrap_or(u64::MAX);
                let record = record::encode(&AuthoritiesRecord::of(authorities));
                self.put(name::AUTHORITIES.to_owned(), &record);
            }
            Change::Identity(site, identity) => {
                let name = name::identity(site);
                if !self.exists(&name)? {
                    self.head.identities = self.head.identities.saturating_add(1);
                }
                self.put(name, &record::encode(&IdentityRecord::from(identity)));
            }
            Change::ForgetIdentity(site) => {
                let name = name::identity(site);
                if self.exists(&name)? {
                    self.head.identities = self.head.identities.saturating_sub(1);
                }
                self.changed.insert(name, None);
            }
            Change::Machine(node, machine) => self.machine(node, machine)?,
            Change::ForgetMachine(node) => self.forget(node)?,
            Change::Content(digest, bytes) => {
                let name = name::content(digest);
                if !self.exists(&name)? {
                    self.put(name, bytes);
                }
            }
            Change::KeepContents(kept) => self.keep_contents(kept)?,
            Change::Journal(entry) => self.journal(entry),
        }
        Ok(())
    }

    fn keep_contents(&mut self, kept: &BTreeSet<Digest>) -> Result<(), StoreError> {
        let kept: BTreeSet<String> = kept.iter().map(name::content).collect();
        let is_content = |name: &&String| name.starts_with(name::CONTENTS);
        let mut there: BTreeSet<String> = self.changed.keys().filter(is_content).cloned().collect();
        self.vault.rows.scan(name::CONTENTS, &mut |name, _| {
            there.insert(name.to_owned());
            Ok(())
        })?;
        for name in there.difference(&kept) {
            self.changed.insert(name.clone(), None);
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
            .map(|release| name::manifest(node, &release.digest()))
            .collect();
        self.drop_manifests(node, &wanted)?;
        for release in manifests {
            let name = name::manifest(node, &release.digest());
            if !self.exists(&name)? {
                self.put(name, &packed::pack(&release.canonical()));
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
