//! Many machines at a time: the [`Dispatch`] of the binary.
//!
//! Each machine is one job on tokio's blocking pool, which runs at most [`CourierSettings::parallel`] of them;
//! the rest waits its turn. A job tells what it hears over a channel, and the caller's thread alone calls `hear`.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::courier::{Dispatch, Heard, Parcel, Progress, Question};
use super::ear::failure;
use super::receipt::{Answer, FailedStep, Failure, Outcome};
use super::settings::CourierSettings;
use super::worker::Worker;
use crate::words::NodeName;

/// How long the end of a send waits for others to be recorded with, in one commit: so many times what recording took,
/// so that it takes a small part of the whole, but no less and no more than this.
const LULLS: u32 = 20;
const LULL: Duration = Duration::from_millis(150);
const LULL_MOST: Duration = Duration::from_secs(2);

/// Sends by the courier that each machine's declaration names.
#[derive(Debug)]
pub struct Couriers(Worker);

impl Couriers {
    /// Couriers with these settings.
    #[must_use]
    pub fn new(settings: CourierSettings) -> Self {
        Self(Worker::new(settings))
    }

    pub(super) fn worker(&self) -> Worker {
        self.0.clone()
    }

    /// Runs a job for each of `tasks`, and hears them all.
    fn run<T: Send + 'static>(
        &self,
        tasks: Vec<T>,
        name: fn(&T) -> &NodeName,
        lost: fn(Failure) -> Heard,
        job: fn(&Worker, &T, &mut dyn FnMut(Progress)) -> Heard,
        hear: &mut dyn FnMut(&NodeName, Heard),
    ) {
        let runtime = match tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(self.0.parallel().max(1))
            .build()
        {
            Ok(runtime) => runtime,
            Err(error) => {
                let cause = format!("no threads can be started: {error}");
                for task in &tasks {
                    hear(name(task), lost(failure(FailedStep::Start, cause.clone())));
                }
                return;
            }
        };
        let (tell, heard) = mpsc::channel();
        for task in tasks {
            let worker = self.worker();
            let mut told = Told {
                node: name(&task).clone(),
                tell: tell.clone(),
                lost: Some(lost),
            };
            runtime.spawn_blocking(move || {
                let end = job(&worker, &task, &mut |progress| {
                    told.tell(Heard::Progress(progress));
                });
                told.lost = None;
                told.end(end);
            });
        }
        drop(tell);
        let mut lull = LULL;
        let mut first_end: Option<(NodeName, Instant)> = None;
        loop {
            let next = match &first_end {
                None => heard.recv().ok(),
                Some((_, at)) => heard.recv_timeout(lull.saturating_sub(at.elapsed())).ok(),
            };
            match (next, &mut first_end) {
                (Some((node, what, until)), first) => {
                    if first.is_none() && !matches!(what, Heard::Progress(_)) {
                        *first = Some((node.clone(), Instant::now()));
                    }
                    hear(&node, what);
                    drop(until);
                }
                // Nothing more for a while, or nobody is left to tell anything.
                (None, Some((node, _))) => {
                    let began = Instant::now();
                    hear(node, Heard::Lull);
                    lull = began.elapsed().saturating_mul(LULLS).clamp(LULL, LULL_MOST);
                    first_end = None;
                }
                (None, None) => break,
            }
        }
    }
}

/// Of whom, what, and something that goes once it was heard.
type Message = (NodeName, Heard, Option<mpsc::Sender<()>>);

/// Tells of one machine. A job that dies without an end is told as that.
struct Told {
    node: NodeName,
    tell: mpsc::Sender<Message>,
    lost: Option<fn(Failure) -> Heard>,
}

impl Told {
    fn tell(&self, what: Heard) {
        // Nobody listens only when the caller itself is gone.
        let _ = self.tell.send((self.node.clone(), what, None));
    }

    /// Tells the end. Of a failure this returns once it was heard: it may close the gate to the next machine.
    fn end(&self, what: Heard) {
        if matches!(what, Heard::Settled(Outcome::Applied(_))) {
            return self.tell(what);
        }
        let (heard, until) = mpsc::channel();
        let _ = self.tell.send((self.node.clone(), what, Some(heard)));
        // Its end is all that there is to hear.
        let _ = until.recv();
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(lost) = self.lost.take() {
            self.tell(lost(failure(
                FailedStep::Receipt,
                "grid itself failed in the middle of it",
            )));
        }
    }
}

impl Dispatch for Couriers {
    fn send(&mut self, parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        self.run(
            parcels,
            |parcel| &parcel.target.node.name,
            |failure| Heard::Settled(Outcome::Uncertain(failure)),
            |worker, parcel, hear| Heard::Settled(worker.send(parcel, hear)),
            hear,
        );
    }

    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        self.run(
            questions,
            |question| &question.target.node.name,
            |failure| Heard::Answered(Answer::Unknown(failure)),
            |worker, question, hear| Heard::Answered(worker.ask(question, hear)),
            hear,
        );
    }
}
