//! What the site knows now: the rows of its own scrapes and those pulled from its peers.
//!
//! Invariants: a reader gets a whole state or the one before; a peer's rows stand under the name that its connection
//! verified; a row that is older than 120 s, by when it was scraped or pulled, is gone, which is neutral.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use hyper::body::Bytes;

use super::trust::Caller;
use crate::signals::exposition::Limits;
use crate::signals::observation::{Watch, observe};
use crate::signals::overlay::Overlay;
use crate::signals::query::Query;
use crate::signals::reading::LIVES_MS;
use crate::signals::response::respond;
use crate::signals::{EpochMs, ProviderName, Row};
use crate::words::{MeshName, NodeName, SignalMode};

/// The largest answer to a local caller, who sees all sites: 64 MiB.
const LOCAL: Limits = Limits {
    body: 64 * 1024 * 1024,
    ..Limits::CONTRACT
};

/// An answer of status 200.
#[derive(Debug, Clone)]
pub struct Page {
    /// The lines.
    pub body: Bytes,
    /// The whole seconds of the oldest row.
    pub age: Option<u64>,
    /// The moment by which the age was measured.
    pub date: String,
    /// How many rows did not fit.
    pub left_out: u64,
}

/// Rows of one provider or one peer, and when they were taken.
#[derive(Debug, Clone)]
struct Taken {
    at: EpochMs,
    rows: Arc<[Row]>,
}

impl Taken {
    fn lives(&self, now: EpochMs) -> bool {
        self.at.age_at(now) < LIVES_MS
    }
}

#[derive(Debug, Default)]
struct State {
    own: BTreeMap<ProviderName, Taken>,
    peers: BTreeMap<NodeName, Taken>,
}

/// A page without a query, written once a state.
#[derive(Debug)]
struct Whole {
    body: Bytes,
    oldest: Option<EpochMs>,
    left_out: u64,
}

/// One state, as callers see it.
#[derive(Debug, Default)]
struct View {
    own: Vec<Arc<[Row]>>,
    peers: Vec<Arc<[Row]>>,
    to_peer: OnceLock<Whole>,
    to_local: OnceLock<Whole>,
}

impl View {
    fn rows(&self, caller: &Caller) -> impl Iterator<Item = &Row> {
        let peers = match caller {
            Caller::Local => self.peers.as_slice(),
            Caller::Peer(_) => &[],
        };
        self.own.iter().chain(peers).flat_map(|rows| rows.iter())
    }

    fn page(&self, caller: &Caller, query: Option<&Query>, now: EpochMs) -> Page {
        let (limits, whole) = match caller {
            Caller::Local => (LOCAL, &self.to_local),
            Caller::Peer(_) => (Limits::CONTRACT, &self.to_peer),
        };
        if let Some(query) = query {
            let response = respond(self.rows(caller), query, now, limits);
            return Page {
                body: response.body.into(),
                age: response.age,
                date: response.date,
                left_out: response.left_out,
            };
        }
        let whole = whole.get_or_init(|| {
            let response = respond(self.rows(caller), &Query::default(), now, limits);
            Whole {
                body: response.body.into(),
                // What was left out may be the oldest: then the age says more than it should, never less.
                oldest: self.rows(caller).map(|row| row.stamp).min(),
                left_out: response.left_out,
            }
        });
        Page {
            body: whole.body.clone(),
            age: whole.oldest.map(|stamp| stamp.age_at(now) / 1000),
            date: now.http_date(),
            left_out: whole.left_out,
        }
    }
}

/// What the site knows.
#[derive(Debug, Default)]
pub struct Board {
    state: Mutex<State>,
    view: RwLock<Arc<View>>,
}

impl Board {
    /// Takes what a provider of the site's own showed.
    pub fn scraped(&self, provider: &ProviderName, rows: Vec<Row>, at: EpochMs) {
        let taken = Taken {
            at,
            rows: rows.into(),
        };
        let mut state = self.state();
        state.own.insert(provider.clone(), taken);
        self.show(&state);
    }

    /// Takes what a peer answered.
    pub fn pulled(&self, peer: &NodeName, rows: Vec<Row>, at: EpochMs) {
        let taken = Taken {
            at,
            rows: rows.into(),
        };
        let mut state = self.state();
        state.peers.insert(peer.clone(), taken);
        self.show(&state);
    }

    /// Forgets what is too old, and providers and peers that are no more.
    pub fn prune(
        &self,
        now: EpochMs,
        providers: &BTreeSet<ProviderName>,
        peers: &BTreeSet<NodeName>,
    ) {
        let mut state = self.state();
        let before = (state.own.len(), state.peers.len());
        state
            .own
            .retain(|provider, taken| providers.contains(provider) && taken.lives(now));
        state
            .peers
            .retain(|peer, taken| peers.contains(peer) && taken.lives(now));
        if (state.own.len(), state.peers.len()) != before {
            self.show(&state);
        }
    }

    /// The answer to a caller.
    #[must_use]
    pub fn page(&self, caller: &Caller, query: Option<&Query>, now: EpochMs) -> Page {
        let view = Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner));
        view.page(caller, query, now)
    }

    /// What gateways read.
    #[must_use]
    pub fn overlay(
        &self,
        (mesh, site): (&MeshName, &NodeName),
        mode: SignalMode,
        watches: &BTreeMap<ProviderName, Watch>,
        now: EpochMs,
    ) -> Overlay {
        let view = Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner));
        let groups = view.own.iter().chain(&view.peers);
        let observations = groups.flat_map(|rows| observe(rows, watches, mode, now));
        Overlay::new(mesh.clone(), site.clone(), mode, now, observations)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, state: &State) {
        let rows = |taken: &Taken| Arc::clone(&taken.rows);
        let view = View {
            own: state.own.values().map(rows).collect(),
            peers: state.peers.values().map(rows).collect(),
            ..View::default()
        };
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::contract::scrape;

    const NOW: EpochMs = EpochMs::new(1_700_000_000_000);

    fn rows(site: &str, provider: &str, body: &str) -> (ProviderName, Vec<Row>) {
        let site = NodeName::new(site).unwrap();
        let provider = ProviderName::new(provider).unwrap();
        let scrape = scrape(&site, &provider, body.as_bytes(), NOW, Limits::CONTRACT).unwrap();
        (provider, scrape.rows)
    }

    fn later(ms: i64) -> EpochMs {
        EpochMs::new(NOW.get() + ms)
    }

    #[test]
    fn a_peer_sees_the_sites_own_rows_and_local_those_of_peers_too() {
        let board = Board::default();
        let borealis = NodeName::new("borealis").unwrap();
        let (broker, own) = rows("atlas", "broker", "queue 1\n");
        let (_, theirs) = rows("borealis", "pool", "queue 2\n");
        board.scraped(&broker, own, NOW);
        board.pulled(&borealis, theirs, NOW);
        let text = |caller| {
            let page = board.page(&caller, None, later(2_500));
            assert_eq!(page.age, Some(2));
            let picked = board.page(&caller, Some(&Query::default()), later(2_500));
            assert_eq!(picked.body, page.body);
            String::from_utf8(page.body.to_vec()).unwrap()
        };
        insta::assert_snapshot!(text(Caller::Peer(borealis.clone())), @r#"queue{grid_provider="broker",grid_site="atlas"} 1 1700000000000"#);
        insta::assert_snapshot!(text(Caller::Local), @r#"
        queue{grid_provider="broker",grid_site="atlas"} 1 1700000000000
        queue{grid_provider="pool",grid_site="borealis"} 2 1700000000000
        "#);
        // Two minutes later nothing is known; a peer that left is forgotten at once.
        let providers = BTreeSet::from([broker]);
        board.prune(later(1_000), &providers, &BTreeSet::new());
        assert_eq!(text(Caller::Local).lines().count(), 1);
        board.prune(later(120_000), &providers, &BTreeSet::from([borealis]));
        assert!(board.page(&Caller::Local, None, NOW).body.is_empty());
    }

    #[test]
    fn the_overlay_has_scores_under_gossip_and_none_under_poll() {
        let board = Board::default();
        let body = "llm_d_epp_average_kv_cache_utilization 0.25\n";
        let (pool, own) = rows("atlas", "pool", body);
        board.scraped(&pool, own, NOW);
        let names = (
            MeshName::new("prod").unwrap(),
            NodeName::new("atlas").unwrap(),
        );
        let watch = Watch {
            strategy: crate::signals::score::Strategy::KvCachePressure,
            ..Watch::default()
        };
        let watches = BTreeMap::from([(pool, watch)]);
        let scores = |mode| {
            let overlay = board.overlay((&names.0, &names.1), mode, &watches, NOW);
            let scores = overlay.rows.iter().map(|row| row.score.map(|s| s.get()));
            scores.collect::<Vec<_>>()
        };
        assert_eq!(scores(SignalMode::Gossip), [Some(0.75)]);
        assert_eq!(scores(SignalMode::Poll), [None]);
    }
}
