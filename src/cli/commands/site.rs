//! `grid site run`: the daemon (DESIGN.md, section 7).

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tracing::Level;

use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::site::{self, ConfigError, Ended, RunError};

/// Arguments of `grid site`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid site run --config /var/lib/grid/prod/current/services/site/site.toml",
    disable_help_subcommand = true
)]
pub struct Arguments {
    #[command(subcommand)]
    command: SiteCommand,
}

#[derive(Debug, Subcommand)]
enum SiteCommand {
    /// Run the site daemon of this machine
    Run(RunArguments),
    /// Say whether the site daemon of this machine runs as declared
    Check(CheckArguments),
}

/// Arguments of `grid site check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid site check --config /var/lib/grid/prod/current/services/site/site.toml\n\n\
        A push runs it as the check of the service `site`, until the daemon reports the declared mode and trust, has taken \
        up the peers that were delivered and is not stopping and, in poll mode, shows the certificate that was delivered, \
        which its peers admit."
)]
struct CheckArguments {
    /// Its site.toml, which a push delivers
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: PathBuf,
}

/// Arguments of `grid site run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  grid site run --config /var/lib/grid/prod/current/services/site/site.toml\n\n\
        Scrapes this machine's providers. In poll mode it serves them to the other sites over mutual TLS, pulls theirs, takes \
        the reports of this machine's gateways and writes the routing overlay. It exits with 75 when another mode is \
        declared, and in poll mode for another trust and, under pin, for a new identity: its supervisor starts it again. What it does stands in status.json in its state folder."
)]
struct RunArguments {
    /// Its site.toml, which a push delivers. One: a daemon serves one network
    #[arg(long, value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    config: Vec<PathBuf>,
    /// How it writes its log to stderr
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A line for people.
    Text,
    /// An object a line.
    Json,
}

pub(super) fn run(context: &Context, arguments: Arguments) -> crate::cli::Result {
    let arguments = match arguments.command {
        SiteCommand::Run(arguments) => arguments,
        SiteCommand::Check(arguments) => {
            site::check(&arguments.config)
                .map_err(|unmet| CommandError::new(Exit::Failed, unmet))?;
            return Ok(Exit::Done);
        }
    };
    let level = match (context.ui.verbose, context.ui.quiet) {
        (true, _) => Level::DEBUG,
        (false, true) => Level::WARN,
        (false, false) => Level::INFO,
    };
    log(level, arguments.log);
    match site::run(&arguments.config) {
        Ok(Ended::Stopped) => Ok(Exit::Done),
        Ok(Ended::Restart(_)) => Ok(Exit::Restart),
        Err(error) => Err(error.into()),
    }
}

fn log(level: Level, format: LogFormat) {
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false);
    // One that is set already, by a test, stays.
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        let exit = match &error {
            RunError::Config(ConfigError::Networks(_) | ConfigError::File { .. }) => {
                Exit::Declaration
            }
            _ => Exit::Failed,
        };
        Self::new(exit, error)
    }
}
