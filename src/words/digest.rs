//! SHA-256 digests, written as 64 lowercase hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest: of a file's content, or of a bundle's canonical manifest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not 64 lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lowercase hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of everything that `reader` yields, and how many bytes that was; the content is
    /// never held in memory as a whole.
    ///
    /// # Errors
    /// When reading fails.
    pub fn of_reader(reader: &mut impl std::io::Read) -> std::io::Result<(Self, u64)> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut size = 0_u64;
        loop {
            let n = reader.read(&mut buffer)?;
            let Some(read) = buffer.get(..n).filter(|read| !read.is_empty()) else {
                return Ok((Self(hasher.finalize().into()), size));
            };
            hasher.update(read);
            size = size.saturating_add(u64::try_from(n).unwrap_or(u64::MAX));
        }
    }

    /// A digest from its 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its digits. Manifests are full of digests, so these are written without a text of their own.
    fn with_digits<T>(self, take: impl FnOnce(&str) -> T) -> T {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            if let [high, low] = pair {
                (*high, *low) = (digit(byte >> 4), digit(byte & 15));
            }
        }
        take(std::str::from_utf8(&digits).unwrap_or_default()) // digits are UTF-8
    }

    /// The first twelve digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string().chars().take(12).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_digits(|digits| f.write_str(digits))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        if text.len() != 64 {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let [high, low] = pair else {
                return Err(DigestError);
            };
            *byte = value(*high)? << 4 | value(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'a' - 10 + value,
    }
}

fn value(digit: u8) -> Result<u8, DigestError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(DigestError),
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_digits(|digits| serializer.serialize_str(digits))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;
        impl Visitor<'_> for Digits {
            type Value = Digest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lowercase hexadecimal digits")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Digits)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl schemars::JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_what_it_prints() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!("BA78".parse::<Digest>(), Err(DigestError));
        assert_eq!("é".repeat(32).parse::<Digest>(), Err(DigestError));
        assert_eq!("A".repeat(64).parse::<Digest>(), Err(DigestError));
        let written = serde_json::to_string(&digest).unwrap();
        assert_eq!(written, format!("\"{digest}\""));
        assert_eq!(serde_json::from_str::<Digest>(&written).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"ba78\"").is_err());
    }

    #[test]
    fn a_streamed_digest_is_the_same() {
        let bytes = vec![7; 200_000];
        let (digest, size) = Digest::of_reader(&mut bytes.as_slice()).unwrap();
        assert_eq!((digest, size), (Digest::of(&bytes), 200_000));
    }
}
