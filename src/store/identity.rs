//! The operator's identity: the age key that opens the store and the operator's own secret files
//! (DESIGN.md, section 6).
//!
//! Threat: who has the identity has every secret of the mesh. The file is made 0600 in a folder 0700, is never
//! overwritten, and neither it nor `$GRID_IDENTITY` is ever printed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use age::secrecy::ExposeSecret as _;
use age::x25519;
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::place;
use crate::words::Secret;

/// How an age secret key begins.
const KEY_PREFIX: &str = "AGE-SECRET-KEY-1";
/// The most bytes of an identity file.
const FILE_MOST: u64 = 64 * 1024;
/// The most bytes of a secret that an age file holds.
const SECRET_MOST: u64 = 1024 * 1024;
/// The most bytes of such a file: armor makes it a third larger.
const AGE_FILE_MOST: usize = 2 * 1024 * 1024;

/// Why there is no identity, or what it does not open.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No file.
    #[error("there is no identity at {}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Others than its owner may read or write it.
    #[error(
        "{} is open to others (mode {mode:04o}), and it opens every secret of the mesh: chmod 600 {}",
        path.display(),
        path.display()
    )]
    TooOpen {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Neither `$XDG_CONFIG_HOME` nor `$HOME` says where it is.
    #[error("there is no home folder to look for an identity in: name yours with $GRID_IDENTITY")]
    NoHome,
    /// One is there already.
    #[error("there is an identity at {} already, and it is left as it is", path.display())]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// Not an age identity.
    #[error("{from} holds no age secret key (a line AGE-SECRET-KEY-1…)")]
    NotAnIdentity {
        /// The file, or `$GRID_IDENTITY`.
        from: String,
    },
    /// An age file for somebody else.
    #[error("it is encrypted for another key than {identity}")]
    NotForUs {
        /// The public key of the identity at hand.
        identity: String,
    },
    /// An age file that a passphrase opens.
    #[error("it is encrypted with a passphrase, which nobody could type in a push")]
    Passphrase,
    /// Not an age file, or a damaged one.
    #[error("it is not a whole age file: {why}")]
    NotAnAgeFile {
        /// What age says.
        why: String,
    },
    /// More than 1 MiB.
    #[error("it is too large: a secret has at most 1 MiB")]
    TooLarge,
    /// The secret is not text.
    #[error("it holds bytes that are not UTF-8 text")]
    NotText,
    /// The system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// One or more age x25519 keys; the first one is who the operator is.
#[derive(Clone)]
pub struct Identity {
    first: x25519::Identity,
    more: Vec<x25519::Identity>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.public())
    }
}

impl Identity {
    /// Draws a new identity.
    #[must_use]
    pub fn generate() -> Self {
        Self {
            first: x25519::Identity::generate(),
            more: Vec::new(),
        }
    }

    /// The text of an identity file: one key a line, `#` begins a comment. `from` names it in an error.
    ///
    /// # Errors
    /// When there is no key in it, or a line that is none.
    pub fn parse(text: &str, from: &str) -> Result<Self, IdentityError> {
        let wrong = || IdentityError::NotAnIdentity {
            from: from.to_owned(),
        };
        let mut keys = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.parse::<x25519::Identity>().map_err(|_| wrong()));
        let first = keys.next().ok_or_else(wrong)??;
        let more = keys.collect::<Result<_, _>>()?;
        Ok(Self { first, more })
    }

    /// Reads an identity file.
    ///
    /// # Errors
    /// When it is missing, not one, or, as ssh has it with its keys, a file of this user's that others may read.
    pub fn read(path: &Path) -> Result<Self, IdentityError> {
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => IdentityError::Missing {
                path: path.to_owned(),
            },
            _ => IdentityError::Io {
                doing: "cannot read",
                path: path.to_owned(),
                source,
            },
        };
        let mut text = Zeroizing::new(String::with_capacity(1024));
        let file = fs::File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        let mode = metadata.mode() & 0o7777;
        let is_ours = metadata.uid() == rustix::process::getuid().as_raw();
        // What somebody else owns was laid there for us (a mounted secret, say): it is theirs to close.
        if metadata.is_file() && is_ours && mode & 0o077 != 0 {
            return Err(IdentityError::TooOpen {
                path: path.to_owned(),
                mode,
            });
        }
        file.take(FILE_MOST).read_to_string(&mut text).map_err(io)?;
        Self::parse(&text, &path.display().to_string())
    }

    /// The identity of this operator: `$GRID_IDENTITY` (a path, or the key itself), else the default file.
    ///
    /// # Errors
    /// When it is missing, or not one.
    pub fn find(
        grid_identity: Option<&str>,
        xdg_config_home: Option<&OsStr>,
        home: Option<&OsStr>,
    ) -> Result<Self, IdentityError> {
        match grid_identity {
            Some(key) if key.trim_start().starts_with(KEY_PREFIX) => {
                Self::parse(key, "$GRID_IDENTITY")
            }
            Some(path) if !path.is_empty() => Self::read(Path::new(path)),
            _ => Self::read(&default_path(xdg_config_home, home)?),
        }
    }

    /// Its public key, `age1…`.
    #[must_use]
    pub fn public(&self) -> String {
        self.first.to_public().to_string()
    }

    /// Writes it to a file that does not exist yet, 0600, and makes the folder 0700.
    ///
    /// # Errors
    /// When there is a file, or none can be written.
    pub fn write_new(&self, path: &Path, now: Timestamp) -> Result<(), IdentityError> {
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => IdentityError::Exists {
                path: path.to_owned(),
            },
            _ => IdentityError::Io {
                doing: "cannot write",
                path: path.to_owned(),
                source,
            },
        };
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(io)?;
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(place::FILE)
            .open(path)
            .map_err(io)?;
        place::set_mode(path, place::FILE).map_err(io)?;
        let key = self.first.to_string();
        let text = Zeroizing::new(format!(
            "# created: {now:.0}\n# public key: {}\n{}\n",
            self.public(),
            key.expose_secret()
        ));
        file.write_all(text.as_bytes()).map_err(io)?;
        file.sync_all().map_err(io)
    }

    /// Opens what age sealed; at most `most` bytes come out.
    pub(super) fn open(
        &self,
        sealed: &[u8],
        most: u64,
    ) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
        let wrong = |e: &dyn std::fmt::Display| IdentityError::NotAnAgeFile { why: e.to_string() };
        let decryptor = age::Decryptor::new_buffered(age::armor::ArmoredReader::new(sealed))
            .map_err(|e| wrong(&e))?;
        if decryptor.is_scrypt() {
            return Err(IdentityError::Passphrase);
        }
        let keys = std::iter::once(&self.first).chain(&self.more);
        let reader = decryptor
            .decrypt(keys.map(|key| key as &dyn age::Identity))
            .map_err(|e| match e {
                age::DecryptError::NoMatchingKeys => IdentityError::NotForUs {
                    identity: self.public(),
                },
                other => wrong(&other),
            })?;
        // One buffer of the final size: growing would leave copies of the secret behind.
        let size = usize::try_from(most).unwrap_or(0).min(sealed.len());
        let mut plain = Zeroizing::new(Vec::with_capacity(size.saturating_add(1)));
        reader
            .take(most.saturating_add(1))
            .read_to_end(&mut plain)
            .map_err(|e| wrong(&e))?;
        if u64::try_from(plain.len()).is_ok_and(|len| len > most) {
            return Err(IdentityError::TooLarge);
        }
        Ok(plain)
    }
}

/// Where `grid init` puts an identity: `$XDG_CONFIG_HOME/grid/identity.txt`, or `~/.config/grid/identity.txt`.
///
/// # Errors
/// When neither variable says where that is.
pub fn default_path(
    xdg_config_home: Option<&OsStr>,
    home: Option<&OsStr>,
) -> Result<PathBuf, IdentityError> {
    // A relative path is to be ignored (XDG Base Directory Specification).
    let xdg = xdg_config_home
        .map(Path::new)
        .filter(|path| path.is_absolute());
    let home = home.map(Path::new).filter(|path| path.is_absolute());
    xdg.map(Path::to_owned)
        .or_else(|| home.map(|home| home.join(".config")))
        .map(|config| config.join("grid/identity.txt"))
        .ok_or(IdentityError::NoHome)
}

/// Opens an operator's own age file, binary or armored. Nothing is trimmed.
///
/// # Errors
/// When it is for somebody else, damaged, larger than 1 MiB, or not text.
pub fn open_age_file(bytes: &[u8], identity: &Identity) -> Result<Secret, IdentityError> {
    if bytes.len() > AGE_FILE_MOST {
        return Err(IdentityError::TooLarge);
    }
    let mut plain = identity.open(bytes, SECRET_MOST)?;
    String::from_utf8(std::mem::take(&mut *plain))
        .map(Secret::new)
        .map_err(|e| {
            drop(Zeroizing::new(e.into_bytes()));
            IdentityError::NotText
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn sealed(identity: &Identity, plain: &[u8]) -> Vec<u8> {
        let to: x25519::Recipient = identity.public().parse().unwrap();
        age::encrypt(&to, plain).unwrap()
    }

    #[test]
    fn an_identity_is_written_once_for_its_owner_alone_and_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/grid/identity.txt");
        let identity = Identity::generate();
        identity.write_new(&path, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(Identity::read(&path).unwrap().public(), identity.public());
        let again = Identity::generate().write_new(&path, Timestamp::UNIX_EPOCH);
        assert!(matches!(again, Err(IdentityError::Exists { .. })));
        assert_eq!(Identity::read(&path).unwrap().public(), identity.public());
        assert!(!format!("{identity:?}").contains("SECRET"));
    }

    #[test]
    fn an_identity_that_others_may_read_is_refused_as_ssh_refuses_its_keys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("identity.txt");
        let identity = Identity::generate();
        identity.write_new(&path, Timestamp::UNIX_EPOCH).unwrap();
        for (mode, is_open) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = Identity::read(&path);
            let refused = matches!(&read, Err(IdentityError::TooOpen { .. }));
            assert_eq!(refused, is_open, "{mode:o}");
        }
        let text = Identity::read(&path).unwrap_err().to_string();
        let path = path.display().to_string();
        insta::assert_snapshot!(text.replace(&path, "FILE"), @"FILE is open to others (mode 0604), and it opens every secret of the mesh: chmod 600 FILE");
    }

    #[test]
    fn the_environment_names_a_key_or_a_file_and_otherwise_the_config_folder_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (in_file, given) = (Identity::generate(), Identity::generate());
        let path = default_path(Some(dir.path().as_os_str()), None).unwrap();
        in_file.write_new(&path, Timestamp::UNIX_EPOCH).unwrap();
        let key = given.first.to_string();
        let found = Identity::find(Some(key.expose_secret()), None, None).unwrap();
        assert_eq!(found.public(), given.public());
        let found = Identity::find(path.to_str(), None, None).unwrap();
        assert_eq!(found.public(), in_file.public());
        let found = Identity::find(None, Some(dir.path().as_os_str()), None).unwrap();
        assert_eq!(found.public(), in_file.public());
        let missing = Identity::find(
            None,
            Some(OsStr::new("relative")),
            Some(dir.path().as_os_str()),
        );
        assert!(
            matches!(missing, Err(IdentityError::Missing { path }) if path.ends_with(".config/grid/identity.txt"))
        );
        assert!(matches!(
            Identity::find(None, None, None),
            Err(IdentityError::NoHome)
        ));
        let wrong = Identity::find(Some("AGE-SECRET-KEY-1HUNTER2"), None, None).unwrap_err();
        insta::assert_snapshot!(wrong, @"$GRID_IDENTITY holds no age secret key (a line AGE-SECRET-KEY-1…)");
    }

    #[test]
    fn an_age_file_opens_for_its_recipient_only_and_has_a_bound() {
        let (ours, theirs) = (Identity::generate(), Identity::generate());
        let file = sealed(&ours, b"hunter2\n");
        assert_eq!(open_age_file(&file, &ours).unwrap().expose(), "hunter2\n");
        let armored = age::encrypt_and_armor(&ours.first.to_public(), b"hunter2").unwrap();
        assert_eq!(
            open_age_file(armored.as_bytes(), &ours).unwrap().expose(),
            "hunter2"
        );
        let refused = |bytes: &[u8], identity| open_age_file(bytes, identity).unwrap_err();
        assert!(matches!(
            refused(&file, &theirs),
            IdentityError::NotForUs { .. }
        ));
        assert!(matches!(
            refused(b"hello", &ours),
            IdentityError::NotAnAgeFile { .. }
        ));
        assert!(matches!(
            refused(&file[..file.len() - 1], &ours),
            IdentityError::NotAnAgeFile { .. }
        ));
        assert!(matches!(
            refused(&sealed(&ours, &[0xff]), &ours),
            IdentityError::NotText
        ));
        let most = vec![b'a'; 1024 * 1024];
        assert_eq!(
            open_age_file(&sealed(&ours, &most), &ours)
                .unwrap()
                .expose()
                .len(),
            most.len()
        );
        let more = vec![b'a'; 1024 * 1024 + 1];
        assert!(matches!(
            refused(&sealed(&ours, &more), &ours),
            IdentityError::TooLarge
        ));
    }
}
