//! Evidence: what gateways reported of their completed ingests, as persisted (DESIGN.md, section 7, "Ingest feedback").
//!
//! Pure, but for [`homes`]; time is an argument. Of the other rooms this one imports only [`crate::words`].
//!
//! From a request to its answer:
//!
//! 1. [`headers::parse`] makes a [`Report`] of the request's headers, or refuses it ([`Refusal::status`]).
//! 2. [`Writer::take`] applies the reports that wait together to the [`Ledger`] that its [`homes::Home`] holds, publishes
//!    the [`Document`] (the ledger and the [`Condition`] that follows from it) by one write, and gives each an
//!    [`Answer`] ([`Answer::status`]).
//! 3. [`Writer::refresh`], called every few seconds, lets the condition go stale.
//!
//! The other side, a gateway that is driven by scripts, is [`reporter`].
//!
//! # The ledger, for who tests it against the table
//!
//! The state machine alone is five calls, without I/O:
//!
//! ```
//! use grid::evidence::{Epoch, Ledger, Reason, Report, Verdict};
//! use grid::words::Replica;
//!
//! let now: jiff::Timestamp = "2026-12-01T00:00:00Z".parse()?;
//! let epoch: Epoch = "0123456789abcdef0123456789abcdef".parse()?;
//! // epoch, sequence, counter, clean, replica; refuses clean with the greatest sequence or counter.
//! let report = Report::new(epoch, 1, 0, true, Replica::new("gw-0")?)?;
//!
//! let mut ledger = Ledger::new();
//! assert_eq!(ledger.report(&report, now), Verdict::Accepted { changed: true });
//! assert_eq!(ledger.report(&report, now), Verdict::Identical);
//! assert_eq!(ledger.condition(now).reason(), Reason::Clean);
//! ledger.clear(epoch, now); // an operator's act, on one epoch
//! ledger.clear_stale(now); // the same, on all whose process is silent
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Verdict`] is `Accepted { changed }` (204), `Identical` (204), `Conflict { why }` (409) or `Overflow` (507).
//! [`Ledger::condition`] gives reason, status and message. What is held can be seen by [`Ledger::records`].
//! The corners that the table leaves open stand at the top of `ledger.rs`.

mod condition;
mod decimal;
mod document;
mod epoch;
pub mod headers;
pub mod homes;
mod ledger;
mod publication;
mod report;
pub mod reporter;
mod versioned;

pub use condition::{Condition, Finding, MESSAGE_MOST, Reason, Status};
pub use document::{DOCUMENT_MOST, Document, DocumentError, FORMAT};
pub use epoch::{Epoch, EpochError};
pub use headers::Refusal;
pub use ledger::{CAPACITY, Clearing, Contradiction, FRESH, Ledger, Record, Standing, Verdict};
pub use publication::{Answer, BUDGET, Event, Failure, Outcome, Writer};
pub use report::Report;
