//! Provisions: the accounts that consumers have on providers (DESIGN.md, sections 1, 3 and 4), and the identities of
//! sites (section 7).
//!
//! Pure: chance, the day and the store's era are passed in. What is minted here is on disk before anything is sent;
//! the push sees to that.

pub mod certificate;
mod generation;
mod identity;
mod mint;

pub use generation::{
    Credential, Issued, Provision, ProvisionError, ProvisionId, Provisions, State,
};
pub use identity::{
    Authorities, Authority, GOES_ON_DAYS, Identities, Identity, Need, RENEWED_DAYS, SiteIdentity,
    days_left, goes_on_from,
};
pub use mint::{mint, missing, wanted_by};
