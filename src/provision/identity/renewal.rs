//! All identities of a mesh: when a site needs another one, and how that is minted.
//!
//! Whether a renewal goes on without those who do not answer is decided here, when it is minted, and stored: composing does not look
//! at a calendar.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{Span, ToSpan as _};

use super::{
    Authorities, Authority, GOES_ON_DAYS, IDENTITY_DAYS, Identity, Need, RENEWED_DAYS,
    SiteIdentity, days_left,
};
use crate::provision::certificate::{self, CertificateError, Key, Validity};
use crate::words::{Chance, MeshName, NodeName};

/// How long an authority is good, in days: ten years.
const AUTHORITY_DAYS: i64 = 3650;

/// All identities of a mesh, and its authorities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identities {
    authorities: Authorities,
    sites: BTreeMap<NodeName, SiteIdentity>,
}

impl Identities {
    /// The authorities.
    #[must_use]
    pub fn authorities(&self) -> &Authorities {
        &self.authorities
    }

    /// The identity of a site.
    #[must_use]
    pub fn of(&self, site: &NodeName) -> Option<&SiteIdentity> {
        self.sites.get(site)
    }

    /// The identities of all sites.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeName, &SiteIdentity)> {
        self.sites.iter()
    }

    /// Takes an identity as it was stored, or as it was changed.
    pub fn insert(&mut self, site: NodeName, identity: SiteIdentity) {
        self.sites.insert(site, identity);
    }

    /// Takes the authorities as they were stored.
    pub fn set_authorities(&mut self, authorities: Authorities) {
        self.authorities = authorities;
    }

    /// Drops the identity of a site that left.
    pub fn remove(&mut self, site: &NodeName) {
        self.sites.remove(site);
    }

    /// What a site's identity needs on `today`. `in_use`: the number of the generation that the site has, if it has one.
    /// `is_known`: whether every site has acknowledged all up to this serial.
    #[must_use]
    pub fn need(
        &self,
        site: &NodeName,
        today: Date,
        in_use: Option<u32>,
        is_known: impl Fn(u64) -> bool,
    ) -> Option<Need> {
        let Some(identity) = self.sites.get(site) else {
            return Some(Need::First);
        };
        let newest = identity.newest();
        let used = in_use.and_then(|number| identity.get(number));
        if let Some(used) = used
            && used.number != newest.number
        {
            let end = self.authorities.end_of(used);
            let is_due = days_left(end, today) < GOES_ON_DAYS && !newest.goes_on;
            return is_due.then_some(Need::GoesOn);
        }
        let is_reissued = self.authorities.newest().is_some_and(|authority| {
            authority.number != newest.authority && is_known(authority.serial)
        });
        let end = self.authorities.end_of(newest);
        (is_reissued || days_left(end, today) < RENEWED_DAYS).then_some(Need::Renewal)
    }

    /// Gives a site what it needs; draws an authority where there is none.
    ///
    /// # Errors
    /// When a certificate cannot be made; then nothing was changed but the authority.
    pub fn mint(
        &mut self,
        mesh: &MeshName,
        site: &NodeName,
        need: Need,
        today: Date,
        chance: &mut dyn Chance,
    ) -> Result<(), CertificateError> {
        if need == Need::GoesOn {
            if let Some(identity) = self.sites.get_mut(site) {
                identity.newest.goes_on = true;
            }
            return Ok(());
        }
        if self.authorities.all.is_empty() {
            self.renew_authority(mesh, today, chance)?;
        }
        self.renew(mesh, site, today, chance)
    }

    /// `grid rotate --site`: a further generation of a site's identity, whatever it needs. Where the authority is due, a
    /// further one is minted first, and issues it.
    ///
    /// # Errors
    /// When a certificate cannot be made.
    pub fn renew(
        &mut self,
        mesh: &MeshName,
        site: &NodeName,
        today: Date,
        chance: &mut dyn Chance,
    ) -> Result<(), CertificateError> {
        self.renew_due_authority(mesh, today, chance)?;
        let serial = self.authorities.next_serial();
        let Some(authority) = self.authorities.newest() else {
            return Ok(()); // there is no site without an authority
        };
        let number = self.sites.get(site).map_or(0, |i| i.newest.number);
        let number = number.saturating_add(1);
        let key = Key::draw(chance);
        let validity = validity(today, IDENTITY_DAYS);
        let issuer = (authority.number, &authority.key);
        let identity = Identity {
            number,
            serial,
            authority: authority.number,
            certificate: certificate::of_site(mesh, issuer, site, &key, validity)?,
            key,
            until: validity.until,
            goes_on: false,
        };
        match self.sites.get_mut(site) {
            Some(known) => known
                .older
                .push(std::mem::replace(&mut known.newest, identity)),
            None => {
                let first = SiteIdentity {
                    older: Vec::new(),
                    newest: identity,
                };
                self.sites.insert(site.clone(), first);
            }
        }
        Ok(())
    }

    /// Mints a further authority if the one that issues is due on `today`; its number.
    ///
    /// # Errors
    /// When its certificate cannot be made.
    pub fn renew_due_authority(
        &mut self,
        mesh: &MeshName,
        today: Date,
        chance: &mut dyn Chance,
    ) -> Result<Option<u32>, CertificateError> {
        if !self.authorities.are_due(today) {
            return Ok(None);
        }
        self.renew_authority(mesh, today, chance)?;
        Ok(self.authorities.newest().map(|newest| newest.number))
    }

    /// `grid rotate --ca`: a further authority beside the older ones. Sites get identities of it once all have it.
    ///
    /// # Errors
    /// When its certificate cannot be made.
    pub fn renew_authority(
        &mut self,
        mesh: &MeshName,
        today: Date,
        chance: &mut dyn Chance,
    ) -> Result<(), CertificateError> {
        let number = self.authorities.newest().map_or(0, |last| last.number);
        let number = number.saturating_add(1);
        let key = Key::draw(chance);
        let validity = validity(today, AUTHORITY_DAYS);
        let certificate = certificate::of_authority(mesh, number, &key, validity)?;
        let serial = self.authorities.next_serial();
        self.authorities.all.push(Authority {
            number,
            serial,
            key,
            certificate,
            until: validity.until,
        });
        Ok(())
    }

    /// Drops every authority that is neither the newest nor the issuer of a kept identity; returns whether there was
    /// one.
    pub fn prune_authorities(&mut self) -> bool {
        let before = self.authorities.all.len();
        let newest = self.authorities.newest().map(|authority| authority.number);
        let sites = &self.sites;
        self.authorities.all.retain(|authority| {
            let mut issued = sites.values().flat_map(SiteIdentity::generations);
            Some(authority.number) == newest
                || issued.any(|identity| identity.authority == authority.number)
        });
        self.authorities.all.len() != before
    }
}

/// From the day before, since clocks differ.
fn validity(today: Date, days: i64) -> Validity {
    let at = |span: Span| today.checked_add(span).unwrap_or(today);
    Validity {
        from: at(-1.day()),
        until: at(days.days()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    struct Counting(u8);
    impl Chance for Counting {
        fn fill(&mut self, bytes: &mut [u8]) {
            for byte in bytes {
                self.0 = self.0.wrapping_add(1);
                *byte = self.0;
            }
        }
    }

    const TODAY: Date = date(2026, 1, 1);

    fn site() -> NodeName {
        NodeName::new("atlas").unwrap()
    }

    fn minted() -> (Identities, MeshName) {
        let mesh = MeshName::new("prod").unwrap();
        let mut all = Identities::default();
        all.mint(&mesh, &site(), Need::First, TODAY, &mut Counting(0))
            .unwrap();
        (all, mesh)
    }

    #[test]
    fn the_same_chance_makes_the_same_identity() {
        assert_eq!(minted().0, minted().0);
    }

    #[test]
    fn an_identity_is_needed_first_and_again_ninety_days_before_it_expires() {
        let known = |_| true;
        let none = Identities::default();
        assert_eq!(none.need(&site(), TODAY, None, known), Some(Need::First));
        let (all, _) = minted();
        let until = all.of(&site()).unwrap().newest().until;
        assert_eq!(until, date(2027, 1, 1));
        let before = |days: i64| until.checked_sub(days.days()).unwrap();
        assert_eq!(all.need(&site(), before(90), Some(1), known), None);
        assert_eq!(
            all.need(&site(), before(89), Some(1), known),
            Some(Need::Renewal)
        );
    }

    #[test]
    fn a_renewal_goes_on_without_the_others_fourteen_days_before_the_old_one_expires() {
        let (mut all, mesh) = minted();
        let until = all.of(&site()).unwrap().newest().until;
        let before = |days: i64| until.checked_sub(days.days()).unwrap();
        let mut chance = Counting(7);
        all.mint(&mesh, &site(), Need::Renewal, before(80), &mut chance)
            .unwrap();
        let known = |_| true;
        assert_eq!(all.need(&site(), before(14), Some(1), known), None);
        assert_eq!(
            all.need(&site(), before(13), Some(1), known),
            Some(Need::GoesOn)
        );
        all.mint(&mesh, &site(), Need::GoesOn, before(13), &mut chance)
            .unwrap();
        assert!(all.of(&site()).unwrap().newest().goes_on);
        assert_eq!(all.need(&site(), before(13), Some(1), known), None);
        assert_eq!(all.need(&site(), before(13), Some(2), known), None);
    }

    #[test]
    fn an_authority_is_renewed_while_it_outlasts_what_it_issues_and_no_identity_ends_after_its_issuer()
     {
        let (mut all, mesh) = minted();
        let mut chance = Counting(3);
        let until = all.authorities().newest().unwrap().until;
        let before = |days: i64| until.checked_sub(days.days()).unwrap();
        assert!(!all.authorities().are_due(before(365 + 90)));
        let early = all.renew_due_authority(&mesh, before(365 + 90), &mut chance);
        assert_eq!(early, Ok(None));
        let due = all.renew_due_authority(&mesh, before(365 + 89), &mut chance);
        assert_eq!(due, Ok(Some(2)));
        assert!(!all.authorities().are_due(before(365 + 89)));

        // By hand too, and however late: who issues is minted first.
        for late in [before(200), before(1), before(-1), before(-5000)] {
            let (mut all, mesh) = minted();
            all.renew(&mesh, &site(), late, &mut chance).unwrap();
            let newest = all.of(&site()).unwrap().newest();
            assert_eq!(newest.authority, 2);
            let issuer = all.authorities().newest().unwrap();
            assert!(newest.until < issuer.until, "{late}");
            assert_eq!(all.authorities().end_of(newest), newest.until);
        }
    }

    #[test]
    fn an_identity_that_outlives_its_issuer_counts_as_long_as_that() {
        let (mut all, mesh) = minted();
        let mut authorities = all.authorities().clone();
        let ends = date(2026, 6, 1);
        for authority in &mut authorities.all {
            authority.until = ends; // as older versions of grid left it
        }
        all.set_authorities(authorities);
        let identity = all.of(&site()).unwrap().newest().clone();
        assert_eq!(all.authorities().end_of(&identity), ends);
        let before = |days: i64| ends.checked_sub(days.days()).unwrap();
        let need = |all: &Identities, today| all.need(&site(), today, Some(1), |_| false);
        assert_eq!(need(&all, before(90)), None);
        assert_eq!(need(&all, before(89)), Some(Need::Renewal));
        let mut chance = Counting(5);
        all.mint(&mesh, &site(), Need::Renewal, before(80), &mut chance)
            .unwrap();
        assert_eq!(need(&all, before(14)), None);
        assert_eq!(need(&all, before(13)), Some(Need::GoesOn));
    }

    #[test]
    fn a_new_authority_reissues_once_all_know_it_and_the_old_one_goes_with_its_last_identity() {
        let (mut all, mesh) = minted();
        let mut chance = Counting(9);
        all.renew_authority(&mesh, TODAY, &mut chance).unwrap();
        assert_eq!(all.need(&site(), TODAY, Some(1), |_| false), None);
        assert!(!all.prune_authorities());
        let serial = all.authorities().newest().unwrap().serial;
        let known = |up_to| up_to <= serial;
        assert_eq!(
            all.need(&site(), TODAY, Some(1), known),
            Some(Need::Renewal)
        );
        all.mint(&mesh, &site(), Need::Renewal, TODAY, &mut chance)
            .unwrap();
        assert!(!all.prune_authorities());
        let mut identity = all.of(&site()).unwrap().clone();
        assert!(identity.prune(|number| number == 2));
        all.insert(site(), identity);
        assert!(all.prune_authorities());
        assert_eq!(all.authorities().all().len(), 1);
    }
}
