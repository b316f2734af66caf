//! Delivery: bundles to machines and back what these say (DESIGN.md, section 5).
//!
//! | file | what it owns |
//! |---|---|
//! | `courier` | what the push asks of couriers |
//! | `receipt` | what comes back |
//! | `dispatch` | many machines at a time, retries |

mod courier;
mod dispatch;
mod receipt;

pub use courier::{Dispatch, Heard, Parcel, Progress, Question, Target};
pub use dispatch::{CourierSettings, Couriers};
pub use receipt::{Answer, Applied, FailedStep, Failure, Holding, Outcome};
