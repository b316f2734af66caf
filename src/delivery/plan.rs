//! What the receiving script reads instead of the manifest: lines of values between tabs.
//!
//! ```text
//! plan 1
//! S name steps list loads applies others test load apply check remove
//! F mode owner service path
//! I mode owner hash service install path
//! ```
//!
//! Services stand in the order in which they are applied. `steps` has a letter for each command that there is
//! (`tlvacr`); `loads`, `applies` and `others` are digests of what makes a list to be loaded, a service to be applied,
//! a check to be made: equal ones in the last applied release mean that there is nothing to do. `mode` is what
//! `stat -c %f` prints. A value that is not there is `-`; none can hold a tab or a newline.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::compose::manifest::{FileEntry, Manifest, ServiceManifest, Step};
use crate::mesh::Owner;
use crate::words::{Digest, ServiceName};

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlanError {
    /// An owner that could forge a line.
    #[error("{path}: {owner:?} is no owner")]
    Owner { path: String, owner: String },
}

/// The plan of a manifest, and the checksums of everything in the release.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// `plan`.
    pub plan: Vec<u8>,
    /// `sums`, in the format of `sha256sum -c`: of all files, of the manifest and of the plan.
    pub sums: Vec<u8>,
    /// `manifest.json`.
    pub manifest: Vec<u8>,
}

impl Plan {
    /// Writes the plan of `manifest`.
    ///
    /// # Errors
    /// When an owner is none.
    pub(super) fn of(manifest: &Manifest) -> Result<Self, PlanError> {
        let mut plan = String::from("plan 1\n");
        for name in manifest.apply_order() {
            if let Some(service) = manifest.services.get(name) {
                service_line(&mut plan, name, service);
            }
        }
        let mut installs = String::new();
        let mut sums = String::new();
        for (name, service) in &manifest.services {
            for file in &service.files {
                let owner = owner_of(file)?;
                let mode = format!("{:x}", 0o100_000 | u32::from(file.mode));
                let path = &file.path;
                let _ = writeln!(plan, "F\t{mode}\t{owner}\t{name}\t{path}");
                let _ = writeln!(sums, "{}  ./{path}", file.sha256);
                if let Some(install) = &file.install {
                    let hash = file.sha256;
                    let _ = writeln!(
                        installs,
                        "I\t{mode}\t{owner}\t{hash}\t{name}\t{install}\t{path}"
                    );
                }
            }
        }
        plan.push_str(&installs);
        let manifest = manifest.canonical();
        let _ = writeln!(sums, "{}  ./manifest.json", Digest::of(&manifest));
        let _ = writeln!(sums, "{}  ./plan", Digest::of(plan.as_bytes()));
        Ok(Self {
            plan: plan.into_bytes(),
            sums: sums.into_bytes(),
            manifest,
        })
    }
}

fn owner_of(file: &FileEntry) -> Result<&str, PlanError> {
    match &file.owner {
        None => Ok("-"),
        Some(owner) if Owner::parse(owner).is_some() => Ok(owner),
        Some(owner) => Err(PlanError::Owner {
            path: file.path.to_string(),
            owner: owner.clone(),
        }),
    }
}

/// What the receiving script compares of a service between two releases: equal marks mean that there is nothing to do.
struct Marks {
    /// A letter for each command that there is.
    steps: String,
    /// Of what makes a list to be loaded.
    loads: String,
    /// Of what makes a service to be applied.
    applies: String,
    /// Of what makes a check to be made.
    others: String,
}

impl Marks {
    fn has(&self, step: char) -> bool {
        self.steps.contains(step)
    }
}

/// The services that a send leaves alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftAlone {
    /// Each has a list that is not loaded or a check that is not run, so nobody finds out whether it still holds.
    pub unverified: BTreeSet<ServiceName>,
    /// Of each nothing is loaded, applied or checked.
    pub untouched: BTreeSet<ServiceName>,
}

/// The services of `manifest` that a send leaves alone where `base` is in force. `is_loaded` tells whether a provider's list is
/// loaded anew whatever it says.
#[must_use]
pub fn left_alone(
    base: Option<&Manifest>,
    is_loaded: impl Fn(&ServiceName) -> bool,
    manifest: &Manifest,
) -> LeftAlone {
    let mut left = LeftAlone::default();
    let before = |name| base.and_then(|base| base.services.get(name));
    for (name, service) in &manifest.services {
        let Some(before) = before(name) else {
            continue; // all of it comes
        };
        let (before, now) = (marks(name, before), marks(name, service));
        let has_list = now.has('l');
        let applies = before.applies != now.applies;
        let loads = has_list && (before.loads != now.loads || applies || is_loaded(name));
        let checks = loads || applies || before.others != now.others;
        if (has_list && !loads) || (now.has('c') && !checks) {
            left.unverified.insert(name.clone());
        }
        if !checks {
            left.untouched.insert(name.clone());
        }
    }
    left
}

fn marks(name: &ServiceName, service: &ServiceManifest) -> Marks {
    let command = |step: Step| {
        let path = step.path(name);
        service
            .files
            .iter()
            .find(move |file| file.path.as_str() == path)
    };
    let list = service.grant_file(name);
    let steps: String = [
        (Step::Test, 't', true),
        (Step::Load, 'l', list.is_some()),
        (Step::Verify, 'v', list.is_some()),
        (Step::Apply, 'a', true),
        (Step::Check, 'c', true),
        (Step::Remove, 'r', true),
    ]
    .into_iter()
    .filter(|&(step, _, possible)| possible && command(step).is_some())
    .map(|(_, letter, _)| letter)
    .collect();

    let (mut loads, mut applies, mut others) = (String::new(), String::new(), String::new());
    let apart = format!("commands/{name}/");
    for file in &service.files {
        let of = match file.path.as_str().strip_prefix(&apart) {
            Some("load" | "verify") => &mut loads,
            Some("test" | "check" | "remove" | "empty") => &mut others,
            _ if list.is_some_and(|list| list.path == file.path) => &mut loads,
            _ => &mut applies,
        };
        let _ = writeln!(
            of,
            "{}\t{}\t{:?}\t{}\t{:?}",
            file.path, file.mode, file.owner, file.sha256, file.install
        );
    }
    let short = |text: &str| Digest::of(text.as_bytes()).short();
    Marks {
        steps,
        loads: short(&loads),
        applies: short(&applies),
        others: short(&others),
    }
}

fn service_line(plan: &mut String, name: &ServiceName, service: &ServiceManifest) {
    let marks = marks(name, service);
    let limits = &service.limits;
    let _ = writeln!(
        plan,
        "S\t{name}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
        if marks.steps.is_empty() {
            "-"
        } else {
            &marks.steps
        },
        service
            .grant_file(name)
            .map_or("-", |list| list.path.as_str()),
        marks.loads,
        marks.applies,
        marks.others,
        limits.test.max(1),
        limits.load.max(1),
        limits.apply.max(1),
        limits.check.max(1),
        limits.remove.max(1),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::{Sample, bound, name, with};
    use crate::words::ReleasePath;

    /// A service of these files, each PATH=CONTENT.
    fn service(of: ServiceManifest, files: &[&str]) -> ServiceManifest {
        let files = files.iter().map(|file| {
            let (path, content) = file.split_once('=').unwrap();
            FileEntry {
                path: ReleasePath::new(path).unwrap(),
                mode: 0o644,
                owner: None,
                sha256: Digest::of(content.as_bytes()),
                size: 1,
                install: None,
            }
        });
        ServiceManifest {
            files: files.collect(),
            ..of
        }
    }

    /// What a send over `before` leaves unverified of a provider and of a consumer beside it; `anew`: the list is loaded
    /// whatever it says.
    fn left(before: [&[&str]; 2], after: [&[&str]; 2], anew: bool) -> [String; 2] {
        let manifest = |[broker, web]: [&[&str]; 2]| {
            let services = vec![
                ("broker", service(with("web:1"), broker)),
                ("web", service(bound("broker:1@m0"), web)),
            ];
            let sample = Sample::of(&[]).sent("m0", services);
            let sent = sample.fleet["m0"].sent.clone();
            Manifest::clone(&sent.unwrap().manifest)
        };
        let is_loaded = |service: &ServiceName| anew && *service == name("broker");
        let left = left_alone(Some(&manifest(before)), is_loaded, &manifest(after));
        let told = |names: &BTreeSet<ServiceName>| {
            let names: Vec<&str> = names.iter().map(ServiceName::as_str).collect();
            names.join(" ")
        };
        [told(&left.unverified), told(&left.untouched)]
    }

    #[test]
    fn a_send_leaves_unverified_what_has_a_list_or_a_check_and_does_not_change() {
        let broker: &[&str] = &["commands/broker/load=l", "services/broker/grants.txt=web"];
        let web: &[&str] = &["commands/web/check=c", "services/web/a=1"];
        let plain: &[&str] = &["services/web/a=1"];
        assert_eq!(
            left([broker, web], [broker, web], false),
            ["broker web", "broker web"]
        );
        assert_eq!(left([broker, web], [broker, web], true), ["web", "web"]);
        assert_eq!(
            left([broker, plain], [broker, plain], false),
            ["broker", "broker web"]
        );
        let list: &[&str] = &["commands/broker/load=l", "services/broker/grants.txt="];
        assert_eq!(left([list, web], [broker, web], false), ["web", "web"]);
        // It takes its files, and its list is loaded after that.
        let files: &[&str] = &[
            "commands/broker/load=l",
            "services/broker/a=1",
            "services/broker/grants.txt=web",
        ];
        assert_eq!(left([broker, web], [files, web], false), ["web", "web"]);
        let edited: &[&str] = &["commands/web/check=c", "services/web/a=2"];
        assert_eq!(
            left([broker, web], [broker, edited], false),
            ["broker", "broker"]
        );
        let checked: &[&str] = &["commands/web/check=d", "services/web/a=1"];
        assert_eq!(
            left([broker, web], [broker, checked], false),
            ["broker", "broker"]
        );
    }

    #[test]
    fn what_was_not_there_before_is_verified_by_the_send() {
        let manifest = |services| {
            let sample = Sample::of(&[]).sent("m0", services);
            let sent = sample.fleet["m0"].sent.clone();
            Manifest::clone(&sent.unwrap().manifest)
        };
        let broker = || {
            service(
                with(""),
                &["commands/broker/load=l", "services/broker/grants.txt="],
            )
        };
        let after = manifest(vec![("broker", broker())]);
        assert_eq!(left_alone(None, |_| false, &after), LeftAlone::default());
        let before = manifest(vec![]);
        let left = left_alone(Some(&before), |_| false, &after);
        assert_eq!(left, LeftAlone::default());
    }
}
