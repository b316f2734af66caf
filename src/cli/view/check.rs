//! `grid check --json`.

use crate::mesh::Diagnostics;
use crate::words::{Digest, MeshName};

/// What a check found.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum CheckView {
    /// Nothing is wrong.
    Right(Checked),
    /// All that is wrong.
    Wrong(Diagnostics),
}

/// A declaration that is right.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct Checked {
    /// Its name.
    pub mesh: MeshName,
    /// Of the bytes of all its files.
    pub digest: Digest,
    /// Its files, relative to its folder.
    pub files: Vec<String>,
    /// How many machines it has.
    pub machines: usize,
    /// How many services it has, assigned or not.
    pub services: usize,
    /// What is worth a second look, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
