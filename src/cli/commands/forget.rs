//! `grid forget`: a machine, or a service on it, is taken as gone. It stands in for the acknowledgement that will
//! never come.

use std::time::Duration;

use clap::Args;

use super::change::{name, tell};
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::view::Changed;
use crate::compose::sent::Machine;
use crate::mesh::nearest;
use crate::store::{Change, Store as _, Touch, Touched};
use crate::words::{NodeName, ServiceName};

/// Arguments of `grid forget`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid forget eridanus --yes                  a machine that burnt down\n  \
        grid forget eridanus --service billing      what moved off it may start elsewhere\n\n\
        Nothing is contacted. Accounts that only this machine used go with the next push; a service that waited for its removal there \
        starts elsewhere. If the machine is alive after all, it keeps running what it holds, and the next send to it is refused until \
        `grid push NODE --take-over`.")]
pub struct Arguments {
    /// The machine
    node: String,
    /// Only this service on it
    #[arg(long)]
    service: Option<String>,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let node = name(&arguments.node, NodeName::new)?;
    let service = arguments
        .service
        .as_deref()
        .map(|text| name(text, ServiceName::new))
        .transpose()?;
    let mut writing = context.writing("forget", Duration::ZERO)?;
    let machine = known(&writing, &node)?;
    let (change, question) = match &service {
        None => (
            Change::ForgetMachine(node.clone()),
            format!("Take {node} as gone, with all that it holds?"),
        ),
        Some(service) => (
            Change::Machine(node.clone(), without(machine, &node, service)?),
            format!("Take {service} as gone from {node}?"),
        ),
    };
    if !context.yes {
        match context.ui.ask(&question) {
            Some(true) => {}
            Some(false) => return Err(CommandError::failed("nothing was forgotten")),
            None => {
                return Err(CommandError::usage(
                    "this cannot be taken back, and nobody can be asked here: say --yes",
                ));
            }
        }
    }
    let touched = Touched {
        how: Touch::Forgotten,
        digest: None,
        why: service.as_ref().map(ToString::to_string),
    };
    context.commit(&mut writing, vec![change], [(node.clone(), touched)])?;
    let state = writing.store.load()?;
    tell(
        context,
        &writing.folder,
        &writing.loaded.mesh,
        &state,
        vec![Changed::Forgotten { node, service }],
    )
}

/// What is known of the machine; one of which nothing is known cannot be forgotten.
fn known<'a>(writing: &'a Writing, node: &NodeName) -> Result<&'a Machine, CommandError> {
    if let Some(machine) = writing.state.fleet.get(node) {
        return Ok(machine);
    }
    if writing.loaded.mesh.nodes.contains_key(node) {
        return Err(CommandError::usage(format!(
            "{node} was never sent to: there is nothing to forget"
        )));
    }
    let names = writing.state.fleet.keys().map(NodeName::as_str);
    let suggestion = nearest(node.as_str(), names)
        .map(|name| format!("; did you mean {name}?"))
        .unwrap_or_default();
    Err(CommandError::usage(format!(
        "the store knows no machine {node}{suggestion}"
    )))
}

fn without(
    machine: &Machine,
    node: &NodeName,
    service: &ServiceName,
) -> Result<Machine, CommandError> {
    let attempted = machine
        .attempt
        .iter()
        .flat_map(|attempt| attempt.manifest.services.keys());
    let held: Vec<&ServiceName> = machine
        .services()
        .map(|(name, _)| name)
        .chain(attempted)
        .collect();
    if !held.contains(&service) {
        let suggestion = nearest(service.as_str(), held.iter().map(|name| name.as_str()))
            .map(|name| format!("; did you mean {name}?"))
            .unwrap_or_default();
        return Err(CommandError::usage(format!(
            "{node} holds no service {service}{suggestion}"
        )));
    }
    let mut machine = machine.clone();
    machine.forgotten.insert(service.clone());
    Ok(machine)
}
