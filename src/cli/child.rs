//! Runs a program of the operator's on the controller: a secret's command, `git`. No shell, a deadline, a bound.

use std::io::{self, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

/// How often it is asked whether a program has ended that printed all it will.
const POLL: Duration = Duration::from_millis(5);

/// How long the end of what it said is waited for, once it has ended.
const PATIENCE: Duration = Duration::from_millis(250);
/// The most lines of its standard error that are passed on, and the most bytes of each.
const LINES_MOST: usize = 20;
const LINE_MOST: usize = 500;

/// Why a program gave nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    /// It could not be started.
    #[error("cannot be run: {0}")]
    Start(io::Error),
    /// It took too long, and was ended.
    #[error("had not ended after {} s", .0.as_secs())]
    Deadline(Duration),
    /// It printed too much.
    #[error("printed more than {0} bytes")]
    TooMuch(u64),
    /// It failed.
    #[error("failed ({0})")]
    Failed(std::process::ExitStatus),
    /// The system refused.
    #[error("cannot be read from: {0}")]
    Io(io::Error),
}

/// What it printed, at most `most` bytes. It gets no standard input and not `$GRID_IDENTITY`. What it says on its
/// standard error comes to `hear`, line by line, a bounded number of bounded lines; they are not cleaned.
pub(super) fn output(
    command: &mut Command,
    deadline: Duration,
    most: u64,
    hear: impl FnMut(String) + Send + 'static,
) -> Result<Zeroizing<Vec<u8>>, ChildError> {
    let began = Instant::now();
    let mut child = command
        .env_remove("GRID_IDENTITY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(ChildError::Start)?;
    let said = child.stderr.take().map(|stderr| listen(stderr, hear));
    let result = read(&mut child, began, deadline, most).and_then(|bytes| {
        let status = wait(&mut child, began, deadline)?;
        if status.success() {
            Ok(bytes)
        } else {
            Err(ChildError::Failed(status))
        }
    });
    if result.is_err() {
        // It may have ended by itself meanwhile.
        let _ = child.kill();
        let _ = child.wait();
    }
    // What it said comes before what is said of it. A child of its own may hold the stream: it is not waited for.
    let _ = said.map(|said| said.recv_timeout(PATIENCE));
    result
}

/// Passes the lines of a stream on, from a thread of its own; tells when the stream has ended.
fn listen(
    stderr: ChildStderr,
    mut hear: impl FnMut(String) + Send + 'static,
) -> mpsc::Receiver<()> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = Lines::default();
        let mut stderr = stderr;
        let mut chunk = [0; 4096];
        // Read to its end, whatever is passed on: nobody is to wait for a full pipe.
        while let Ok(read @ 1..) = stderr.read(&mut chunk) {
            for byte in chunk.iter().take(read) {
                lines.take(*byte, &mut hear);
            }
        }
        lines.end(&mut hear);
        // Nobody listens any more once patience was over.
        let _ = tell.send(());
    });
    told
}

/// Cuts a stream into lines, and both to what is bearable.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    told: usize,
}

impl Lines {
    fn take(&mut self, byte: u8, hear: &mut impl FnMut(String)) {
        match byte {
            b'\n' | b'\r' => self.end(hear),
            _ if self.line.len() < LINE_MOST => self.line.push(byte),
            _ => {}
        }
    }

    fn end(&mut self, hear: &mut impl FnMut(String)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        self.told = self.told.saturating_add(1);
        match self.told.cmp(&LINES_MOST) {
            std::cmp::Ordering::Less => hear(String::from_utf8_lossy(&line).into_owned()),
            std::cmp::Ordering::Equal => hear("… and more".to_owned()),
            std::cmp::Ordering::Greater => {}
        }
    }
}

fn read(
    child: &mut Child,
    began: Instant,
    deadline: Duration,
    most: u64,
) -> Result<Zeroizing<Vec<u8>>, ChildError> {
    let (tell, told) = mpsc::channel();
    let Some(stdout) = child.stdout.take() else {
        return Err(ChildError::Io(io::Error::other("it has no output")));
    };
    std::thread::spawn(move || {
        // One buffer of the final size: growing would leave copies of a secret behind.
        let size = usize::try_from(most).unwrap_or(0).saturating_add(2);
        let mut bytes = Zeroizing::new(Vec::with_capacity(size));
        let read = stdout
            .take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .map(|_| bytes);
        // Nobody listens any more once the deadline has passed.
        let _ = tell.send(read);
    });
    let left = deadline.saturating_sub(began.elapsed());
    let bytes = told
        .recv_timeout(left)
        .map_err(|_| ChildError::Deadline(deadline))?
        .map_err(ChildError::Io)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > most) {
        return Err(ChildError::TooMuch(most));
    }
    Ok(bytes)
}

fn wait(
    child: &mut Child,
    began: Instant,
    deadline: Duration,
) -> Result<std::process::ExitStatus, ChildError> {
    loop {
        if let Some(status) = child.try_wait().map_err(ChildError::Io)? {
            return Ok(status);
        }
        if began.elapsed() >= deadline {
            return Err(ChildError::Deadline(deadline));
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, deadline: Duration) -> Result<Zeroizing<Vec<u8>>, ChildError> {
        output(Command::new("sh").args(["-c", script]), deadline, 100, drop)
    }

    #[test]
    fn what_a_program_says_is_passed_on_in_lines_and_within_bounds() {
        let heard = |script: &str| {
            let (tell, told) = mpsc::channel();
            let hear = move |line| tell.send(line).unwrap();
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            output(&mut command, Duration::from_secs(60), 100, hear).unwrap();
            told.iter().collect::<Vec<String>>()
        };
        assert_eq!(
            heard("printf 'one\ntwo\rthree' >&2; printf secret"),
            ["one", "two", "three"]
        );
        let many = heard("i=0; while [ $i -lt 500 ]; do echo $i >&2; i=$((i + 1)); done");
        assert_eq!(many.len(), LINES_MOST);
        assert_eq!(many.last().map(String::as_str), Some("… and more"));
        let long = heard("head -c 100000 /dev/zero | tr '\\0' x >&2");
        assert_eq!(
            long.iter().map(String::len).collect::<Vec<_>>(),
            [LINE_MOST]
        );
    }

    #[test]
    fn a_program_that_hangs_prints_too_much_or_fails_gives_nothing() {
        let long = Duration::from_secs(60);
        assert_eq!(sh("printf hello", long).unwrap().as_slice(), b"hello");
        assert!(matches!(sh("exit 3", long), Err(ChildError::Failed(_))));
        let much = sh("while :; do echo hello; done", long);
        assert!(matches!(much, Err(ChildError::TooMuch(100))));
        let never = sh("exec sleep 600", Duration::from_millis(50));
        assert!(matches!(never, Err(ChildError::Deadline(_))));
        let closed = sh("exec >&-; exec sleep 600", Duration::from_millis(50));
        assert!(matches!(closed, Err(ChildError::Deadline(_))));
        let absent = output(&mut Command::new("/nonexistent"), long, 1, drop);
        assert!(matches!(absent, Err(ChildError::Start(_))));
    }
}
