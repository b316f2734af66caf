//! Finds what differs between two manifests.

use std::collections::{BTreeMap, BTreeSet};

use super::{Account, Difference, SiteChange};
use crate::compose::manifest::{Grants, Manifest, ServiceManifest};
use crate::compose::parts::{FilesByPath, Parts};
use crate::compose::site::{AUTHORITIES, CERTIFICATE, KEY, PEERS};
use crate::mesh::SITE_SERVICE;
use crate::words::{ReleasePath, ServiceName};

/// What differs between two manifests; empty only where they are equal.
#[must_use]
pub fn differences(held: &Manifest, wanted: &Manifest) -> Vec<Difference> {
    let mut found = Vec::new();
    if held.format != wanted.format {
        found.push(Difference::OtherFormat);
    }
    if held.mesh != wanted.mesh {
        found.push(Difference::OtherMesh {
            was: held.mesh.clone(),
        });
    }
    if held.node != wanted.node {
        found.push(Difference::OtherMachine {
            was: held.node.clone(),
        });
    }
    for (name, new) in &wanted.services {
        match held.services.get(name) {
            Some(old) => compare(name, (held, old), (wanted, new), &mut found),
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
    found
}

fn compare(
    name: &ServiceName,
    (held, old): (&Manifest, &ServiceManifest),
    (wanted, new): (&Manifest, &ServiceManifest),
    found: &mut Vec<Difference>,
) {
    if old == new {
        return;
    }
    let is_bound = !old.bindings.is_empty() || !new.bindings.is_empty();
    let (old_files, new_files) = (
        Parts::of(name, old, is_bound),
        Parts::of(name, new, is_bound),
    );
    let none = Grants::new();
    let before = old.grants.as_ref().unwrap_or(&none);
    let after = new.grants.as_ref().unwrap_or(&none);
    if before != after {
        found.push(Difference::Grants {
            provider: name.clone(),
            added: accounts(after, before),
            removed: accounts(before, after),
        });
    } else if old_files.list != new_files.list {
        found.push(Difference::List {
            provider: name.clone(),
        });
    }
    bindings(name, (old, &old_files), (new, &new_files), found);
    let changed: Vec<&ReleasePath> = differing(&old_files.own, &new_files.own).collect();
    let (changes, told) = match name.as_str() == SITE_SERVICE {
        true => of_site((held, wanted), &changed),
        false => (Vec::new(), 0),
    };
    if !changes.is_empty() {
        found.push(Difference::Site {
            service: name.clone(),
            changes,
        });
    }
    let changed = changed.len().saturating_sub(told);
    if changed > 0 {
        found.push(Difference::Files {
            service: name.clone(),
            changed,
        });
    }
    let steps: Vec<String> = differing(&old_files.commands, &new_files.commands)
        .map(|path| path.as_str().rsplit('/').next().unwrap_or_default())
        .map(str::to_owned)
        .collect();
    if !steps.is_empty() {
        found.push(Difference::Commands {
            service: name.clone(),
            steps,
        });
    }
    // The settings of a provider show in its list and its commands, as a rule.
    let is_told = found.iter().any(|difference| difference.is_of(name));
    let of: Vec<String> = [
        ("time limits", old.limits != new.limits),
        ("wait", old.unwaited != new.unwaited && !is_told),
        ("host", old.endpoint != new.endpoint && !is_told),
        ("provides", old.provides != new.provides && !is_told),
    ]
    .into_iter()
    .filter(|(_, differs)| *differs)
    .map(|(what, _)| what.to_owned())
    .collect();
    if !of.is_empty() {
        found.push(Difference::Settings {
            service: name.clone(),
            of,
        });
    }
}

/// What the changed files of a site say, and how many of them say it. Those of an identity are not counted one by one.
fn of_site(
    (held, wanted): (&Manifest, &Manifest),
    changed: &[&ReleasePath],
) -> (Vec<SiteChange>, usize) {
    let (Some(before), Some(after)) = (&held.site, &wanted.site) else {
        return (Vec::new(), 0);
    };
    let is = |file: &str| {
        let mut names = changed.iter().map(|path| path.as_str().rsplit('/').next());
        names.any(|name| name == Some(file))
    };
    let (mut changes, mut told) = (Vec::new(), 0_usize);
    let mut tell = |change: SiteChange, files: usize| {
        changes.push(change);
        told = told.saturating_add(files);
    };
    if let Some(number) = after.identity
        && before.identity != after.identity
    {
        let files = [CERTIFICATE, KEY];
        tell(
            SiteChange::Identity(number),
            files.iter().filter(|name| is(name)).count(),
        );
    }
    if is(PEERS) {
        tell(
            match after.knows > before.knows {
                true => SiteChange::Peers,
                false => SiteChange::List,
            },
            1,
        );
    }
    if is(AUTHORITIES) {
        tell(SiteChange::Authorities, 1);
    }
    (changes, told)
}

fn bindings(
    name: &ServiceName,
    (old, old_files): (&ServiceManifest, &Parts<'_>),
    (new, new_files): (&ServiceManifest, &Parts<'_>),
    found: &mut Vec<Difference>,
) {
    let rewritten = differing(&old_files.bound, &new_files.bound);
    let rewritten: Vec<&str> = rewritten.map(ReleasePath::as_str).collect();
    for (provider, bound) in &new.bindings {
        let earlier = old.bindings.get(provider);
        let folder = format!("services/{name}/bindings/{provider}/");
        if earlier.is_none_or(|earlier| earlier.generation != bound.generation) {
            found.push(Difference::Binding {
                service: name.clone(),
                provider: provider.clone(),
                generation: Some(bound.generation.number),
            });
        } else if earlier != Some(bound) || rewritten.iter().any(|path| path.starts_with(&folder)) {
            found.push(Difference::Rebound {
                service: name.clone(),
                provider: provider.clone(),
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
}

/// The paths at which two sets of files differ.
fn differing<'a>(
    old: &FilesByPath<'a>,
    new: &FilesByPath<'a>,
) -> impl Iterator<Item = &'a ReleasePath> {
    let paths: BTreeSet<&ReleasePath> = old.keys().chain(new.keys()).copied().collect();
    paths
        .into_iter()
        .filter(|path| old.get(path) != new.get(path))
}

/// The accounts of `of` that are not on `without`, each generation once.
fn accounts(of: &Grants, without: &Grants) -> Vec<Account> {
    let mut first = BTreeMap::new();
    let mut several = BTreeSet::new();
    for grant in of.iter().chain(without) {
        if *first.entry(&grant.consumer).or_insert(grant.generation) != grant.generation {
            several.insert(&grant.consumer);
        }
    }
    let without_it: BTreeSet<_> = without
        .iter()
        .map(|grant| (&grant.consumer, grant.generation))
        .collect();
    let mut accounts: Vec<Account> = of
        .iter()
        .filter(|grant| !without_it.contains(&(&grant.consumer, grant.generation)))
        .map(|grant| Account {
            consumer: grant.consumer.clone(),
            generation: grant.generation.number,
            is_one_of_several: several.contains(&grant.consumer),
        })
        .collect();
    accounts.dedup();
    accounts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::manifest::{FORMAT, FileEntry};
    use crate::compose::sample::{bound, name, node, with};
    use crate::kinds::Endpoint;
    use crate::words::{Digest, MeshName};

    fn manifest(service: &str, manifest: ServiceManifest) -> Manifest {
        Manifest {
            format: FORMAT,
            mesh: MeshName::new("prod").unwrap(),
            node: node("m0"),
            services: BTreeMap::from([(name(service), manifest)]),
            site: None,
        }
    }

    fn told(held: &Manifest, wanted: &Manifest) -> String {
        let told: Vec<String> = differences(held, wanted)
            .iter()
            .map(ToString::to_string)
            .collect();
        told.join("; ")
    }

    fn file(path: &str, content: &str) -> FileEntry {
        FileEntry {
            path: ReleasePath::new(path).unwrap(),
            mode: 0o644,
            owner: None,
            sha256: Digest::of(content.as_bytes()),
            size: 1,
            install: None,
        }
    }

    /// What is told when a service is changed by `change` alone.
    fn changed(change: impl Fn(&mut ServiceManifest)) -> String {
        let mut service = bound("broker:1@m1");
        service.files = vec![
            file("commands/web/apply", "a"),
            file("services/web/bindings/broker/host", "m1"),
            file("services/web/web.conf", "a"),
            file("services/web/web.env", "m1"),
        ];
        let before = manifest("web", service.clone());
        change(&mut service);
        told(&before, &manifest("web", service))
    }

    #[test]
    fn every_difference_has_its_own_reason_and_none_counts_no_files() {
        let touch = |path: &'static str| {
            move |service: &mut ServiceManifest| {
                for entry in &mut service.files {
                    if entry.path.as_str() == path {
                        *entry = file(path, "b");
                    }
                }
            }
        };
        let all = [
            changed(|service| service.limits.check += 1),
            changed(|service| {
                service.unwaited.insert(name("broker"));
            }),
            changed(|service| {
                service.endpoint = Some(Endpoint {
                    host: "vip".to_owned(),
                    port: 5672,
                });
            }),
            changed(|service| service.bindings = bound("broker:1@m2").bindings),
            changed(|service| service.bindings = bound("broker:2@m1").bindings),
            changed(|service| service.bindings.clear()),
            changed(touch("services/web/bindings/broker/host")),
            changed(touch("services/web/web.conf")),
            changed(touch("commands/web/apply")),
            changed(|_| ()),
        ];
        insta::assert_snapshot!(all.join("\n"), @r#"
        settings of web changed: time limits
        settings of web changed: wait
        settings of web changed: host
        web gets other settings of broker
        web gets generation 2 of broker
        web no longer uses broker
        web gets other settings of broker
        1 file of web changed
        command of web changed: apply
        "#);
    }

    #[test]
    fn the_list_of_a_provider_that_is_written_in_another_way_is_no_file_of_its_own() {
        let with_list = |content| {
            let mut service = with("billing:1");
            service.files = vec![
                file("commands/broker/empty", content),
                file("services/broker/grants.json", content),
            ];
            manifest("broker", service)
        };
        insta::assert_snapshot!(told(&with_list("a"), &with_list("b")), @"the list of broker is written otherwise");
    }

    #[test]
    fn what_was_sent_under_another_name_says_so() {
        let before = manifest("broker", with(""));
        let mut after = before.clone();
        after.mesh = MeshName::new("try").unwrap();
        after.node = node("m1");
        insta::assert_snapshot!(told(&before, &after), @"it was sent to as part of the mesh prod; it was sent to as m0");
    }
}
