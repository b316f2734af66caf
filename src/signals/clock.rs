//! Times as they stand on a line of metrics: milliseconds of the epoch; and as they stand in HTTP's `Date`.
//!
//! A stamp comes from another machine, so it may be anything an `i64` holds: nothing here overflows.

use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};
use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970-01-01T00:00:00Z; before it, negative.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct EpochMs(i64);

/// The last millisecond that a `Date` is written for: past it `jiff` has no time.
const LAST: i64 = 253_402_207_200_000;

/// How long `Sun, 06 Nov 1994 08:49:37 GMT` is, the one form that RFC 9110 (section 5.6.7) lets a sender write.
const HTTP_DATE: usize = 29;

impl EpochMs {
    /// The moment that many milliseconds after the epoch.
    #[must_use]
    pub const fn new(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// How many milliseconds lie between `earlier` and this: negative where `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How old this is at `now`, in milliseconds: nothing is younger than 0.
    #[must_use]
    pub fn age_at(self, now: Self) -> u64 {
        u64::try_from(now.since(self)).unwrap_or(0)
    }

    /// This, moved back by so many milliseconds.
    #[must_use]
    pub const fn before(self, milliseconds: i64) -> Self {
        Self(self.0.saturating_sub(milliseconds))
    }

    /// The moment as HTTP's `Date`, in whole seconds (RFC 9110, section 5.6.7). A moment before 1970 is written as
    /// 1970, one past the year 9999 as its end: no clock of a machine that serves is there.
    #[must_use]
    pub fn http_date(self) -> String {
        Timestamp::from_millisecond(self.0.clamp(0, LAST))
            .and_then(|moment| DateTimePrinter::new().timestamp_to_rfc9110_string(&moment))
            .unwrap_or_default() // the clamped moment has a year of four digits
    }

    /// Reads HTTP's `Date`, in the one form that senders write; the two obsolete ones are refused.
    #[must_use]
    pub fn from_http_date(text: &str) -> Option<Self> {
        if text.len() != HTTP_DATE || !text.ends_with(" GMT") {
            return None;
        }
        let moment = DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Self(moment.as_millisecond()))
    }
}

/// A moment on a clock that nobody sets: milliseconds since the machine started, or since whenever else it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Steady(u64);

impl Steady {
    /// The moment that many milliseconds after the clock's start.
    #[must_use]
    pub const fn new(milliseconds: u64) -> Self {
        Self(milliseconds)
    }

    /// How many milliseconds passed from this until `now`.
    #[must_use]
    pub const fn age_at(self, now: Self) -> u64 {
        now.0.saturating_sub(self.0)
    }
}

/// One moment by both clocks of a machine: that which says what time it is, and may be set, and that which says how much
/// time passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What time it is: what stamps and `Date` say.
    pub wall: EpochMs,
    /// How much time passed.
    pub steady: Steady,
}

impl Moment {
    /// By how many milliseconds the time was set since `earlier`: back where it is negative.
    #[must_use]
    pub fn set_since(self, earlier: Self) -> i64 {
        let passed = i128::from(self.steady.0) - i128::from(earlier.steady.0);
        let told = i128::from(self.wall.0) - i128::from(earlier.wall.0);
        let set = told - passed;
        i64::try_from(set).unwrap_or(if set < 0 { i64::MIN } else { i64::MAX })
    }
}

impl From<Timestamp> for EpochMs {
    fn from(moment: Timestamp) -> Self {
        Self(moment.as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_written_in_whole_seconds_and_reads_back() {
        let moment = EpochMs::new(784_111_777_999);
        assert_eq!(moment.http_date(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            EpochMs::from_http_date("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(EpochMs::new(784_111_777_000))
        );
    }

    #[test]
    fn a_date_in_another_form_is_none() {
        for wrong in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov 1994 08:49:3\u{e9} GMT",
        ] {
            assert_eq!(EpochMs::from_http_date(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_clock_that_is_set_is_told_from_time_that_passes() {
        let at = |wall, steady| Moment {
            wall: EpochMs::new(wall),
            steady: Steady::new(steady),
        };
        assert_eq!(at(2_000, 1_500).set_since(at(1_000, 500)), 0);
        assert_eq!(at(-9_000, 1_500).set_since(at(1_000, 500)), -11_000);
        assert_eq!(at(9_000, 1_500).set_since(at(1_000, 500)), 7_000);
        assert_eq!(at(i64::MAX, 0).set_since(at(i64::MIN, 0)), i64::MAX);
        assert_eq!(at(i64::MIN, u64::MAX).set_since(at(0, 0)), i64::MIN);
        assert_eq!(Steady::new(5).age_at(Steady::new(3)), 0);
    }

    #[test]
    fn the_ends_of_time_neither_overflow_nor_go_unwritten() {
        let (first, last) = (EpochMs::new(i64::MIN), EpochMs::new(i64::MAX));
        assert_eq!(last.since(first), i64::MAX);
        assert_eq!(first.since(last), i64::MIN);
        assert_eq!(last.age_at(first), 0);
        assert_eq!(first.before(1), first);
        assert_eq!(first.http_date(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(last.http_date().len(), HTTP_DATE);
    }
}
