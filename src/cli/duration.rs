//! Durations as an operator types them.

use std::time::Duration;

/// The longest that is taken; nobody waits longer.
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// `90s`, `10m`, `2h`, or seconds.
pub(super) fn parse_wait(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time like 90s, 10m or 2h");
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 's')) => (text.get(..at), 1),
        Some((at, 'm')) => (text.get(..at), 60),
        Some((at, 'h')) => (text.get(..at), 3600),
        _ => (Some(text), 1),
    };
    let number: u64 = number.unwrap_or("").parse().map_err(|_| wrong())?;
    let wait = Duration::from_secs(number.checked_mul(factor).ok_or_else(wrong)?);
    if wait > MOST {
        return Err("nobody waits longer than 24h".to_owned());
    }
    Ok(wait)
}

/// A time that is not nothing.
pub(super) fn parse_limit(text: &str) -> Result<Duration, String> {
    match parse_wait(text)? {
        Duration::ZERO => Err("nothing is done in no time".to_owned()),
        limit => Ok(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_wait_is_a_number_with_a_unit() {
        let seconds = |text| parse_wait(text).map(|wait| wait.as_secs());
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("2h"), Ok(7200));
        assert_eq!(seconds("7"), Ok(7));
        for wrong in ["", "m", "1d", "-1s", "ß", "25h", "99999999999999999999h"] {
            assert!(parse_wait(wrong).is_err(), "{wrong}");
        }
    }
}
