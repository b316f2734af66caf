//! In which columns a push is told: what stands in the margin, the machine, why it is sent to, and what came of it.

use crate::cli::ui::{Line, Look};
use crate::mesh::Mesh;
use crate::push::Summons;
use crate::words::NodeName;

/// `round 0  `: as wide as what stands before a machine's name.
const MARGIN: usize = 9;
/// `flushed  `.
const SUMMONS: usize = 9;
/// Where the outcome stands, if the reason leaves it the room.
const REASON: usize = 36;
/// It stands further right in a round where a reason is longer, up to here.
const REASON_MOST: usize = 64;
/// Where the outcome stands on a terminal narrower than `WIDE`.
const REASON_NARROW: usize = 20;
const WIDE: usize = 110;
/// A wider name of a machine shifts its line.
const WIDEST_NODE: usize = 24;

/// How wide the columns of a push are.
pub(super) struct Columns {
    node: usize,
    /// As wide as the column of the reasons is at least, and at most.
    reasons: (usize, usize),
    /// As wide as it is in this round.
    reason: usize,
}

impl Columns {
    /// For the machines of `mesh`, on a terminal that is so many columns `wide`; absent: it is none.
    pub fn new(wide: Option<usize>, mesh: &Mesh) -> Self {
        let widest = mesh.nodes.keys().map(|node| node.as_str().len()).max();
        let reasons = match wide {
            Some(width) if width < WIDE => (REASON_NARROW, REASON_NARROW),
            _ => (REASON, REASON_MOST),
        };
        Self {
            node: widest.unwrap_or(0).min(WIDEST_NODE),
            reasons,
            reason: reasons.0,
        }
    }

    /// Has the column of the reasons hold one more of this round, which `begins` with it.
    pub fn make_room(&mut self, reason: usize, begins: bool) {
        let (least, most) = self.reasons;
        if begins {
            self.reason = least;
        }
        if reason <= most {
            self.reason = self.reason.max(reason);
        }
    }

    /// A line that says `label` in the margin.
    pub fn margin(label: &str) -> Line {
        Line::new().column(Look::Plain, label, MARGIN)
    }

    /// A line of a machine.
    pub fn line(&self, label: &str, node: &NodeName, summons: Option<Summons>) -> Line {
        let wide = self.node.saturating_add(2);
        let line = Self::margin(label).column(Look::Strong, node, wide);
        match summons {
            Some(Summons::Named) => line.column(Look::Plain, "named", SUMMONS),
            Some(Summons::Flushed) => line.column(Look::Plain, "flushed", SUMMONS),
            None => line,
        }
    }

    /// The line with why its machine is sent to.
    pub fn reason(&self, line: Line, why: &str) -> Line {
        let wide = self.reason.saturating_add(2);
        line.column(Look::Plain, format!("{why}  "), wide)
    }
}
