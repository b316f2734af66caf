//! Which keys a machine shows, for `grid trust`: nobody logs in.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ssh2::MethodType;

use super::super::courier::Target;
use super::super::receipt::Failure;
use super::super::settings::CourierSettings;
use super::host_key::{fingerprint, kind_of};
use super::{config, shake_hands, wire};

/// What is asked for, one connection each: a machine shows one key at a time.
const KINDS: [&str; 3] = [
    "ssh-ed25519",
    "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521",
    "rsa-sha2-512,rsa-sha2-256",
];

/// A key that a machine showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenKey {
    /// As a known_hosts file names the machine.
    pub name: String,
    /// Its kind, like `ssh-ed25519`.
    pub kind: String,
    /// `SHA256:` and its digest.
    pub fingerprint: String,
    /// The key in base64.
    pub key: String,
}

impl SeenKey {
    /// The line of a known_hosts file.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} {} {}", self.name, self.kind, self.key)
    }
}

/// The keys that a machine shows, until `wanted` is among them.
///
/// # Errors
/// When it is not reached, or shows none.
pub fn host_keys(
    target: &Target,
    settings: &CourierSettings,
    wanted: &str,
) -> Result<Vec<SeenKey>, Failure> {
    let config = config::read(settings.home.as_deref())?;
    let route = config::route(target, config.as_ref(), settings)?;
    let mut seen: Vec<SeenKey> = Vec::new();
    let mut refused = None;
    for kinds in KINDS {
        let deadline = Instant::now() + settings.timeout;
        let mut wire = wire(&route, settings, deadline)?;
        if wire
            .session
            .method_pref(MethodType::HostKey, kinds)
            .is_err()
        {
            continue;
        }
        // A machine without a key of this kind breaks off.
        if let Err(error) = shake_hands(&mut wire, &route, deadline) {
            refused = Some(error);
            continue;
        }
        let Some((key, _)) = wire.session.host_key() else {
            continue;
        };
        let key = SeenKey {
            name: route.known_as(),
            kind: kind_of(key),
            fingerprint: fingerprint(key),
            key: STANDARD.encode(key),
        };
        let is_wanted = key.fingerprint == wanted;
        if !seen.contains(&key) {
            seen.push(key);
        }
        if is_wanted {
            break;
        }
    }
    match refused {
        Some(error) if seen.is_empty() => Err(error.into()),
        _ => Ok(seen),
    }
}
