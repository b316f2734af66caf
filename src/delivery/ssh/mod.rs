//! The courier `ssh`: libssh2, one connection and one channel a send (DESIGN.md, section 5).

mod auth;
mod config;
mod host_key;
mod match_blocks;
mod passphrase;
mod proxy;
mod seen;
mod wire;

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ssh2::{Channel, ErrorCode, MethodType};
use ssh2_config::SshConfig;

use self::config::Route;
use self::host_key::Known;
pub use self::match_blocks::match_blocks;
pub use self::passphrase::AskPassphrase;
use self::passphrase::Passphrases;
pub use self::seen::{SeenKey, host_keys};
use self::wire::{Socket, Stop, Wire};
use super::courier::Target;
use super::error::DeliveryError;
use super::link::{Courier, Link, READS, keep_said};
use super::script::{LONGEST, Launch};
use super::settings::CourierSettings;

/// How long one attempt to connect takes at most, unless ssh_config says otherwise.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an orderly end is waited for.
const GOODBYE: Duration = Duration::from_secs(3);
/// `LIBSSH2_ERROR_KEX_FAILURE`, `_METHOD_NONE`, `_METHOD_NOT_SUPPORTED`: no retry changes that.
const NO_COMMON_WAY: [i32; 3] = [-5, -17, -33];

/// Reaches machines by ssh.
pub(super) struct Ssh {
    settings: CourierSettings,
    /// Read when the first machine needs it.
    config: OnceLock<Result<Option<SshConfig>, DeliveryError>>,
    passphrases: Passphrases,
}

impl std::fmt::Debug for Ssh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ssh")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Ssh {
    pub(super) fn new(settings: &CourierSettings) -> Self {
        Self {
            settings: settings.clone(),
            config: OnceLock::new(),
            passphrases: Passphrases::new(settings.passphrases.clone()),
        }
    }

    /// Connects, makes sure of the machine, and logs in. Says until when the rest of it may take: what a person took to
    /// type a passphrase does not count.
    fn connect(
        &self,
        target: &Target,
        deadline: Instant,
    ) -> Result<(Wire, Instant), DeliveryError> {
        let config = self
            .config
            .get_or_init(|| config::read(self.settings.home.as_deref()))
            .as_ref()
            .map_err(Clone::clone)?;
        let route = config::route(target, config.as_ref(), &self.settings)?;
        let mut wire = wire(&route, &self.settings, deadline)?;
        let known = Known::read(&route, &wire.session)?;
        if let Some(algorithms) = known.algorithms() {
            // Where libssh2 knows none of them, whatever is shown will be judged as changed.
            let _ = wire.session.method_pref(MethodType::HostKey, &algorithms);
        }
        shake_hands(&mut wire, &route, deadline)?;
        let key = wire.session.host_key().map(|(key, _)| key.to_vec());
        known.judge(&route, target.node.name.as_str(), &key.unwrap_or_default())?;
        let deadline = auth::log_in(&wire, &route, &self.passphrases, deadline)?;
        Ok((wire, deadline))
    }
}

/// The way to a machine; nothing was said yet.
fn wire(
    route: &Route,
    settings: &CourierSettings,
    deadline: Instant,
) -> Result<Wire, DeliveryError> {
    let socket = match &route.proxy {
        None => Socket::Tcp(open(route, deadline)?),
        Some(proxy) => {
            let (socket, lead) = proxy::start(proxy, route, settings)?;
            Socket::Led(socket, lead)
        }
    };
    Wire::new(socket, route).map_err(|error| DeliveryError::Connect {
        address: route.shown(),
        why: error.to_string(),
    })
}

fn shake_hands(wire: &mut Wire, route: &Route, deadline: Instant) -> Result<(), DeliveryError> {
    let session = std::cell::RefCell::new(wire.session.clone());
    wire.drive(deadline, || session.borrow_mut().handshake())
        .map_err(|stop| {
            let (address, why) = (route.shown(), format!("{stop}{}", wire.lead_said()));
            match stop {
                Stop::Refused(error)
                    if matches!(error.code(), ErrorCode::Session(code) if NO_COMMON_WAY.contains(&code)) =>
                {
                    DeliveryError::Negotiate { address, why }
                }
                _ => DeliveryError::Handshake { address, why },
            }
        })
}

/// Resolving has no deadline of its own in the system, so somebody else waits for it.
fn resolve(route: &Route, deadline: Instant) -> Result<Vec<SocketAddr>, DeliveryError> {
    let unknown = |why: String| DeliveryError::Resolve {
        host: route.host.clone(),
        why,
    };
    let (tell, told) = mpsc::channel();
    let name = (route.host.clone(), route.port);
    thread::Builder::new()
        .spawn(move || {
            let found = name.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            let _ = tell.send(found);
        })
        .map_err(|error| unknown(error.to_string()))?;
    let left = deadline.saturating_duration_since(Instant::now());
    match told.recv_timeout(left) {
        Ok(Ok(found)) if !found.is_empty() => Ok(found),
        Ok(Ok(_)) => Err(unknown("no address stands there".to_owned())),
        Ok(Err(error)) => Err(unknown(error.to_string())),
        Err(_) => Err(unknown("no answer in time".to_owned())),
    }
}

/// Connects to the first address that answers.
fn open(route: &Route, deadline: Instant) -> Result<TcpStream, DeliveryError> {
    let mut why = String::new();
    for address in resolve(route, deadline)? {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = route.connect_timeout.unwrap_or(CONNECT).min(left);
        if wait.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, wait) {
            Ok(socket) => return Ok(socket),
            Err(error) => why = told(&error, wait),
        }
    }
    Err(DeliveryError::Connect {
        address: route.shown(),
        why: if why.is_empty() {
            "timed out".to_owned()
        } else {
            why
        },
    })
}

fn told(error: &io::Error, wait: Duration) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused: nobody listens there".to_owned(),
        io::ErrorKind::TimedOut => format!("no answer within {} s", wait.as_secs().max(1)),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "no route to it".to_owned()
        }
        _ => error.to_string(),
    }
}

impl Courier for Ssh {
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
        let (wire, deadline) = self.connect(target, deadline)?;
        let refused = |stop: Stop| DeliveryError::Channel {
            why: stop.to_string(),
        };
        let mut channel = wire
            .drive(deadline, || wire.session.channel_session())
            .map_err(refused)?;
        wire.drive(deadline, || channel.exec(&line))
            .map_err(refused)?;
        Ok(Box::new(Line {
            channel,
            wire,
            said: Vec::new(),
        }))
    }
}

/// A channel with the machine side at its other end.
struct Line {
    channel: Channel,
    wire: Wire,
    /// What came on standard error.
    said: Vec<u8>,
}

/// Takes what there is on standard error. It takes up room on the wire until it is read.
fn hear_error(channel: &mut Channel, said: &mut Vec<u8>) {
    let mut buffer = [0; 1024];
    for _ in 0..READS {
        match channel.stderr().read(&mut buffer) {
            Ok(n) if n > 0 => keep_said(said, buffer.get(..n).unwrap_or_default()),
            _ => return,
        }
    }
}

impl Link for Line {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let (channel, said) = (&mut self.channel, &mut self.said);
        self.wire.drive_io(deadline, || {
            let read = channel.read(buffer);
            if !matches!(read, Ok(1..)) {
                hear_error(channel, said);
            }
            read
        })
    }

    fn said(&self) -> &[u8] {
        &self.said
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let channel = &mut self.channel;
            let n = self.wire.drive_io(deadline, || {
                // Nobody reads any more at the other end.
                if channel.eof() {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                channel.write(bytes)
            })?;
            bytes = bytes.get(n..).unwrap_or_default();
        }
        Ok(())
    }

    fn ended(&mut self, deadline: Instant) -> Option<String> {
        let deadline = deadline.min(Instant::now() + GOODBYE);
        let (wire, channel) = (&self.wire, &mut self.channel);
        wire.drive(deadline, || channel.close()).ok()?;
        wire.drive(deadline, || channel.wait_close()).ok()?;
        if let Some(signal) = channel.exit_signal().ok()?.exit_signal {
            return Some(format!("killed by SIG{}", super::message::clean(&signal)));
        }
        let status = channel.exit_status().ok()?;
        Some(format!("exit status: {status}"))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_millis(200);
        let (wire, channel) = (&self.wire, &mut self.channel);
        let _ = wire.drive(deadline, || channel.close());
        let _ = wire.drive(deadline, || {
            wire.session
                .disconnect(Some(ssh2::DisconnectCode::ByApplication), "done", None)
        });
    }
}
