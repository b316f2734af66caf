use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::evidence::{Ledger, Standing, Verdict};

/// Epochs in a row.
struct Counted(u8);

impl Chance for Counted {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0 += 1;
        bytes.fill(self.0);
    }
}

fn replica() -> Replica {
    Replica::new("gw-0").unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn fresh() -> Reporter {
    Reporter::new(replica(), &mut Counted(0))
}

/// What is sent next: its sequence, its count, its flag.
fn next(reporter: &mut Reporter) -> (u64, u64, bool) {
    let report = reporter.next(&[]).unwrap();
    (report.sequence(), report.rejected(), report.clean())
}

fn settle(reporter: &mut Reporter) -> Vec<(u64, u64, bool)> {
    let mut sent = Vec::new();
    while let Some(report) = reporter.next(&[]) {
        sent.push((report.sequence(), report.rejected(), report.clean()));
        reporter.acknowledged(&report);
    }
    sent
}

#[test]
fn a_report_is_the_same_until_it_is_acknowledged_and_a_later_one_follows_it() {
    let mut reporter = fresh();
    reporter.observe(Count::By(1), false).unwrap();
    assert_eq!(next(&mut reporter), (1, 1, false));
    reporter.observe(Count::By(0), true).unwrap();
    assert_eq!(next(&mut reporter), (1, 1, false));
    assert_eq!(settle(&mut reporter), [(1, 1, false), (2, 1, true)]);
    assert_eq!(reporter.next(&[]), None);
    reporter.observe(Count::To(1), true).unwrap();
    assert_eq!(settle(&mut reporter), [(3, 1, true)]);
}

#[test]
fn what_was_not_sent_is_drawn_together_and_its_rejection_is_seen() {
    let mut reporter = fresh();
    reporter.observe(Count::To(0), true).unwrap();
    reporter.next(&[]).unwrap();
    // Not clean with the same count, then clean: the rejection is reported, and ends.
    reporter.observe(Count::By(0), true).unwrap();
    reporter.observe(Count::By(0), false).unwrap();
    reporter.observe(Count::By(0), true).unwrap();
    reporter.observe(Count::By(0), true).unwrap();
    assert_eq!(reporter.waiting().len(), 3);
    // A rejection after that outlasts it, and one that says clean is one.
    reporter.observe(Count::To(4), true).unwrap();
    reporter.observe(Count::To(6), true).unwrap();
    assert_eq!(reporter.waiting().len(), 2);
    reporter.observe(Count::To(6), true).unwrap();
    assert_eq!(
        settle(&mut reporter),
        [(1, 0, true), (2, 6, true), (3, 6, true)]
    );
}

#[test]
fn what_cannot_be_reported_changes_nothing() {
    let mut reporter = fresh();
    reporter.observe(Count::To(5), false).unwrap();
    let before = reporter.clone();
    let decreased = ReporterError::Decreased { known: 5, said: 4 };
    for (count, clean, why) in [
        (Count::To(4), true, decreased),
        (Count::By(u64::MAX), false, ReporterError::TooGreat),
        (Count::To(u64::MAX), true, ReporterError::Terminal),
    ] {
        assert_eq!(reporter.observe(count, clean), Err(why));
        assert_eq!(reporter, before);
    }
    // The greatest count itself can be said, and after it only that.
    reporter.observe(Count::To(u64::MAX), false).unwrap();
    assert_eq!(
        reporter.observe(Count::By(0), true),
        Err(ReporterError::Terminal)
    );
    assert_eq!(settle(&mut reporter), [(1, u64::MAX, false)]);
    reporter.current.sequence = LAST - 1;
    assert_eq!(
        reporter.observe(Count::By(0), false),
        Err(ReporterError::Exhausted)
    );
}

#[test]
fn what_a_process_left_is_sent_before_the_next_ones_and_stays_its_own() {
    let mut reporter = fresh();
    let first = reporter.epoch();
    assert_eq!(reporter.start(&mut Counted(1)), Ok(false));
    reporter.observe(Count::By(2), false).unwrap();
    reporter.next(&[]).unwrap();
    assert_eq!(reporter.start(&mut Counted(1)), Ok(true));
    reporter.observe(Count::By(0), true).unwrap();
    assert_ne!(reporter.epoch(), first);
    assert_eq!(reporter.rejected(), 0);
    // One for which there is no room holds up nobody.
    assert_eq!(reporter.next(&[first]).unwrap().epoch(), reporter.epoch());
    let left = reporter.next(&[]).unwrap();
    assert_eq!((left.epoch(), left.rejected()), (first, 2));
    // One that is refused for good is given up, once its process is gone.
    let own = reporter.next(&[first]).unwrap();
    assert!(!reporter.refused(&own));
    assert!(reporter.refused(&left));
    assert_eq!(settle(&mut reporter), [(1, 0, true)]);
}

#[test]
fn of_many_processes_rejections_are_kept_and_merely_clean_ones_go() {
    let mut reporter = fresh();
    let mut chance = Counted(1);
    for process in 0..EARLIER_MOST {
        reporter.observe(Count::By(0), process == 3).unwrap();
        assert_eq!(reporter.start(&mut chance), Ok(true));
    }
    reporter.observe(Count::By(0), false).unwrap();
    assert_eq!(reporter.start(&mut chance), Ok(true));
    assert!(reporter.waiting().iter().all(|waiting| !waiting.clean));
    reporter.observe(Count::By(0), false).unwrap();
    let before = reporter.clone();
    assert_eq!(
        reporter.start(&mut chance),
        Err(ReporterError::TooManyProcesses)
    );
    assert_eq!(reporter, before);
    let json = reporter.to_json().unwrap();
    assert!(json.len() < STATE_MOST / 4, "{}", json.len());
    assert_eq!(Reporter::from_json(&json), Ok(reporter));
}

#[test]
fn a_204_is_believed_only_with_the_echo_of_this_very_report() {
    let report = Report::new(Epoch::from_bytes([1; 16]), 7, 0, true, replica()).unwrap();
    let epoch = "01".repeat(16);
    let of = |lines: &[(&str, &str)]| {
        let lines = lines.iter().map(|(name, value)| (*name, value.as_bytes()));
        Meaning::of(&report, 204, lines)
    };
    let (e, s) = ("X-Grid-Ingest-Epoch", "x-grid-ingest-sequence");
    assert_eq!(
        of(&[(s, "7"), (e, &epoch), ("date", "x")]),
        Meaning::Acknowledged
    );
    for wrong in [
        &[][..],
        &[(s, "7")],
        &[(e, &epoch)],
        &[(e, &epoch), (s, "8")],
        &[(e, &epoch), (s, "07")],
        &[(e, &epoch), (s, "7"), (s, "7")],
        &[(e, &epoch), (s, "7"), (s, "8")],
        &[(e, &"02".repeat(16)), (s, "7")],
    ] {
        assert_eq!(of(wrong), Meaning::NotEchoed, "{wrong:?}");
    }
    let status = |status| Meaning::of(&report, status, []);
    assert_eq!(status(503), Meaning::Unknown);
    assert_eq!([status(404), status(405)], [Meaning::Unsupported; 2]);
    assert_eq!([status(400), status(409)], [Meaning::Refused; 2]);
    assert_eq!(
        (status(507), status(403)),
        (Meaning::NoRoom, Meaning::NotLocal)
    );
    assert_eq!([status(200), status(301)], [Meaning::Strange; 2]);
}

#[test]
fn a_state_that_grid_did_not_write_is_refused() {
    let mut reporter = fresh();
    reporter.observe(Count::By(3), false).unwrap();
    reporter.next(&[]).unwrap();
    reporter.observe(Count::By(1), false).unwrap();
    let json = String::from_utf8(reporter.to_json().unwrap()).unwrap();
    assert_eq!(Reporter::from_json(json.as_bytes()), Ok(reporter));
    for (old, new) in [
        ("\"format\": 1", "\"format\": 0"),
        ("\"sequence\": \"1\"", "\"sequence\": \"0\""),
        ("\"sequence\": \"1\"", "\"sequence\": 1"),
        ("\"rejected\": \"4\"", "\"rejected\": \"2\""),
        ("\"acknowledged\": \"0\"", "\"acknowledged\": \"4\""),
        ("\"clean\": false", "\"clean\": false, \"more\": 1"),
        ("[\n      false\n    ]", "[ false, false ]"),
        ("[\n      false\n    ]", "[ ]"),
        ("\"gw-0\"", "\"GW\""),
    ] {
        let wrong = json.replace(old, new);
        assert_ne!(wrong, json, "{old}");
        assert!(
            matches!(
                Reporter::from_json(wrong.as_bytes()),
                Err(StateError::Damaged(_))
            ),
            "{new}"
        );
    }
    assert_eq!(
        Reporter::from_json(b"{ \"format\": 2 }"),
        Err(StateError::Newer(2))
    );
    assert_eq!(
        Reporter::from_json(&vec![b' '; STATE_MOST + 1]),
        Err(StateError::TooLarge)
    );
    assert!(Reporter::from_json(b"").is_err());
}

/// What becomes of one run of the reporter.
#[derive(Debug, Clone, Copy)]
enum End {
    /// It dies before its state is on disk.
    BeforeDisk,
    /// It dies once its state is there, before it sends.
    BeforeSend,
    /// Its report is lost.
    Lost,
    /// Its report arrives, the answer is lost.
    Unanswered,
    /// It dies with the answer in its hands.
    Answered,
    /// All goes well, and it goes on with what waits.
    Well,
}

/// A step of a history.
#[derive(Debug, Clone, Copy)]
enum Step {
    Observe {
        more: u64,
        clean: bool,
        end: End,
    },
    Start {
        end: End,
    },
    Retry {
        end: End,
    },
    /// An operator clears the present process's evidence.
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = || {
        prop_oneof![
            Just(End::BeforeDisk),
            Just(End::BeforeSend),
            Just(End::Lost),
            Just(End::Unanswered),
            Just(End::Answered),
            Just(End::Well),
        ]
    };
    let step = prop_oneof![
        8 => (0_u64..3, any::<bool>(), end())
            .prop_map(|(more, clean, end)| Step::Observe { more, clean, end }),
        1 => end().prop_map(|end| Step::Start { end }),
        3 => end().prop_map(|end| Step::Retry { end }),
        1 => Just(Step::Clear),
    ];
    proptest::collection::vec(step, 1..60)
}

/// What is known of one process.
#[derive(Debug, Default)]
struct Expected {
    count: u64,
    /// A rejection of its that the ledger has not shown yet.
    unseen: bool,
    /// Whether its last observation was one.
    rejects: bool,
    is_cleared: bool,
}

struct World {
    disk: Vec<u8>,
    chance: Counted,
    ledger: Ledger,
    now: i64,
    expected: BTreeMap<Epoch, Expected>,
}

impl World {
    fn run(&mut self, step: Step) {
        let mut reporter = Reporter::from_json(&self.disk).unwrap();
        let (observed, end) = match step {
            Step::Observe { more, clean, end } => {
                reporter.observe(Count::By(more), clean).unwrap();
                (Some((more, clean)), end)
            }
            Step::Start { end } => {
                if self.expected.len() < EARLIER_MOST {
                    reporter.start(&mut self.chance).unwrap();
                }
                (None, end)
            }
            Step::Retry { end } => (None, end),
            Step::Clear => {
                self.ledger.clear(reporter.epoch(), at(self.now));
                let expected = self.expected.entry(reporter.epoch()).or_default();
                expected.is_cleared = true;
                return;
            }
        };
        let mut report = reporter.next(&[]);
        if matches!(end, End::BeforeDisk) {
            return; // nobody was told that it was taken up
        }
        self.disk = reporter.to_json().unwrap();
        if let Some((more, clean)) = observed {
            let expected = self.expected.entry(reporter.epoch()).or_default();
            expected.count += more;
            expected.rejects = more > 0 || !clean;
            expected.unseen |= expected.rejects;
            expected.is_cleared &= !expected.rejects;
        }
        if matches!(end, End::BeforeSend | End::Lost) {
            return;
        }
        while let Some(sent) = report {
            self.arrives(&sent);
            if matches!(end, End::Unanswered) {
                return;
            }
            reporter.acknowledged(&sent);
            if matches!(end, End::Answered) {
                return;
            }
            report = reporter.next(&[]);
            self.disk = reporter.to_json().unwrap();
        }
    }

    fn arrives(&mut self, report: &Report) {
        self.now += 1;
        let verdict = self.ledger.report(report, at(self.now));
        assert!(
            matches!(verdict, Verdict::Accepted { .. } | Verdict::Identical),
            "{verdict:?}: {report:?}"
        );
        let record = self.ledger.record(report.epoch()).unwrap();
        if record.standing() == Standing::Rejected {
            self.expected.entry(report.epoch()).or_default().unseen = false;
        }
    }
}

proptest! {
    #[test]
    fn whatever_dies_and_is_lost_no_report_is_a_contradiction_and_no_rejection_is_lost(steps in steps()) {
        let mut chance = Counted(0);
        let disk = Reporter::new(replica(), &mut chance).to_json().unwrap();
        let mut world = World {
            disk,
            chance,
            ledger: Ledger::new(),
            now: 0,
            expected: BTreeMap::new(),
        };
        for step in steps {
            world.run(step);
        }
        world.run(Step::Retry { end: End::Well });
        prop_assert!(Reporter::from_json(&world.disk).unwrap().waiting().is_empty());
        for (epoch, expected) in &world.expected {
            let Some(record) = world.ledger.record(*epoch) else {
                prop_assert!(expected.count == 0 && !expected.rejects);
                continue;
            };
            prop_assert_eq!(record.report().rejected(), expected.count);
            prop_assert!(!expected.unseen, "{}: {:?}", epoch, expected);
            if !expected.is_cleared {
                prop_assert_eq!(record.standing() == Standing::Rejected, expected.rejects);
            }
        }
    }
}
