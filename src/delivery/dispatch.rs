//! Many machines at a time: the [`Dispatch`] of the binary.
//!
//! Each machine is one job on tokio's blocking pool, which runs at most [`CourierSettings::parallel`] of them;
//! the rest waits its turn. A job tells what it hears over a channel, and the caller's thread alone calls `hear`.
//!
//! Retried is only what failed before the machine side was started, and of that only what a moment can change:
//! from then on a second try could meet the first one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use rand::RngExt as _;

use super::courier::{Dispatch, Heard, Parcel, Progress, Question, Target};
use super::ear::failure;
use super::exchange;
use super::gate::Gate;
use super::link::{Courier, Link};
use super::local::Local;
use super::manifests;
use super::openssh::OpenSsh;
use super::prepared::{self, Prepared};
use super::receipt::{Answer, FailedStep, Failure, Outcome};
use super::script::Launch;
use super::ssh::{AskPassphrase, Ssh};
use crate::mesh::{CourierKind, Node};
use crate::words::NodeName;

/// The first pause before a connection is tried again; each further one is twice as long, give or take a half.
const FIRST_PAUSE: Duration = Duration::from_millis(300);
/// How long the end of a send waits for others to be recorded with, in one commit: so many times what recording took,
/// so that it takes a small part of the whole, but no less and no more than this.
const LULLS: u32 = 20;
const LULL: Duration = Duration::from_millis(150);
const LULL_MOST: Duration = Duration::from_secs(2);
/// How long a send waits for the machine's lock.
const SEND_WAITS: Duration = Duration::from_secs(5);
/// How long a question waits for it: the send that was interrupted may still run there.
const ASK_WAITS: Duration = Duration::from_secs(120);

/// How machines are reached.
#[derive(Debug, Clone)]
pub struct CourierSettings {
    /// Machines at a time; at least 1.
    pub parallel: usize,
    /// How long a machine may take to be reached, and how long it may be silent where nothing
    /// else (a service's own time limit, the size of its files) allows it more.
    pub timeout: Duration,
    /// How long a question waits for the machine's lock, which the send that was cut short may still hold.
    pub ask_waits: Duration,
    /// The folder of the declaration: its `known_hosts`, and what identity files are relative to.
    pub declaration_dir: Utf8PathBuf,
    /// The operator's home folder, for `.ssh`; `None`: there is none.
    pub home: Option<PathBuf>,
    /// How often a connection is tried that a retry can help; at least 1.
    pub attempts: u32,
    /// What runs the receiving script where the courier is `local`.
    pub local_shell: Vec<String>,
    /// Who asks, for the machine's own log: one line.
    pub sender: String,
    /// How long a whole send to a machine may take; `None`: as long as its steps may.
    pub limit: Option<Duration>,
    /// Whether further machines may be reached.
    pub gate: Gate,
    /// Who is asked for the passphrase of a key file that no agent holds; `None`: nobody. Only the courier `ssh` asks.
    pub passphrases: Option<Arc<dyn AskPassphrase>>,
}

impl CourierSettings {
    /// The defaults: 16 machines at a time, 30 seconds, three attempts; the home folder from `HOME`.
    #[must_use]
    pub fn new(declaration_dir: Utf8PathBuf) -> Self {
        Self {
            parallel: 16,
            timeout: Duration::from_secs(30),
            ask_waits: ASK_WAITS,
            declaration_dir,
            home: std::env::var_os("HOME").map(PathBuf::from),
            attempts: 3,
            local_shell: vec!["sh".to_owned()],
            sender: "grid".to_owned(),
            limit: None,
            gate: Gate::default(),
            passphrases: None,
        }
    }

    /// Where the key file lies that the declaration names for a machine; `None`: it names none.
    #[must_use]
    pub fn identity_of(&self, node: &Node) -> Option<PathBuf> {
        let folder = self.declaration_dir.as_std_path();
        let path = node.identity.as_ref()?;
        Some(within(self.home.as_deref(), folder, path.as_str()))
    }
}

/// Where a file lies that is named with `~/` or relative to `folder`.
pub(super) fn within(home: Option<&Path>, folder: &Path, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(path),
    }
}

/// Sends by the courier that each machine's declaration names.
#[derive(Debug)]
pub struct Couriers {
    settings: Arc<CourierSettings>,
    ssh: Arc<Ssh>,
    openssh: Arc<OpenSsh>,
    local: Arc<Local>,
}

impl Couriers {
    /// Couriers with these settings.
    #[must_use]
    pub fn new(settings: CourierSettings) -> Self {
        Self {
            ssh: Arc::new(Ssh::new(&settings)),
            openssh: Arc::new(OpenSsh {
                settings: settings.clone(),
            }),
            local: Arc::new(Local {
                shell: settings.local_shell.clone(),
            }),
            settings: Arc::new(settings),
        }
    }

    pub(super) fn worker(&self) -> Worker {
        Worker {
            settings: Arc::clone(&self.settings),
            ssh: Arc::clone(&self.ssh),
            openssh: Arc::clone(&self.openssh),
            local: Arc::clone(&self.local),
        }
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
            .max_blocking_threads(self.settings.parallel.max(1))
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

/// What reaches one machine after the other.
pub(super) struct Worker {
    settings: Arc<CourierSettings>,
    ssh: Arc<Ssh>,
    openssh: Arc<OpenSsh>,
    local: Arc<Local>,
}

impl Worker {
    /// Reaches a machine and starts its side, with retries.
    pub(super) fn start(
        &self,
        target: &Target,
        launch: &Launch,
        end: Option<Instant>,
        hear: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Link>, Failure> {
        let courier: &dyn Courier = match target.node.courier {
            CourierKind::Ssh => &*self.ssh,
            CourierKind::Openssh => &*self.openssh,
            CourierKind::Local => &*self.local,
            CourierKind::Manifests => {
                return Err(failure(FailedStep::Start, "nobody is reached by manifests"));
            }
        };
        let mut attempt = 1;
        loop {
            let now = Instant::now();
            let deadline = end.map_or(now + self.settings.timeout, |end| {
                end.min(now + self.settings.timeout)
            });
            let error = match courier.start(target, launch, deadline) {
                Ok(link) => return Ok(link),
                Err(error) => error,
            };
            let is_over = end.is_some_and(|end| end <= Instant::now());
            if attempt >= self.settings.attempts || is_over || !error.a_retry_can_help() {
                return Err(error.into());
            }
            if self.settings.gate.is_shut() {
                return Err(error.into());
            }
            let longest = FIRST_PAUSE.saturating_mul(1 << attempt.min(6)) / 2;
            let pause = longest.mul_f64(rand::rng().random_range(0.5..1.5));
            attempt = attempt.saturating_add(1);
            hear(Progress::Retrying {
                attempt,
                why: error.to_string(),
            });
            thread::sleep(pause);
            if self.settings.gate.is_shut() {
                return Err(error.into());
            }
        }
    }

    fn send(&self, parcel: &Parcel, hear: &mut dyn FnMut(Progress)) -> Outcome {
        if !self.settings.gate.admits(parcel.awaited) {
            return Outcome::KeptBack;
        }
        if parcel.target.node.courier == CourierKind::Manifests {
            return manifests::send(parcel);
        }
        let Some(limit) = self.settings.limit else {
            return self.send_until(parcel, None, hear);
        };
        let end = Instant::now() + limit;
        let mut outcome = self.send_until(parcel, Some(end), hear);
        if let Outcome::NotReached(failure)
        | Outcome::Refused(failure)
        | Outcome::Uncertain(failure) = &mut outcome
            && Instant::now() >= end
            && failure.service.is_none()
        {
            failure.cause = format!("it was not done within {} s (--timeout)", limit.as_secs());
        }
        outcome
    }

    fn send_until(
        &self,
        parcel: &Parcel,
        end: Option<Instant>,
        hear: &mut dyn FnMut(Progress),
    ) -> Outcome {
        let prepared = match Prepared::new(parcel, &chance(), SEND_WAITS) {
            Ok(prepared) => prepared,
            Err(failure) => return Outcome::NotReached(failure),
        };
        match self.start(&parcel.target, prepared.launch(), end, hear) {
            Err(failure) => Outcome::NotReached(failure),
            Ok(link) => {
                let mut link = Limited { link, end };
                let outcome =
                    exchange::send(&mut link, parcel, &prepared, self.settings.timeout, hear);
                match outcome {
                    Outcome::Refused(failure) if failure.step == FailedStep::Start => link
                        .failed_itself()
                        .map_or(Outcome::Refused(failure), Outcome::NotReached),
                    outcome => outcome,
                }
            }
        }
    }

    fn ask(&self, question: &Question, hear: &mut dyn FnMut(Progress)) -> Answer {
        if self.settings.gate.is_shut() {
            return Answer::KeptBack;
        }
        if question.target.node.courier == CourierKind::Manifests {
            return manifests::ask(question);
        }
        let waits = self.settings.ask_waits;
        let sender = super::message::clean(&self.settings.sender);
        let launch = match prepared::question(question, &chance(), &sender, waits) {
            Ok(launch) => launch,
            Err(failure) => return Answer::Unknown(failure),
        };
        match self.start(&question.target, &launch, None, hear) {
            Err(failure) => Answer::Unknown(failure),
            Ok(mut link) => {
                let waits = waits.saturating_add(prepared::hashing(&question.manner));
                match exchange::ask(&mut *link, question, self.settings.timeout, waits, hear) {
                    Answer::Unknown(failure) if failure.step == FailedStep::Start => {
                        Answer::Unknown(link.failed_itself().unwrap_or(failure))
                    }
                    answer => answer,
                }
            }
        }
    }
}

/// A link on which nothing waits past the end of the whole send.
struct Limited {
    link: Box<dyn Link>,
    end: Option<Instant>,
}

impl Limited {
    fn within(&self, deadline: Instant) -> Instant {
        self.end.map_or(deadline, |end| end.min(deadline))
    }
}

impl Link for Limited {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let deadline = self.within(deadline);
        self.link.read(buffer, deadline)
    }

    fn said(&self) -> &[u8] {
        self.link.said()
    }

    fn write(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let deadline = self.within(deadline);
        self.link.write(bytes, deadline)
    }

    fn ended(&mut self, deadline: Instant) -> Option<String> {
        let deadline = self.within(deadline);
        self.link.ended(deadline)
    }

    fn failed_itself(&mut self) -> Option<Failure> {
        self.link.failed_itself()
    }
}

/// Sixteen hexadecimal digits that nobody guesses, for the folder a send is received in.
fn chance() -> String {
    format!("{:016x}", rand::random::<u64>())
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
