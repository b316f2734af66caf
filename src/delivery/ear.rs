//! Hearing a machine side: one message after the other, each within its time, and what a silence or a break means.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use super::courier::Progress;
use super::link::Link;
use super::message::{Message, clean};
use super::protocol::Parser;
use super::receipt::{FailedStep, Failure};
use super::redact::Secrets;
use super::remedy::hint_of;
use crate::words::ServiceName;

/// Lines of output that a failure carries.
const LAST_LINES: usize = 20;
/// How long settling what an earlier send left may take, whatever its services allow themselves.
const SETTLING: Duration = Duration::from_secs(3600);
/// The longest time that a single step may announce, in seconds: an hour, and twice for reading a list back.
const LONGEST_STEP: u64 = 3600;

/// A failure of no service, without more.
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
pub(super) enum Broken {
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
pub(super) struct Ear<'a> {
    pub link: &'a mut dyn Link,
    parser: Parser,
    buffer: Vec<u8>,
    quiet: Duration,
    /// The end of all patience.
    pub end: Instant,
    /// What the step under way may take.
    step: Duration,
    /// The last lines of each service's commands, or of whoever spoke before the script began.
    output: BTreeMap<Option<ServiceName>, VecDeque<String>>,
    begun: bool,
    secrets: &'a Secrets,
    pub hear: &'a mut dyn FnMut(Progress),
}

impl<'a> Ear<'a> {
    pub(super) fn new(
        link: &'a mut dyn Link,
        quiet: Duration,
        end: Instant,
        secrets: &'a Secrets,
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
            secrets,
            hear,
        }
    }

    /// The next message that is not mere progress.
    pub(super) fn next(&mut self) -> Result<Message, Broken> {
        loop {
            let message = self.message()?.redacted(self.secrets);
            match message {
                Message::Hello => self.begun = true,
                Message::Noise(line) if line.is_empty() => {}
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
                Err(garbage) => {
                    let what = self.secrets.redact(garbage.to_string());
                    return Err(Broken::Garbage(what));
                }
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

    pub(super) fn keep(&mut self, service: Option<ServiceName>, line: String) {
        let lines = self.output.entry(service).or_default();
        if lines.len() >= LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The failure that the machine reports.
    pub(super) fn reported(
        &mut self,
        step: &str,
        service: Option<ServiceName>,
        cause: String,
    ) -> Failure {
        let output = service.as_ref().map_or_else(Vec::new, |_| {
            self.output
                .remove(&service)
                .map(Vec::from)
                .unwrap_or_default()
        });
        let step = step_of(step);
        let hint = hint_of(step, service.as_ref(), &cause, &output);
        Failure {
            step,
            service,
            hint,
            cause,
            output,
        }
    }

    /// The failure that a break is.
    pub(super) fn broken(&mut self, broken: Broken) -> Failure {
        let ended = match broken {
            Broken::Ended => self.link.ended(self.end.min(Instant::now() + self.quiet)),
            _ => None,
        };
        let said = String::from_utf8_lossy(self.link.said()).into_owned();
        for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let line = self.secrets.redact(clean(line));
            self.keep(None, line);
        }
        let before = self.output.remove(&None).map(Vec::from).unwrap_or_default();
        let cause = match (&broken, &ended) {
            _ if self.begun => None,
            (Broken::Ended, Some(how)) => Some(format!("the machine side did not start: {how}")),
            (Broken::Garbage(what), _) => Some(what.clone()),
            _ => None,
        };
        if let Some(cause) = cause {
            if matches!(broken, Broken::Garbage(_)) {
                let hint = "a start-up file of the login's shell prints; let it do so where the shell is interactive only";
                return Failure {
                    output: before,
                    hint: Some(hint.to_owned()),
                    ..failure(FailedStep::Start, cause)
                };
            }
            return not_started(cause, before);
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

/// The failure of a machine side that never began; `before`: what was said instead, which tells more than `cause`.
pub(super) fn not_started(cause: String, before: Vec<String>) -> Failure {
    let hint = if before.iter().any(|line| line.contains("sudo")) {
        "the login needs `NOPASSWD` in sudoers for `become = \"sudo\"`, or no `become` at all"
    } else {
        "the login needs a POSIX shell"
    };
    let cause = telling(&before).map_or(cause, Clone::clone);
    Failure {
        output: before,
        hint: Some(hint.to_owned()),
        ..failure(FailedStep::Start, cause)
    }
}

/// The line that says why a login runs nothing: the last one, but not that its home is missing, which sshd says of every such login
/// and hinders nothing.
fn telling(lines: &[String]) -> Option<&String> {
    let tells = |line: &&String| !line.starts_with("Could not chdir to home directory");
    lines.iter().rev().find(tells).or(lines.last())
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
