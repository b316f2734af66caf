//! The command line (DESIGN.md, section 9): parse, run, print the error, exit code.
//!
//! | file | what it owns |
//! |---|---|
//! | `commands/` | one command each |
//! | `complete/` | what may follow in a shell, when it asks |
//! | `folder` | where the declaration lies |
//! | `context` | who asks, how its store is opened |
//! | `ui`, `line` | the streams: the only place that writes; what a line is |
//! | `exit` | exit codes, and what each error means for them |
//! | `narrator`, `summary`, `phrases`, `progress` | what a push says |
//! | `view/` | what `--json` prints; stable |
//! | `interrupt` | Ctrl-C |
//! | `usage` | what is said of a command line that is refused |
//! | `begins` | the journal's word that a push began |
//! | `sources` | the operator's files, commands and variables |

mod begins;
mod child;
pub mod commands;
mod complete;
pub mod context;
mod duration;
pub mod exit;
mod folder;
pub mod git;
mod interrupt;
mod line;
mod narrator;
mod passphrase;
mod phrases;
mod progress;
pub mod sources;
#[cfg(debug_assertions)]
mod stop_after;
mod summary;
pub mod ui;
mod usage;
pub mod view;
pub mod who;

use std::ffi::OsString;

use camino::Utf8PathBuf;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser};

pub use commands::Command;
use context::Context;
use exit::{CommandError, Exit};
use ui::{Color, Ui};

/// Delivers a mesh of machines: one push leaves it consistent.
#[derive(Debug, Parser)]
#[command(
    name = "grid",
    version,
    about,
    long_about = "Delivers a mesh of machines: one push leaves it consistent.\n\n\
        The declaration, mesh.toml, says what every machine should be: which services are on it, and who has an \
        account on whom. `grid push NODE` sends to the machine that you name and then flushes every machine that is \
        behind, by name: a consumer's account is minted, its provider's machine is told of it, and only then is \
        the consumer started.",
    after_help = "Start with `grid try`, which shows all this on this machine alone; `grid init` begins a mesh of your own.",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What all commands share.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What all commands share.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// The folder of mesh.toml; absent: this one, or the nearest above it that has one
    #[arg(long, global = true, value_name = "DIR", env = "GRID_MESH", hide_env_values = true, value_hint = clap::ValueHint::DirPath)]
    pub mesh: Option<Utf8PathBuf>,
    /// Print the result as JSON (its schema is under schemas/)
    #[arg(long, global = true)]
    pub json: bool,
    /// Say more: each step on each machine, and what its commands print
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say less; machines sent to and machines not current are named all the same
    #[arg(long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// When to colour the output (NO_COLOR is heeded)
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto, hide_possible_values = true)]
    pub color: Color,
    /// Answer yes to what would be asked on a terminal
    #[arg(long, global = true)]
    pub yes: bool,
}

/// The tree of commands, for completions, man pages and tests.
#[must_use]
pub fn tree() -> clap::Command {
    Cli::command()
}

/// Runs grid with these arguments, the program's name first.
pub fn run(arguments: Vec<OsString>) -> Exit {
    if let Some(exit) = complete::answer(&arguments) {
        return exit;
    }
    let typed = typed(&arguments);
    let matches = tree().try_get_matches_from(&arguments);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let mut ui = Ui::new(Color::Auto);
            return match usage::refusal(error, &arguments) {
                Ok(refusal) => {
                    ui.usage(&refusal.text);
                    ui.hint(&refusal.hint);
                    Exit::Usage
                }
                Err(help) => {
                    ui.help(&help);
                    if help.use_stderr() {
                        Exit::Usage
                    } else {
                        Exit::Done
                    }
                }
            };
        }
    };
    let mut context = Context::new(&cli.global, typed);
    let result = commands::run(&mut context, cli.command);
    context.ui.hide_bars();
    match result {
        Ok(exit) => exit,
        Err(error) => {
            context.ui.error(&error);
            error.exit
        }
    }
}

/// The command as typed, for the journal.
fn typed(arguments: &[OsString]) -> String {
    let words: Vec<_> = arguments
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy())
        .collect();
    words.join(" ")
}

/// What a command gives back.
pub type Result = std::result::Result<Exit, CommandError>;
