//! Tells systemd how the daemon is (sd_notify(3)): datagrams to the socket in `NOTIFY_SOCKET`.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Whom to tell, if anybody.
#[derive(Debug)]
pub struct Notify(Option<(UnixDatagram, SocketAddr)>);

impl Notify {
    /// Whoever started the daemon.
    #[must_use]
    pub fn from_environment() -> Self {
        let Some(place) = std::env::var_os("NOTIFY_SOCKET") else {
            return Self(None);
        };
        let address = match place.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(&place),
        };
        let socket = UnixDatagram::unbound();
        Self(socket.ok().zip(address.ok()))
    }

    /// Says `state`. Nobody to tell, or one who does not listen, is no failure of the daemon's.
    pub fn say(&self, state: &str) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}
