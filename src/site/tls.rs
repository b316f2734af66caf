//! Mutual TLS 1.2 and 1.3, for the server and for the dialling side.
//!
//! Invariants: whoever is nobody fails the handshake and never reaches HTTP; no session is resumed, since a resumed one
//! would skip the question who the caller is; the certificates that are shown and judged by are read anew for every
//! connection.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DistinguishedName, Error, OtherError, ServerConfig,
    SignatureScheme,
};

use super::identity::Identity;
use super::trust::{Known, Stranger};
use crate::words::NodeName;

/// The part of a verifier that only asks whether who shows a certificate has its key: by its field `algorithms`.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &rustls::pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls12_signature(message, cert, signed, &self.algorithms)
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &rustls::pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls13_signature(message, cert, signed, &self.algorithms)
        }
        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}
pub(super) use signatures;

/// Who the site is and whom it knows: read for every connection, replaced when a file changes.
#[derive(Debug)]
pub struct Credentials {
    identity: RwLock<Arc<Identity>>,
    known: RwLock<Arc<Known>>,
    provider: Arc<CryptoProvider>,
}

impl Credentials {
    /// These, to begin with.
    #[must_use]
    pub fn new(identity: Arc<Identity>, known: Known) -> Self {
        Self {
            identity: RwLock::new(identity),
            known: RwLock::new(Arc::new(known)),
            provider: Arc::new(rustls::crypto::ring::default_provider()),
        }
    }

    /// Who the site is now.
    #[must_use]
    pub fn identity(&self) -> Arc<Identity> {
        let identity = self.identity.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&identity)
    }

    /// Whom it knows now.
    #[must_use]
    pub fn known(&self) -> Arc<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known)
    }

    /// Takes up others.
    pub fn replace(&self, identity: Arc<Identity>, known: Known) {
        *self
            .identity
            .write()
            .unwrap_or_else(PoisonError::into_inner) = identity;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
    }

    /// The configuration of the listener.
    ///
    /// # Errors
    /// When the provider lacks a version of TLS, which ring does not.
    pub fn server(self: &Arc<Self>) -> Result<ServerConfig, Error> {
        let judge = Judge::new(self, None);
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_client_cert_verifier(Arc::new(judge))
            .with_cert_resolver(Arc::new(Own(Arc::clone(self))));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    /// The configuration with which `dialled` is dialled, who has to be it.
    ///
    /// # Errors
    /// When the provider lacks a version of TLS, which ring does not.
    pub fn client(self: &Arc<Self>, dialled: &NodeName) -> Result<ClientConfig, Error> {
        let judge = Judge::new(self, Some(dialled.clone()));
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(judge))
            .with_client_cert_resolver(Arc::new(Own(Arc::clone(self))));
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Shows the site's own certificate, the current one.
#[derive(Debug)]
struct Own(Arc<Credentials>);

impl ResolvesServerCert for Own {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.identity().certified))
    }
}

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.identity().certified))
    }
    fn has_certs(&self) -> bool {
        true
    }
}

/// Asks [`Known`] who a certificate is.
#[derive(Debug)]
struct Judge {
    credentials: Arc<Credentials>,
    dialled: Option<NodeName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Judge {
    fn new(credentials: &Arc<Credentials>, dialled: Option<NodeName>) -> Self {
        Self {
            credentials: Arc::clone(credentials),
            dialled,
            algorithms: credentials.provider.signature_verification_algorithms,
        }
    }
}

/// A stranger, as rustls passes it on: the cause stays readable in the log, the caller gets an alert.
fn refuse(stranger: Stranger) -> Error {
    CertificateError::Other(OtherError(Arc::new(stranger))).into()
}

impl ClientCertVerifier for Judge {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.credentials
            .known()
            .caller(leaf, now)
            .map(|_| ClientCertVerified::assertion())
            .map_err(refuse)
    }
    signatures!();
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(dialled) = &self.dialled else {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        };
        self.credentials
            .known()
            .is_site(leaf, now, dialled)
            .map(|()| ServerCertVerified::assertion())
            .map_err(refuse)
    }
    signatures!();
}
