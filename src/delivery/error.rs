//! What can go wrong before the machine side runs. After that, the machine says what is wrong.

use std::path::Path;

use super::receipt::{FailedStep, Failure};

/// A key file that is not there, as it is told of a login.
pub(super) fn absent(file: &Path) -> String {
    let shown = file.strip_prefix(".").unwrap_or(file);
    format!("{} does not exist", shown.display())
}

/// What would let somebody in who was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotLetIn {
    /// There was no key to try.
    NoKey,
    /// A key file that is named is not there.
    NoFile,
    /// The machine wants none of the keys, and some were an agent's.
    OfAgent,
    /// The same, and the agent has so many that the machine may have hung up before the right one.
    OfFullAgent,
    /// The machine wants none of the key files.
    OfFiles,
}

impl NotLetIn {
    /// What to do.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::NoKey => {
                "set `identity` of the machine to a key file, or start an agent and `ssh-add` a key"
            }
            Self::NoFile => {
                "put the key there, or name the file where it is: `identity` of the machine, or IdentityFile in ~/.ssh/config"
            }
            Self::OfAgent => {
                "`ssh-add -l` shows what the agent holds: does `authorized_keys` of that login have one of them, and is `user` of the \
                 machine the right login? If so, sshd's log there says why: the account is locked, or others may write `authorized_keys` or a \
                 folder above it"
            }
            Self::OfFullAgent => {
                "sshd takes only a few keys of a login (MaxAuthTries, 6 as a rule), and the agent has more: name the right one with \
                 `identity` of the machine, a file with its .pub beside it, which is then tried first. If it was tried: does `authorized_keys` \
                 of that login have it, and is `user` of the machine the right login? If so, sshd's log there says why: the account is locked, or \
                 others may write `authorized_keys` or a folder above it"
            }
            Self::OfFiles => {
                "does `authorized_keys` of that login have the key (what stands in its .pub), and is `user` of the machine the right login? \
                 If so, sshd's log there says why: the account is locked, or others may write `authorized_keys` or a folder above it"
            }
        }
    }
}

/// Why a machine was not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DeliveryError {
    /// The name has no address.
    #[error("{host} has no address: {why}")]
    Resolve { host: String, why: String },
    /// Nobody answers there.
    #[error("{address}: {why}")]
    Connect { address: String, why: String },
    /// The connection broke before the machine had shown its key and let somebody in.
    #[error("{address}: the connection broke during the handshake: {why}")]
    Handshake { address: String, why: String },
    /// Both sides know no way to speak with each other.
    #[error("{address}: no common way to speak ssh: {why}")]
    Negotiate { address: String, why: String },
    /// `~/.ssh/config` cannot be used as it is.
    #[error("{file}: {why}")]
    Config { file: String, why: String },
    /// A known_hosts file cannot be read.
    #[error("{file} cannot be read: {why}")]
    KnownHosts { file: String, why: String },
    /// Nobody vouches for the machine's key.
    #[error("the host key of {host} is not known: {kind} {fingerprint}")]
    HostUnknown {
        host: String,
        node: String,
        kind: String,
        fingerprint: String,
    },
    /// Another key was known.
    #[error(
        "the host key of {host} has changed: it shows {kind} {fingerprint}, but {place} has another"
    )]
    HostChanged {
        host: String,
        node: String,
        kind: String,
        fingerprint: String,
        place: String,
    },
    /// The key is on a list of revoked ones.
    #[error("the host key of {host} is revoked at {place}: {fingerprint}")]
    HostRevoked {
        host: String,
        fingerprint: String,
        place: String,
    },
    /// Only an authority vouches for it, which libssh2 cannot check.
    #[error("{place} trusts {host} by a certificate authority, which this courier cannot check")]
    HostCertified { host: String, place: String },
    /// No key was accepted.
    #[error("{user}@{host} was not let in; {tried}")]
    Authenticate {
        user: String,
        host: String,
        tried: String,
        why: NotLetIn,
    },
    /// The only key is locked.
    #[error("{user}@{host} was not let in: the key {file} has a passphrase, and no agent holds it")]
    EncryptedKey {
        user: String,
        host: String,
        file: String,
    },
    /// Its passphrase was not known to who was asked.
    #[error("{user}@{host} was not let in: the passphrase of {file} was wrong three times")]
    WrongPassphrase {
        user: String,
        host: String,
        file: String,
    },
    /// The machine let us in and then did not run a command.
    #[error("no command can be run: {why}")]
    Channel { why: String },
    /// The shell of this machine was not started.
    #[error("{program} cannot be started: {why}")]
    Spawn { program: String, why: String },
}

impl DeliveryError {
    /// Whether the same again may work a moment later.
    pub(super) fn a_retry_can_help(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Handshake { .. })
    }

    fn step(&self) -> FailedStep {
        match self {
            Self::Resolve { .. } => FailedStep::Resolve,
            Self::Connect { .. }
            | Self::Handshake { .. }
            | Self::Negotiate { .. }
            | Self::Config { .. } => FailedStep::Connect,
            Self::KnownHosts { .. }
            | Self::HostUnknown { .. }
            | Self::HostChanged { .. }
            | Self::HostRevoked { .. }
            | Self::HostCertified { .. } => FailedStep::HostKey,
            Self::Authenticate { .. }
            | Self::EncryptedKey { .. }
            | Self::WrongPassphrase { .. } => FailedStep::Authenticate,
            Self::Channel { .. } | Self::Spawn { .. } => FailedStep::Start,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Resolve { .. } => {
                "set `address` of the machine, or HostName in ~/.ssh/config".to_owned()
            }
            Self::Connect { .. } => {
                "is it up, does sshd run there, are its `address` and `port` right? \
                 `grid hold NODE \"why\"` keeps pushes from it meanwhile"
                    .to_owned()
            }
            Self::Handshake { .. } | Self::Negotiate { .. } => {
                "look at sshd's log on the machine (MaxStartups, a firewall)".to_owned()
            }
            Self::Config { .. } | Self::KnownHosts { .. } => return None,
            Self::HostUnknown {
                node, fingerprint, ..
            } => format!(
                "compare it with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the machine; if it is \
                 the same: grid trust {node} {fingerprint}"
            ),
            Self::HostChanged {
                node, fingerprint, ..
            } => format!(
                "if the machine was set up anew, trust the new key, once you have compared it there: grid trust {node} {fingerprint}, \
                 which takes the place of the old one; else somebody may stand in between"
            ),
            Self::HostRevoked { .. } => {
                "give the machine a new host key; a revoked one is never accepted".to_owned()
            }
            Self::HostCertified { .. } => {
                "use courier = \"openssh\", or put the machine's own key into known_hosts"
                    .to_owned()
            }
            Self::Authenticate { why, .. } => why.hint().to_owned(),
            Self::EncryptedKey { file, .. } | Self::WrongPassphrase { file, .. } => {
                format!("ssh-add {file}")
            }
            Self::Channel { .. } => {
                "the login needs a POSIX shell that may run commands".to_owned()
            }
            Self::Spawn { .. } => return None,
        })
    }
}

impl From<DeliveryError> for Failure {
    fn from(error: DeliveryError) -> Self {
        Self {
            step: error.step(),
            service: None,
            cause: error.to_string(),
            output: Vec::new(),
            hint: error.hint(),
        }
    }
}
