//! The daemon's own metrics: counters with fixed labels and the names of peers and providers, nothing a caller wrote.
//!
//! Written by hand: a dozen families in the text format need no library, and the order of lines stays fixed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::admission::{Held, Refused};
use crate::evidence::{Event, Reason};
use crate::words::PeerTrust;

/// What one family is.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub help: &'static str,
    /// Its labels, in the order in which they are shown.
    pub labels: &'static [&'static str],
}

/// Whether a family's values only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    /// They go up and down.
    Gauge,
    /// They rise, until the daemon starts again.
    Counter,
}

/// The lines before a family's values.
fn head(text: &mut String, family: Family, kind: FamilyKind) {
    let Family { name, help, .. } = family;
    let kind = kind.as_str();
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

impl FamilyKind {
    /// The word of the text format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }
}

/// All that a daemon shows of itself, in the order in which it does: what the manual says of it is made from this.
pub fn families() -> impl Iterator<Item = (Family, FamilyKind)> {
    let gauges = GAUGES.iter().map(|family| (*family, FamilyKind::Gauge));
    let counters = Counter::ALL.iter();
    gauges.chain(counters.map(|(_, family)| (*family, FamilyKind::Counter)))
}

macro_rules! gauges {
    ($($key:ident: $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(const $key: Family = Family { name: $name, help: $help, labels: &[$($label),*] };)*
        const GAUGES: &[Family] = &[$($key,)*];
    };
}

gauges! {
    INFO: "grid_site_info" ["mode", "network", "site", "trust", "version"] "What the daemon is.";
    CONNECTIONS: "grid_signals_connections" ["kind"] "Connections to the signals listener, by what they count as.";
    PEERS: "grid_site_peers" [] "Peers that the site knows.";
    EXPIRY: "grid_site_certificate_expiry_timestamp_seconds" [] "The last second in which the site's certificate holds.";
    ADMITTED: "grid_site_certificate_admitted" [] "Whether peers that know what the site knows admit its certificate; without a listener there is no value.";
    TAKEN_UP: "grid_site_files_taken_up" [] "Whether what the site's files say was taken up; 0: they are wrong, and the daemon goes on with what it read before.";
    CONDITION: "grid_gateway_ingest_condition" ["reason"] "Whether the condition GatewayIngest, as persisted, has this reason.";
}

macro_rules! families {
    ($($key:ident: $name:literal [$($label:literal),*] $help:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum Counter { $($key,)* }
        impl Counter {
            const ALL: &'static [(Self, Family)] = &[
                $((Self::$key, Family { name: $name, help: $help, labels: &[$($label),*] }),)*
            ];
        }
    };
}

families! {
    Feedback: "grid_gateway_feedback_events_total" ["event"] "Events of the gateways' reports that an operator should know of.";
    Reports: "grid_gateway_reports_total" ["code"] "Reports of gateways, by the HTTP status of the answer.";
    Polls: "grid_peer_poll_total" ["peer", "outcome"] "Polls of peers, by how they ended.";
    Refused: "grid_peer_signals_refused_total" ["peer", "reason"] "Rows and lines of peers that were refused.";
    Scrapes: "grid_provider_scrape_total" ["provider", "outcome"] "Scrapes of the site's own providers, by how they ended.";
    Withheld: "grid_provider_samples_withheld_total" ["provider", "reason"] "Samples of the site's own providers that are not served.";
    Requests: "grid_signals_requests_total" ["code"] "Requests to the signals listener, by the HTTP status of the answer.";
    LeftOut: "grid_signals_rows_left_out_total" [] "Rows that did not fit into an answer.";
    Connections: "grid_signals_connections_refused_total" ["reason"] "Connections to the signals listener that were not held.";
    Strangers: "grid_signals_handshakes_failed_total" ["reason"] "Handshakes that named nobody, or did not end in time.";
    Overlays: "grid_overlay_write_failures_total" [] "Routing overlays that could not be written.";
    Files: "grid_site_file_failures_total" [] "Times that changed files of the site could not be taken up.";
}

/// Values that go up and down.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gauges {
    /// Connections, by what they count as.
    pub held: Held,
    /// How many peers the site knows.
    pub peers: usize,
}

/// What the site is now, as its files were taken up.
#[derive(Debug, Clone, Copy)]
pub struct Stands {
    /// By what it knows its peers.
    pub trust: PeerTrust,
    /// The last second in which its certificate holds; 0: it has none.
    pub not_after: i64,
    /// Whether the site's peers admit its certificate; `None`: there is nobody to admit it.
    pub admitted: Option<bool>,
    /// Whether what its files say was taken up.
    pub taken_up: bool,
}

impl Default for Stands {
    /// A site whose files were read, which has no certificate.
    fn default() -> Self {
        Self {
            trust: PeerTrust::default(),
            not_after: 0,
            admitted: None,
            taken_up: true,
        }
    }
}

/// The counters.
#[derive(Debug)]
pub struct Metrics {
    counts: Mutex<BTreeMap<(Counter, Vec<String>), u64>>,
    condition: Mutex<Option<Reason>>,
    stands: Mutex<Stands>,
    /// The labels of `grid_site_info` that stay.
    info: String,
}

impl Metrics {
    /// Nothing counted yet. What has few labels is shown from the start, at 0, so that a first event is a rise.
    #[must_use]
    pub fn new(mesh: &str, site: &str, mode: &str) -> Self {
        // Names and words: nothing of them needs an escape.
        let info = format!("mode=\"{mode}\",network=\"{mesh}\",site=\"{site}\"");
        let metrics = Self {
            counts: Mutex::default(),
            condition: Mutex::default(),
            stands: Mutex::default(),
            info,
        };
        for event in Event::ALL {
            metrics.add(Counter::Feedback, [event.label()], 0);
        }
        for refused in Refused::ALL {
            metrics.add(Counter::Connections, [refused.as_str()], 0);
        }
        for counter in [Counter::LeftOut, Counter::Overlays, Counter::Files] {
            metrics.add(counter, [], 0);
        }
        metrics
    }

    fn add<const N: usize>(&self, counter: Counter, labels: [&str; N], times: u64) {
        let labels = labels.map(str::to_owned).to_vec();
        let mut counts = self.counts();
        let count = counts.entry((counter, labels)).or_default();
        *count = count.saturating_add(times);
    }

    /// An event of the gateways' reports.
    pub fn feedback(&self, event: Event) {
        self.add(Counter::Feedback, [event.label()], 1);
    }

    /// What the gateways' reports amount to, as persisted; `None`: nothing is.
    pub fn condition(&self, reason: Option<Reason>) {
        *self.condition_held() = reason;
    }

    /// What the site is now.
    pub fn stands(&self, stands: Stands) {
        *self.stands.lock().unwrap_or_else(PoisonError::into_inner) = stands;
    }

    /// A report was answered.
    pub fn report(&self, code: u16) {
        self.add(Counter::Reports, [&code.to_string()], 1);
    }

    /// A poll ended.
    pub fn poll(&self, peer: &str, outcome: &'static str) {
        self.add(Counter::Polls, [peer, outcome], 1);
    }

    /// Rows of a peer were refused.
    pub fn refused(&self, peer: &str, reason: &'static str, times: u64) {
        self.add(Counter::Refused, [peer, reason], times);
    }

    /// A scrape ended.
    pub fn scrape(&self, provider: &str, outcome: &'static str) {
        self.add(Counter::Scrapes, [provider, outcome], 1);
    }

    /// Samples of a provider are not served.
    pub fn withheld(&self, provider: &str, reason: &'static str, times: u64) {
        self.add(Counter::Withheld, [provider, reason], times);
    }

    /// A request was answered.
    pub fn request(&self, code: u16) {
        self.add(Counter::Requests, [&code.to_string()], 1);
    }

    /// Rows did not fit.
    pub fn left_out(&self, rows: u64) {
        self.add(Counter::LeftOut, [], rows);
    }

    /// A connection was not held.
    pub fn connection(&self, refused: Refused) {
        self.add(Counter::Connections, [refused.as_str()], 1);
    }

    /// A handshake came to nothing.
    pub fn stranger(&self, reason: &'static str) {
        self.add(Counter::Strangers, [reason], 1);
    }

    /// The overlay could not be written.
    pub fn overlay_failed(&self) {
        self.add(Counter::Overlays, [], 1);
    }

    /// Changed files could not be taken up.
    pub fn files_failed(&self) {
        self.add(Counter::Files, [], 1);
    }

    /// Forgets the counters of peers that are no more, so that a mesh that changes does not fill memory.
    pub fn keep_peers(&self, is_peer: impl Fn(&str) -> bool) {
        self.counts().retain(|(counter, labels), _| {
            !matches!(counter, Counter::Polls | Counter::Refused)
                || labels.first().is_some_and(|peer| is_peer(peer))
        });
    }

    /// All of it, in the text format.
    #[must_use]
    pub fn text(&self, gauges: Gauges) -> String {
        let stands = *self.stands.lock().unwrap_or_else(PoisonError::into_inner);
        let info = format!(
            "{{{},trust=\"{}\",version=\"{}\"}}",
            self.info,
            stands.trust,
            env!("CARGO_PKG_VERSION")
        );
        let held = gauges.held;
        let mut text = String::new();
        let mut gauge = |family: Family, values: &[(&str, i64)]| {
            head(&mut text, family, FamilyKind::Gauge);
            for (labels, value) in values {
                let _ = writeln!(text, "{}{labels} {value}", family.name);
            }
        };
        gauge(INFO, &[(&info, 1)]);
        gauge(
            CONNECTIONS,
            &[
                ("{kind=\"foreign_handshake\"}", held.foreign.into()),
                ("{kind=\"own_handshake\"}", held.own.into()),
                ("{kind=\"peer\"}", held.peers.into()),
                ("{kind=\"local\"}", held.local.into()),
            ],
        );
        let peers = i64::try_from(gauges.peers).unwrap_or(i64::MAX);
        gauge(PEERS, &[("", peers)]);
        gauge(EXPIRY, &[("", stands.not_after)]);
        let admitted = stands.admitted.map(|is_so| ("", i64::from(is_so)));
        gauge(ADMITTED, admitted.as_slice());
        gauge(TAKEN_UP, &[("", stands.taken_up.into())]);
        let now = *self.condition_held();
        let reasons = Reason::ALL.map(|reason| {
            let labels = format!("{{reason=\"{}\"}}", reason.label());
            (labels, i64::from(now == Some(reason)))
        });
        // Without a document there is no condition: then not one of them is 0.
        let shown = now.map_or(0, |_| reasons.len());
        let reasons: Vec<(&str, i64)> = reasons
            .iter()
            .take(shown)
            .map(|(labels, is_so)| (labels.as_str(), *is_so))
            .collect();
        gauge(CONDITION, &reasons);
        let counts = self.counts();
        for (counter, family) in Counter::ALL {
            head(&mut text, *family, FamilyKind::Counter);
            let of = counts.range((*counter, Vec::new())..);
            for ((_, values), count) in of.take_while(|((of, _), _)| of == counter) {
                text.push_str(family.name);
                for (n, (label, value)) in family.labels.iter().zip(values).enumerate() {
                    let before = if n == 0 { '{' } else { ',' };
                    let _ = write!(text, "{before}{label}=\"{value}\"");
                }
                let end = if family.labels.is_empty() { "" } else { "}" };
                let _ = writeln!(text, "{end} {count}");
            }
        }
        text
    }

    fn condition_held(&self) -> MutexGuard<'_, Option<Reason>> {
        self.condition
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<(Counter, Vec<String>), u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_by_family_and_only_those_of_peers_are_forgotten() {
        let metrics = Metrics::new("prod", "atlas", "poll");
        metrics.poll("borealis", "success");
        metrics.poll("gone", "timeout");
        metrics.feedback(Event::Unauthorized);
        metrics.keep_peers(|peer| peer == "borealis");
        let before = metrics.text(Gauges::default());
        assert!(!before.contains("grid_gateway_ingest_condition{"));
        metrics.condition(Some(Reason::Rejected));
        let text = metrics.text(Gauges::default());
        for line in [
            "grid_peer_poll_total{peer=\"borealis\",outcome=\"success\"} 1",
            "grid_gateway_feedback_events_total{event=\"unauthorized\"} 1",
            "grid_gateway_feedback_events_total{event=\"conflict\"} 0",
            "grid_gateway_ingest_condition{reason=\"Rejected\"} 1",
            "grid_gateway_ingest_condition{reason=\"Clean\"} 0",
            "grid_overlay_write_failures_total 0",
            "grid_signals_connections{kind=\"local\"} 0",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        assert!(!text.contains("gone"));
        let mut reader = crate::signals::exposition::Reader::new(
            text.as_bytes(),
            crate::signals::exposition::Limits::CONTRACT,
        )
        .unwrap();
        while reader.next_item().is_some() {}
        assert!(reader.flaws().is_empty());
    }
}
