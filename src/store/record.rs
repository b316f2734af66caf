//! What a store's records look like, in every backend: their names, and their JSON, format 1.
//!
//! Invariant: a format only ever grows by optional fields; another meaning is another number, and a number that this
//! grid does not know is an error of its own. Runtime types are converted here and nowhere else; a manifest
//! is kept as it is, its JSON being a format of its own that lies on machines too.
//! Threat: serde's errors quote the value that they refuse, which may be a secret. Only where it stood is kept of one.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

mod identities;
mod machine;

use super::StoreError;
use super::journal::{Head, JournalRecord};
use super::packed;
use crate::compose::manifest::Manifest;
use crate::provision::{Credential, Provision, ProvisionId, State};
use crate::words::{Digest, Era, Generation, NodeName, Salt, Secret, StoreId};

pub(super) use identities::{AuthoritiesRecord, IdentityRecord};
pub(super) use machine::MachineRecord;

/// The format that this grid reads and writes.
pub(super) const FORMAT: u32 = 1;

/// Room for a record with secrets, so that it is not moved while it is written: moving leaves copies behind.
const ROOM: usize = 4096;

/// The names of records.
pub(super) mod name {
    use super::{Digest, NodeName, ProvisionId};

    /// In the open: which store, and for whom it is sealed.
    pub const META: &str = "meta";
    /// What changes with every commit.
    pub const HEAD: &str = "head";
    /// The mesh's certificate authorities, all of them.
    pub const AUTHORITIES: &str = "authorities";
    pub const IDENTITIES: &str = "identity/";
    pub const PROVISIONS: &str = "provision/";
    pub const MACHINES: &str = "machine/";
    pub const MANIFESTS: &str = "manifest/";
    pub const CONTENTS: &str = "content/";
    pub const JOURNAL: &str = "journal/";

    pub fn provision(id: &ProvisionId) -> String {
        format!("{PROVISIONS}{id}")
    }
    pub fn identity(site: &NodeName) -> String {
        format!("{IDENTITIES}{site}")
    }
    pub fn machine(node: &NodeName) -> String {
        format!("{MACHINES}{node}")
    }
    /// The manifests of one machine.
    pub fn manifests(node: &NodeName) -> String {
        format!("{MANIFESTS}{node}/")
    }
    /// A manifest names its machine, so none is ever shared by two; it lies apart from the machine's record so
    /// that an acknowledgement does not write it again.
    pub fn manifest(node: &NodeName, digest: &Digest) -> String {
        format!("{MANIFESTS}{node}/{digest}")
    }
    pub fn content(digest: &Digest) -> String {
        format!("{CONTENTS}{digest}")
    }
    /// In order of number.
    pub fn journal(number: u64) -> String {
        format!("{JOURNAL}{number:020}")
    }
}

/// A record that says which format it has.
pub(super) trait Versioned: Serialize + DeserializeOwned {
    fn format(&self) -> u32;
}

macro_rules! versioned {
    ($($record:ty),*) => {
        $(impl Versioned for $record {
            fn format(&self) -> u32 {
                self.format
            }
        })*
    };
}
versioned!(
    Meta,
    HeadRecord,
    ProvisionRecord,
    AuthoritiesRecord,
    IdentityRecord,
    MachineRecord,
    Manifest,
    JournalRecord
);

/// A record's JSON.
pub(super) fn encode(record: &impl Versioned) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(ROOM));
    // Neither maps with keys other than text nor failing implementations are among the types.
    let _ = serde_json::to_writer(&mut *bytes, record);
    bytes
}

/// Reads a record, packed or not.
pub(super) fn decode<R: Versioned>(name: &str, bytes: &[u8]) -> Result<R, StoreError> {
    #[derive(Deserialize)]
    struct Probe {
        format: u32,
    }
    let unknown = |why: String| StoreError::Format {
        record: name.to_owned(),
        why,
    };
    let other = |format| unknown(format!("format {format}, this grid knows {FORMAT}"));
    let bytes = &*packed::unpack(bytes).map_err(unknown)?;
    match serde_json::from_slice::<R>(bytes) {
        Ok(record) if record.format() == FORMAT => Ok(record),
        Ok(record) => Err(other(record.format())),
        Err(e) => match serde_json::from_slice::<Probe>(bytes) {
            Ok(probe) if probe.format != FORMAT => Err(other(probe.format)),
            _ => Err(unknown(format!(
                "format {FORMAT} with something unknown at line {}, column {}",
                e.line(),
                e.column()
            ))),
        },
    }
}

/// Somebody for whom the store is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SealedFor {
    pub name: String,
    pub key: String,
}

/// Which store this is, and its data key. In the open; `seal` proves that it was not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    pub format: u32,
    #[serde(with = "hex")]
    pub store: [u8; 8],
    pub era: Era,
    pub created: Timestamp,
    /// The first one made the store, and is in it without being named, unless `all_are_named`.
    pub recipients: Vec<SealedFor>,
    /// Whether the declaration names, or named, all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_are_named: bool,
    /// The data key under age.
    #[serde(with = "base64")]
    pub key: Vec<u8>,
    /// Nothing, sealed under this record's own text.
    #[serde(with = "base64")]
    pub seal: Vec<u8>,
}

impl Meta {
    pub fn id(&self) -> StoreId {
        StoreId(self.store)
    }

    /// The name that `seal` is sealed under: all that stands here, less the seal.
    pub fn seal_name(&self) -> String {
        let unsealed = Self {
            seal: Vec::new(),
            ..self.clone()
        };
        String::from_utf8_lossy(&encode(&unsealed)).into_owned()
    }
}

/// What changes with every commit. The counts tell a store that lost a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeadRecord {
    pub format: u32,
    pub push: u64,
    pub commits: u64,
    pub provisions: u64,
    pub machines: u64,
    /// Absent: there are none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub identities: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub authorities: u64,
    pub journal: Head,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl HeadRecord {
    pub fn of_new(store: StoreId) -> Self {
        Self {
            format: FORMAT,
            push: 0,
            commits: 0,
            provisions: 0,
            machines: 0,
            identities: 0,
            authorities: 0,
            journal: Head::of_new(store),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ProvisionRecord {
    pub format: u32,
    pub by_hand: bool,
    /// Oldest first; at least one.
    pub generations: Vec<CredentialRecord>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CredentialRecord {
    pub generation: Generation,
    pub state: State,
    pub secret: Zeroizing<String>,
    #[serde(with = "hex")]
    pub salt: [u8; 16],
}

impl From<&Provision> for ProvisionRecord {
    fn from(provision: &Provision) -> Self {
        Self {
            format: FORMAT,
            by_hand: provision.by_hand,
            generations: provision
                .generations()
                .map(|credential| CredentialRecord {
                    generation: credential.generation,
                    state: credential.state,
                    secret: Zeroizing::new(credential.secret.expose().to_owned()),
                    salt: credential.salt.0,
                })
                .collect(),
        }
    }
}

impl ProvisionRecord {
    /// `None`: it has no generation.
    pub fn into_provision(self) -> Option<Provision> {
        let credentials = self
            .generations
            .into_iter()
            .map(|mut credential| Credential {
                generation: credential.generation,
                state: credential.state,
                secret: Secret::new(std::mem::take(&mut *credential.secret)),
                salt: Salt(credential.salt),
            })
            .collect();
        Provision::from_stored(self.by_hand, credentials)
    }
}

/// Bytes of a fixed number, as lowercase hexadecimal digits.
mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let wrong = || D::Error::custom("not hexadecimal digits of the right number");
        let text = String::deserialize(deserializer)?;
        if text.len() != 2 * N || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        let mut bytes = [0; N];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let pair = text.get(2 * at..2 * at + 2).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(bytes)
    }
}

/// Bytes as base64.
mod base64 {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD
            .decode(text)
            .map_err(|_| D::Error::custom("not base64"))
    }
}

#[cfg(test)]
mod tests;
