//! What time it is, and how much of it passed.

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::signals::clock::{EpochMs, Moment, Steady};

/// This moment. How much time passed is told by the clock that also counts while the machine is suspended: what is known
/// grows old then too.
#[must_use]
pub fn now() -> Moment {
    let passed = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(passed.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(passed.tv_nsec).unwrap_or(0);
    Moment {
        wall: EpochMs::from(Timestamp::now()),
        steady: Steady::new(
            seconds
                .saturating_mul(1_000)
                .saturating_add(nanoseconds / 1_000_000),
        ),
    }
}
