//! Runs a program of the operator's on the controller: a secret's command, `git`. No shell, a deadline, a bound.

use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

/// How often it is asked whether a program has ended that printed all it will.
const POLL: Duration = Duration::from_millis(5);

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

/// What it printed, at most `most` bytes. It gets no standard input and not `$GRID_IDENTITY`.
pub(super) fn output(
    command: &mut Command,
    deadline: Duration,
    most: u64,
) -> Result<Zeroizing<Vec<u8>>, ChildError> {
    let began = Instant::now();
    let mut child = command
        .env_remove("GRID_IDENTITY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(ChildError::Start)?;
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
    result
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
        output(
            Command::new("sh")
                .args(["-c", script])
                .stderr(Stdio::null()),
            deadline,
            100,
        )
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
        let absent = output(&mut Command::new("/nonexistent"), long, 1);
        assert!(matches!(absent, Err(ChildError::Start(_))));
    }
}
