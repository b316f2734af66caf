//! Where a site is, in the words of whoever routes to it: regions, zones and the network's own id.
//!
//! These texts go into resources and to people. The public contract bounds only how they are used, so the rule is the
//! strictest that a cloud's own names pass: what is no printable ASCII could steer a terminal or be two texts that look alike.

use super::name::name;

/// The longest, in bytes: as much as the resource definitions take.
const LONGEST: usize = 253;

/// Why a text names no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Nothing, or more than 253 characters.
    #[error("it has 1 to {LONGEST} characters, and this has {0}")]
    Length(usize),
    /// A character outside printable ASCII.
    #[error("it has only printable ASCII without spaces, not {0:?}")]
    Character(char),
}

fn check(text: &str) -> Result<(), PlaceError> {
    if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic()) {
        return Err(PlaceError::Character(c));
    }
    if (1..=LONGEST).contains(&text.len()) {
        Ok(())
    } else {
        Err(PlaceError::Length(text.len()))
    }
}

name!(
    /// A region: `eu-north-1`.
    Region,
    check,
    PlaceError,
    "^[!-~]+$",
    LONGEST
);
name!(
    /// A zone within a region: `eu-north-1a`.
    Zone,
    check,
    PlaceError,
    "^[!-~]+$",
    LONGEST
);
name!(
    /// The network's own id.
    GridId,
    check,
    PlaceError,
    "^[!-~]+$",
    LONGEST
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_word_of_printable_ascii() {
        for good in ["eu", "eu-north-1a", "Oslo/Hall_3", &"a".repeat(253)] {
            assert_eq!(Region::new(good).unwrap().as_str(), good);
        }
        assert_eq!(Zone::new(""), Err(PlaceError::Length(0)));
        assert_eq!(Zone::new(&"a".repeat(254)), Err(PlaceError::Length(254)));
        for (wrong, c) in [
            ("a b", ' '),
            ("a\n", '\n'),
            ("\u{202e}eu", '\u{202e}'),
            ("ö", 'ö'),
        ] {
            assert_eq!(GridId::new(wrong), Err(PlaceError::Character(c)));
        }
    }
}
