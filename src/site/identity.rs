//! The site's own certificate and key, read from their files.
//!
//! The key is held by rustls from here on; nothing here prints it.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor};
use rustls::sign::CertifiedKey;

use super::leaf::{Leaf, LeafError};

/// The most certificates in one file.
const MOST: usize = 64;

/// Why files are no identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// No certificate.
    #[error("it holds no certificate in PEM")]
    NoCertificate,
    /// Too many.
    #[error("it holds more than {MOST} certificates")]
    TooMany,
    /// Not a certificate.
    #[error(transparent)]
    Leaf(#[from] LeafError),
    /// Not PEM.
    #[error("it is not PEM: {0}")]
    Pem(String),
    /// No key.
    #[error("the key's file holds no private key in PEM")]
    NoKey,
    /// A key of a kind that is not known, or not this certificate's.
    #[error("the key does not fit the certificate: {0}")]
    Key(String),
}

/// Who the site is.
#[derive(Debug)]
pub struct Identity {
    /// What its certificate says.
    pub leaf: Leaf,
    /// The certificate with its key.
    pub certified: Arc<CertifiedKey>,
}

impl Identity {
    /// Reads a certificate (the leaf first) and its key.
    ///
    /// # Errors
    /// When they cannot be read, or do not belong together.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = certificates(certificate)?;
        let first = chain.first().ok_or(IdentityError::NoCertificate)?;
        let leaf = Leaf::read(first)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| IdentityError::NoKey)?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider)
            .map_err(|error| IdentityError::Key(error.to_string()))?;
        Ok(Self {
            leaf,
            certified: Arc::new(certified),
        })
    }
}

/// Reads the mesh's authorities.
///
/// # Errors
/// When one cannot be read. None at all is no error: nobody is trusted then.
pub fn authorities(pem: &[u8]) -> Result<Vec<TrustAnchor<'static>>, IdentityError> {
    let anchor = |der: &CertificateDer<'_>| {
        webpki::anchor_from_trusted_cert(der)
            .map(|anchor| anchor.to_owned())
            .map_err(|_| IdentityError::Leaf(LeafError))
    };
    certificates(pem)?.iter().map(anchor).collect()
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let mut read = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        if read.len() == MOST {
            return Err(IdentityError::TooMany);
        }
        read.push(certificate.map_err(|error| IdentityError::Pem(error.to_string()))?);
    }
    Ok(read)
}
