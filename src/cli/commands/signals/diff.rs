//! `grid signals diff`: which sites a push would restart, why, what the others take up live, and who has to acknowledge a
//! renewal first. No machine is contacted and nothing is minted: identities that a push would mint are drawn in memory, to
//! see what follows, and thrown away.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;

use super::sent::{sent_peers, sent_site};
use crate::cli::context::{Context, Reading};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::{self, some_of};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{SiteDiffView, SiteEffect, SitesDiffView};
use crate::compose::World;
use crate::compose::identities::{blocking, needs, needs_authority};
use crate::compose::manifest::Manifest;
use crate::compose::sent::Sent;
use crate::compose::site::{self as composed, Wanted};
use crate::mesh::{Mesh, Node};
use crate::provision::Need;
use crate::signals::site::Peers;
use crate::site::{Given, Live, difference, peers_differ};
use crate::store::{State, Store, SystemChance};
use crate::words::{Digest, NodeName, PeerTrust, SignalMode};

/// Arguments of `grid signals diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid signals diff\n  \
        grid signals diff atlas @eu --json\n  \
        grid signals diff --exit-code || echo 'a push would touch sites'\n\n\
        Compares what a push would give each site with what it was last sent. Another mode restarts a site; under poll so do another \
        trust, and under pin an identity of its own; so do the port, the state folder and the settings. Peers, pins, scrapes and, \
        under spiffe, a renewed certificate are taken up live.")]
pub struct DiffArguments {
    /// Machines, or @TAG; absent: all
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Exit with 6 if a push would change something at a site
    #[arg(long)]
    exit_code: bool,
}

pub(super) fn diff(context: &mut Context, arguments: &DiffArguments) -> crate::cli::Result {
    let reading = context.reading()?;
    let mesh = &reading.loaded.mesh;
    let has_sites = mesh.signals.is_some();
    let nodes = match arguments.nodes.is_empty() {
        true => mesh.nodes.keys().cloned().collect(),
        false => context.choose(&reading.folder, mesh, &arguments.nodes)?,
    };
    let mut state = reading.state.clone();
    let renewals = mint_in_memory(context, mesh, &mut state)?;
    let mut store = match reading.has_store {
        true => Some(context.open_reading(&reading.folder, "signals diff")?),
        false => None,
    };
    let world = state.world(mesh);
    let mut held = Held {
        store: store.as_mut().map(|store| store as &mut dyn Store),
        peers: BTreeMap::new(),
    };
    let mut sites = Vec::new();
    for node in nodes.iter().filter_map(|name| mesh.nodes.get(name)) {
        let seen = look(context, &reading, &world, &mut held, node, &renewals)?;
        sites.extend(seen);
    }
    let view = SitesDiffView { sites };
    if context.ui.json {
        context.ui.json(&view, false)?;
    } else if view.sites.is_empty() {
        context.ui.chat(&Line::of(match has_sites {
            true => "a push changes nothing at these sites",
            false => "there are no sites: the declaration has no table `[signals]`, and no machine holds one of an earlier push",
        }));
    } else {
        context.ui.results(&lines(&view))?;
    }
    Ok(match arguments.exit_code && !view.sites.is_empty() {
        true => Exit::Behind,
        false => Exit::Done,
    })
}

/// Gives the sites what a push would mint now; says which identities are renewed by that.
fn mint_in_memory(
    context: &Context,
    mesh: &Mesh,
    state: &mut State,
) -> Result<BTreeMap<NodeName, Need>, CommandError> {
    if mesh.signals.is_none() {
        return Ok(BTreeMap::new());
    }
    if needs_authority(&state.world(mesh), context.today) {
        let identities = &mut state.identities;
        identities.renew_due_authority(&mesh.name, context.today, &mut SystemChance)?;
    }
    let wanted = needs(&state.world(mesh), context.today);
    for (site, need) in &wanted {
        let identities = &mut state.identities;
        identities.mint(&mesh.name, site, *need, context.today, &mut SystemChance)?;
    }
    Ok(wanted.into_iter().collect())
}

/// What sites were last sent. Lists of sites are the same for many, so each is compared once.
struct Held<'a> {
    store: Option<&'a mut dyn Store>,
    peers: BTreeMap<Digest, Option<Vec<Live>>>,
}

impl Held<'_> {
    /// What a site that was sent `manifest` runs as; `None`: that is not kept.
    fn given(
        &mut self,
        reading: &Reading,
        node: &NodeName,
        manifest: &Manifest,
    ) -> Result<Option<Given>, CommandError> {
        let Some(store) = &mut self.store else {
            return Ok(None);
        };
        let number = manifest.site.as_ref().and_then(|site| site.identity);
        let identity = reading.state.identities.of(node);
        let identity = number.and_then(|number| identity?.get(number));
        let site = sent_site(*store, manifest)?;
        Ok(site.map(|site| Given {
            site,
            certificate: identity.map(|identity| identity.pin()),
        }))
    }

    /// What changes in the list of sites; `None`: the list that was sent is not kept.
    fn peers(
        &mut self,
        manifest: &Manifest,
        wanted: &Peers,
    ) -> Result<Option<Vec<Live>>, CommandError> {
        let (Some(file), Some(store)) =
            (composed::file(manifest, composed::PEERS), &mut self.store)
        else {
            return Ok(None);
        };
        if let Some(known) = self.peers.get(&file.sha256) {
            return Ok(known.clone());
        }
        let held = sent_peers(*store, manifest)?;
        let differ = held.map(|held| peers_differ(&held, wanted));
        self.peers.insert(file.sha256, differ.clone());
        Ok(differ)
    }
}

/// What a push does to a site; `None`: nothing.
fn look(
    context: &Context,
    reading: &Reading,
    world: &World<'_>,
    held: &mut Held<'_>,
    node: &Node,
    renewals: &BTreeMap<NodeName, Need>,
) -> Result<Option<SiteDiffView>, CommandError> {
    if !node.is_observed() {
        return Ok(None); // nobody knows which daemon runs there, and how
    }
    let failed = |error: crate::compose::ComposeError| {
        CommandError::new(Exit::Declaration, error)
            .context(format!("the site of {} cannot be composed", node.name))
    };
    let wanted = composed::wanted(world, node).map_err(failed)?;
    let machine = world.machine(&node.name);
    let sent = machine.sent.as_ref();
    let sent = sent.filter(|sent| sent.manifest.site.is_some());
    let mut view = SiteDiffView {
        node: node.name.clone(),
        effect: SiteEffect::Live,
        why: Vec::new(),
        live: Vec::new(),
        first: Vec::new(),
        hold: node.hold_in_force(context.today).map(phrases::hold),
        uncertain: machine.attempt.is_some(),
    };
    match (sent, &wanted) {
        (None, None) => return Ok(None),
        (None, Some(_)) => view.effect = SiteEffect::Comes,
        (Some(_), None) => view.effect = SiteEffect::Leaves,
        (Some(sent), Some(wanted)) => {
            compare(reading, world, held, sent, wanted, &mut view)?;
            renewed(world, wanted, renewals, &mut view);
            let is_same = view.why.is_empty() && view.live.is_empty();
            if view.effect == SiteEffect::Live && is_same {
                return Ok(None);
            }
        }
    }
    Ok(Some(view))
}

fn compare(
    reading: &Reading,
    world: &World<'_>,
    held: &mut Held<'_>,
    sent: &Sent,
    wanted: &Wanted,
    view: &mut SiteDiffView,
) -> Result<(), CommandError> {
    let manifest = &sent.manifest;
    let Some(given) = held.given(reading, &view.node, manifest)? else {
        view.effect = SiteEffect::Unknown;
        view.why = vec!["what it was last sent is not kept".to_owned()];
        return Ok(());
    };
    let next = Given {
        site: wanted.config.clone(),
        certificate: wanted.certificate,
    };
    let (why, mut live) = difference(&given, &next);
    let digest = |name| composed::file(manifest, name).map(|file| file.sha256);
    if digest(composed::AUTHORITIES) != Some(wanted.authorities) {
        live.push(Live::Authorities);
    }
    let next_trust = wanted.config.trust;
    let phrase = |live: &Live| phrase(live, &view.node, next_trust);
    view.live = live.iter().map(phrase).collect();
    if digest(composed::PEERS) != Some(wanted.peers) {
        let list = composed::peers(world).map_err(|e| CommandError::new(Exit::Declaration, e))?;
        match held.peers(manifest, &list)? {
            Some(changes) => view.live.extend(changes.iter().map(phrase)),
            None => view.live.push("the list of its peers".to_owned()),
        }
    }
    if !why.is_empty() {
        view.effect = SiteEffect::Restarts;
        view.why = why.iter().map(ToString::to_string).collect();
    }
    Ok(())
}

/// A renewal that waits for peers ends in a restart as well, once these have acknowledged it.
fn renewed(
    world: &World<'_>,
    wanted: &Wanted,
    renewals: &BTreeMap<NodeName, Need>,
    view: &mut SiteDiffView,
) {
    let blocking = blocking(world, &view.node);
    if blocking.is_empty() {
        return;
    }
    let config = &wanted.config;
    if (config.mode, config.trust) != (SignalMode::Poll, PeerTrust::Pin) {
        return;
    }
    let is_due = renewals.get(&view.node) == Some(&Need::Renewal);
    view.effect = SiteEffect::Restarts;
    view.why.push(match is_due {
        true => "its identity is renewed, which is due".to_owned(),
        false => "its identity is renewed".to_owned(),
    });
    view.first = blocking.into_iter().collect();
}

/// What a site takes up. Its own entry in the list of sites is told where nothing else of that kind changes: the file that it
/// is sent is another one then, too.
fn phrase(live: &Live, own: &NodeName, trust: PeerTrust) -> String {
    let others = |what: &str, its_own: &str, names: &BTreeSet<NodeName>| {
        let names: Vec<&NodeName> = names.iter().filter(|name| *name != own).collect();
        match names.is_empty() {
            true => format!("{its_own}, in the list of sites"),
            false => format!("{what} {}", some_of(names)),
        }
    };
    match live {
        Live::Certificate => "its renewed certificate".to_owned(),
        Live::Trust(trust) => format!("trust = \"{trust}\""),
        Live::Scrapes => "what it scrapes".to_owned(),
        Live::Watches => "how signals are made of metrics".to_owned(),
        Live::Authorities => "the mesh's authorities".to_owned(),
        // The list has none under this trust.
        Live::Pins(_) if trust == PeerTrust::Spiffe => {
            "that its peers have no pins any more".to_owned()
        }
        Live::PeersCome(names) => others("new peers", "itself", names),
        Live::PeersLeave(names) => others("peers that leave", "that it leaves", names),
        Live::Pins(names) => others("pins of", "its own pins", names),
        Live::Hosts(names) => others("addresses of", "its own address", names),
    }
}

fn lines(view: &SitesDiffView) -> Vec<Line> {
    let widest = view.sites.iter().map(|site| site.node.as_str().len()).max();
    let width = widest.unwrap_or(0).saturating_add(2);
    let mut lines = Vec::new();
    for site in &view.sites {
        let (look, effect) = match site.effect {
            SiteEffect::Restarts => (Look::Warn, "restarts"),
            SiteEffect::Live => (Look::Good, "live"),
            SiteEffect::Comes => (Look::Good, "comes"),
            SiteEffect::Leaves => (Look::Warn, "leaves"),
            SiteEffect::Unknown => (Look::Warn, "unknown"),
        };
        let mut said = site.why.clone();
        if !site.live.is_empty() {
            said.push(format!("takes up live: {}", site.live.join(", ")));
        }
        if site.uncertain {
            said.push("nobody knows how the last send to it ended".to_owned());
        }
        if let Some(hold) = &site.hold {
            said.push(format!("on hold: {hold}, so a push leaves it as it is"));
        }
        let begin = |text: &str, effect: &str| {
            Line::new()
                .column(Look::Strong, text, width)
                .column(look, effect, 10)
        };
        lines.push(begin(site.node.as_str(), effect).plain(said.join("; ")));
        if !site.first.is_empty() {
            let text = format!(
                "first these have to acknowledge it: {}",
                some_of(&site.first)
            );
            lines.push(begin("", "").plain(text));
        }
    }
    lines
}
