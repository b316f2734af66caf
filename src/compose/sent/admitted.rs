//! Whom a machine admits on a provider.

use crate::compose::manifest::{Grant, Grants};

/// What a machine admits on a provider for certain. Lists are long, so none is copied to be asked.
#[derive(Debug, Clone, Copy)]
pub enum Admitted<'a> {
    /// Nobody.
    Nothing,
    /// What is on this list.
    List(&'a Grants),
    /// What is on both: the last acknowledged one, and that of an attempt that is not settled.
    Both(&'a Grants, &'a Grants),
}

impl<'a> Admitted<'a> {
    /// Whether `grant` is admitted.
    #[must_use]
    pub fn contains(self, grant: &Grant) -> bool {
        match self {
            Self::Nothing => false,
            Self::List(list) => list.contains(grant),
            Self::Both(held, attempted) => held.contains(grant) && attempted.contains(grant),
        }
    }

    /// Every grant that is admitted, in order.
    pub fn iter(self) -> impl Iterator<Item = &'a Grant> {
        let (list, too) = match self {
            Self::Nothing => (None, None),
            Self::List(list) => (Some(list), None),
            Self::Both(held, attempted) => (Some(held), Some(attempted)),
        };
        let both = move |grant: &&Grant| too.is_none_or(|too| too.contains(*grant));
        list.into_iter().flatten().filter(both)
    }
}
