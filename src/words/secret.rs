//! Secrets and salts.
//!
//! Invariant: a [`Secret`] prints as `[redacted]` in every format and cannot be serialized by
//! accident; who needs the text says [`Secret::expose`], and every such place is to be read with
//! care. Memory is wiped when it is dropped.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::Chance;

/// How many random bytes a minted secret has: 256 bits, where the design asks for at least 160.
const SECRET_BYTES: usize = 32;

/// A secret text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Draws a secret of 43 characters from `[A-Za-z0-9_-]`, so that no URL needs to escape it.
    #[must_use]
    pub fn draw(chance: &mut dyn Chance) -> Self {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        chance.fill(bytes.as_mut());
        Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_slice())))
    }

    /// Takes a secret that was made elsewhere.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The plain text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// What makes a verifier of one generation differ from all others. Kept with the provision, so that
/// a grant list has the same bytes each time (reference, `providers.md`). Not secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Salt(pub [u8; 16]);

impl Salt {
    /// Draws a salt.
    #[must_use]
    pub fn draw(chance: &mut dyn Chance) -> Self {
        let mut bytes = [0; 16];
        chance.fill(&mut bytes);
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(u8);
    impl Chance for Counting {
        fn fill(&mut self, bytes: &mut [u8]) {
            for byte in bytes {
                *byte = self.0;
                self.0 = self.0.wrapping_add(37);
            }
        }
    }

    #[test]
    fn a_minted_secret_needs_no_escaping_and_has_at_least_160_bits() {
        let secret = Secret::draw(&mut Counting(1));
        assert_eq!(secret.expose().len(), 43); // 6 bits a character
        assert!(
            secret
                .expose()
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        );
    }

    #[test]
    fn a_secret_prints_as_redacted_in_every_format() {
        let secret = Secret::new("hunter2".into());
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?}"),
            "[redacted] [redacted] [redacted]"
        );
    }
}
