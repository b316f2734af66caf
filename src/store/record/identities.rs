//! The records of identities and authorities.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::FORMAT;
use crate::provision::certificate::Key;
use crate::provision::{Authorities, Authority, Identity, SiteIdentity};

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct AuthoritiesRecord {
    pub format: u32,
    /// The greatest serial that was given.
    given: u64,
    /// Oldest first.
    authorities: Vec<AuthorityRecord>,
}

#[derive(Serialize, Deserialize)]
struct AuthorityRecord {
    number: u32,
    serial: u64,
    key: KeyRecord,
    #[serde(with = "super::base64")]
    certificate: Vec<u8>,
    until: Date,
}

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct IdentityRecord {
    pub format: u32,
    /// Oldest first; at least one.
    generations: Vec<GenerationRecord>,
}

#[derive(Serialize, Deserialize)]
struct GenerationRecord {
    number: u32,
    serial: u64,
    authority: u32,
    key: KeyRecord,
    #[serde(with = "super::base64")]
    certificate: Vec<u8>,
    until: Date,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    goes_on: bool,
}

/// A key, as base64 that leaves no copy in memory.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct KeyRecord(Zeroizing<String>);

impl KeyRecord {
    fn of(key: &Key) -> Self {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        Self(Zeroizing::new(STANDARD.encode(key.expose())))
    }

    fn key(&self) -> Option<Key> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let bytes = Zeroizing::new(STANDARD.decode(self.0.as_bytes()).ok()?);
        Key::from_bytes(Zeroizing::new(<[u8; 32]>::try_from(bytes.as_slice()).ok()?))
    }
}

impl AuthoritiesRecord {
    pub fn of(authorities: &Authorities) -> Self {
        let record = |authority: &Authority| AuthorityRecord {
            number: authority.number,
            serial: authority.serial,
            key: KeyRecord::of(&authority.key),
            certificate: authority.certificate.clone(),
            until: authority.until,
        };
        Self {
            format: FORMAT,
            given: authorities.given,
            authorities: authorities.all().iter().map(record).collect(),
        }
    }

    /// `None`: a key is none.
    pub fn into_authorities(self) -> Option<Authorities> {
        let authority = |record: AuthorityRecord| {
            Some(Authority {
                number: record.number,
                serial: record.serial,
                key: record.key.key()?,
                certificate: record.certificate,
                until: record.until,
            })
        };
        let all = self.authorities.into_iter().map(authority);
        let all = all.collect::<Option<Vec<_>>>()?;
        Some(Authorities::from_stored(self.given, all))
    }
}

impl From<&SiteIdentity> for IdentityRecord {
    fn from(identity: &SiteIdentity) -> Self {
        let record = |generation: &Identity| GenerationRecord {
            number: generation.number,
            serial: generation.serial,
            authority: generation.authority,
            key: KeyRecord::of(&generation.key),
            certificate: generation.certificate.clone(),
            until: generation.until,
            goes_on: generation.goes_on,
        };
        Self {
            format: FORMAT,
            generations: identity.generations().map(record).collect(),
        }
    }
}

impl IdentityRecord {
    /// `None`: it has no generation, or a key is none.
    pub fn into_identity(self) -> Option<SiteIdentity> {
        let generation = |record: GenerationRecord| {
            Some(Identity {
                number: record.number,
                serial: record.serial,
                authority: record.authority,
                key: record.key.key()?,
                certificate: record.certificate,
                until: record.until,
                goes_on: record.goes_on,
            })
        };
        let generations = self.generations.into_iter().map(generation);
        SiteIdentity::from_stored(generations.collect::<Option<Vec<_>>>()?)
    }
}
