//! Delivery: bundles to machines and back what these say (DESIGN.md, section 5).
//!
//! | file | what it owns |
//! |---|---|
//! | `courier` | what the push asks of couriers |
//! | `receipt` | what comes back |
//! | `settings` | how machines are reached |
//! | `dispatch` | many machines at a time |
//! | `worker` | one of them, with retries |
//! | `prepared` | a send before anybody is reached |
//! | `exchange`, `ear` | the conversation with one machine, over any courier |
//! | `remote` | one command on a machine |
//! | `gate` | whether further machines may be reached |
//! | `receive.sh`, `script` | the machine side, and how it is started |
//! | `plan`, `tar` | what it is sent |
//! | `protocol` | what it says: lines, frames and their bounds |
//! | `message` | what each line says |
//! | `remedy` | what to do about a failure that it tells |
//! | `link` | what a courier is; `local`, `ssh` and `openssh` are those that reach a machine |
//! | `manifests` | the one that reaches nobody: a site's resources, in a folder |

mod courier;
mod dispatch;
mod ear;
mod error;
mod exchange;
mod gate;
mod link;
mod local;
mod manifests;
mod message;
mod openssh;
mod plan;
mod prepared;
mod protocol;
mod receipt;
mod redact;
mod remedy;
mod remote;
mod script;
mod settings;
mod ssh;
mod tar;
mod worker;

pub use courier::{Dispatch, Heard, Manner, Parcel, Progress, Question, Target};
pub use dispatch::Couriers;
pub use gate::Gate;
pub use manifests::NOT_OBSERVED;
pub use plan::{LeftAlone, left_alone};
pub use prepared::load_of;
pub use receipt::{Answer, Applied, FailedStep, Failure, Holding, Outcome, Sight};
pub use redact::Secrets;
pub use remote::{Ran, RemoteCommand};
pub use settings::CourierSettings;
pub use ssh::{AskPassphrase, SeenKey, host_keys, match_blocks};
