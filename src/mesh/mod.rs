//! The declaration: what every machine of a mesh should be (DESIGN.md, section 2).
//!
//! `load` parses and checks it at once; a [`Mesh`] that exists is right: every name it mentions is
//! declared, every path is safe, no circle of services would wait for itself.

mod at;
mod check;
mod check_paths;
mod check_sites;
mod circle;
mod consumption;
mod declaration;
mod deserializer;
mod diagnostic;
mod edit;
mod edit_text;
mod file;
mod init;
mod input;
mod items;
mod load;
mod machine;
mod names;
mod place;
mod raw;
mod read_error;
mod reader;
mod schema;
mod select;
mod service;
mod service_signals;
mod signals;
mod source;
mod syntax;
mod text;

pub use declaration::{
    Become, Consumption, CourierKind, FileContent, FileDeclaration, FileMode, FilePath, Hold,
    Limits, Location, Mesh, Move, Node, Owner, Provides, Recipient, Resources, SecretSource,
    Service, Signals, SiteFiles,
};
pub use diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Position};
pub use edit::{EditError, set_hold, set_nodes};
pub use init::starter;
pub use load::{Loaded, load, load_again};
pub use names::{Names, ServiceNames, names};
pub use schema::schema;
pub use select::{SelectError, Selector, select};
pub use service_signals::ServiceSignals;
pub use signals::SERVICE as SITE_SERVICE;
pub use text::reason as hold_reason;
