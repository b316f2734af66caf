//! `grid status --json`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use super::problem::FailureView;
use super::waiting::WaitingView;
use crate::compose::identities::Standing;
use crate::compose::services::Kept;
use crate::provision::ProvisionId;
use crate::push::{Reason, Whose};
use crate::store::Holder;
use crate::words::{Digest, MeshName, NodeName, ServiceName, Token};

/// How a mesh stands, as far as its store knows.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct StatusView {
    /// Which.
    pub mesh: MeshName,
    /// The number of the last push; 0: there was none.
    pub push: u64,
    /// Who holds the lock of the mesh just now: a push, or another command that writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Holder>,
    /// The public keys of those who may open the store, and may not once somebody writes to it: the declaration names them no more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_be_taken_out: Vec<String>,
    /// Whether signals cross sites; absent: the mesh declares none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signals_cross: Option<bool>,
    /// The certificate authority that issues the identities of the sites; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<AuthorityView>,
    /// The machines, declared or not, in order of name.
    pub machines: Vec<MachineView>,
}

/// The certificate authority of a mesh.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct AuthorityView {
    /// Which, counted from 1.
    pub number: u32,
    /// The day on which it expires.
    #[schemars(with = "String")]
    pub expires: Date,
    /// Whether that is so soon that the next push mints another one.
    pub due: bool,
}

/// How one machine stands.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct MachineView {
    /// Which.
    pub node: NodeName,
    /// In one word, as far as the store knows; the first that fits. What was seen of it besides is in `probe`.
    pub state: MachineState,
    /// The digest of what it last acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<Digest>,
    /// Why it is behind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// What waits on it, and for whom.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<ServiceName, WaitingView>,
    /// What is revoked on it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub revoked: BTreeSet<ServiceName>,
    /// The services that the declaration took from it and that stay for now, and who uses each there; of an undeclared machine, all that it
    /// holds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keeps: Kept,
    /// Of a machine on hold: the providers on it whose list is not what it should be, so that somebody is owed a grant or
    /// a revocation. `--exit-code` counts that.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub owes: BTreeSet<ServiceName>,
    /// Why it is on hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// Whether what it holds was only written to a folder, so that nobody observes what is in force there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unobserved: bool,
    /// Of an uncertain machine that refused the last push to it: what it held then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fenced: Option<FencedView>,
    /// Whether the push that runs now is sending to it, so that it is uncertain for the time being.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sending: bool,
    /// Of a machine that is not as it should be: what came of the last push that tried to send to it, where it was not reached,
    /// refused that before it changed anything, had the previous release put back, or left nobody knowing what it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_push: Option<LastPushView>,
    /// The accounts of which a machine on hold has an older secret, which stays admitted for its sake.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub older: BTreeSet<ProvisionId>,
    /// What `--probe` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeView>,
    /// How the identity of its site stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Standing>,
    /// Where it was last reached, if the declaration no longer says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_at: Option<String>,
    /// The last push that contacted it and could not verify or mend all of what it holds, where nobody has verified that since.
    /// `--exit-code` counts that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwell: Option<u64>,
    /// The services of which that was so, and of each the push that found it; absent where it was of no single service.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unwell_services: BTreeMap<ServiceName, u64>,
    /// The accounts of which a machine on hold has a closed secret, so that its service is shut out.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub shut_out: BTreeSet<ProvisionId>,
    /// Where it was sent to before, at another address or below another root: what was sent still lies there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
}

/// What a machine said when it was asked just now.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum ProbeView {
    /// It answers, and what the store knows of lies there as it was sent; of a machine that is uncertain: its send is one
    /// that the store knows of.
    Known,
    /// It answers, and a send is under way there, so that nobody looked at its files.
    Busy,
    /// It took what the store knows of, and that does not lie there as it was sent.
    Drifted(DriftView),
    /// It holds what another store, or another copy of this one, sent.
    OtherToken {
        /// The token.
        held: String,
        /// Whose it is.
        whose: Whose,
    },
    /// It holds nothing, though something was sent to it.
    Empty,
    /// It could not be asked.
    Unreached(FailureView),
}

impl ProbeView {
    /// Whether nothing is wrong with it.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        matches!(self, Self::Known | Self::Busy)
    }

    /// What a machine is instead that is current as far as its store knows.
    #[must_use]
    pub const fn word(&self) -> Option<&'static str> {
        match self {
            Self::Known | Self::Busy => None,
            Self::Drifted(_) => Some("drifted"),
            Self::OtherToken { .. } => Some("fenced"),
            Self::Empty => Some("emptied"),
            Self::Unreached(_) => Some("not reached"),
        }
    }
}

/// What a machine held that refused a push.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct FencedView {
    /// Which push.
    pub push: u64,
    /// The token of the send that it had taken; absent: none, where one was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Token>,
    /// Whose it is.
    pub whose: Whose,
    /// The last line of its own log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// A push that came to nothing on a machine.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct LastPushView {
    /// Which.
    pub push: u64,
    /// Why.
    pub cause: String,
    /// Whether the declaration was changed since, so that the next push may end otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub declared_otherwise: bool,
    /// What to type or to do next, as it was said then; absent also where that may be done, as the declaration was changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What somebody changed on a machine, by hand or by another program.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct DriftView {
    /// What became of the link `current`; absent: it leads to what was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentView>,
    /// How many files are not as they were sent, or are gone.
    pub differing: u64,
    /// The first of them, in the release or, of one that is installed, on the machine; at most 20.
    pub files: Vec<String>,
}

/// What became of the link `current` of a machine.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is", content = "what")]
pub enum CurrentView {
    /// It is gone, or what it led to is.
    Gone,
    /// It leads to another release.
    Other(Digest),
    /// Something else stands there: a push refuses to replace that.
    Replaced(String),
}

/// How a machine stands, in one word.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MachineState {
    /// It left the declaration.
    Undeclared,
    /// It is on hold.
    OnHold,
    /// A send to it is not settled.
    Uncertain,
    /// It was rolled back from what it should be, and nothing has changed since.
    RolledBack,
    /// It was never sent to.
    NeverSent,
    /// What it holds is not what it should be.
    Behind,
    /// It holds all that it can have for now, and the rest waits.
    Waits,
    /// It is as it should be.
    Current,
}

impl MachineState {
    /// For people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Undeclared => "undeclared",
            Self::OnHold => "on hold",
            Self::Uncertain => "uncertain",
            Self::RolledBack => "rolled back",
            Self::NeverSent => "never sent",
            Self::Behind => "behind",
            Self::Waits => "waits",
            Self::Current => "current",
        }
    }

    /// Whether `--exit-code` counts it by this alone.
    #[must_use]
    pub const fn is_to_be_mended(self) -> bool {
        matches!(
            self,
            Self::Uncertain | Self::RolledBack | Self::NeverSent | Self::Behind | Self::Waits
        )
    }
}
