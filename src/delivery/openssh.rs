//! The courier `openssh`: the system's `ssh` as a child, for what libssh2 cannot do: hardware keys, Kerberos,
//! certificates, `Match` blocks.
//!
//! `ssh` ends with 255 both where it failed itself and where the command over there did. Its own messages go to a
//! file of their own (`-E`), which no machine can write to: only where it says something did `ssh` fail.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::courier::Target;
use super::error::{DeliveryError, NotLetIn, absent};
use super::link::{Courier, Link};
use super::local::{Pipe, start};
use super::receipt::{FailedStep, Failure};
use super::script::{LONGEST, Launch};
use super::settings::CourierSettings;

/// The longest of what `ssh` says that is kept, in bytes.
const SAID: usize = 1000;

/// Reaches machines by the system's `ssh`.
#[derive(Debug)]
pub(super) struct OpenSsh {
    pub settings: CourierSettings,
}

/// The system's `ssh`, as nobody's terminal uses it: it asks nothing, shares no connection, and trusts no new key.
pub(super) fn ssh(settings: &CourierSettings) -> Command {
    let mut command = Command::new("ssh");
    let config = settings.home.as_ref().map(|home| home.join(".ssh/config"));
    if let Some(config) = config.filter(|config| config.is_file()) {
        command.arg("-F").arg(config);
    }
    command.arg("-T");
    for option in [
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "UpdateHostKeys=no",
        "ControlMaster=no",
        "ControlPath=none",
        "ForwardAgent=no",
        "RemoteCommand=none",
        "ServerAliveInterval=15",
    ] {
        command.args(["-o", option]);
    }
    let own = settings.declaration_dir.join("known_hosts");
    if let Ok(own) = camino::absolute_utf8(&own)
        && !own
            .as_str()
            .contains(|c: char| c.is_whitespace() || c == '"')
    {
        let files = format!("GlobalKnownHostsFile=/etc/ssh/ssh_known_hosts {own}");
        command.args(["-o", &files]);
    }
    command
}

impl Courier for OpenSsh {
    fn start(
        &self,
        target: &Target,
        launch: &Launch,
        deadline: Instant,
    ) -> Result<Box<dyn Link>, DeliveryError> {
        let line = launch.line();
        if line.len() > LONGEST {
            return Err(DeliveryError::Channel {
                why: format!(
                    "the command has {} bytes, and {LONGEST} is the most",
                    line.len()
                ),
            });
        }
        let node = &target.node;
        let log = Log::new().map_err(|error| DeliveryError::Spawn {
            program: "ssh".to_owned(),
            why: format!("no file for what it says: {error}"),
        })?;
        let left = deadline.saturating_duration_since(Instant::now());
        let mut command = ssh(&self.settings);
        command.arg("-E").arg(&log.path);
        command.args(["-o", &format!("ConnectTimeout={}", left.as_secs().max(1))]);
        if let Some(port) = node.port {
            command.args(["-p", &port.to_string()]);
        }
        if let Some(user) = &node.user {
            command.args(["-l", user]);
        }
        let identity = self.settings.identity_of(node);
        if let Some(identity) = &identity {
            command.arg("-i").arg(identity);
        }
        command.args(["--", node.host(), &line]);
        let pipe = start(command.env_remove("GRID_IDENTITY"))?;
        Ok(Box::new(Line {
            pipe,
            log,
            identity,
        }))
    }
}

/// Where a child of `ssh` writes what it has to say; gone with it.
struct Log {
    path: PathBuf,
}

impl Log {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("grid-ssh-{:016x}", rand::random::<u64>()));
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self { path })
    }

    fn last_line(&self) -> Option<String> {
        let text = fs::read(&self.path).ok()?;
        let text = String::from_utf8_lossy(text.get(..text.len().min(64 * 1024))?).into_owned();
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        let line: String = line.chars().take(SAID).collect();
        Some(super::message::clean(&line))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // It is a file in a temporary folder, without anything that matters.
        let _ = fs::remove_file(&self.path);
    }
}

/// A child of `ssh` with the machine side at its other end.
struct Line {
    pipe: Pipe,
    log: Log,
    /// The key file that the declaration names.
    identity: Option<PathBuf>,
}

impl Link for Line {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.pipe.read(buffer, deadline)
    }

    fn said(&self) -> &[u8] {
        self.pipe.said()
    }

    fn write(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        self.pipe.write(bytes, deadline)
    }

    fn ended(&mut self, deadline: Instant) -> Option<String> {
        self.pipe.ended(deadline)
    }

    fn failed_itself(&mut self) -> Option<Failure> {
        let is_own = self.pipe.code() == Some(255);
        let said = self.log.last_line().filter(|_| is_own)?;
        let step = step_of(&said);
        let mut cause = format!("ssh says: {said}");
        let identity = self.identity.as_ref();
        let missing = identity.filter(|_| step == FailedStep::Authenticate);
        let missing = missing.filter(|file| !file.exists());
        if let Some(file) = missing {
            cause = format!("{cause}; {}", absent(file));
        }
        Some(Failure {
            step,
            service: None,
            cause,
            output: Vec::new(),
            hint: Some(match step {
                FailedStep::HostKey => {
                    "`ssh` to it by hand shows its key; or `grid trust` accepts exactly one"
                        .to_owned()
                }
                FailedStep::Authenticate if missing.is_some() => NotLetIn::NoFile.hint().to_owned(),
                FailedStep::Authenticate => format!(
                    "{}; a passphrase is never asked for here",
                    match std::env::var_os("SSH_AUTH_SOCK") {
                        Some(_) => NotLetIn::OfAgent.hint(),
                        None => NotLetIn::OfFiles.hint(),
                    }
                ),
                _ => "try `ssh -v` to it by hand".to_owned(),
            }),
        })
    }
}

fn step_of(said: &str) -> FailedStep {
    let has = |part: &str| said.contains(part);
    if has("Host key verification failed") || has("host key") {
        FailedStep::HostKey
    } else if has("Permission denied") || has("Too many authentication failures") {
        FailedStep::Authenticate
    } else if has("Could not resolve hostname") {
        FailedStep::Resolve
    } else {
        FailedStep::Connect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_tells_the_step() {
        for (said, step) in [
            ("Host key verification failed.", FailedStep::HostKey),
            (
                "root@atlas: Permission denied (publickey).",
                FailedStep::Authenticate,
            ),
            (
                "ssh: Could not resolve hostname x: Name or service not known",
                FailedStep::Resolve,
            ),
            (
                "ssh: connect to host x port 22: Connection refused",
                FailedStep::Connect,
            ),
        ] {
            assert_eq!(step_of(said), step, "{said}");
        }
    }
}
