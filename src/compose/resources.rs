//! The mesh as Kubernetes resources: `GridNetwork`, a `GridSite` for each machine with its pins, and the Secrets that they
//! refer to (DESIGN.md, section 7; the signals contract, *Resources*).
//!
//! Nothing is minted here. What is not there is not referred to: a Secret without a key of ours, the key that seals
//! membership. Under `pin` a site without a pin is refused by all others, so an operator who renders a mesh that has not given
//! each of its sites an identity yet is told so by name.
//!
//! Threat: a site's key leaves the store in [`secrets`] only, as a text that redacts itself; the authority's key never does.

use std::collections::BTreeMap;

use serde_json::Value;

use super::World;
use super::identities::{identity, lacks_identity, pins};
use super::site::authorities_pem;
use crate::mesh::{Node, Resources};
use crate::provision::certificate::{self, CertificateError};
use crate::signals::manifests::network::{NetworkInput, SecretReference, TlsReferences, network};
use crate::signals::manifests::secret::{
    DataKey, Notation, SecretData, SecretInput, SecretKind, secret,
};
use crate::signals::manifests::site::{Pins, SiteInput, site};
use crate::words::{MOST_PINS, MeshName, NodeName, ObjectName, PeerTrust, Secret};

/// Where the authority's certificate lies in a Secret.
const CA: &str = "ca.crt";

/// Why there are no resources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// Sites that peers would refuse.
    #[error(
        "no identity was minted yet for {}: under trust \"pin\" its peers would refuse it",
        names(.0)
    )]
    NoIdentity(Vec<NodeName>),
    /// More pins than peers take.
    #[error("{site} has {count} pins, and its peers take {MOST_PINS}: settle it by a push first")]
    Pins {
        /// Whose.
        site: NodeName,
        /// How many.
        count: usize,
    },
    /// A key cannot be written.
    #[error("the key of {site}: {why}")]
    Key {
        /// Whose.
        site: NodeName,
        /// Why.
        why: CertificateError,
    },
}

fn names(nodes: &[NodeName]) -> String {
    const SHOWN_MOST: usize = 12;
    let mut shown: Vec<&str> = nodes.iter().map(NodeName::as_str).collect();
    shown.truncate(SHOWN_MOST);
    let more = nodes.len().saturating_sub(SHOWN_MOST);
    let shown = shown.join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}

/// Whether every site has the identity by which its peers would know it.
///
/// # Errors
/// Names those that have none.
pub fn all_have_identities(world: &World<'_>) -> Result<(), ResourceError> {
    let trust = world.mesh.signals.as_ref().map(|signals| signals.trust());
    let by_pin = trust == Some(PeerTrust::Pin);
    let nodes = world.mesh.nodes.keys();
    let lacking: Vec<NodeName> = nodes
        .filter(|node| by_pin && lacks_identity(world, node))
        .cloned()
        .collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(ResourceError::NoIdentity(lacking)),
    }
}

/// The `GridNetwork`, and the `GridSite` of every machine by name. With `at` they are meant for that site's own cluster: the
/// network says where it is, and refers to its certificate if grid makes that.
///
/// A site that has no pin yet is rendered without: [`all_have_identities`] says whether there is one.
///
/// # Errors
/// When a site has too many pins.
pub fn resources(
    world: &World<'_>,
    how: &Resources,
    at: Option<&Node>,
) -> Result<Vec<Value>, ResourceError> {
    let mesh = world.mesh;
    let signals = mesh.signals.as_ref();
    let by_pin = signals.is_some_and(|signals| signals.trust() == PeerTrust::Pin);
    let location = match at {
        Some(node) => mesh.location(node),
        None => signals.map(|s| s.location.clone()).unwrap_or_default(),
    };
    let input = NetworkInput {
        name: mesh.name.clone(),
        mode: signals.and_then(|signals| signals.mode),
        trust: signals.and_then(|signals| signals.declared_trust),
        seeds: signals.map(|s| s.seeds.clone()).unwrap_or_default(),
        grid_id: signals.and_then(|signals| signals.grid_id.clone()),
        region: location.region,
        zone: location.zone,
        swim: None,
        tls: references(world, how, at),
        metrics_refresh: None,
    };
    let mut all = vec![network(&input, &how.generation)];
    for node in mesh.nodes.values() {
        let location = mesh.location(node);
        let input = SiteInput {
            name: node.name.clone(),
            gateway: node.gateway.clone(),
            pins: if signals.is_none() || by_pin {
                pins_of(world, node)?
            } else {
                None
            },
            region: location.region,
            zone: location.zone,
        };
        all.push(site(&input, &mesh.name, &how.generation));
    }
    Ok(all)
}

fn pins_of(world: &World<'_>, node: &Node) -> Result<Option<Pins>, ResourceError> {
    let (pins, _) = pins(world, node);
    let mut pins_left = pins.iter();
    match (pins_left.next(), pins_left.next(), pins_left.next()) {
        (None, _, _) => Ok(None),
        (Some(one), None, _) => Ok(Some(Pins::One(*one))),
        (Some(one), Some(other), None) => Ok(Some(Pins::Two(*one, *other))),
        _ => Err(ResourceError::Pins {
            site: node.name.clone(),
            count: pins.len(),
        }),
    }
}

/// Whether grid makes the identity of a machine's site, and has.
fn has_identity(world: &World<'_>, node: &Node) -> bool {
    world.mesh.signals.is_some()
        && !node.has_own_identity()
        && identity(world, &node.name).is_some()
}

fn ca_name(mesh: &MeshName) -> ObjectName {
    ObjectName::of_mesh(mesh, "ca")
}

fn site_name(mesh: &MeshName) -> ObjectName {
    ObjectName::of_mesh(mesh, "site")
}

fn references(world: &World<'_>, how: &Resources, at: Option<&Node>) -> TlsReferences {
    let mesh = &world.mesh.name;
    let reference = |name: ObjectName, key: Option<&str>| SecretReference {
        name,
        namespace: how.namespace.clone(),
        key: key.and_then(DataKey::new),
    };
    let has_ca = world.mesh.signals.is_some() && !authorities_pem(world).is_empty();
    let has_site = match at {
        Some(node) => has_identity(world, node),
        None => world.mesh.nodes.values().any(|n| has_identity(world, n)),
    };
    TlsReferences {
        authority: has_ca.then(|| reference(ca_name(mesh), Some(CA))),
        site: has_site.then(|| reference(site_name(mesh), None)),
        swim_key: None,
    }
}

/// The Secrets that the resources for the cluster of `at` refer to: the certificates of the mesh's authorities, and, where
/// grid makes the site's identity, its certificate and key.
///
/// # Errors
/// When the key cannot be written.
pub fn secrets(
    world: &World<'_>,
    how: &Resources,
    at: &Node,
    notation: Notation,
) -> Result<Vec<Secret>, ResourceError> {
    let mesh = &world.mesh.name;
    let bundle = authorities_pem(world);
    if world.mesh.signals.is_none() || bundle.is_empty() {
        return Ok(Vec::new());
    }
    let input = |name, kind, data: Vec<(&str, Secret)>| SecretInput {
        name,
        namespace: how.namespace.clone(),
        kind,
        data: data
            .into_iter()
            .filter_map(|(key, text)| Some((DataKey::new(key)?, SecretData::Text(text))))
            .collect::<BTreeMap<_, _>>(),
    };
    let ca = vec![(CA, Secret::new(bundle.clone()))];
    let mut all = vec![secret(
        &input(ca_name(mesh), SecretKind::Opaque, ca),
        notation,
    )];
    if let Some(identity) = identity(world, &at.name).filter(|_| has_identity(world, at)) {
        let key = identity.key.pem().map_err(|why| ResourceError::Key {
            site: at.name.clone(),
            why,
        })?;
        let data = vec![
            (CA, Secret::new(bundle)),
            (
                "tls.crt",
                Secret::new(certificate::pem(&identity.certificate)),
            ),
            ("tls.key", key),
        ];
        all.push(secret(
            &input(site_name(mesh), SecretKind::Tls, data),
            notation,
        ));
    }
    Ok(all)
}
