//! Eight gateways' processes report at once to a running daemon, each a random history with lost answers, repeats,
//! replays and lies: every answer is what the model of `evidence_model/model.rs` says, and so is what is persisted in the
//! end.
//!
//! `GRID_SEED=n` draws other histories; `GRID_REPORTS=n` longer ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

#[path = "evidence_model/model.rs"]
#[allow(dead_code, reason = "each test uses its own part")]
mod model;
mod site_bed;

use std::net::SocketAddr;

use grid::evidence::homes::FileHome;
use grid::evidence::{BUDGET, Clearing, Document, Epoch, Standing, Writer};
use jiff::Timestamp;
use model::{Model, Row, Said, Stands, Why};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use site_bed::client::{Caller, post};
use site_bed::{Authority, Certified, Site, until};

/// How many processes report at once.
const PROCESSES: u64 = 8;

/// How many reports each makes, repeats not counted.
const REPORTS: u64 = 150;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A process, and what has to be held of it.
struct Process {
    to: SocketAddr,
    identity: Certified,
    /// Where the operator clears.
    evidence: std::path::PathBuf,
    chance: StdRng,
    caller: Caller,
    /// The model keeps no clock here: nothing ages within a test.
    model: Model,
    said: Vec<Said>,
    acknowledged: Option<Said>,
    /// How often each answer came, and how often none was waited for.
    answers: std::collections::BTreeMap<&'static str, u64>,
}

impl Process {
    fn saw(&mut self, what: &'static str) {
        *self.answers.entry(what).or_default() += 1;
    }

    fn connect(&mut self) {
        self.caller = Caller::connect(self.to, Some(&self.identity)).unwrap();
    }

    /// Says something and hears the answer, which the model knows.
    fn says(&mut self, said: &Said) {
        let row = self.model.take(said, 0);
        self.hears(said, row.status());
        self.saw(match row {
            Row::Refused => "refused",
            Row::First => "first",
            Row::NoRoom => "no room",
            Row::Identical => "identical",
            Row::Changed => "changed",
            Row::LowerSequence => "lower sequence",
            Row::LowerCounter => "lower counter",
            Row::HigherCounter => "higher counter",
            Row::Clears => "clears",
            Row::Unclean => "unclean",
        });
    }

    fn hears(&mut self, said: &Said, status: u16) {
        // 503 is unknown: the operator writes too, and may be first three times. The identical report is repeated.
        let answer = until("it is known", || {
            let answer = self.caller.ask(&request(said)).unwrap();
            (answer.status != 503).then_some(answer)
        });
        assert_eq!(answer.status, status, "{said:?}: {answer:?}");
        let echo = |name| answer.header(name).map(str::to_owned);
        let echoes = (echo("x-grid-ingest-epoch"), echo("x-grid-ingest-sequence"));
        if status == 204 {
            let (epoch, sequence) = (format!("{:032x}", said.epoch), said.sequence.to_string());
            assert_eq!(echoes, (Some(epoch), Some(sequence)));
            self.acknowledged = Some(said.clone());
        } else {
            assert_eq!(echoes, (None, None), "{said:?}");
        }
    }

    /// The next report: now and then its answer is lost, and it is repeated until it is acknowledged.
    fn reports(&mut self) {
        let before = self.said.last().unwrap().clone();
        let next = Said {
            sequence: before.sequence + self.chance.random_range(1..3),
            counter: before.counter + [0, 0, 0, 1, 7][self.chance.random_range(0..5)],
            clean: self.chance.random_bool(0.8),
            ..before
        };
        self.said.push(next.clone());
        if self.chance.random_bool(0.2) {
            self.caller.send(request(&next).as_bytes()).unwrap();
            self.connect();
            // Whether it was taken is not known: 204 either way.
            let row = self.model.take(&next, 0);
            self.hears(&next, row.status());
            self.saw("repeated without an answer");
        } else {
            self.says(&next);
        }
        if self.chance.random_bool(0.2) {
            self.says(&next);
        }
    }

    /// Something that has no effect, wherever it comes from.
    fn lies(&mut self) {
        let last = self.said.last().unwrap().clone();
        let lie = match self.chance.random_range(0..6) {
            0 => self.said[self.chance.random_range(0..self.said.len())].clone(),
            1 => Said {
                clean: !last.clean,
                ..last
            },
            2 => Said {
                replica: "gw-b".to_owned(),
                ..last
            },
            3 => Said {
                sequence: last.sequence + 1,
                counter: last.counter.saturating_sub(1),
                // With the counter at 0 that is a newer report like any other.
                ..last
            },
            4 => Said {
                sequence: u64::MAX,
                clean: true,
                ..last
            },
            _ => Said {
                sequence: last.sequence + 1,
                counter: u64::MAX,
                clean: true,
                ..last
            },
        };
        self.says(&lie);
        let held = self.model.processes[&lie.epoch].last().clone();
        if held == lie {
            self.said.push(lie);
        }
    }

    /// An operator clears this process's evidence while the daemon runs.
    fn is_cleared(&mut self) {
        let epoch = self.said.last().unwrap().epoch;
        let expected = match self.model.clear(epoch, 0).unwrap() {
            true => Clearing::Cleared,
            false => Clearing::NothingInForce,
        };
        let epoch = Epoch::from_bytes(epoch.to_be_bytes());
        let mut writer = Writer::new(FileHome::new(&self.evidence));
        // Many write at once, so the three attempts may be exhausted. That is unknown, and clearing again is safe.
        let first = writer.clear(epoch, Timestamp::now(), &|| BUDGET);
        match first {
            Ok(cleared) => assert_eq!(cleared, expected),
            Err(_) => until("it is cleared", || {
                let again = writer.clear(epoch, Timestamp::now(), &|| BUDGET);
                again.ok().map(|again| assert_ne!(again, Clearing::Unknown))
            }),
        }
        self.saw(match expected {
            Clearing::Cleared => "cleared",
            _ => "nothing to clear",
        });
    }

    fn history(mut self, reports: u64) -> Self {
        let first = self.said[0].clone();
        self.says(&first);
        for _ in 0..reports {
            match self.chance.random_range(0..10) {
                0..6 => self.reports(),
                6..9 => self.lies(),
                _ => self.is_cleared(),
            }
        }
        // Three end with the greatest sequence.
        if first.epoch.is_multiple_of(3) {
            let last = self.said.last().unwrap().clone();
            self.says(&Said {
                sequence: u64::MAX,
                clean: false,
                ..last
            });
        }
        self
    }
}

fn request(said: &Said) -> String {
    post(&format!(
        "x-grid-ingest-version: 1\r\nx-grid-ingest-epoch: {:032x}\r\nx-grid-ingest-sequence: {}\r\n\
         x-grid-ingest-rejected: {}\r\nx-grid-ingest-clean: {}\r\nx-grid-ingest-replica: {}\r\n",
        said.epoch, said.sequence, said.counter, said.clean, said.replica
    ))
}

#[test]
fn eight_processes_with_random_histories_are_held_as_the_model_says() {
    let seed = number("GRID_SEED").unwrap_or(0);
    let reports = number("GRID_REPORTS").unwrap_or(REPORTS);
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    site.start();
    let processes: Vec<_> = (0..PROCESSES)
        .map(|nth| {
            let (to, identity) = (site.socket(), site.identity.clone());
            let evidence = site.state("evidence.json");
            std::thread::spawn(move || {
                let mut chance = StdRng::seed_from_u64(seed * PROCESSES + nth);
                let first = Said {
                    epoch: (chance.random::<u128>() / 3) * 3 + u128::from(nth % 3),
                    sequence: chance.random_range(0..3),
                    counter: chance.random_range(0..2),
                    clean: chance.random_bool(0.5),
                    replica: format!("gw-{nth}"),
                };
                let process = Process {
                    caller: Caller::connect(to, Some(&identity)).unwrap(),
                    to,
                    identity,
                    evidence,
                    chance,
                    model: Model::default(),
                    said: vec![first],
                    acknowledged: None,
                    answers: std::collections::BTreeMap::new(),
                };
                process.history(reports)
            })
        })
        .collect();
    let processes: Vec<Process> = processes
        .into_iter()
        .map(|process| process.join().unwrap())
        .collect();

    let document = std::fs::read(site.state("evidence.json")).unwrap();
    let document = Document::from_json(&document).unwrap();
    assert_eq!(document.ledger().records().len(), processes.len());
    let mut all = Model::default();
    let mut seen = std::collections::BTreeMap::<_, u64>::new();
    for process in processes {
        let (epoch, held) = process.model.processes.first_key_value().unwrap();
        let record = document
            .ledger()
            .record(Epoch::from_bytes(epoch.to_be_bytes()));
        let record = record.unwrap_or_else(|| panic!("{epoch:032x} is missing"));
        let report = record.report();
        let there = Said {
            epoch: *epoch,
            sequence: report.sequence(),
            counter: report.rejected(),
            clean: report.clean(),
            replica: report.replica().to_string(),
        };
        assert_eq!(&there, held.last());
        let standing = match record.standing() {
            Standing::Clean => Stands::Clean,
            Standing::Rejected => Stands::Rejected,
            Standing::Cleared { .. } => Stands::Cleared(0),
        };
        assert_eq!(standing, held.stands(), "{there:?}");
        // Whatever was acknowledged last is held, or something newer.
        assert!(there.sequence >= process.acknowledged.unwrap().sequence);
        all.processes.extend(process.model.processes);
        for (what, count) in process.answers {
            *seen.entry(what).or_default() += count;
        }
    }
    let reason = document.condition().reason();
    let why = match all.condition(0) {
        Why::Rejected => grid::evidence::Reason::Rejected,
        Why::NoReports => grid::evidence::Reason::NoReports,
        Why::Stale => grid::evidence::Reason::Stale,
        Why::Clean => grid::evidence::Reason::Clean,
    };
    assert_eq!(reason, why);
    for what in [
        "refused",
        "first",
        "identical",
        "changed",
        "lower sequence",
        "lower counter",
        "higher counter",
        "clears",
        "unclean",
        "repeated without an answer",
        "cleared",
        "nothing to clear",
    ] {
        assert!(seen.contains_key(what), "never seen: {what}: {seen:?}");
    }
    assert!(!seen.contains_key("no room"));
}
