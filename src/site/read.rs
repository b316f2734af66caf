//! Reads a site once, by hand: `grid signals get`. It is asked as a gateway asks it, with a certificate that it knows; and it
//! has to show that it is the site, by its pins or by its name under the mesh's authorities.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use zeroize::Zeroizing;

use super::dial::{Dial, PollError};
use super::identity::{Identity, IdentityError, authorities};
use super::serve::SIGNALS;
use super::tls::Credentials;
use super::trust::Known;
use crate::signals::ProviderName;
use crate::signals::exposition::Limits;
use crate::signals::own;
use crate::signals::site::Pins;
use crate::words::{NodeName, PeerHost, PeerTrust};

/// How long it may take in all, from the name to the last byte.
const DEADLINE: Duration = Duration::from_secs(10);
/// The largest answer that is read, in bytes: a site shows its own gateways what it pulled from all its peers too.
const MOST: usize = 16 * 1024 * 1024;

/// Whom to ask, and as whom.
pub struct Asked<'a> {
    /// The site.
    pub site: NodeName,
    /// Where it is.
    pub host: PeerHost,
    /// Where sites listen.
    pub port: u16,
    /// By what it is known.
    pub trust: PeerTrust,
    /// Its pins; under `pin`.
    pub pins: Pins,
    /// The mesh's authorities in PEM; under `spiffe`.
    pub authorities: &'a str,
    /// The certificate to show, in PEM.
    pub certificate: &'a [u8],
    /// Its key, in PEM.
    pub key: &'a Zeroizing<Vec<u8>>,
    /// The one provider that is asked about; absent: all.
    pub target: Option<ProviderName>,
}

/// What a site shows.
pub use own::Shown;

/// Why a site cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The certificate to show, or its key.
    #[error("the certificate to show: {0}")]
    Identity(IdentityError),
    /// The mesh's authorities.
    #[error("the mesh's authorities: {0}")]
    Authorities(IdentityError),
    /// It did not answer, or was not the site.
    #[error(transparent)]
    Answer(#[from] PollError),
    /// This machine lets nobody wait for a connection.
    #[error("a connection cannot be waited for: {0}")]
    Runtime(std::io::Error),
}

/// Asks the site once.
///
/// # Errors
/// When it cannot be reached within 10 s, is not the site, does not know the certificate, or says more than 16 MiB.
pub fn read(asked: &Asked<'_>) -> Result<Shown, ReadError> {
    let identity = Identity::read(asked.certificate, asked.key).map_err(ReadError::Identity)?;
    let anchors = match asked.trust {
        PeerTrust::Pin => Vec::new(),
        PeerTrust::Spiffe => {
            authorities(asked.authorities.as_bytes()).map_err(ReadError::Authorities)?
        }
    };
    let known = Known::one(
        asked.site.clone(),
        identity.leaf.digest,
        asked.trust,
        asked.pins.clone(),
        anchors,
    );
    let credentials = Arc::new(Credentials::new(Arc::new(identity), known));
    let path = match &asked.target {
        // A provider's name holds nothing that a query would have to escape.
        Some(target) => format!("{SIGNALS}?target={target}"),
        None => SIGNALS.to_owned(),
    };
    let dial = Dial {
        site: &asked.site,
        host: &asked.host,
        port: asked.port,
        path: &path,
        most: MOST,
        may_be_special: true, // the operator said where it is
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ReadError::Runtime)?;
    let answered = runtime.block_on(async { timeout(DEADLINE, dial.get(&credentials)).await });
    let answer = answered.unwrap_or(Err(PollError::Timeout))?;
    // A name that is still being resolved holds nobody up.
    runtime.shutdown_background();
    let limits = Limits {
        body: MOST,
        ..Limits::CONTRACT
    };
    let shown = own::read(&answer.body, answer.date.as_deref(), limits);
    Ok(shown.map_err(PollError::from)?)
}
