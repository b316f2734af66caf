//! The fence token (DESIGN.md, section 4, "Fence").
//!
//! A machine keeps the token of the send that it last took. A send names the token that it means to
//! replace; a machine that holds another one changes nothing. Thus no two stores, nor a store and an
//! older copy of it, can overwrite each other unawares.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Chance, Era};

/// The identity of a store: 8 random bytes, drawn when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub [u8; 8]);

impl StoreId {
    /// Draws an identity.
    #[must_use]
    pub fn draw(chance: &mut dyn Chance) -> Self {
        let mut bytes = [0; 8];
        chance.fill(&mut bytes);
        Self(bytes)
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// The token of one send: store id, era, push number, and a random part of its own.
/// Written `STORE-ERA-PUSH-RANDOM` in hexadecimal, decimal, decimal, hexadecimal: only `[0-9a-f-]`,
/// at most 76 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token {
    /// Which store.
    pub store: StoreId,
    /// Its era.
    pub era: Era,
    /// The number of the push, counted from 1 in a store.
    pub push: u64,
    /// Tells this send from a copy of the store that counts the same number.
    pub random: [u8; 8],
}

/// A text that is not a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a fence token")]
pub struct TokenError;

impl Token {
    /// Draws the token of a new send.
    #[must_use]
    pub fn draw(store: StoreId, era: Era, push: u64, chance: &mut dyn Chance) -> Self {
        let mut random = [0; 8];
        chance.fill(&mut random);
        Self {
            store,
            era,
            push,
            random,
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-", self.store, self.era.0, self.push)?;
        self.random.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

fn hex8(text: &str) -> Result<[u8; 8], TokenError> {
    if text.len() != 16 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(TokenError);
    }
    u64::from_str_radix(text, 16)
        .map(u64::to_be_bytes)
        .map_err(|_| TokenError)
}

impl FromStr for Token {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(TokenError);
        let token = Self {
            store: StoreId(hex8(next()?)?),
            era: Era(next()?.parse().map_err(|_| TokenError)?),
            push: next()?.parse().map_err(|_| TokenError)?,
            random: hex8(next()?)?,
        };
        if token.to_string() == text {
            Ok(token)
        } else {
            Err(TokenError)
        }
    }
}

impl TryFrom<String> for Token {
    type Error = TokenError;
    fn try_from(text: String) -> Result<Self, TokenError> {
        text.parse()
    }
}

impl From<Token> for String {
    fn from(token: Token) -> String {
        token.to_string()
    }
}

impl schemars::JsonSchema for Token {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Token".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}-[0-9]+-[0-9]+-[0-9a-f]{16}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_what_it_writes_and_nothing_else() {
        let token = Token {
            store: StoreId([0xab; 8]),
            era: Era(1_764_444_387),
            push: 413,
            random: [1; 8],
        };
        let text = token.to_string();
        assert_eq!(text, "abababababababab-1764444387-413-0101010101010101");
        assert_eq!(text.parse(), Ok(token));
        for wrong in [
            "",
            "none",
            "abababababababab-01-413-0101010101010101",
            "abababababababab-1-413-0101010101010101-",
            "abababababababab-1-+413-0101010101010101",
        ] {
            assert_eq!(wrong.parse::<Token>(), Err(TokenError), "{wrong}");
        }
    }
}
