//! A manifest with the digest that names it, computed once: a push asks for it with every standing, every commit and
//! every send, and a manifest is long.

use std::ops::Deref;

use super::manifest::Manifest;
use crate::words::Digest;

/// A manifest and its digest. It is read like the manifest, and cannot be changed.
#[derive(Debug, Clone)]
pub struct Release {
    manifest: Manifest,
    digest: Digest,
}

impl Release {
    /// Computes the digest.
    #[must_use]
    pub fn of(manifest: Manifest) -> Self {
        let digest = manifest.digest();
        Self { manifest, digest }
    }

    /// Of a manifest whose digest is certain: it was just verified, or it was sealed under that name.
    #[must_use]
    pub fn named(manifest: Manifest, digest: Digest) -> Self {
        Self { manifest, digest }
    }

    /// The digest that names the bundle.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Deref for Release {
    type Target = Manifest;

    fn deref(&self) -> &Manifest {
        &self.manifest
    }
}

/// By digest, which is what names a release.
impl PartialEq for Release {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Release {}
