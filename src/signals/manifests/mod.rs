//! The mesh's signals as Kubernetes resources: `GridNetwork`, `GridSite`, the Secrets they refer to, and the resource
//! definitions (the contract's section Resources).
//!
//! Pure functions from what the declaration says to JSON values, which [`yaml`] prints. What is absent is not rendered:
//! a default belongs to whoever reads the resource, and without `signalTransport` that is gossip. A Secret is no JSON
//! value but a text that redacts itself ([`secret`]).
//!
//! Group and version moved over time, and so did field names: [`ApiGeneration`] says which are meant.

pub mod definitions;
pub mod network;
pub mod secret;
pub mod site;
pub mod yaml;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::words::ObjectName;

/// Which names fields have. They changed together, in the release that also renamed others which grid does not render.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FieldNames {
    /// `spec.tls.swimKeyRef`, `spec.egress`.
    Old,
    /// `spec.tls.swimKeySecretRef`, `spec.gatewayEndpoint`.
    #[default]
    New,
}

impl FieldNames {
    fn swim_key(self) -> &'static str {
        match self {
            Self::Old => "swimKeyRef",
            Self::New => "swimKeySecretRef",
        }
    }

    fn gateway_endpoint(self) -> &'static str {
        match self {
            Self::Old => "egress",
            Self::New => "gatewayEndpoint",
        }
    }
}

/// A version of a Kubernetes API: `v1`, `v1beta2`, `v1alpha1`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApiVersion(Box<str>);

/// A text that is no version of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version is written as v1, v1beta2 or v1alpha1")]
pub struct ApiVersionError;

impl ApiVersion {
    /// Reads a version.
    ///
    /// # Errors
    /// When it is not written as Kubernetes writes versions.
    pub fn new(text: &str) -> Result<Self, ApiVersionError> {
        let is_number = |digits: &str| {
            (1..=9).contains(&digits.len())
                && digits.bytes().all(|b| b.is_ascii_digit())
                && !digits.starts_with('0')
        };
        let rest = text.strip_prefix('v').ok_or(ApiVersionError)?;
        let mut stages = ["alpha", "beta"].into_iter();
        let is_right = match stages.find_map(|stage| rest.split_once(stage)) {
            Some((major, minor)) => is_number(major) && is_number(minor),
            None => is_number(rest),
        };
        if is_right {
            Ok(Self(text.into()))
        } else {
            Err(ApiVersionError)
        }
    }

    /// The version as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ApiVersion {
    type Error = ApiVersionError;
    fn try_from(text: String) -> Result<Self, ApiVersionError> {
        Self::new(&text)
    }
}

impl From<ApiVersion> for String {
    fn from(version: ApiVersion) -> String {
        version.0.into()
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Under which group, version and names the resources are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiGeneration {
    /// The group: `grid.praxis-proxy.io`, later `grid.praxis.fast`.
    pub group: ObjectName,
    /// The version.
    pub version: ApiVersion,
    /// Which names fields have.
    pub field_names: FieldNames,
}

impl ApiGeneration {
    /// `grid.praxis-proxy.io/v1alpha1` with the new names: what operators run whose release takes both.
    ///
    /// # Errors
    /// Never: both texts follow their rules, which a test says.
    pub fn usual() -> Result<Self, crate::words::MetricNameError> {
        Ok(Self {
            group: ObjectName::new("grid.praxis-proxy.io")?,
            version: ApiVersion("v1alpha1".into()),
            field_names: FieldNames::New,
        })
    }

    fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// The label by which what grid rendered is found, and pruned: `kubectl apply --prune -l …`.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "grid");

/// A resource of ours that has no namespace.
fn resource(generation: &ApiGeneration, kind: &str, name: &str, spec: Value) -> Value {
    let (label, value) = MANAGED_BY;
    json!({
        "apiVersion": generation.api_version(),
        "kind": kind,
        "metadata": { "name": name, "labels": { label: value } },
        "spec": spec,
    })
}

/// Puts `value` under `key` where there is one.
fn put(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let (Value::Object(object), Some(value)) = (object, value) {
        object.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_generation_follows_the_rules() {
        let usual = ApiGeneration::usual().unwrap();
        assert_eq!(usual.api_version(), "grid.praxis-proxy.io/v1alpha1");
        assert_eq!(ApiVersion::new(usual.version.as_str()), Ok(usual.version));
    }

    #[test]
    fn versions_are_written_as_kubernetes_writes_them() {
        for good in ["v1", "v12", "v1alpha1", "v2beta10"] {
            assert_eq!(ApiVersion::new(good).unwrap().as_str(), good);
        }
        for wrong in [
            "", "1", "v", "v0", "v01", "v1alpha", "valpha1", "v1gamma1", "v1/x", "v1 ",
        ] {
            assert!(ApiVersion::new(wrong).is_err(), "{wrong}");
        }
    }
}
