//! How a push ended: the last event of `push --json`.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::ProblemView;
use super::waiting::WaitingView;
use crate::compose::identities::Renewal;
use crate::provision::ProvisionId;
use crate::push::{Reason, Report, Verdict};
use crate::words::{NodeName, ServiceName};

/// A machine on hold.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct HeldView {
    /// Why.
    pub reason: String,
    /// The first day on which it is sent to again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether the operator named it.
    pub named: bool,
    /// Whether it is behind.
    pub behind: bool,
    /// Whether nobody knows what it holds.
    pub uncertain: bool,
    /// The providers on it whose list is not what it should be.
    pub owes: BTreeSet<ServiceName>,
    /// The accounts of which it has an older secret, which stays admitted for its sake.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub older: BTreeSet<ProvisionId>,
    /// The accounts of which it has a closed secret: its service runs on there, and is shut out.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub shut_out: BTreeSet<ProvisionId>,
}

/// How a push ended.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct Ended {
    /// Its number.
    pub push: u64,
    /// Nothing was minted or sent: all of this is what would be, if every machine took what it is sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// In one word.
    pub verdict: Verdict,
    /// The exit code.
    pub exit: u8,
    /// Rounds after the first.
    pub rounds: usize,
    /// How many accounts it minted.
    pub minted: usize,
    /// The machines that acknowledged a send.
    pub sent: BTreeSet<NodeName>,
    /// The machines that failed.
    pub failed: BTreeMap<NodeName, ProblemView>,
    /// Machines on hold.
    pub on_hold: BTreeMap<NodeName, HeldView>,
    /// What waits, by machine.
    pub waiting: BTreeMap<NodeName, BTreeMap<ServiceName, WaitingView>>,
    /// What is revoked, by machine.
    pub revoked: BTreeMap<NodeName, BTreeSet<ServiceName>>,
    /// Sites whose renewed identity waits for others to know it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub renewals: BTreeMap<NodeName, Renewal>,
    /// Machines that are still behind and did not fail.
    pub behind: BTreeMap<NodeName, Vec<Reason>>,
    /// Machines that were rolled back from what they should be, before this push.
    pub rolled_back: BTreeSet<NodeName>,
    /// Machines that are behind because the rounds ran out.
    pub out_of_rounds: BTreeSet<NodeName>,
    /// Machines that left the declaration, and those that are declared at another address or below another root than they were last
    /// reached (which is said as "moved"), and where that was.
    pub undeclared: BTreeMap<NodeName, String>,
    /// Where machines were sent to before, at another address or below another root: what was sent still lies there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_behind: BTreeMap<NodeName, Vec<String>>,
    /// Machines that were not sent to or contacted since somebody interrupted, or too many had failed.
    pub kept_back: BTreeSet<NodeName>,
    /// How many machines are as they should be.
    pub current: usize,
}

impl Ended {
    /// From the report of a push, or of a dry run.
    #[must_use]
    pub fn of(report: Report, dry_run: bool) -> Self {
        let verdict = report.verdict();
        let waiting = report
            .waiting
            .iter()
            .map(|(node, services)| {
                let services = services.iter().map(|(service, waiting)| {
                    let blocked = crate::cli::summary::blocked(&report, waiting);
                    (service.clone(), WaitingView::new(&waiting.wait, &blocked))
                });
                (node.clone(), services.collect())
            })
            .collect();
        Self {
            push: report.push,
            dry_run,
            verdict,
            exit: crate::cli::exit::Exit::from(verdict).code(),
            rounds: report.rounds,
            minted: report.minted,
            sent: report.sent,
            failed: report
                .failed
                .into_iter()
                .map(|(node, problem)| (node, problem.into()))
                .collect(),
            on_hold: report
                .on_hold
                .into_iter()
                .map(|(node, held)| {
                    let view = HeldView {
                        reason: held.hold.reason,
                        until: held.hold.until.map(|until| until.to_string()),
                        named: held.named,
                        behind: held.behind,
                        uncertain: held.uncertain,
                        owes: held.owes,
                        older: held.older,
                        shut_out: held.shut_out,
                    };
                    (node, view)
                })
                .collect(),
            waiting,
            revoked: report.revoked,
            renewals: report.renewals,
            behind: report.behind,
            rolled_back: report.rolled_back,
            out_of_rounds: report.out_of_rounds,
            undeclared: report.undeclared,
            left_behind: report.left_behind,
            kept_back: report.kept_back,
            current: report.current,
        }
    }
}
