//! `grid compose --json`.

use crate::compose::manifest::Manifest;
use crate::words::Digest;

/// A composed machine: what its next send would hold.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct ComposeView {
    /// The digest that names the bundle.
    pub digest: Digest,
    /// What it holds: hashes, never contents.
    pub manifest: Manifest,
}
