//! Tells a push while it goes on: one line a machine and round, written when the machine has settled.

use std::collections::BTreeMap;
use std::time::Duration;

use super::exit::CommandError;
use super::phrases;
use super::progress::{Bars, message};
use super::ui::{Line, Look, Ui};
use crate::delivery::{Applied, Progress};
use crate::mesh::{Mesh, Service};
use crate::push::{Event, Problem, Reason, Summons};
use crate::words::NodeName;

/// `round 0  `: as wide as what stands before a machine's name.
const MARGIN: usize = 9;
/// `flushed  `.
const SUMMONS: usize = 9;
/// Where the outcome stands, if the reason leaves it the room.
const REASON: usize = 36;
/// A wider name of a machine shifts its line.
const WIDEST_NODE: usize = 24;

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
    node_width: usize,
    bars: Bars,
    under_way: BTreeMap<NodeName, UnderWay>,
    failed: Option<CommandError>,
}

/// A machine that is being sent to.
struct UnderWay {
    summons: Summons,
    why: String,
    first: bool,
}

impl<'a> Narrator<'a> {
    /// Tells a push of this mesh.
    pub fn new(ui: &'a mut Ui, mesh: &'a Mesh, heading: Heading) -> Self {
        let widest = mesh.nodes.keys().map(|node| node.as_str().len()).max();
        let bars = Bars::new(ui.show_bars());
        Self {
            ui,
            mesh,
            heading,
            node_width: widest.unwrap_or(0).min(WIDEST_NODE),
            bars,
            under_way: BTreeMap::new(),
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
            Event::SettledAs { node } => {
                let line = self.line("settled", node, None);
                self.say_unless_quiet(&line.plain("it was uncertain, and has told what it holds"));
            }
            Event::Minted {
                provider,
                consumer,
                generation,
            } => {
                let line = Line::new()
                    .column(Look::Plain, "minted", MARGIN)
                    .plain(format!("{provider}/{consumer}, generation {generation}"));
                self.say_unless_quiet(&line);
            }
            Event::Sending {
                node,
                summons,
                reasons,
                waits,
                revoked,
                ..
            } => {
                let mut why = vec![phrases::reasons(reasons)];
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
                    first: reasons.contains(&Reason::NeverSent),
                };
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
                let line = self.line(&format!("round {round}"), node, Some(*summons));
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
                self.settled(node, *round, Look::Plain, &outcome);
                self.details(&applied.notes);
            }
            Event::Contacted { node, applied } => {
                let line = self.line("contact", node, Some(Summons::Named));
                if applied.mended.is_empty() && applied.applied.is_empty() {
                    self.say_unless_quiet(&line.plain("verified, nothing to mend"));
                } else {
                    self.say(&line.plain(self.steps("mended", applied).join(", ")));
                }
                self.details(&applied.mended);
                self.details(&applied.notes);
            }
            Event::Emptied { node } => {
                self.bars.end(node);
                let line = self.line("emptied", node, None);
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

    fn line(&self, margin: &str, node: &NodeName, summons: Option<Summons>) -> Line {
        let line = Line::new().column(Look::Plain, margin, MARGIN).column(
            Look::Strong,
            node,
            self.node_width.saturating_add(2),
        );
        match summons {
            Some(Summons::Named) => line.column(Look::Plain, "named", SUMMONS),
            Some(Summons::Flushed) => line.column(Look::Plain, "flushed", SUMMONS),
            None => line,
        }
    }

    /// Why a machine was sent to, and what came of it.
    fn settled(&mut self, node: &NodeName, round: usize, look: Look, outcome: &str) -> bool {
        let under_way = self.under_way.remove(node);
        let summons = under_way.as_ref().map(|under_way| under_way.summons);
        let mut line = self.line(&format!("round {round}"), node, summons);
        let mut first = false;
        if let Some(under_way) = under_way {
            first = under_way.first;
            line = line.column(Look::Plain, under_way.why, REASON).plain("  ");
        }
        self.say(&line.look(look, outcome));
        first
    }

    fn failed(&mut self, node: &NodeName, round: usize, problem: &Problem) {
        self.bars.end(node);
        let outcome = phrases::problem(problem);
        let first = self.settled(node, round, Look::Bad, &outcome);
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
            for line in log {
                self.detail(&format!("its log | {line}"), Look::Plain);
            }
        }
        if let Some(after) = phrases::aftermath(problem, first) {
            self.detail(&after, Look::Plain);
        }
    }

    fn detail(&mut self, text: &str, look: Look) {
        let line = Line::of(" ".repeat(MARGIN)).look(look, text);
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
            Progress::Step { .. } | Progress::Output { .. } => self.ui.verbose,
        };
        if loud {
            let line = self
                .line("", node, None)
                .look(Look::Faint, message(progress));
            self.ui.note(&line);
        }
    }

    /// What a machine did with what it was sent.
    fn sent(&self, took: Option<Duration>, applied: &Applied) -> String {
        let begin = match took {
            _ if self.heading.dry_run => "would be sent".to_owned(),
            Some(took) => format!("sent {:.1} s", took.as_secs_f64()),
            None => "sent".to_owned(),
        };
        self.steps(&begin, applied).join(", ")
    }

    fn steps(&self, begin: &str, applied: &Applied) -> Vec<String> {
        let declared = |has: fn(&Service) -> bool| {
            let names = applied
                .applied
                .iter()
                .filter(move |name| self.mesh.services.get(*name).is_some_and(has));
            phrases::list(names)
        };
        let mut steps = vec![begin.to_owned()];
        let mut step = |what: &str, names: String| {
            if !names.is_empty() {
                steps.push(format!("{what} {names}"));
            }
        };
        step("loaded", declared(|service| service.provides.is_some()));
        step("applied", declared(|service| service.apply.is_some()));
        step("removed", phrases::list(&applied.removed));
        if !declared(|service| service.check.is_some()).is_empty() {
            steps.push("check ok".to_owned());
        }
        steps
    }
}

/// Lines, and how often each stands there in a row: a check that is tried again and again says the same.
fn runs(lines: &[String]) -> Vec<(&str, usize)> {
    let mut runs: Vec<(&str, usize)> = Vec::new();
    for line in lines {
        match runs.last_mut() {
            Some((last, times)) if *last == line => *times = times.saturating_add(1),
            _ => runs.push((line, 1)),
        }
    }
    runs
}
