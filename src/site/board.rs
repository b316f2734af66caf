//! What the site knows now: the rows of its own scrapes and those pulled from its peers.
//!
//! Invariants: a reader gets a whole state or the one before; a peer's rows stand under the name that its connection
//! verified; a row that was scraped or pulled 120 s ago is gone, which is neutral. These 120 s are of time that passed:
//! when the machine's time is set, on or back, rows grow neither old nor young by that, and their stamps go with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use hyper::body::Bytes;

use super::trust::Caller;
use crate::signals::clock::Steady;
use crate::signals::exposition::Limits;
use crate::signals::observation::{Watch, observe};
use crate::signals::overlay::Overlay;
use crate::signals::query::Query;
use crate::signals::reading::LIVES_MS;
use crate::signals::response::respond;
use crate::signals::{EpochMs, Moment, ProviderName, Row};
use crate::words::{MeshName, NodeName, SignalMode};

/// The largest answer to a local caller, who sees all sites: 64 MiB.
const LOCAL: Limits = Limits {
    body: 64 * 1024 * 1024,
    ..Limits::CONTRACT
};

/// What the two clocks of a machine may differ by, in milliseconds, before its time is taken as set: one that is only slewed
/// makes no row old.
const SLEWED_MS: u64 = 1_000;

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
    at: Steady,
    rows: Arc<[Row]>,
}

impl Taken {
    fn lives(&self, now: Moment) -> bool {
        self.at.age_at(now.steady) < LIVES_MS
    }

    /// Moves the stamps by so many milliseconds, as the time was.
    fn go_with(&mut self, set: i64) {
        let moved = self.rows.iter().map(|row| Row {
            stamp: row.stamp.before(set.saturating_neg()),
            ..row.clone()
        });
        self.rows = moved.collect();
    }
}

#[derive(Debug, Default)]
struct State {
    own: BTreeMap<ProviderName, Taken>,
    peers: BTreeMap<NodeName, Taken>,
    /// When it was last looked at: the stamps are by the time as it was set then.
    seen: Option<Moment>,
}

/// By how much the time was set between two looks; none, if it was at most slewed.
fn set(seen: Option<Moment>, now: Moment) -> Option<i64> {
    let set = now.set_since(seen?);
    (set.unsigned_abs() > SLEWED_MS).then_some(set)
}

impl State {
    /// Whether the time was set since the last look; then the stamps go with it.
    fn see(&mut self, now: Moment) -> bool {
        let set = set(self.seen.replace(now), now);
        if let Some(set) = set {
            let all = self.own.values_mut().chain(self.peers.values_mut());
            all.for_each(|taken| taken.go_with(set));
        }
        set.is_some()
    }
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
    seen: Option<Moment>,
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
    pub fn scraped(&self, provider: &ProviderName, rows: Vec<Row>, at: Moment) {
        let taken = Taken {
            at: at.steady,
            rows: rows.into(),
        };
        let mut state = self.state();
        state.see(at);
        state.own.insert(provider.clone(), taken);
        self.show(&state);
    }

    /// Takes what a peer answered.
    pub fn pulled(&self, peer: &NodeName, rows: Vec<Row>, at: Moment) {
        let taken = Taken {
            at: at.steady,
            rows: rows.into(),
        };
        let mut state = self.state();
        state.see(at);
        state.peers.insert(peer.clone(), taken);
        self.show(&state);
    }

    /// Forgets what is too old, and providers and peers that are no more.
    pub fn prune(
        &self,
        now: Moment,
        providers: &BTreeSet<ProviderName>,
        peers: &BTreeSet<NodeName>,
    ) {
        let mut state = self.state();
        let was_set = state.see(now);
        let before = (state.own.len(), state.peers.len());
        state
            .own
            .retain(|provider, taken| providers.contains(provider) && taken.lives(now));
        state
            .peers
            .retain(|peer, taken| peers.contains(peer) && taken.lives(now));
        if was_set || (state.own.len(), state.peers.len()) != before {
            self.show(&state);
        }
    }

    /// The answer to a caller.
    #[must_use]
    pub fn page(&self, caller: &Caller, query: Option<&Query>, now: Moment) -> Page {
        self.view(now).page(caller, query, now.wall)
    }

    /// What gateways read.
    #[must_use]
    pub fn overlay(
        &self,
        (mesh, site): (Option<&MeshName>, &NodeName),
        mode: SignalMode,
        watches: &BTreeMap<ProviderName, Watch>,
        now: Moment,
    ) -> Overlay {
        let view = self.view(now);
        let now = now.wall;
        let groups = view.own.iter().chain(&view.peers);
        let observations = groups.flat_map(|rows| observe(rows, watches, mode, now));
        Overlay::new(mesh.cloned(), site.clone(), mode, now, observations)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state as it is to be seen at `now`, with stamps by the time as it is set now.
    fn view(&self, now: Moment) -> Arc<View> {
        let view = Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner));
        if set(view.seen, now).is_none() {
            return view;
        }
        let mut state = self.state();
        state.see(now);
        self.show(&state);
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn show(&self, state: &State) {
        let rows = |taken: &Taken| Arc::clone(&taken.rows);
        let view = View {
            own: state.own.values().map(rows).collect(),
            peers: state.peers.values().map(rows).collect(),
            seen: state.seen,
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

    /// So many milliseconds later, when the time was set by so many.
    fn set_later(set: i64, passed: u64) -> Moment {
        Moment {
            wall: EpochMs::new(NOW.get() + set + i64::try_from(passed).unwrap()),
            steady: Steady::new(1_000_000 + passed),
        }
    }

    fn later(passed: u64) -> Moment {
        set_later(0, passed)
    }

    #[test]
    fn a_peer_sees_the_sites_own_rows_and_local_those_of_peers_too() {
        let board = Board::default();
        let borealis = NodeName::new("borealis").unwrap();
        let (broker, own) = rows("atlas", "broker", "queue 1\n");
        let (_, theirs) = rows("borealis", "pool", "queue 2\n");
        board.scraped(&broker, own, later(0));
        board.pulled(&borealis, theirs, later(0));
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
        assert!(
            board
                .page(&Caller::Local, None, later(120_000))
                .body
                .is_empty()
        );
    }

    #[test]
    fn the_overlay_has_scores_under_gossip_and_none_under_poll() {
        let board = Board::default();
        let body = "llm_d_epp_average_kv_cache_utilization 0.25\n";
        let (pool, own) = rows("atlas", "pool", body);
        board.scraped(&pool, own, later(0));
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
            let overlay = board.overlay((Some(&names.0), &names.1), mode, &watches, later(0));
            let scores = overlay.rows.iter().map(|row| row.score.map(|s| s.get()));
            scores.collect::<Vec<_>>()
        };
        assert_eq!(scores(SignalMode::Gossip), [Some(0.75)]);
        assert_eq!(scores(SignalMode::Poll), [None]);
    }

    /// The ages in milliseconds, in the overlay, of what a site and a peer of its said before the time was set.
    fn ages(set: i64, passed: u64) -> Vec<u64> {
        let board = Board::default();
        let borealis = NodeName::new("borealis").unwrap();
        let (broker, own) = rows("atlas", "broker", "llm_d_epp_average_queue_size 1\n");
        let (_, theirs) = rows("borealis", "pool", "llm_d_epp_average_queue_size 2\n");
        board.scraped(&broker, own, later(0));
        board.pulled(&borealis, theirs, later(0));
        let now = set_later(set, passed);
        board.prune(now, &BTreeSet::from([broker]), &BTreeSet::from([borealis]));
        let mesh = MeshName::new("prod").unwrap();
        let site = NodeName::new("atlas").unwrap();
        let overlay = board.overlay(
            (Some(&mesh), &site),
            SignalMode::Poll,
            &BTreeMap::new(),
            now,
        );
        let page = board.page(&Caller::Local, None, now);
        let ages: Vec<u64> = overlay
            .rows
            .iter()
            .map(|row| match row.signals.queue_depth {
                crate::signals::overlay::Known::Fresh { age_ms, .. } => age_ms,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(page.age, ages.first().map(|age| age / 1_000));
        ages
    }

    #[test]
    fn a_row_lives_for_two_minutes_that_passed_whatever_the_time_is_set_to() {
        let (hour, decade) = (3_600_000, 315_360_000_000);
        for set in [0, hour, -hour, decade, -decade, 2_000, -2_000] {
            assert_eq!(ages(set, 0), [0, 0], "{set}");
            assert_eq!(ages(set, 60_000), [60_000, 60_000], "{set}");
            assert_eq!(ages(set, 119_999), [119_999, 119_999], "{set}");
            assert!(ages(set, 120_000).is_empty(), "{set}");
        }
    }

    #[test]
    fn what_is_pulled_after_the_time_was_set_stands_beside_what_was_before() {
        let board = Board::default();
        let (broker, own) = rows("atlas", "broker", "queue 1\n");
        board.scraped(&broker, own, later(0));
        // Slewed by less than a second at each of two looks: nobody set it.
        board.prune(
            set_later(900, 5_000),
            &BTreeSet::from([broker.clone()]),
            &BTreeSet::new(),
        );
        let other = NodeName::new("borealis").unwrap();
        let (_, theirs) = rows("borealis", "pool", "queue 2\n");
        board.pulled(&other, theirs, set_later(-3_600_000, 10_000));
        let page = board.page(&Caller::Local, None, set_later(-3_600_000, 10_000));
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        let stamps: Vec<i64> = text
            .lines()
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .map(|stamp: i64| stamp - NOW.get())
            .collect();
        assert_eq!(stamps, [-3_600_900, 0]);
        // Nobody forgot what is old since: whoever asks first sees that the time was set.
        let page = board.page(&Caller::Local, None, set_later(86_400_000, 12_000));
        assert_eq!(page.age, Some(12));
    }
}
