//! Delivery: bundles to machines and back what these say (DESIGN.md, section 5).

mod courier;
mod receipt;

pub use courier::{Dispatch, Heard, Parcel, Progress, Question, Target};
pub use receipt::{Answer, Applied, FailedStep, Failure, Holding, Outcome};
