//! One machine: reached over its courier, with retries, and the conversation within the time of the send.
//!
//! Retried is only what failed before the machine side was started, and of that only what a moment can change:
//! from then on a second try could meet the first one.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rand::RngExt as _;

use super::courier::{Parcel, Progress, Question, Target};
use super::ear::failure;
use super::exchange;
use super::link::{Courier, Link};
use super::local::Local;
use super::manifests;
use super::openssh::OpenSsh;
use super::prepared::{self, Prepared};
use super::receipt::{Answer, FailedStep, Failure, Outcome};
use super::script::Launch;
use super::settings::CourierSettings;
use super::ssh::Ssh;
use crate::mesh::CourierKind;

/// The first pause before a connection is tried again; each further one is twice as long, give or take a half.
const FIRST_PAUSE: Duration = Duration::from_millis(300);
/// How long a send waits for the machine's lock.
const SEND_WAITS: Duration = Duration::from_secs(5);

/// What reaches one machine after the other.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    settings: Arc<CourierSettings>,
    ssh: Arc<Ssh>,
    openssh: Arc<OpenSsh>,
    local: Arc<Local>,
}

impl Worker {
    /// Who reaches machines with these settings.
    pub(super) fn new(settings: CourierSettings) -> Self {
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

    /// How many machines at a time.
    pub(super) fn parallel(&self) -> usize {
        self.settings.parallel
    }

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

    pub(super) fn send(&self, parcel: &Parcel, hear: &mut dyn FnMut(Progress)) -> Outcome {
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

    pub(super) fn ask(&self, question: &Question, hear: &mut dyn FnMut(Progress)) -> Answer {
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
