//! The value of a sample, read and written.
//!
//! Threat: a text of many digits can be made to cost a float's reader some thousand times its length. At most 19
//! significant digits are read, more than twice what tells any two floats apart; what a longer text says beyond these
//! moves the value by no more than its last bit.

use std::borrow::Cow;
use std::fmt::Write as _;

/// As many digits as a `u64` holds for sure: reading so many is one multiplication.
const DIGITS: usize = 19;

/// Reads a value: a decimal with an optional exponent, or `NaN`, `Inf`, `Infinity` in any case, with an optional sign.
/// A decimal too large for a float is none: it would read as infinite, which it does not say.
pub(super) fn read(token: &str) -> Option<f64> {
    let value: f64 = if token.len() <= DIGITS {
        token.parse().ok()?
    } else {
        shortened(token)?.parse().ok()?
    };
    let said = || !token.bytes().any(|byte| byte.is_ascii_digit());
    (value.is_finite() || said()).then_some(value)
}

/// The same number with at most 19 significant digits; `None` where it is not a number.
fn shortened(token: &str) -> Option<Cow<'_, str>> {
    let (mantissa, exponent) = match token.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (token, 0),
    };
    let (sign, unsigned) = match mantissa.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let mut digits = String::with_capacity(DIGITS);
    let (mut exponent, mut after_dot, mut any) = (i64::from(exponent), false, false);
    for byte in unsigned.bytes() {
        match byte {
            b'.' if !after_dot => after_dot = true,
            b'0'..=b'9' => {
                any = true;
                if digits.len() < DIGITS {
                    if byte != b'0' || !digits.is_empty() {
                        digits.push(char::from(byte));
                    }
                    exponent = exponent.saturating_sub(i64::from(after_dot));
                } else {
                    exponent = exponent.saturating_add(i64::from(!after_dot));
                }
            }
            _ => return None,
        }
    }
    if !any {
        return None;
    }
    if digits.is_empty() {
        digits.push('0');
    }
    Some(Cow::Owned(format!("{sign}{digits}e{exponent}")))
}

/// Writes a value so that [`read`] gives back the same bits: the shortest digits that do.
pub(super) fn write(out: &mut String, value: f64) {
    let size = value.abs();
    // Writing to a String does not fail.
    let _ = if value.is_nan() {
        out.write_str("NaN")
    } else if value.is_infinite() {
        out.write_str(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else if size > 0.0 && !(1e-5..1e17).contains(&size) {
        write!(out, "{value:e}")
    } else {
        write!(out, "{value}")
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: f64) -> String {
        let mut text = String::new();
        write(&mut text, value);
        text
    }

    #[test]
    fn every_form_of_a_value_is_read() {
        for (text, value) in [
            ("0", 0.0),
            ("-0", -0.0),
            ("1", 1.0),
            ("+1", 1.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("1E-3", 0.001),
            ("1.5e+3", 1500.0),
            ("+Inf", f64::INFINITY),
            ("-Inf", f64::NEG_INFINITY),
            ("inf", f64::INFINITY),
            ("1.7976931348623157e308", f64::MAX),
            ("4.9406564584124654e-324", 5e-324),
            ("1000000000000000000000.000000", 1e21),
            ("0.0000000000000000000000001", 1e-25),
            ("-00000000000000000000000012.5", -12.5),
            ("00000000000000000000000000000", 0.0),
            ("1e-9999", 0.0),
        ] {
            assert_eq!(
                read(text).map(f64::to_bits),
                Some(value.to_bits()),
                "{text}"
            );
        }
        assert!(read("NaN").unwrap().is_nan());
        assert!(read("nan").unwrap().is_nan());
    }

    #[test]
    fn what_is_no_number_or_none_that_a_float_holds_is_none() {
        for wrong in [
            "",
            "+",
            "-",
            ".",
            "e",
            "1e",
            "0x1p3",
            "1_000",
            "1,5",
            "1e400",
            "-1e400",
            "--1",
            "one",
            "1.2.3",
            "1.2.3000000000000000000000000",
            "....................",
            "infinityinfinityinfinity",
            "1000000000000000000000e2147483648",
            "1\u{0}",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert_eq!(read(&"9".repeat(400)), None);
    }

    #[test]
    fn integers_are_written_as_such_and_extremes_with_an_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.25, "0.25"),
            (1e16, "10000000000000000"),
            (1e17, "1e17"),
            (1e-6, "1e-6"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(written(value), text);
        }
    }

    proptest! {
        #[test]
        fn a_written_value_reads_back_to_the_bit(value in proptest::num::f64::ANY) {
            let back = read(&written(value)).unwrap();
            prop_assert!(back.to_bits() == value.to_bits() || back.is_nan() && value.is_nan());
        }

        #[test]
        fn cutting_digits_moves_a_value_by_its_last_bit_at_most(
            digits in "[1-9][0-9]{18,60}", dot in 0usize..18, exponent in -250i32..200
        ) {
            let (whole, fraction) = digits.split_at(dot.max(1));
            let text = format!("{whole}.{fraction}e{exponent}");
            let (ours, full) = (read(&text).unwrap(), text.parse::<f64>().unwrap());
            prop_assert!(ours.to_bits().abs_diff(full.to_bits()) <= 1, "{text}: {ours} {full}");
        }
    }
}
