//! `grid status`: reads only, takes no lock, and without `--probe` contacts nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::civil::Date;

use super::renamed::sent_as;
use crate::cli::context::{Context, Reading};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::{self, count};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{MachineState, MachineView, ProbeView, StatusView, WaitingView};
use crate::compose::identities::{self, Standing};
use crate::compose::services::Wait;
use crate::compose::{Composer, World};
use crate::delivery::{
    Answer, CourierSettings, Couriers, Dispatch as _, Heard, Holding, Question, Secrets, Target,
};
use crate::mesh::Mesh;
use crate::provision::Need;
use crate::push::{Blocker, Reason, Whose, blockers, owes, survey, whose};
use crate::words::{NodeName, ServiceName};

/// How long a machine may take to be reached, and be silent, when it is only asked.
const PROBE_WAITS: Duration = Duration::from_secs(30);

/// Arguments of `grid status`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid status                 all machines\n  \
        grid status atlas @eu       some of them\n  \
        grid status --exit-code     for scripts: 6 when something is behind, waits, failed or is owed\n  \
        grid status --probe         contacts each machine that is not on hold, and changes nothing there\n\n\
        Reads the declaration and the store. It takes no lock, and without --probe contacts no machine.")]
pub struct Arguments {
    /// Machines: names, or @TAG; absent: all
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Exit with 6 when something is behind, waits, failed, or is owed by a machine on hold: a grant or a revocation
    #[arg(long)]
    exit_code: bool,
    /// Ask each machine now whether it answers, and whether it holds what the store knows of
    #[arg(long)]
    probe: bool,
}

/// How one machine stands, before it is printed.
struct Stands {
    state: MachineState,
    reasons: Vec<Reason>,
    waits: BTreeMap<ServiceName, (Wait, BTreeMap<ServiceName, BTreeSet<Blocker>>)>,
    revoked: BTreeSet<ServiceName>,
    /// Of a machine on hold: the providers on it that owe somebody.
    owes: BTreeSet<ServiceName>,
    identity: Option<Standing>,
    probe: Option<ProbeView>,
}

impl Stands {
    /// Whether `--exit-code` counts it.
    fn is_to_be_mended(&self) -> bool {
        self.state.is_to_be_mended()
            || !self.owes.is_empty()
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
    if arguments.probe {
        probe(&reading, &is_chosen, &mut standings);
    }
    let to_be_mended = standings
        .iter()
        .any(|(node, stands)| is_chosen(node) && stands.is_to_be_mended());
    let standings = standings.into_iter().filter(|(node, _)| is_chosen(node));
    if context.ui.json {
        let mut view = view(&reading, standings);
        view.running = context.running(&reading.folder);
        context.ui.json(&view, false)?;
    } else {
        table(context, &reading, &standings.collect())?;
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
    let composer = Composer::new(mesh, context.sources(&reading.folder, mesh));
    let mut found: BTreeMap<NodeName, Stands> = BTreeMap::new();
    let renewals = due(&world, context.today);
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
        let never_sent = glance.reasons.contains(&Reason::NeverSent);
        let is_behind = glance.is_behind();
        let rolled_back = glance.is_rolled_back;
        let (waits, revoked) = (glance.waits, glance.revoked);
        let state = if on_hold {
            MachineState::OnHold
        } else if glance.reasons.contains(&Reason::Uncertain) {
            MachineState::Uncertain
        } else if is_behind && rolled_back {
            MachineState::RolledBack
        } else if never_sent {
            MachineState::NeverSent
        } else if is_behind {
            MachineState::Behind
        } else if !waits.is_empty() {
            MachineState::Waits
        } else {
            MachineState::Current
        };
        let stands = Stands {
            state,
            reasons: glance.reasons,
            waits: waits
                .into_iter()
                .map(|(service, wait)| (service, (wait, BTreeMap::new())))
                .collect(),
            revoked,
            owes,
            identity: None,
            probe: None,
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
            let stands = Stands {
                state: MachineState::Undeclared,
                reasons: Vec::new(),
                waits: BTreeMap::new(),
                revoked: BTreeSet::new(),
                owes: BTreeSet::new(),
                identity: None,
                probe: None,
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
    renewed.map(|(site, _)| site).collect()
}

/// Asks the chosen machines that are not on hold what they hold, and changes nothing there.
fn probe(
    reading: &Reading,
    is_chosen: &dyn Fn(&NodeName) -> bool,
    standings: &mut BTreeMap<NodeName, Stands>,
) {
    let mesh = &reading.loaded.mesh;
    let questions = standings
        .iter()
        .filter(|(node, stands)| is_chosen(node) && stands.state != MachineState::OnHold)
        .filter_map(|(node, _)| mesh.nodes.get(node))
        .map(|node| Question {
            target: Target {
                mesh: mesh.name.clone(),
                node: Arc::new(node.clone()),
            },
            peek: true,
            secrets: Secrets::default(),
        })
        .collect();
    let mut settings = CourierSettings::new(reading.folder.clone());
    settings.timeout = PROBE_WAITS;
    settings.ask_waits = Duration::ZERO;
    settings.attempts = 1;
    Couriers::new(settings).ask(questions, &mut |node, heard| {
        let Heard::Answered(answer) = heard else {
            return;
        };
        let machine = reading.state.fleet.get(node);
        let token = machine.and_then(|machine| machine.token);
        let attempt = machine.and_then(|machine| machine.attempt.as_ref());
        let found = match answer {
            Answer::KeptBack => return,
            Answer::Unknown(failure) => ProbeView::Unreached(failure.into()),
            Answer::Holds(Holding { token: held, .. }) => match held {
                _ if held == token => ProbeView::Known,
                _ if held.is_some() && held == attempt.map(|attempt| attempt.token) => {
                    ProbeView::Known
                }
                Some(held) => ProbeView::OtherToken {
                    whose: whose(
                        &reading.state,
                        reading.state.push.saturating_add(1),
                        node,
                        Some(&held),
                    ),
                    held: held.into(),
                },
                None => ProbeView::Empty,
            },
        };
        if let Some(stands) = standings.get_mut(node) {
            stands.probe = Some(found);
        }
    });
}

/// What was found when a machine was asked.
fn probed(probe: &ProbeView) -> String {
    match probe {
        ProbeView::Known => "it answers".to_owned(),
        ProbeView::OtherToken { held, whose } => {
            format!("it holds {} ({held})", phrases::holds(whose, None))
        }
        ProbeView::Empty => format!("it holds {}", phrases::holds(&Whose::Nobody, None)),
        ProbeView::Unreached(failure) => format!(
            "it cannot be asked: {}: {}",
            phrases::step(failure.step),
            failure.cause
        ),
    }
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

fn view(reading: &Reading, standings: impl Iterator<Item = (NodeName, Stands)>) -> StatusView {
    let machines = standings
        .map(|(node, stands)| {
            let machine = reading.state.fleet.get(&node);
            let sent = machine.and_then(|machine| machine.sent.as_ref());
            let declared = reading.loaded.mesh.nodes.get(&node);
            let moved = sent.filter(|sent| declared.is_none_or(|declared| !sent.is_at(declared)));
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
                owes: stands.owes,
                hold: declared
                    .filter(|_| stands.state == MachineState::OnHold)
                    .and_then(|declared| declared.hold.as_ref())
                    .map(phrases::hold),
                probe: stands.probe,
                identity: stands.identity,
                reached_at: moved.map(|sent| sent.place(declared)),
                node,
            }
        })
        .collect();
    StatusView {
        mesh: reading.loaded.mesh.name.clone(),
        push: reading.state.push,
        running: None,
        machines,
    }
}

/// Why a machine stands as it does.
fn why(reading: &Reading, node: &NodeName, stands: &Stands, today: Date) -> String {
    let mesh = &reading.loaded.mesh;
    let declared = mesh.nodes.get(node);
    let mut why = Vec::new();
    if stands.state == MachineState::OnHold
        && let Some(hold) = declared.and_then(|declared| declared.hold.as_ref())
    {
        why.push(phrases::hold(hold));
    }
    if !stands.owes.is_empty() {
        why.push(phrases::owes(&stands.owes));
    }
    let reasons: Vec<Reason> = stands
        .reasons
        .iter()
        .filter(|reason| match (reason, stands.state) {
            (Reason::NeverSent, MachineState::NeverSent) => false, // its state says so
            (Reason::Uncertain, MachineState::Uncertain) => false,
            _ => true,
        })
        .cloned()
        .collect();
    if !reasons.is_empty() {
        why.push(phrases::reasons(&reasons));
    }
    for (service, (wait, blocked)) in &stands.waits {
        why.push(phrases::wait_blocked(mesh, service, wait, blocked));
    }
    for service in &stands.revoked {
        why.push(format!("{service} is revoked"));
    }
    if let Some(identity) = &stands.identity {
        why.extend(phrases::expiry(identity, today));
        why.extend(identity.renewal.as_ref().map(phrases::renewal));
    }
    why.extend(stands.probe.as_ref().map(probed));
    let sent = reading
        .state
        .fleet
        .get(node)
        .and_then(|machine| machine.sent.as_ref());
    if let Some(sent) = sent
        && declared.is_none_or(|declared| !sent.is_at(declared))
    {
        why.push(format!("last reached at {}", sent.place(declared)));
    }
    why.join("; ")
}

fn look(stands: &Stands) -> Look {
    if stands.probe.as_ref().is_some_and(|probe| !probe.is_well()) {
        return Look::Bad;
    }
    match stands.state {
        MachineState::Current => Look::Good,
        MachineState::Uncertain | MachineState::RolledBack => Look::Bad,
        _ => Look::Warn,
    }
}

/// What to do about machines that `grid push --behind` does not reach, or not before something is mended.
fn hints(mesh: &Mesh, standings: &BTreeMap<NodeName, Stands>) -> Vec<String> {
    let mut hints = Vec::new();
    if standings.is_empty() && mesh.nodes.is_empty() {
        hints.push(phrases::NO_MACHINES.to_owned());
    }
    for (node, stands) in standings {
        match &stands.probe {
            Some(ProbeView::Unreached(failure)) => {
                let hint = failure.hint.iter();
                hints.extend(hint.map(|hint| format!("{node}: {hint}")));
            }
            Some(ProbeView::Empty) => hints.push(format!(
                "`grid push {node}` sends all of it to {node} again"
            )),
            Some(ProbeView::OtherToken { .. }) => hints.push(format!(
                "`grid push {node}` changes nothing there, and says who sent that and what to do"
            )),
            Some(ProbeView::Known) | None => {}
        }
        if stands.state == MachineState::Undeclared {
            hints.push(format!(
                "`grid forget {node}` takes {node} as gone, once it is"
            ));
        }
    }
    let are = |state| {
        let nodes = standings
            .iter()
            .filter(move |(_, stands)| stands.state == state);
        nodes.map(|(node, _)| node)
    };
    let mut held = are(MachineState::OnHold);
    match (held.next(), held.next()) {
        (Some(node), None) => hints.push(format!("`grid unhold {node}` ends its hold")),
        (Some(_), Some(_)) => hints.push("`grid unhold NODE` ends a hold".to_owned()),
        _ => {}
    }
    if are(MachineState::RolledBack).next().is_some() {
        hints.push(
            "`grid history` lists the pushes, and `grid history PUSH` says why a machine was rolled back".to_owned(),
        );
    }
    let revoked: BTreeSet<_> = standings
        .values()
        .flat_map(|stands| &stands.revoked)
        .collect();
    hints.extend(
        revoked
            .into_iter()
            .map(|consumer| phrases::issue_again(mesh, consumer)),
    );
    hints
}

fn table(
    context: &mut Context,
    reading: &Reading,
    standings: &BTreeMap<NodeName, Stands>,
) -> Result<(), CommandError> {
    let mesh = &reading.loaded.mesh;
    let mut heading = Line::new().look(Look::Strong, &mesh.name);
    if let Some(git) = &reading.git {
        heading = heading.plain(format!("  {git}"));
    }
    let last = match (reading.has_store, reading.state.push) {
        (false, _) | (_, 0) => "never pushed".to_owned(),
        (true, push) => format!("last push {push}"),
    };
    let mut lines = vec![heading.plain(format!("  {last}"))];
    if let Some(holder) = context.running(&reading.folder) {
        let what = match holder.what.as_str() {
            "push" => "a push runs".to_owned(),
            other => format!("`grid {other}` runs"),
        };
        let line = Line::new()
            .look(Look::Warn, format!("{what}: "))
            .plain(format!(
                "{}, process {}, since {:.0}",
                holder.who, holder.pid, holder.since
            ));
        lines.push(line);
    }
    let width = standings
        .keys()
        .map(|node| node.as_str().len())
        .max()
        .unwrap_or(0);
    let mut counts: BTreeMap<MachineState, usize> = BTreeMap::new();
    for (node, stands) in standings {
        let n = counts.entry(stands.state).or_default();
        *n = n.saturating_add(1);
        if context.ui.quiet && stands.state == MachineState::Current && !stands.is_to_be_mended() {
            continue;
        }
        lines.push(
            Line::new()
                .column(Look::Strong, node, width.saturating_add(2))
                .column(look(stands), stands.state.word(), 13)
                .plain(why(reading, node, stands, context.today)),
        );
    }
    let parts: Vec<String> = counts
        .iter()
        .rev()
        .map(|(state, n)| format!("{n} {}", state.word()))
        .collect();
    let mut sum = count(standings.len(), "machine");
    if !parts.is_empty() {
        sum = format!("{sum}: {}", parts.join(", "));
    }
    lines.push(Line::of(sum));
    context.ui.results(&lines)?;
    let renamed = sent_as(mesh, &reading.state.fleet);
    if let Some((old, nodes)) = &renamed {
        context.ui.note(&Line::new().look(Look::Warn, "note: ").plain(format!(
            "this mesh was called {old} when it was last sent to {}: a push refuses to go on under the new name, and says why",
            phrases::list(nodes)
        )));
    }
    if !context.ui.quiet {
        for hint in hints(mesh, standings) {
            context.ui.hint(&hint);
        }
    }
    // Who waits is sent to once whoever it waits for can be.
    let can_be_sent =
        |state: &MachineState| state.is_to_be_mended() && *state != MachineState::Waits;
    if counts.keys().any(can_be_sent) && renamed.is_none() && !context.ui.quiet {
        context
            .ui
            .hint("`grid push --behind` sends to every machine that is behind");
    }
    Ok(())
}
