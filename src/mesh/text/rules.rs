//! The rules of these texts, one function each: the text as it counts, or what is wrong with it.

use std::net::Ipv6Addr;
use std::str::FromStr as _;
use std::time::Duration;

use super::MachinesRef;
use crate::kinds::UserName;
use crate::mesh::declaration::{FileMode, Owner};
use crate::words::{Digest, GATEWAY_PORT, NodeName, Seed, SeedError, Tag};

/// The longest host name or address, in bytes (RFC 1123 allows 253).
const LONGEST_HOST: usize = 253;
/// The longest login.
const LONGEST_LOGIN: usize = 255;
/// The longest reason of a hold, in characters.
const LONGEST_REASON: usize = 200;
/// The longest limit of a step, in seconds.
const LONGEST_LIMIT: u64 = 3600;

pub(super) fn user(text: &str) -> Result<UserName, String> {
    UserName::parse(text).ok_or_else(|| {
        "a user's name is at most 32 letters, digits, dots, dashes and underscores".into()
    })
}

pub(super) fn host(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a host name or address cannot be empty; leave the key out instead".into());
    }
    if text.len() > LONGEST_HOST {
        return Err(format!("at most {LONGEST_HOST} characters"));
    }
    if text.contains("://") {
        return Err("a name or an address stands here, without scheme and port".into());
    }
    if text.contains('[') || text.contains(']') {
        return Err("an IPv6 address stands without brackets".into());
    }
    if text.contains('@') {
        return Err("the login stands in `user`, not in the address".into());
    }
    if text.starts_with('-') {
        return Err("a host name does not begin with a dash".into());
    }
    let plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
    };
    if text.contains(':') {
        let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
        if Ipv6Addr::from_str(address).is_ok() && plain(zone) && !zone.is_empty() {
            return Ok(text.to_owned());
        }
        if text.matches(':').count() == 1 {
            return Err("the port stands in `port`, not in the address".into());
        }
        return Err("this is no IPv6 address".into());
    }
    if !plain(text) {
        return Err("a host name has only letters, digits, dots, hyphens and underscores".into());
    }
    Ok(text.to_owned())
}

pub(super) fn login(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > LONGEST_LOGIN {
        return Err(format!("a login has 1 to {LONGEST_LOGIN} characters"));
    }
    if text.starts_with('-') {
        return Err("a login does not begin with a dash".into());
    }
    let allowed =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@' | '\\' | '+' | '$');
    match text.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(format!("a login cannot have {c:?}")),
        None => Ok(text.to_owned()),
    }
}

/// The reason of a hold: one line that says something, of at most so many characters.
///
/// # Errors
/// What is wrong with it.
pub fn reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("say why, for whoever reads the status".into());
    }
    if text.chars().count() > LONGEST_REASON {
        return Err(format!("a reason has at most {LONGEST_REASON} characters"));
    }
    if text.chars().any(char::is_control) {
        return Err("a reason is one line without control characters".into());
    }
    Ok(text.to_owned())
}

pub(super) fn day(text: &str) -> Result<jiff::civil::Date, String> {
    let wrong = || "a day is written like 2026-12-01".to_owned();
    if text.len() != "2026-12-01".len() {
        return Err(wrong());
    }
    text.parse().map_err(|_| wrong())
}

pub(super) fn limit(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(['s', 'm']);
    let seconds_each = match text.strip_prefix(digits) {
        Some("s") => 1,
        Some("m") => 60,
        _ => 0,
    };
    if seconds_each == 0 || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("a time is whole seconds or minutes, like \"30s\" or \"2m\"".into());
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds_each))
        .filter(|seconds| (1..=LONGEST_LIMIT).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "a step may take from \"1s\" to \"60m\"".into())
}

pub(super) fn mode(text: &str) -> Result<FileMode, String> {
    FileMode::parse(text).ok_or_else(|| "a mode is octal digits, like \"0640\"".into())
}

pub(super) fn owner(text: &str) -> Result<Owner, String> {
    Owner::parse(text).ok_or_else(|| {
        "an owner is `user` or `user:group`, of letters, digits, `.`, `_` and `-`".into()
    })
}

pub(super) fn variable(text: &str) -> Result<String, String> {
    let head = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if head && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(text.to_owned())
    } else {
        Err("a variable's name has only letters, digits and underscores".into())
    }
}

pub(super) fn store(text: &str) -> Result<(), String> {
    match text {
        "sled" => Ok(()),
        other if other.starts_with("etcd:") => Err(
            "this version of grid has only the embedded store: leave the key out, or write \"sled\""
                .into(),
        ),
        _ => Err("the store is \"sled\"".into()),
    }
}

pub(super) fn address(text: &str) -> Result<Seed, SeedError> {
    Seed::parse(text, GATEWAY_PORT)
}

pub(super) fn versions(text: &str) -> Result<semver::VersionReq, String> {
    text.parse()
        .map_err(|cause| format!("{cause}; versions are written like \">=0.1\" or \">=0.1, <0.3\""))
}

pub(super) fn machines(text: &str) -> Result<MachinesRef, String> {
    match text.strip_prefix('@') {
        Some(tag) => Tag::new(tag).map(MachinesRef::Tag),
        None => NodeName::new(text).map(MachinesRef::Node),
    }
    .map_err(|wrong| wrong.to_string())
}

pub(super) fn age_key(text: &str) -> Result<String, String> {
    if text.starts_with("AGE-SECRET-KEY-") {
        return Err("this is a secret key; what belongs here is its public key, `age1…`".into());
    }
    text.parse::<age::x25519::Recipient>()
        .map(|_| text.to_owned())
        .map_err(|_| "this is no age public key; `age-keygen -y` prints one, `age1…`".into())
}

/// Colons and case are left out of account, as `openssl x509 -fingerprint` has them.
pub(super) fn pin(text: &str) -> Result<Digest, String> {
    let plain = text.replace(':', "").to_ascii_lowercase();
    plain
        .parse()
        .map_err(|_| "a pin is the SHA-256 of a certificate: 64 hexadecimal digits".into())
}

pub(super) fn local_path(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 4096 {
        return Err("a path has 1 to 4096 bytes".into());
    }
    if text.chars().any(char::is_control) {
        return Err("a path has no control character".into());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_nothing_that_could_be_an_option_or_a_line() {
        for good in [
            "10.0.0.1",
            "atlas.example.org",
            "fd00::1",
            "fe80::1%eth0",
            "a_b",
        ] {
            assert_eq!(host(good).as_deref(), Ok(good));
        }
        for wrong in [
            "",
            "-oProxyCommand=x",
            "[fd00::1]",
            "a b",
            "a\nb",
            "10.0.0.1:22",
            "me@host",
            "fd00:::1",
            "fe80::1%",
            "a/b",
            "a;b",
            "ü",
        ] {
            assert!(host(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_limit_is_whole_seconds_or_minutes_up_to_an_hour() {
        assert_eq!(limit("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(limit("60m"), Ok(Duration::from_secs(3600)));
        for wrong in [
            "",
            "s",
            "0s",
            "61m",
            "3601s",
            "1h",
            "1.5s",
            "30",
            "-1s",
            "1ms",
            "1sm",
            "99999999999999999999m",
        ] {
            assert!(limit(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_secret_key_is_refused_by_name() {
        assert!(age_key("AGE-SECRET-KEY-1").unwrap_err().contains("secret"));
        assert!(age_key("age1nonsense").is_err());
    }

    #[test]
    fn a_day_is_a_day_and_no_moment() {
        assert!(day("2026-12-01").is_ok());
        for wrong in ["2026-13-01", "2026-12-01T10:00:00Z", "20261201", "tomorrow"] {
            assert!(day(wrong).is_err(), "{wrong}");
        }
    }
}
