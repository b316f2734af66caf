//! Composition: `(mesh, provisions, last sent, attempts, node) -> bundle`, pure and deterministic
//! (DESIGN.md, section 3).
//!
//! Where each rule of that section lives:
//!
//! | rule | file |
//! |---|---|
//! | what counts as *in use* | `uses.rs` |
//! | what counts as *acknowledged* | `sent.rs` |
//! | 1, grants | `grants.rs` |
//! | 2, bindings and waiting | `bindings.rs` |
//! | 3, leaving; 4, moving; 5, revoked | `services.rs`; the order of what rule 3 does in one send: `leave()` in `delivery/receive.sh` |
//! | 6, identities of sites | `identities.rs`; what a site is given: `site.rs`, and for Kubernetes: `resources.rs` |
//! | what the bytes are | `render.rs` and what is below it, `templates.rs`, `manifest.rs` |
//! | what names them | `release.rs` |

pub mod bindings;
pub mod bundle;
pub mod environment;
mod error;
mod files;
pub mod former;
pub mod goes_on;
pub mod grants;
pub mod identities;
pub mod location;
pub mod manifest;
pub mod other_kind;
pub mod parts;
pub mod release;
pub mod render;
pub mod resources;
#[cfg(test)]
pub(crate) mod sample;
pub mod sent;
pub mod services;
pub mod site;
pub mod sources;
pub mod templates;
pub mod trial;
pub mod unwell;
pub mod uses;
pub mod world;

pub use error::ComposeError;
pub use release::Release;
pub use render::{Composer, Composition};
pub use world::World;
