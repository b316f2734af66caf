//! The bytes of a grant list: what stands on it is rule 1, how it is written is the provider's kind.

use super::Composer;
use crate::compose::files::Files;
use crate::compose::manifest::Grants;
use crate::compose::sources::list_template;
use crate::compose::{ComposeError, World};
use crate::kinds::{self, Account, Provider};
use crate::words::ServiceName;

impl Composer {
    /// Writes the grant list of a provider, in its kind's own format.
    pub(super) fn list(
        &self,
        world: &World<'_>,
        provider: &Provider,
        name: &ServiceName,
        grants: &Grants,
        files: &mut Files<'_>,
    ) -> Result<(), ComposeError> {
        let list = self.list_bytes(world, provider, name, grants)?;
        let path = format!("services/{name}/grants.{}", list.extension);
        files.add(path, 0o600, None, list.content.expose().as_bytes(), None)
    }

    /// The grant list of a provider.
    pub(super) fn list_bytes(
        &self,
        world: &World<'_>,
        provider: &Provider,
        name: &ServiceName,
        grants: &Grants,
    ) -> Result<kinds::GrantList, ComposeError> {
        let owner = kinds::Owner {
            mesh: &world.mesh.name,
            provider: name,
        };
        let accounts: Vec<Account<'_>> = grants
            .iter()
            .filter_map(|grant| {
                let credential = world
                    .provisions
                    .get(name, &grant.consumer)?
                    .get(grant.generation)?;
                Some(Account {
                    owner,
                    consumer: &grant.consumer,
                    generation: grant.generation,
                    secret: &credential.secret,
                    salt: credential.salt,
                    wants: &grant.wants,
                })
            })
            .collect();
        provider
            .kind()
            .list(owner, &accounts, &list_template(self.sources.as_ref()))
            .map_err(|source| ComposeError::Kind {
                service: name.clone(),
                source,
            })
    }
}
