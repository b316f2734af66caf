//! Minting of identities in a push, and dropping those that nobody uses (DESIGN.md, section 7).
//!
//! Every round gives all sites of the mesh what they need, whoever is sent to: what others admit is on one list, so
//! that minting one by one would have every machine sent to as often as there are sites.

use std::collections::BTreeSet;

use super::PushError;
use super::event::Event;
use super::run::Run;
use crate::compose::identities::{in_use, needed, needs, needs_authority};
use crate::provision::Need;
use crate::store::Change;
use crate::words::NodeName;

impl Run<'_> {
    /// Mints the mesh's next authority if it needs one: first of all, so that what is minted besides is issued by one that
    /// outlasts it.
    fn mint_authority(&mut self) -> Result<(), PushError> {
        let today = self.orders.today;
        let is_due = self.state.identities.authorities().are_due(today);
        if !is_due || !needs_authority(&self.world(), today) {
            return Ok(());
        }
        let identities = &mut self.state.edit().identities;
        let minted = identities.renew_due_authority(&self.mesh.name, today, self.chance)?;
        let authorities = identities.authorities().clone();
        self.commit(vec![Change::Authorities(authorities)])?;
        if let Some(number) = minted {
            (self.hear)(Event::MintedAuthority { number });
        }
        Ok(())
    }

    /// Gives every site the identity that it needs, and has it on disk.
    pub(super) fn mint_identities(&mut self) -> Result<(), PushError> {
        if self.mesh.signals.is_none() {
            return Ok(());
        }
        self.mint_authority()?;
        let wanted = needs(&self.world(), self.orders.today);
        if wanted.is_empty() {
            return Ok(());
        }
        let today = self.orders.today;
        let identities = &mut self.state.edit().identities;
        for (site, need) in &wanted {
            identities.mint(&self.mesh.name, site, *need, today, self.chance)?;
        }
        let mut changes = vec![Change::Authorities(identities.authorities().clone())];
        changes.extend(wanted.iter().filter_map(|(site, _)| {
            let identity = self.state.identities.of(site)?;
            Some(Change::Identity(site.clone(), identity.clone()))
        }));
        self.commit(changes)?;
        for (site, need) in wanted {
            let Some(number) = self.state.identities.of(&site).map(|i| i.newest().number) else {
                continue;
            };
            if need != Need::GoesOn {
                self.minted = self.minted.saturating_add(1);
            }
            (self.hear)(Event::MintedIdentity { site, number, need });
        }
        Ok(())
    }

    /// Drops the identities that nobody has any more, those of sites that left, and authorities without an identity.
    pub(super) fn prune_identities(&mut self) -> Result<(), PushError> {
        let mut changes = Vec::new();
        let mut gone: Vec<NodeName> = Vec::new();
        for (site, identity) in self.state.identities.iter() {
            let machine = self.state.fleet.get(site);
            let used: BTreeSet<u32> = machine.map(in_use).unwrap_or_default();
            let is_declared = self.mesh.signals.is_some()
                && self
                    .mesh
                    .nodes
                    .get(site)
                    .is_some_and(|node| !node.has_own_identity());
            if !is_declared && used.is_empty() {
                gone.push(site.clone());
                continue;
            }
            if identity.generations().nth(1).is_none() {
                continue; // nearly all have but the newest, which stays
            }
            let mut pruned = identity.clone();
            let needed = machine.map(|machine| needed(self.mesh, machine, site, identity));
            let needed = needed.unwrap_or_default();
            if pruned.prune(|number| needed.contains(&number)) {
                changes.push(Change::Identity(site.clone(), pruned));
            }
        }
        changes.extend(gone.into_iter().map(Change::ForgetIdentity));
        if changes.is_empty() {
            return Ok(());
        }
        self.commit(changes.clone())?;
        let state = self.state.edit();
        for change in &changes {
            match change {
                Change::Identity(site, identity) => {
                    state.identities.insert(site.clone(), identity.clone());
                }
                Change::ForgetIdentity(site) => state.identities.remove(site),
                _ => {}
            }
        }
        if state.identities.prune_authorities() {
            let authorities = state.identities.authorities().clone();
            self.commit(vec![Change::Authorities(authorities)])?;
        }
        Ok(())
    }
}
