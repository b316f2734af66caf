//! Hearing a machine side: one message after the other, each within its time, and what a silence or a break means.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use super::courier::Progress;
use super::link::Link;
use super::message::{Message, clean};
use super::protocol::Parser;
use super::receipt::{FailedStep, Failure, NOT_DONE};
use super::redact::Secrets;
use crate::mesh::SITE_SERVICE;
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

/// What to do where nothing more can be written.
const NO_SPACE: &str = "is there space left below `root` of the machine?";

/// Whether the system said so, or a shell that writes: some say only that it could not be done, and one says nothing at all.
fn is_of_a_full_disk(cause: &str) -> bool {
    const TOLD: [&str; 5] = [
        "No space left",
        "Disk quota exceeded",
        "I/O error",
        "write error",
        "it is not said why",
    ];
    TOLD.iter().any(|told| cause.contains(told))
}

/// What to do about a failure that the machine side told: which key of the declaration says otherwise.
fn hint_of(
    step: FailedStep,
    service: Option<&ServiceName>,
    cause: &str,
    output: &[String],
) -> Option<String> {
    let is_told = |what: &str| cause.contains(what);
    let hint = match step {
        _ if output
            .iter()
            .any(|line| line.starts_with("this machine has no user ")) =>
        {
            "`as` of the service's `provides`, in the declaration, names that user"
        }
        _ if is_told("it exited with 127")
            && service.is_some_and(|service| service.as_str() == SITE_SERVICE) =>
        {
            "127: `grid` is not there, which the site's commands run: install it on the machine, or have the push do it (`binary` \
             of `[signals]` names a file beside mesh.toml); `check` and `apply` of `[signals]` may name other commands"
        }
        _ if is_told("it exited with 127") => {
            "127: a command that was to be run is not there; the service's commands in the declaration say which are run"
        }
        _ if [
            " cannot be used: ",
            " cannot be written",
            "cannot be put in place",
        ]
        .iter()
        .any(|told| is_told(told))
            && is_of_a_full_disk(cause) =>
        {
            NO_SPACE
        }
        FailedStep::Start | FailedStep::Lock | FailedStep::Switch
            if is_told(" cannot be used: ") || is_told(" cannot be written") =>
        {
            "`root` of the machine, in the declaration, names that folder; its login must be able to write there, or be made root by \
             `become = \"sudo\"`"
        }
        _ if is_told("files cannot be given to ") => {
            "`owner` of the service or of one of its files, in the declaration, names that user: it must be there, and only root can give \
             files away (`become = \"sudo\"`)"
        }
        FailedStep::Lock => "another send is under way there; it ends by its own time limits",
        FailedStep::Switch if is_told("/current is not a ") || is_told("/current points to ") => {
            "move it away on the machine; `grid push` of the machine then puts in force again what was sent"
        }
        FailedStep::Install
            if is_told(" is a folder") || is_told("File exists") || is_told("Not a directory") =>
        {
            "something that grid did not put there stands in the way: move it away on the machine, or give the file another path"
        }
        FailedStep::Load if output.iter().any(|line| is_foreign(line, "vhost")) => {
            let provider = service?;
            return Some(format!(
                "a vhost is called after its consumer, where `vhost` says nothing else. If it was made by hand: `consumes = {{ {provider} = \
                 {{ existing = true }} }}` of the consumer takes it as it is; if another mesh made it: `consumes = {{ {provider} = {{ \
                 vhost = \"…\" }} }}` gives this one another name"
            ));
        }
        FailedStep::Load if output.iter().any(|line| is_foreign(line, "user")) => {
            "a user is called after this mesh and its consumer: it was made by hand, or by another mesh of this name. One of the two has to go"
        }
        step if is_told(NOT_DONE) => return limit_of(step, service?),
        FailedStep::Unpack => NO_SPACE,
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Whether a broker says of something there that it is not this mesh's.
fn is_foreign(line: &str, what: &str) -> bool {
    let rest = line
        .strip_prefix(what)
        .and_then(|rest| rest.strip_prefix(' '));
    rest.is_some_and(|rest| rest.contains(" exists, but without the mark "))
}

/// Which limit of the declaration gives a step more time.
fn limit_of(step: FailedStep, service: &ServiceName) -> Option<String> {
    let (key, asked) = match step {
        FailedStep::Test => ("test", ""),
        FailedStep::Load => (
            "load",
            "does the provider run on that machine, and answer? ",
        ),
        FailedStep::Apply => ("apply", ""),
        FailedStep::Check => ("check", ""),
        FailedStep::Remove => ("remove", ""),
        _ => return None,
    };
    let table = match service.as_str() {
        SITE_SERVICE => "[signals]".to_owned(),
        name => format!("[services.{name}]"),
    };
    let only = if asked.is_empty() { "if" } else { "If" };
    Some(format!(
        "{asked}{only} it only takes longer: `limits = {{ {key} = \"…\" }}` of {table} gives it more time"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_has_that_is_not_ours_is_told_with_where_existing_goes() {
        let service = ServiceName::new("broker").unwrap();
        let hint = |line: &str| {
            let output = [line.to_owned()];
            hint_of(
                FailedStep::Load,
                Some(&service),
                "it exited with 1",
                &output,
            )
        };
        let line = "vhost billing exists, but without the mark grid.prod.broker; existing = true takes it as it is";
        insta::assert_snapshot!(hint(line).unwrap(), @r#"a vhost is called after its consumer, where `vhost` says nothing else. If it was made by hand: `consumes = { broker = { existing = true } }` of the consumer takes it as it is; if another mesh made it: `consumes = { broker = { vhost = "…" } }` gives this one another name"#);
        let line = "user prod.billing.1 exists, but without the mark grid.prod.broker";
        insta::assert_snapshot!(hint(line).unwrap(), @"a user is called after this mesh and its consumer: it was made by hand, or by another mesh of this name. One of the two has to go");
        assert_eq!(
            hint("vhost billing is wanted as an existing one, but is not there"),
            None
        );
    }

    #[test]
    fn a_step_that_was_not_done_in_time_has_its_limit_named() {
        let hint = |step: FailedStep, service: &str| {
            let service = ServiceName::new(service).unwrap();
            let cause = "it did not hold within 30 seconds; it was not done within 1 seconds";
            hint_of(step, Some(&service), cause, &[]).unwrap()
        };
        insta::assert_snapshot!(hint(FailedStep::Apply, "billing"), @r#"if it only takes longer: `limits = { apply = "…" }` of [services.billing] gives it more time"#);
        insta::assert_snapshot!(hint(FailedStep::Load, "broker"), @r#"does the provider run on that machine, and answer? If it only takes longer: `limits = { load = "…" }` of [services.broker] gives it more time"#);
        insta::assert_snapshot!(hint(FailedStep::Check, "site"), @r#"if it only takes longer: `limits = { check = "…" }` of [signals] gives it more time"#);
        let steps = [FailedStep::Test, FailedStep::Check, FailedStep::Remove];
        let all = steps.map(|step| hint(step, "billing"));
        for (key, hint) in ["test", "check", "remove"].iter().zip(all) {
            assert!(hint.contains(&format!("`limits = {{ {key} = ")), "{hint}");
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_told_apart_for_the_site_which_needs_grid() {
        let hint = |service: &str| {
            let service = ServiceName::new(service).unwrap();
            hint_of(FailedStep::Check, Some(&service), "it exited with 127", &[]).unwrap()
        };
        insta::assert_snapshot!(hint("site"), @"127: `grid` is not there, which the site's commands run: install it on the machine, or have the push do it (`binary` of `[signals]` names a file beside mesh.toml); `check` and `apply` of `[signals]` may name other commands");
        insta::assert_snapshot!(hint("broker"), @"127: a command that was to be run is not there; the service's commands in the declaration say which are run");
    }
}
