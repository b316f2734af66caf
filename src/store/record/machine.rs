//! The record of a machine: where it lies, what it took, and what was tried. Its releases are named by their digests, and
//! kept in records of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::FORMAT;
use crate::compose::Release;
use crate::compose::former::Former;
use crate::compose::location::Location;
use crate::compose::manifest::Grants;
use crate::compose::sent::{Attempt, Machine, Sent};
use crate::compose::unwell::Unwell;
use crate::words::{AbsolutePath, Digest, ServiceName, Token};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct MachineRecord {
    pub format: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent: Option<SentRecord>,
    /// Absent also where it was written before these places were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    put_back: Option<LocationRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<AttemptRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rolled_back: Option<Digest>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    forgotten: BTreeSet<ServiceName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unwell: Option<u64>,
    /// Absent also where it was written before services were told apart: `unwell` is of the machine then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unwell_services: BTreeMap<ServiceName, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<FormerRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FormerRecord {
    at: LocationRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent: Option<SentRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<AttemptRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SentRecord {
    manifest: Digest,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lists: BTreeMap<ServiceName, Grants>,
    address: String,
    /// Absent: it was written before roots were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<AbsolutePath>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_foreign: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AttemptRecord {
    token: Token,
    manifest: Digest,
    /// Absent: it was written before places of attempts were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<LocationRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LocationRecord {
    address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<AbsolutePath>,
}

impl LocationRecord {
    fn of(at: &Location) -> Self {
        Self {
            address: at.address.clone(),
            root: at.root.clone(),
        }
    }

    fn into_location(self) -> Location {
        Location {
            address: self.address,
            root: self.root,
        }
    }
}

/// A release, named by its digest and kept in a record of its own.
type Manifests = Vec<Arc<Release>>;

fn name_release(release: &Arc<Release>, manifests: &mut Manifests) -> Digest {
    manifests.push(Arc::clone(release));
    release.digest()
}

impl SentRecord {
    fn of(sent: &Sent, manifests: &mut Manifests) -> Self {
        Self {
            manifest: name_release(&sent.manifest, manifests),
            lists: sent.lists.clone(),
            address: sent.at.address.clone(),
            root: sent.at.root.clone(),
            is_foreign: sent.is_foreign,
        }
    }

    fn into_sent(self, manifest: &mut dyn FnMut(&Digest) -> Option<Arc<Release>>) -> Option<Sent> {
        Some(Sent {
            manifest: manifest(&self.manifest)?,
            lists: self.lists,
            at: Location {
                address: self.address,
                root: self.root,
            },
            is_foreign: self.is_foreign,
        })
    }
}

impl AttemptRecord {
    fn of(attempt: &Attempt, manifests: &mut Manifests) -> Self {
        Self {
            token: attempt.token,
            manifest: name_release(&attempt.manifest, manifests),
            at: attempt.at.as_ref().map(LocationRecord::of),
        }
    }

    fn into_attempt(
        self,
        manifest: &mut dyn FnMut(&Digest) -> Option<Arc<Release>>,
    ) -> Option<Attempt> {
        Some(Attempt {
            token: self.token,
            manifest: manifest(&self.manifest)?,
            at: self.at.map(LocationRecord::into_location),
        })
    }
}

/// What may be absent, converted; `None`: it is there, and cannot be.
fn converted<A, B>(record: Option<A>, convert: impl FnOnce(A) -> Option<B>) -> Option<Option<B>> {
    match record {
        None => Some(None),
        Some(record) => convert(record).map(Some),
    }
}

impl MachineRecord {
    /// A machine's record, and the manifests that it names.
    pub fn of(machine: &Machine) -> (Self, Vec<Arc<Release>>) {
        let mut manifests = Manifests::new();
        let all = &mut manifests;
        let former = machine.former.iter().map(|former| FormerRecord {
            at: LocationRecord::of(&former.at),
            token: former.token,
            sent: former.sent.as_ref().map(|s| SentRecord::of(s, all)),
            attempt: former.attempt.as_ref().map(|a| AttemptRecord::of(a, all)),
        });
        let former = former.collect();
        let record = Self {
            format: FORMAT,
            token: machine.token,
            sent: machine.sent.as_ref().map(|s| SentRecord::of(s, all)),
            put_back: machine.put_back.as_ref().map(LocationRecord::of),
            attempt: machine.attempt.as_ref().map(|a| AttemptRecord::of(a, all)),
            rolled_back: machine.rolled_back,
            forgotten: machine.forgotten.clone(),
            unwell: machine.unwell.machine,
            unwell_services: machine.unwell.services.clone(),
            former,
        };
        (record, manifests)
    }

    /// The machine; `None`: a manifest that it names is not there.
    pub fn into_machine(
        self,
        mut manifest: impl FnMut(&Digest) -> Option<Arc<Release>>,
    ) -> Option<Machine> {
        let manifest = &mut manifest;
        let mut former = Vec::with_capacity(self.former.len());
        for record in self.former {
            former.push(Former {
                at: record.at.into_location(),
                token: record.token,
                sent: converted(record.sent, |sent| sent.into_sent(manifest))?,
                attempt: converted(record.attempt, |a| a.into_attempt(manifest))?,
            });
        }
        Some(Machine {
            token: self.token,
            sent: converted(self.sent, |sent| sent.into_sent(manifest))?,
            put_back: self.put_back.map(LocationRecord::into_location),
            attempt: converted(self.attempt, |a| a.into_attempt(manifest))?,
            rolled_back: self.rolled_back,
            forgotten: self.forgotten,
            unwell: Unwell {
                machine: self.unwell,
                services: self.unwell_services,
            },
            former,
        })
    }
}
