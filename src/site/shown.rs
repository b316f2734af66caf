//! Shows the daemon's own metrics, unencrypted, to this machine only.
//!
//! Threat: any user of the machine may connect, and say nothing. Whoever connects is taken; past the bound the oldest
//! connection is closed, which a reader, who is done within milliseconds, is not.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::admission::Admission;
use super::membership::{Declared, Membership as _};
use super::metrics::{Gauges, Metrics};
use super::serve::text;

/// How many readers of the daemon's own metrics there may be at a time.
const READERS: usize = 64;

/// How long a reader of the metrics may take.
const READER: Duration = Duration::from_secs(10);

/// How long is waited when the system has no more files for connections.
const PAUSE: Duration = Duration::from_millis(100);

/// The daemon's own metrics.
pub struct Shown {
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Who holds connections.
    pub admission: Admission,
    /// Who is there.
    pub members: Arc<Declared>,
}

impl Shown {
    /// Shows them for ever.
    pub async fn run(self, socket: TcpListener) {
        let shown = Arc::new(self);
        let mut readers = JoinSet::new();
        let mut oldest_first = VecDeque::new();
        loop {
            let Ok((stream, _)) = socket.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            while readers.try_join_next().is_some() {}
            oldest_first.retain(|reader: &AbortHandle| !reader.is_finished());
            if oldest_first.len() >= READERS
                && let Some(oldest) = oldest_first.pop_front()
            {
                oldest.abort();
            }
            let shown = Arc::clone(&shown);
            let reader = readers.spawn(async move {
                let service = service_fn(|request: Request<hyper::body::Incoming>| {
                    let reply = match request.uri().path() {
                        "/metrics" => text(StatusCode::OK, &shown.text()),
                        _ => text(StatusCode::NOT_FOUND, "they are at /metrics\n"),
                    };
                    async move { Ok::<_, Infallible>(reply) }
                });
                let mut http = hyper::server::conn::http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(READER);
                let serving = http
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), service);
                let _ = timeout(READER, serving).await;
            });
            oldest_first.push_back(reader);
        }
    }

    fn text(&self) -> String {
        self.metrics.text(Gauges {
            held: self.admission.held(),
            peers: self.members.alive().len(),
        })
    }
}
