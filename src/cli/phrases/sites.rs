//! What operators read of sites: their identities, the authority, and whether their signals cross.

use jiff::civil::Date;

use super::list;
use crate::compose::identities::{Renewal, Standing};
use crate::mesh::Mesh;
use crate::provision::{Authority, Need, RENEWED_DAYS, days_left};
use crate::words::{NodeName, SignalMode};

/// What was minted for all sites.
pub(in crate::cli) fn authority(number: u32) -> String {
    format!(
        "certificate authority {number}, since the one before it ends: sites get identities of it once all of them know it"
    )
}

/// What is to be said of the authority that issues the identities, once it is due.
pub(in crate::cli) fn authority_expiry(authority: &Authority, today: Date) -> String {
    let Authority { number, until, .. } = authority;
    if days_left(*until, today) < 0 {
        return format!(
            "the mesh's certificate authority {number} expired on {until}, and with it the identity of every site; the next push \
             mints another one"
        );
    }
    format!(
        "the mesh's certificate authority {number} expires on {until}; the next push mints another one, so that no identity outlives it"
    )
}

/// What was minted for a site.
pub(in crate::cli) fn identity(site: &NodeName, number: u32, need: Need) -> String {
    match need {
        Need::First => format!("identity of the site {site}"),
        Need::Renewal => format!("identity of the site {site}, number {number}"),
        Need::GoesOn => format!(
            "identity of the site {site}, number {number}: the one in use expires soon, so that it goes on without those who did not \
             acknowledge it"
        ),
    }
}

/// What is to be known of a mesh whose signals do not cross sites (DESIGN.md, section 7: said until gossip is built).
pub(in crate::cli) fn gossip(mesh: &Mesh) -> Option<&'static str> {
    let mode = mesh.signals.as_ref()?.mode.unwrap_or_default();
    (mode == SignalMode::Gossip).then_some(
        "nothing crosses sites yet, since this grid has no gossip: with `mode = \"poll\"` in `[signals]` their signals do",
    )
}

/// Below it the unit for systemd lets the daemon write (`StateDirectory` in packaging/grid-site.service).
const UNIT_STATE: &str = "/var/lib/grid-site/";
/// From it on the unit lets the daemon listen, which has no capability to do so below.
const UNIT_PORT: u16 = 1024;

/// What is declared of sites that a daemon of another supervisor can do, and that of packaging/grid-site.service cannot.
pub(in crate::cli) fn not_by_our_unit(mesh: &Mesh) -> Vec<String> {
    let Some(signals) = &mesh.signals else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let ports = [
        ("port", signals.port),
        ("metrics_port", signals.metrics_port),
    ];
    for (key, port) in ports.into_iter().filter(|(_, port)| *port < UNIT_PORT) {
        notes.push(format!(
            "`{key}` is {port}: packaging/grid-site.service lets the daemon listen from {UNIT_PORT} on, so that one needs \
             `AmbientCapabilities=CAP_NET_BIND_SERVICE` and the same in `CapabilityBoundingSet`"
        ));
    }
    let state = signals.state.as_str();
    if !state.starts_with(UNIT_STATE) {
        notes.push(format!(
            "`state` is {state}: packaging/grid-site.service lets the daemon write below {UNIT_STATE} only, so that one needs \
             `ReadWritePaths={state}`, and the folder"
        ));
    }
    notes
}

/// What a renewal waits for.
pub(in crate::cli) fn renewal(renewal: &Renewal) -> String {
    format!(
        "its renewed identity waits until {} {} of it; from {} it goes on without",
        list(&renewal.waits_for),
        if renewal.waits_for.len() == 1 {
            "knows"
        } else {
            "know"
        },
        renewal.goes_on
    )
}

/// What is to be said of a site's identity; nothing while there is time to renew it, unless it is `always` said.
pub(in crate::cli) fn expiry(standing: &Standing, today: Date, always: bool) -> Option<String> {
    let expires = standing.expires;
    match days_left(expires, today) {
        left if left < 0 => Some(format!("its identity expired on {expires}")),
        left if left < RENEWED_DAYS || always => Some(format!("its identity expires on {expires}")),
        _ => None,
    }
}
