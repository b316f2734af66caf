//! `grid signals get`: what one site shows its own gateways, read over mutual TLS with the site's own identity.
//!
//! The identity is the one that the machine has: the site takes it for itself, and shows what it pulled from its peers too.
//! Where nobody knows which of two it has, both are tried, the newer one first.

mod shown;

use std::collections::BTreeSet;
use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use zeroize::Zeroizing;

use self::shown::tell;
use super::sent::sent_site;
use crate::cli::context::{Context, Reading};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::list;
use crate::cli::ui::Line;
use crate::compose::identities::{in_use, pins};
use crate::compose::site::authorities_pem;
use crate::mesh::{Mesh, Node, Signals};
use crate::provision::certificate;
use crate::signals::ProviderName;
use crate::signals::site::Pins;
use crate::site::{Asked, PollError, ReadError, Shown, read};
use crate::words::{NodeName, PeerHost, PeerTrust, SignalMode};

/// The largest certificate or key file that is read, in bytes.
const LARGEST: u64 = 64 * 1024;

/// Arguments of `grid signals get`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid signals get atlas\n  \
        grid signals get atlas --target broker --json\n  \
        grid signals get eridanus --certificate eridanus.pem --key eridanus.key\n\n\
        The machine is asked at its address and the mesh's signals port, over mutual TLS, with the identity that the mesh gave its \
        site; it has to show that it is that site. Under gossip there is nothing to ask: a site then has no listener.")]
pub struct GetArguments {
    /// The machine
    #[arg(value_name = "NODE")]
    node: String,
    /// The signals of this provider only
    #[arg(long, value_name = "PROVIDER")]
    target: Option<ProviderName>,
    /// Show this certificate (PEM) instead of the site's own; needed where the machine has `pins` of its own
    #[arg(long, value_name = "FILE", requires = "key", value_hint = clap::ValueHint::FilePath)]
    certificate: Option<Utf8PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate", value_hint = clap::ValueHint::FilePath)]
    key: Option<Utf8PathBuf>,
}

/// What a site is asked with.
struct Shows {
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

/// How a site runs, as far as it is known.
struct Runs {
    mode: SignalMode,
    trust: PeerTrust,
    port: u16,
}

pub(super) fn get(context: &mut Context, arguments: &GetArguments) -> crate::cli::Result {
    let reading = context.reading()?;
    let mesh = &reading.loaded.mesh;
    let named = std::slice::from_ref(&arguments.node);
    let chosen = context.choose(&reading.folder, mesh, named)?;
    let mut chosen = chosen.iter();
    let (Some(name), None) = (chosen.next(), chosen.next()) else {
        return Err(CommandError::usage("one machine is read at a time"));
    };
    let (Some(node), Some(signals)) = (mesh.nodes.get(name), &mesh.signals) else {
        return Err(
            CommandError::failed("this mesh has no `[signals]`, so that grid knows no site of it")
                .hint("a table `[signals]` in the declaration gives every machine a site daemon with the next push"),
        );
    };
    let runs = runs(context, &reading, node, signals)?;
    if runs.mode == SignalMode::Gossip {
        return Err(CommandError::failed(format!(
            "{name} gossips: under gossip a site has no listener, so there is nobody to ask"
        ))
        .hint("`mode = \"poll\"` in `[signals]` has sites serve their signals; on the machine, status.json and overlay.json in its state folder say what it knows"));
    }
    let shown = ask(&reading, node, &runs, arguments)?;
    let missing = match arguments.target {
        None => silent(mesh, name, &shown),
        Some(_) => BTreeSet::new(),
    };
    tell(context, name, &shown)?;
    if !missing.is_empty() && !context.ui.json {
        let every = signals.settings.poll_interval_ms.duration();
        let text = format!(
            "nothing of {}: {name} has not polled them yet, which it does every {} s, cannot reach them, or their providers show nothing",
            list(&missing),
            every.as_secs_f64()
        );
        let note = Line::note(text);
        context.ui.note(&note);
    }
    Ok(Exit::Done)
}

/// The other sites that have something to scrape, and of which the site shows nothing.
fn silent(mesh: &Mesh, name: &NodeName, shown: &Shown) -> BTreeSet<NodeName> {
    let scraped = mesh
        .services
        .values()
        .filter(|service| service.metrics.is_some());
    let sites = scraped.flat_map(|service| &service.nodes);
    let is_shown = |site: &NodeName| shown.rows.iter().any(|(row, _)| row.site == *site);
    sites
        .filter(|site| *site != name && !is_shown(site))
        .cloned()
        .collect()
}

/// How the site runs: as it was last sent, or as it is declared where that is not known.
fn runs(
    context: &Context,
    reading: &Reading,
    node: &Node,
    signals: &Signals,
) -> Result<Runs, CommandError> {
    let machine = reading.state.fleet.get(&node.name);
    let sent = machine.and_then(|machine| machine.sent.as_ref());
    if let (Some(sent), false) = (sent, node.has_own_identity()) {
        let mut store = context.open_reading(&reading.folder, "signals get")?;
        if let Some(site) = sent_site(&mut store, &sent.manifest)? {
            return Ok(Runs {
                mode: site.mode,
                trust: site.trust,
                port: site.port,
            });
        }
    }
    Ok(Runs {
        mode: signals.mode.unwrap_or_default(),
        trust: signals.trust(),
        port: signals.port,
    })
}

fn ask(
    reading: &Reading,
    node: &Node,
    runs: &Runs,
    arguments: &GetArguments,
) -> Result<Shown, CommandError> {
    let world = reading.state.world(&reading.loaded.mesh);
    let name = &node.name;
    let failed = |why: &dyn std::fmt::Display| CommandError::failed(format!("{name}: {why}"));
    let host = PeerHost::new(node.host()).map_err(|e| failed(&e))?;
    let (pins, _) = pins(&world, node);
    let pins = Pins::new(pins).map_err(|e| failed(&e))?;
    let authorities = authorities_pem(&world);
    let mut refused = None;
    for shows in shows(reading, node, arguments)? {
        let asked = Asked {
            site: name.clone(),
            host: host.clone(),
            port: runs.port,
            trust: runs.trust,
            pins: pins.clone(),
            authorities: &authorities,
            certificate: &shows.certificate,
            key: &shows.key,
            target: arguments.target.clone(),
        };
        match read(&asked) {
            Ok(shown) => return Ok(shown),
            Err(error) => refused = Some(error),
        }
    }
    let Some(error) = refused else {
        let (why, does) = match reading.state.identities.of(name) {
            None => ("no push has given it an identity", "does"),
            Some(_) => (
                "an identity was minted for it, and no push has delivered that",
                "sends it",
            ),
        };
        let error = CommandError::failed(format!("{name} is no site yet: {why}"));
        return Err(error.hint(format!("`grid push {name}` {does}")));
    };
    let hint = hint(&error, name);
    let error = CommandError::new(Exit::Incomplete, error).context(format!(
        "{name} cannot be read at {host} port {}",
        runs.port
    ));
    Err(hint.into_iter().fold(error, CommandError::hint))
}

/// What to show the site: the files that were named, or the identities that it may have.
fn shows(
    reading: &Reading,
    node: &Node,
    arguments: &GetArguments,
) -> Result<Vec<Shows>, CommandError> {
    let name = &node.name;
    if let (Some(certificate), Some(key)) = (&arguments.certificate, &arguments.key) {
        return Ok(vec![Shows {
            certificate: file(certificate)?.to_vec(),
            key: file(key)?,
        }]);
    }
    if node.has_own_identity() {
        return Err(CommandError::usage(format!(
            "the identity of {name} is made elsewhere (`pins`), so that grid has no certificate that it knows"
        ))
        .hint(format!(
            "`grid signals get {name} --certificate FILE --key FILE` shows it yours: its own, or that of one of its peers"
        )));
    }
    let state = &reading.state;
    let used = state.fleet.get(name).map(in_use).unwrap_or_default();
    let identity = state.identities.of(name);
    let generations = used.iter().rev().filter_map(|n| identity?.get(*n));
    generations
        .map(|generation| {
            let key = generation.key.pem()?;
            Ok(Shows {
                certificate: certificate::pem(&generation.certificate).into_bytes(),
                key: Zeroizing::new(key.expose().as_bytes().to_vec()),
            })
        })
        .collect()
}

fn file(path: &Utf8Path) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let failed = |why: &dyn std::fmt::Display| CommandError::usage(format!("{path}: {why}"));
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 * 1024));
    // Looked at before it is opened: opening a pipe waits for whoever writes to it.
    if !path.metadata().map_err(|e| failed(&e))?.is_file() {
        return Err(failed(&"not a file"));
    }
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|e| failed(&e))?;
    if u64::try_from(bytes.len()).is_ok_and(|found| found <= LARGEST) {
        Ok(bytes)
    } else {
        Err(failed(&format!(
            "it is larger than {LARGEST} bytes, which no certificate or key is"
        )))
    }
}

fn hint(error: &ReadError, name: &NodeName) -> Option<String> {
    let ReadError::Answer(error) = error else {
        return None;
    };
    match error {
        PollError::Refused => Some(
            "is the site daemon running there? `grid site check --config FILE` on the machine says; is the address the one that sites reach?"
                .to_owned(),
        ),
        PollError::Timeout => Some(
            "is the machine up, and is its signals port open to this one?".to_owned(),
        ),
        PollError::Identity(_) => Some(format!(
            "it is not the site that the store knows: `grid push {name}` gives it what it should be; or another site answers there"
        )),
        PollError::Transport(why) if why.contains("alert") => Some(format!(
            "it does not know the certificate that it was shown: `grid push {name}` gives it what it should be"
        )),
        _ => None,
    }
}
