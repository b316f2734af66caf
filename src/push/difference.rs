//! What differs between what a machine holds and what it should be, in the words of an operator.

mod compare;

use std::fmt;

use crate::compose::manifest::Step;
use crate::words::{MeshName, NodeName, ServiceName};
pub use compare::differences;

/// One account that a list gains or loses.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Account {
    /// Whose.
    pub consumer: ServiceName,
    /// Which generation.
    pub generation: u32,
    /// Whether the consumer has another one too, before or after: then the first generation has to be called so.
    #[serde(skip)]
    #[schemars(skip)]
    pub is_one_of_several: bool,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.consumer)?;
        if self.generation > 1 || self.is_one_of_several {
            write!(f, " (generation {})", self.generation)?;
        }
        Ok(())
    }
}

/// What changes of what a machine has as a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SiteChange {
    /// Its identity: it gets the one of this number.
    Identity(u32),
    /// Its list of sites: it is told of identities that were minted since.
    Peers,
    /// Its list of sites in another way: sites that come or leave, their addresses, older pins that go.
    List,
    /// The authorities that it trusts.
    Authorities,
}

impl fmt::Display for SiteChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity(number) => write!(f, "its site gets identity {number}"),
            Self::Peers => f.write_str("its site hears of renewed identities"),
            Self::List => f.write_str("its site's list of sites changed"),
            Self::Authorities => f.write_str("its site's certificate authorities changed"),
        }
    }
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Difference {
    /// A service comes.
    Comes {
        /// Which.
        service: ServiceName,
        /// How many files it has.
        files: usize,
    },
    /// A service leaves.
    Leaves {
        /// Which.
        service: ServiceName,
    },
    /// A provider's list changes.
    Grants {
        /// Whose list.
        provider: ServiceName,
        /// Gains.
        added: Vec<Account>,
        /// Loses.
        removed: Vec<Account>,
    },
    /// A consumer gets another account.
    Binding {
        /// Whose.
        service: ServiceName,
        /// On which provider.
        provider: ServiceName,
        /// The generation; absent: the binding goes.
        generation: Option<u32>,
    },
    /// What a consumer is told of a provider changes, by the same account: its host, its port, what it may do.
    Rebound {
        /// Whose.
        service: ServiceName,
        /// Of which provider.
        provider: ServiceName,
    },
    /// A provider's list is written in another way, with the same accounts on it.
    List {
        /// Whose list.
        provider: ServiceName,
    },
    /// Files of a service change.
    Files {
        /// Whose.
        service: ServiceName,
        /// How many.
        changed: usize,
    },
    /// What a machine has as a site changes: who it is, or whom it knows.
    Site {
        /// The service that the site is delivered as.
        service: ServiceName,
        /// What.
        changes: Vec<SiteChange>,
    },
    /// Commands of a service change.
    Commands {
        /// Whose.
        service: ServiceName,
        /// Which: `test`, `load`, `verify`, `apply`, `check`, `remove`.
        steps: Vec<String>,
    },
    /// Nothing but time limits, whom it waits for, or a provider's host or settings change.
    Settings {
        /// Whose.
        service: ServiceName,
        /// What: `time limits`, `wait`, `host`, `provides`.
        of: Vec<String>,
    },
    /// A provider's newer list stayed loaded when the rest was rolled back, and is in no release yet.
    Stayed {
        /// Whose list.
        provider: ServiceName,
    },
    /// A service was taken as gone from the machine by `grid forget`.
    Forgotten {
        /// Which.
        service: ServiceName,
    },
    /// What the machine holds carries the name of another mesh.
    OtherMesh {
        /// Its name.
        was: MeshName,
    },
    /// What the machine holds carries the name of another machine.
    OtherMachine {
        /// Its name.
        was: NodeName,
    },
    /// A grid that writes another format composed what the machine holds.
    OtherFormat,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comes { service, files } => {
                write!(f, "{service} comes, {}", count(*files, "file"))
            }
            Self::Leaves { service } => write!(f, "{service} leaves"),
            Self::Grants {
                provider,
                added,
                removed,
            } => {
                write!(f, "grants of {provider}:")?;
                for account in added {
                    write!(f, " +{account}")?;
                }
                for account in removed {
                    write!(f, " -{account}")?;
                }
                if added.is_empty() && removed.is_empty() {
                    write!(f, " what accounts may do")?;
                }
                Ok(())
            }
            Self::Binding {
                service,
                provider,
                generation: Some(generation),
            } => write!(f, "{service} gets generation {generation} of {provider}"),
            Self::Binding {
                service, provider, ..
            } => write!(f, "{service} no longer uses {provider}"),
            Self::Rebound { service, provider } => {
                write!(f, "{service} gets other settings of {provider}")
            }
            Self::List { provider } => write!(f, "the list of {provider} is written otherwise"),
            Self::Files { service, changed } => {
                write!(f, "{} of {service} changed", count(*changed, "file"))
            }
            Self::Site { changes, .. } => {
                for (n, change) in changes.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    write!(f, "{comma}{change}")?;
                }
                Ok(())
            }
            Self::Commands { service, steps } => {
                let plural = if steps.len() == 1 { "" } else { "s" };
                // By the keys of the declaration: what reads a list back is the `check` of `provides`.
                let keys = steps.iter().map(|step| match step.as_str() {
                    step if step == Step::Verify.name() => "check of provides",
                    step => step,
                });
                let keys: Vec<&str> = keys.collect();
                write!(
                    f,
                    "command{plural} of {service} changed: {}",
                    keys.join(", ")
                )
            }
            Self::Settings { service, of } => {
                write!(f, "settings of {service} changed: {}", of.join(", "))
            }
            Self::Stayed { provider } => write!(
                f,
                "the list of {provider} stayed when the rest was rolled back"
            ),
            Self::Forgotten { service } => write!(f, "{service} was taken as gone from it"),
            Self::OtherMesh { was } => write!(f, "it was sent to as part of the mesh {was}"),
            Self::OtherMachine { was } => write!(f, "it was sent to as {was}"),
            Self::OtherFormat => f.write_str("another grid composed what it holds"),
        }
    }
}

fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

impl Difference {
    /// Whether it is one of this service's.
    fn is_of(&self, name: &ServiceName) -> bool {
        match self {
            Self::Comes { service, .. }
            | Self::Leaves { service }
            | Self::Grants {
                provider: service, ..
            }
            | Self::Binding { service, .. }
            | Self::Rebound { service, .. }
            | Self::List { provider: service }
            | Self::Files { service, .. }
            | Self::Site { service, .. }
            | Self::Commands { service, .. }
            | Self::Settings { service, .. }
            | Self::Stayed { provider: service }
            | Self::Forgotten { service } => service == name,
            Self::OtherMesh { .. } | Self::OtherMachine { .. } | Self::OtherFormat => false,
        }
    }
}
