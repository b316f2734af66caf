//! The operator's sources as files, commands and variables (DESIGN.md, section 2).
//!
//! Invariant: each is read once a push, so that all machines of one push are composed of the same bytes. What
//! changes after that fails the machine that it is sent to, by name.
//! Threat: the value of a secret is in no error, and `$GRID_IDENTITY` goes to no command.

mod secret;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use zeroize::Zeroizing;

use crate::compose::render::STORED_AT_MOST;
use crate::compose::sources::{SourceError, SourceFile, Sources, leads_out};
use crate::mesh::SecretSource;
use crate::store::Identity;
use crate::words::{Digest, Secret, SecretName};

/// The largest template, in bytes.
const TEMPLATE_MOST: u64 = 4 * 1024 * 1024;

/// How the identity is come by; only where an age file asks for it.
pub type FindIdentity = Box<dyn Fn() -> Result<Identity, String> + Send + Sync>;

/// Who is told what the command of a secret says on its standard error: the secret's name, and a line as it came.
pub type Hear = Arc<dyn Fn(&SecretName, &str) + Send + Sync>;

/// Sources below the folder of a declaration.
pub struct FsSources {
    folder: Utf8PathBuf,
    secrets: BTreeMap<SecretName, SecretSource>,
    identity: FindIdentity,
    /// The public keys of those who may open the store.
    sealed_for: Vec<String>,
    hear: Hear,
    read: Mutex<Read>,
}

/// What was read so far.
#[derive(Default)]
struct Read {
    templates: BTreeMap<Utf8PathBuf, Result<String, SourceError>>,
    files: BTreeMap<Utf8PathBuf, Result<SourceFile, SourceError>>,
    secrets: BTreeMap<SecretName, Result<Secret, SourceError>>,
}

impl std::fmt::Debug for FsSources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FsSources({})", self.folder)
    }
}

impl FsSources {
    /// The sources of the declaration in `folder`.
    #[must_use]
    pub fn new(
        folder: Utf8PathBuf,
        secrets: BTreeMap<SecretName, SecretSource>,
        identity: FindIdentity,
    ) -> Self {
        Self {
            folder,
            secrets,
            identity,
            sealed_for: Vec::new(),
            hear: Arc::new(|_, _| ()),
            read: Mutex::new(Read::default()),
        }
    }

    /// The same, where somebody is told what the commands of secrets say besides.
    #[must_use]
    pub fn heard_by(mut self, hear: Hear) -> Self {
        self.hear = hear;
        self
    }

    /// The same, where the holders of these public keys may open the store: what is said of a sealed file then shuts out none of
    /// them.
    #[must_use]
    pub fn sealed_for(mut self, keys: Vec<String>) -> Self {
        self.sealed_for = keys;
        self
    }

    fn open(&self, path: &Utf8Path) -> Result<(File, u64), SourceError> {
        let error = |why: String| SourceError {
            what: path.to_string(),
            why,
            remedy: None,
        };
        let full = self.folder.join(path);
        // Asked first: to open a pipe would wait for its writer.
        let metadata = std::fs::metadata(&full).map_err(|e| error(e.to_string()))?;
        if !metadata.is_file() {
            return Err(error("it is not a regular file".to_owned()));
        }
        let file = File::open(&full).map_err(|e| error(e.to_string()))?;
        Ok((file, metadata.len()))
    }

    fn read_at_most(&self, path: &Utf8Path, most: u64) -> Result<Zeroizing<Vec<u8>>, SourceError> {
        let error = |why: String| SourceError {
            what: path.to_string(),
            why,
            remedy: None,
        };
        let (file, size) = self.open(path)?;
        let too_large = || error(format!("it has more than {most} bytes"));
        if size > most {
            return Err(too_large());
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(
            usize::try_from(size).unwrap_or(0).saturating_add(2),
        ));
        file.take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|e| error(e.to_string()))?;
        if u64::try_from(bytes.len()).is_ok_and(|len| len > most) {
            return Err(too_large());
        }
        Ok(bytes)
    }

    fn read_template(&self, path: &Utf8Path) -> Result<String, SourceError> {
        let bytes = self.read_at_most(path, TEMPLATE_MOST)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| SourceError {
            what: path.to_string(),
            why: "a template is UTF-8 text, and this is not".to_owned(),
            remedy: None,
        })
    }

    fn read_file(&self, path: &Utf8Path) -> Result<SourceFile, SourceError> {
        let (mut file, size) = self.open(path)?;
        if size <= STORED_AT_MOST {
            let bytes = self.read_at_most(path, STORED_AT_MOST)?;
            return Ok(SourceFile {
                digest: Digest::of(&bytes),
                size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                bytes: Some(Arc::new(bytes)),
            });
        }
        let (digest, size) = Digest::of_reader(&mut file).map_err(|e| SourceError {
            what: path.to_string(),
            why: e.to_string(),
            remedy: None,
        })?;
        Ok(SourceFile {
            digest,
            size,
            bytes: None,
        })
    }
}

/// What is in `known` under `key`, or what `make` gives, kept.
fn once<K: Ord + Clone, V: Clone>(
    known: &mut BTreeMap<K, V>,
    key: &K,
    make: impl FnOnce() -> V,
) -> V {
    if let Some(value) = known.get(key) {
        return value.clone();
    }
    let value = make();
    known.insert(key.clone(), value.clone());
    value
}

impl Sources for FsSources {
    fn template(&self, path: &Utf8Path) -> Result<String, SourceError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        once(&mut read.templates, &path.to_owned(), || {
            self.read_template(path)
        })
    }

    fn included(&self, path: &Utf8Path) -> Result<String, SourceError> {
        let refused = || SourceError {
            what: path.to_string(),
            why: "a template includes only files below the declaration's folder".to_owned(),
            remedy: None,
        };
        let error = |e: std::io::Error| SourceError {
            what: path.to_string(),
            why: e.to_string(),
            remedy: None,
        };
        if leads_out(path) {
            return Err(refused());
        }
        // A link may lead out of it, too.
        let folder = self.folder.canonicalize_utf8().map_err(error)?;
        let real = folder.join(path).canonicalize_utf8().map_err(error)?;
        if !real.starts_with(&folder) {
            return Err(refused());
        }
        self.template(path)
    }

    fn file(&self, path: &Utf8Path) -> Result<SourceFile, SourceError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        once(&mut read.files, &path.to_owned(), || self.read_file(path))
    }

    fn place(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.folder.join(path)
    }

    fn secret(&self, name: &SecretName) -> Result<Secret, SourceError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        once(&mut read.secrets, name, || self.read_secret(name))
    }

    fn told_secrets(&self) -> Vec<Secret> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.secrets.values().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources below a folder, with no identity.
    pub(super) fn sources(folder: &std::path::Path, secrets: &[(&str, SecretSource)]) -> FsSources {
        let folder = Utf8PathBuf::from_path_buf(folder.to_owned()).unwrap();
        let secrets = secrets
            .iter()
            .map(|(name, source)| (SecretName::new(name).unwrap(), source.clone()))
            .collect();
        FsSources::new(folder, secrets, Box::new(|| Err("no identity".to_owned())))
    }

    #[test]
    fn a_source_is_read_once_whatever_happens_to_it_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "one").unwrap();
        let sources = sources(dir.path(), &[]);
        let first = sources.file("a".into()).unwrap();
        std::fs::write(dir.path().join("a"), "two").unwrap();
        let again = sources.file("a".into()).unwrap();
        assert_eq!(first.digest, again.digest);
        assert_eq!(again.bytes.unwrap().as_slice(), b"one");
        assert_eq!(sources.template("a".into()).unwrap(), "two");
    }

    #[test]
    fn a_large_file_is_hashed_and_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = vec![7; 64 * 1024 + 1];
        std::fs::write(dir.path().join("large"), &bytes).unwrap();
        let file = sources(dir.path(), &[]).file("large".into()).unwrap();
        assert_eq!((file.digest, file.size), (Digest::of(&bytes), 65_537));
        assert!(file.bytes.is_none());
    }

    #[test]
    fn a_template_includes_only_what_lies_below_the_declaration() {
        let dir = tempfile::tempdir().unwrap();
        let mesh = dir.path().join("mesh");
        std::fs::create_dir_all(mesh.join("parts")).unwrap();
        std::fs::write(dir.path().join("secret"), "hunter2").unwrap();
        std::fs::write(mesh.join("parts/a"), "a").unwrap();
        std::os::unix::fs::symlink("../secret", mesh.join("link")).unwrap();
        std::os::unix::fs::symlink("parts", mesh.join("inside")).unwrap();
        let sources = sources(&mesh, &[]);
        assert_eq!(sources.included("parts/a".into()).unwrap(), "a");
        assert_eq!(sources.included("inside/a".into()).unwrap(), "a");
        let absolute = dir.path().join("secret").to_str().unwrap().to_owned();
        for wrong in ["../secret", "parts/../../secret", "link", &absolute] {
            let error = sources.included(wrong.into()).unwrap_err();
            assert!(error.why.contains("below the declaration"), "{error}");
        }
    }

    #[test]
    fn what_is_not_a_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let sources = sources(dir.path(), &[]);
        assert!(
            sources
                .file("absent".into())
                .unwrap_err()
                .to_string()
                .starts_with("absent: ")
        );
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        insta::assert_snapshot!(sources.file("folder".into()).unwrap_err(), @"folder: it is not a regular file");
        std::fs::write(dir.path().join("bytes"), [0xff]).unwrap();
        insta::assert_snapshot!(sources.template("bytes".into()).unwrap_err(), @"bytes: a template is UTF-8 text, and this is not");
    }
}
