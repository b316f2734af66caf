//! The mutual-TLS listener, bound only under poll: connections, their handshakes and their ends.
//!
//! Threat: anybody may connect. Nobody gets past the handshake without being named, every wait has its end, and what a
//! connection may hold is counted before it is looked at.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::admission::{Admission, Place, Refused};
use super::metrics::Metrics;
use super::patient::Patient;
use super::serve::{Reply, Served, Session, text};
use super::tls::Credentials;
use crate::signals::site::Settings;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// The largest head of a request, in bytes; hyper answers 431 past it.
const HEAD: usize = 16 * 1024;

/// The most headers of a request.
const HEADERS: usize = 64;

/// How many callers from the site's own addresses may wait for a place.
const WAITING: usize = 64;

/// How often one that waits looks whether somebody stalls.
const LOOK: Duration = Duration::from_millis(100);

/// How long is waited when the system has no more files for connections.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a connection that is told to end may still take.
const LAST: Duration = Duration::from_secs(6);

/// Binds the listener: IPv6 and IPv4 where nothing else is said.
///
/// # Errors
/// When the system refuses.
pub fn bind(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let bound = open(address, port);
    let has_no_ipv6 = |error: &io::Error| {
        use io::ErrorKind::{AddrNotAvailable, Unsupported};
        matches!(error.kind(), AddrNotAvailable | Unsupported)
            || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
    };
    match bound {
        Err(error) if address.is_ipv6() && address.is_unspecified() && has_no_ipv6(&error) => {
            open(Ipv4Addr::UNSPECIFIED.into(), port)
        }
        bound => bound,
    }
}

fn open(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let socket = match address {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if address.is_ipv6() && address.is_unspecified() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, false)?;
    }
    socket.set_reuseaddr(true)?; // a restart does not wait for old connections
    socket.bind(SocketAddr::new(address, port))?;
    socket.listen(BACKLOG)
}

/// What every connection shares.
pub struct Listener {
    /// Who the site is and whom it knows.
    pub credentials: Arc<Credentials>,
    /// Who may hold a connection.
    pub admission: Admission,
    /// The limits.
    pub settings: Settings,
    /// What is served.
    pub served: Arc<Served>,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

impl Listener {
    /// Accepts connections until `ending` says so, and then waits for those that are there, for a few seconds.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub async fn run(
        self: Arc<Self>,
        socket: TcpListener,
        mut ending: watch::Receiver<bool>,
    ) -> Result<(), rustls::Error> {
        let acceptor = TlsAcceptor::from(Arc::new(self.credentials.server()?));
        let waiting = Arc::new(Semaphore::new(WAITING));
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                _ = ending.wait_for(|ends| *ends) => break,
            };
            while connections.try_join_next().is_some() {}
            let (stream, from) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                    ) {
                        tokio::time::sleep(PAUSE).await;
                    }
                    continue;
                }
            };
            let is_own = is_own(&stream, from);
            let arrival = Arrival {
                listener: Arc::clone(&self),
                acceptor: acceptor.clone(),
                stream,
                ending: ending.clone(),
            };
            match self.admission.arrive(from.ip(), is_own, now()) {
                Ok(place) => {
                    connections.spawn(arrival.run(place));
                }
                Err(Refused::Full) if is_own => {
                    let Ok(seat) = Arc::clone(&waiting).try_acquire_owned() else {
                        self.metrics.connection(Refused::Full);
                        continue;
                    };
                    connections.spawn(async move {
                        let place = arrival.waits(from.ip()).await;
                        drop(seat);
                        match place {
                            Some(place) => arrival.run(place).await,
                            None => arrival.listener.metrics.connection(Refused::Full),
                        }
                    });
                }
                Err(refused) => self.metrics.connection(refused),
            }
        }
        drop(socket);
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(LAST, all).await;
        Ok(())
    }
}

/// Whether a connection comes from an address of the machine's own: then it has that address at both ends, or both are
/// on the loopback.
fn is_own(stream: &TcpStream, from: SocketAddr) -> bool {
    let from = from.ip().to_canonical();
    let here = stream
        .local_addr()
        .map(|address| address.ip().to_canonical());
    from.is_loopback() || here.is_ok_and(|here| here == from)
}

fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// A connection that was accepted.
struct Arrival {
    listener: Arc<Listener>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    ending: watch::Receiver<bool>,
}

impl Arrival {
    /// Waits for a place, as long as a handshake may take.
    async fn waits(&self, from: IpAddr) -> Option<(Place, oneshot::Receiver<()>)> {
        let admission = &self.listener.admission;
        let until = Instant::now() + self.listener.settings.handshake_ms.duration();
        while Instant::now() < until && !*self.ending.borrow() {
            let _ = timeout(LOOK, admission.freed().notified()).await;
            match admission.arrive(from, true, now()) {
                Ok(place) => return Some(place),
                Err(Refused::Full) => {}
                Err(_) => return None,
            }
        }
        None
    }

    async fn run(self, (place, evicted): (Place, oneshot::Receiver<()>)) {
        let connection = Connection {
            listener: self.listener,
            place,
            ending: self.ending,
        };
        connection.run(self.acceptor, self.stream, evicted).await;
    }
}

struct Connection {
    listener: Arc<Listener>,
    place: Place,
    ending: watch::Receiver<bool>,
}

impl Connection {
    async fn run(
        mut self,
        acceptor: TlsAcceptor,
        stream: TcpStream,
        evicted: oneshot::Receiver<()>,
    ) {
        let began = Instant::now();
        let settings = &self.listener.settings;
        let until = began + settings.handshake_ms.duration();
        let metrics = &self.listener.metrics;
        let _ = stream.set_nodelay(true);
        let shaken = tokio::select! {
            shaken = timeout_at(until, acceptor.accept(stream)) => shaken,
            Ok(()) = evicted => {
                metrics.stranger("evicted");
                return;
            }
            // Nobody who only shakes hands delays a restart.
            _ = self.ending.wait_for(|ends| *ends) => return,
        };
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a handshake failed");
                metrics.stranger("failed");
                return;
            }
            Err(_) => {
                metrics.stranger("timeout");
                return;
            }
        };
        let Some(leaf) = leaf(&stream) else {
            return;
        };
        let Ok(session) = Session::begin(&self.listener.credentials, leaf) else {
            return;
        };
        match self.place.identify(session.caller()) {
            Ok(()) => self.serve(stream, session, began).await,
            Err(refused) => {
                metrics.connection(refused);
                if refused == Refused::Share {
                    let again = settings.handshake_ms.duration();
                    let _ = timeout(again, over_share(stream, metrics)).await;
                }
            }
        }
    }

    async fn serve(mut self, stream: TlsStream<TcpStream>, session: Session, began: Instant) {
        let settings = &self.listener.settings;
        let stream = Patient::new(stream, settings.write_ms.duration());
        let session = Arc::new(session);
        let service = service_fn(|request: Request<Incoming>| {
            let (served, session) = (Arc::clone(&self.listener.served), Arc::clone(&session));
            async move { served.answer(&session, request).await }
        });
        let connection =
            http(settings.head_ms.duration()).serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let age = began + settings.connection_ms.duration();
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
                return;
            }
            () = tokio::time::sleep_until(age) => {}
            _ = self.ending.wait_for(|ends| *ends) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(LAST, connection).await;
    }
}

fn http(head: Duration) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(HEAD)
        .max_headers(HEADERS);
    builder
}

/// Answers one request of a site past its share with 503.
async fn over_share(stream: TlsStream<TcpStream>, metrics: &Metrics) {
    let service = service_fn(|_: Request<Incoming>| async {
        metrics.request(503);
        let mut reply: Response<_> = text(
            StatusCode::SERVICE_UNAVAILABLE,
            "this site holds as many connections as it may\n",
        );
        let close = hyper::header::HeaderValue::from_static("close");
        reply.headers_mut().insert(hyper::header::CONNECTION, close);
        Ok::<Reply, std::convert::Infallible>(reply)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.keep_alive(false).max_buf_size(HEAD);
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn leaf(stream: &TlsStream<TcpStream>) -> Option<CertificateDer<'static>> {
    let certificates = stream.get_ref().1.peer_certificates();
    certificates?.first().map(|leaf| leaf.clone().into_owned())
}
