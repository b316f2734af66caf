//! `grid provisions --json`.

use std::collections::{BTreeMap, BTreeSet};

use crate::provision::State;
use crate::words::{Era, NodeName, ServiceName};

/// All accounts.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct ProvisionsView {
    /// In order of provider and consumer.
    pub provisions: Vec<ProvisionView>,
}

/// One consumer's account on one provider.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct ProvisionView {
    /// Who gives it.
    pub provider: ServiceName,
    /// Who has it.
    pub consumer: ServiceName,
    /// Whether it was issued by hand, so that it stands without a consumption.
    pub by_hand: bool,
    /// Whether the declaration assigns the consumer and has it consume the provider.
    pub declared: bool,
    /// Its generations, oldest first.
    pub generations: Vec<GenerationView>,
}

/// One generation of an account.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct GenerationView {
    /// Counted from 1.
    pub number: u32,
    /// Of the store that minted it.
    pub era: Era,
    /// Whether it may be on a list.
    pub state: State,
    /// The account's name at the provider; absent: the declaration has no such provider any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The machines that hold it, or may hold it, in a binding.
    pub used_on: BTreeSet<NodeName>,
    /// The provider's machines that have acknowledged it, and admit it for certain.
    pub admitted_on: BTreeSet<NodeName>,
    /// The provider's machines that may admit it: nobody knows how the last send to them ended.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub perhaps_admitted_on: BTreeSet<NodeName>,
    /// Of an older generation: the machines on hold that have it, so that it stays admitted until they have the newest.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub kept_for: BTreeSet<NodeName>,
    /// The plain secret: of the newest generation, and only with `--show-secrets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What its consumer is given, secrets too, by the names of the Service Binding specification: `host`, `port`, `username`,
    /// `password`, `uri` and whatever else the provider's kind has. Where `secret` is, if the provider is declared and on a machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<BTreeMap<String, String>>,
}
