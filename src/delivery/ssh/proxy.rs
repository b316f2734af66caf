//! Machines that are reached through a child: ProxyCommand, and ProxyJump by way of the system's `ssh -W`.
//!
//! The child speaks over a socket pair, so that libssh2 takes it for a connection. A jump is done by `ssh` itself, nested
//! ones included: whose key a jump host has, and how it is logged in to, is then as `ssh` knows it.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::error::DeliveryError;
use super::super::openssh;
use super::super::settings::CourierSettings;
use super::config::{Proxy, Route};

/// What a child says on standard error, in bytes that are kept.
const SAID: u64 = 4096;
/// How long a child that ends may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A child that leads to the machine; ended with its connection.
pub(super) struct Lead {
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Lead {
    /// The last line that the child printed for people, once its connection has broken.
    pub(super) fn said(&self) -> Option<String> {
        // Whoever reads it holds it too, until there is no more; a child that goes on is not waited for.
        let end = Instant::now() + LAST_WORDS;
        while Arc::strong_count(&self.said) > 1 && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said).into_owned();
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(super::super::message::clean(line))
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        // It may have ended by itself meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the child that leads to the machine of `route`.
///
/// # Errors
/// When it cannot be started.
pub(super) fn start(
    proxy: &Proxy,
    route: &Route,
    settings: &CourierSettings,
) -> Result<(UnixStream, Lead), DeliveryError> {
    let mut command = match proxy {
        Proxy::Command(line) => {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("exec {}", filled(line, route))]);
            command
        }
        Proxy::Jump(jumps) => jump(jumps, route, settings)?,
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| DeliveryError::Spawn {
        program: program.clone(),
        why: error.to_string(),
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let input = theirs.try_clone().map_err(failed)?;
    let mut child = command
        .env_remove("GRID_IDENTITY")
        .stdin(Stdio::from(OwnedFd::from(input)))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .stderr(Stdio::piped())
        // Ctrl-C on the controller's terminal is not for it: what is under way is finished.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let said = Arc::new(Mutex::new(Vec::new()));
    if let Some(mut stderr) = child.stderr.take() {
        let said = Arc::clone(&said);
        // Without the thread nothing is said, and the child may find its standard error closed.
        let _ = thread::Builder::new().spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(n @ 1..) = stderr.read(&mut buffer) {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                let is_room = u64::try_from(said.len()).is_ok_and(|len| len < SAID);
                if is_room {
                    said.extend_from_slice(buffer.get(..n).unwrap_or_default());
                }
            }
        });
    }
    Ok((ours, Lead { child, said }))
}

/// `a,b`: to `b` by way of `a`, and from there to the machine.
fn jump(
    jumps: &[String],
    route: &Route,
    settings: &CourierSettings,
) -> Result<Command, DeliveryError> {
    let wrong = || DeliveryError::Config {
        file: "~/.ssh/config".to_owned(),
        why: format!("ProxyJump {} names no host", jumps.join(",")),
    };
    let is_host = |jump: &&String| !jump.is_empty() && !jump.starts_with('-');
    if !jumps.iter().all(|jump| is_host(&jump)) {
        return Err(wrong());
    }
    let (last, before) = jumps.split_last().ok_or_else(wrong)?;
    let to = if route.host.contains(':') {
        format!("[{}]:{}", route.host, route.port)
    } else {
        format!("{}:{}", route.host, route.port)
    };
    let mut command = openssh::ssh(settings);
    if !before.is_empty() {
        command.args(["-J", &before.join(",")]);
    }
    // `user@host:port` or a URI; only in the latter form ssh takes a port.
    let last = match last.strip_prefix("ssh://") {
        Some(_) => last.clone(),
        None => format!("ssh://{last}"),
    };
    command.args(["-W", &to, "--", &last]);
    Ok(command)
}

/// The tokens that a ProxyCommand may have.
fn filled(line: &str, route: &Route) -> String {
    let mut text = String::new();
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match (c, letters.clone().next()) {
            ('%', Some(token @ ('h' | 'p' | 'r' | 'n' | '%'))) => {
                letters.next();
                match token {
                    'h' => text.push_str(&route.host),
                    'n' => text.push_str(&route.name),
                    'p' => text.push_str(&route.port.to_string()),
                    'r' => text.push_str(&route.user),
                    _ => text.push('%'),
                }
            }
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn route() -> Route {
        Route {
            name: "atlas".into(),
            host: "fe80::1".into(),
            port: 2222,
            user: "deploy".into(),
            identities: vec![],
            identities_named: false,
            identities_only: false,
            known_hosts: vec![],
            connect_timeout: None,
            alive: None,
            alive_count: None,
            proxy: None,
        }
    }

    #[test]
    fn a_proxy_command_has_its_tokens_filled_in() {
        assert_eq!(
            filled("nc -x '%r@p' %h %p %n 100%% %q %", &route()),
            "nc -x 'deploy@p' fe80::1 2222 atlas 100% %q %"
        );
    }

    #[test]
    fn nested_jumps_go_in_their_order_and_what_looks_like_an_option_is_refused() {
        let mut settings = CourierSettings::new("/mesh".into());
        settings.home = Some(PathBuf::from("/nowhere"));
        let jumps = |text: &str| -> Vec<String> { text.split(',').map(str::to_owned).collect() };
        let command = jump(&jumps("a,u@b:22"), &route(), &settings).unwrap();
        let words: Vec<_> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        assert!(words.ends_with(&["-J", "a", "-W", "[fe80::1]:2222", "--", "ssh://u@b:22"]));
        assert!(jump(&jumps("a,-oProxyCommand=x"), &route(), &settings).is_err());
        assert!(jump(&jumps(""), &route(), &settings).is_err());
    }
}
