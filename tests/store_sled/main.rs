//! The embedded store as a person's disk sees it: what is kept through deaths, what damage is told, what a thief
//! can read, and who may write.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "a test may fail in any way that says why, and a measurement prints"
)]

mod damage;
mod death;
mod fixture;
mod killed_while_taking_out;
mod locking;
mod resealing;
mod scale;
mod thief;
mod transactions;
