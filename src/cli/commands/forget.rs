//! `grid forget`: a machine, or a service on it, is taken as gone. It stands in for the acknowledgement that will
//! never come.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;

use super::change::{name, tell};
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::phrases::{list, some_of};
use crate::cli::view::Changed;
use crate::compose::sent::Machine;
use crate::store::{Change, Store as _, Touch, Touched};
use crate::words::{NodeName, ServiceName, nearest};

/// Arguments of `grid forget`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid forget eridanus --yes                  a machine that burnt down\n  \
        grid forget eridanus --service billing      what moved off it may start elsewhere\n  \
        grid forget eridanus --left-behind          what lay at its former address or root, once you removed it\n  \
        grid forget @attic --yes                    all that carry a tag\n\n\
        Nothing is contacted. Accounts that only this machine used go with the next push; a service that waited for its removal there \
        starts elsewhere. The secrets that the machine had are not changed: a service that comes back gets the same account, and one that \
        runs elsewhere too keeps it. If it may have fallen into other hands, `grid rotate PROVIDER/CONSUMER --cut` or `grid revoke` \
        each account that it had. If the machine is alive after all, it keeps running what it holds, and the next send to it is refused until \
        `grid push NODE --take-over`.")]
pub struct Arguments {
    /// The machine, or @TAG for all that carry a tag
    node: String,
    // Named by whoever means a service; refused with what does that.
    #[arg(hide = true)]
    more: Vec<String>,
    /// Only this service on it
    #[arg(long)]
    service: Option<String>,
    /// Only what it was sent before at another address or below another root
    #[arg(long, conflicts_with = "service")]
    left_behind: bool,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let service = arguments
        .service
        .as_deref()
        .map(|text| name(text, ServiceName::new))
        .transpose()?;
    is_one_machine(&arguments.node, &arguments.more)?;
    let mut writing = context.writing("forget", Duration::ZERO)?;
    let known = known(context, &writing, &arguments.node)?;
    let names = list(known.iter().map(|(node, _)| node));
    let question = match &service {
        None if arguments.left_behind => {
            format!("Take what {names} was sent at another address or root as gone?")
        }
        None => format!(
            "Take {names} as gone, with all that is there? One that lives is fenced then (exit 8); to empty it, take its services off \
             and push first."
        ),
        Some(service) => format!("Take {service} as gone from {names}?"),
    };
    let mut changes = Vec::new();
    for (node, machine) in &known {
        changes.push(match &service {
            None if arguments.left_behind => {
                Change::Machine(node.clone(), without_former(machine, node)?)
            }
            None => Change::ForgetMachine(node.clone()),
            Some(service) => Change::Machine(node.clone(), without(machine, node, service)?),
        });
    }
    let nodes: Vec<NodeName> = known.into_iter().map(|(node, _)| node).collect();
    if !context.yes {
        match context.ui.ask(&question) {
            Some(true) => {}
            Some(false) => return Err(CommandError::failed("nothing was forgotten")),
            None => {
                return Err(CommandError::usage(
                    "this cannot be taken back, and nobody can be asked here: say --yes",
                )
                .hint(match arguments.left_behind {
                    true => {
                        "once what was left behind is removed there, by hand, --yes has nobody name it any more"
                    }
                    false => {
                        "to forget is for what is gone: a machine that lives is fenced then (exit 8). One that is to be emptied loses its \
                         services (`grid unassign`) and is pushed first"
                    }
                }));
            }
        }
    }
    let touched = Touched {
        why: match arguments.left_behind {
            true => Some("what it left behind".to_owned()),
            false => service.as_ref().map(ToString::to_string),
        },
        ..Touched::new(Touch::Forgotten)
    };
    let touched = nodes.iter().map(|node| (node.clone(), touched.clone()));
    context.commit(&mut writing, changes, touched)?;
    let state = writing.store.load()?;
    let changed = nodes.into_iter().map(|node| match arguments.left_behind {
        true => Changed::ForgottenLeftBehind { node },
        false => Changed::Forgotten {
            node,
            service: service.clone(),
        },
    });
    tell(
        context,
        &writing.folder,
        &writing.loaded.mesh,
        &state,
        changed.collect(),
    )
}

/// Refuses more than one name, with how a service on a machine is named.
fn is_one_machine(node: &str, more: &[String]) -> Result<(), CommandError> {
    let (node, service) = match (node.split_once('/'), more) {
        (None, []) => return Ok(()),
        (Some((node, service)), []) => (node, service),
        (_, [service, ..]) => (node, service.as_str()),
    };
    let error = CommandError::usage("`grid forget` takes one machine, or one @TAG");
    let is_named = NodeName::new(node).is_ok() && ServiceName::new(service).is_ok();
    Err(match is_named {
        true => error.hint(format!(
            "`grid forget {node} --service {service}` is for a service on {node}; of several machines, each in a command of its own"
        )),
        false => error,
    })
}

/// What is known of the machines that are named, of at least one. One of which nothing is known cannot be forgotten.
fn known(
    context: &Context,
    writing: &Writing,
    text: &str,
) -> Result<Vec<(NodeName, Machine)>, CommandError> {
    let Writing {
        state,
        loaded,
        folder,
        ..
    } = writing;
    let nodes: BTreeSet<NodeName> = if text.starts_with('@') {
        context.choose(folder, &loaded.mesh, &[text.to_owned()])?
    } else {
        BTreeSet::from([name(text, NodeName::new)?])
    };
    // One that no send ever reached has nothing to be forgotten.
    let fleet: BTreeMap<&NodeName, &Machine> = state
        .fleet
        .iter()
        .filter(|(_, machine)| machine.is_known() || machine.token.is_some())
        .collect();
    let known: Vec<_> = nodes
        .iter()
        .filter_map(|node| Some((node.clone(), (*fleet.get(node)?).clone())))
        .collect();
    if !known.is_empty() {
        return Ok(known);
    }
    let declared: Vec<&NodeName> = nodes
        .iter()
        .filter(|node| loaded.mesh.nodes.contains_key(*node))
        .collect();
    if !declared.is_empty() {
        return Err(CommandError::usage(format!(
            "nothing was ever sent to {}: there is nothing to forget",
            list(declared)
        )));
    }
    let names = fleet.keys().map(|node| node.as_str());
    let suggestion = nearest(text, names)
        .map(|name| format!("; did you mean {name}?"))
        .unwrap_or_default();
    let error = CommandError::usage(format!("the store knows no machine {text}{suggestion}"));
    Err(match (suggestion.is_empty(), fleet.is_empty()) {
        (false, _) => error,
        (true, true) => error.hint("nothing was sent to any machine yet"),
        (true, false) => error.hint(format!("the store knows {}", some_of(fleet.keys()))),
    })
}

/// Without the places where it lay before it was sent to where it is now.
fn without_former(machine: &Machine, node: &NodeName) -> Result<Machine, CommandError> {
    if machine.left_behind(None).is_empty() {
        return Err(CommandError::usage(format!(
            "{node} left nothing behind that grid knows of"
        )));
    }
    Ok(Machine {
        former: Vec::new(),
        ..machine.clone()
    })
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
    machine.unwell.leave(false, |other| other != service);
    Ok(machine)
}
