//! The gateway's end of the ingest endpoint: dials its own site and hands in one report.
//!
//! Both ends show the same certificate, the site's own: the site takes reports from nobody else, and nobody else is taken
//! for the site. So neither the declared trust nor an authority matters here, and what proves who is there is that it
//! holds the key. The files are read anew for each report, so that a renewal is taken up.
//! Threat: whoever listens at the address without that key learns nothing and is told nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use hyper::Method;
use rustls::client::Resumption;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::{CertificateError, ClientConfig, Error, OtherError};
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;

use super::config::{ConfigError, Source, bounded, not_identity};
use super::dial::{PollError, connect};
use super::fetch::{asking, exchange};
use super::identity::Identity;
use super::serve::INGEST;
use super::tls::signatures;
use crate::evidence::reporter::Meaning;
use crate::evidence::{Report, headers};
use crate::words::{Digest, PeerHost, SignalMode};

/// The largest body of an answer that is read, in bytes: a refusal is one line.
const BODY: usize = 4 * 1024;
/// How much of it is repeated, in characters.
const SAID: usize = 200;

/// Where a site takes reports, and who it is.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// As its `site.toml` says.
    Config(PathBuf),
    /// As named.
    Named {
        /// Where it listens.
        host: PeerHost,
        /// At which port.
        port: u16,
        /// The site's own certificate, in PEM.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replied {
    /// What it means for the report.
    pub meaning: Meaning,
    /// The status.
    pub status: u16,
    /// What the answer says, one line; it may be empty.
    pub said: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The site's files.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Under gossip nothing listens.
    #[error("the site gossips, and has no listener to report to")]
    Gossip,
    /// Nobody listens.
    #[error("nobody listens at {0}: the site gossips, or its daemon does not run")]
    NobodyListens(String),
    /// The listener is not this site.
    #[error(
        "who listens at {0} does not show the certificate that was given here: another site, or one whose identity was renewed"
    )]
    NotOwn(String),
    /// The time was up.
    #[error("no answer of {0} in time")]
    Late(String),
    /// The connection failed.
    #[error("{at}: {why}")]
    Transport {
        /// Where.
        at: String,
        /// Why.
        why: String,
    },
}

impl SendError {
    /// Whether the same may go well a moment later. A renewed identity reaches the daemon and this side's files one after
    /// the other.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::NobodyListens(_) | Self::NotOwn(_) | Self::Late(_) | Self::Transport { .. }
        )
    }
}

impl Endpoint {
    /// Sends `report`, and says what was answered. It may have arrived also where there is no answer.
    ///
    /// # Errors
    /// When there is none until `until`.
    pub fn send(&self, report: &Report, until: Instant) -> Result<Replied, SendError> {
        let (host, port, identity) = self.resolve()?;
        let at = match &host {
            PeerHost::Address(address) => SocketAddr::new(*address, port).to_string(),
            PeerHost::Name(name) => format!("{name}:{port}"),
        };
        let failed = |why: String| SendError::Transport {
            at: at.clone(),
            why,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let sent = runtime.block_on(async {
            let exchanged = hand_in(&host, port, &identity, &at, report);
            timeout_at(until.into(), exchanged).await
        });
        // A name that is still being resolved is not waited for.
        runtime.shutdown_background();
        sent.unwrap_or_else(|_| Err(SendError::Late(at.clone())))
    }

    fn resolve(&self) -> Result<(PeerHost, u16, Arc<Identity>), SendError> {
        match self {
            Self::Config(path) => {
                let loaded = Source::new(std::slice::from_ref(path))?.read()?;
                let site = &loaded.site;
                let identity = match (site.mode, loaded.identity) {
                    (SignalMode::Poll, Some(identity)) => identity,
                    _ => return Err(SendError::Gossip),
                };
                let host = match site.settings.listen {
                    IpAddr::V4(Ipv4Addr::UNSPECIFIED) | IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
                        // Every address of the machine, this one always among them.
                        IpAddr::V4(Ipv4Addr::LOCALHOST)
                    }
                    address => address,
                };
                Ok((PeerHost::Address(host), site.port, identity))
            }
            Self::Named {
                host,
                port,
                certificate,
                key,
            } => {
                let identity = Identity::read(&bounded(certificate)?, &bounded(key)?);
                let identity = identity.map_err(not_identity(certificate))?;
                Ok((host.clone(), *port, Arc::new(identity)))
            }
        }
    }
}

async fn hand_in(
    host: &PeerHost,
    port: u16,
    identity: &Identity,
    at: &str,
    report: &Report,
) -> Result<Replied, SendError> {
    let failed = |why: String| SendError::Transport {
        at: at.to_owned(),
        why,
    };
    let no_way = |error: PollError| match error {
        PollError::Refused => SendError::NobodyListens(at.to_owned()),
        PollError::Identity(_) => SendError::NotOwn(at.to_owned()),
        other => failed(other.to_string()),
    };
    // The site itself may be at the loopback: so it is, mostly.
    let stream = connect(host, port, true).await.map_err(no_way)?;
    let config = config(identity).map_err(|error| failed(error.to_string()))?;
    let name = ServerName::try_from("site.grid.internal").map_err(|e| failed(e.to_string()))?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| no_way(error.into()))?;
    let mut request = asking(Method::POST, at, INGEST);
    for (header, value) in headers::write(report) {
        request = request.header(header.name(), value);
    }
    let request = request
        .body(http_body_util::Empty::new())
        .map_err(|error| failed(error.to_string()))?;
    let (head, body) = exchange(stream, request, BODY)
        .await
        .map_err(|error| no_way(error.into()))?;
    let status = head.status.as_u16();
    let lines = head.headers.iter();
    let lines = lines.map(|(name, value)| (name.as_str(), value.as_bytes()));
    Ok(Replied {
        meaning: Meaning::of(report, status, lines),
        status,
        said: first_line(&body),
    })
}

/// The first line of what is said: bounded, without control characters.
fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().next().unwrap_or_default();
    line.chars()
        .filter(|c| !c.is_control())
        .take(SAID)
        .collect()
}

/// Shows the site's own certificate, and takes nothing else for the site.
fn config(identity: &Identity) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let judge = Own {
        leaf: identity.leaf.digest,
        algorithms: provider.signature_verification_algorithms,
    };
    let shown = SingleCertAndKey::from(Arc::clone(&identity.certified));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(judge))
        .with_client_cert_resolver(Arc::new(shown));
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Takes one certificate, whatever its dates: a renewal that is late cuts no site off from itself.
#[derive(Debug)]
struct Own {
    leaf: Digest,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Another certificate than the site's own.
#[derive(Debug, thiserror::Error)]
#[error("it does not show the site's own certificate")]
struct Another;

impl ServerCertVerifier for Own {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Digest::of(leaf) == self.leaf {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::Other(OtherError(Arc::new(Another))).into())
        }
    }
    signatures!();
}
