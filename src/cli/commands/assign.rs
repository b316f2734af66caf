//! `grid assign` and `grid unassign`: they edit the declaration. `assign` mints, so that the provider is behind
//! from that moment on and whatever push comes next tells it.

use std::time::Duration;

use clap::Args;

use super::change::{name, tell};
use crate::cli::context::{Context, Writing};
use crate::cli::view::Changed;
use crate::mesh::{Selector, set_nodes};
use crate::provision;
use crate::store::{Change, Store as _, SystemChance};
use crate::words::ServiceName;

/// Arguments of `grid assign`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid assign billing borealis          billing is on borealis, and nowhere else\n  \
        grid assign exporter @eu cygnus       on all machines with a tag, and one more\n\n\
        Edits the declaration in place, keeping comments and order, and mints the accounts that the service needs. \
        Nothing is sent: the next push does that, and tells the providers first.")]
pub struct AssignArguments {
    /// The service
    service: String,
    /// Its machines: names, or @TAG
    #[arg(required = true, value_name = "NODE")]
    nodes: Vec<String>,
}

impl AssignArguments {
    /// One service, one machine.
    pub(super) fn of(service: &str, node: &str) -> Self {
        Self {
            service: service.to_owned(),
            nodes: vec![node.to_owned()],
        }
    }
}

/// Arguments of `grid unassign`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid unassign billing\n\nEdits the declaration in place. The next push removes the service from its machines, and then closes the accounts that \
        nobody uses any more. Its data stays."
)]
pub struct UnassignArguments {
    /// The service
    service: String,
}

pub(super) fn assign(context: &mut Context, arguments: &AssignArguments) -> crate::cli::Result {
    let service = name(&arguments.service, ServiceName::new)?;
    let selectors: Vec<Selector> = arguments
        .nodes
        .iter()
        .map(|text| {
            let Ok(selector) = text.parse();
            selector
        })
        .collect();
    // A misspelt name is told before the store is opened.
    let (folder, loaded) = context.load()?;
    context.choose(&folder, &loaded.mesh, &arguments.nodes)?;
    let mut writing = context.writing("assign", Duration::ZERO)?;
    writing.loaded = set_nodes(&writing.folder, &service, &selectors)?;
    let mesh = &writing.loaded.mesh;
    let nodes = mesh
        .services
        .get(&service)
        .map(|service| service.nodes.clone())
        .unwrap_or_default();
    let wanted: Vec<_> = provision::wanted_by(mesh, &writing.state.provisions, &nodes)
        .into_iter()
        .filter(|id| id.consumer == service)
        .collect();
    let era = writing.state.era;
    provision::mint(
        &mut writing.state.provisions,
        &wanted,
        era,
        &mut SystemChance,
    );
    let mut changed = vec![Changed::Assigned {
        service: service.clone(),
        nodes,
    }];
    let mut changes = Vec::new();
    for id in wanted {
        let Some(minted) = writing.state.provisions.get(&id.provider, &id.consumer) else {
            continue;
        };
        changed.push(Changed::Minted {
            provider: id.provider.clone(),
            consumer: id.consumer.clone(),
            generation: minted.newest().generation.number,
        });
        changes.push(Change::Provision(id, minted.clone()));
    }
    finish(context, writing, changes, changed)
}

pub(super) fn unassign(context: &mut Context, arguments: &UnassignArguments) -> crate::cli::Result {
    let service = name(&arguments.service, ServiceName::new)?;
    let mut writing = context.writing("unassign", Duration::ZERO)?;
    let before = writing.loaded.mesh.services.get(&service);
    let nodes = before
        .map(|service| service.nodes.clone())
        .unwrap_or_default();
    writing.loaded = set_nodes(&writing.folder, &service, &[])?;
    let changed = vec![Changed::Unassigned { service, nodes }];
    finish(context, writing, Vec::new(), changed)
}

fn finish(
    context: &mut Context,
    mut writing: Writing,
    changes: Vec<Change>,
    changed: Vec<Changed>,
) -> crate::cli::Result {
    context.commit(&mut writing, changes, [])?;
    let state = writing.store.load()?;
    tell(
        context,
        &writing.folder,
        &writing.loaded.mesh,
        &state,
        changed,
    )
}
