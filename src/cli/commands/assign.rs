//! `grid assign` and `grid unassign`: they edit the declaration. `assign` mints, so that the provider is behind
//! from that moment on and whatever push comes next tells it.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use super::change::{name, tell};
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::phrases::some_of;
use crate::cli::view::Changed;
use crate::mesh::{EditError, Mesh, Selector, set_nodes};
use crate::provision;
use crate::store::{Change, Store as _, SystemChance};
use crate::words::{NodeName, ServiceName, nearest};

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
    // Named by whoever means some of its machines; refused with what does that.
    #[arg(hide = true)]
    nodes: Vec<String>,
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
    is_declared(&loaded.mesh, &service)?;
    context.choose(&folder, &loaded.mesh, &arguments.nodes)?;
    let mut writing = context.writing("assign", Duration::ZERO)?;
    let before = nodes_of(&writing.loaded.mesh, &service);
    let text_before = writing.loaded.digest;
    writing.loaded = set_nodes(&writing.folder, &service, &selectors)?;
    let mesh = &writing.loaded.mesh;
    let nodes = nodes_of(mesh, &service);
    let is_as_before = writing.loaded.digest == text_before;
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
    let service = service.clone();
    let mut changed = vec![match is_as_before {
        true => Changed::AlreadyAssigned { service, nodes },
        false => Changed::Assigned {
            service,
            taken_from: before.difference(&nodes).cloned().collect(),
            nodes,
        },
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
    if !arguments.nodes.is_empty() {
        return Err(from_some(context, &service, &arguments.nodes)?);
    }
    let mut writing = context.writing("unassign", Duration::ZERO)?;
    is_declared(&writing.loaded.mesh, &service)?;
    let nodes = nodes_of(&writing.loaded.mesh, &service);
    writing.loaded = set_nodes(&writing.folder, &service, &[])?;
    let changed = vec![Changed::Unassigned { service, nodes }];
    finish(context, writing, Vec::new(), changed)
}

/// Why a service is not taken from some of its machines, and what does that.
fn from_some(
    context: &mut Context,
    service: &ServiceName,
    named: &[String],
) -> Result<CommandError, CommandError> {
    let (folder, loaded) = context.load()?;
    is_declared(&loaded.mesh, service)?;
    let named = context.choose(&folder, &loaded.mesh, named)?;
    let nodes = nodes_of(&loaded.mesh, service);
    let stay: Vec<&str> = nodes.difference(&named).map(NodeName::as_str).collect();
    let error = CommandError::usage(
        "`grid unassign` takes a service from all of its machines, and from no fewer",
    );
    Ok(error.hint(match stay.is_empty() {
        true => format!("`grid unassign {service}` takes it from wherever it is"),
        false => format!(
            "`grid assign {service} {}` leaves it there, and takes it from all others",
            stay.join(" ")
        ),
    }))
}

/// Refuses a service that the mesh does not have, with what it has.
fn is_declared(mesh: &Mesh, service: &ServiceName) -> Result<(), CommandError> {
    if mesh.services.contains_key(service) {
        return Ok(());
    }
    let nearest = nearest(
        service.as_str(),
        mesh.services.keys().map(ServiceName::as_str),
    );
    let hint = nearest.is_none().then(|| match mesh.services.is_empty() {
        true => format!("`[services.{service}]` in mesh.toml declares it"),
        false => format!(
            "the services of this mesh: {}; `[services.{service}]` in mesh.toml declares another",
            some_of(mesh.services.keys())
        ),
    });
    let name = service.clone();
    let error = EditError::UnknownService { name, nearest }.into();
    Err(hint.into_iter().fold(error, CommandError::hint))
}

fn nodes_of(mesh: &Mesh, service: &ServiceName) -> BTreeSet<NodeName> {
    let service = mesh.services.get(service);
    service
        .map(|service| service.nodes.clone())
        .unwrap_or_default()
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
