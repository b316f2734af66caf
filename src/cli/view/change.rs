//! What a command that changes something has changed: `assign`, `issue`, `hold` and their like, as text and as
//! JSON.

use std::collections::BTreeSet;
use std::fmt;

use crate::words::{NodeName, ServiceName};

/// What a command changed, and who is behind now.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct ChangeView {
    /// In order.
    pub changed: Vec<Changed>,
    /// The machines that are behind now: `grid push --behind` sends to them.
    pub behind: BTreeSet<NodeName>,
}

/// Who a consumer is to the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConsumerIs {
    /// A service that is declared to consume that provider, so that grid starts it with the account or not at all.
    #[default]
    Declared,
    /// A service of the mesh that is not declared to consume it.
    Other,
    /// Nothing of this mesh.
    Outside,
}

/// One thing that was changed.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Changed {
    /// A service is on these machines, and no other, in the declaration.
    Assigned {
        /// Which.
        service: ServiceName,
        /// Where.
        nodes: BTreeSet<NodeName>,
        /// Where it was before and is no more.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        taken_from: BTreeSet<NodeName>,
    },
    /// A service was on exactly these machines before: nothing was changed.
    AlreadyAssigned {
        /// Which.
        service: ServiceName,
        /// Where.
        nodes: BTreeSet<NodeName>,
    },
    /// A service is on no machine, in the declaration.
    Unassigned {
        /// Which.
        service: ServiceName,
        /// Where it was.
        nodes: BTreeSet<NodeName>,
    },
    /// An account was minted.
    Minted {
        /// On which provider.
        provider: ServiceName,
        /// Whose.
        consumer: ServiceName,
        /// Which generation.
        generation: u32,
    },
    /// There was an account, and it stands by hand now.
    ByHand {
        /// On which provider.
        provider: ServiceName,
        /// Whose.
        consumer: ServiceName,
        /// Its newest generation.
        generation: u32,
    },
    /// There was an account already, which the declaration asks for: nothing was changed.
    AlreadyIssued {
        /// On which provider.
        provider: ServiceName,
        /// Whose.
        consumer: ServiceName,
        /// Its newest generation.
        generation: u32,
    },
    /// An account was closed, every generation of it.
    Revoked {
        /// On which provider.
        provider: ServiceName,
        /// Whose.
        consumer: ServiceName,
        /// Who the consumer is to this mesh; for people, who are told how to give it an account again.
        #[serde(skip)]
        consumer_is: ConsumerIs,
    },
    /// An account was revoked before: nothing was changed.
    AlreadyRevoked {
        /// On which provider.
        provider: ServiceName,
        /// Whose.
        consumer: ServiceName,
        /// What to type for a new one; for people.
        #[serde(skip)]
        again: String,
    },
    /// A site's next identity was minted.
    RotatedSite {
        /// Whose.
        site: NodeName,
        /// Which, counted from 1 for each site.
        number: u32,
    },
    /// The mesh's next certificate authority was minted.
    RotatedAuthority {
        /// Which, counted from 1.
        number: u32,
    },
    /// A further generation was minted.
    Rotated {
        /// On which provider.
        provider: ServiceName,
        /// Whose.
        consumer: ServiceName,
        /// The new generation.
        generation: u32,
        /// Whether the older ones were closed at once.
        cut: bool,
        /// Whether it is an account issued by hand that no machine of the mesh uses, as one for somebody outside: then nobody is waited for, and the next push
        /// closes the older ones.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        unused: bool,
    },
    /// A machine is not sent to.
    Held {
        /// Which.
        node: NodeName,
        /// Why, and until when.
        hold: String,
    },
    /// A machine is sent to again.
    Unheld {
        /// Which.
        node: NodeName,
    },
    /// A machine was on hold neither before nor now.
    NotHeld {
        /// Which.
        node: NodeName,
    },
    /// Nobody held the lock of the mesh.
    LockFree,
    /// The lock's holder had died; its record is gone.
    LockCleared {
        /// Who it was.
        holder: String,
    },
    /// The lock was taken from its holder.
    LockTaken {
        /// Who it was; absent: it had not said.
        #[serde(skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
    },
    /// A machine's host key is accepted.
    Trusted {
        /// Which machine.
        node: NodeName,
        /// The kind of the key.
        kind: String,
        /// Its fingerprint.
        fingerprint: String,
    },
    /// A machine, or a service on it, is taken as gone.
    Forgotten {
        /// Which machine.
        node: NodeName,
        /// Which service; absent: all of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        service: Option<ServiceName>,
    },
    /// What a machine was sent before, at another address or below another root, was taken as gone.
    ForgottenLeftBehind {
        /// Which machine.
        node: NodeName,
    },
}

impl ChangeView {
    /// Whether all of it was so before.
    #[must_use]
    pub fn is_no_change(&self) -> bool {
        let was_so = |changed: &Changed| match changed {
            Changed::AlreadyAssigned { .. }
            | Changed::AlreadyIssued { .. }
            | Changed::AlreadyRevoked { .. }
            | Changed::NotHeld { .. }
            | Changed::LockFree => true,
            Changed::Unassigned { nodes, .. } => nodes.is_empty(),
            _ => false,
        };
        self.changed.iter().all(was_so)
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |nodes: &BTreeSet<NodeName>| crate::cli::phrases::list(nodes);
        match self {
            Self::Assigned {
                service,
                nodes,
                taken_from,
            } => {
                write!(f, "assigned {service} to {}", names(nodes))?;
                match taken_from.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; taken from {}", names(taken_from)),
                }
            }
            Self::AlreadyAssigned { service, nodes } => {
                write!(f, "{service} is on {} already", names(nodes))
            }
            Self::Unassigned { service, nodes } if nodes.is_empty() => {
                write!(f, "{service} was on no machine already")
            }
            Self::Unassigned { service, nodes } => {
                write!(f, "took {service} from {}", names(nodes))
            }
            Self::RotatedSite { site, number } => write!(
                f,
                "minted the identity of the site {site}, number {number}; the older one goes once nobody needs it"
            ),
            Self::RotatedAuthority { number } => write!(
                f,
                "minted certificate authority {number}; sites get identities of it once all of them know it, and then the older one goes"
            ),
            Self::Minted {
                provider,
                consumer,
                generation,
            } => write!(f, "minted {provider}/{consumer}, generation {generation}"),
            Self::ByHand {
                provider,
                consumer,
                generation,
            } => write!(
                f,
                "{provider}/{consumer} has an account, generation {generation}; it is kept from now on, also while no service of the mesh consumes it, until `grid revoke \
                 {provider}/{consumer}`"
            ),
            Self::AlreadyIssued {
                provider,
                consumer,
                generation,
            } => write!(
                f,
                "{provider}/{consumer} has an account already, generation {generation}; `grid rotate {provider}/{consumer}` mints another"
            ),
            Self::Revoked {
                provider,
                consumer,
                consumer_is,
            } => {
                write!(
                    f,
                    "revoked {provider}/{consumer}: the next push closes the account"
                )?;
                match consumer_is {
                    ConsumerIs::Declared => write!(
                        f,
                        " and does not start {consumer} again until `grid issue {provider}/{consumer}` gives it a new one"
                    ),
                    ConsumerIs::Other => {
                        write!(
                            f,
                            "; `grid issue {provider}/{consumer}` gives {consumer} a new one"
                        )
                    }
                    ConsumerIs::Outside => write!(
                        f,
                        "; `grid issue {provider}/{consumer} --outside` gives {consumer} a new one"
                    ),
                }
            }
            Self::AlreadyRevoked {
                provider,
                consumer,
                again,
            } => write!(
                f,
                "{provider}/{consumer} was revoked before; `{again}` gives {consumer} a new one"
            ),
            Self::Rotated {
                provider,
                consumer,
                generation,
                cut: false,
                unused: true,
            } => write!(
                f,
                "minted {provider}/{consumer}, generation {generation}; no machine uses it, so the next push closes the older one: hand over the \
                 new secret before (`grid provisions {provider}/{consumer} --show-secrets`)"
            ),
            Self::Rotated {
                provider,
                consumer,
                generation,
                cut: false,
                unused: false,
            } => write!(
                f,
                "minted {provider}/{consumer}, generation {generation}; the older one goes once nobody uses it"
            ),
            Self::Rotated {
                provider,
                consumer,
                generation,
                cut: true,
                ..
            } => write!(
                f,
                "minted {provider}/{consumer}, generation {generation}; the next push closes the older ones at once"
            ),
            Self::Held { node, hold } => write!(f, "{node} is on hold: {hold}"),
            Self::Trusted {
                node,
                kind,
                fingerprint,
            } => write!(f, "{node} is trusted by its key {kind} {fingerprint}"),
            Self::Unheld { node } => write!(f, "{node} is not on hold any more"),
            Self::LockFree => f.write_str("nobody held the lock"),
            Self::LockCleared { holder } => write!(f, "{holder} had died; its record is gone"),
            Self::LockTaken {
                holder: Some(holder),
            } => write!(f, "the lock was taken from {holder}"),
            Self::LockTaken { holder: None } => f.write_str("the lock was taken away"),
            Self::NotHeld { node } => write!(f, "{node} was not on hold"),
            Self::Forgotten {
                node,
                service: None,
            } => write!(f, "forgot {node}: what it held is taken as gone"),
            Self::Forgotten {
                node,
                service: Some(service),
            } => write!(
                f,
                "forgot {service} on {node}: it is taken as gone from there"
            ),
            Self::ForgottenLeftBehind { node } => {
                write!(f, "forgot what {node} left behind: it is taken as gone")
            }
        }
    }
}
