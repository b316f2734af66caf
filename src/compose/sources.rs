//! The operator's sources, as composition reads them: through a trait, so that it does no I/O itself.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use zeroize::Zeroizing;

use crate::kinds::{KindError, TemplateError};
use crate::words::{Digest, Secret, SecretName};

/// A source that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct SourceError {
    /// Which: a path, or a secret's name.
    pub what: String,
    /// Why not; it holds no value.
    pub why: String,
    /// What to do about it, as a clause (`set $API_KEY`); absent: mend what is named.
    pub remedy: Option<String>,
}

impl SourceError {
    /// What to do about it, as a clause.
    #[must_use]
    pub fn remedy(&self) -> String {
        let usual = || format!("mend {}", self.what);
        self.remedy.clone().unwrap_or_else(usual)
    }
}

/// A file of the operator's.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Of its content.
    pub digest: Digest,
    /// In bytes.
    pub size: u64,
    /// Its content if it is small (at most 64 KiB); a larger one is streamed when it is sent.
    pub bytes: Option<Arc<Zeroizing<Vec<u8>>>>,
}

/// Reads sources. Each is read and hashed once a push, so that every machine is composed of the same ones.
/// Paths are relative to the declaration.
pub trait Sources: Send + Sync {
    /// The text of a template; at most 4 MiB.
    ///
    /// # Errors
    /// When it cannot be read, is larger, or is not UTF-8.
    fn template(&self, path: &Utf8Path) -> Result<String, SourceError>;

    /// The text of a template that another one includes, extends or imports: a file below the declaration's folder.
    ///
    /// # Errors
    /// Those of [`Sources::template`], and when its path leads out of that folder.
    fn included(&self, path: &Utf8Path) -> Result<String, SourceError> {
        if leads_out(path) {
            return Err(SourceError {
                what: path.to_string(),
                why: "a template includes only files below the declaration's folder".to_owned(),
                remedy: None,
            });
        }
        self.template(path)
    }

    /// A file, as it is.
    ///
    /// # Errors
    /// When it cannot be read.
    fn file(&self, path: &Utf8Path) -> Result<SourceFile, SourceError>;

    /// Where the file at `path` is read again while it is sent.
    fn place(&self, path: &Utf8Path) -> Utf8PathBuf {
        path.to_owned()
    }

    /// A secret of the operator's, by its name in the declaration.
    ///
    /// # Errors
    /// When it cannot be had.
    fn secret(&self, name: &SecretName) -> Result<Secret, SourceError>;

    /// The operator's secrets that were asked for so far.
    fn told_secrets(&self) -> Vec<Secret> {
        Vec::new()
    }
}

/// Whether a path is not plainly below the folder that it is relative to.
#[must_use]
pub fn leads_out(path: &Utf8Path) -> bool {
    use camino::Utf8Component::{CurDir, Normal};
    !path
        .components()
        .all(|part| matches!(part, Normal(_) | CurDir))
}

/// Reads the template of a provider's list, for its kind.
pub(super) fn list_template(
    sources: &dyn Sources,
) -> impl Fn(&str) -> Result<String, KindError> + '_ {
    |path| {
        sources.template(path.into()).map_err(|error| {
            KindError::Template(Box::new(TemplateError {
                remedy: error.remedy,
                ..TemplateError::new(path, None, error.why)
            }))
        })
    }
}
