//! `grid signals render` and `crd`: YAML for kubectl, or JSON. Nothing is minted.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::Generation;
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::ui::Line;
use crate::compose::resources::{ResourceError, all_have_identities, resources, secrets};
use crate::mesh::{Mesh, Node, Resources};
use crate::signals::manifests::{definitions::definitions, secret::Notation, yaml};
use crate::store::State;
use crate::words::{ObjectName, Secret};

/// Arguments of `grid signals render`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid signals render | kubectl apply -f -\n  \
        grid signals render --site atlas --secrets | kubectl --context atlas apply -f -\n  \
        grid signals render --json                      the same objects as one List\n\n\
        Each cluster gets the GridNetwork and the GridSite of every machine. With --site the network says where that site is; with \
        --secrets come the certificates of the mesh's authorities and the site's own certificate and key, never the key of an \
        authority. Nothing is minted: a push does that. The journal keeps that secrets were printed.")]
pub struct RenderArguments {
    /// For the cluster of this machine's site
    #[arg(long, value_name = "NODE")]
    site: Option<String>,
    /// The Secrets too, of the one site; never to a terminal
    #[arg(long, requires = "site")]
    secrets: bool,
    /// The namespace of the Secrets; absent: as `[signals.resources]` says, else grid-system
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<ObjectName>,
    #[command(flatten)]
    generation: Generation,
}

/// Arguments of `grid signals crd`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid signals crd | kubectl apply -f -\n  \
        grid signals crd --group grid.praxis.fast --version v1beta1\n\n\
        The definitions describe what `grid signals render` prints, and the status that ingest feedback needs. They work without a \
        mesh; where there is one, its `[signals.resources]` counts.")]
pub struct CrdArguments {
    #[command(flatten)]
    generation: Generation,
}

impl From<ResourceError> for CommandError {
    fn from(error: ResourceError) -> Self {
        let hint = match &error {
            ResourceError::NoIdentity(_) => {
                "the next push mints one for every site of the mesh, whichever machine it names: `grid push --behind`"
            }
            ResourceError::Pins { .. } => "`grid push --behind` settles it",
            ResourceError::Key { .. } => return Self::failed(error.to_string()),
        };
        Self::failed(error.to_string()).hint(hint)
    }
}

/// What the declaration says of resources, or what holds where it says nothing.
fn declared(mesh: &Mesh) -> Resources {
    let signals = mesh.signals.as_ref();
    signals
        .map(|signals| signals.resources.clone())
        .unwrap_or_default()
}

pub(super) fn render(context: &mut Context, arguments: &RenderArguments) -> crate::cli::Result {
    if !arguments.secrets {
        let reading = context.reading()?;
        let mesh = &reading.loaded.mesh;
        let at = site(context, &reading.folder, mesh, arguments)?;
        return print(context, mesh, &reading.state, at, arguments);
    }
    if context.ui.result_is_on_a_terminal() {
        return Err(
            CommandError::usage("secrets are not written to a terminal").hint(
                "pipe them to `kubectl apply -f -`, or write them to a file that only you read",
            ),
        );
    }
    let mut writing = context.writing("signals render --secrets", Duration::ZERO)?;
    let (folder, mesh) = (writing.folder.clone(), writing.loaded.mesh.clone());
    let at = site(context, &folder, &mesh, arguments)?;
    // Written down before anything is shown.
    context.commit(&mut writing, Vec::new(), [])?;
    let state = writing.state.clone();
    drop(writing); // a reader that is slow holds up nobody
    print(context, &mesh, &state, at, arguments)
}

/// The machine whose cluster is meant, if one is.
fn site<'a>(
    context: &Context,
    folder: &camino::Utf8Path,
    mesh: &'a Mesh,
    arguments: &RenderArguments,
) -> Result<Option<&'a Node>, CommandError> {
    let Some(named) = &arguments.site else {
        return Ok(None);
    };
    let chosen = context.choose(folder, mesh, std::slice::from_ref(named))?;
    let mut chosen = chosen.iter();
    match (chosen.next(), chosen.next()) {
        (Some(one), None) => Ok(mesh.nodes.get(one)),
        _ => Err(CommandError::usage(format!(
            "--site {named} is several machines: a cluster is the site of one"
        ))),
    }
}

fn print(
    context: &mut Context,
    mesh: &Mesh,
    state: &State,
    at: Option<&Node>,
    arguments: &RenderArguments,
) -> crate::cli::Result {
    let mut how = arguments.generation.over(declared(mesh));
    if let Some(namespace) = &arguments.namespace {
        how.namespace = namespace.clone();
    }
    let world = state.world(mesh);
    all_have_identities(&world)?;
    let objects = resources(&world, &how, at)?;
    let notation = match context.ui.json {
        true => Notation::Json,
        false => Notation::Yaml,
    };
    let secrets = match at.filter(|_| arguments.secrets) {
        Some(node) => {
            if node.has_own_identity() {
                let text = format!(
                    "{} has an identity of its own (`pins`): its key is not grid's, and its Secret is yours to make",
                    node.name
                );
                context.ui.note(&Line::of(text));
            }
            secrets(&world, &how, node, notation)?
        }
        None => Vec::new(),
    };
    write(context, &secrets, &objects)
}

/// Writes what kubectl takes: YAML documents, or with `--json` one `List` of all of them.
fn write(context: &mut Context, secrets: &[Secret], objects: &[Value]) -> crate::cli::Result {
    if !context.ui.json {
        for secret in secrets {
            context.ui.own_bytes(secret.expose().as_bytes())?;
            context.ui.own_bytes(b"---\n")?;
        }
        context.ui.own_bytes(yaml::documents(objects).as_bytes())?;
        return Ok(Exit::Done);
    }
    let mut before = r#"{"apiVersion":"v1","kind":"List","items":["#;
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    let secrets = secrets.iter().map(Secret::expose);
    for item in secrets.chain(texts.iter().map(String::as_str)) {
        context.ui.own_bytes(before.as_bytes())?;
        context.ui.own_bytes(item.as_bytes())?;
        before = ",";
    }
    context.ui.own_bytes(b"]}\n")?;
    Ok(Exit::Done)
}

pub(super) fn crd(context: &mut Context, arguments: &CrdArguments) -> crate::cli::Result {
    let declared = match context.folder() {
        Ok(_) => declared(&context.load()?.1.mesh),
        Err(_) if !context.names_a_mesh() => Resources::default(),
        Err(error) => return Err(error),
    };
    let how = arguments.generation.over(declared);
    write(context, &[], &definitions(&how.generation))
}
