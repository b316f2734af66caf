//! Dials a site and asks it one thing over mutual TLS: what the poller and whoever reads a site by hand share; and the way
//! there, which a gateway's reports go too.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::fetch::{Answer, FetchError, get};
use super::tls::Credentials;
use crate::signals::reading::AnswerError;
use crate::words::{NodeName, PeerHost, is_special};

/// The most addresses of a name that are tried in one attempt.
const MOST_ADDRESSES: usize = 8;

/// Why a poll gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// Nobody answered in time.
    #[error("no answer in time")]
    Timeout,
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// The connection cannot be made, or broke.
    #[error("{0}")]
    Transport(String),
    /// The server failed.
    #[error("it answers with {0}")]
    Server(hyper::StatusCode),
    /// The server refused.
    #[error("it answers with {0}")]
    Status(hyper::StatusCode),
    /// It is not the site that was dialled.
    #[error("{0}")]
    Identity(String),
    /// No peer is there.
    #[error(
        "{0} is not an address of a peer: loopback, link-local or of a cloud's metadata; `special_addresses` of `[signals.settings]` admits it"
    )]
    Address(SocketAddr),
    /// Past the bound.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// It makes no sense.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl PollError {
    /// The word for the label `outcome` of `grid_peer_poll_total`.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::Transport(_) => "transport",
            Self::Server(_) => "server_error",
            Self::Status(_) => "status",
            Self::Identity(_) => "identity",
            Self::Address(_) => "address",
            Self::TooLarge(_) | Self::Answer(AnswerError::Exposition(_)) => "too_large",
            Self::Answer(AnswerError::NoDate) => "no_date",
        }
    }

    /// Whether the same again may work a moment later.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Timeout | Self::Refused | Self::Transport(_) | Self::Server(_)
        )
    }
}

impl From<io::Error> for PollError {
    fn from(error: io::Error) -> Self {
        let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref());
        match (of_tls, error.kind()) {
            // Our own judgement comes wrapped in what rustls prints for its debugging.
            (Some(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(why))), _) => {
                Self::Identity(why.0.to_string())
            }
            (Some(rustls::Error::InvalidCertificate(why)), _) => Self::Identity(why.to_string()),
            (_, io::ErrorKind::ConnectionRefused) => Self::Refused,
            (_, io::ErrorKind::TimedOut) => Self::Timeout,
            _ => Self::Transport(error.to_string()),
        }
    }
}

impl From<FetchError> for PollError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::TooLarge(most) => Self::TooLarge(most),
            other => Self::Transport(chain(&other)),
        }
    }
}

/// An error with its causes: hyper says of itself only that the connection failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// Whom to ask, and what.
pub(super) struct Dial<'a> {
    /// Who it has to be.
    pub site: &'a NodeName,
    /// Where it is.
    pub host: &'a PeerHost,
    /// Where it listens.
    pub port: u16,
    /// The path, with its query.
    pub path: &'a str,
    /// The most bytes of body that are read.
    pub most: usize,
    /// Whether it may be at an address that no peer has.
    pub may_be_special: bool,
}

impl Dial<'_> {
    /// Asks once. The caller keeps the deadline; dropping this closes the connection.
    ///
    /// # Errors
    /// When there is no whole answer of the dialled site with 200.
    pub(super) async fn get(&self, credentials: &Arc<Credentials>) -> Result<Answer, PollError> {
        let stream = connect(self.host, self.port, self.may_be_special).await?;
        let config = credentials.client(self.site);
        let config = config.map_err(|error| PollError::Transport(error.to_string()))?;
        let name = format!("{}.grid.internal", self.site);
        let authority = format!("{name}:{}", self.port);
        let name =
            ServerName::try_from(name).map_err(|error| PollError::Transport(error.to_string()))?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        let answer = get(stream, &authority, self.path, self.most).await?;
        if answer.status.is_server_error() {
            return Err(PollError::Server(answer.status));
        }
        if answer.status != hyper::StatusCode::OK {
            return Err(PollError::Status(answer.status));
        }
        Ok(answer)
    }
}

/// Connects to the first address that answers; a name is resolved anew each time.
pub(super) async fn connect(
    host: &PeerHost,
    port: u16,
    may_be_special: bool,
) -> Result<TcpStream, PollError> {
    let addresses: Vec<SocketAddr> = match host {
        PeerHost::Address(address) => vec![SocketAddr::new(*address, port)],
        PeerHost::Name(name) => tokio::net::lookup_host((name.as_ref(), port))
            .await
            .map_err(|error| PollError::Transport(format!("{name} cannot be resolved: {error}")))?
            .take(MOST_ADDRESSES)
            .collect(),
    };
    let mut failed = PollError::Transport("its name has no address".to_owned());
    for address in addresses {
        if is_special(address.ip()) && !may_be_special {
            failed = PollError::Address(address);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}
