//! `grid signals get --json` and `grid signals diff --json`.

use std::collections::BTreeMap;

use crate::words::NodeName;

/// What a site shows.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct SignalsView {
    /// The site that was asked.
    pub site: NodeName,
    /// Its own signals and those that it pulled from its peers, in order of site, provider and metric.
    pub signals: Vec<SignalView>,
    /// How many lines were left out, by reason: they named no site or provider, had no time, no number, or made no sense.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// One signal.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct SignalView {
    /// The site that observed it.
    pub site: NodeName,
    /// What it is about.
    pub provider: String,
    /// The metric.
    pub metric: String,
    /// Its further labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
    /// How old it was by the clock of the site that was asked, in milliseconds; that clock is read to the second.
    pub age_ms: u64,
}

/// What a push would do to sites: those that it changes nothing at are left out.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct SitesDiffView {
    /// In order of name.
    pub sites: Vec<SiteDiffView>,
}

/// What a push would do to a site.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct SiteDiffView {
    /// The machine.
    pub node: NodeName,
    /// What happens to its daemon.
    pub effect: SiteEffect,
    /// Why it restarts, or why nobody knows whether it does; for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// What it takes up while it runs; for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<String>,
    /// The sites that have to acknowledge its renewed identity first: reach them, and it restarts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<NodeName>,
    /// Why it is not sent to, if it is on hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// Whether nobody knows how the last send to it ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub uncertain: bool,
}

/// What happens to a site's daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SiteEffect {
    /// Its supervisor starts it again.
    Restarts,
    /// It goes on, and takes up what changed.
    Live,
    /// There is none yet.
    Comes,
    /// It is taken off the machine.
    Leaves,
    /// What it was last sent is not kept.
    Unknown,
}
