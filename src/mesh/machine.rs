//! Reads `[nodes.*]` and `[defaults]` into machines.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::declaration::{CourierKind, Hold, Location, Node, SiteFiles};
use super::input::Input;
use super::items::Items;
use super::load::named;
use super::place::{At, Place, Problem};
use super::raw::{self, GatewayTls};
use super::reader::read;
use super::text::{LocalPath, Pin};
use crate::words::{
    AbsolutePath, Digest, EndpointTls, GatewayEndpoint, MOST_PINS, MeshName, NodeName, Tag,
};

/// What a machine's paths depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// The mesh's name; absent: it is wrong, which was reported.
    pub mesh: Option<&'a MeshName>,
    /// The declaration's folder, absolute.
    pub folder: &'a Utf8Path,
}

/// All machines.
pub(super) struct Machines {
    /// Those that are right.
    pub nodes: BTreeMap<NodeName, Node>,
    /// Where each is declared; those that are wrong too.
    pub declared: BTreeMap<NodeName, Place>,
    /// Where the address of each is written, if it is.
    pub addresses: BTreeMap<NodeName, Place>,
    /// The pins that are written, and where, in order of name.
    pub pins: Vec<(NodeName, Vec<(Digest, Place)>)>,
    /// Those that are on hold by `[defaults]`.
    pub held_by_default: BTreeSet<NodeName>,
    /// Who carries a tag.
    pub tagged: BTreeMap<Tag, Vec<NodeName>>,
}

impl Machines {
    /// Reads all of them.
    pub fn read(
        items: &Items<'_>,
        surroundings: Surroundings<'_>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let defaults = items
            .defaults
            .and_then(|input| read_raw(input, "`defaults`", problems))
            .unwrap_or_default();
        // In order of name, so that the maps are made at once and not searched.
        let (mut declared, mut nodes) = (Vec::new(), Vec::new());
        let (mut addresses, mut written_pins) = (Vec::new(), Vec::new());
        let mut held_by_default = BTreeSet::new();
        let mut tagged: BTreeMap<Tag, Vec<NodeName>> = BTreeMap::new();
        for (name, input) in &items.nodes {
            let name = named(name, *input, NodeName::new, problems);
            let raw = read_raw(*input, "a machine", problems);
            let Some(name) = name else { continue };
            declared.push((name.clone(), input.key));
            let Some(raw) = raw else { continue };
            if raw.hold.is_none() && defaults.hold.is_some() {
                held_by_default.insert(name.clone());
            }
            let raw = raw.over(&defaults);
            for tag in raw.tags.iter().flatten() {
                let carriers = tagged.entry(tag.clone()).or_default();
                carriers.push(name.clone());
            }
            if let Some(address) = &raw.address {
                addresses.push((name.clone(), address.place));
            }
            if let Some(pins) = &raw.pins {
                written_pins.push((name.clone(), placed_pins(pins, problems)));
            }
            if let Some(node) = node(name.clone(), input.key, raw, surroundings, problems) {
                nodes.push((name, node));
            }
        }
        Self {
            nodes: nodes.into_iter().collect(),
            declared: declared.into_iter().collect(),
            addresses: addresses.into_iter().collect(),
            pins: written_pins,
            held_by_default,
            tagged,
        }
    }
}

fn read_raw(input: Input<'_>, what: &str, problems: &mut Vec<Problem>) -> Option<raw::Node> {
    let table = input.table(what).map_err(|problem| problems.push(problem));
    let table = table.ok()?;
    let raw = read::<raw::Node>(table, problems)?;
    if let (Some(raw::Hold::Until(raw::HoldUntil { reason: None, .. })), Some(hold)) =
        (&raw.hold, table.get("hold"))
        && !problems.iter().any(|known| known.is_in(hold.place()))
    {
        problems.push(Problem::new(
            hold.key,
            "a hold has a reason",
            "write `{ reason = \"…\", until = 2026-12-01 }`",
        ));
    }
    Some(raw)
}

fn node(
    name: NodeName,
    place: Place,
    raw: raw::Node,
    surroundings: Surroundings<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Node> {
    let courier = raw.courier.unwrap_or(CourierKind::Ssh);
    Some(Node {
        name,
        address: raw.address.map(|host| host.value.0),
        port: raw.port.map(|port| port.0),
        user: raw.user.map(|login| login.0),
        identity: raw.identity.map(|path| identity(&path.value, surroundings)),
        root: match courier {
            CourierKind::Manifests => folder(raw.folder, raw.root, place, surroundings, problems)?,
            _ => {
                if let Some(folder) = raw.folder {
                    problems.push(Problem::new(
                        folder.place,
                        "only a machine with `courier = \"manifests\"` has a folder",
                        "take it away, or say `courier = \"manifests\"`; where releases lie is `root`",
                    ));
                }
                root(raw.root, courier, surroundings, problems)?
            }
        },
        become_root: raw.become_root,
        courier,
        tags: raw.tags.unwrap_or_default().into_iter().collect(),
        hold: raw.hold.map(|hold| match hold {
            raw::Hold::Reason(reason) => Hold {
                reason: reason.0,
                until: None,
            },
            raw::Hold::Until(hold) => Hold {
                reason: hold.reason.map(|reason| reason.0).unwrap_or_default(),
                until: hold.until.map(|day| day.0),
            },
        }),
        pins: pins(raw.pins),
        site: raw.site.and_then(|site| site_files(site, problems)),
        location: Location {
            region: raw.region,
            zone: raw.zone,
        },
        gateway: raw.gateway.and_then(|raw| gateway(raw, problems)),
    })
}

/// Where a gateway is reached.
fn gateway(raw: At<raw::Gateway>, problems: &mut Vec<Problem>) -> Option<GatewayEndpoint> {
    let place = raw.place;
    let spoken = match raw.value {
        raw::Gateway::Address(address) => {
            return Some(GatewayEndpoint {
                address: address.0,
                tls: None,
            });
        }
        raw::Gateway::Spoken(spoken) => spoken,
    };
    let mut wrong = |message: &str, help: &str| {
        // What is there but wrong has been reported as that.
        if !problems.iter().any(|known| known.is_in(place)) {
            problems.push(Problem::new(place, message, help));
        }
        None
    };
    let Some(address) = spoken.address else {
        return wrong(
            "a gateway has an address",
            "write `{ address = \"gateway.example.net:443\", … }`",
        );
    };
    let tls = match (spoken.tls, spoken.server_name) {
        (None, None) => None,
        (Some(GatewayTls::Plaintext), None) => Some(EndpointTls::Plaintext),
        (Some(GatewayTls::Mutual), Some(server_name)) => Some(EndpointTls::Mutual { server_name }),
        (Some(GatewayTls::Mutual), None) => {
            return wrong(
                "with mutual TLS it has to be said which name the gateway's certificate is for",
                "add `serverName = \"…\"`",
            );
        }
        (None | Some(GatewayTls::Plaintext), Some(_)) => {
            return wrong(
                "`serverName` is the name in the gateway's certificate, and there is none without mutual TLS",
                "add `tls = \"mutual\"`, or take `serverName` away",
            );
        }
    };
    Some(GatewayEndpoint {
        address: address.0,
        tls,
    })
}

/// Where an identity lies that is made elsewhere.
fn site_files(raw: At<raw::SiteFiles>, problems: &mut Vec<Problem>) -> Option<SiteFiles> {
    let raw::SiteFiles { certificate, key } = raw.value;
    if let (Some(certificate), Some(key)) = (certificate, key) {
        return Some(SiteFiles { certificate, key });
    }
    if !problems.iter().any(|known| known.is_in(raw.place)) {
        problems.push(Problem::new(
            raw.place,
            "an identity is a certificate and a key",
            "write `{ certificate = \"/…\", key = \"/…\" }`",
        ));
    }
    None
}

/// The pins of a site whose identity is made elsewhere.
fn pins(raw: Option<At<Vec<At<Pin>>>>) -> BTreeSet<Digest> {
    let raw = raw.map(|raw| raw.value).unwrap_or_default();
    raw.into_iter().map(|pin| pin.value.0).collect()
}

/// Where each pin stands; one site has at most two.
fn placed_pins(raw: &At<Vec<At<Pin>>>, problems: &mut Vec<Problem>) -> Vec<(Digest, Place)> {
    if !(1..=MOST_PINS).contains(&raw.value.len()) {
        problems.push(Problem::new(
            raw.place,
            "a site has one pin, or two while its certificate is renewed",
            "leave `pins` out where grid makes the identity",
        ));
    }
    let pins = raw.value.iter();
    pins.map(|pin| (pin.value.0, pin.place)).collect()
}

/// A key file as it can be opened: `~/` is the operator's home, and what is relative is so to the
/// declaration.
fn identity(path: &LocalPath, surroundings: Surroundings<'_>) -> Utf8PathBuf {
    let home = path.0.strip_prefix("~/").and_then(|below| {
        let home = Utf8PathBuf::from_path_buf(std::env::home_dir()?).ok()?;
        Some(home.join(below))
    });
    home.unwrap_or_else(|| surroundings.folder.join(&path.0))
}

/// The folder of a machine whose courier is `manifests`; it stands in the place of a root.
fn folder(
    written: Option<At<LocalPath>>,
    root: Option<At<LocalPath>>,
    machine: Place,
    surroundings: Surroundings<'_>,
    problems: &mut Vec<Problem>,
) -> Option<AbsolutePath> {
    if let Some(root) = root {
        problems.push(Problem::new(
            root.place,
            "a machine with `courier = \"manifests\"` has no releases, and no root",
            "where its resources are written is `folder`",
        ));
    }
    let Some(written) = written else {
        problems.push(Problem::new(
            machine,
            "with `courier = \"manifests\"` it has to be said where the resources are written",
            "add `folder = \"…\"`, relative to the declaration",
        ));
        return None;
    };
    let path = &written.value.0;
    let read = if path.starts_with('/') {
        AbsolutePath::new(path)
    } else {
        AbsolutePath::new(surroundings.folder.as_str()).and_then(|folder| folder.join(path))
    };
    read.map_err(|wrong| problems.push(Problem::bare(written.place, format!("`folder`: {wrong}"))))
        .ok()
}

fn root(
    written: Option<At<LocalPath>>,
    courier: CourierKind,
    surroundings: Surroundings<'_>,
    problems: &mut Vec<Problem>,
) -> Option<AbsolutePath> {
    let read = match &written {
        None => AbsolutePath::new(&format!(
            "/var/lib/grid/{}",
            surroundings.mesh.map_or("mesh", MeshName::as_str)
        )),
        Some(path) if path.value.0.starts_with('/') => AbsolutePath::new(&path.value.0),
        Some(path) if courier == CourierKind::Local => {
            AbsolutePath::new(surroundings.folder.as_str())
                .and_then(|folder| folder.join(&path.value.0))
        }
        Some(path) => {
            problems.push(Problem::new(
                path.place,
                "the root of a machine that is reached by ssh is an absolute path",
                "only with `courier = \"local\"` may it be relative to the declaration",
            ));
            return None;
        }
    };
    read.map_err(|wrong| {
        let place = written.map_or(Place::new(0, 0..0), |path| path.place);
        problems.push(Problem::bare(place, format!("`root`: {wrong}")));
    })
    .ok()
}
