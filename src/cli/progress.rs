//! Progress bars: on a terminal only, and only once something has taken 250 ms.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::ui::clean;
use crate::delivery::Progress;
use crate::words::NodeName;

/// What is over sooner shows no bar.
const AFTER: Duration = Duration::from_millis(250);
/// How often a bar turns, and how often it is looked who needs one.
const TICK: Duration = Duration::from_millis(100);

type Machines = Mutex<BTreeMap<NodeName, UnderWay>>;

/// The machines that are being sent to, and their bars.
#[derive(Debug, Default)]
pub(super) struct Bars {
    machines: Arc<Machines>,
}

#[derive(Debug)]
struct UnderWay {
    since: Instant,
    message: String,
    bar: Option<ProgressBar>,
}

impl Bars {
    /// Bars that are drawn here; `None`: no terminal.
    pub fn new(multi: Option<MultiProgress>) -> Self {
        let bars = Self::default();
        if let Some(multi) = multi {
            let machines = Arc::downgrade(&bars.machines);
            // A machine that says nothing for a while gets its bar all the same, so somebody has to look.
            std::thread::spawn(move || watch(&multi, &machines));
        }
        bars
    }

    /// A machine begins.
    pub fn begin(&mut self, node: &NodeName) {
        let under_way = UnderWay {
            since: Instant::now(),
            message: "connecting".to_owned(),
            bar: None,
        };
        lock(&self.machines).insert(node.clone(), under_way);
    }

    /// A machine goes on.
    pub fn advance(&mut self, node: &NodeName, progress: &Progress) {
        if let Some(under_way) = lock(&self.machines).get_mut(node) {
            under_way.message = clean(&message(progress));
            if let Some(bar) = &under_way.bar {
                bar.set_message(under_way.message.clone());
            }
        }
    }

    /// A machine has settled; returns how long it took.
    pub fn end(&mut self, node: &NodeName) -> Option<Duration> {
        let under_way = lock(&self.machines).remove(node)?;
        if let Some(bar) = under_way.bar {
            bar.finish_and_clear();
        }
        Some(under_way.since.elapsed())
    }
}

fn lock(machines: &Machines) -> MutexGuard<'_, BTreeMap<NodeName, UnderWay>> {
    machines.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(multi: &MultiProgress, machines: &Weak<Machines>) {
    while let Some(machines) = machines.upgrade() {
        for (node, under_way) in lock(&machines).iter_mut() {
            if under_way.bar.is_some() || under_way.since.elapsed() < AFTER {
                continue;
            }
            let bar = multi.add(ProgressBar::new_spinner());
            // The template is a constant; without it a spinner is a spinner all the same.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(node.to_string());
            bar.set_message(under_way.message.clone());
            bar.enable_steady_tick(TICK);
            under_way.bar = Some(bar);
        }
        drop(machines);
        std::thread::sleep(TICK);
    }
}

/// What is going on, in a few words.
pub(super) fn message(progress: &Progress) -> String {
    match progress {
        Progress::Retrying { attempt, why } => format!("{why}; attempt {attempt}"),
        Progress::Sent { bytes, of } => {
            let percent = bytes.saturating_mul(100).checked_div(*of).unwrap_or(100);
            format!("sending, {percent} %")
        }
        Progress::Step {
            step,
            service: Some(service),
        } => format!("{step} of {service}"),
        Progress::Step { step, .. } => step.clone(),
        Progress::Output { service, line } => format!("{service} | {line}"),
    }
}
