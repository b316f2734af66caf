//! The machines that somebody names on the command line, and what to type where there is none of that name.

use std::collections::BTreeSet;

use camino::Utf8Path;

use super::Context;
use crate::cli::exit::CommandError;
use crate::cli::phrases::{self, some_of};
use crate::mesh::{Mesh, SelectError, Selector, select};
use crate::store::Store as _;
use crate::words::NodeName;

impl Context {
    /// The machines that are named: by name, or by `@tag`.
    ///
    /// # Errors
    /// When a name or a tag names none. One that left the declaration and may still hold what it was sent is told apart.
    pub fn choose(
        &self,
        folder: &Utf8Path,
        mesh: &Mesh,
        texts: &[String],
    ) -> Result<BTreeSet<NodeName>, CommandError> {
        let selectors: Vec<Selector> = texts
            .iter()
            .map(|text| {
                let Ok(selector) = text.parse();
                selector
            })
            .collect();
        select(mesh, &selectors).map_err(|error| {
            let hint = match &error {
                SelectError::UnknownNode { name, nearest } => {
                    if let Some(error) = self.undeclared(folder, name) {
                        return error;
                    }
                    self.instead_of(mesh, name, nearest.is_some())
                }
                SelectError::UnknownTag {
                    nearest: Some(_), ..
                } => None,
                SelectError::UnknownTag { tag, nearest: None } => {
                    let tags: BTreeSet<_> =
                        mesh.nodes.values().flat_map(|node| &node.tags).collect();
                    Some(if tags.is_empty() {
                        format!("`tags = [\"{tag}\"]` gives a machine that tag")
                    } else {
                        format!("the tags of this mesh: {}", some_of(tags))
                    })
                }
            };
            hint.into_iter().fold(error.into(), CommandError::hint)
        })
    }

    /// What to type where there is no machine of that name: a service may have been meant.
    fn instead_of(&self, mesh: &Mesh, name: &str, has_suggestion: bool) -> Option<String> {
        if name.contains('/') {
            return Some(
                "a machine's name has no \"/\": PROVIDER/CONSUMER names an account, and `grid provisions` lists those"
                    .to_owned(),
            );
        }
        if let Some(service) = mesh.services.get(name) {
            if service.nodes.is_empty() {
                return Some(format!(
                    "{name} is a service, on no machine: `grid assign {name} NODE` puts it on one"
                ));
            }
            let nodes: Vec<String> = service.nodes.iter().map(ToString::to_string).collect();
            let nodes = nodes.join(" ");
            let typed: Vec<&str> = self
                .typed
                .split(' ')
                .map(|word| if word == name { nodes.as_str() } else { word })
                .collect();
            return Some(format!(
                "{name} is a service, on {}: `grid {}`",
                some_of(&service.nodes),
                typed.join(" ")
            ));
        }
        if mesh.nodes.is_empty() {
            return Some(phrases::NO_MACHINES.to_owned());
        }
        (!has_suggestion).then(|| {
            format!(
                "the machines of this mesh: {}; `[nodes.{name}]` in mesh.toml declares another",
                some_of(mesh.nodes.keys())
            )
        })
    }

    /// What is to be said of a machine that the declaration does not have, if the store knows it. What goes wrong
    /// here is not what was asked for.
    fn undeclared(&self, folder: &Utf8Path, name: &str) -> Option<CommandError> {
        let mut store = self.open_reading(folder, "read").ok()?;
        let state = store.load().ok()?;
        let machine = state.fleet.get(name)?;
        if !machine.is_known() {
            return None;
        }
        let at = machine.elsewhere(None);
        let at = at.map_or(String::new(), |at| format!("; it was last reached at {at}"));
        let error = CommandError::usage(format!(
            "{name} left the declaration, and may still hold what it was sent{at}"
        ));
        Some(error.hint(format!(
            "`grid forget {name}` takes it as gone, once it is; to send to it again, declare it again"
        )))
    }
}
