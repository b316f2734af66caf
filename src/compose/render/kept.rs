//! What stays on a machine as it was last acknowledged: a service that waits or leaves, and what a provider that provides no more
//! needs to close its accounts.

use std::collections::{BTreeMap, BTreeSet};

use super::{Composer, seconds};
use crate::compose::files::Files;
use crate::compose::manifest::{FileEntry, Grants, ServiceManifest, Step};
use crate::compose::parts::Parts;
use crate::compose::{ComposeError, World};
use crate::words::{NodeName, ServiceName};

impl Composer {
    /// A service as last acknowledged, with a current list.
    pub(super) fn kept(
        &self,
        world: &World<'_>,
        node: &NodeName,
        name: &ServiceName,
        grants: Option<&Grants>,
        files: &mut Files<'_>,
    ) -> Result<ServiceManifest, ComposeError> {
        let Some(held) = world.machine(node).holds(name) else {
            return Ok(ServiceManifest {
                bindings: BTreeMap::new(),
                unwaited: BTreeSet::new(),
                provides: None,
                endpoint: None,
                grants: None,
                files: Vec::new(),
                limits: seconds(crate::mesh::Limits::default()),
            });
        };
        let list = held.grant_file(name);
        let others = held.files.iter().filter(|file| Some(*file) != list);
        others.for_each(|file| files.keep(file.clone()));
        if let Some(grants) = grants {
            self.last_list(world, held, name, grants, files)?;
        }
        Ok(ServiceManifest {
            bindings: held.bindings.clone(),
            unwaited: held.unwaited.clone(),
            provides: held.provides.clone(),
            endpoint: held.endpoint.clone(),
            grants: grants.cloned(),
            files: files.take(),
            limits: held.limits,
        })
    }

    /// The current list of a provider as it was last acknowledged.
    fn last_list(
        &self,
        world: &World<'_>,
        held: &ServiceManifest,
        name: &ServiceName,
        grants: &Grants,
        files: &mut Files<'_>,
    ) -> Result<(), ComposeError> {
        let empty = Step::empty_path(name);
        let empty = held.files.iter().find(|file| file.path.as_str() == empty);
        match (held.grant_file(name), empty, &held.provides) {
            (Some(list), _, _) if held.grants.as_ref() == Some(grants) => files.keep(list.clone()),
            // Whoever made the list may have taken its template away with the provider.
            (Some(list), Some(empty), _) if grants.is_empty() => files.keep(FileEntry {
                sha256: empty.sha256,
                size: empty.size,
                ..list.clone()
            }),
            (_, _, Some(provider)) => self
                .list(world, provider, name, grants, files)
                .map_err(|error| error.while_it_leaves(name))?,
            (_, _, None) => {}
        }
        Ok(())
    }

    /// What a service that provides no more needs to close its accounts: its list, what loads that, and of its last files
    /// those that the declaration has no more, since its load may be one of them.
    pub(super) fn last_provision(
        &self,
        world: &World<'_>,
        held: &ServiceManifest,
        name: &ServiceName,
        grants: &Grants,
        files: &mut Files<'_>,
    ) -> Result<(), ComposeError> {
        self.last_list(world, held, name, grants, files)?;
        let parts = Parts::of(name, held, !held.bindings.is_empty());
        let own = parts.own.values().filter(|file| file.install.is_none());
        for file in own {
            if !files.has(&file.path) {
                files.keep(FileEntry::clone(file));
            }
        }
        let provides = [
            Step::Load.path(name),
            Step::Verify.path(name),
            Step::empty_path(name),
        ];
        for file in &held.files {
            if provides.iter().any(|path| file.path.as_str() == path) {
                files.keep(file.clone());
            }
        }
        Ok(())
    }
}
