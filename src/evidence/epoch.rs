//! The epoch: which run of a gateway's process reports.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::words::Chance;

/// One run of a reporting process: 16 random bytes drawn at its start, written as 32 lowercase hexadecimal digits
/// (DESIGN.md, section 7). Within an epoch sequences rise and the counter never falls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Epoch([u8; 16]);

/// A text that is not 32 lowercase hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an epoch is 32 lowercase hexadecimal digits")]
pub struct EpochError;

impl Epoch {
    /// Draws the epoch of a process that starts.
    #[must_use]
    pub fn draw(chance: &mut dyn Chance) -> Self {
        let mut bytes = [0; 16];
        chance.fill(&mut bytes);
        Self(bytes)
    }

    /// An epoch from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads the 32 digits.
    ///
    /// # Errors
    /// When `text` is anything else; uppercase digits are.
    pub fn parse(text: &[u8]) -> Result<Self, EpochError> {
        if text.len() != 32 {
            return Err(EpochError);
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let [high, low] = pair else {
                return Err(EpochError);
            };
            *byte = value(*high)? << 4 | value(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn value(digit: u8) -> Result<u8, EpochError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(EpochError),
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Epoch {
    type Err = EpochError;
    fn from_str(text: &str) -> Result<Self, EpochError> {
        Self::parse(text.as_bytes())
    }
}

impl TryFrom<String> for Epoch {
    type Error = EpochError;
    fn try_from(text: String) -> Result<Self, EpochError> {
        text.parse()
    }
}

impl From<Epoch> for String {
    fn from(epoch: Epoch) -> String {
        epoch.to_string()
    }
}

impl schemars::JsonSchema for Epoch {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Epoch".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{32}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_32_lowercase_hexadecimal_digits_and_nothing_else() {
        let text = "0123456789abcdef00ff10a5deadbeef";
        let epoch: Epoch = text.parse().unwrap();
        assert_eq!(epoch.to_string(), text);
        for wrong in [
            "",
            "0123456789abcdef00ff10a5deadbee",
            "0123456789abcdef00ff10a5deadbeef0",
            "0123456789ABCDEF00ff10a5deadbeef",
            "0123456789abcdef-0ff10a5deadbeef",
            " 123456789abcdef00ff10a5deadbeef",
            "éééééééééééééééé",
        ] {
            assert_eq!(wrong.parse::<Epoch>(), Err(EpochError), "{wrong:?}");
        }
    }
}
