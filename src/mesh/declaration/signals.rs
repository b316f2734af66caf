//! What a checked declaration says of signals.

use super::{FileDeclaration, Limits, Owner};
use crate::words::{
    AbsolutePath, ApiGeneration, Command, GridId, ObjectName, PeerTrust, Region, Seed, Settings,
    SignalMode, Zone,
};

/// How provider load crosses sites, and how every machine's site daemon is run (DESIGN.md, section 7).
#[derive(Debug, Clone)]
pub struct Signals {
    /// Absent: none is rendered, which gossips.
    pub mode: Option<SignalMode>,
    /// By what sites know each other, where that is said: see [`Signals::trust`].
    pub declared_trust: Option<PeerTrust>,
    /// Where sites listen, one port for the mesh.
    pub port: u16,
    /// Where each daemon shows its own metrics, on its machine's loopback.
    pub metrics_port: u16,
    /// The folder of what outlives a release: evidence, overlay, status.
    pub state: AbsolutePath,
    /// The owner of the site's files: whom the daemon runs as.
    pub owner: Option<Owner>,
    /// The daemon's binary, if grid brings it.
    pub files: Vec<FileDeclaration>,
    /// Has the daemon run.
    pub apply: Option<Command>,
    /// Holds when it runs as declared.
    pub check: Option<Command>,
    /// Runs when the site leaves.
    pub remove: Option<Command>,
    /// How long each step may take.
    pub limits: Limits,
    /// Intervals and limits of the daemons.
    pub settings: Settings,
    /// Certificates of authorities besides the mesh's own, as PEM; empty: there are none.
    pub authorities: String,
    /// The network's own id.
    pub grid_id: Option<GridId>,
    /// Where a machine is that does not say so itself.
    pub location: Location,
    /// Where SWIM begins.
    pub seeds: Vec<Seed>,
    /// How the mesh's signals are written as Kubernetes resources.
    pub resources: Resources,
}

impl Signals {
    /// By what sites know each other.
    #[must_use]
    pub fn trust(&self) -> PeerTrust {
        self.declared_trust.unwrap_or_default()
    }
}

/// The most seeds of a mesh: as many as the resource definitions take.
pub const MOST_SEEDS: usize = 1024;

/// Where a site is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
    /// In which region.
    pub region: Option<Region>,
    /// Where in it.
    pub zone: Option<Zone>,
}

impl Location {
    /// This, or `other` where it says no region. A zone is one of its region: it never comes from elsewhere.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        match (&self.region, &self.zone) {
            (None, None) => other.clone(),
            (None, Some(zone)) => Self {
                region: other.region.clone(),
                zone: Some(zone.clone()),
            },
            (Some(_), _) => self.clone(),
        }
    }
}

/// How the mesh's signals are written as Kubernetes resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    /// Under which group, version and names of fields.
    pub generation: ApiGeneration,
    /// Where the Secrets are.
    pub namespace: ObjectName,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            generation: ApiGeneration::default(),
            namespace: ObjectName::known("grid-system"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_never_comes_from_another_region() {
        let place = |region: Option<&str>, zone: Option<&str>| Location {
            region: region.map(|text| Region::new(text).unwrap()),
            zone: zone.map(|text| Zone::new(text).unwrap()),
        };
        let mesh = place(Some("eu"), Some("eu-1"));
        assert_eq!(place(None, None).or(&mesh), mesh);
        assert_eq!(place(Some("us"), None).or(&mesh), place(Some("us"), None));
        assert_eq!(
            place(None, Some("eu-2")).or(&mesh),
            place(Some("eu"), Some("eu-2"))
        );
    }
}
