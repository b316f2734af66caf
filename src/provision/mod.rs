//! Provisions: the accounts that consumers have on providers (DESIGN.md, sections 1, 3 and 4).
//!
//! Pure: chance and the store's era are passed in. What is minted here is on disk before anything is sent;
//! the push sees to that.

mod generation;
mod mint;

pub use generation::{
    Credential, Issued, Provision, ProvisionError, ProvisionId, Provisions, State,
};
pub use mint::{mint, missing, wanted_by};
