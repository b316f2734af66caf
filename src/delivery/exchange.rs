//! The conversation with a machine side: the same over every courier.
//!
//! What is certain when it breaks off. The machine side changes nothing of the current release before it has received
//! and verified everything it asked for. So a break while it still waited for bytes is a refusal; a break before
//! it asked is one too, unless it may hold this very release, which it then mends without asking. Every other break
//! leaves the machine *uncertain*.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::courier::{Parcel, Progress, Question};
use super::link::Link;
use super::plan::Plan;
use super::protocol::{Ending, Framed, Message, Parser, Want};
use super::receipt::{Answer, Applied, FailedStep, Failure, Holding, Outcome};
use super::script::Launch;
use super::tar::{StreamError, Tar};
use crate::compose::manifest::{Grants, Manifest};
use crate::words::{Digest, ServiceName, Token};

/// Lines of output that a failure carries.
const LAST_LINES: usize = 20;
/// How long settling what an earlier send left may take, whatever its services allow themselves.
const SETTLING: Duration = Duration::from_secs(3600);
/// No transfer needs to be slower, in bytes a second.
const SLOWEST: u64 = 16 * 1024;
/// No machine hashes slower, in bytes a second.
const SLOWEST_HASH: u64 = 8 * 1024 * 1024;
/// The longest time that a single step may announce, in seconds: an hour, and twice for reading a list back.
const LONGEST_STEP: u64 = 3600;

/// A send, all of it worked out before anybody is reached.
pub(super) struct Prepared {
    launch: Launch,
    delta: Tar,
    all: Tar,
    /// How long the machine may take for everything but the transfer.
    steps: Duration,
}

impl Prepared {
    /// Works out the send of `parcel`. `name`: drawn by chance, for the folder it is received in.
    ///
    /// # Errors
    /// What cannot be written as a plan or as a tar.
    pub(super) fn new(parcel: &Parcel, name: &str, lock_wait: Duration) -> Result<Self, Failure> {
        let refused = |cause: String| failure(FailedStep::Source, cause);
        let manifest = &parcel.bundle.manifest;
        let plan = Plan::of(manifest).map_err(|error| refused(error.to_string()))?;
        let into = format!("releases/.new-{name}");
        let base = parcel.base.as_deref().map(|base| (base, base.digest()));
        let lay_out = |base| {
            Tar::lay_out(&parcel.bundle, &plan, base, &into)
                .map_err(|error| refused(error.to_string()))
        };
        let (delta, all) = (lay_out(base)?, lay_out(None)?);
        let replaces: Vec<String> = parcel.replaces.iter().map(ToString::to_string).collect();
        let or_none = |text: String| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                text
            }
        };
        let launch = Launch {
            become_root: parcel.target.node.become_root,
            arguments: vec![
                "send".into(),
                parcel.target.node.root.to_string(),
                lock_wait.as_secs().to_string(),
                name.to_owned(),
                or_none(super::protocol::clean(&parcel.sender)),
                parcel.token.to_string(),
                or_none(replaces.join(",")),
                u8::from(parcel.take_over).to_string(),
                parcel.bundle.digest.to_string(),
                Digest::of(&plan.sums).to_string(),
                base.map_or_else(|| "-".to_owned(), |(_, digest)| digest.to_string()),
                delta.size.to_string(),
                all.size.to_string(),
            ],
        };
        let limits = |manifest: &Manifest| {
            let of = |s: &crate::compose::manifest::ServiceManifest| {
                let l = &s.limits;
                [l.test, l.load, l.load, l.apply, l.check, l.remove]
                    .into_iter()
                    .fold(60, u64::saturating_add)
            };
            manifest
                .services
                .values()
                .map(of)
                .fold(0, u64::saturating_add)
        };
        let base_limits = parcel.base.as_deref().map_or(0, limits);
        let hashing = all.size / SLOWEST_HASH;
        // Forward and back.
        let steps = limits(manifest)
            .saturating_add(base_limits)
            .saturating_mul(2)
            .saturating_add(hashing.saturating_mul(4));
        Ok(Self {
            launch,
            delta,
            all,
            steps: Duration::from_secs(steps),
        })
    }

    /// What is to be started on the machine.
    pub(super) fn launch(&self) -> &Launch {
        &self.launch
    }
}

/// What is to be started on the machine to ask it.
pub(super) fn question(question: &Question, name: &str, sender: &str, wait: Duration) -> Launch {
    let node = &question.target.node;
    Launch {
        become_root: node.become_root,
        arguments: vec![
            "ask".into(),
            node.root.to_string(),
            wait.as_secs().to_string(),
            name.to_owned(),
            sender.to_owned(),
        ],
    }
}

pub(super) fn failure(step: FailedStep, cause: impl Into<String>) -> Failure {
    Failure {
        step,
        service: None,
        cause: cause.into(),
        output: Vec::new(),
        hint: None,
    }
}

/// How a wait ended otherwise than by a message.
enum Broken {
    /// It ended by itself, without saying how.
    Ended,
    /// Nothing was heard in time.
    Silent,
    /// The connection broke.
    Link(io::Error),
    /// What it said makes no sense.
    Garbage(String),
}

/// The hearing side, common to sends and questions.
struct Ear<'a> {
    link: &'a mut dyn Link,
    parser: Parser,
    buffer: Vec<u8>,
    quiet: Duration,
    end: Instant,
    /// What the step under way may take.
    step: Duration,
    /// The last lines of each service's commands, or of whoever spoke before the script began.
    output: BTreeMap<Option<ServiceName>, VecDeque<String>>,
    begun: bool,
    hear: &'a mut dyn FnMut(Progress),
}

impl<'a> Ear<'a> {
    fn new(
        link: &'a mut dyn Link,
        quiet: Duration,
        end: Instant,
        hear: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Self {
            link,
            parser: Parser::default(),
            buffer: vec![0; 32 * 1024],
            quiet,
            end,
            step: Duration::ZERO,
            output: BTreeMap::new(),
            begun: false,
            hear,
        }
    }

    /// The next message that is not mere progress.
    fn next(&mut self) -> Result<Message, Broken> {
        loop {
            let message = self.message()?;
            match message {
                Message::Hello => self.begun = true,
                Message::Noise(line) => self.keep(None, line),
                Message::Settling => {
                    self.end = self.end.max(Instant::now() + SETTLING);
                }
                Message::Step {
                    step,
                    service,
                    seconds,
                } => {
                    let seconds = seconds.min(LONGEST_STEP).saturating_mul(2);
                    self.step = Duration::from_secs(seconds);
                    self.output.remove(&service);
                    (self.hear)(Progress::Step { step, service });
                }
                Message::Out { service, line } => {
                    self.keep(Some(service.clone()), line.clone());
                    (self.hear)(Progress::Output { service, line });
                }
                other => return Ok(other),
            }
        }
    }

    fn message(&mut self) -> Result<Message, Broken> {
        loop {
            match self.parser.next() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(garbage) => return Err(Broken::Garbage(garbage.to_string())),
            }
            let wait = self.quiet.saturating_add(self.step);
            let deadline = self.end.min(Instant::now() + wait);
            match self.link.read(&mut self.buffer, deadline) {
                Ok(0) => return Err(Broken::Ended),
                Ok(n) => self.parser.push(self.buffer.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(Broken::Silent);
                }
                Err(error) => return Err(Broken::Link(error)),
            }
        }
    }

    fn keep(&mut self, service: Option<ServiceName>, line: String) {
        let lines = self.output.entry(service).or_default();
        if lines.len() >= LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The failure that the machine reports.
    fn reported(&mut self, step: &str, service: Option<ServiceName>, cause: String) -> Failure {
        let output = service.as_ref().map_or_else(Vec::new, |_| {
            self.output
                .remove(&service)
                .map(Vec::from)
                .unwrap_or_default()
        });
        let step = step_of(step);
        Failure {
            step,
            service,
            cause,
            output,
            hint: hint_of(step),
        }
    }

    /// The failure that a break is.
    fn broken(&mut self, broken: Broken) -> Failure {
        let ended = match broken {
            Broken::Ended => self.link.ended(self.end.min(Instant::now() + self.quiet)),
            _ => None,
        };
        let before = self.output.remove(&None).map(Vec::from).unwrap_or_default();
        if !self.begun && matches!(broken, Broken::Ended) && ended.is_some() {
            let cause = match (before.last(), &ended) {
                (Some(line), _) => line.clone(),
                (None, Some(how)) => format!("the machine side did not start: {how}"),
                (None, None) => "the machine side did not start".to_owned(),
            };
            let hint = if before.iter().any(|line| line.contains("sudo")) {
                "the login needs `NOPASSWD` in sudoers for `become = \"sudo\"`, or no `become` at all"
            } else {
                "the login needs a POSIX shell"
            };
            return Failure {
                output: before,
                hint: Some(hint.to_owned()),
                ..failure(FailedStep::Start, cause)
            };
        }
        let cause = match broken {
            Broken::Ended => match ended {
                Some(how) => format!("the machine side ended without a receipt: {how}"),
                None => "the connection was closed without a receipt".to_owned(),
            },
            Broken::Silent => format!(
                "nothing was heard for {} seconds",
                self.quiet.saturating_add(self.step).as_secs()
            ),
            Broken::Link(error) => format!("the connection broke: {error}"),
            Broken::Garbage(what) => what,
        };
        Failure {
            output: before,
            ..failure(FailedStep::Receipt, cause)
        }
    }
}

fn step_of(step: &str) -> FailedStep {
    match step {
        "start" => FailedStep::Start,
        "lock" => FailedStep::Lock,
        "unpack" => FailedStep::Unpack,
        "verify" => FailedStep::Verify,
        "test" => FailedStep::Test,
        "switch" => FailedStep::Switch,
        "install" => FailedStep::Install,
        "load" => FailedStep::Load,
        "apply" => FailedStep::Apply,
        "check" => FailedStep::Check,
        "remove" => FailedStep::Remove,
        _ => FailedStep::Receipt,
    }
}

fn hint_of(step: FailedStep) -> Option<String> {
    let hint = match step {
        FailedStep::Lock => "another send is under way there; it ends by its own time limits",
        FailedStep::Unpack => "is there space left below `root` of the machine?",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What a send has come to.
#[derive(Default)]
struct Received {
    applied: Applied,
    kept: BTreeSet<ServiceName>,
    failures: Vec<Failure>,
    fenced: Option<Option<String>>,
    log: Vec<String>,
}

/// Sends. Called once the machine side was started.
pub(super) fn send(
    link: &mut dyn Link,
    parcel: &Parcel,
    prepared: &Prepared,
    timeout: Duration,
    hear: &mut dyn FnMut(Progress),
) -> Outcome {
    let hashing = Duration::from_secs(prepared.all.size / SLOWEST_HASH);
    let end = Instant::now() + prepared.steps + timeout.saturating_mul(4);
    let mut ear = Ear::new(link, timeout.saturating_add(hashing), end, hear);
    let mut received = Received::default();
    // May it go ahead without asking for anything?
    let mut may_act = parcel
        .base
        .as_deref()
        .is_none_or(|base| base.digest() == parcel.bundle.digest);
    let mut wants = Vec::new();
    loop {
        let message = match ear.next() {
            Ok(message) => message,
            Err(broken) => {
                let failure = ear.broken(broken);
                let started = failure.step != FailedStep::Start;
                return if started && may_act {
                    Outcome::Uncertain(failure)
                } else {
                    Outcome::Refused(failure)
                };
            }
        };
        match message {
            Message::Want(want) => {
                if wants.contains(&want) || wants.contains(&Want::All) {
                    return nonsense(&mut ear, may_act, "it asks for the same again");
                }
                wants.push(want);
                let tar = match want {
                    Want::Delta => &prepared.delta,
                    Want::All => &prepared.all,
                };
                match transfer(&mut ear, tar, timeout) {
                    Ok(()) => {
                        received.applied.bytes = received.applied.bytes.saturating_add(tar.content);
                        received.applied.files = received.applied.files.saturating_add(tar.files);
                        may_act = true;
                    }
                    Err(StreamError::Source(cause)) => {
                        return Outcome::Refused(Failure {
                            hint: Some("push again once the file rests".to_owned()),
                            ..failure(FailedStep::Source, cause)
                        });
                    }
                    // Why it takes no more, it says itself, if it can.
                    Err(StreamError::Link(error)) => {
                        let told = ear.next();
                        return stopped(&mut ear, told, &error);
                    }
                }
            }
            Message::Mended(line) => received.applied.mended.push(line),
            Message::Note(line) => received.applied.notes.push(line),
            Message::Applied(name) => received.applied.applied.push(name),
            Message::Removed(name) => received.applied.removed.push(name),
            Message::Kept(name) => {
                received.kept.insert(name);
            }
            Message::Fail {
                step,
                service,
                cause,
            } => {
                let failure = ear.reported(&step, service, cause);
                received.failures.push(failure);
            }
            Message::Fenced(held) => received.fenced = Some(held),
            Message::Log(line) => received.log.push(line),
            Message::End(ending) => {
                return settled(parcel, ending, received).unwrap_or_else(|| {
                    nonsense(&mut ear, may_act, "its receipt contradicts itself")
                });
            }
            _ => return nonsense(&mut ear, may_act, "it answers what was not asked"),
        }
    }
}

fn nonsense(ear: &mut Ear<'_>, may_act: bool, what: &str) -> Outcome {
    let failure = ear.broken(Broken::Garbage(what.to_owned()));
    if may_act {
        Outcome::Uncertain(failure)
    } else {
        Outcome::Refused(failure)
    }
}

fn transfer(ear: &mut Ear<'_>, tar: &Tar, timeout: Duration) -> Result<(), StreamError> {
    let seconds = tar.size / SLOWEST;
    let begun = Instant::now();
    let end = begun + timeout + Duration::from_secs(seconds);
    let mut sent = 0_u64;
    let (link, hear) = (&mut *ear.link, &mut *ear.hear);
    tar.stream(&mut |bytes| {
        link.write(bytes, end.min(Instant::now() + timeout))?;
        sent = sent.saturating_add(u64::try_from(bytes.len()).unwrap_or(0));
        hear(Progress::Sent {
            bytes: sent,
            of: tar.size,
        });
        Ok(())
    })?;
    ear.end += begun.elapsed();
    Ok(())
}

/// It took no more before it had everything: nothing was changed.
fn stopped(ear: &mut Ear<'_>, told: Result<Message, Broken>, error: &io::Error) -> Outcome {
    Outcome::Refused(match told {
        Ok(Message::Fail {
            step,
            service,
            cause,
        }) => ear.reported(&step, service, cause),
        _ => Failure {
            hint: Some("nothing was changed there; push again".to_owned()),
            ..failure(
                FailedStep::Unpack,
                format!("the connection broke in the middle of the files: {error}"),
            )
        },
    })
}

fn settled(parcel: &Parcel, ending: Ending, received: Received) -> Option<Outcome> {
    let mut failures = received.failures.into_iter();
    let (first, second) = (failures.next(), failures.next());
    let manifest = &parcel.bundle.manifest;
    let provides = |name: &ServiceName| {
        manifest
            .services
            .get(name)
            .is_some_and(|service| service.grants.is_some())
    };
    Some(match (ending, first) {
        (Ending::Applied, None) => Outcome::Applied(received.applied),
        (Ending::Refused, Some(failure)) => Outcome::Refused(failure),
        (Ending::RolledBack, Some(failure)) => {
            if !received.kept.iter().all(provides) {
                return None;
            }
            Outcome::RolledBack {
                failure,
                lists: received.kept,
            }
        }
        (Ending::RollBackFailed, Some(failure)) => {
            let back = second.map_or_else(String::new, |back| {
                let of = back.service.map(|s| format!("{s}: ")).unwrap_or_default();
                format!("; and the roll-back failed: {of}{}", back.cause)
            });
            Outcome::Uncertain(Failure {
                cause: format!("{}{back}", failure.cause),
                ..failure
            })
        }
        (Ending::Fenced, None) => {
            let held = received.fenced?;
            let mut log = received.log;
            let token = held.as_deref().map(str::parse::<Token>);
            if let (Some(Err(_)), Some(text)) = (&token, &held) {
                log.push(format!("what it holds is no token: {text}"));
            }
            Outcome::Fenced {
                held: token.and_then(Result::ok),
                log,
            }
        }
        _ => return None,
    })
}

/// Asks. Called once the machine side was started.
pub(super) fn ask(
    link: &mut dyn Link,
    timeout: Duration,
    lock_wait: Duration,
    hear: &mut dyn FnMut(Progress),
) -> Answer {
    let quiet = timeout.saturating_add(lock_wait);
    let end = Instant::now() + quiet.saturating_mul(2);
    let mut ear = Ear::new(link, quiet, end, hear);
    let mut holding = Holding {
        token: None,
        manifest: None,
        lists: BTreeMap::new(),
        log: Vec::new(),
    };
    let mut current = None;
    let mut said: Option<Failure> = None;
    loop {
        let message = match ear.next() {
            Ok(message) => message,
            Err(broken) => return Answer::Unknown(ear.broken(broken)),
        };
        let taken = match message {
            Message::Token(None) => Ok(()),
            Message::Token(Some(text)) => match text.parse() {
                Ok(token) => {
                    holding.token = Some(token);
                    Ok(())
                }
                Err(_) => Err(format!("what it holds is no token: {text}")),
            },
            Message::Current(digest) => {
                current = digest;
                Ok(())
            }
            Message::Unknown(provider) => {
                holding.lists.insert(provider, Grants::new());
                Ok(())
            }
            Message::Frame(Framed::Manifest, bytes) => manifest(&bytes, current).map(|manifest| {
                holding.manifest = Some(Arc::new(manifest));
            }),
            Message::Frame(Framed::List(provider), bytes) => {
                list(&bytes, &provider).map(|grants| {
                    holding.lists.insert(provider, grants);
                })
            }
            Message::Log(line) => {
                holding.log.push(line);
                Ok(())
            }
            Message::Note(line) => {
                ear.keep(None, line);
                Ok(())
            }
            Message::Fail {
                step,
                service,
                cause,
            } => {
                said = Some(ear.reported(&step, service, cause));
                Ok(())
            }
            Message::End(Ending::Answered)
                if said.is_none() && holding.manifest.is_some() == current.is_some() =>
            {
                return Answer::Holds(holding);
            }
            Message::End(_) => {
                return Answer::Unknown(said.unwrap_or_else(|| {
                    failure(FailedStep::Receipt, "its answer contradicts itself")
                }));
            }
            _ => Err("it answers what was not asked".to_owned()),
        };
        if let Err(what) = taken {
            return Answer::Unknown(ear.broken(Broken::Garbage(what)));
        }
    }
}

fn manifest(bytes: &[u8], current: Option<Digest>) -> Result<Manifest, String> {
    if Some(Digest::of(bytes)) != current {
        return Err("the manifest of its release is not what was sent".to_owned());
    }
    serde_json::from_slice(bytes)
        .map_err(|error| format!("the manifest of its release cannot be read: {error}"))
}

fn list(bytes: &[u8], provider: &ServiceName) -> Result<Grants, String> {
    let manifest: Manifest = serde_json::from_slice(bytes)
        .map_err(|error| format!("the manifest of {provider}'s list cannot be read: {error}"))?;
    manifest
        .services
        .get(provider)
        .and_then(|service| service.grants.clone())
        .ok_or_else(|| format!("the manifest of {provider}'s list has no list"))
}
