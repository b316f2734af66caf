//! A provision, its generations and their states.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mesh::Mesh;
use crate::words::{Chance, Era, Generation, Salt, Secret, ServiceName};

/// Names a provision: `PROVIDER/CONSUMER`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ProvisionId {
    /// Who gives the account.
    pub provider: ServiceName,
    /// Who has it.
    pub consumer: ServiceName,
}

impl fmt::Display for ProvisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.consumer)
    }
}

/// The state of a generation. Only a live one is ever on a grant list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It admits its consumer, while it is the newest or in use.
    Live,
    /// `grid revoke` closed the account.
    Revoked,
    /// `grid rotate --cut` closed this generation; a newer one took its place at once.
    Cut,
}

/// One generation of a provision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Which.
    pub generation: Generation,
    /// Whether it may be on a list.
    pub state: State,
    /// The plain secret.
    pub secret: Secret,
    /// Makes its verifier.
    pub salt: Salt,
}

impl Credential {
    fn draw(number: u32, era: Era, chance: &mut dyn Chance) -> Self {
        Self {
            generation: Generation { number, era },
            state: State::Live,
            secret: Secret::draw(chance),
            salt: Salt::draw(chance),
        }
    }
}

/// What issuing an account came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issued {
    /// It was minted.
    Minted,
    /// There was one; it stands by hand now.
    ByHand,
    /// There was one, and the declaration asks for it: nothing was changed.
    Already,
}

/// What cannot be done to a provision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProvisionError {
    /// No such provision.
    #[error("{0} has no account yet")]
    Absent(ProvisionId),
    /// It is revoked.
    #[error("{0} is revoked")]
    Revoked(ProvisionId),
}

/// One consumer's account on one provider. It has at least one generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provision {
    /// Whether an operator issued it by hand, so that it stands without a consumption.
    pub by_hand: bool,
    older: Vec<Credential>,
    newest: Credential,
}

impl Provision {
    /// Mints a first generation.
    #[must_use]
    pub fn draw(by_hand: bool, era: Era, chance: &mut dyn Chance) -> Self {
        Self {
            by_hand,
            older: Vec::new(),
            newest: Credential::draw(1, era, chance),
        }
    }

    /// A provision as it was stored; `None` without a generation.
    #[must_use]
    pub fn from_stored(by_hand: bool, mut generations: Vec<Credential>) -> Option<Self> {
        generations.sort_by_key(|credential| credential.generation);
        let newest = generations.pop()?;
        Some(Self {
            by_hand,
            older: generations,
            newest,
        })
    }

    /// The newest generation.
    #[must_use]
    pub fn newest(&self) -> &Credential {
        &self.newest
    }

    /// All generations, oldest first.
    pub fn generations(&self) -> impl Iterator<Item = &Credential> {
        self.older.iter().chain(std::iter::once(&self.newest))
    }

    /// A generation, if it is kept.
    #[must_use]
    pub fn get(&self, generation: Generation) -> Option<&Credential> {
        self.generations()
            .find(|credential| credential.generation == generation)
    }

    /// Whether a generation may be on a list.
    #[must_use]
    pub fn is_live(&self, generation: Generation) -> bool {
        self.get(generation)
            .is_some_and(|credential| credential.state == State::Live)
    }

    /// Whether the account is revoked: its newest generation is.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.newest.state == State::Revoked
    }

    /// Mints a further generation; the older ones stay as they are.
    fn renew(&mut self, era: Era, chance: &mut dyn Chance) {
        let number = self.newest.generation.number.saturating_add(1);
        let next = Credential::draw(number, era, chance);
        self.older.push(std::mem::replace(&mut self.newest, next));
    }

    fn close(&mut self, state: State) {
        for credential in self
            .older
            .iter_mut()
            .chain(std::iter::once(&mut self.newest))
        {
            credential.state = state;
        }
    }

    /// Drops every generation that is neither the newest nor in use.
    pub fn prune(&mut self, in_use: impl Fn(Generation) -> bool) {
        self.older
            .retain(|credential| in_use(credential.generation));
    }
}

/// All provisions of a mesh.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provisions(BTreeMap<ServiceName, BTreeMap<ServiceName, Provision>>);

impl Provisions {
    /// A provision.
    #[must_use]
    pub fn get(&self, provider: &ServiceName, consumer: &ServiceName) -> Option<&Provision> {
        self.0.get(provider)?.get(consumer)
    }

    /// Takes a provision as it was stored, or as it was changed.
    pub fn insert(&mut self, id: ProvisionId, provision: Provision) {
        self.0
            .entry(id.provider)
            .or_default()
            .insert(id.consumer, provision);
    }

    /// The provisions issued from a provider, in order of consumer.
    pub fn of<'a>(
        &'a self,
        provider: &ServiceName,
    ) -> impl Iterator<Item = (&'a ServiceName, &'a Provision)> {
        self.0.get(provider).into_iter().flatten()
    }

    /// All provisions, in order of provider and consumer.
    pub fn iter(&self) -> impl Iterator<Item = (ProvisionId, &Provision)> {
        self.0.iter().flat_map(|(provider, consumers)| {
            consumers.iter().map(move |(consumer, provision)| {
                let id = ProvisionId {
                    provider: provider.clone(),
                    consumer: consumer.clone(),
                };
                (id, provision)
            })
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeMap::is_empty)
    }

    fn get_mut(&mut self, id: &ProvisionId) -> Result<&mut Provision, ProvisionError> {
        self.0
            .get_mut(&id.provider)
            .and_then(|consumers| consumers.get_mut(&id.consumer))
            .ok_or_else(|| ProvisionError::Absent(id.clone()))
    }

    /// `grid issue`: mints an account where there is none or a revoked one. An account that the declaration asks for goes with
    /// it; any other one stands by hand, until it is revoked.
    pub fn issue(
        &mut self,
        mesh: &Mesh,
        id: &ProvisionId,
        era: Era,
        chance: &mut dyn Chance,
    ) -> Issued {
        let by_hand = !mesh.declares(&id.provider, &id.consumer);
        let Ok(provision) = self.get_mut(id) else {
            self.insert(id.clone(), Provision::draw(by_hand, era, chance));
            return Issued::Minted;
        };
        if provision.is_revoked() {
            provision.by_hand = by_hand;
            provision.renew(era, chance);
            return Issued::Minted;
        }
        provision.by_hand |= by_hand;
        if by_hand {
            Issued::ByHand
        } else {
            Issued::Already
        }
    }

    /// `grid rotate`: mints a further generation. With `cut` the older ones are closed at once.
    ///
    /// # Errors
    /// When there is no account, or a revoked one.
    pub fn rotate(
        &mut self,
        id: &ProvisionId,
        cut: bool,
        era: Era,
        chance: &mut dyn Chance,
    ) -> Result<Generation, ProvisionError> {
        let provision = self.get_mut(id)?;
        if provision.is_revoked() {
            return Err(ProvisionError::Revoked(id.clone()));
        }
        if cut {
            provision.close(State::Cut);
        }
        provision.renew(era, chance);
        Ok(provision.newest.generation)
    }

    /// `grid revoke`: closes the account, every generation of it.
    ///
    /// # Errors
    /// When there is no account.
    pub fn revoke(&mut self, id: &ProvisionId) -> Result<(), ProvisionError> {
        self.get_mut(id)?.close(State::Revoked);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(u8);
    impl Chance for Counting {
        fn fill(&mut self, bytes: &mut [u8]) {
            for byte in bytes {
                self.0 = self.0.wrapping_add(1);
                *byte = self.0;
            }
        }
    }

    fn id() -> ProvisionId {
        ProvisionId {
            provider: ServiceName::new("broker").unwrap(),
            consumer: ServiceName::new("billing").unwrap(),
        }
    }

    /// A declaration that asks for no account.
    fn mesh() -> Mesh {
        Mesh {
            name: crate::words::MeshName::new("prod").unwrap(),
            grid: None,
            recipients: Vec::new(),
            secrets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            services: BTreeMap::new(),
            signals: None,
        }
    }

    fn states(provisions: &Provisions) -> Vec<(u32, State)> {
        provisions
            .get(&id().provider, &id().consumer)
            .unwrap()
            .generations()
            .map(|c| (c.generation.number, c.state))
            .collect()
    }

    #[test]
    fn rotating_keeps_the_older_generation_live_and_cutting_closes_it() {
        let (mut all, mut chance) = (Provisions::default(), Counting(0));
        let first = all.issue(&mesh(), &id(), Era(1), &mut chance);
        let second = all.issue(&mesh(), &id(), Era(1), &mut chance);
        assert_eq!((first, second), (Issued::Minted, Issued::ByHand));
        all.rotate(&id(), false, Era(1), &mut chance).unwrap();
        assert_eq!(states(&all), [(1, State::Live), (2, State::Live)]);
        all.rotate(&id(), true, Era(2), &mut chance).unwrap();
        assert_eq!(
            states(&all),
            [(1, State::Cut), (2, State::Cut), (3, State::Live)]
        );
    }

    #[test]
    fn revoking_closes_every_generation_and_issuing_again_mints_a_new_one() {
        let (mut all, mut chance) = (Provisions::default(), Counting(0));
        assert_eq!(all.revoke(&id()), Err(ProvisionError::Absent(id())));
        all.issue(&mesh(), &id(), Era(1), &mut chance);
        all.rotate(&id(), false, Era(1), &mut chance).unwrap();
        all.revoke(&id()).unwrap();
        assert_eq!(
            all.rotate(&id(), false, Era(1), &mut chance),
            Err(ProvisionError::Revoked(id()))
        );
        let again = all.issue(&mesh(), &id(), Era(1), &mut chance);
        assert_eq!(again, Issued::Minted);
        assert_eq!(
            states(&all),
            [(1, State::Revoked), (2, State::Revoked), (3, State::Live)]
        );
    }

    #[test]
    fn every_generation_has_a_secret_and_a_salt_of_its_own() {
        let (mut all, mut chance) = (Provisions::default(), Counting(0));
        all.issue(&mesh(), &id(), Era(1), &mut chance);
        all.rotate(&id(), false, Era(1), &mut chance).unwrap();
        let provision = all.get(&id().provider, &id().consumer).unwrap();
        let all: Vec<_> = provision.generations().collect();
        assert_ne!(all[0].secret.expose(), all[1].secret.expose());
        assert_ne!(all[0].salt, all[1].salt);
    }
}
