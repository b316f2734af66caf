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

fn service_line(plan: &mut String, name: &ServiceName, service: &ServiceManifest) {
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
    let limits = &service.limits;
    let _ = writeln!(
        plan,
        "S\t{name}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
        if steps.is_empty() { "-" } else { &steps },
        list.map_or("-", |list| list.path.as_str()),
        short(&loads),
        short(&applies),
        short(&others),
        limits.test.max(1),
        limits.load.max(1),
        limits.apply.max(1),
        limits.check.max(1),
        limits.remove.max(1),
    );
}
