//! What a leaf certificate says of itself: its digest, its dates and its SPIFFE identity. Nothing here is trusted yet.

use rustls::pki_types::UnixTime;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::words::{Digest, NodeName};

/// The domain of all identities, and the path below which sites are.
const SITE_ID: &str = "spiffe://grid.internal/site/";

/// The largest certificate that is read, in bytes.
pub const LARGEST: usize = 64 * 1024;

/// A certificate that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not an X.509 certificate")]
pub struct LeafError;

/// Which site a certificate says that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spiffe {
    /// No `spiffe://` name.
    None,
    /// Exactly one, and it is a site's.
    Site(NodeName),
    /// Exactly one, of another domain, or not a site's.
    Other,
    /// More than one: then it is nobody's.
    Several,
}

/// A leaf certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// SHA-256 of its DER.
    pub digest: Digest,
    /// Its SPIFFE identity.
    pub spiffe: Spiffe,
    /// From when it holds, in seconds of the epoch.
    pub not_before: i64,
    /// The last second in which it holds.
    pub not_after: i64,
}

impl Leaf {
    /// Reads a certificate.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(der: &[u8]) -> Result<Self, LeafError> {
        if der.len() > LARGEST {
            return Err(LeafError);
        }
        let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| LeafError)?;
        if !rest.is_empty() {
            return Err(LeafError);
        }
        let names = certificate
            .subject_alternative_name()
            .map_err(|_| LeafError)?;
        let names = names.map_or(&[][..], |names| names.value.general_names.as_slice());
        let validity = certificate.validity();
        Ok(Self {
            digest: Digest::of(der),
            spiffe: spiffe(names),
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
        })
    }

    /// Whether it holds at `now`.
    #[must_use]
    pub fn holds(&self, now: UnixTime) -> bool {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        (self.not_before..=self.not_after).contains(&now)
    }
}

/// The SPIFFE identity among the names of a certificate. A scheme has no case (RFC 3986, section 3.1), so that one in
/// capitals counts, and then is not one of ours.
fn spiffe(names: &[GeneralName<'_>]) -> Spiffe {
    let is_spiffe = |uri: &str| {
        let scheme = uri.split(':').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("spiffe")
    };
    let mut ids = names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) if is_spiffe(uri) => Some(*uri),
        _ => None,
    });
    match (ids.next(), ids.next()) {
        (None, _) => Spiffe::None,
        (Some(_), Some(_)) => Spiffe::Several,
        (Some(id), None) => id
            .strip_prefix(SITE_ID)
            .and_then(|name| NodeName::new(name).ok())
            .map_or(Spiffe::Other, Spiffe::Site),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_spiffe_name_of_a_site_is_an_identity() {
        let of = |uris: &[&'static str]| {
            let names: Vec<_> = uris.iter().map(|uri| GeneralName::URI(uri)).collect();
            spiffe(&names)
        };
        let atlas = Spiffe::Site(NodeName::new("atlas").unwrap());
        assert_eq!(of(&["spiffe://grid.internal/site/atlas"]), atlas);
        assert_eq!(
            of(&["https://a/", "spiffe://grid.internal/site/atlas"]),
            atlas
        );
        assert_eq!(of(&["https://a/"]), Spiffe::None);
        for other in [
            "spiffe://example.org/site/atlas",
            "spiffe://grid.internal/site/",
            "spiffe://grid.internal/site/atlas/x",
            "spiffe://grid.internal/site/Atlas",
            "spiffe://grid.internal/node/atlas",
            "spiffe://grid.internal:443/site/atlas",
            "SPIFFE://grid.internal/site/atlas",
            "spiffe:x",
        ] {
            assert_eq!(of(&[other]), Spiffe::Other, "{other}");
        }
        let two = [
            "spiffe://grid.internal/site/atlas",
            "spiffe://grid.internal/site/atlas",
        ];
        assert_eq!(of(&two), Spiffe::Several);
        assert_eq!(
            of(&["spiffe://grid.internal/site/atlas", "Spiffe://x/"]),
            Spiffe::Several
        );
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        assert_eq!(Leaf::read(b""), Err(LeafError));
        assert_eq!(Leaf::read(&vec![0x30; LARGEST + 1]), Err(LeafError));
    }
}
