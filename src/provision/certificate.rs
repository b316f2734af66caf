//! Keys and certificates of sites and of the mesh's own authority (DESIGN.md, section 7; the certificate's shape is
//! that of reference/signals-contract.md, *Identity*).
//!
//! Pure: a key is drawn from the chance that is passed in, and signatures are those of RFC 6979, which need no further
//! chance. Threat: a key never leaves this file but as PEM for the machine that it belongs to.

use jiff::civil::Date;
use p256::SecretKey;
use p256::ecdsa::{Signature, SigningKey as P256, signature::Signer as _};
use p256::pkcs8::{EncodePrivateKey as _, LineEnding};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType,
    SerialNumber, SignatureAlgorithm,
};
use zeroize::Zeroizing;

use crate::words::{Chance, Digest, MeshName, NodeName, Secret};

/// What every certificate names as its organisation.
const ORGANISATION: &str = "ai-grid";
/// The domain of sites' names and SPIFFE ids.
pub const DOMAIN: &str = "grid.internal";

/// The SPIFFE id of a site.
#[must_use]
pub fn spiffe_id(site: &NodeName) -> String {
    format!("spiffe://{DOMAIN}/site/{site}")
}

/// Why a certificate cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the certificate of {of} cannot be made: {why}")]
pub struct CertificateError {
    /// Of which site, or of the authority.
    of: String,
    /// What the encoder says.
    why: String,
}

/// A private key: a scalar of P-256.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Draws one.
    #[must_use]
    pub fn draw(chance: &mut dyn Chance) -> Self {
        loop {
            let mut bytes = Zeroizing::new([0; 32]);
            chance.fill(&mut *bytes);
            // A draw is no scalar about once in 2^32 times.
            if let Some(key) = Self::from_bytes(bytes) {
                return key;
            }
        }
    }

    /// A key as it was stored; `None`: these bytes are none.
    #[must_use]
    pub fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Option<Self> {
        SecretKey::from_slice(&*bytes)
            .is_ok()
            .then_some(Self(bytes))
    }

    /// To store it.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// As a PKCS #8 file.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn pem(&self) -> Result<Secret, CertificateError> {
        let encoded = SecretKey::from_slice(&*self.0)
            .map_err(|e| e.to_string())
            .and_then(|key| key.to_pkcs8_pem(LineEnding::LF).map_err(|e| e.to_string()));
        let pem = encoded.map_err(|why| failed("a key", why))?;
        Ok(Secret::new(String::clone(&pem)))
    }
}

/// A key that signs, and its public point.
struct Pair {
    key: P256,
    public: Vec<u8>,
}

impl Pair {
    fn of(key: &Key, of: &str) -> Result<Self, CertificateError> {
        let key = P256::from_slice(&*key.0).map_err(|e| failed(of, e))?;
        let public = key.verifying_key().to_sec1_point(false).as_bytes().to_vec();
        Ok(Self { key, public })
    }

    /// The key's identifier (RFC 7093, method 1): 160 bits of the SHA-256 of the public point.
    fn id(&self) -> KeyIdMethod {
        let digest = Digest::of(&self.public);
        KeyIdMethod::PreSpecified(digest.as_bytes().iter().copied().take(20).collect())
    }
}

impl PublicKeyData for Pair {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }
    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for Pair {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature: Signature = self
            .key
            .try_sign(message)
            .map_err(|_| rcgen::Error::RemoteKeyError)?;
        Ok(signature.to_der().as_bytes().to_vec())
    }
}

/// From when to when a certificate is good; both days count from midnight UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first day.
    pub from: Date,
    /// The day on which it expires.
    pub until: Date,
}

/// The certificate of a mesh's authority, as DER: `number` tells those of one mesh apart.
///
/// # Errors
/// When the encoder fails.
pub fn of_authority(
    mesh: &MeshName,
    number: u32,
    key: &Key,
    validity: Validity,
) -> Result<Vec<u8>, CertificateError> {
    let of = "the authority";
    let pair = Pair::of(key, of)?;
    let mut params = authority(mesh, number, &pair);
    set(&mut params, &pair, validity)?;
    let made = params.self_signed(&pair).map_err(|e| failed(of, e))?;
    Ok(made.der().to_vec())
}

fn authority(mesh: &MeshName, number: u32, pair: &Pair) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(&format!("{mesh} grid authority {number}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.key_identifier_method = pair.id();
    params
}

/// The certificate of a site, as DER, issued directly by the authority of this number and key: DNS and SPIFFE names of
/// the site, for server and client, no authority, digitalSignature only.
///
/// # Errors
/// When the encoder fails.
pub fn of_site(
    mesh: &MeshName,
    authority_is: (u32, &Key),
    site: &NodeName,
    key: &Key,
    validity: Validity,
) -> Result<Vec<u8>, CertificateError> {
    let of = site.as_str();
    let issuing = Pair::of(authority_is.1, "the authority")?;
    let issuer_params = authority(mesh, authority_is.0, &issuing);
    let issuer = Issuer::from_params(&issuer_params, issuing);
    let pair = Pair::of(key, of)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = named(of);
    let dns = format!("{site}.{DOMAIN}");
    params.subject_alt_names = vec![
        SanType::DnsName(dns.try_into().map_err(|e| failed(of, e))?),
        SanType::URI(spiffe_id(site).try_into().map_err(|e| failed(of, e))?),
    ];
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    params.use_authority_key_identifier_extension = true;
    set(&mut params, &pair, validity)?;
    let made = params
        .signed_by(&pair, &issuer)
        .map_err(|e| failed(of, e))?;
    Ok(made.der().to_vec())
}

/// What every certificate has: its validity, its key's identifier, and a number made of the key, so never given twice.
fn set(
    params: &mut CertificateParams,
    pair: &Pair,
    validity: Validity,
) -> Result<(), CertificateError> {
    params.key_identifier_method = pair.id();
    let digest = Digest::of(&pair.public);
    let mut number: Vec<u8> = digest
        .as_bytes()
        .iter()
        .copied()
        .skip(12)
        .take(20)
        .collect();
    if let Some(first) = number.first_mut() {
        *first &= 0x7f; // positive in 20 bytes (RFC 5280, 4.1.2.2)
    }
    params.serial_number = Some(SerialNumber::from(number));
    let at = |date: Date| {
        let month = u8::try_from(date.month()).ok()?;
        let day = u8::try_from(date.day()).ok()?;
        Some(rcgen::date_time_ymd(i32::from(date.year()), month, day))
    };
    let (Some(from), Some(until)) = (at(validity.from), at(validity.until)) else {
        return Err(failed("a date", "it is before the year 0"));
    };
    params.not_before = from;
    params.not_after = until;
    Ok(())
}

fn named(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, ORGANISATION);
    name.push(DnType::CommonName, common);
    name
}

fn failed(of: &str, why: impl std::fmt::Display) -> CertificateError {
    CertificateError {
        of: of.to_owned(),
        why: why.to_string(),
    }
}

/// A certificate as PEM.
#[must_use]
pub fn pem(der: &[u8]) -> String {
    let lines = ::pem::EncodeConfig::new().set_line_ending(::pem::LineEnding::LF);
    ::pem::encode_config(&::pem::Pem::new("CERTIFICATE", der), lines)
}
