//! What the histories covered: a simulation that never saw a roll-back proves nothing about roll-backs.

use std::collections::BTreeMap;

/// What every run of enough histories has to have seen.
pub const TO_SEE: &[&str] = &[
    "push done",
    "push incomplete",
    "push of one",
    "push of all",
    "push --behind",
    "send applied",
    "send not reached",
    "send broken",
    "send receipt lost",
    "send interrupted",
    "send rolled back",
    "send rolled back, newer list stays",
    "send rolled back, first release",
    "send roll-back failed",
    "send refused",
    "send fenced, emptied",
    "contact",
    "contact mended",
    "contact took over",
    "contact failed, machine",
    "contact failed, service",
    "unwell, and a send looked at it",
    "unwell, and a send left it",
    "ask answered",
    "ask unanswered",
    "uncertain on hold",
    "uncertain, not to be asked",
    "controller died",
    "disk full",
    "wait for a grant",
    "wait for a removal",
    "leaving stays",
    "leaving left",
    "leaving, goes on elsewhere",
    "moved, stop first",
    "moved, start first",
    "provider on two machines",
    "circle",
    "revoked",
    "revoked in use stays",
    "rotated",
    "cut",
    "issued",
    "wants changed",
    "two generations on a list",
    "old wants on a list",
    "not waiting, not yet admitted",
    "given up",
    "emptied",
    "readdressed",
    "another root",
    "mistyped root",
    "asked where nothing is",
    "provides no more",
    "taken over",
    "fenced by another store",
    "rolled back, not flushed",
    "rolled back, named again",
    "further machine without a list",
    "dry run agreed",
    "final state exact",
    "end done",
    "end waits",
    "rounds 0",
    "rounds 1",
    "rounds 2",
    "rounds 3",
    "rounds 4",
];

#[derive(Debug, Clone, Default)]
pub struct Coverage(pub BTreeMap<String, u64>);

impl Coverage {
    pub fn saw(&mut self, what: &str) {
        match self.0.get_mut(what) {
            Some(count) => *count += 1,
            None => {
                self.0.insert(what.to_owned(), 1);
            }
        }
    }

    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }

    pub fn missed(&self) -> Vec<&'static str> {
        let seen = |what: &&&str| !self.0.contains_key(**what);
        TO_SEE.iter().filter(seen).copied().collect()
    }

    pub fn print(&self) {
        for (what, count) in &self.0 {
            println!("{count:9} {what}");
        }
    }
}
