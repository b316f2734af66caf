//! Whose turn it is to be polled: each peer by a timer of its own, and no more at a time than there may be.
//!
//! Threat: most peers may be silent, or pretend to be, and each silent one holds a place for seconds. So whoever answered
//! last time comes first, and of the places a quarter is for these alone: however many are silent, whoever answers is
//! asked in time. Whoever answered last time, or was never asked, is knocked at first, briefly, and asked in earnest in a turn
//! of its own if it is not heard: so neither many that fall silent at once nor a start among many silent ones delay those
//! that answer. Among its like the one that waits longest comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::membership::Member;
use crate::words::NodeName;

/// What is known of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It answered last time.
    Answers,
    /// It answered last time, and was not heard now.
    Lapsed,
    /// It was not asked yet.
    Unknown,
    /// It did not answer last time.
    Silent,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It answered.
    Answered,
    /// It did not, or with what is of no use.
    Failed,
    /// It did not answer when it was knocked at: it is to be asked in earnest.
    Unheard,
}

#[derive(Debug)]
struct Peer {
    member: Member,
    standing: Standing,
    /// When it is to be asked, or was.
    due: Instant,
    /// Whether it is being asked.
    is_asked: bool,
    /// Whether it left while it was being asked.
    is_gone: bool,
}

/// Who waits, the one that is due first before all others.
type Queue = BTreeSet<(Instant, NodeName)>;

/// The turns.
#[derive(Debug)]
pub struct Turns {
    every: Duration,
    most: usize,
    /// The most who did not answer last time.
    most_unsure: usize,
    peers: BTreeMap<NodeName, Peer>,
    answer: Queue,
    lapsed: Queue,
    unknown: Queue,
    silent: Queue,
    asked: usize,
    asked_unsure: usize,
}

impl Turns {
    /// Nobody's, to begin with; each peer's every so often, `most` at a time.
    #[must_use]
    pub fn new(every: Duration, most: usize) -> Self {
        let most = most.max(1);
        let kept = if most == 1 { 0 } else { (most / 4).max(1) };
        Self {
            every,
            most,
            most_unsure: most.saturating_sub(kept),
            peers: BTreeMap::new(),
            answer: Queue::new(),
            lapsed: Queue::new(),
            unknown: Queue::new(),
            silent: Queue::new(),
            asked: 0,
            asked_unsure: 0,
        }
    }

    /// Takes up who is there. Whoever is new is asked at once.
    pub fn follow(&mut self, alive: Vec<Member>, now: Instant) {
        let names: BTreeSet<&NodeName> = alive.iter().map(|member| &member.name).collect();
        let gone: Vec<NodeName> = self
            .peers
            .keys()
            .filter(|name| !names.contains(*name))
            .cloned()
            .collect();
        for name in gone {
            match self.peers.get_mut(&name) {
                Some(peer) if peer.is_asked => peer.is_gone = true,
                Some(_) => {
                    self.take_back(&name);
                    self.peers.remove(&name);
                }
                None => {}
            }
        }
        for member in alive {
            if let Some(peer) = self.peers.get_mut(&member.name) {
                peer.is_gone = false;
                peer.member = member;
                continue;
            }
            let name = member.name.clone();
            let peer = Peer {
                member,
                standing: Standing::Unknown,
                due: now,
                is_asked: false,
                is_gone: false,
            };
            self.peers.insert(name.clone(), peer);
            self.queue(&name);
        }
    }

    /// Whom to ask now, and what is known of it; none: nobody is due, or as many are asked as may be.
    pub fn next(&mut self, now: Instant) -> Option<(Member, Standing)> {
        if self.asked >= self.most {
            return None;
        }
        let name = {
            let mut firsts = self.open().filter_map(|queue| queue.first());
            let (_, name) = firsts.find(|(due, _)| *due <= now)?;
            name.clone()
        };
        self.take_back(&name);
        let peer = self.peers.get_mut(&name)?;
        (peer.is_asked, peer.due) = (true, now);
        self.asked = self.asked.saturating_add(1);
        if peer.standing != Standing::Answers {
            self.asked_unsure = self.asked_unsure.saturating_add(1);
        }
        Some((peer.member.clone(), peer.standing))
    }

    /// The turn of a peer ended.
    pub fn ended(&mut self, name: &NodeName, how: Ended, now: Instant) {
        let Some(peer) = self.peers.get_mut(name).filter(|peer| peer.is_asked) else {
            return;
        };
        self.asked = self.asked.saturating_sub(1);
        if peer.standing != Standing::Answers {
            self.asked_unsure = self.asked_unsure.saturating_sub(1);
        }
        peer.is_asked = false;
        if peer.is_gone {
            self.peers.remove(name);
            return;
        }
        peer.standing = match (how, peer.standing) {
            (Ended::Answered, _) => Standing::Answers,
            (Ended::Unheard, Standing::Answers) => Standing::Lapsed,
            (Ended::Failed | Ended::Unheard, _) => Standing::Silent,
        };
        // From when it was asked, however long that took; a turn that was missed is not made up for.
        peer.due = match how {
            Ended::Unheard => now,
            Ended::Answered | Ended::Failed => now.max(peer.due + self.every),
        };
        self.queue(name);
    }

    /// When somebody is due for whom there is a place; none: when a turn ends, or somebody comes.
    #[must_use]
    pub fn wakes(&self) -> Option<Instant> {
        if self.asked >= self.most {
            return None;
        }
        let firsts = self.open().filter_map(|queue| queue.first());
        firsts.map(|(due, _)| *due).min()
    }

    /// The queues for which there is a place, as they go before each other.
    fn open(&self) -> impl Iterator<Item = &Queue> {
        let is_open = self.asked_unsure < self.most_unsure;
        let unsure = [&self.lapsed, &self.unknown, &self.silent];
        [&self.answer]
            .into_iter()
            .chain(unsure.into_iter().filter(move |_| is_open))
    }

    fn of(&mut self, standing: Standing) -> &mut Queue {
        match standing {
            Standing::Answers => &mut self.answer,
            Standing::Lapsed => &mut self.lapsed,
            Standing::Unknown => &mut self.unknown,
            Standing::Silent => &mut self.silent,
        }
    }

    fn queue(&mut self, name: &NodeName) {
        if let Some(peer) = self.peers.get(name) {
            let (standing, due) = (peer.standing, peer.due);
            self.of(standing).insert((due, name.clone()));
        }
    }

    fn take_back(&mut self, name: &NodeName) {
        if let Some(peer) = self.peers.get(name) {
            let (standing, due) = (peer.standing, peer.due);
            self.of(standing).remove(&(due, name.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::PeerHost;

    const EVERY: Duration = Duration::from_secs(30);

    fn member(name: &str) -> Member {
        Member {
            name: NodeName::new(name).unwrap(),
            host: PeerHost::new("10.0.0.1").unwrap(),
        }
    }

    /// When each was asked in the first so many seconds: one whose name begins with `a` is silent from some second on, and
    /// takes two when it is knocked at and ten else; every other one answers after a tenth of a second.
    fn asked(
        names: &[String],
        silent_from: u64,
        seconds: u64,
    ) -> (BTreeMap<String, Vec<Duration>>, usize) {
        let silent_from = Duration::from_secs(silent_from);
        let begin = Instant::now();
        let mut turns = Turns::new(EVERY, 8);
        turns.follow(names.iter().map(|name| member(name)).collect(), begin);
        let mut running: Vec<(Instant, NodeName, Ended)> = Vec::new();
        let mut asked: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        let (mut now, mut at_once) = (begin, 0);
        while now < begin + Duration::from_secs(seconds) {
            while let Some((member, standing)) = turns.next(now) {
                let name = member.name.as_str().to_owned();
                let is_silent = name.starts_with('a') && now - begin >= silent_from;
                let (takes, how) = match (is_silent, standing) {
                    (true, Standing::Unknown) => (1_000, Ended::Unheard),
                    (true, Standing::Answers) => (2_000, Ended::Unheard),
                    (true, Standing::Silent) => (5_000, Ended::Failed),
                    (true, Standing::Lapsed) => (10_000, Ended::Failed),
                    (false, _) => (100, Ended::Answered),
                };
                running.push((now + Duration::from_millis(takes), member.name, how));
                at_once = at_once.max(running.len());
                asked.entry(name).or_default().push(now - begin);
            }
            let ends = running.iter().map(|(end, ..)| *end).min();
            now = ends.into_iter().chain(turns.wakes()).min().unwrap();
            running.retain(|(end, name, how)| {
                if *end <= now {
                    turns.ended(name, *how, now);
                }
                *end > now
            });
        }
        (asked, at_once)
    }

    #[test]
    fn whoever_answers_is_asked_in_time_among_a_hundred_and_ten_who_do_not() {
        let mut names: Vec<String> = (0..110).map(|n| format!("a{n:03}")).collect();
        names.extend(["y".to_owned(), "z".to_owned()]);
        let (asked, at_once) = asked(&names, 0, 600);
        assert_eq!(at_once, 8);
        for live in ["y", "z"] {
            let times = &asked[live];
            assert!(times[0] < Duration::from_secs(20), "{:?}", times[0]);
            for pair in times.windows(2) {
                assert_eq!(pair[1] - pair[0], EVERY);
            }
        }
        // The silent ones are asked in turn, none twice before all others were.
        let counts = asked.iter().filter(|(name, _)| name.starts_with('a'));
        let counts: Vec<usize> = counts.map(|(_, times)| times.len()).collect();
        let (least, most) = (counts.iter().min(), counts.iter().max());
        assert!(
            *least.unwrap() >= 5 && most.unwrap() - least.unwrap() <= 1,
            "{counts:?}"
        );
    }

    #[test]
    fn whoever_answers_is_asked_in_time_when_a_hundred_and_ten_fall_silent_at_once() {
        let mut names: Vec<String> = (0..110).map(|n| format!("a{n:03}")).collect();
        names.extend(["y".to_owned(), "z".to_owned()]);
        let (asked, _) = asked(&names, 100, 600);
        for live in ["y", "z"] {
            for pair in asked[live].windows(2) {
                assert!(pair[1] - pair[0] < Duration::from_secs(60), "{pair:?}");
            }
        }
    }

    #[test]
    fn one_silent_peer_delays_no_other() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let (asked, _) = asked(&names, 0, 301);
        let each = |n: u32| EVERY * n;
        assert_eq!(asked["b"], (0..=10).map(each).collect::<Vec<_>>());
        assert_eq!(asked["c"], asked["b"]);
        // It is asked in earnest once nobody heard the knock, and then every thirty seconds too.
        let silent: Vec<_> = (0..=9).map(|n| Duration::from_secs(1) + each(n)).collect();
        assert_eq!(asked["a"][0], Duration::ZERO);
        assert_eq!(asked["a"][1..], silent);
    }

    #[test]
    fn who_leaves_is_forgotten_and_who_comes_is_asked_at_once() {
        let now = Instant::now();
        let mut turns = Turns::new(EVERY, 1);
        turns.follow(vec![member("a"), member("b")], now);
        let (first, standing) = turns.next(now).unwrap();
        assert_eq!((first.name.as_str(), standing), ("a", Standing::Unknown));
        assert_eq!((turns.next(now), turns.wakes()), (None, None));
        turns.follow(vec![member("c")], now);
        turns.ended(&first.name, Ended::Answered, now);
        let (second, _) = turns.next(now).unwrap();
        assert_eq!(second.name.as_str(), "c");
        turns.ended(&second.name, Ended::Answered, now);
        assert_eq!((turns.next(now), turns.wakes()), (None, Some(now + EVERY)));
        let again = turns.next(now + EVERY).unwrap();
        assert_eq!((again.0, again.1), (second, Standing::Answers));
    }
}
