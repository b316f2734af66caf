//! Tells a push while it goes on: one line a machine and round, written when the machine has settled.

mod columns;
mod repeats;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use columns::Columns;
use repeats::runs;

use super::exit::CommandError;
use super::phrases;
use super::progress::{Bars, message};
use super::ui::{Line, Look, Ui};
use crate::delivery::{Applied, Progress};
use crate::mesh::{Mesh, Service};
use crate::push::{Event, Problem, Reason, Summons};
use crate::words::{NodeName, ServiceName};

/// Of how many lines of a step it is kept that they were printed.
const SAID_MOST: usize = 200;

/// What is said before the first line of a push.
#[derive(Debug, Clone, Default)]
pub(super) struct Heading {
    /// Where the declaration stands in git.
    pub git: Option<String>,
    /// Who pushes.
    pub who: String,
    /// Nothing is minted or sent.
    pub dry_run: bool,
}

/// Tells a push.
pub(super) struct Narrator<'a> {
    ui: &'a mut Ui,
    mesh: &'a Mesh,
    heading: Heading,
    columns: Columns,
    bars: Bars,
    under_way: BTreeMap<NodeName, UnderWay>,
    /// The machines that are being asked what they hold.
    asked: BTreeSet<NodeName>,
    /// The machines that were found to hold nothing any more.
    emptied: BTreeSet<NodeName>,
    failed: Option<CommandError>,
}

/// A machine that is being sent to.
struct UnderWay {
    summons: Summons,
    why: String,
    first: bool,
    /// The lines that its commands have printed in this step.
    said: BTreeSet<String>,
}

impl<'a> Narrator<'a> {
    /// Tells a push of this mesh.
    pub fn new(ui: &'a mut Ui, mesh: &'a Mesh, heading: Heading) -> Self {
        let columns = Columns::new(ui.width(), mesh);
        let bars = Bars::new(ui.show_bars());
        Self {
            ui,
            mesh,
            heading,
            columns,
            bars,
            under_way: BTreeMap::new(),
            asked: BTreeSet::new(),
            emptied: BTreeSet::new(),
            failed: None,
        }
    }

    /// The end: an output that could not be written is an error.
    pub fn finish(self) -> Result<(), CommandError> {
        self.ui.hide_bars();
        self.failed.map_or(Ok(()), Err)
    }

    fn say(&mut self, line: &Line) {
        if let Err(error) = self.ui.result(line) {
            self.failed.get_or_insert(error);
        }
    }

    fn say_unless_quiet(&mut self, line: &Line) {
        if !self.ui.quiet {
            self.say(line);
        }
    }

    /// Tells one event.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Began { mesh, push } => {
                let mut line = Line::new().look(Look::Strong, mesh);
                if let Some(git) = &self.heading.git {
                    line = line.plain("  ").plain(git);
                }
                let what = if self.heading.dry_run {
                    "  dry run of push"
                } else {
                    "  push"
                };
                let line = line
                    .plain(format!("{what} {push}"))
                    .plain("  ")
                    .plain(&self.heading.who);
                self.say_unless_quiet(&line);
            }
            Event::Asking { node } if self.heading.dry_run => {
                let line = self.columns.line("to ask", node, None).plain(
                    "nobody knows what it holds: a push asks it first, and then may have less to do than follows",
                );
                self.say_unless_quiet(&line);
            }
            Event::Asking { node } => {
                self.asked.insert(node.clone());
                self.bars.begin(node);
            }
            Event::SettledAs { node, elsewhere } => {
                self.asked.remove(node);
                self.bars.end(node);
                let line = self.columns.line("settled", node, None);
                self.say_unless_quiet(&line.plain(match elsewhere {
                    None => "it was uncertain, and has told what it holds",
                    Some(true) => {
                        "it was asked where it is declared now, and has told what it holds"
                    }
                    Some(false) => "it was asked where it is declared now: it holds nothing there",
                }));
            }
            Event::Minted {
                provider,
                consumer,
                generation,
            } => self.minted(&format!("{provider}/{consumer}, generation {generation}")),
            Event::MintedAuthority { number } => self.minted(&phrases::authority(*number)),
            Event::MintedIdentity { site, number, need } => {
                self.minted(&phrases::identity(site, *number, *need));
            }
            Event::Sending {
                node,
                summons,
                reasons,
                waits,
                revoked,
                ..
            } => {
                let again = self.emptied.contains(node) && reasons.contains(&Reason::NeverSent);
                let mut why = vec![match again {
                    true => "emptied: all of it again".to_owned(),
                    false => phrases::reasons(reasons),
                }];
                why.extend(
                    waits
                        .iter()
                        .map(|(s, wait)| phrases::wait(self.mesh, s, wait)),
                );
                why.extend(
                    revoked
                        .iter()
                        .map(|service| format!("{service} is revoked")),
                );
                let under_way = UnderWay {
                    summons: *summons,
                    why: why.join("; "),
                    first: reasons.contains(&Reason::NeverSent) || reasons.contains(&Reason::Moved),
                    said: BTreeSet::new(),
                };
                // All reasons of a round are told before its first outcome.
                let begins = self.under_way.is_empty();
                self.columns
                    .make_room(under_way.why.chars().count(), begins);
                self.under_way.insert(node.clone(), under_way);
                self.bars.begin(node);
            }
            Event::Waits {
                node,
                round,
                summons,
                waits,
            } => {
                let why = phrases::waits(self.mesh, waits);
                let line = self
                    .columns
                    .line(&format!("round {round}"), node, Some(*summons));
                self.say_unless_quiet(&line.look(Look::Warn, why));
            }
            Event::Progress { node, progress } => self.progress(node, progress),
            Event::Sent {
                node,
                round,
                applied,
            } => {
                let took = self.bars.end(node);
                let outcome = self.sent(took, applied);
                self.settled(node, (*round, false), Look::Plain, &outcome);
                self.details(&applied.mended);
                self.details(&applied.notes);
            }
            Event::Contacted { node, applied } => {
                let line = self.columns.line("contact", node, Some(Summons::Named));
                if self.heading.dry_run {
                    self.say_unless_quiet(&line.plain("would be verified and checked"));
                } else if applied.mended.is_empty()
                    && applied.loaded.is_empty()
                    && applied.applied.is_empty()
                {
                    self.say_unless_quiet(&line.plain("verified, nothing to mend"));
                } else {
                    self.say(&line.plain(self.steps("mended", applied).join(", ")));
                }
                self.details(&applied.mended);
                self.details(&applied.notes);
            }
            Event::Emptied { node } => {
                self.bars.end(node);
                self.under_way.remove(node);
                self.emptied.insert(node.clone());
                let line = self.columns.line("emptied", node, None);
                self.say(&line.look(
                    Look::Warn,
                    "it holds nothing any more; all of it is sent again",
                ));
            }
            Event::KeptBack { node } => {
                self.bars.end(node);
                self.under_way.remove(node);
            }
            Event::Failed {
                node,
                round,
                problem,
            } => self.failed(node, *round, problem),
            Event::Ended(_) => {}
        }
    }

    /// What was minted, or would be.
    fn minted(&mut self, what: &str) {
        let label = match self.heading.dry_run {
            true => "to mint",
            false => "minted",
        };
        let line = Columns::margin(label).plain(what);
        self.say_unless_quiet(&line);
    }

    /// Why a machine was sent to, and what came of it. One that nobody sends to is contacted, if `contact` may be.
    fn settled(
        &mut self,
        node: &NodeName,
        (round, contact): (usize, bool),
        look: Look,
        outcome: &str,
    ) -> bool {
        let under_way = self.under_way.remove(node);
        let summons = under_way.as_ref().map(|under_way| under_way.summons);
        let mut line = match (summons, contact) {
            (None, true) => self.columns.line("contact", node, Some(Summons::Named)),
            _ => self.columns.line(&format!("round {round}"), node, summons),
        };
        let mut first = false;
        if let Some(under_way) = under_way {
            first = under_way.first;
            line = self.columns.reason(line, &under_way.why);
        }
        self.say(&line.look(look, outcome));
        first
    }

    fn failed(&mut self, node: &NodeName, round: usize, problem: &Problem) {
        self.bars.end(node);
        let outcome = phrases::problem(problem);
        let was_asked = self.asked.remove(node);
        let contact = !was_asked && !matches!(problem, Problem::Uncomposable(_));
        let first = self.settled(node, (round, contact), Look::Bad, &outcome);
        if let Some(failure) = phrases::failure_of(problem) {
            let under = failure
                .service
                .as_ref()
                .map_or_else(|| node.to_string(), ToString::to_string);
            for (line, times) in runs(&failure.output) {
                let times = match times {
                    1 => String::new(),
                    times => format!("  ({times} times)"),
                };
                self.detail(&format!("{under} | {line}{times}"), Look::Plain);
            }
        }
        if let Problem::Fenced { log, .. } = problem {
            let rest = log.len().saturating_sub(LOG_SHOWN);
            for line in log.iter().skip(rest) {
                let line = phrases::short_digests(line);
                self.detail(&format!("its log | {line}"), Look::Plain);
            }
            if rest > 0 {
                let root = self.mesh.nodes.get(node).map(|node| &node.root);
                let root = root.map_or_else(String::new, |root| format!("{root}/"));
                self.detail(
                    &format!("what was before that stands in {root}log on {node}"),
                    Look::Plain,
                );
            }
        }
        if let Some(after) = phrases::aftermath(problem, first) {
            self.detail(&after, Look::Plain);
        }
    }

    fn detail(&mut self, text: &str, look: Look) {
        let line = Columns::margin("").look(look, text);
        self.say(&line);
    }

    fn details(&mut self, texts: &[String]) {
        for text in texts {
            self.detail(text, Look::Plain);
        }
    }

    fn progress(&mut self, node: &NodeName, progress: &Progress) {
        self.bars.advance(node, progress);
        let loud = match progress {
            Progress::Retrying { .. } => !self.ui.quiet,
            Progress::Sent { .. } => false,
            Progress::Step { .. } => {
                self.said_before(node, None);
                self.ui.verbose
            }
            // A check that is tried again and again says the same.
            Progress::Output { service, line } => {
                let line = format!("{service} | {line}");
                !self.said_before(node, Some(line)) && self.ui.verbose
            }
        };
        if loud {
            let line = self
                .columns
                .line("", node, None)
                .look(Look::Faint, message(progress));
            self.ui.note(&line);
        }
    }

    /// Whether a line was printed before in this step; `None`: a step begins.
    fn said_before(&mut self, node: &NodeName, line: Option<String>) -> bool {
        let Some(under_way) = self.under_way.get_mut(node) else {
            return false;
        };
        match line {
            None => {
                under_way.said.clear();
                false
            }
            Some(line) if under_way.said.len() < SAID_MOST => !under_way.said.insert(line),
            Some(line) => under_way.said.contains(&line),
        }
    }

    /// What a machine did with what it was sent.
    fn sent(&self, took: Option<Duration>, applied: &Applied) -> String {
        if self.heading.dry_run {
            let files = usize::try_from(applied.files).unwrap_or(usize::MAX);
            return match files {
                0 => "would be sent, no file that it lacks".to_owned(),
                _ => format!(
                    "would be sent {}, {}",
                    phrases::count(files, "file"),
                    phrases::bytes(applied.bytes)
                ),
            };
        }
        let begin = match took {
            Some(took) => format!("sent {:.1} s", took.as_secs_f64()),
            None => "sent".to_owned(),
        };
        self.steps(&begin, applied).join(", ")
    }

    /// What was loaded, applied, removed and checked.
    fn steps(&self, begin: &str, applied: &Applied) -> Vec<String> {
        let has = |name: &ServiceName, what: fn(&Service) -> bool| {
            self.mesh.services.get(name).is_some_and(what)
        };
        // A service without `apply` takes its files by itself.
        let ran = applied
            .applied
            .iter()
            .filter(|name| has(name, |service| service.apply.is_some()));
        let mut touched = applied.loaded.iter().chain(&applied.applied);
        let mut steps = vec![begin.to_owned()];
        let mut step = |what: &str, names: String| {
            if !names.is_empty() {
                steps.push(format!("{what} {names}"));
            }
        };
        step("loaded", phrases::list(&applied.loaded));
        step("applied", phrases::list(ran));
        step("removed", phrases::list(&applied.removed));
        if touched.any(|name| has(name, |service| service.check.is_some())) {
            steps.push("check ok".to_owned());
        }
        steps
    }
}

/// How many lines of a fenced machine's log are shown: who was there last.
pub(super) const LOG_SHOWN: usize = 3;
