//! What `--json` prints. Field names are stable: a view only ever grows by optional fields. The schemas under
//! `schemas/` are generated from these very types.

mod change;
mod check;
mod compose;
mod ended;
mod evidence;
mod history;
mod problem;
mod provisions;
mod push;
mod signals;
mod status;
mod waiting;

pub use change::{ChangeView, Changed, ConsumerIs};
pub use check::{CheckView, Checked};
pub use compose::ComposeView;
pub use ended::{Ended, HeldView};
pub use evidence::{
    ClearedView, EvidenceView, ProcessView, ReportView, Reported, ReportedView, StandingView,
};
pub use history::{HistoryEntry, HistoryView, Unended};
pub use problem::{FailureView, FenceView, ProblemView};
pub use provisions::{GenerationView, ProvisionView, ProvisionsView};
pub use push::{AppliedView, PushEvent};
pub use signals::{SignalView, SignalsView, SiteDiffView, SiteEffect, SitesDiffView};
pub use status::{
    AuthorityView, CurrentView, DriftView, FencedView, LastPushView, MachineState, MachineView,
    ProbeView, StatusView,
};
pub use waiting::{BlockerView, WaitView, WaitingView};

/// The schema of what grid writes: what it leaves out where it is empty is not required.
fn written<T: schemars::JsonSchema>() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// Every schema that is committed under `schemas/`: the file's name without `.schema.json`, and its content.
/// The declaration's own, `mesh`, is `crate::mesh::schema`.
#[must_use]
pub fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    vec![
        ("change", written::<ChangeView>()),
        ("check", written::<CheckView>()),
        ("compose", written::<ComposeView>()),
        ("evidence", written::<EvidenceView>()),
        ("evidence-clear", written::<ClearedView>()),
        ("evidence-report", written::<ReportView>()),
        (
            "evidence-reporter",
            written::<crate::evidence::reporter::Reporter>(),
        ),
        ("evidence-status", written::<crate::evidence::Document>()),
        ("history", written::<HistoryView>()),
        ("provisions", written::<ProvisionsView>()),
        ("push", written::<PushEvent>()),
        ("signals", written::<SignalsView>()),
        ("signals-diff", written::<SitesDiffView>()),
        ("site-status", written::<crate::site::SiteStatus>()),
        ("status", written::<StatusView>()),
    ]
}
