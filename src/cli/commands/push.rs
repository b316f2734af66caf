//! `grid push`: the main job. What it does is `crate::push`; here it is asked for, told, and written down.

mod journal;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use clap::Args;

pub(super) use journal::{JOURNAL_READ, forgotten_in};
use journal::{Told, forgotten, write_down};

use super::renamed::refuse_renamed;
use crate::cli::begins::Begins;
use crate::cli::context::{Context, recipients};
use crate::cli::duration::{parse_limit, parse_wait};
use crate::cli::exit::{CommandError, Exit};
use crate::cli::narrator::{Heading, Narrator};
use crate::cli::summary;
use crate::cli::ui::Line;
use crate::cli::view::PushEvent;
use crate::delivery::{CourierSettings, Couriers, Dispatch, Gate, match_blocks};
use crate::mesh::Mesh;
use crate::push::{Event, Named, Orders, Ports, Pretend, Report, push};
use crate::store::{Holder, MemoryStore, Store, SystemChance};
use crate::words::NodeName;

/// Arguments of `grid push`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    override_usage = "grid push [OPTIONS] <NODE>...\n       grid push [OPTIONS] --behind\n       grid push [OPTIONS] --all"
)]
#[command(after_help = "Examples:\n  \
        grid push borealis            one machine, and whatever is behind because of it\n  \
        grid push @eu --parallel 4    all machines with a tag, four at a time\n  \
        grid push --behind            every machine that is behind, and no other\n  \
        grid push --all --dry-run     what would be minted and sent\n\n\
        A push finishes what it starts: it mints the accounts that are needed, sends, and flushes every machine that is \
        behind, over as many rounds as it takes. Each machine that was sent to, and each that is not current at the end, is named. \
        Exit codes: 0 nothing is behind or waiting, 4 some machine failed or waits, 5 rounds ran out, 7 another push holds the lock, \
        8 a machine holds what another store sent, 130 interrupted.\n\n\
        Ctrl-C starts no further send, finishes those under way and says what is behind; a second one quits at once.")]
pub struct Arguments {
    /// Machines to send to: names, or @TAG for all that carry a tag
    #[arg(value_name = "NODE", conflicts_with_all = ["behind", "all"])]
    pub nodes: Vec<String>,
    /// Send to every machine that is behind, and contact no other
    #[arg(long, conflicts_with = "all")]
    pub behind: bool,
    /// Name every machine that is not on hold
    #[arg(long)]
    pub all: bool,
    /// Show what would be minted and sent; do neither, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How many machines are sent to at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub parallel: u16,
    /// How many rounds may follow the first; absent: four more than twice the longest chain of consumers
    #[arg(long, value_name = "N")]
    pub max_rounds: Option<usize>,
    /// How long the whole send to a machine may take (90s, 10m); absent: as long as its steps may
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub timeout: Option<Duration>,
    /// After N failed machines send to no further one, but to a provider that somebody waits for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_failures: Option<u32>,
    /// Replace whatever a machine holds, even if another store sent it
    #[arg(long)]
    pub take_over: bool,
    /// Wait for another push to end, for so long (10m if nothing is said)
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m", value_parser = parse_wait)]
    pub wait: Option<Duration>,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    if arguments.nodes.is_empty() && !arguments.behind && !arguments.all {
        return Err(CommandError::usage(
            "say what to push: `grid push NODE…` names machines (or @TAG), `grid push --behind` takes those that are behind, \
             `grid push --all` names all that are not on hold",
        ));
    }
    if arguments.dry_run {
        return dry_run(context, arguments);
    }
    // A misspelt name is told before a lock is waited for.
    let (folder, loaded) = context.load()?;
    named(context, &folder, &loaded.mesh, arguments)?;
    let wait = arguments.wait.unwrap_or(Duration::ZERO);
    let mut writing = context.writing_to(folder, loaded, Holder::PUSH, wait)?;
    refuse_renamed(&writing.loaded.mesh, &writing.state.fleet)?;
    let gate = context.gate()?;
    let orders = orders(
        context,
        (&writing.folder, &writing.loaded.mesh),
        arguments,
        writing.git.as_ref(),
    )?;
    let mut settings = CourierSettings::new(writing.folder.clone());
    settings.parallel = usize::from(arguments.parallel);
    settings.limit = arguments.timeout;
    settings.passphrases = context.ui.asks_passphrases(&gate);
    settings.gate = gate.clone();
    for note in match_blocks(&settings, writing.loaded.mesh.nodes.values()) {
        context.ui.chat(&Line::note(note));
    }
    let mut couriers = Couriers::new(settings);
    let mesh = writing.loaded.mesh.clone();
    let heading = heading(context, writing.git.as_ref(), false);
    let sources = context.sources(&writing.folder, &mesh, &writing.sealed_for);
    let mut told = Told::of(context.under_way.clone());
    let began = context.entry(&writing, Exit::Done);
    let mut store = Begins::new(&mut writing.store, began);
    let pushed = act(
        context,
        &mesh,
        &orders,
        heading,
        Acting {
            store: &mut store,
            couriers: &mut couriers,
            sources,
            gate,
            told: &mut told,
        },
    );
    let exit = match &pushed {
        Ok(report) => Exit::from(report.verdict()),
        Err(error) => error.exit,
    };
    let written = write_down(context, &mut writing, &told, exit);
    let report = pushed?;
    written?;
    if !context.ui.json {
        let forgotten = forgotten(&mut writing.store, &report)?;
        let loaded = &writing.loaded;
        summary::tell(&mut context.ui, loaded, &report, &forgotten, false)?;
    }
    Ok(exit)
}

/// The same push against a copy of the state, in memory.
fn dry_run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let reading = context.reading()?;
    let mesh = &reading.loaded.mesh;
    refuse_renamed(mesh, &reading.state.fleet)?;
    recipients::note(context, &reading);
    let orders = orders(
        context,
        (&reading.folder, mesh),
        arguments,
        reading.git.as_ref(),
    )?;
    let heading = heading(context, reading.git.as_ref(), true);
    let sources = context.sources(&reading.folder, mesh, &reading.sealed_for);
    let mut couriers = Pretend;
    let mut store = MemoryStore::of(reading.state.clone()); // what is written to it is forgotten
    let mut told = Told::default();
    let report = act(
        context,
        mesh,
        &orders,
        heading,
        Acting {
            store: &mut store,
            couriers: &mut couriers,
            sources,
            gate: Gate::default(),
            told: &mut told,
        },
    )?;
    if !context.ui.json {
        let forgotten = BTreeSet::new();
        summary::tell(&mut context.ui, &reading.loaded, &report, &forgotten, true)?;
    }
    Ok(Exit::from(report.verdict()))
}

fn named(
    context: &Context,
    folder: &Utf8Path,
    mesh: &Mesh,
    arguments: &Arguments,
) -> Result<Named, CommandError> {
    if arguments.behind {
        return Ok(Named::Behind);
    }
    let is_sent_to = |node: &&crate::mesh::Node| node.hold_in_force(context.today).is_none();
    if arguments.all {
        let nodes = mesh.nodes.values().filter(is_sent_to);
        return Ok(Named::Nodes(nodes.map(|node| node.name.clone()).collect()));
    }
    let mut nodes = BTreeSet::new();
    for text in &arguments.nodes {
        let mut chosen = context.choose(folder, mesh, std::slice::from_ref(text))?;
        if text.starts_with('@') {
            // A tag names those that are not on hold, as --all does.
            chosen.retain(|node| mesh.nodes.get(node).as_ref().is_none_or(is_sent_to));
        }
        nodes.extend(chosen);
    }
    Ok(Named::Nodes(nodes))
}

fn orders(
    context: &Context,
    (folder, mesh): (&Utf8Path, &Mesh),
    arguments: &Arguments,
    git: Option<&crate::cli::git::GitPlace>,
) -> Result<Orders, CommandError> {
    let mut sender = format!(
        "{} grid {} {}",
        context.holder("").who,
        env!("CARGO_PKG_VERSION"),
        context.typed
    );
    if let Some(git) = git {
        sender.push_str(&format!(", {git}"));
    }
    if let Some(job) = crate::cli::who::ci_job() {
        sender.push_str(&format!(", {job}"));
    }
    Ok(Orders {
        named: named(context, folder, mesh, arguments)?,
        max_rounds: arguments.max_rounds,
        max_failures: arguments
            .max_failures
            .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        take_over: arguments.take_over,
        sender: crate::cli::ui::clean(&sender).chars().take(400).collect(),
        today: context.today,
    })
}

fn heading(context: &Context, git: Option<&crate::cli::git::GitPlace>, dry_run: bool) -> Heading {
    Heading {
        git: git.map(ToString::to_string),
        who: context.holder("").who,
        dry_run,
    }
}

/// Through what a push acts here.
struct Acting<'a> {
    store: &'a mut dyn Store,
    couriers: &'a mut dyn Dispatch,
    sources: std::sync::Arc<dyn crate::compose::sources::Sources>,
    gate: Gate,
    told: &'a mut Told,
}

fn act(
    context: &mut Context,
    mesh: &Mesh,
    orders: &Orders,
    heading: Heading,
    acting: Acting<'_>,
) -> Result<Report, CommandError> {
    let Acting {
        store,
        couriers,
        sources,
        gate,
        told,
    } = acting;
    let mut chance = SystemChance;
    if context.ui.json {
        let mut broken: Option<CommandError> = None;
        let mut began: BTreeMap<NodeName, Instant> = BTreeMap::new();
        let mut hear = |event: Event| {
            told.hear(&event);
            let mut milliseconds = 0;
            if let Event::Sending { node, .. } = &event {
                began.insert(node.clone(), Instant::now());
            }
            if let Event::Sent { node, .. } = &event {
                let took = began.get(node).map(Instant::elapsed).unwrap_or_default();
                milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            }
            if let Some(view) = PushEvent::of(&event, milliseconds, heading.dry_run)
                && let Err(error) = context.ui.json(&view, true)
            {
                broken.get_or_insert(error);
            }
        };
        let ports = Ports {
            store,
            couriers,
            sources,
            chance: &mut chance,
            gate,
            hear: &mut hear,
        };
        let report = push(mesh, orders, ports)?;
        return broken.map_or(Ok(report), Err);
    }
    let mut narrator = Narrator::new(&mut context.ui, mesh, heading);
    #[cfg(debug_assertions)]
    let stop_after = crate::cli::stop_after::StopAfter::default();
    let mut hear = |event: Event| {
        told.hear(&event);
        narrator.hear(&event);
        #[cfg(debug_assertions)]
        stop_after.hear(&event);
    };
    let ports = Ports {
        store,
        couriers,
        sources,
        chance: &mut chance,
        gate,
        hear: &mut hear,
    };
    let report = push(mesh, orders, ports);
    let finished = narrator.finish();
    let report = report?;
    finished?;
    Ok(report)
}
