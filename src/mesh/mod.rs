//! The declaration: what every machine of a mesh should be (DESIGN.md, section 2).
//!
//! `load` parses and checks it at once; a [`Mesh`] that exists is right: every name it mentions is
//! declared, every path is safe, no circle of services would wait for itself.

mod check;
mod check_paths;
mod circle;
mod consumption;
mod declaration;
mod diagnostic;
mod items;
mod load;
mod machine;
mod place;
mod raw;
mod read_error;
mod reader;
mod schema;
mod select;
mod service;
mod source;
mod syntax;
mod text;

pub use declaration::{
    Become, Consumption, CourierKind, FileContent, FileDeclaration, FileMode, FilePath, Hold,
    Limits, Mesh, Move, Node, Owner, Provides, Recipient, SecretSource, Service,
};
pub use diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Position};
pub use load::{Loaded, load};
pub use schema::schema;
pub use select::{SelectError, Selector, nearest, select};
