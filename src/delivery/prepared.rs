//! Sends and questions before anybody is reached: their command lines, their bytes, their time.

use std::time::Duration;

use super::courier::{Manner, Parcel, Question};
use super::ear::failure;
use super::plan::Plan;
use super::receipt::{FailedStep, Failure};
use super::script::{Launch, receiving};
use super::tar::Tar;
use crate::compose::manifest::Manifest;
use crate::words::Digest;

/// No machine hashes slower, in bytes a second.
const SLOWEST_HASH: u64 = 8 * 1024 * 1024;

/// A send, all of it worked out before anybody is reached.
pub(super) struct Prepared {
    launch: Launch,
    /// What the machine lacks.
    pub delta: Tar,
    /// Everything.
    pub all: Tar,
    /// How long the machine may take for everything but the transfer.
    pub steps: Duration,
}

impl Prepared {
    /// Works out the send of `parcel`. `name`: drawn by chance, for the folder it is received in.
    ///
    /// # Errors
    /// What cannot be written as a plan or as a tar.
    pub(super) fn new(parcel: &Parcel, name: &str, lock_wait: Duration) -> Result<Self, Failure> {
        let refused = |cause: String| failure(FailedStep::Source, cause);
        let manifest = &parcel.bundle.manifest;
        let plan = Plan::of(manifest).map_err(|error| refused(error.to_string()))?;
        let into = format!("releases/.new-{name}");
        let base = parcel.base.as_deref();
        let lay_out = |base| {
            Tar::lay_out(&parcel.bundle, &plan, base, &into)
                .map_err(|error| refused(error.to_string()))
        };
        let (delta, all) = (lay_out(base)?, lay_out(None)?);
        let replaces: Vec<String> = parcel.replaces.iter().map(ToString::to_string).collect();
        let or_none = |text: String| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                text
            }
        };
        let launch = Launch {
            become_root: parcel.target.node.become_root,
            script: receiving(),
            arguments: vec![
                "send".into(),
                parcel.target.node.root.to_string(),
                lock_wait.as_secs().to_string(),
                name.to_owned(),
                or_none(super::message::clean(&parcel.sender)),
                parcel.token.to_string(),
                or_none(replaces.join(",")),
                u8::from(parcel.take_over).to_string(),
                parcel.bundle.digest.to_string(),
                Digest::of(&plan.sums).to_string(),
                base.map_or_else(|| "-".to_owned(), |base| base.digest().to_string()),
                delta.size.to_string(),
                all.size.to_string(),
            ],
        };
        let limits = |manifest: &Manifest| {
            let of = |s: &crate::compose::manifest::ServiceManifest| {
                let l = &s.limits;
                [l.test, l.load, l.load, l.apply, l.check, l.remove]
                    .into_iter()
                    .fold(60, u64::saturating_add)
            };
            manifest
                .services
                .values()
                .map(of)
                .fold(0, u64::saturating_add)
        };
        let base_limits = base.map_or(0, |base| limits(base));
        let hashing = all.size / SLOWEST_HASH;
        // Forward and back.
        let steps = limits(manifest)
            .saturating_add(base_limits)
            .saturating_mul(2)
            .saturating_add(hashing.saturating_mul(4));
        Ok(Self {
            launch,
            delta,
            all,
            steps: Duration::from_secs(steps),
        })
    }

    /// What is to be started on the machine.
    pub(super) fn launch(&self) -> &Launch {
        &self.launch
    }

    /// How long the machine may be silent over its checksums.
    pub(super) fn hashing(&self) -> Duration {
        Duration::from_secs(self.all.size / SLOWEST_HASH)
    }
}

/// What a send of `parcel` would carry beyond what the machine is thought to hold: files, and bytes of content.
///
/// # Errors
/// What cannot be written as a plan or as a tar.
pub fn load_of(parcel: &Parcel) -> Result<(u64, u64), Failure> {
    let prepared = Prepared::new(parcel, "none", Duration::ZERO)?;
    Ok((prepared.delta.files, prepared.delta.content))
}

/// What is to be started on the machine to ask it.
///
/// # Errors
/// What cannot be written as a plan.
pub(super) fn question(
    question: &Question,
    name: &str,
    sender: &str,
    wait: Duration,
) -> Result<Launch, Failure> {
    let node = &question.target.node;
    let (mode, looked_for) = match &question.manner {
        Manner::Settle => ("ask", Vec::new()),
        Manner::Look(None) => ("peek", vec!["-".to_owned(); 2]),
        Manner::Look(Some(release)) => {
            let plan = Plan::of(release).map_err(|error| {
                failure(FailedStep::Source, format!("what it was sent: {error}"))
            })?;
            let sums = Digest::of(&plan.sums).to_string();
            ("peek", vec![release.digest().to_string(), sums])
        }
    };
    let mut launch = Launch {
        become_root: node.become_root,
        script: receiving(),
        arguments: vec![
            mode.to_owned(),
            node.root.to_string(),
            wait.as_secs().to_string(),
            name.to_owned(),
            sender.to_owned(),
        ],
    };
    launch.arguments.extend(looked_for);
    Ok(launch)
}

/// How long a machine may be silent over the checksums of what it is asked to look at.
pub(super) fn hashing(manner: &Manner) -> Duration {
    let Manner::Look(Some(release)) = manner else {
        return Duration::ZERO;
    };
    let files = release.services.values().flat_map(|service| &service.files);
    // An installed file lies there twice.
    let bytes = files.fold(0_u64, |sum, file| {
        sum.saturating_add(file.size.saturating_mul(2))
    });
    Duration::from_secs(bytes / SLOWEST_HASH)
}
