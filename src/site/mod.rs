//! The site daemon, `grid site run` (DESIGN.md, section 7).
//!
//! | file | what it owns |
//! |---|---|
//! | `config`, `identity`, `leaf` | the files, and what certificates say |
//! | `trust`, `tls`, `itself` | who a certificate is; mutual TLS both ways; whether the own one is admitted |
//! | `admission`, `listener`, `patient` | connections, their bounds and their ends |
//! | `serve`, `board` | the two requests; what the site knows |
//! | `writer` | the one thread that writes evidence |
//! | `scraper`, `poller`, `turns`, `dial`, `fetch`, `membership` | what is pulled, and from whom |
//! | `read` | what a site shows to whoever asks by hand |
//! | `gateway` | the other end of a report: a gateway that is driven by scripts |
//! | `checked` | whether it runs as declared, for a push's check |
//! | `watch`, `restart`, `difference` | files that change: taken up live, or exit 75 |
//! | `keeper`, `state` | the overlay; the daemon's files |
//! | `metrics`, `shown`, `outcomes`, `notify`, `now` | counters and who reads them, what is news, systemd, the clocks |
//!
//! The mode is read once. Under poll the listener is bound and peers are pulled; under gossip there is no listener, and
//! until gossip itself is built nothing crosses sites, which the status says.

mod admission;
mod board;
mod checked;
mod config;
mod dial;
mod difference;
mod fetch;
mod gateway;
mod identity;
mod itself;
mod keeper;
mod leaf;
mod listener;
mod membership;
mod metrics;
mod notify;
mod now;
mod outcomes;
mod patient;
mod poller;
mod read;
mod restart;
mod run;
mod scraper;
mod serve;
mod shown;
mod state;
mod tls;
mod trust;
mod turns;
mod watch;
mod writer;

pub use checked::{Unmet, check};
pub use config::ConfigError;
pub use dial::PollError;
pub use difference::{Given, Live, difference, peers as peers_differ};
pub use gateway::{Endpoint, Replied, SendError};
pub use metrics::{Family, FamilyKind, families};
pub use read::{Asked, ReadError, Shown, read};
pub use restart::Restart;
pub use run::{Ended, RunError, run};
pub use state::{SiteStatus, StateFolder, evidence_in};
