//! Whether a machine is the one that it says it is.
//!
//! Invariant: nobody logs in anywhere before the machine's key was found, for exactly this name and port, in a
//! known_hosts file. Files are parsed here, since libssh2 passes over ports, `@revoked` and `@cert-authority`; it is only
//! asked whether a hashed name is this one.

use std::io::ErrorKind;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ssh2::{CheckResult, KnownHostFileKind, Session};

use super::super::error::DeliveryError;
use super::config::{Route, bounded};
use crate::words::Digest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    Revoked,
    Authority,
}

/// A line of a known_hosts file that is about this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    marker: Marker,
    kind: String,
    key: Vec<u8>,
    /// File and line.
    place: String,
}

/// What the files say of this machine.
pub(super) struct Known {
    entries: Vec<Entry>,
}

impl Known {
    /// Reads the files of `route`. `session`: only for its way with hashed names.
    ///
    /// # Errors
    /// When a file that is there cannot be read.
    pub(super) fn read(route: &Route, session: &Session) -> Result<Self, DeliveryError> {
        let name = route.known_as();
        let hashed = |line: &str, key: &[u8]| is_hashed_name(session, line, &name, key);
        let mut entries = Vec::new();
        for path in &route.known_hosts {
            if let Some(text) = text_of(path)? {
                let shown = path.strip_prefix(".").unwrap_or(path).display();
                entries.extend(parse(&text, &name, &shown.to_string(), &hashed));
            }
        }
        Ok(Self { entries })
    }

    /// The host key algorithms to ask for, so that the machine shows a key of a kind that is known. `None`: whatever it
    /// likes.
    pub(super) fn algorithms(&self) -> Option<String> {
        let mut kinds = Vec::new();
        for entry in self.entries.iter().filter(|e| e.marker == Marker::None) {
            let algorithms = match entry.kind.as_str() {
                "ssh-rsa" => "rsa-sha2-512,rsa-sha2-256",
                kind => kind,
            };
            if !kinds.contains(&algorithms) {
                kinds.push(algorithms);
            }
        }
        (!kinds.is_empty()).then(|| kinds.join(","))
    }

    /// Judges the key that the machine shows.
    ///
    /// # Errors
    /// When it is not known, another one is, or it is revoked.
    pub(super) fn judge(&self, route: &Route, node: &str, key: &[u8]) -> Result<(), DeliveryError> {
        let host = route.shown();
        let fingerprint = fingerprint(key);
        let same = |marker| {
            self.entries
                .iter()
                .find(move |entry| entry.marker == marker && entry.key == key)
        };
        if let Some(entry) = same(Marker::Revoked) {
            return Err(DeliveryError::HostRevoked {
                host,
                fingerprint,
                place: entry.place.clone(),
            });
        }
        if same(Marker::None).is_some() {
            return Ok(());
        }
        let kind = kind_of(key);
        let first = |marker| self.entries.iter().find(move |e| e.marker == marker);
        Err(if let Some(entry) = first(Marker::None) {
            DeliveryError::HostChanged {
                host,
                node: node.to_owned(),
                kind,
                fingerprint,
                place: entry.place.clone(),
            }
        } else if let Some(entry) = first(Marker::Authority) {
            DeliveryError::HostCertified {
                host,
                place: entry.place.clone(),
            }
        } else {
            DeliveryError::HostUnknown {
                host,
                node: node.to_owned(),
                kind,
                fingerprint,
            }
        })
    }
}

/// `SHA256:` and the digest, as ssh-keygen prints it.
pub(super) fn fingerprint(key: &[u8]) -> String {
    let digest = Digest::of(key);
    format!("SHA256:{}", STANDARD_NO_PAD.encode(digest.as_bytes()))
}

/// The kind of a key, which stands in front of it.
pub(super) fn kind_of(key: &[u8]) -> String {
    let length = key
        .first_chunk::<4>()
        .and_then(|length| usize::try_from(u32::from_be_bytes(*length)).ok());
    length
        .and_then(|length| key.get(4..)?.get(..length))
        .map_or_else(
            || "key".to_owned(),
            |kind| super::super::message::clean(&String::from_utf8_lossy(kind)),
        )
}

fn text_of(path: &Path) -> Result<Option<String>, DeliveryError> {
    match bounded(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DeliveryError::KnownHosts {
            file: path.display().to_string(),
            why: error.to_string(),
        }),
    }
}

fn is_hashed_name(session: &Session, names: &str, name: &str, key: &[u8]) -> bool {
    let Ok(mut hosts) = session.known_hosts() else {
        return false;
    };
    let line = format!("{names} {} {}", kind_of(key), STANDARD.encode(key));
    hosts
        .read_str(&line, KnownHostFileKind::OpenSSH)
        .is_ok_and(|()| matches!(hosts.check(name, key), CheckResult::Match))
}

/// The lines of a file that are about `name`. What is no such line is passed over, as ssh does.
fn parse(
    text: &str,
    name: &str,
    file: &str,
    is_hashed: &dyn Fn(&str, &[u8]) -> bool,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace().peekable();
        let marker = match words.peek() {
            Some(&"@revoked") => Marker::Revoked,
            Some(&"@cert-authority") => Marker::Authority,
            Some(word) if word.starts_with('#') || word.starts_with('@') => continue,
            _ => Marker::None,
        };
        if marker != Marker::None {
            words.next();
        }
        let (Some(names), Some(kind), Some(key)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(key) = STANDARD.decode(key) else {
            continue;
        };
        let ours = if names.starts_with('|') {
            is_hashed(names, &key)
        } else {
            names_match(names, name)
        };
        if ours {
            entries.push(Entry {
                marker,
                kind: kind.to_owned(),
                key,
                place: format!("{file}:{}", number.saturating_add(1)),
            });
        }
    }
    entries
}

/// Whether a list of patterns is about `name`: one matches, and none with `!` does.
pub(super) fn names_match(patterns: &str, name: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',') {
        let pattern = pattern.to_lowercase();
        match pattern.strip_prefix('!') {
            Some(not) if wildcard(not, name) => return false,
            Some(_) => {}
            None => found |= wildcard(&pattern, name),
        }
    }
    found
}

/// `*` stands for any characters, `?` for one. In time proportional to the product of the lengths.
fn wildcard(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut reach = vec![false; text.len().saturating_add(1)];
    if let Some(first) = reach.first_mut() {
        *first = true;
    }
    for p in pattern.chars() {
        let mut next = vec![false; reach.len()];
        let mut before = false; // whether some earlier place is reached
        for (at, slot) in next.iter_mut().enumerate() {
            let here = reach.get(at).copied().unwrap_or(false);
            let previous = at
                .checked_sub(1)
                .and_then(|at| Some((reach.get(at).copied()?, *text.get(at)?)));
            before |= here;
            *slot = match (p, previous) {
                ('*', _) => before,
                ('?', Some((reached, _))) => reached,
                (p, Some((reached, c))) => reached && p == c,
                (_, None) => false,
            };
        }
        reach = next;
    }
    reach.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_past_the_bound_is_refused_and_not_taken_for_what_its_beginning_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known_hosts");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(4 * 1024 * 1024).unwrap();
        assert!(text_of(&path).is_ok());
        file.set_len(4 * 1024 * 1024 + 1).unwrap();
        let refused = text_of(&path).unwrap_err().to_string();
        assert!(
            refused.contains("it is larger than 4194304 bytes"),
            "{refused}"
        );
    }

    const ED: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIGiv+k3Zz1fJYFvJ7j0nTbbQ8hFZ7CqEzC4R9d4G3kRZ";

    fn route(host: &str, port: u16) -> Route {
        Route {
            name: host.into(),
            proxy: None,
            alive: None,
            alive_count: None,
            host: host.into(),
            port,
            user: "root".into(),
            identities: vec![],
            identities_named: false,
            identities_only: false,
            known_hosts: vec![],
            connect_timeout: None,
        }
    }

    fn known(text: &str, route: &Route) -> Known {
        Known {
            entries: parse(text, &route.known_as(), "known_hosts", &|_, _| false),
        }
    }

    fn judged(text: &str, route: &Route) -> Result<(), DeliveryError> {
        known(text, route).judge(route, "atlas", &STANDARD.decode(ED).unwrap())
    }

    #[test]
    fn a_key_is_known_for_its_very_name_and_port() {
        let plain = format!("atlas,10.0.0.1 ssh-ed25519 {ED} comment\n");
        assert_eq!(judged(&plain, &route("ATLAS", 22)), Ok(()));
        assert_eq!(judged(&plain, &route("10.0.0.1", 22)), Ok(()));
        assert!(judged(&plain, &route("atlas", 2222)).is_err());
        let port = format!("# x\n\n[atlas]:2222 ssh-ed25519 {ED}\n");
        assert_eq!(judged(&port, &route("atlas", 2222)), Ok(()));
        assert!(judged(&port, &route("atlas", 22)).is_err());
    }

    #[test]
    fn an_unknown_a_changed_a_revoked_and_a_certified_key_are_told_apart() {
        let atlas = route("atlas", 22);
        let other = ED.replace("kRZ", "kRA");
        insta::assert_snapshot!(judged("", &atlas).unwrap_err(), @"the host key of atlas:22 is not known: ssh-ed25519 SHA256:fx2sNuXD7Wc1vO7Or0lHzLG0ZW8NxciF4rJOmrGO/Pw");
        let changed = judged(&format!("x y\natlas ssh-ed25519 {other}\n"), &atlas);
        assert!(
            matches!(changed, Err(DeliveryError::HostChanged { place, .. }) if place == "known_hosts:2")
        );
        let revoked = format!("atlas ssh-ed25519 {ED}\n@revoked * ssh-ed25519 {ED}\n");
        assert!(matches!(
            judged(&revoked, &atlas),
            Err(DeliveryError::HostRevoked { .. })
        ));
        let certified = judged(
            &format!("@cert-authority *las ssh-ed25519 {other}\n"),
            &atlas,
        );
        assert!(matches!(
            certified,
            Err(DeliveryError::HostCertified { .. })
        ));
    }

    #[test]
    fn only_kinds_that_are_known_are_asked_for() {
        let atlas = route("atlas", 22);
        let text =
            format!("atlas ssh-rsa {ED}\natlas ssh-ed25519 {ED}\nbor ecdsa-sha2-nistp256 {ED}\n");
        assert_eq!(
            known(&text, &atlas).algorithms().unwrap(),
            "rsa-sha2-512,rsa-sha2-256,ssh-ed25519"
        );
        assert_eq!(known("", &atlas).algorithms(), None);
    }

    #[test]
    fn patterns_have_stars_question_marks_and_exceptions() {
        for (patterns, name, is) in [
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "example.org", false),
            ("10.0.0.?", "10.0.0.7", true),
            ("10.0.0.?", "10.0.0.77", false),
            ("*,!atlas", "atlas", false),
            ("*,!atlas", "borealis", true),
            ("!atlas", "borealis", false),
            ("*a*b*", "xaxbx", true),
        ] {
            assert_eq!(names_match(patterns, name), is, "{patterns} {name}");
        }
    }

    #[test]
    fn a_hashed_name_is_found() {
        // As `ssh-keygen -H` writes [127.0.0.1]:2222.
        let session = Session::new().unwrap();
        let key = STANDARD.decode(ED).unwrap();
        let hashed = "|1|AQIDBAUGBwgJCgsMDQ4PEBESExQ=|6nwC5rG6k7vxYwKIoAwPZGhI1VE=";
        assert!(is_hashed_name(&session, hashed, "[127.0.0.1]:2222", &key));
        assert!(!is_hashed_name(&session, hashed, "127.0.0.1", &key));
    }
}
