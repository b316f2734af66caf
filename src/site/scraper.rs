//! Scrapes the site's own providers, every 5 s, each with its own deadline.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::board::Board;
use super::config::Loaded;
use super::fetch::{FetchError, get};
use super::metrics::Metrics;
use super::now::now;
use super::outcomes::Outcomes;
use crate::signals::Moment;
use crate::signals::contract::{self, Scrape as Rows};
use crate::signals::exposition::{ExpositionError, Limits};
use crate::signals::site::{Scrape, Settings};
use crate::words::NodeName;

/// How many providers are scraped at a time.
const PARALLEL: usize = 32;

/// Why a scrape gave nothing.
#[derive(Debug, thiserror::Error)]
enum ScrapeError {
    #[error("no answer within {0:?}")]
    Timeout(std::time::Duration),
    #[error("cannot connect: {0}")]
    Connect(std::io::Error),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("it answers with {0}")]
    Status(hyper::StatusCode),
    #[error(transparent)]
    Exposition(#[from] ExpositionError),
    #[error("the daemon is ending")]
    Ending,
}

impl ScrapeError {
    fn outcome(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Connect(_) => "connect",
            Self::Fetch(FetchError::TooLarge(_)) | Self::Exposition(_) => "too_large",
            Self::Fetch(_) | Self::Ending => "transport",
            Self::Status(_) => "status",
        }
    }
}

/// The scraper.
pub struct Scraper {
    /// What the files say now.
    pub loaded: watch::Receiver<Arc<Loaded>>,
    /// Where rows go.
    pub board: Arc<Board>,
    /// Told when there are new ones.
    pub changed: Arc<Notify>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// How the last scrapes ended.
    pub last: Outcomes,
}

impl Scraper {
    /// Scrapes for ever.
    pub async fn run(self) {
        let self_ = Arc::new(self);
        let every = self_.loaded.borrow().site.settings.scrape_interval_ms;
        let mut ticks = interval(every.duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let loaded = Arc::clone(&self_.loaded.borrow());
            let turns = Arc::new(Semaphore::new(PARALLEL));
            let mut scrapes = JoinSet::new();
            let declared = &loaded.site.scrapes;
            self_.last.keep(|name| {
                declared
                    .iter()
                    .any(|scrape| scrape.provider.as_str() == name)
            });
            for scrape in loaded.site.scrapes.clone() {
                let (scraper, loaded, turns) =
                    (Arc::clone(&self_), Arc::clone(&loaded), Arc::clone(&turns));
                scrapes.spawn(async move {
                    let _turn = turns.acquire().await;
                    scraper.one(&loaded, scrape).await;
                });
            }
            while scrapes.join_next().await.is_some() {}
            self_.changed.notify_one();
        }
    }

    async fn one(&self, loaded: &Loaded, scrape: Scrape) {
        let settings = &loaded.site.settings;
        let limit = settings.scrape_timeout_ms.duration();
        let provider = scrape.provider.clone();
        let taken = timeout(limit, take(loaded.site.site.clone(), scrape, settings))
            .await
            .unwrap_or(Err(ScrapeError::Timeout(limit)));
        match taken {
            Ok((rows, at)) => {
                let is_empty = rows.samples() == 0;
                let outcome = if is_empty { "empty" } else { "success" };
                self.metrics.scrape(provider.as_str(), outcome);
                if self.last.is_news(provider.as_str(), outcome) {
                    if is_empty {
                        tracing::warn!(%provider, flaws = rows.flaws.total(), "a provider shows nothing that is a sample");
                    } else {
                        tracing::info!(%provider, "a provider is scraped again");
                    }
                }
                for (reason, times) in rows.withheld.iter() {
                    self.metrics
                        .withheld(provider.as_str(), reason.as_str(), times);
                }
                for (flaw, times) in rows.flaws.iter() {
                    self.metrics
                        .withheld(provider.as_str(), flaw.as_str(), times);
                }
                self.board.scraped(&provider, rows.rows, at);
            }
            Err(error) => {
                self.metrics.scrape(provider.as_str(), error.outcome());
                if self.last.is_news(provider.as_str(), error.outcome()) {
                    tracing::warn!(%provider, %error, "a provider cannot be scraped");
                } else {
                    tracing::debug!(%provider, %error, "a provider still cannot be scraped");
                }
            }
        }
    }
}

async fn take(
    site: NodeName,
    scrape: Scrape,
    settings: &Settings,
) -> Result<(Rows, Moment), ScrapeError> {
    let most = usize::try_from(settings.scrape_bytes).unwrap_or(usize::MAX);
    let url = scrape.url;
    let stream = TcpStream::connect((url.host(), url.port()))
        .await
        .map_err(ScrapeError::Connect)?;
    let answer = get(stream, &url.authority(), url.path(), most).await?;
    if !answer.status.is_success() {
        return Err(ScrapeError::Status(answer.status));
    }
    let at = now();
    let limits = Limits {
        body: most,
        ..Limits::CONTRACT
    };
    let read = move || contract::scrape(&site, &scrape.provider, &answer.body, at.wall, limits);
    let rows = tokio::task::spawn_blocking(read)
        .await
        .map_err(|_| ScrapeError::Ending)??;
    Ok((rows, at))
}
