//! The files of a service in a manifest, told apart by where they stand (the layout is `render.rs`'s).

use std::collections::BTreeMap;

use super::manifest::{FileEntry, ServiceManifest, Step};
use crate::words::{ReleasePath, ServiceName};

/// Files by path.
pub type FilesByPath<'a> = BTreeMap<&'a ReleasePath, &'a FileEntry>;

/// The files of a service by what they are.
#[derive(Debug, Default)]
pub struct Parts<'a> {
    /// Its own.
    pub own: FilesByPath<'a>,
    /// Its commands.
    pub commands: FilesByPath<'a>,
    /// Its grant list, and the empty one for when it leaves.
    pub list: FilesByPath<'a>,
    /// What it is told of its providers: bindings, and the environment file that is made of them.
    pub bound: FilesByPath<'a>,
}

impl<'a> Parts<'a> {
    /// Sorts them. A service that `is_bound` has bindings, now or in what it is compared with.
    #[must_use]
    pub fn of(name: &ServiceName, service: &'a ServiceManifest, is_bound: bool) -> Self {
        let list = service.grant_file(name).map(|file| &file.path);
        let bindings = format!("services/{name}/bindings/");
        let environment = format!("services/{name}/{name}.env");
        let commands = format!("commands/{name}/");
        let empty = Step::empty_path(name);
        let mut parts = Self::default();
        for file in &service.files {
            let path = file.path.as_str();
            let part = if Some(&file.path) == list || path == empty {
                &mut parts.list
            } else if path.starts_with(&commands) {
                &mut parts.commands
            } else if is_bound && (path.starts_with(&bindings) || path == environment) {
                &mut parts.bound
            } else {
                &mut parts.own
            };
            part.insert(&file.path, file);
        }
        parts
    }
}
