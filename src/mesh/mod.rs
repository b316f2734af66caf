//! The declaration: what every machine of a mesh should be (DESIGN.md, section 2).
//!
//! `load` parses and checks it at once; a [`Mesh`] that exists is right: every name it mentions is
//! declared, every path is safe, no circle of services would wait for itself.

mod declaration;
mod select;

pub use declaration::{
    Become, Consumption, CourierKind, FileContent, FileDeclaration, FileMode, FilePath, Hold,
    Limits, Mesh, Move, Node, Owner, Provides, Recipient, SecretSource, Service,
};
pub use select::{SelectError, Selector, nearest, select};
