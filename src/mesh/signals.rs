//! Reads `[signals]`.

use std::fs::File;
use std::io::Read as _;

use camino::Utf8Path;

use super::declaration::{
    FileContent, FileDeclaration, FileMode, FilePath, Location, MOST_SEEDS, Resources, Signals,
};
use super::input::{Input, Table};
use super::items::Items;
use super::machine::{Machines, Surroundings};
use super::place::{At, Place, Problem};
use super::raw;
use super::reader::read as read_into;
use super::service::limits;
use super::text::LocalPath;
use crate::words::{
    AbsolutePath, ApiGeneration, Command, METRICS_PORT, MeshName, PeerTrust, SIGNALS_PORT, Seed,
};

/// The service that a site is delivered as; a declaration with `[signals]` has no other of this name.
pub const SERVICE: &str = "site";

/// The largest file of authorities, in bytes: as much as a content that the store keeps.
const MOST_AUTHORITIES: u64 = 64 * 1024;

/// Where the daemon's program is installed, if grid brings it.
const BINARY: &str = "/usr/local/bin/grid";
/// What is run to see whether the daemon runs as declared.
const CHECK: [&str; 5] = ["grid", "site", "check", "--config", "{release}/site.toml"];

/// Reads it; `None`: there is none, or it is wrong, which is reported.
pub(super) fn read(
    items: &Items<'_>,
    surroundings: Surroundings<'_>,
    machines: &Machines,
    problems: &mut Vec<Problem>,
) -> Option<Signals> {
    let input = items.signals?;
    if let Some(service) = items.services.get(SERVICE) {
        problems.push(Problem::new(
            service.key,
            "with `[signals]` every machine has a service `site`: its site daemon",
            "call this service something else",
        ));
    }
    let table = input
        .table("`signals`")
        .map_err(|problem| problems.push(problem));
    let table = table.ok()?;
    let raw = read_into::<raw::Signals>(table, problems)?;
    let settings = raw.settings.unwrap_or_default();
    for wrong in settings.undeclarable() {
        let place = place_of(table, "settings", wrong.keys());
        problems.push(Problem::bare(place, wrong.to_string()));
    }
    let port = raw.port.map_or(SIGNALS_PORT, |port| port.0);
    let metrics_port = metrics_port(table, raw.metrics_port, port, problems);
    let state = match &raw.state {
        Some(path) => state(path, problems)?,
        None => {
            let mesh = surroundings.mesh.map_or("mesh", MeshName::as_str);
            AbsolutePath::new(&format!("/var/lib/grid-site/{mesh}")).ok()?
        }
    };
    let usual_check = || Command::new(CHECK.map(str::to_owned).to_vec()).ok();
    let declared_trust = raw.trust.map(|trust| trust.0);
    if declared_trust.unwrap_or_default() == PeerTrust::Pin {
        sites_have_pins(machines, problems);
    }
    let authorities = raw.authorities.map(|path| {
        let read = read_authorities(&surroundings.folder.join(&path.value.0));
        read.unwrap_or_else(|why| {
            let message = format!("{}: {why}", path.value.0);
            problems.push(Problem::bare(path.place, message));
            String::new()
        })
    });
    Some(Signals {
        authorities: authorities.unwrap_or_default(),
        mode: raw.mode.map(|mode| mode.0),
        declared_trust,
        port,
        metrics_port,
        state,
        owner: raw.owner.map(|owner| owner.0),
        files: raw.binary.and_then(binary).into_iter().collect(),
        apply: raw.apply,
        check: raw.check.or_else(usual_check),
        remove: raw.remove,
        limits: limits(raw.limits),
        settings,
        grid_id: raw.grid_id,
        location: Location {
            region: raw.region,
            zone: raw.zone,
        },
        seeds: seeds(raw.seeds, problems),
        resources: resources(raw.resources),
    })
}

/// The folder of what outlives a release.
fn state(written: &At<LocalPath>, problems: &mut Vec<Problem>) -> Option<AbsolutePath> {
    let path = &written.value.0;
    if path.contains(['{', '}']) {
        problems.push(Problem::new(
            written.place,
            "`state` is the same on every machine: nothing in braces is filled in",
            "leave it out, for `/var/lib/grid-site/<mesh>`, or write the path whole",
        ));
        return None;
    }
    AbsolutePath::new(path)
        .map_err(|wrong| problems.push(Problem::bare(written.place, format!("`state`: {wrong}"))))
        .ok()
}

/// Where daemons show their metrics: not where they listen.
fn metrics_port(
    table: Table<'_>,
    written: Option<At<raw::Port>>,
    port: u16,
    problems: &mut Vec<Problem>,
) -> u16 {
    let keys = ["metrics_port", "port"];
    let place = keys.iter().find_map(|key| table.get(key)).map(Input::place);
    let shown = written.map_or(METRICS_PORT, |written| written.value.0);
    if shown == port {
        problems.push(Problem::new(
            place.unwrap_or(table.key),
            format!(
                "the sites listen at port {port}, so that they cannot show their own metrics there"
            ),
            format!(
                "write another `port` or `metrics_port`; left out, they are {SIGNALS_PORT} and {METRICS_PORT}"
            ),
        ));
    }
    shown
}

/// Where one of two keys of a table below `table` stands: the first that is written.
fn place_of(table: Table<'_>, below: &str, keys: [&str; 2]) -> Place {
    let Some(input) = table.get(below) else {
        return table.key;
    };
    let inner = input.table(below).ok();
    let mut written = keys.iter().filter_map(|key| inner?.get(key));
    written.next().map_or(input.key, Input::place)
}

/// Where peers know each other by their pins, an identity that is made elsewhere is known by those that are declared.
fn sites_have_pins(machines: &Machines, problems: &mut Vec<Problem>) {
    for node in machines.nodes.values() {
        let place = machines.declared.get(&node.name);
        if let (Some(_), true, Some(place)) = (&node.site, node.pins.is_empty(), place) {
            problems.push(Problem::new(
                *place,
                "the identity of this machine's site is made elsewhere, and its peers know it by pins that nobody declared",
                "add `pins = [\"…\"]`, the SHA-256 of its certificate, or have `trust = \"spiffe\"`",
            ));
        }
    }
}

/// Reads certificates of authorities; the same bytes however they were written.
fn read_authorities(path: &Utf8Path) -> Result<String, String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| {
            file.take(MOST_AUTHORITIES.saturating_add(1))
                .read_to_string(&mut text)
        })
        .map_err(|error| error.to_string())?;
    if u64::try_from(text.len()).is_ok_and(|found| found > MOST_AUTHORITIES) {
        return Err(format!(
            "it is larger than {MOST_AUTHORITIES} bytes: who issues none of the identities can go"
        ));
    }
    let found = pem::parse_many(&text).map_err(|error| format!("it is no PEM: {error}"))?;
    if found.is_empty() || found.iter().any(|one| one.tag() != "CERTIFICATE") {
        return Err("it holds certificates, at least one, and nothing else".to_owned());
    }
    let lines = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    Ok(pem::encode_many_config(&found, lines))
}

fn seeds(raw: Option<At<Vec<Seed>>>, problems: &mut Vec<Problem>) -> Vec<Seed> {
    let Some(raw) = raw else {
        return Vec::new();
    };
    if raw.value.len() > MOST_SEEDS {
        problems.push(Problem::new(
            raw.place,
            format!(
                "a mesh has at most {MOST_SEEDS} seeds, and this has {}",
                raw.value.len()
            ),
            "a few that are nearly always there are enough: the others are learnt from them",
        ));
    }
    raw.value
}

fn resources(raw: Option<raw::Resources>) -> Resources {
    let usual = Resources::default();
    let Some(raw) = raw else {
        return usual;
    };
    Resources {
        generation: ApiGeneration {
            group: raw.group.unwrap_or(usual.generation.group),
            version: raw.version.unwrap_or(usual.generation.version),
            field_names: raw.field_names.unwrap_or(usual.generation.field_names),
        },
        namespace: raw.namespace.unwrap_or(usual.namespace),
    }
}

impl Signals {
    /// The grid of its machines: the program that the site's check runs, if that is `PROGRAM site check …`; else `grid`.
    #[must_use]
    pub fn program(&self) -> &str {
        let words = self.check.as_ref().map_or(&[][..], Command::words);
        match words {
            [program, site, check, ..] if site == "site" && check == "check" => program,
            _ => CHECK[0],
        }
    }
}

fn binary(path: At<LocalPath>) -> Option<FileDeclaration> {
    Some(FileDeclaration {
        path: FilePath::Absolute(AbsolutePath::new(BINARY).ok()?),
        content: FileContent::Source(path.value.0.into()),
        mode: FileMode::new(0o755),
        owner: None,
    })
}
