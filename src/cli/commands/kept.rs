//! What to do about services that the declaration took from all machines, and that stay on some since others use them.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::phrases;
use crate::compose::services::Kept;
use crate::mesh::Mesh;
use crate::words::{NodeName, ServiceName};

/// One hint for each such service that somebody still needs by the declaration. One that has another machine moves by itself, and
/// where the declaration lets it go the next pushes do.
pub(super) fn hints<'a>(
    mesh: &Mesh,
    kept: impl IntoIterator<Item = (&'a NodeName, &'a Kept)>,
) -> Vec<String> {
    let mut found: BTreeMap<&ServiceName, (BTreeSet<ServiceName>, BTreeSet<NodeName>)> =
        BTreeMap::new();
    for (node, kept) in kept {
        for (service, users) in kept {
            let declared = mesh.services.get(service);
            let is_on_none = declared.is_some_and(|service| service.nodes.is_empty());
            let users: BTreeSet<_> = users
                .iter()
                .filter(|user| mesh.consumption(service, user).is_some())
                .collect();
            if is_on_none && !users.is_empty() {
                let (all, nodes) = found.entry(service).or_default();
                all.extend(users.into_iter().cloned());
                nodes.insert(node.clone());
            }
        }
    }
    let found = found.iter();
    found
        .map(|(service, (users, nodes))| phrases::ends_keeping(service, users, nodes))
        .collect()
}
