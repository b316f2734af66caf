//! `grid status`: how each machine stands, by the declaration and the store; what the journal and a probe add stands in files of their
//! own. It reads only, takes no lock, and without `--probe` contacts nobody.

mod hints;
mod journal;
mod probe;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use jiff::civil::Date;

use crate::cli::context::{Context, Reading, recipients};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases;
use crate::cli::view::{
    AuthorityView, FencedView, LastPushView, MachineState, MachineView, ProbeView, StatusView,
    WaitingView,
};
use crate::compose::identities::{self, Standing};
use crate::compose::services::{Kept, Wait};
use crate::compose::unwell::Unwell;
use crate::compose::{Composer, World};
use crate::provision::{Need, ProvisionId};
use crate::push::{Blocker, Reason, blockers, kept_admitted, owes, shut_out, survey};
use crate::words::{NodeName, ServiceName};

/// Arguments of `grid status`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid status                 all machines\n  \
        grid status atlas @eu       some of them\n  \
        grid status --exit-code     for scripts: 6 when something is behind, waits, failed or is owed\n  \
        grid status --probe         looks at each machine that is not on hold, and changes nothing there\n\n\
        Reads the declaration and the store. It takes no lock of the mesh, so that a push may run meanwhile, and without --probe contacts \
        no machine. Like every command that reads the store, it locks files in the store's folder, and so needs to be able to write there. A probe \
        compares a machine's files with what was sent, and runs no command of a service: naming the machine in a push does, and mends.")]
pub struct Arguments {
    /// Machines: names, or @TAG; absent: all
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Exit with 6 when something is behind, waits, failed, or a provider on hold owes somebody: a grant or a revocation
    #[arg(long)]
    exit_code: bool,
    /// Look at each machine now: does it answer, and do its files lie there as they were sent
    #[arg(long)]
    probe: bool,
}

/// How one machine stands, before it is printed.
struct Stands {
    state: MachineState,
    reasons: Vec<Reason>,
    waits: BTreeMap<ServiceName, (Wait, BTreeMap<ServiceName, BTreeSet<Blocker>>)>,
    revoked: BTreeSet<ServiceName>,
    /// What the declaration took from it and stays for now, and who uses that there.
    keeps: Kept,
    /// Of a machine on hold: the providers on it that owe somebody.
    owes: BTreeSet<ServiceName>,
    identity: Option<Standing>,
    probe: Option<ProbeView>,
    /// What the journal has of it, if it refused the last push to it.
    fenced: Option<FencedView>,
    /// And what came of the last push to it, if that left it as it was.
    last: Option<LastPushView>,
    /// Whether the push that runs now is sending to it.
    sending: bool,
    /// Of a machine on hold: the accounts of which it has an older secret.
    older: BTreeSet<ProvisionId>,
    /// And those of which it has a closed one.
    shut_out: BTreeSet<ProvisionId>,
    /// What contacts did not find well there.
    unwell: Unwell,
    /// Of one that cannot be composed: what to do about that, as a clause.
    remedy: Option<String>,
}

impl Stands {
    /// A machine in this state of which nothing else is known yet.
    fn new(state: MachineState) -> Self {
        Self {
            state,
            reasons: Vec::new(),
            waits: BTreeMap::new(),
            revoked: BTreeSet::new(),
            keeps: BTreeMap::new(),
            owes: BTreeSet::new(),
            identity: None,
            probe: None,
            fenced: None,
            last: None,
            sending: false,
            older: BTreeSet::new(),
            shut_out: BTreeSet::new(),
            unwell: Unwell::no(),
            remedy: None,
        }
    }

    /// Whether it is as it should be, but for what its last contact found.
    fn is_unwell(&self) -> bool {
        !self.unwell.is_no() && matches!(self.state, MachineState::Current | MachineState::Waits)
    }

    /// Whether `--exit-code` counts it.
    fn is_to_be_mended(&self) -> bool {
        self.state.is_to_be_mended()
            || !self.owes.is_empty()
            || self.is_unwell()
            || self.probe.as_ref().is_some_and(|probe| !probe.is_well())
    }
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let reading = context.reading()?;
    let chosen = if arguments.nodes.is_empty() {
        None
    } else {
        Some(chosen(context, &reading, &arguments.nodes)?)
    };
    let is_chosen = |node: &NodeName| chosen.as_ref().is_none_or(|chosen| chosen.contains(node));
    let mut standings = stand(context, &reading);
    let running = context.running(&reading.folder);
    let forgotten = journal::note(context, &reading, running.as_ref(), &mut standings)?;
    if arguments.probe {
        probe::probe(&reading, &is_chosen, &mut standings);
    }
    let to_be_mended = standings
        .iter()
        .any(|(node, stands)| is_chosen(node) && stands.is_to_be_mended());
    let standings = standings.into_iter().filter(|(node, _)| is_chosen(node));
    recipients::note(context, &reading);
    if context.ui.json {
        let mut view = view(&reading, context.today, standings);
        view.running = running;
        context.ui.json(&view, false)?;
    } else {
        let standings = standings.collect();
        table::table(
            context,
            &reading,
            &standings,
            (running.as_ref(), &forgotten),
        )?;
    }
    Ok(if arguments.exit_code && to_be_mended {
        Exit::Behind
    } else {
        Exit::Done
    })
}

/// The machines that are asked about; one that left the declaration may be named too.
fn chosen(
    context: &Context,
    reading: &Reading,
    texts: &[String],
) -> Result<BTreeSet<NodeName>, CommandError> {
    let mesh = &reading.loaded.mesh;
    let is_declared = |text: &&String| mesh.nodes.contains_key(text.as_str());
    let (mut nodes, mut rest) = (BTreeSet::new(), Vec::new());
    for text in texts {
        match reading.state.fleet.get_key_value(text.as_str()) {
            Some((node, _)) if !is_declared(&text) => {
                nodes.insert(node.clone());
            }
            _ => rest.push(text.clone()),
        }
    }
    nodes.extend(context.choose(&reading.folder, mesh, &rest)?);
    Ok(nodes)
}

/// How every machine stands. What blocks a consumer may be on a machine that was not asked about.
fn stand(context: &Context, reading: &Reading) -> BTreeMap<NodeName, Stands> {
    let mesh = &reading.loaded.mesh;
    let world = reading.state.world(mesh);
    let sources = context.sources(&reading.folder, mesh, &reading.sealed_for);
    let composer = Composer::new(mesh, sources);
    let mut found: BTreeMap<NodeName, Stands> = BTreeMap::new();
    let renewals = due(&world, context.today);
    let mut older = kept_admitted(&world, context.today);
    let mut shut_out = shut_out(&world, context.today);
    for (node, mut glance) in survey(&composer, &world) {
        if renewals.contains(&node) {
            glance.reasons.push(Reason::NeedsRenewal);
        }
        let declared = mesh.nodes.get(&node);
        let on_hold =
            declared.is_some_and(|declared| declared.hold_in_force(context.today).is_some());
        let owes = match on_hold {
            true => owes(&world, &node, &glance),
            false => BTreeSet::new(),
        };
        // Whatever else it lacks, or keeps it from being composed.
        let machine = world.machine(&node);
        let never_sent = machine.sent.is_none() && !glance.reasons.contains(&Reason::Moved);
        let is_behind = glance.is_behind();
        let rolled_back = glance.is_rolled_back;
        let (waits, revoked) = (glance.waits, glance.revoked);
        let state = if on_hold {
            MachineState::OnHold
        } else if glance.reasons.contains(&Reason::Uncertain) {
            MachineState::Uncertain
        } else if is_behind && rolled_back {
            MachineState::RolledBack
        } else if is_behind && never_sent {
            MachineState::NeverSent
        } else if is_behind {
            MachineState::Behind
        } else if !waits.is_empty() {
            MachineState::Waits
        } else {
            MachineState::Current
        };
        let stands = Stands {
            reasons: glance.reasons,
            waits: waits
                .into_iter()
                .map(|(service, wait)| (service, (wait, BTreeMap::new())))
                .collect(),
            revoked,
            keeps: glance.keeps,
            owes,
            older: older.remove(&node).unwrap_or_default(),
            shut_out: shut_out.remove(&node).unwrap_or_default(),
            unwell: world.machine(&node).unwell.clone(),
            remedy: glance.remedy.filter(|_| !on_hold),
            ..Stands::new(state)
        };
        found.insert(node, stands);
    }
    block(context, &world, &mut found);
    for (node, standing) in identities::standings(&world) {
        if let Some(stands) = found.get_mut(&node) {
            stands.identity = Some(standing);
        }
    }
    for (node, machine) in &reading.state.fleet {
        if machine.is_known() && !mesh.nodes.contains_key(node) {
            let users = |name: &ServiceName| world.uses.users(name, node).cloned().collect();
            let stands = Stands {
                keeps: machine
                    .declarable()
                    .map(|name| (name.clone(), users(name)))
                    .collect(),
                ..Stands::new(MachineState::Undeclared)
            };
            found.insert(node.clone(), stands);
        }
    }
    found
}

/// The sites whose identity a push would renew today.
fn due(world: &World<'_>, today: Date) -> BTreeSet<NodeName> {
    let needs = identities::needs(world, today).into_iter();
    let renewed = needs.filter(|(_, need)| *need != Need::First);
    let renewed = renewed.map(|(site, _)| site);
    if !identities::needs_authority(world, today) {
        return renewed.collect();
    }
    // Every identity is issued anew by the next authority.
    let sites = identities::standings(world).into_keys();
    renewed.chain(sites).collect()
}

/// Finds what blocks each provider that somebody waits for.
fn block(context: &Context, world: &World<'_>, found: &mut BTreeMap<NodeName, Stands>) {
    let waiting: BTreeSet<(NodeName, ServiceName)> = found
        .iter()
        .flat_map(|(node, stands)| {
            let services = stands.waits.keys();
            services.map(|service| (node.clone(), service.clone()))
        })
        .collect();
    let rolled_back: BTreeSet<NodeName> = found
        .iter()
        .filter(|(_, stands)| stands.state == MachineState::RolledBack)
        .map(|(node, _)| node.clone())
        .collect();
    for stands in found.values_mut() {
        for (service, (wait, blocked)) in &mut stands.waits {
            let Wait::Grant(providers) = wait else {
                continue;
            };
            for provider in providers.iter() {
                let waits = |node: &NodeName| waiting.contains(&(node.clone(), provider.clone()));
                let found = blockers(world, provider, service, &waits, context.today)
                    .into_iter()
                    .map(|blocker| match blocker {
                        Blocker::Pending(node) if rolled_back.contains(&node) => {
                            Blocker::Failed(node)
                        }
                        other => other,
                    })
                    .collect();
                blocked.insert(provider.clone(), found);
            }
        }
    }
}

/// Where a machine was last reached, if the declaration no longer says so.
fn reached_elsewhere(reading: &Reading, node: &NodeName) -> Option<String> {
    let machine = reading.state.fleet.get(node)?;
    let declared = reading.loaded.mesh.nodes.get(node);
    machine.elsewhere(declared)
}

/// Where it was sent to before.
fn left_behind(reading: &Reading, node: &NodeName) -> Vec<String> {
    let declared = reading.loaded.mesh.nodes.get(node);
    let machine = reading.state.fleet.get(node);
    machine.map_or_else(Vec::new, |machine| machine.left_behind(declared))
}

fn view(
    reading: &Reading,
    today: Date,
    standings: impl Iterator<Item = (NodeName, Stands)>,
) -> StatusView {
    let authorities = reading.state.identities.authorities();
    let authority = authorities.newest().map(|newest| AuthorityView {
        number: newest.number,
        expires: newest.until,
        due: authorities.are_due(today),
    });
    let machines = standings
        .map(|(node, stands)| {
            let machine = reading.state.fleet.get(&node);
            let sent = machine.and_then(|machine| machine.sent.as_ref());
            let declared = reading.loaded.mesh.nodes.get(&node);
            let moved = reached_elsewhere(reading, &node);
            let left_behind = left_behind(reading, &node);
            let unwell = match stands.is_unwell() {
                true => stands.unwell,
                false => Unwell::no(),
            };
            MachineView {
                state: stands.state,
                holds: sent.map(|sent| sent.manifest.digest()),
                reasons: stands.reasons,
                waits: stands
                    .waits
                    .iter()
                    .map(|(service, (wait, blocked))| {
                        (service.clone(), WaitingView::new(wait, blocked))
                    })
                    .collect(),
                revoked: stands.revoked,
                keeps: stands.keeps,
                owes: stands.owes,
                hold: declared
                    .filter(|_| stands.state == MachineState::OnHold)
                    .and_then(|declared| declared.hold.as_ref())
                    .map(phrases::hold),
                unobserved: declared.is_some_and(|declared| !declared.is_observed()),
                fenced: stands.fenced,
                sending: stands.sending,
                last_push: stands.last,
                older: stands.older,
                unwell: unwell.pushes().last().copied(),
                unwell_services: unwell.services,
                shut_out: stands.shut_out,
                probe: stands.probe,
                identity: stands.identity,
                reached_at: moved,
                left_behind,
                node,
            }
        })
        .collect();
    let mesh = &reading.loaded.mesh;
    StatusView {
        mesh: reading.loaded.mesh.name.clone(),
        push: reading.state.push,
        running: None,
        to_be_taken_out: reading
            .to_be_taken_out
            .iter()
            .map(|one| one.key.clone())
            .collect(),
        signals_cross: mesh
            .signals
            .as_ref()
            .map(|_| phrases::gossip(mesh).is_none()),
        authority: authority.filter(|_| mesh.signals.is_some()),
        machines,
    }
}
