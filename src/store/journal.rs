//! The journal: who did what, where, from which commit, and how it ended (DESIGN.md, section 6).
//!
//! Invariant: each record carries the SHA-256 of the record before it, as that one's bytes are stored, and the
//! first one that of the store's own id. So no entry can be changed, taken out or put in without a broken link;
//! the store keeps the number and digest of the last one, so that none can be cut off the end.
//! Threat: an entry carries what a person typed and what a machine answered. It is bounded and cleaned of control
//! characters before it is kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Holder;
use crate::words::{Digest, NodeName, StoreId, Token};

/// The format that this grid writes. A record only ever grows by optional fields.
pub const FORMAT: u32 = 1;

/// The longest text of an entry, in characters; what is longer is cut.
const TEXT_MOST: usize = 500;

/// How something that the journal keeps ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It has begun: on disk before anything is sent. A later entry of the same push number ends it; where there is
    /// none, it still runs, or its controller was killed or lost.
    Begun,
    /// It ended with this exit code.
    Exit(u8),
}

/// How a machine was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// The bundle is in force there.
    Applied,
    /// It was found to hold its bundle.
    Verified,
    /// It could not be reached.
    NotReached,
    /// It refused before it changed anything.
    Refused,
    /// Its previous release is in force again.
    RolledBack,
    /// Nobody knows what it holds.
    Uncertain,
    /// The fence held: another send was there.
    Fenced,
    /// `grid retire` or `grid forget`.
    Forgotten,
    /// `grid evidence clear`.
    Cleared,
}

/// A machine that was touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Touched {
    /// How.
    pub how: Touch,
    /// The bundle that was meant for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The cause of a failure, or what of it was forgotten; at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What to type or to do next, where the failure said so; at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The last lines that the step printed which failed; at most 20 of at most 500 characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
    /// Of a machine that was fenced: what it held instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
}

impl Touched {
    /// So many lines of what a failed step printed are kept.
    const LINES: usize = 20;

    /// Of a machine of which nothing else is to be kept.
    #[must_use]
    pub const fn new(how: Touch) -> Self {
        Self {
            how,
            digest: None,
            why: None,
            hint: None,
            output: Vec::new(),
            fence: None,
        }
    }

    /// Whether the machine as a whole was forgotten. Where only a service on it was, or what it left behind elsewhere, `why` says
    /// what: what is known of the machine itself still holds.
    #[must_use]
    pub fn is_forgotten_whole(&self) -> bool {
        self.how == Touch::Forgotten && self.why.is_none()
    }

    /// The same, with the last of what the failed step printed.
    #[must_use]
    pub fn printed(mut self, lines: &[String]) -> Self {
        let first = lines.len().saturating_sub(Self::LINES);
        self.output = lines.iter().skip(first).cloned().collect();
        self
    }
}

/// What a fenced machine held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fence {
    /// The token of the send that it had taken; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Token>,
    /// The last line of its own log: who was there. At most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// The commit that a declaration was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GitCommit {
    /// Its hash, in hexadecimal.
    pub hash: String,
    /// Whether the working tree had changes besides.
    pub dirty: bool,
}

/// What the journal keeps of one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// When it began.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ended: Option<Timestamp>,
    /// `user@host`, as claimed.
    pub who: String,
    /// The public key of the identity that opened the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Who opened the store until then and not from then on, as the declaration names them no more: names and public keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_out: Vec<String>,
    /// The job of a CI runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci: Option<String>,
    /// The command as typed; `--take-over`, `--show-secrets` and the like are in it.
    pub command: String,
    /// The number of the push, if it is one. By it the entry that ends a push refers to the one that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<u64>,
    /// The machines that were touched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<NodeName, Touched>,
    /// The digest of the declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declaration: Option<Digest>,
    /// The commit it was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<GitCommit>,
    /// The version of grid.
    pub version: String,
    /// How it ended.
    pub outcome: Outcome,
}

impl Entry {
    /// Whether `holder` of the mesh lock, in the command for which it holds it, has begun this and not ended it.
    #[must_use]
    pub fn is_begun_by(&self, holder: &Holder) -> bool {
        self.outcome == Outcome::Begun && self.started == holder.since && self.who == holder.who
    }

    /// The entry with every text cut to 500 characters and without control characters.
    fn cleaned(mut self) -> Self {
        for text in [&mut self.who, &mut self.command, &mut self.version]
            .into_iter()
            .chain(&mut self.ci)
            .chain(&mut self.taken_out)
            .chain(&mut self.identity)
            .chain(self.commit.iter_mut().map(|commit| &mut commit.hash))
            .chain(self.machines.values_mut().flat_map(|touched| {
                let log = touched.fence.as_mut().and_then(|fence| fence.log.as_mut());
                let told = touched.why.iter_mut().chain(&mut touched.hint);
                told.chain(&mut touched.output).chain(log)
            }))
        {
            *text = clean(text);
        }
        self
    }
}

/// A text as the store keeps one that came from outside.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .take(TEXT_MOST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// An entry in its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JournalRecord {
    /// The format; 1.
    pub format: u32,
    /// Counted from 1, without a gap.
    pub number: u64,
    /// The digest of the record before, as its bytes are stored.
    pub previous: Digest,
    /// What happened.
    pub entry: Entry,
}

impl JournalRecord {
    /// The most entries that are listed at once.
    pub const LISTED_MOST: usize = 10_000;
}

/// The end of the chain: what the next record is chained to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// The number of the last record; 0: there is none.
    pub number: u64,
    /// Its digest.
    pub digest: Digest,
}

impl Head {
    /// The head of an empty journal: no store's chain fits another's.
    pub fn of_new(store: StoreId) -> Self {
        Self {
            number: 0,
            digest: Digest::of(format!("grid journal {store}").as_bytes()),
        }
    }

    /// Chains an entry: the new head, and the record's canonical bytes.
    pub fn chain(self, entry: Entry) -> (Self, Vec<u8>) {
        let record = JournalRecord {
            format: FORMAT,
            number: self.number.saturating_add(1),
            previous: self.digest,
            entry: entry.cleaned(),
        };
        // Neither maps with keys other than text nor failing implementations are among the types.
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        let head = Self {
            number: record.number,
            digest: Digest::of(&bytes),
        };
        (head, bytes)
    }
}

/// Where a chain breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenLink {
    /// The number of the first entry that cannot be relied on.
    pub number: u64,
    /// In what way.
    pub why: &'static str,
}

/// Walks a chain from its beginning, record by record in order of number.
#[derive(Debug)]
pub(super) struct Walk {
    at: Head,
}

impl Walk {
    pub fn of(store: StoreId) -> Self {
        Self {
            at: Head::of_new(store),
        }
    }

    /// Takes the next record, as it is stored.
    pub fn step(&mut self, bytes: &[u8]) -> Result<(), BrokenLink> {
        let number = self.at.number.saturating_add(1);
        let broken = |why| BrokenLink { number, why };
        let record: JournalRecord =
            serde_json::from_slice(bytes).map_err(|_| broken("it cannot be read"))?;
        if record.number != number {
            return Err(broken("it is missing"));
        }
        if record.previous != self.at.digest {
            return Err(broken(
                "it does not follow from the entry before, one of the two was changed",
            ));
        }
        self.at = Head {
            number,
            digest: Digest::of(bytes),
        };
        Ok(())
    }

    /// Ends the walk at the head that the store keeps.
    pub fn end(&self, head: Head) -> Option<BrokenLink> {
        if self.at == head {
            return None;
        }
        Some(BrokenLink {
            number: self.at.number.saturating_add(1).min(head.number),
            why: if self.at.number < head.number {
                "it is missing, and so is everything after it"
            } else {
                "it is not the entry that was written last"
            },
        })
    }
}
