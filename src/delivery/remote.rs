//! One command on a machine, over its courier: for what is neither a send nor a question.
//!
//! Its output comes between two marks that are drawn anew each time, so that what a start-up file of the login prints is
//! not taken for it. Its standard input is empty.
//! Threat: what a machine answers is data. It is bounded in bytes and in time, and nothing of it is believed but what it is.

use std::io;
use std::time::{Duration, Instant};

use super::courier::Target;
use super::dispatch::Couriers;
use super::ear::{failure, not_started};
use super::link::Link;
use super::message::clean;
use super::receipt::{FailedStep, Failure};
use super::script::Launch;

/// The machine side. What a site's machine has of grid may lie where a login that runs one command does not look.
const SCRIPT: &str = r#"m=$1
shift
PATH=$PATH:/usr/local/bin:/usr/bin
export PATH
printf "\n%s begin\n" "$m"
"$@" </dev/null
printf "\n%s end %d\n" "$m" "$?"
"#;

/// How much a login may print before the command, in bytes.
const NOISE: usize = 64 * 1024;
/// How long the end of a connection is waited for, once the command has ended.
const GOODBYE: Duration = Duration::from_secs(1);
/// How long an exit code is with its newline, in bytes.
const CODE: usize = 4;
/// Lines of its standard error that are kept.
const LINES: usize = 20;

/// A command to run once.
#[derive(Debug, Clone)]
pub struct RemoteCommand {
    /// Its words. None is secret, for all can be seen in the machine's process list.
    pub words: Vec<String>,
    /// The most that it may print, in bytes.
    pub most: usize,
    /// How long it may take, once the machine was reached.
    pub limit: Duration,
}

/// A command that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code; 127: there is no such command.
    pub code: u8,
    /// What it printed.
    pub output: Vec<u8>,
    /// The last lines of its standard error, without control characters.
    pub said: Vec<String>,
}

impl Couriers {
    /// Runs `command` on a machine. At the step [`FailedStep::Receipt`] it may have run; before it, it did not.
    ///
    /// # Errors
    /// When it could not be run, or its end was not heard in time.
    pub fn command(&self, target: &Target, command: &RemoteCommand) -> Result<Ran, Failure> {
        let mark = format!("grid-{:016x}", rand::random::<u64>());
        let mut arguments = vec![mark.clone()];
        arguments.extend(command.words.iter().cloned());
        let launch = Launch {
            become_root: target.node.become_root,
            script: SCRIPT,
            arguments,
        };
        let mut link = self.worker().start(target, &launch, None, &mut |_| {})?;
        hear(&mut *link, &mark, command)
    }
}

/// Hears a command to its end.
fn hear(link: &mut dyn Link, mark: &str, command: &RemoteCommand) -> Result<Ran, Failure> {
    let until = Instant::now() + command.limit;
    let begin = format!("\n{mark} begin\n");
    let mut heard = vec![b'\n'];
    let mut buffer = vec![0; 32 * 1024];
    // Where its output begins, once it has.
    let mut from = None;
    loop {
        let n = match link.read(&mut buffer, until) {
            Ok(0) => return Err(broken(link, from.is_some())),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let cause = format!("it did not answer within {} s", command.limit.as_secs());
                return Err(failure(FailedStep::Receipt, cause));
            }
            Err(error) => {
                let cause = format!("the connection broke: {error}");
                return Err(failure(FailedStep::Receipt, cause));
            }
        };
        heard.extend_from_slice(buffer.get(..n).unwrap_or_default());
        if from.is_none() {
            from = find(&heard, begin.as_bytes()).map(|at| at.saturating_add(begin.len()));
        }
        let printed = heard.get(from.unwrap_or(0)..).unwrap_or_default();
        if from.is_some()
            && let Some((output, code)) = ended(printed, n, mark)
        {
            let output = output.to_vec();
            if output.len() > command.most {
                return Err(too_much(command.most));
            }
            // What it said on standard error may come a moment later.
            let _ = link.read(&mut buffer, Instant::now() + GOODBYE);
            let said = said(link);
            return Ok(Ran { code, output, said });
        }
        let most = match from {
            Some(_) => command.most.saturating_add(begin.len()).saturating_add(64),
            None => NOISE,
        };
        if printed.len() > most {
            return Err(match from {
                Some(_) => too_much(command.most),
                None => not_started(
                    format!("its login prints more than {NOISE} bytes before a command runs"),
                    Vec::new(),
                ),
            });
        }
    }
}

fn too_much(most: usize) -> Failure {
    let cause = format!("it answers with more than {most} bytes");
    failure(FailedStep::Receipt, cause)
}

/// The output and the exit code, if there is the mark of its end among the last `new` bytes or close before them.
fn ended<'a>(printed: &'a [u8], new: usize, mark: &str) -> Option<(&'a [u8], u8)> {
    let end = format!("\n{mark} end ");
    let before = new.saturating_add(end.len()).saturating_add(CODE);
    let tail = printed.len().saturating_sub(before);
    let at = tail.saturating_add(find(printed.get(tail..)?, end.as_bytes())?);
    let code = printed.get(at.saturating_add(end.len())..)?;
    let length = code.iter().take(CODE).position(|byte| *byte == b'\n')?;
    let code = std::str::from_utf8(code.get(..length)?).ok()?;
    Some((printed.get(..at)?, code.parse().ok()?))
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn said(link: &dyn Link) -> Vec<String> {
    let text = String::from_utf8_lossy(link.said()).into_owned();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(clean).collect();
    let surplus = lines.len().saturating_sub(LINES);
    lines.into_iter().skip(surplus).collect()
}

/// It ended without its mark.
fn broken(link: &mut dyn Link, has_begun: bool) -> Failure {
    let ended = link.ended(Instant::now() + GOODBYE);
    if let Some(own) = link.failed_itself() {
        return own;
    }
    let how = ended.unwrap_or_else(|| "the connection was closed".to_owned());
    let said = said(link);
    if has_begun {
        return Failure {
            output: said,
            ..failure(FailedStep::Receipt, format!("it broke off: {how}"))
        };
    }
    not_started(format!("the machine side did not start: {how}"), said)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that says all this, so many bytes at a time, and then closes.
    struct Says {
        bytes: Vec<u8>,
        at_once: usize,
        error: Vec<u8>,
    }

    impl Link for Says {
        fn read(&mut self, buffer: &mut [u8], _: Instant) -> io::Result<usize> {
            let n = self.at_once.min(self.bytes.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.bytes[..n]);
            self.bytes.drain(..n);
            Ok(n)
        }
        fn said(&self) -> &[u8] {
            &self.error
        }
        fn write(&mut self, _: &[u8], _: Instant) -> io::Result<()> {
            Ok(())
        }
        fn ended(&mut self, _: Instant) -> Option<String> {
            Some("exit status: 1".to_owned())
        }
    }

    fn heard(bytes: &[u8], at_once: usize, most: usize) -> Result<Ran, Failure> {
        let mut link = Says {
            bytes: bytes.to_vec(),
            at_once,
            error: b"a\x1b[2J\n\nb\n".to_vec(),
        };
        let command = RemoteCommand {
            words: Vec::new(),
            most,
            limit: Duration::from_secs(60),
        };
        hear(&mut link, "m", &command)
    }

    #[test]
    fn the_output_stands_between_the_marks_however_it_comes() {
        let all = b"motd\n\nm begin\none\n\nm end 42\nlogout\n";
        for at_once in [1, 2, 7, 1000] {
            let ran = heard(all, at_once, 100).unwrap();
            assert_eq!((ran.code, ran.output), (42, b"one\n".to_vec()), "{at_once}");
            assert_eq!(ran.said, ["a\u{fffd}[2J", "b"]);
        }
        let ran = heard(b"\nm begin\n\nm end 0\n", 3, 0).unwrap();
        assert_eq!((ran.code, ran.output), (0, Vec::new()));
    }

    #[test]
    fn who_says_too_much_or_too_little_is_a_failure() {
        let step = |bytes: &[u8], most| heard(bytes, 512, most).unwrap_err().step;
        assert_eq!(step(b"", 10), FailedStep::Start);
        assert_eq!(step(b"sh: not here\n", 10), FailedStep::Start);
        assert_eq!(step(&vec![b'x'; 2 * NOISE], 10), FailedStep::Start);
        assert_eq!(step(b"\nm begin\nab", 10), FailedStep::Receipt);
        assert_eq!(step(b"\nm begin\nab\nm end 0\n", 1), FailedStep::Receipt);
        assert_eq!(step(b"\nm begin\nab\nm end 300\n", 10), FailedStep::Receipt);
        let endless = [b"\nm begin\n".to_vec(), vec![b'x'; 1_000_000]].concat();
        let failure = heard(&endless, 512, 1000).unwrap_err();
        assert_eq!(failure.cause, "it answers with more than 1000 bytes");
    }
}
