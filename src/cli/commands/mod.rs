//! One file a command. What is here works; what does not is not here.

mod accounts;
mod assign;
mod change;
mod check;
mod completions;
mod compose;
mod evidence;
mod forget;
mod history;
mod hold;
mod identities;
mod init;
mod kept;
mod man;
mod provisions;
mod push;
mod renamed;
mod signals;
mod site;
mod status;
mod trial;
mod trust;
mod unlock;

use clap::Subcommand;

use super::Result;
use super::context::Context;
use super::exit::CommandError;

pub use completions::{Shell, completions};
pub use man::pages as man_pages;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Begin a mesh: a declaration, and an identity if you have none
    Init(init::Arguments),
    /// Show what grid does, on this machine alone
    Try(trial::Arguments),
    /// Read the declaration and say all that is wrong with it
    Check(check::Arguments),
    /// Send to machines, then flush every machine that is behind
    Push(push::Arguments),
    /// How each machine stands, as far as the store knows
    Status(status::Arguments),
    /// Put a service on machines, in the declaration
    Assign(assign::AssignArguments),
    /// Take a service from its machines, in the declaration
    Unassign(assign::UnassignArguments),
    /// Give consumers an account on a provider
    Issue(accounts::IssueArguments),
    /// Close accounts
    Revoke(accounts::RevokeArguments),
    /// Renew the secrets of accounts
    Rotate(accounts::RotateArguments),
    /// Keep a machine from being sent to, and say why
    Hold(hold::HoldArguments),
    /// End a machine's hold
    Unhold(hold::UnholdArguments),
    /// Accept exactly one host key of a machine
    Trust(trust::Arguments),
    /// Take a machine, or a service on it, as gone
    Forget(forget::Arguments),
    /// List accounts and who uses them
    Provisions(provisions::Arguments),
    /// Show what a machine's next send would hold
    Compose(compose::Arguments),
    /// List what was done, by whom, and how it ended
    History(history::Arguments),
    /// Take away a lock whose holder is gone
    Unlock(unlock::Arguments),
    /// Show what a site's gateways reported of their completed ingests
    Evidence(evidence::Arguments),
    /// Provider load and how it crosses sites: resources for Kubernetes
    Signals(signals::Arguments),
    /// Run a machine's site daemon, which serves and pulls provider load
    Site(site::Arguments),
    /// Print the completions of a shell
    Completions(completions::Arguments),
    /// Write the man pages
    Man(man::Arguments),
}

/// The commands that print no JSON: files, a demonstration, a daemon, pages.
const fn without_json(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Init(_) => "init",
        Command::Try(_) => "try",
        Command::Site(_) => "site",
        Command::Completions(_) => "completions",
        Command::Man(_) => "man",
        _ => return None,
    })
}

/// Runs a command.
pub(super) fn run(context: &mut Context, command: Command) -> Result {
    if context.ui.json
        && let Some(name) = without_json(&command)
    {
        return Err(CommandError::usage(format!(
            "`grid {name}` has no result that could be JSON: leave --json out"
        )));
    }
    match command {
        Command::Init(arguments) => init::run(context, arguments),
        Command::Try(arguments) => trial::run(context, arguments),
        Command::Check(arguments) => check::run(context, arguments),
        Command::Push(arguments) => push::run(context, &arguments),
        Command::Status(arguments) => status::run(context, &arguments),
        Command::Assign(arguments) => assign::assign(context, &arguments),
        Command::Unassign(arguments) => assign::unassign(context, &arguments),
        Command::Issue(arguments) => accounts::issue(context, &arguments),
        Command::Revoke(arguments) => accounts::revoke(context, &arguments),
        Command::Rotate(arguments) => accounts::rotate(context, &arguments),
        Command::Hold(arguments) => hold::hold(context, arguments),
        Command::Unhold(arguments) => hold::unhold(context, arguments),
        Command::Trust(arguments) => trust::run(context, &arguments),
        Command::Forget(arguments) => forget::run(context, &arguments),
        Command::Provisions(arguments) => provisions::run(context, &arguments),
        Command::Compose(arguments) => compose::run(context, &arguments),
        Command::History(arguments) => history::run(context, &arguments),
        Command::Unlock(arguments) => unlock::run(context, arguments),
        Command::Evidence(arguments) => evidence::run(context, arguments),
        Command::Signals(arguments) => signals::run(context, &arguments),
        Command::Site(arguments) => site::run(context, arguments),
        Command::Completions(arguments) => completions::run(context, &arguments),
        Command::Man(arguments) => man::run(context, &arguments),
    }
}
