//! The one thread that writes evidence: it takes the reports that wait together, applies them in order and publishes
//! them by one write (DESIGN.md, section 7).
//!
//! A thread of its own, since the home's calls block on a disk. A report whose time is up before its turn is left out and
//! its caller has its 503 already; it was not applied, and the reporter repeats it.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::metrics::Metrics;
use crate::evidence::homes::Home;
use crate::evidence::{Answer, BUDGET, Event, Report, Writer};

/// How many reports may wait, and the most that one write publishes: as many as there are connections.
const MOST: usize = 256;

/// How often the condition is looked at, so that it goes stale without a report.
const REFRESH: Duration = Duration::from_secs(5);

/// A report that waits.
struct Waiting {
    report: Report,
    until: Instant,
    answer: oneshot::Sender<Answer>,
}

/// Where reports are handed in.
#[derive(Debug, Clone)]
pub struct Ingest(SyncSender<Waiting>);

impl Ingest {
    /// Hands in a report, whose answer is of use until `until`.
    pub async fn take(&self, report: Report, until: Instant) -> Answer {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting {
            report,
            until,
            answer,
        };
        if self.0.try_send(waiting).is_err() {
            return Answer::Unknown;
        }
        let answered = tokio::time::timeout_at(until.into(), answered).await;
        answered
            .ok()
            .and_then(Result::ok)
            .unwrap_or(Answer::Unknown)
    }
}

/// Starts the thread. It ends once every [`Ingest`] is dropped and what waited is written.
///
/// # Errors
/// When the system gives no thread.
pub fn start(
    home: impl Home + Send + 'static,
    metrics: Arc<Metrics>,
) -> std::io::Result<(Ingest, JoinHandle<()>)> {
    let (sender, receiver) = mpsc::sync_channel(MOST);
    let thread = std::thread::Builder::new()
        .name("evidence".to_owned())
        .spawn(move || work(&mut Writer::new(home), &receiver, &metrics))?;
    Ok((Ingest(sender), thread))
}

fn work<H: Home>(writer: &mut Writer<H>, receiver: &Receiver<Waiting>, metrics: &Metrics) {
    refresh(writer, metrics);
    let mut next = Instant::now() + REFRESH;
    loop {
        let left = next.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(first) => {
                let mut batch = vec![first];
                batch.extend(receiver.try_iter().take(MOST - 1));
                publish(writer, batch, metrics);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if Instant::now() >= next {
            refresh(writer, metrics);
            next = Instant::now() + REFRESH;
        }
    }
}

fn publish<H: Home>(writer: &mut Writer<H>, mut batch: Vec<Waiting>, metrics: &Metrics) {
    let now = Instant::now();
    batch.retain(|waiting| waiting.until > now);
    let Some(latest) = batch.iter().map(|waiting| waiting.until).max() else {
        return;
    };
    let left = || latest.saturating_duration_since(Instant::now());
    let reports: Vec<Report> = batch.iter().map(|waiting| waiting.report.clone()).collect();
    let outcome = writer.take(&reports, Timestamp::now(), &left);
    count(metrics, &outcome.events);
    metrics.condition(writer.shown());
    if let Some(failure) = outcome.failure {
        tracing::warn!(reports = reports.len(), %failure, "reports could not be persisted");
    }
    for (waiting, answer) in batch.into_iter().zip(outcome.answers) {
        // Whoever waited may be gone; then it repeats its report.
        let _ = waiting.answer.send(answer);
    }
}

fn refresh<H: Home>(writer: &mut Writer<H>, metrics: &Metrics) {
    let until = Instant::now() + BUDGET;
    let left = || until.saturating_duration_since(Instant::now());
    let mut events = Vec::new();
    if let Err(failure) = writer.refresh(Timestamp::now(), &left, &mut events) {
        tracing::warn!(%failure, "the condition of the gateways' reports could not be brought up to date");
    }
    count(metrics, &events);
    metrics.condition(writer.shown());
}

fn count(metrics: &Metrics, events: &[Event]) {
    for event in events {
        metrics.feedback(*event);
    }
}
