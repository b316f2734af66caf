//! Canonical decimals: how a sequence and a counter are written, in headers and in the document alike.
//!
//! One number has one spelling, so that who compares texts and who compares numbers agree. In JSON it is a text:
//! many readers of JSON, Kubernetes among them, cannot hold an integer past 2^63 or even 2^53.

use serde::{Deserialize, Serialize};

/// Why a text is not a canonical decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecimalError {
    /// Empty, or with a sign, a leading zero, a space, or anything else that is not a digit.
    #[error("not a plain decimal number, written without sign, space or leading zero")]
    Form,
    /// Past `u64::MAX`.
    #[error("greater than {}", u64::MAX)]
    TooGreat,
}

/// The number that `text` writes.
pub(super) fn parse(text: &[u8]) -> Result<u64, DecimalError> {
    let canonical = match text {
        [] | [b'0', _, ..] => false,
        digits => digits.iter().all(u8::is_ascii_digit),
    };
    if !canonical {
        return Err(DecimalError::Form);
    }
    text.iter()
        .try_fold(0_u64, |sum, digit| {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            sum.checked_mul(10)?.checked_add(digit)
        })
        .ok_or(DecimalError::TooGreat)
}

/// A number that JSON holds as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Decimal(pub u64);

impl TryFrom<String> for Decimal {
    type Error = DecimalError;
    fn try_from(text: String) -> Result<Self, DecimalError> {
        parse(text.as_bytes()).map(Self)
    }
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> String {
        decimal.0.to_string()
    }
}

impl schemars::JsonSchema for Decimal {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Decimal".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^(0|[1-9][0-9]{0,19})$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(parse(b"0"), Ok(0));
        assert_eq!(parse(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse(b"18446744073709551616"), Err(DecimalError::TooGreat));
        assert_eq!(parse(&[b'9'; 128]), Err(DecimalError::TooGreat));
        for wrong in [
            "", "00", "01", "+1", "-1", " 1", "1 ", "1\t", "0x1", "1f", "1e3", "1.0", "1_0", "1,2",
            "١",
        ] {
            assert_eq!(
                parse(wrong.as_bytes()),
                Err(DecimalError::Form),
                "{wrong:?}"
            );
        }
        assert_eq!(parse(b"\xff"), Err(DecimalError::Form));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_what_is_read_is_written(number: u64, text in "[-+ 0-9a-f]{0,22}") {
            prop_assert_eq!(parse(number.to_string().as_bytes()), Ok(number));
            if let Ok(read) = parse(text.as_bytes()) {
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }
}
