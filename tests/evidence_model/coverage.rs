//! What the interleavings came to.

use std::collections::BTreeMap;

use super::model::{Row, Said, Stands};

/// How often something was seen.
pub type Seen = BTreeMap<&'static str, u64>;

/// What every run has to come to at least so often in a thousand interleavings. A row that is never reached is not tested.
pub const TO_SEE: &[(&str, u64)] = &[
    ("row: refused, greatest sequence and clean", 50),
    ("row: refused, greatest counter and clean", 50),
    ("row: first, counter 0 and clean", 1_000),
    ("row: first, counter 0 and not clean", 100),
    ("row: first, higher counter and clean", 500),
    ("row: first, higher counter and not clean", 50),
    ("row: no room", 50),
    ("row: no room though all are stale", 5),
    ("row: room made by a clean record", 50),
    ("row: room made by a cleared record", 10),
    ("row: room made by one of several received at once", 20),
    ("row: first again, of who made room", 20),
    ("row: identical, of a clean record", 200),
    ("row: identical, of a rejected record", 200),
    ("row: identical, of a cleared record", 10),
    ("row: identical, of a stale record", 50),
    ("row: changed counter, higher", 50),
    ("row: changed counter, lower", 20),
    ("row: changed flag", 50),
    ("row: changed replica", 100),
    ("row: lower sequence", 100),
    ("row: lower counter", 50),
    ("row: higher counter, clean: true, from clean", 50),
    ("row: higher counter, clean: true, from rejected", 50),
    ("row: higher counter, clean: true, from cleared", 10),
    ("row: higher counter, clean: false, from clean", 20),
    ("row: higher counter, clean: false, from rejected", 20),
    ("row: higher counter, clean: false, from cleared", 5),
    ("row: clears, from clean", 500),
    ("row: clears, from rejected", 200),
    ("row: clears, from cleared", 10),
    ("row: unclean, from clean", 50),
    ("row: unclean, from rejected", 50),
    ("row: unclean, from cleared", 5),
    ("row: greatest sequence is held", 50),
    ("row: greatest counter is held", 50),
    ("row: anything against the greatest sequence", 50),
    ("row: anything against the greatest counter", 50),
    ("condition: Rejected", 5_000),
    ("condition: Rejected, and nobody is fresh", 200),
    ("condition: Clean", 2_000),
    ("condition: Clean, by a record of exactly 300 s", 20),
    ("condition: Clean, by a record of the future", 100),
    ("condition: Clean, and all are cleared", 10),
    ("condition: Stale", 200),
    ("condition: NoReports", 200),
    ("clear: in force", 50),
    ("clear: nothing in force", 50),
    ("clear: nobody", 200),
    ("clear stale: some", 20),
    ("clear stale: none", 100),
    ("clear stale: spares who is fresh", 20),
    ("redate: some", 20),
    ("redate: none", 100),
    ("restart: the status stays", 50),
    ("restart: the status changes", 50),
];

/// What the report of a row shows; `before` is what was held of its epoch.
pub fn of_row(row: Row, said: &Said, before: Option<&(Said, Stands)>) -> Vec<&'static str> {
    use Stands::{Clean, Cleared, Rejected};
    let mut seen = Vec::new();
    if row.status() == 204 && row != Row::Identical {
        if said.sequence == u64::MAX {
            seen.push("row: greatest sequence is held");
        }
        if said.counter == u64::MAX {
            seen.push("row: greatest counter is held");
        }
    }
    let Some((held, stood)) = before else {
        seen.push(match (row, said.counter, said.clean) {
            (Row::NoRoom, ..) => "row: no room",
            (_, 0, true) => "row: first, counter 0 and clean",
            (_, 0, false) => "row: first, counter 0 and not clean",
            (_, _, true) => "row: first, higher counter and clean",
            (_, _, false) => "row: first, higher counter and not clean",
        });
        return seen;
    };
    if held.sequence == u64::MAX {
        seen.push("row: anything against the greatest sequence");
    }
    if held.counter == u64::MAX {
        seen.push("row: anything against the greatest counter");
    }
    seen.push(match (row, stood) {
        (Row::Identical, Clean) => "row: identical, of a clean record",
        (Row::Identical, Rejected) => "row: identical, of a rejected record",
        (Row::Identical, Cleared(_)) => "row: identical, of a cleared record",
        (Row::Changed, _) if said.counter > held.counter => "row: changed counter, higher",
        (Row::Changed, _) if said.counter < held.counter => "row: changed counter, lower",
        (Row::Changed, _) if said.clean != held.clean => "row: changed flag",
        (Row::Changed, _) => "row: changed replica",
        (Row::LowerSequence, _) => "row: lower sequence",
        (Row::LowerCounter, _) => "row: lower counter",
        (Row::HigherCounter, stood) => match (said.clean, stood) {
            (true, Clean) => "row: higher counter, clean: true, from clean",
            (true, Rejected) => "row: higher counter, clean: true, from rejected",
            (true, Cleared(_)) => "row: higher counter, clean: true, from cleared",
            (false, Clean) => "row: higher counter, clean: false, from clean",
            (false, Rejected) => "row: higher counter, clean: false, from rejected",
            (false, Cleared(_)) => "row: higher counter, clean: false, from cleared",
        },
        (Row::Clears, Clean) => "row: clears, from clean",
        (Row::Clears, Rejected) => "row: clears, from rejected",
        (Row::Clears, Cleared(_)) => "row: clears, from cleared",
        (Row::Unclean, Clean) => "row: unclean, from clean",
        (Row::Unclean, Rejected) => "row: unclean, from rejected",
        (Row::Unclean, Cleared(_)) => "row: unclean, from cleared",
        (Row::First | Row::NoRoom | Row::Refused, _) => "row: of nobody",
    });
    seen
}
