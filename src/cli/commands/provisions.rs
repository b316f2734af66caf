//! `grid provisions`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;

use super::accounts::{account, existing, may_exist};
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::list;
use crate::cli::ui::{Line, Look};
use crate::cli::view::{GenerationView, ProvisionView, ProvisionsView};
use crate::compose::sent::{Admitted, Fleet};
use crate::kinds;
use crate::mesh::Mesh;
use crate::provision::{Credential, ProvisionId, State as Stage};
use crate::store::State;
use crate::words::{Generation, NodeName, ServiceName};

/// Arguments of `grid provisions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid provisions                     who has an account on whom\n  \
        grid provisions broker/report --show-secrets\n\n\
        --show-secrets prints the secret of the newest generation, for a consumer outside the mesh; the journal keeps that it was done.")]
pub struct Arguments {
    /// Accounts: PROVIDER/CONSUMER; absent: all
    #[arg(value_name = "PROVIDER/CONSUMER")]
    accounts: Vec<String>,
    /// Print secrets
    #[arg(long)]
    show_secrets: bool,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let (mut view, mesh, known) = if arguments.show_secrets {
        let mut writing = context.writing("provisions --show-secrets", Duration::ZERO)?;
        let view = view(&writing.loaded.mesh, &writing.state, true);
        // Written down before anything is shown.
        context.commit(&mut writing, Vec::new(), [])?;
        let known = existing(&writing.state.provisions);
        (view, writing.loaded.mesh, known)
    } else {
        let reading = context.reading()?;
        let view = view(&reading.loaded.mesh, &reading.state, false);
        let known = existing(&reading.state.provisions);
        (view, reading.loaded.mesh, known)
    };
    if !arguments.accounts.is_empty() {
        let name = |p: &ProvisionView| format!("{}/{}", p.provider, p.consumer);
        let names: BTreeSet<String> = view.provisions.iter().map(name).collect();
        if let Some(absent) = arguments
            .accounts
            .iter()
            .find(|name| !names.contains(*name))
        {
            let id = account(absent)?;
            may_exist(&mesh, &known, &id)?;
            return Err(
                CommandError::usage(format!("there is no account {absent} yet"))
                    .hint("`grid provisions` lists those that there are"),
            );
        }
        view.provisions
            .retain(|provision| arguments.accounts.contains(&name(provision)));
    }
    if context.ui.json {
        context.ui.json(&view, false)?;
        return Ok(Exit::Done);
    }
    if view.provisions.is_empty() {
        context.ui.chat(&Line::of("there is no account yet"));
    }
    let lines = table(&view);
    context.ui.results(&lines)?;
    Ok(Exit::Done)
}

fn view(mesh: &Mesh, state: &State, show_secrets: bool) -> ProvisionsView {
    let whereabouts = Whereabouts::of(&state.fleet);
    let provisions = state
        .provisions
        .iter()
        .map(|(id, provision)| {
            let of = |map: &Machines<'_>, generation| {
                let found = map.get(&(&id.provider, &id.consumer, generation));
                found.cloned().unwrap_or_default()
            };
            let newest = provision.newest().generation;
            let generations = provision.generations().map(|credential| GenerationView {
                number: credential.generation.number,
                era: credential.generation.era,
                state: credential.state,
                username: username(mesh, &id, credential),
                used_on: of(&whereabouts.used, credential.generation),
                admitted_on: of(&whereabouts.admitted, credential.generation),
                secret: (show_secrets && credential.generation == newest)
                    .then(|| credential.secret.expose().to_owned()),
            });
            ProvisionView {
                by_hand: provision.by_hand,
                declared: mesh.consumption(&id.provider, &id.consumer).is_some(),
                generations: generations.collect(),
                provider: id.provider,
                consumer: id.consumer,
            }
        })
        .collect();
    ProvisionsView { provisions }
}

fn username(mesh: &Mesh, id: &ProvisionId, credential: &Credential) -> Option<String> {
    let provides = mesh.services.get(&id.provider)?.provides.as_ref()?;
    let wants = provides.provider.default_wants();
    let account = kinds::Account {
        owner: kinds::Owner {
            mesh: &mesh.name,
            provider: &id.provider,
        },
        consumer: &id.consumer,
        generation: credential.generation,
        secret: &credential.secret,
        salt: credential.salt,
        wants: &wants,
    };
    Some(account.username())
}

/// A generation of an account: provider, consumer, and which.
type Account<'a> = (&'a ServiceName, &'a ServiceName, Generation);
type Machines<'a> = BTreeMap<Account<'a>, BTreeSet<NodeName>>;

/// Where accounts are, read off the fleet in one pass: there are many of both.
struct Whereabouts<'a> {
    /// The machines that hold a generation in a binding, or may: as last acknowledged, or as attempted.
    used: Machines<'a>,
    /// The machines that admit it for certain.
    admitted: Machines<'a>,
}

impl<'a> Whereabouts<'a> {
    fn of(fleet: &'a Fleet) -> Self {
        let (mut used, mut admitted) = (Machines::new(), Machines::new());
        let note = |map: &mut Machines<'a>, account: Account<'a>, node: &NodeName| {
            map.entry(account).or_default().insert(node.clone());
        };
        for (node, machine) in fleet {
            let attempted = machine.attempt.iter();
            let attempted = attempted.flat_map(|attempt| &attempt.manifest.services);
            for (consumer, service) in machine.services().chain(attempted) {
                for (provider, bound) in &service.bindings {
                    note(&mut used, (provider, consumer, bound.generation), node);
                }
            }
            for (provider, _) in machine.services() {
                let admits = machine.admits(provider).into_iter();
                for grant in admits.flat_map(Admitted::iter) {
                    let account = (provider, &grant.consumer, grant.generation);
                    note(&mut admitted, account, node);
                }
            }
        }
        Self { used, admitted }
    }
}

fn table(view: &ProvisionsView) -> Vec<Line> {
    let name = |p: &ProvisionView| format!("{}/{}", p.provider, p.consumer);
    let where_ = |how: &str, nodes: &BTreeSet<NodeName>| match nodes.is_empty() {
        true => format!("not {how}"),
        false => format!("{how} on {}", list(nodes)),
    };
    let cells = |generation: &GenerationView| {
        [
            format!("generation {}", generation.number),
            word(generation.state).to_owned(),
            where_("admitted", &generation.admitted_on),
            where_("used", &generation.used_on),
        ]
    };
    let generations = || view.provisions.iter().flat_map(|p| &p.generations);
    let widest = |texts: &mut dyn Iterator<Item = String>| {
        let width = texts.map(|text| text.chars().count()).max();
        width.unwrap_or(0).saturating_add(2)
    };
    let width = widest(&mut view.provisions.iter().map(name));
    let [number, state, admitted, _] = [0, 1, 2, 3]
        .map(|cell| widest(&mut generations().filter_map(|g| cells(g).into_iter().nth(cell))));
    let mut lines = Vec::new();
    for provision in &view.provisions {
        let mut label = name(provision);
        for generation in &provision.generations {
            let look = match generation.state {
                Stage::Live => Look::Plain,
                Stage::Revoked | Stage::Cut => Look::Warn,
            };
            let [number_, state_, admitted_, used] = cells(generation);
            let mut line = Line::new()
                .column(Look::Strong, &label, width)
                .column(Look::Plain, number_, number)
                .column(look, state_, state)
                .column(Look::Plain, admitted_, admitted)
                .plain(used);
            if provision.by_hand && !label.is_empty() {
                line = line.plain(", by hand");
            }
            lines.push(line);
            if let Some(secret) = &generation.secret {
                let username = generation.username.as_deref().unwrap_or("");
                lines.push(Line::of(format!(
                    "{}username {username}  password {secret}",
                    " ".repeat(width)
                )));
            }
            label = String::new();
        }
    }
    lines
}

const fn word(state: Stage) -> &'static str {
    match state {
        Stage::Live => "live",
        Stage::Revoked => "revoked",
        Stage::Cut => "cut",
    }
}
