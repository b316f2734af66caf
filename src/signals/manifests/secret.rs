//! The Secrets that a network refers to, for `grid signals render --secrets`.
//!
//! Invariant: the document is a [`Secret`] from the first byte on. It is written straight as text, never into a JSON value,
//! which would print its content in every `Debug` and leave copies in memory; the values are base64, which hides nothing
//! from anybody, so the caller prints it to no terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{MANAGED_BY, yaml};
use crate::words::{ObjectName, Secret};

/// What kind of Secret it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// Anything.
    Opaque,
    /// A certificate and its key, as `tls.crt` and `tls.key`.
    Tls,
}

impl SecretKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Opaque => "Opaque",
            Self::Tls => "kubernetes.io/tls",
        }
    }
}

/// One value of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretData {
    /// A text, as a PEM is.
    Text(Secret),
    /// Bytes.
    Bytes(Base64),
}

/// Bytes in base64, with padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base64(Secret);

impl Base64 {
    /// Takes bytes in base64; none where they are not.
    #[must_use]
    pub fn new(text: Secret) -> Option<Self> {
        let bytes = STANDARD.decode(text.expose()).map(Zeroizing::new);
        bytes.is_ok().then_some(Self(text))
    }
}

/// The name of a value: letters, digits, `-`, `_` and `.`, at most 253 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataKey(Box<str>);

impl DataKey {
    /// Reads a key; none where the text is not one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let is_key = (1..=253).contains(&text.len())
            && text.bytes().all(allowed)
            && text != "."
            && !text.starts_with("..");
        is_key.then(|| Self(text.into()))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a Secret's resource is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretInput {
    /// Its name.
    pub name: ObjectName,
    /// Its namespace.
    pub namespace: ObjectName,
    /// What kind it is.
    pub kind: SecretKind,
    /// Its values.
    pub data: BTreeMap<DataKey, SecretData>,
}

/// How a Secret is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// As a YAML document.
    Yaml,
    /// As a JSON object, on one line.
    Json,
}

/// The `Secret`, as a document.
#[must_use]
pub fn secret(input: &SecretInput, notation: Notation) -> Secret {
    let length = |data: &SecretData| match data {
        SecretData::Text(text) => text.expose().len().saturating_mul(2),
        SecretData::Bytes(Base64(text)) => text.expose().len(),
    };
    let values = input
        .data
        .iter()
        .map(|(key, data)| key.0.len().saturating_add(length(data)).saturating_add(16));
    // Room for all of it, so that the text does not move and leave a copy behind.
    let room = values.fold(2048, usize::saturating_add);
    let mut document = String::with_capacity(room);
    let (label, value) = MANAGED_BY;
    if notation == Notation::Json {
        write_json(&mut document, input);
        return Secret::new(document);
    }
    // Writing to a String does not fail.
    let _ = writeln!(
        document,
        "apiVersion: v1\nkind: Secret\nmetadata:\n  labels:\n    {label}: {value}\n  name: {}\n  namespace: {}\n\
         type: {}",
        yaml::scalar(input.name.as_str()),
        yaml::scalar(input.namespace.as_str()),
        yaml::scalar(input.kind.as_str()),
    );
    document.push_str(if input.data.is_empty() {
        "data: {}\n"
    } else {
        "data:\n"
    });
    for (key, data) in &input.data {
        let _ = write!(document, "  {}: \"", yaml::scalar(&key.0));
        write_value(&mut document, data);
        document.push_str("\"\n");
    }
    Secret::new(document)
}

/// Writes the JSON object. Nothing of it needs an escape: names are letters, digits, dashes and dots, values are base64.
fn write_json(document: &mut String, input: &SecretInput) {
    let (label, value) = MANAGED_BY;
    // Writing to a String does not fail.
    let _ = write!(
        document,
        "{{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{{\"labels\":{{\"{label}\":\"{value}\"}},\"name\":\"{}\",\
         \"namespace\":\"{}\"}},\"type\":\"{}\",\"data\":{{",
        input.name.as_str(),
        input.namespace.as_str(),
        input.kind.as_str(),
    );
    for (n, (key, data)) in input.data.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(document, "{comma}\"{}\":\"", key.as_str());
        write_value(document, data);
        document.push('"');
    }
    document.push_str("}}");
}

/// Writes a value in base64.
fn write_value(document: &mut String, data: &SecretData) {
    match data {
        SecretData::Text(text) => {
            let encoded = Zeroizing::new(STANDARD.encode(text.expose()));
            document.push_str(&encoded);
        }
        SecretData::Bytes(Base64(text)) => document.push_str(text.expose()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> DataKey {
        DataKey::new(text).unwrap()
    }

    fn input(kind: SecretKind, data: BTreeMap<DataKey, SecretData>) -> SecretInput {
        SecretInput {
            name: ObjectName::new("grid-site").unwrap(),
            namespace: ObjectName::new("no").unwrap(),
            kind,
            data,
        }
    }

    #[test]
    fn a_secret_is_written_in_base64_and_redacts_itself() {
        let input = input(
            SecretKind::Tls,
            BTreeMap::from([
                (
                    key("tls.crt"),
                    SecretData::Text(Secret::new("-----BEGIN".into())),
                ),
                (
                    key("tls.key"),
                    SecretData::Text(Secret::new("hunter2\n".into())),
                ),
                (
                    key("key"),
                    SecretData::Bytes(Base64::new(Secret::new("AAEC+/8=".into())).unwrap()),
                ),
            ]),
        );
        let json = secret(&input, Notation::Json);
        assert!(!format!("{json:?}").contains("aHVudGVyMgo="));
        let secret = secret(&input, Notation::Yaml);
        let read: serde_json::Value = serde_yaml_ng::from_str(secret.expose()).unwrap();
        let same: serde_json::Value = serde_json::from_str(json.expose()).unwrap();
        assert_eq!(same, read);
        assert_eq!(json.expose().lines().count(), 1);
        insta::assert_snapshot!(secret.expose(), @r#"
        apiVersion: v1
        kind: Secret
        metadata:
          labels:
            app.kubernetes.io/managed-by: grid
          name: grid-site
          namespace: "no"
        type: kubernetes.io/tls
        data:
          key: "AAEC+/8="
          tls.crt: "LS0tLS1CRUdJTg=="
          tls.key: "aHVudGVyMgo="
        "#);
        assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
    }

    #[test]
    fn what_it_is_made_of_redacts_itself_too() {
        let data = BTreeMap::from([(key("key"), SecretData::Text(Secret::new("hunter2".into())))]);
        let shown = format!("{:?}", input(SecretKind::Opaque, data));
        assert!(!shown.contains("hunter2") && shown.contains("[redacted]"));
        let empty = secret(&input(SecretKind::Opaque, BTreeMap::new()), Notation::Yaml);
        assert!(empty.expose().ends_with("type: Opaque\ndata: {}\n"));
    }

    #[test]
    fn the_text_never_moves_while_it_is_written() {
        let long = SecretData::Text(Secret::new("x".repeat(100_000)));
        let data = BTreeMap::from([(key("a"), long.clone()), (key("b"), long)]);
        let written = secret(&input(SecretKind::Opaque, data), Notation::Yaml)
            .expose()
            .len();
        assert!(written > 266_000 && written < 2048 + 400_000);
    }

    #[test]
    fn bytes_that_are_not_in_base64_are_none() {
        for wrong in ["AAEC\"", "AAE", "AA EC", "AAEC\n"] {
            assert_eq!(Base64::new(Secret::new(wrong.into())), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_name_of_a_value_is_as_kubernetes_has_it() {
        for wrong in ["", ".", "..", "..a", "a/b", "a b", "a:", "é"] {
            assert_eq!(DataKey::new(wrong), None, "{wrong:?}");
        }
        assert!(DataKey::new("ca.crt").is_some() && DataKey::new(".x_-").is_some());
    }
}
