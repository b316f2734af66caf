//! What stands for each argument of a command: machines, services, accounts, pushes.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap_complete::{ArgValueCompleter, CompletionCandidate};

use crate::cli::folder;
use crate::cli::phrases::count;
use crate::mesh::{self, Names};
use crate::store::{Place, newest_push};

/// How many pushes are offered, the newest first.
const PUSHES_MOST: u64 = 20;

/// Where names are looked up.
#[derive(Debug)]
pub(super) struct From {
    /// The folder that was named; absent: this one, or the nearest above it that has a declaration.
    pub mesh: Option<Utf8PathBuf>,
    /// `$GRID_STORE`.
    pub store: Option<PathBuf>,
}

/// What an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Machines by name, or by `@tag`.
    Machines,
    /// One machine, by name.
    Machine,
    /// A service.
    Service,
    /// A service that provides.
    Provider,
    /// PROVIDER/CONSUMER.
    Account,
    /// The number of a push.
    Push,
}

/// Commands whose NODE is one machine and no tag.
const OF_ONE_MACHINE: [&str; 4] = ["compose", "trust", "get", "render"];

impl Takes {
    /// By the name that the help gives the argument's value.
    fn of(command: &str, argument: &clap::Arg) -> Option<Self> {
        let value = match argument.get_value_names() {
            Some([name]) => name.to_string(),
            Some(_) => return None,
            None => argument.get_id().as_str().to_uppercase(),
        };
        Some(match value.as_str() {
            "NODE" if OF_ONE_MACHINE.contains(&command) => Self::Machine,
            "NODE" => Self::Machines,
            "SITE" => Self::Machine,
            "SERVICE" => Self::Service,
            "PROVIDER" => Self::Provider,
            "PROVIDER/CONSUMER" => Self::Account,
            "PUSH" => Self::Push,
            _ => return None,
        })
    }

    fn offered(self, from: &From, begun: &str) -> Vec<CompletionCandidate> {
        let Ok(folder) = folder::find(from.mesh.as_deref()) else {
            return Vec::new();
        };
        if self == Self::Push {
            let place = match &from.store {
                Some(store) => Place::at(store.clone()),
                None => Place::beside(folder.as_std_path()),
            };
            return pushes(newest_push(&place).unwrap_or(0), begun);
        }
        let names = mesh::names(&folder);
        let mut offered = self.named(&names);
        offered.retain(|(name, _)| name.starts_with(begun));
        let candidate = |(name, what): (String, String)| {
            CompletionCandidate::new(name).help((!what.is_empty()).then(|| what.into()))
        };
        offered.into_iter().map(candidate).collect()
    }

    /// Names, and a word about each.
    fn named(self, names: &Names) -> Vec<(String, String)> {
        let services = |is_wanted: fn(&mesh::ServiceNames) -> bool| {
            let wanted = names.services.iter().filter(move |(_, of)| is_wanted(of));
            wanted.map(|(name, of)| (name.to_string(), of.assigned.join(" ")))
        };
        match self {
            Self::Machine | Self::Machines => {
                let nodes = names.nodes.iter().map(|(name, tags)| {
                    let tags: Vec<String> = tags.iter().map(|tag| format!("@{tag}")).collect();
                    (name.to_string(), tags.join(" "))
                });
                let tags = names
                    .tags()
                    .into_iter()
                    .map(|(tag, machines)| (format!("@{tag}"), count(machines, "machine")));
                let tags = tags.filter(|_| self == Self::Machines);
                nodes.chain(tags).collect()
            }
            Self::Service => services(|_| true).collect(),
            Self::Provider => services(|of| of.provides).collect(),
            Self::Account => {
                let accounts = names.services.iter().flat_map(|(consumer, of)| {
                    let providers = of.consumes.iter();
                    providers.map(move |provider| (format!("{provider}/{consumer}"), String::new()))
                });
                let mut accounts: Vec<_> = accounts.collect();
                accounts.sort();
                accounts
            }
            Self::Push => Vec::new(),
        }
    }
}

fn pushes(newest: u64, begun: &str) -> Vec<CompletionCandidate> {
    (1..=newest)
        .rev()
        .map(|push| push.to_string())
        .filter(|push| push.starts_with(begun))
        .take(usize::try_from(PUSHES_MOST).unwrap_or(usize::MAX))
        .map(CompletionCandidate::new)
        .collect()
}

/// The tree of commands, with what is offered for its arguments.
pub(super) fn attach(tree: clap::Command, from: From) -> clap::Command {
    each(tree, &Arc::new(from))
}

fn each(command: clap::Command, from: &Arc<From>) -> clap::Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|argument| match Takes::of(&name, &argument) {
            None => argument,
            Some(takes) => {
                let from = Arc::clone(from);
                argument.add(ArgValueCompleter::new(move |begun: &OsStr| {
                    takes.offered(&from, &begun.to_string_lossy())
                }))
            }
        })
        .mut_subcommands(|below| each(below, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments that take a name, and what each is completed by.
    fn taken(command: &clap::Command, path: &str, all: &mut Vec<String>) {
        for argument in command.get_arguments() {
            if let Some(takes) = Takes::of(command.get_name(), argument) {
                all.push(format!("{path} {}: {takes:?}", argument.get_id()));
            }
        }
        for below in command.get_subcommands() {
            taken(below, &format!("{path} {}", below.get_name()), all);
        }
    }

    #[test]
    fn every_argument_that_takes_a_name_is_completed() {
        let mut all = Vec::new();
        taken(&crate::cli::tree(), "grid", &mut all);
        insta::assert_snapshot!(all.join("\n"), @r"
        grid push nodes: Machines
        grid status nodes: Machines
        grid assign service: Service
        grid assign nodes: Machines
        grid unassign service: Service
        grid issue accounts: Account
        grid revoke accounts: Account
        grid rotate accounts: Account
        grid rotate site: Machines
        grid hold node: Machines
        grid unhold node: Machines
        grid trust node: Machine
        grid forget node: Machines
        grid forget service: Service
        grid provisions accounts: Account
        grid compose node: Machine
        grid history push: Push
        grid evidence site: Machine
        grid evidence clear site: Machine
        grid signals render site: Machine
        grid signals diff nodes: Machines
        grid signals get node: Machine
        grid signals get target: Provider
        ");
    }

    #[test]
    fn the_newest_pushes_come_first() {
        let numbers = |newest, begun| {
            let pushes = pushes(newest, begun);
            let texts = pushes.iter().map(|push| push.get_value().to_string_lossy());
            texts.map(|text| text.into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(3, ""), ["3", "2", "1"]);
        assert_eq!(numbers(413, "41").first().unwrap(), "413");
        assert_eq!(numbers(413, "41").len(), 5);
        assert_eq!(numbers(413, "").len(), 20);
        assert!(numbers(0, "").is_empty());
    }
}
