//! The operator's sources as files, commands and variables (DESIGN.md, section 2).
//!
//! Invariant: each is read once a push, so that all machines of one push are composed of the same bytes. What
//! changes after that fails the machine that it is sent to, by name.
//! Threat: the value of a secret is in no error, and `$GRID_IDENTITY` goes to no command.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use zeroize::Zeroizing;

use super::child;
use crate::compose::render::STORED_AT_MOST;
use crate::compose::sources::{SourceError, SourceFile, Sources, leads_out};
use crate::mesh::SecretSource;
use crate::store::{Identity, open_age_file};
use crate::words::{Digest, Secret, SecretName};

/// The largest template, in bytes.
const TEMPLATE_MOST: u64 = 4 * 1024 * 1024;
/// The most bytes that a secret's command prints.
const SECRET_MOST: u64 = 64 * 1024;
/// The most bytes of an age file.
const AGE_FILE_MOST: u64 = 2 * 1024 * 1024;
/// What to do where an empty value is meant.
const WHERE_EMPTY_GOES: &str =
    "a value that is to be empty is no secret, and stands in the template itself";
/// How the files begin that age writes: as bytes, and as text.
const AGE_BEGINS: [&[u8]; 2] = [b"age-encryption.org/", b"-----BEGIN AGE ENCRYPTED FILE"];
/// How long a secret's command may take.
const COMMAND_DEADLINE: Duration = Duration::from_secs(30);

/// How the identity is come by; only where an age file asks for it.
pub type FindIdentity = Box<dyn Fn() -> Result<Identity, String> + Send + Sync>;

/// Who is told what the command of a secret says on its standard error: the secret's name, and a line as it came.
pub type Hear = Arc<dyn Fn(&SecretName, &str) + Send + Sync>;

/// Sources below the folder of a declaration.
pub struct FsSources {
    folder: Utf8PathBuf,
    secrets: BTreeMap<SecretName, SecretSource>,
    identity: FindIdentity,
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

    fn read_secret(&self, name: &SecretName) -> Result<Secret, SourceError> {
        let failed = |why: String, remedy: String| SourceError {
            what: format!("secret {name}"),
            why,
            remedy: Some(remedy),
        };
        let table = format!("[secrets.{name}]");
        let Some(source) = self.secrets.get(name) else {
            let why = "the declaration has no such secret".to_owned();
            return Err(failed(why, format!("declare {table}")));
        };
        match source {
            SecretSource::AgeFile(path) => {
                let error = |why: String| failed(why, format!("mend {path}, or `file` of {table}"));
                let bytes = self
                    .read_at_most(path, AGE_FILE_MOST)
                    .map_err(|e| error(e.to_string()))?;
                let identity = (self.identity)().map_err(|why| {
                    failed(
                        why,
                        "put your identity in its place, or name it with $GRID_IDENTITY".to_owned(),
                    )
                })?;
                if !AGE_BEGINS.iter().any(|begin| bytes.starts_with(begin)) {
                    return Err(failed(
                        format!("{path} is no file that age sealed"),
                        format!(
                            "`age -r {} -o NEW {path}` seals what is in it; then put NEW in its place",
                            identity.public()
                        ),
                    ));
                }
                let secret =
                    open_age_file(&bytes, &identity).map_err(|e| error(format!("{path}: {e}")))?;
                if secret.expose().is_empty() {
                    return Err(failed(
                        format!("{path} holds an empty text"),
                        format!("seal the secret in {path}; {WHERE_EMPTY_GOES}"),
                    ));
                }
                Ok(secret)
            }
            SecretSource::Environment(variable) => {
                let error =
                    |what: &str| failed(format!("${variable} {what}"), format!("set ${variable}"));
                match std::env::var(variable) {
                    Ok(value) if value.is_empty() => Err(failed(
                        format!("${variable} is empty"),
                        format!("set ${variable}; {WHERE_EMPTY_GOES}"),
                    )),
                    Ok(value) => Ok(Secret::new(value)),
                    Err(std::env::VarError::NotPresent) => Err(error("is not set")),
                    Err(std::env::VarError::NotUnicode(_)) => Err(error("is not UTF-8 text")),
                }
            }
            SecretSource::Command(command) => {
                let mut words = command.words().iter();
                let program = words.next().map_or("", String::as_str);
                let error = |why: String| {
                    failed(
                        why,
                        format!("see what `{program}` says by hand, or mend `command` of {table}"),
                    )
                };
                let mut run = Command::new(program);
                run.args(words).current_dir(&self.folder);
                let (hear, secret) = (Arc::clone(&self.hear), name.clone());
                let hear = move |line: String| hear(&secret, &line);
                let mut bytes = child::output(&mut run, COMMAND_DEADLINE, SECRET_MOST, hear)
                    .map_err(|e| error(format!("`{program}` {e}")))?;
                if bytes.last() == Some(&b'\n') {
                    bytes.pop();
                }
                if bytes.is_empty() {
                    return Err(failed(
                        format!("`{program}` printed nothing"),
                        format!(
                            "see what `{program}` says by hand, or mend `command` of {table}; {WHERE_EMPTY_GOES}"
                        ),
                    ));
                }
                match std::str::from_utf8(&bytes) {
                    Ok(text) => Ok(Secret::new(text.to_owned())),
                    Err(_) => Err(error(format!("`{program}` printed what is not UTF-8 text"))),
                }
            }
        }
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

    fn sources(folder: &std::path::Path, secrets: &[(&str, SecretSource)]) -> FsSources {
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

    #[test]
    fn a_command_prints_a_secret_without_its_last_newline_and_sees_no_identity() {
        let command = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            SecretSource::Command(crate::words::Command::new(words).unwrap())
        };
        let dir = tempfile::tempdir().unwrap();
        let sources = sources(
            dir.path(),
            &[
                ("good", command(&["printf", "hunter2 \\n\\n"])),
                ("bad", command(&["sh", "-c", "echo hunter2; exit 9"])),
                (
                    "unset",
                    SecretSource::Environment("GRID_TEST_NOT_SET".to_owned()),
                ),
                ("silent", command(&["echo"])),
                ("no-file", SecretSource::AgeFile("secrets/none.age".into())),
                (
                    "identity",
                    command(&["sh", "-c", "echo ${GRID_IDENTITY-none}"]),
                ),
            ],
        );
        let secret = |name| sources.secret(&SecretName::new(name).unwrap());
        assert_eq!(secret("good").unwrap().expose(), "hunter2 \n");
        assert_eq!(secret("identity").unwrap().expose(), "none");
        let remedy = |name| secret(name).unwrap_err().remedy();
        insta::assert_snapshot!(remedy("bad"), @"see what `sh` says by hand, or mend `command` of [secrets.bad]");
        insta::assert_snapshot!(remedy("unset"), @"set $GRID_TEST_NOT_SET");
        insta::assert_snapshot!(remedy("no-file"), @"mend secrets/none.age, or `file` of [secrets.no-file]");
        insta::assert_snapshot!(remedy("absent"), @"declare [secrets.absent]");
        insta::assert_snapshot!(remedy("silent"), @"see what `echo` says by hand, or mend `command` of [secrets.silent]; a value that is to be empty is no secret, and stands in the template itself");
        insta::assert_snapshot!(secret("silent").unwrap_err(), @"secret silent: `echo` printed nothing");
        insta::assert_snapshot!(secret("bad").unwrap_err(), @"secret bad: `sh` failed (exit status: 9)");
        insta::assert_snapshot!(secret("unset").unwrap_err(), @"secret unset: $GRID_TEST_NOT_SET is not set");
        insta::assert_snapshot!(secret("absent").unwrap_err(), @"secret absent: the declaration has no such secret");
    }

    #[test]
    fn a_file_is_sealed_and_not_empty() {
        let dir = tempfile::tempdir().unwrap();
        let identity = crate::store::Identity::generate();
        let to: age::x25519::Recipient = identity.public().parse().unwrap();
        let file = identity.public();
        std::fs::write(
            dir.path().join("empty.age"),
            age::encrypt(&to, b"").unwrap(),
        )
        .unwrap();
        std::fs::write(
            dir.path().join("good.age"),
            age::encrypt(&to, b"7").unwrap(),
        )
        .unwrap();
        let armored = age::encrypt_and_armor(&to, b"8").unwrap();
        std::fs::write(dir.path().join("text.age"), armored).unwrap();
        std::fs::write(dir.path().join("plain.age"), "hunter2\n").unwrap();
        let key = dir.path().join("identity.txt");
        identity
            .write_new(&key, jiff::Timestamp::UNIX_EPOCH)
            .unwrap();
        let find = move || Identity::read(&key).map_err(|error| error.to_string());
        let names = ["empty", "good", "text", "plain"];
        let secrets = names.map(|name| {
            let source = SecretSource::AgeFile(format!("{name}.age").into());
            (SecretName::new(name).unwrap(), source)
        });
        let folder = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let sources = FsSources::new(folder, secrets.into(), Box::new(find));
        let said = |name: &str| match sources.secret(&SecretName::new(name).unwrap()) {
            Ok(secret) => secret.expose().to_owned(),
            Err(error) => format!("{error}; {}", error.remedy()).replace(&file, "age1…"),
        };
        let said = names.map(said).join("\n");
        assert!(!said.contains("hunter2"), "{said}");
        insta::assert_snapshot!(said, @"
        secret empty: empty.age holds an empty text; seal the secret in empty.age; a value that is to be empty is no secret, and stands in the template itself
        7
        8
        secret plain: plain.age is no file that age sealed; `age -r age1… -o NEW plain.age` seals what is in it; then put NEW in its place
        ");
    }
}
