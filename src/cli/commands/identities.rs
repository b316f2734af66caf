//! `grid rotate --site` and `--ca`: further identities of sites, a further authority of the mesh. The next push carries them
//! to the machines, peers first.

use std::time::Duration;

use super::change::tell;
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::view::Changed;
use crate::compose::identities::in_use;
use crate::provision::certificate::CertificateError;
use crate::store::{Change, Store as _, SystemChance};
use crate::words::NodeName;

impl From<CertificateError> for CommandError {
    fn from(error: CertificateError) -> Self {
        Self::failed(error.to_string())
    }
}

pub(super) fn rotate_sites(context: &mut Context, sites: &[String]) -> crate::cli::Result {
    let mut writing = context.writing("rotate", Duration::ZERO)?;
    let chosen = context.choose(&writing.folder, &writing.loaded.mesh, sites)?;
    let (mut changes, mut changed) = (Vec::new(), Vec::new());
    let authority = |writing: &Writing| {
        let newest = writing.state.identities.authorities().newest();
        newest.map(|newest| newest.number)
    };
    let before = authority(&writing);
    for site in chosen {
        may_be_renewed(&writing, &site)?;
        let mesh = &writing.loaded.mesh.name;
        let identities = &mut writing.state.identities;
        identities.renew(mesh, &site, context.today, &mut SystemChance)?;
        let Some(identity) = identities.of(&site) else {
            continue;
        };
        let number = identity.newest().number;
        changes.push(Change::Identity(site.clone(), identity.clone()));
        changed.push(Changed::RotatedSite { site, number });
    }
    let minted = authority(&writing).filter(|number| Some(*number) != before);
    changed.extend(minted.map(|number| Changed::RotatedAuthority { number }));
    finish(context, writing, changes, changed)
}

pub(super) fn rotate_authority(context: &mut Context) -> crate::cli::Result {
    let mut writing = context.writing("rotate", Duration::ZERO)?;
    let mesh = &writing.loaded.mesh.name;
    let identities = &mut writing.state.identities;
    if identities.authorities().all().len() != 1 {
        return Err(match identities.authorities().newest() {
            None => CommandError::failed("this mesh has no certificate authority yet")
                .hint("with a table `[signals]` in the declaration, the next push makes it"),
            Some(_) => CommandError::failed(
                "the last renewal of the certificate authority is still under way",
            )
            .hint("`grid push --behind` goes on with it; `grid status` says who is behind"),
        });
    }
    identities.renew_authority(mesh, context.today, &mut SystemChance)?;
    let number = identities
        .authorities()
        .newest()
        .map_or(0, |one| one.number);
    finish(
        context,
        writing,
        Vec::new(),
        vec![Changed::RotatedAuthority { number }],
    )
}

/// A site has one renewal at a time: its peers admit two identities of it, and no third.
fn may_be_renewed(writing: &Writing, site: &NodeName) -> Result<(), CommandError> {
    let Some(identity) = writing.state.identities.of(site) else {
        return Err(CommandError::failed(format!("{site} has no identity that this mesh made"))
            .hint("with a table `[signals]` in the declaration, the next push makes it, unless the machine has `pins` of its own"));
    };
    let used = writing
        .state
        .fleet
        .get(site)
        .map(in_use)
        .unwrap_or_default();
    if used.is_empty() || (used.len() == 1 && used.contains(&identity.newest().number)) {
        return Ok(());
    }
    Err(CommandError::failed(format!(
        "the last renewal of {site}'s identity is still under way"
    ))
    .hint("`grid push --behind` goes on with it; `grid status` says who is behind"))
}

fn finish(
    context: &mut Context,
    mut writing: Writing,
    mut changes: Vec<Change>,
    changed: Vec<Changed>,
) -> crate::cli::Result {
    // With each serial that was given, so that none is given twice.
    let authorities = writing.state.identities.authorities().clone();
    changes.push(Change::Authorities(authorities));
    context.commit(&mut writing, changes, [])?;
    let state = writing.store.load()?;
    tell(
        context,
        &writing.folder,
        &writing.loaded.mesh,
        &state,
        changed,
    )
}
