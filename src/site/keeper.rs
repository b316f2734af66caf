//! Writes the routing overlay, and forgets what is too old.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify as Told, watch};
use tokio::time::timeout;

use super::board::Board;
use super::config::Loaded;
use super::membership::{Declared, Membership as _};
use super::metrics::Metrics;
use super::now::now;
use super::state::StateFolder;

/// The least pause between two writes of the overlay.
const LEAST: Duration = Duration::from_millis(100);

/// How often what is too old is forgotten, at the latest: however seldom providers are scraped, no row outlives its time by
/// more than this.
const FORGETS: Duration = Duration::from_secs(5);

/// Keeps the overlay current: whenever rows came, and at least as often as providers are scraped.
pub struct Keeper {
    /// What the files say now.
    pub loaded: watch::Receiver<Arc<Loaded>>,
    /// What the site knows.
    pub board: Arc<Board>,
    /// Who is there.
    pub members: Arc<Declared>,
    /// The daemon's files.
    pub state: StateFolder,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Told when rows came.
    pub changed: Arc<Told>,
}

impl Keeper {
    /// Keeps it for ever.
    pub async fn run(self) {
        loop {
            let loaded = Arc::clone(&self.loaded.borrow());
            let site = &loaded.site;
            let now = now();
            let scrapes = site.scrapes.iter();
            let providers: BTreeSet<_> = scrapes.map(|scrape| scrape.provider.clone()).collect();
            let peers: BTreeSet<_> = self.members.alive().into_iter().map(|m| m.name).collect();
            self.board.prune(now, &providers, &peers);
            let (state, board, loaded) = (
                self.state.clone(),
                Arc::clone(&self.board),
                Arc::clone(&loaded),
            );
            let write = move || {
                let site = &loaded.site;
                let names = (site.network.mesh(), &site.site);
                let overlay = board.overlay(names, site.mode, &loaded.watches, now);
                state.replace("overlay.json", &overlay)
            };
            if let Ok(Err(error)) = tokio::task::spawn_blocking(write).await {
                self.metrics.overlay_failed();
                tracing::warn!(%error, "the routing overlay cannot be written");
            }
            tokio::time::sleep(LEAST).await;
            let every = site.settings.scrape_interval_ms.duration().min(FORGETS);
            let _ = timeout(every, self.changed.notified()).await;
        }
    }
}
