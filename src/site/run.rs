//! Puts the daemon together, and takes it down again.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify as Told, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::admission::{Admission, Limits};
use super::board::Board;
use super::config::{ConfigError, Loaded, Source};
use super::keeper::Keeper;
use super::listener::{Listener, bind};
use super::membership::{Declared, Membership as _};
use super::metrics::Metrics;
use super::notify::Notify;
use super::outcomes::Outcomes;
use super::poller::Poller;
use super::restart::Restart;
use super::scraper::Scraper;
use super::serve::Served;
use super::shown::Shown;
use super::state::{FORMAT, SiteStatus, StateFolder};
use super::tls::Credentials;
use super::watch::{Watch, known, waits_for};
use super::writer::{self, Ingest};
use crate::evidence::homes::FileHome;
use crate::words::{MeshName, SignalMode};

/// How long the writer may still take when the daemon ends: its budget, and a little.
const LAST: Duration = Duration::from_secs(6);

/// Why the daemon did not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// A part of it ended by itself.
    #[error("the daemon's {0} ended by itself")]
    Part(&'static str),
}

/// How the daemon ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// Its supervisor is to start it again.
    Restart(Restart),
}

fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let doing = doing.into();
    move |source| RunError::Io { doing, source }
}

/// Runs the daemon until it is told to stop, or has to be restarted.
///
/// # Errors
/// When it cannot start, or a part of it fails.
pub fn run(configs: &[PathBuf]) -> Result<Ended, RunError> {
    let source = Source::new(configs)?;
    let loaded = source.read()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(64)
        .enable_all()
        .build()
        .map_err(io("the runtime cannot be started"))?;
    let ended = runtime.block_on(serve(source, loaded));
    // What still blocks is a read of a file or a name that is being resolved: nothing waits for it.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

async fn serve(source: Source, loaded: Loaded) -> Result<Ended, RunError> {
    let started = Timestamp::now();
    let site = loaded.site.clone();
    let (mesh, name) = (site.network.mesh().cloned(), site.site.clone());
    let metrics = Arc::new(Metrics::new(
        mesh.as_ref().map_or("", MeshName::as_str),
        name.as_str(),
        site.mode.as_str(),
    ));
    let folder = Path::new(site.state.as_str());
    let state = StateFolder::open(folder).map_err(io(format!(
        "the state folder {} cannot be made",
        site.state
    )))?;
    let own_metrics = TcpListener::bind(site.metrics)
        .await
        .map_err(io(format!("cannot listen on {} for metrics", site.metrics)))?;
    let mut terminated = signal(SignalKind::terminate()).map_err(io("cannot wait for SIGTERM"))?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(io("cannot wait for SIGINT"))?;

    let board = Arc::new(Board::default());
    let members = Arc::new(Declared::default());
    members.replace(&name, &loaded.peers.peers);
    let peers = members.alive().len();
    let identity = loaded.identity.clone();
    let declared_known = identity
        .as_ref()
        .map(|identity| known(&loaded, identity.leaf.digest));
    let taken = loaded.digest();
    let (files, seen) = watch::channel(Arc::new(loaded));
    let changed = Arc::new(Told::new());
    let (end, ending) = watch::channel(false);
    let mut parts: JoinSet<&'static str> = JoinSet::new();

    let scraper = Scraper {
        loaded: seen.clone(),
        board: Arc::clone(&board),
        changed: Arc::clone(&changed),
        metrics: Arc::clone(&metrics),
        last: Outcomes::default(),
    };
    parts.spawn(async move {
        scraper.run().await;
        "scraper"
    });

    let admission = Admission::new(Limits {
        all: site.settings.connections,
        local: site.settings.local_connections,
        site: site.settings.site_connections,
        source: site.settings.source_handshakes,
    });
    let mut polling = None;
    let mut listener = None;
    if let (SignalMode::Poll, Some(identity), Some(known)) = (site.mode, &identity, declared_known)
    {
        let address = SocketAddr::new(site.settings.listen, site.port);
        let socket = bind(site.settings.listen, site.port)
            .map_err(io(format!("cannot listen on {address}")))?;
        let credentials = Arc::new(Credentials::new(Arc::clone(identity), known));
        let (ingest, thread) = writer::start(FileHome::new(state.evidence()), Arc::clone(&metrics))
            .map_err(io("the writer of evidence cannot be started"))?;
        let accepting = Arc::new(Listener {
            credentials: Arc::clone(&credentials),
            admission: admission.clone(),
            settings: site.settings.clone(),
            served: Arc::new(Served {
                board: Arc::clone(&board),
                ingest: Ingest::clone(&ingest),
                budget: site.settings.ingest_ms.duration(),
                metrics: Arc::clone(&metrics),
            }),
            metrics: Arc::clone(&metrics),
        });
        drop(ingest);
        listener = Some((tokio::spawn(accepting.run(socket, ending.clone())), thread));
        let poller = Poller {
            loaded: seen.clone(),
            members: Arc::clone(&members) as _,
            credentials: Arc::clone(&credentials),
            board: Arc::clone(&board),
            changed: Arc::clone(&changed),
            metrics: Arc::clone(&metrics),
            last: Outcomes::default(),
        };
        parts.spawn(async move {
            poller.run().await;
            "poller"
        });
        polling = Some((credentials, address));
    }

    let keeper = Keeper {
        loaded: seen.clone(),
        board: Arc::clone(&board),
        members: Arc::clone(&members),
        state: state.clone(),
        metrics: Arc::clone(&metrics),
        changed,
    };
    parts.spawn(async move {
        keeper.run().await;
        "overlay"
    });
    let shown = Shown {
        metrics: Arc::clone(&metrics),
        admission,
        members: Arc::clone(&members),
    };
    parts.spawn(async move {
        shown.run(own_metrics).await;
        "metrics"
    });

    let status = SiteStatus {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started,
        network: mesh.clone(),
        site: name.clone(),
        mode: site.mode,
        trust: site.trust,
        listens: polling.as_ref().map(|(_, address)| address.to_string()),
        certificate: identity.as_ref().map(|identity| identity.leaf.digest),
        files: Some(taken),
        peers,
        crosses: site.mode == SignalMode::Poll,
        stopping: false,
        waits_for: waits_for(site.mode),
    };
    tracing::info!(
        mesh = mesh.as_ref().map_or("none", MeshName::as_str), site = %name, mode = %site.mode, trust = %site.trust, peers,
        listens = status.listens.as_deref().unwrap_or("nowhere"), "the site runs"
    );
    let mode = site.mode;
    let mut watching = Watch {
        source,
        running: site,
        identity,
        credentials: polling.map(|(credentials, _)| credentials),
        members,
        loaded: files,
        state,
        status,
        metrics,
        is_settled: true,
        is_written: true,
        waits: waits_for(mode),
        unfit: None,
    };
    watching.look_at_itself();
    watching.stand();
    watching.write();
    let notify = Notify::from_environment();
    notify.say("READY=1");

    let ended = tokio::select! {
        _ = terminated.recv() => Ok(Ended::Stopped),
        _ = interrupted.recv() => Ok(Ended::Stopped),
        why = watching.run() => {
            tracing::info!(%why, "the daemon exits so that its supervisor restarts it");
            Ok(Ended::Restart(why))
        }
        part = parts.join_next() => Err(RunError::Part(part.and_then(Result::ok).unwrap_or("parts"))),
        ended = async {
            match &mut listener {
                Some((listener, _)) => listener.await,
                None => std::future::pending().await,
            }
        } => {
            match ended {
                Ok(Err(error)) => Err(RunError::Tls(error)),
                _ => Err(RunError::Part("listener")),
            }
        }
    };
    // Before anything is shut, so that no check holds for what is already gone.
    watching.stops();
    notify.say("STOPPING=1");
    end.send_replace(true);
    parts.shutdown().await;
    if let (Some((listener, thread)), Ok(_)) = (listener, &ended) {
        // Requests that are there get their answer, and what waits for the writer is written.
        let _ = listener.await;
        let _ = timeout(LAST, tokio::task::spawn_blocking(move || thread.join())).await;
    }
    ended
}
