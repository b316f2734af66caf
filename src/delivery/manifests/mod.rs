//! The courier `manifests`: a site without sshd. A push writes the mesh's resources for it to a folder of the controller's, for
//! GitOps: `resources.yaml`, and the Secrets in `secrets.yaml` (0600), which is to be sealed before it is committed.
//!
//! **Nobody observes such a site.** The receipt says that the files were written, and that is all that anybody acknowledges: the
//! cluster has them once whoever applies the folder has. What that means for rule 6 (DESIGN.md, section 7, *Identities*):
//!
//! - The site never blocks a renewal of others: it admits them as soon as its folder says so. Until the folder is applied, the
//!   cluster refuses a peer that was renewed meanwhile; a poll that fails is tried again, so that this ends by itself.
//! - Its own renewal counts as taken up once it is written, though the cluster may show the older certificate for days. So its
//!   peers go on admitting that one too: the identity before the newest of a site that nobody observes is kept, and its pin
//!   stays, until the next renewal takes its place (`compose::identities`). Past its last day nobody admits it anyway.
//!
//! What grid did not write in the folder it does not touch: a file of one of its names that it did not write refuses the send by
//! name. A send that is cut short leaves the older files or the newer ones, see `folder`.
//!
//! Threat: whoever may write the folder may forge the record. They gain nothing by it that they could not write themselves;
//! what is read is bounded, and a text of it is cleaned before it is shown.

mod folder;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use camino::Utf8Path;
use jiff::Timestamp;

use super::courier::{Manner, Parcel, Question};
use super::ear::failure;
use super::message::clean;
use super::receipt::{Answer, Applied, FailedStep, Failure, Holding, Outcome, Sight};
use crate::compose::Release;
use crate::compose::bundle::Content;
use crate::compose::manifest::Manifest;
use crate::words::Digest;
use folder::{Folder, content_of, failed, mode, named};

/// Writes a site's resources to its folder.
pub(super) fn send(parcel: &Parcel) -> Outcome {
    match write(parcel) {
        Ok(outcome) => outcome,
        // Nothing was begun, or what was begun stands in the folder whole: the next send or question ends it.
        Err((failure, false)) => Outcome::Refused(failure),
        Err((failure, true)) => Outcome::Uncertain(failure),
    }
}

fn write(parcel: &Parcel) -> Result<Outcome, (Failure, bool)> {
    let refused = |failure: Failure| (failure, false);
    let path = Utf8Path::new(parcel.target.node.root.as_str());
    let mut folder = Folder::make(path).map_err(refused)?;
    let held = folder.held();
    let is_replaced = match held {
        None => parcel.replaces.is_empty(),
        Some(held) => held == parcel.token || parcel.replaces.contains(&held),
    };
    if !is_replaced && !parcel.take_over {
        let log = folder.said();
        return Ok(Outcome::Fenced { held, log });
    }
    let manifest: &Manifest = &parcel.bundle.manifest;
    let contents = contents(parcel, &folder).map_err(refused)?;
    foreign(&folder, manifest).map_err(refused)?;

    let mut applied = Applied::default();
    let mut news = BTreeMap::new();
    for (name, file) in named(manifest) {
        if folder.has(name, file) {
            continue;
        }
        let Some(bytes) = contents.get(&file.sha256) else {
            continue; // it is there as it should be: `contents` has looked
        };
        news.insert(name, (*bytes, mode(file)));
        applied.files = applied.files.saturating_add(1);
        applied.bytes = applied.bytes.saturating_add(file.size);
        // One that should have been there already was changed, or taken away, by somebody else.
        if folder.wrote(name) == Some(&file.sha256) {
            applied.mended.push(format!("{name} was written again"));
        }
    }
    folder.put_aside(&news).map_err(refused)?;
    let line = format!("{:.0} {}", Timestamp::now(), clean(&parcel.sender));
    folder.begin(parcel.token, manifest, line)?;
    folder.finish().map_err(|failure| (failure, true))?;
    if applied.files > 0 {
        applied.applied = manifest.services.keys().cloned().collect();
    }
    applied.notes = vec![NOT_OBSERVED.to_owned()];
    Ok(Outcome::Applied(applied))
}

/// What a receipt of this courier says.
pub const NOT_OBSERVED: &str = "rendered, not observed";

/// Refuses where a file stands that grid would write and did not write.
fn foreign(folder: &Folder, manifest: &Manifest) -> Result<(), Failure> {
    for (name, _) in named(manifest) {
        if folder.wrote(name).is_some() {
            continue;
        }
        let path = folder.path().join(name);
        if fs::symlink_metadata(&path).is_ok() {
            let mut failure = failure(
                FailedStep::Install,
                format!("{path} is there, and grid did not write it"),
            );
            failure.hint = Some("move it away, or give the machine another `folder`".to_owned());
            return Err(failure);
        }
    }
    Ok(())
}

/// What is to be written, by digest. A content that only the folder has must be there as it should be.
fn contents<'a>(
    parcel: &'a Parcel,
    folder: &Folder,
) -> Result<BTreeMap<Digest, &'a [u8]>, Failure> {
    let mut all = BTreeMap::new();
    for (name, file) in named(&parcel.bundle.manifest) {
        match parcel.bundle.contents.get(&file.sha256) {
            Some(Content::Bytes(bytes)) => {
                all.insert(file.sha256, bytes.as_slice());
            }
            _ => {
                let path = folder.path().join(name);
                let found = content_of(&path).map_err(|e| failed(FailedStep::Verify, &path, &e))?;
                if found != Some(file.sha256) {
                    let cause = format!("{path} is not what was written, and nobody else has that");
                    return Err(failure(FailedStep::Verify, cause));
                }
            }
        }
    }
    Ok(all)
}

/// What a folder shows, which is left as it is. A send that has begun and can be ended counts as ended; its files are not
/// looked at then, since a push puts them in their places.
fn seen(folder: Folder, expected: Option<&Release>) -> Result<Sight, Failure> {
    let mut differs = Vec::new();
    if let (Some(release), false) = (expected, folder.has_begun()) {
        let files = named(release).filter(|(name, file)| !folder.has(name, file));
        differs.extend(files.map(|(name, _)| name.to_owned()));
    }
    let (token, manifest) = folder.holds()?;
    let current = manifest.map(|manifest| Release::of(manifest).digest());
    if current != expected.map(Release::digest) {
        differs.clear();
    }
    let differing = u64::try_from(differs.len()).unwrap_or(u64::MAX);
    differs.truncate(Sight::DIFFERING);
    Ok(Sight {
        token,
        current,
        differing,
        differs,
        ..Sight::default()
    })
}

/// What the folder holds, or [shows](seen). A send that was cut short once it had begun is ended first.
pub(super) fn ask(question: &Question) -> Answer {
    let path = Utf8Path::new(question.target.node.root.as_str());
    if let Manner::Look(expected) = &question.manner {
        let sight = Folder::look(path).and_then(|folder| match folder {
            Some(folder) => seen(folder, expected.as_deref()),
            None => Ok(Sight::default()),
        });
        return sight.map_or_else(Answer::Unknown, Answer::Seen);
    }
    let folder = match Folder::open(path) {
        Ok(folder) => folder,
        Err(failure) => return Answer::Unknown(failure),
    };
    let Some(folder) = folder else {
        return Answer::Holds(Holding {
            token: None,
            manifest: None,
            lists: BTreeMap::new(),
            log: Vec::new(),
        });
    };
    let log = folder.said();
    match folder.holds() {
        Ok((token, manifest)) => Answer::Holds(Holding {
            token,
            manifest: manifest.map(|manifest| Arc::new(Release::of(manifest))),
            lists: BTreeMap::new(),
            log,
        }),
        Err(failure) => Answer::Unknown(failure),
    }
}
