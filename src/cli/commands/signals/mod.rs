//! `grid signals`: the mesh's signals for Kubernetes, and as sites show them (DESIGN.md, section 7).

mod diff;
mod get;
mod render;
mod sent;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::context::Context;
use crate::mesh::Resources;
use crate::words::{ApiVersion, FieldNames, ObjectName};

/// Arguments of `grid signals`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  \
        grid signals crd | kubectl apply -f -\n  \
        grid signals render --site atlas | kubectl apply -f -",
    disable_help_subcommand = true
)]
pub struct Arguments {
    #[command(subcommand)]
    command: SignalsCommand,
}

#[derive(Debug, Subcommand)]
enum SignalsCommand {
    /// Print the mesh as Kubernetes resources: GridNetwork, and a GridSite for each machine
    Render(render::RenderArguments),
    /// Print the definitions of these resources
    Crd(render::CrdArguments),
    /// Say which sites a push would restart, and why
    Diff(diff::DiffArguments),
    /// Read a site over mutual TLS: its signals, and how old they are
    Get(get::GetArguments),
}

/// Under which group, version and names of fields resources are written.
#[derive(Debug, Args)]
struct Generation {
    /// Their group; absent: as `[signals.resources]` says, else grid.praxis-proxy.io
    #[arg(long, value_name = "GROUP")]
    group: Option<ObjectName>,
    /// Their version; absent: as `[signals.resources]` says, else v1alpha1
    #[arg(long, value_name = "VERSION")]
    version: Option<ApiVersion>,
    /// Which names fields have; absent: as `[signals.resources]` says, else new
    #[arg(long, value_name = "NAMES", value_enum)]
    field_names: Option<Names>,
}

/// Which names fields have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Names {
    /// swimKeyRef, egress
    Old,
    /// swimKeySecretRef, gatewayEndpoint
    New,
}

impl Generation {
    /// What the declaration says, with what was typed over it.
    fn over(&self, declared: Resources) -> Resources {
        let mut how = declared;
        let generation = &mut how.generation;
        if let Some(group) = &self.group {
            generation.group = group.clone();
        }
        if let Some(version) = &self.version {
            generation.version = version.clone();
        }
        if let Some(names) = self.field_names {
            generation.field_names = match names {
                Names::Old => FieldNames::Old,
                Names::New => FieldNames::New,
            };
        }
        how
    }
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    match &arguments.command {
        SignalsCommand::Render(arguments) => render::render(context, arguments),
        SignalsCommand::Crd(arguments) => render::crd(context, arguments),
        SignalsCommand::Diff(arguments) => diff::diff(context, arguments),
        SignalsCommand::Get(arguments) => get::get(context, arguments),
    }
}
