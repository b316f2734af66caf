//! Percent-encoding for the parts of a URI (RFC 3986, section 2.1).
//!
//! Threat: a part that keeps a delimiter of its own moves the rest of the URI. Everything but the
//! unreserved characters is encoded, whatever the part.

use std::fmt::Write as _;

/// `text` with every byte outside `[A-Za-z0-9._~-]` as `%XX`.
#[must_use]
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn only_unreserved_characters_stand_for_themselves() {
        assert_eq!(encode("aZ0-._~"), "aZ0-._~");
        assert_eq!(encode("/"), "%2F");
        assert_eq!(encode("a b@c:é%"), "a%20b%40c%3A%C3%A9%25");
    }
}
