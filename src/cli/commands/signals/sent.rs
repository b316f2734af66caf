//! What a site was last sent, as far as the store keeps it: contents are kept by hash.

use crate::cli::exit::CommandError;
use crate::compose::manifest::Manifest;
use crate::compose::site;
use crate::signals::site::{Peers, Site};
use crate::store::Store;

/// The configuration of the site's daemon that a machine was last sent; `None`: it was sent none, or one that is not kept
/// or that this grid does not read.
pub(super) fn sent_site(
    store: &mut dyn Store,
    manifest: &Manifest,
) -> Result<Option<Site>, CommandError> {
    let Some(file) = site::file(manifest, site::CONFIG) else {
        return Ok(None);
    };
    let content = store.content(&file.sha256)?;
    Ok(content.and_then(|bytes| Site::read(&bytes).ok()))
}

/// The list of sites that a machine was last sent; `None`: as above.
pub(super) fn sent_peers(
    store: &mut dyn Store,
    manifest: &Manifest,
) -> Result<Option<Peers>, CommandError> {
    let Some(file) = site::file(manifest, site::PEERS) else {
        return Ok(None);
    };
    let content = store.content(&file.sha256)?;
    Ok(content.and_then(|bytes| Peers::read(&bytes).ok()))
}
