//! Logging in: what the agent holds, then key files, and last those with a passphrase.

use std::path::{Path, PathBuf};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ssh2::ErrorCode;

use super::super::error::{DeliveryError, NotLetIn, absent};
use super::config::{Route, bounded};
use super::passphrase::{Passphrases, Unlocked};
use super::wire::{Stop, Wire};

/// `LIBSSH2_ERROR_AUTHENTICATION_FAILED`, `_PUBLICKEY_UNVERIFIED`: the machine does not want this key; perhaps the next.
const NOT_THIS: [i32; 2] = [-18, -19];
/// More keys than this, and the machine hangs up (MaxAuthTries).
const MOST: usize = 20;
/// A machine that hangs up after so many keys did it because of them, and would again.
const PATIENCE: usize = 3;
/// From so many keys of an agent on, sshd hung up before the last (its MaxAuthTries is 6), which libssh2 tells as one refused.
const FULL: usize = 7;

/// Logs in on a connection whose host key was judged. Returns the deadline, put off by what a person took to answer.
///
/// # Errors
/// When nothing is accepted, or the connection breaks.
pub(super) fn log_in(
    wire: &Wire,
    route: &Route,
    passphrases: &Passphrases,
    mut deadline: Instant,
) -> Result<Instant, DeliveryError> {
    let mut tried = Tried::default();
    if agent(wire, route, deadline, &mut tried)? || files(wire, route, deadline, &mut tried)? {
        return Ok(deadline);
    }
    for file in tried.encrypted.clone() {
        let left = deadline.saturating_duration_since(Instant::now());
        let unlocked = passphrases.unlock(&file, |passphrase| {
            deadline = Instant::now() + left;
            let result = wire.drive(deadline, || {
                let passphrase = Some(passphrase.expose());
                wire.session
                    .userauth_pubkey_file(&route.user, None, &file, passphrase)
            });
            accepted(result, route, &tried)
        })?;
        match unlocked {
            Unlocked::Tried(true) => return Ok(deadline),
            Unlocked::Tried(false) => {
                tried.offered = tried.offered.saturating_add(1);
                tried.encrypted.retain(|other| *other != file);
                tried.files.push(file);
            }
            Unlocked::Wrong => {
                return Err(DeliveryError::WrongPassphrase {
                    user: route.user.clone(),
                    host: route.shown(),
                    file: file.display().to_string(),
                });
            }
            Unlocked::Unasked => {}
        }
    }
    if let (Some(file), 0) = (tried.encrypted.first(), tried.offered) {
        return Err(DeliveryError::EncryptedKey {
            user: route.user.clone(),
            host: route.shown(),
            file: file.display().to_string(),
        });
    }
    Err(DeliveryError::Authenticate {
        user: route.user.clone(),
        host: route.shown(),
        tried: tried.told(),
        why: tried.why(),
    })
}

#[derive(Default)]
struct Tried {
    agent: Option<usize>,
    files: Vec<PathBuf>,
    /// Those that are named, and not there.
    absent: Vec<PathBuf>,
    encrypted: Vec<PathBuf>,
    unusable: Vec<String>,
    offered: usize,
}

impl Tried {
    fn told(&self) -> String {
        let mut parts = vec![match self.agent {
            None => "there is no agent".to_owned(),
            Some(0) => "the agent has no key for it".to_owned(),
            Some(1) => "a key of the agent was tried".to_owned(),
            Some(n) => format!("{n} keys of the agent were tried"),
        }];
        let shown = |paths: &[PathBuf]| {
            let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            names.join(", ")
        };
        if !self.files.is_empty() {
            parts.push(format!("tried {}", shown(&self.files)));
        }
        if !self.encrypted.is_empty() {
            parts.push(format!("{} has a passphrase", shown(&self.encrypted)));
        }
        parts.extend(self.absent.iter().map(|file| absent(file)));
        if self.why() == NotLetIn::NoKey && self.unusable.is_empty() {
            parts.push("no key file was found in ~/.ssh".to_owned());
        }
        parts.extend(self.unusable.iter().cloned());
        parts.join("; ")
    }

    fn why(&self) -> NotLetIn {
        if !self.absent.is_empty() {
            NotLetIn::NoFile
        } else if self.agent.is_some_and(|keys| keys >= FULL) {
            NotLetIn::OfFullAgent
        } else if self.agent.is_some_and(|keys| keys > 0) {
            NotLetIn::OfAgent
        } else if self.files.is_empty() && self.encrypted.is_empty() {
            NotLetIn::NoKey
        } else {
            NotLetIn::OfFiles
        }
    }

    /// The same, where the machine hung up before all were tried.
    fn why_hung_up(&self) -> NotLetIn {
        match self.why() {
            NotLetIn::OfAgent => NotLetIn::OfFullAgent,
            why => why,
        }
    }
}

/// What became of one key.
fn accepted(
    result: Result<(), Stop>,
    route: &Route,
    tried: &Tried,
) -> Result<Option<bool>, DeliveryError> {
    match result {
        Ok(()) => Ok(Some(true)),
        Err(Stop::Refused(error)) => match error.code() {
            ErrorCode::Session(code) if NOT_THIS.contains(&code) => Ok(Some(false)),
            // The agent, or the file, cannot be used; the connection is well.
            ErrorCode::Session(-42 | -16 | -48 | -34 | -41) => Ok(None),
            _ if tried.offered >= PATIENCE => Err(DeliveryError::Authenticate {
                user: route.user.clone(),
                host: route.shown(),
                tried: format!("{}; then it hung up", tried.told()),
                why: tried.why_hung_up(),
            }),
            _ => Err(DeliveryError::Handshake {
                address: route.shown(),
                why: error.message().to_owned(),
            }),
        },
        Err(stop) => Err(DeliveryError::Handshake {
            address: route.shown(),
            why: stop.to_string(),
        }),
    }
}

fn agent(
    wire: &Wire,
    route: &Route,
    deadline: Instant,
    tried: &mut Tried,
) -> Result<bool, DeliveryError> {
    if std::env::var_os("SSH_AUTH_SOCK").is_none() {
        return Ok(false);
    }
    let Ok(mut agent) = wire.session.agent() else {
        return Ok(false);
    };
    if agent.connect().is_err() || agent.list_identities().is_err() {
        return Ok(false);
    }
    let wanted: Vec<Vec<u8>> = route.identities.iter().filter_map(|p| public(p)).collect();
    let mut identities = agent.identities().unwrap_or_default();
    if route.identities_only {
        identities.retain(|identity| wanted.iter().any(|blob| blob == identity.blob()));
    }
    // The agent's own first that the declaration or the configuration names: a machine hangs up after a few.
    identities.sort_by_key(|identity| !wanted.iter().any(|blob| blob == identity.blob()));
    tried.agent = Some(0);
    for identity in identities.iter().take(MOST) {
        let result = wire.drive(deadline, || agent.userauth(&route.user, identity));
        tried.agent = tried.agent.map(|n| n.saturating_add(1));
        tried.offered = tried.offered.saturating_add(1);
        if accepted(result, route, tried)? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn files(
    wire: &Wire,
    route: &Route,
    deadline: Instant,
    tried: &mut Tried,
) -> Result<bool, DeliveryError> {
    for file in &route.identities {
        match lock_of(file) {
            Lock::Absent => {
                if route.identities_named {
                    tried.absent.push(file.clone());
                }
                continue;
            }
            Lock::Encrypted => {
                tried.encrypted.push(file.clone());
                continue;
            }
            Lock::Unreadable(why) => {
                tried.unusable.push(format!("{}: {why}", file.display()));
                continue;
            }
            Lock::None => {}
        }
        let result = wire.drive(deadline, || {
            wire.session
                .userauth_pubkey_file(&route.user, None, file, None)
        });
        match accepted(result, route, tried)? {
            Some(true) => return Ok(true),
            Some(false) => {
                tried.offered = tried.offered.saturating_add(1);
                tried.files.push(file.clone());
            }
            None => tried
                .unusable
                .push(format!("{} is no private key", file.display())),
        }
    }
    Ok(false)
}

/// The public half beside a private key file, as its blob.
fn public(private: &Path) -> Option<Vec<u8>> {
    let mut path = private.as_os_str().to_owned();
    path.push(".pub");
    let text = String::from_utf8(bounded(Path::new(&path)).ok()?).ok()?;
    STANDARD.decode(text.split_whitespace().nth(1)?).ok()
}

#[derive(Debug, PartialEq, Eq)]
enum Lock {
    Absent,
    None,
    Encrypted,
    Unreadable(String),
}

fn lock_of(path: &Path) -> Lock {
    match bounded(path) {
        Ok(text) if is_encrypted(&String::from_utf8_lossy(&text)) => Lock::Encrypted,
        Ok(_) => Lock::None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Lock::Absent,
        Err(error) => Lock::Unreadable(error.to_string()),
    }
}

/// Whether a private key in PEM has a passphrase: the old formats say so; in OpenSSH's own, the name of the cipher follows
/// the magic bytes.
fn is_encrypted(text: &str) -> bool {
    if text.contains("ENCRYPTED") {
        return true;
    }
    let body: String = text
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN OPENSSH"))
        .skip(1)
        .take_while(|line| !line.starts_with('-'))
        .collect();
    let Ok(bytes) = STANDARD.decode(body) else {
        return false;
    };
    bytes
        .strip_prefix(b"openssh-key-v1\0")
        .is_some_and(|rest| !rest.starts_with(b"\0\0\0\x04none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_a_passphrase_is_told_from_one_without() {
        let openssh = |cipher: &[u8]| {
            let length = u8::try_from(cipher.len()).unwrap();
            let bytes = [b"openssh-key-v1\0\0\0\0".as_slice(), &[length], cipher].concat();
            format!(
                "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
                STANDARD.encode(bytes)
            )
        };
        assert!(!is_encrypted(&openssh(b"none")));
        assert!(is_encrypted(&openssh(b"aes256-ctr")));
        assert!(is_encrypted("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
        assert!(is_encrypted("Proc-Type: 4,ENCRYPTED\n"));
        assert!(!is_encrypted("-----BEGIN PRIVATE KEY-----\nMC4C\n"));
    }

    #[test]
    fn what_to_do_about_a_login_depends_on_what_there_was_to_try() {
        let files = |files: &[&str], absent: &[&str], agent| Tried {
            agent,
            files: files.iter().map(PathBuf::from).collect(),
            absent: absent.iter().map(PathBuf::from).collect(),
            ..Tried::default()
        };
        for (tried, why) in [
            (files(&[], &[], None), NotLetIn::NoKey),
            (files(&[], &[], Some(0)), NotLetIn::NoKey),
            (files(&["/k/a"], &[], Some(0)), NotLetIn::OfFiles),
            (files(&["/k/a"], &[], None), NotLetIn::OfFiles),
            (files(&["/k/a"], &[], Some(2)), NotLetIn::OfAgent),
            (files(&["/k/a"], &[], Some(6)), NotLetIn::OfAgent),
            (files(&["/k/a"], &[], Some(7)), NotLetIn::OfFullAgent),
            (files(&[], &["/k/d"], Some(2)), NotLetIn::NoFile),
        ] {
            assert_eq!(tried.why(), why, "{}", tried.told());
        }
        // Whoever hangs up early had enough of them.
        let hung_up = |agent| files(&["/k/a"], &[], agent).why_hung_up();
        assert_eq!(hung_up(Some(3)), NotLetIn::OfFullAgent);
        assert_eq!(hung_up(None), NotLetIn::OfFiles);
        insta::assert_snapshot!(Tried::default().told(), @"there is no agent; no key file was found in ~/.ssh");
    }

    #[test]
    fn what_was_tried_is_told() {
        let tried = Tried {
            agent: Some(2),
            files: vec!["/k/a".into()],
            absent: vec!["./../k/d".into()],
            encrypted: vec!["/k/b".into()],
            unusable: vec!["/k/c: permission denied".into()],
            offered: 3,
        };
        insta::assert_snapshot!(tried.told(), @"2 keys of the agent were tried; tried /k/a; /k/b has a passphrase; ../k/d does not exist; /k/c: permission denied");
    }
}
