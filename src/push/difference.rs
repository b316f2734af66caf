//! What differs between what a machine holds and what it should be, in the words of an operator.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::compose::manifest::{FileEntry, Grants, Manifest, ServiceManifest};
use crate::words::{ReleasePath, ServiceName};

/// One account that a list gains or loses.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Account {
    /// Whose.
    pub consumer: ServiceName,
    /// Which generation.
    pub generation: u32,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.consumer)?;
        if self.generation > 1 {
            write!(f, " (generation {})", self.generation)?;
        }
        Ok(())
    }
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Difference {
    /// A service comes.
    Comes {
        /// Which.
        service: ServiceName,
        /// How many files it has.
        files: usize,
    },
    /// A service leaves.
    Leaves {
        /// Which.
        service: ServiceName,
    },
    /// A provider's list changes.
    Grants {
        /// Whose list.
        provider: ServiceName,
        /// Gains.
        added: Vec<Account>,
        /// Loses.
        removed: Vec<Account>,
    },
    /// A consumer gets another account.
    Binding {
        /// Whose.
        service: ServiceName,
        /// On which provider.
        provider: ServiceName,
        /// The generation; absent: the binding goes.
        generation: Option<u32>,
    },
    /// Files or commands of a service change.
    Files {
        /// Whose.
        service: ServiceName,
        /// How many.
        changed: usize,
    },
    /// The machine holds more than is known of: a service that was forgotten, or a list to be confirmed.
    Unconfirmed,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comes { service, files } => {
                write!(f, "services/{service}, {}", count(*files, "file"))
            }
            Self::Leaves { service } => write!(f, "{service} leaves"),
            Self::Grants {
                provider,
                added,
                removed,
            } => {
                write!(f, "grants of {provider}:")?;
                for account in added {
                    write!(f, " +{account}")?;
                }
                for account in removed {
                    write!(f, " -{account}")?;
                }
                if added.is_empty() && removed.is_empty() {
                    write!(f, " what accounts may do")?;
                }
                Ok(())
            }
            Self::Binding {
                service,
                provider,
                generation: Some(generation),
            } => write!(f, "{service} gets generation {generation} of {provider}"),
            Self::Binding {
                service, provider, ..
            } => write!(f, "{service} no longer uses {provider}"),
            Self::Files { service, changed } => {
                write!(f, "services/{service}, {} changed", count(*changed, "file"))
            }
            Self::Unconfirmed => f.write_str("to be confirmed"),
        }
    }
}

fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// What differs; never empty, since it is asked only where the bundles do.
#[must_use]
pub fn differences(held: &Manifest, wanted: &Manifest) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, new) in &wanted.services {
        match held.services.get(name) {
            Some(old) => compare(name, old, new, &mut found),
            None => found.push(Difference::Comes {
                service: name.clone(),
                files: new.files.len(),
            }),
        }
    }
    for name in held.services.keys() {
        if !wanted.services.contains_key(name) {
            found.push(Difference::Leaves {
                service: name.clone(),
            });
        }
    }
    if found.is_empty() {
        found.push(Difference::Unconfirmed);
    }
    found
}

fn compare(
    name: &ServiceName,
    old: &ServiceManifest,
    new: &ServiceManifest,
    found: &mut Vec<Difference>,
) {
    let found_before = found.len();
    let none = Grants::new();
    let before = old.grants.as_ref().unwrap_or(&none);
    let after = new.grants.as_ref().unwrap_or(&none);
    if before != after {
        found.push(Difference::Grants {
            provider: name.clone(),
            added: accounts(after, before),
            removed: accounts(before, after),
        });
    }
    for (provider, bound) in &new.bindings {
        let earlier = old.bindings.get(provider);
        if earlier.is_none_or(|earlier| earlier.generation != bound.generation) {
            found.push(Difference::Binding {
                service: name.clone(),
                provider: provider.clone(),
                generation: Some(bound.generation.number),
            });
        }
    }
    for provider in old.bindings.keys() {
        if !new.bindings.contains_key(provider) {
            found.push(Difference::Binding {
                service: name.clone(),
                provider: provider.clone(),
                generation: None,
            });
        }
    }
    let (old_files, new_files) = (own_files(name, old), own_files(name, new));
    let come_or_change = new_files
        .iter()
        .filter(|(path, file)| old_files.get(*path) != Some(*file))
        .count();
    let go = old_files
        .keys()
        .filter(|path| !new_files.contains_key(*path))
        .count();
    let changed = come_or_change.saturating_add(go);
    if changed > 0 || (old != new && found.len() == found_before) {
        found.push(Difference::Files {
            service: name.clone(),
            changed,
        });
    }
}

/// The files of a service but for its list and what binds it: of those the differences speak by themselves.
fn own_files<'a>(
    name: &ServiceName,
    service: &'a ServiceManifest,
) -> BTreeMap<&'a ReleasePath, &'a FileEntry> {
    let list = service.grant_file(name).map(|file| &file.path);
    service
        .files
        .iter()
        .filter(|file| Some(&file.path) != list)
        .filter(|file| !file.path.as_str().contains("/bindings/"))
        .map(|file| (&file.path, file))
        .collect()
}

/// The accounts of `of` that are not on `without`, each generation once.
fn accounts(of: &Grants, without: &Grants) -> Vec<Account> {
    let without: BTreeSet<_> = without
        .iter()
        .map(|grant| (&grant.consumer, grant.generation))
        .collect();
    let mut accounts: Vec<Account> = of
        .iter()
        .filter(|grant| !without.contains(&(&grant.consumer, grant.generation)))
        .map(|grant| Account {
            consumer: grant.consumer.clone(),
            generation: grant.generation.number,
        })
        .collect();
    accounts.dedup();
    accounts
}
