//! Identities: who a site is to the others (DESIGN.md, section 7, *Identities*).
//!
//! The mesh is its own certificate authority. A site's identity has generations like a provision's; every other site
//! admits it by its pin (or by the authority). What is minted gets the mesh's next *serial*, one counter for identities and
//! authorities: a machine that acknowledged files with everything up to some serial knows all that was minted until then, so
//! one number says what a machine of ten thousand admits.
//!
//! No identity ends after its issuer: an authority issues only while it outlasts what it issues, and the next one is minted
//! before that ends.
//!
//! Pure: the day and chance are passed in. What a site needs and how it is minted stands in `renewal`.

mod renewal;

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::certificate::Key;
use crate::words::Digest;
pub use renewal::Identities;

/// How long an identity is good, in days.
const IDENTITY_DAYS: i64 = 365;
/// So many days before it expires an identity is renewed: there is no daemon that pushes, so there is time for people to.
pub const RENEWED_DAYS: i64 = 90;
/// So many days before the one in use expires, a renewal goes on without those that did not acknowledge it (DESIGN.md,
/// section 7).
pub const GOES_ON_DAYS: i64 = 14;

/// A certificate authority of the mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Counted from 1.
    pub number: u32,
    /// The mesh's serial when it was minted.
    pub serial: u64,
    /// Its key.
    pub key: Key,
    /// Its certificate, DER.
    pub certificate: Vec<u8>,
    /// The day on which it expires.
    pub until: Date,
}

/// One generation of a site's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Counted from 1, for each site.
    pub number: u32,
    /// The mesh's serial when it was minted.
    pub serial: u64,
    /// The number of the authority that issued it.
    pub authority: u32,
    /// Its key.
    pub key: Key,
    /// Its certificate, DER.
    pub certificate: Vec<u8>,
    /// The day on which it expires.
    pub until: Date,
    /// Whether it is taken up although not every other site has acknowledged it.
    pub goes_on: bool,
}

impl Identity {
    /// What peers pin: the SHA-256 of the certificate.
    #[must_use]
    pub fn pin(&self) -> Digest {
        Digest::of(&self.certificate)
    }
}

/// The identity of one site: at least one generation, the newest last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteIdentity {
    older: Vec<Identity>,
    newest: Identity,
}

impl SiteIdentity {
    /// As it was stored; `None` without a generation.
    #[must_use]
    pub fn from_stored(mut generations: Vec<Identity>) -> Option<Self> {
        generations.sort_by_key(|identity| identity.number);
        let newest = generations.pop()?;
        Some(Self {
            older: generations,
            newest,
        })
    }

    /// The newest generation.
    #[must_use]
    pub fn newest(&self) -> &Identity {
        &self.newest
    }

    /// All generations, oldest first.
    pub fn generations(&self) -> impl Iterator<Item = &Identity> {
        self.older.iter().chain(std::iter::once(&self.newest))
    }

    /// The generation before the newest, if it is kept.
    #[must_use]
    pub fn before_newest(&self) -> Option<&Identity> {
        self.older.last()
    }

    /// A generation, if it is kept.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Identity> {
        self.generations()
            .find(|identity| identity.number == number)
    }

    /// Drops every generation that is neither the newest nor in use; returns whether there was one.
    pub fn prune(&mut self, in_use: impl Fn(u32) -> bool) -> bool {
        let before = self.older.len();
        self.older.retain(|identity| in_use(identity.number));
        self.older.len() != before
    }
}

/// The first day on which the renewal of an identity that expires on `until` goes on without those that did not acknowledge it.
#[must_use]
pub fn goes_on_from(until: Date) -> Date {
    until.saturating_sub((GOES_ON_DAYS - 1).days())
}

/// What a site's identity needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// It has none.
    First,
    /// It expires soon, or a newer authority has been acknowledged by all.
    Renewal,
    /// Its renewal has waited for long enough.
    GoesOn,
}

/// The authorities of a mesh, and the last serial that was given: it is kept, since one that was given must not be
/// given again when what had it is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorities {
    /// The greatest serial that was given; 0: none was.
    pub given: u64,
    all: Vec<Authority>,
}

impl Authorities {
    /// As they were stored.
    #[must_use]
    pub fn from_stored(given: u64, mut all: Vec<Authority>) -> Self {
        all.sort_by_key(|authority| authority.number);
        Self { given, all }
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn all(&self) -> &[Authority] {
        &self.all
    }

    /// The one that issues.
    #[must_use]
    pub fn newest(&self) -> Option<&Authority> {
        self.all.last()
    }

    /// Whether the one that issues ends too soon on `today`: a further one is minted while it still outlasts every identity
    /// that it issues, by as long as renewals take.
    #[must_use]
    pub fn are_due(&self, today: Date) -> bool {
        self.newest().is_some_and(|newest| {
            days_left(newest.until, today) < IDENTITY_DAYS.saturating_add(RENEWED_DAYS)
        })
    }

    /// The day on which an identity ends: who checks the chain refuses it once its authority has expired.
    #[must_use]
    pub fn end_of(&self, identity: &Identity) -> Date {
        let mut all = self.all.iter();
        let issuer = all.find(|authority| authority.number == identity.authority);
        issuer.map_or(identity.until, |issuer| issuer.until.min(identity.until))
    }

    fn next_serial(&mut self) -> u64 {
        self.given = self.given.saturating_add(1);
        self.given
    }
}

/// Whole days until `until`; negative once it is past.
#[must_use]
pub fn days_left(until: Date, today: Date) -> i64 {
    today
        .until(until)
        .map_or(i64::MAX, |span| i64::from(span.get_days()))
}
