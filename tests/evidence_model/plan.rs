//! What happens in an interleaving: reporting processes, an operator, a clock.

use proptest::prelude::*;
use proptest::sample::select;

use super::model::SECOND;

/// One thing that happens. A `who` is one of the processes that there are, counted round.
#[derive(Debug, Clone)]
pub enum Step {
    /// A process starts and makes its first report.
    Start { reported: Reported },
    /// So many processes start at once; every `rejected`th has rejected something (0: none).
    Crowd { many: usize, rejected: usize },
    /// A process makes its next report.
    Report { who: usize, reported: Reported },
    /// It says the last thing again, as one does whose report or answer was lost.
    Repeat { who: usize },
    /// Something that it said before comes again.
    Replay { who: usize, back: usize },
    /// Its last report comes with something else in it.
    ChangedDuplicate { who: usize, what: Change },
    /// A newer report with a counter that is so much lower.
    Decrease { who: usize, by: u64, clean: bool },
    /// A report with the greatest sequence, or counter, or both.
    Greatest {
        who: usize,
        sequence: bool,
        counter: bool,
        clean: bool,
    },
    /// The clock goes on, or jumps back.
    Clock { by: i128 },
    /// The operator clears a process.
    Clear { who: usize },
    /// The operator clears a process that nobody knows.
    ClearNobody,
    /// The operator clears whoever is silent.
    ClearStale,
    /// The daemon looks at its clock.
    Redate,
    /// The daemon ends, and another one reads what was written.
    Restart,
    /// Somebody looks at the condition, with a clock that goes another way.
    Look { by: i128 },
}

/// A report.
#[derive(Debug, Clone)]
pub struct Reported {
    /// How far the sequence rises.
    pub rise: u64,
    /// How many more ingests were rejected.
    pub more: u64,
    pub clean: bool,
    pub on_the_way: Way,
}

/// What becomes of it on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Arrives,
    /// It is taken, and the process does not hear so: it repeats.
    AnswerLost,
    /// It never comes: what the process repeats is taken as new.
    Lost,
}

/// What differs in a changed duplicate.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    HigherCounter,
    LowerCounter,
    Flag,
    Replica,
}

fn reported() -> impl Strategy<Value = Reported> {
    let rise = prop_oneof![8 => Just(1), 2 => 1..9_u64, 1 => Just(u64::MAX / 2)];
    let more = prop_oneof![6 => Just(0), 2 => Just(1), 1 => 1..99_u64, 1 => Just(u64::MAX / 3)];
    let way =
        prop_oneof![5 => Just(Way::Arrives), 2 => Just(Way::AnswerLost), 1 => Just(Way::Lost)];
    (rise, more, prop::bool::weighted(0.75), way).prop_map(|(rise, more, clean, on_the_way)| {
        Reported {
            rise,
            more,
            clean,
            on_the_way,
        }
    })
}

/// Around 300 s above all.
const TIMES: &[i128] = &[
    1,
    SECOND,
    10 * SECOND,
    149 * SECOND,
    150 * SECOND,
    300 * SECOND - 1,
    300 * SECOND,
    300 * SECOND + 1,
    1_000 * SECOND,
    86_400 * SECOND,
];

fn time() -> impl Strategy<Value = i128> {
    prop_oneof![4 => select(TIMES), 1 => 0..400 * SECOND]
}

fn clock() -> impl Strategy<Value = i128> {
    prop_oneof![3 => time(), 1 => time().prop_map(|by| -by)]
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..200_usize;
    let change = select(
        &[
            Change::HigherCounter,
            Change::LowerCounter,
            Change::Flag,
            Change::Replica,
        ][..],
    );
    prop_oneof![
        3 => reported().prop_map(|reported| Step::Start { reported }),
        1 => (select(&[2_usize, 30, 63, 66][..]), 0..4_usize)
            .prop_map(|(many, rejected)| Step::Crowd { many, rejected }),
        12 => (who(), reported()).prop_map(|(who, reported)| Step::Report { who, reported }),
        3 => who().prop_map(|who| Step::Repeat { who }),
        2 => (who(), 1..9_usize).prop_map(|(who, back)| Step::Replay { who, back }),
        3 => (who(), change).prop_map(|(who, what)| Step::ChangedDuplicate { who, what }),
        2 => (who(), 1..5_u64, any::<bool>())
            .prop_map(|(who, by, clean)| Step::Decrease { who, by, clean }),
        2 => (who(), 0..3_usize, any::<bool>()).prop_map(|(who, which, clean)| Step::Greatest {
            who,
            sequence: which != 1,
            counter: which != 0,
            clean,
        }),
        6 => clock().prop_map(|by| Step::Clock { by }),
        2 => who().prop_map(|who| Step::Clear { who }),
        1 => Just(Step::ClearNobody),
        1 => Just(Step::ClearStale),
        1 => Just(Step::Redate),
        1 => Just(Step::Restart),
        2 => clock().prop_map(|by| Step::Look { by }),
    ]
}

/// An interleaving.
pub fn plan() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..60)
}
