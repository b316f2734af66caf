//! Words of Kubernetes: names of objects, versions of an API, and under which names our resources are written (the signals
//! contract, *Resources*).
//!
//! Group and version moved over time, and so did the names of fields: an [`ApiGeneration`] says which are meant.

use serde::{Deserialize, Serialize};

use super::MeshName;
use super::metric::{LONGEST_SUBDOMAIN, MetricNameError, check_subdomain};
use super::name::name;

name!(
    /// The name of a Kubernetes object, namespace or group: a DNS-1123 subdomain, at most 253 bytes.
    ObjectName,
    check_subdomain,
    MetricNameError,
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    LONGEST_SUBDOMAIN
);

/// A text that is no version of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version is written as v1, v1beta2 or v1alpha1")]
pub struct ApiVersionError;

fn check_version(text: &str) -> Result<(), ApiVersionError> {
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
        Ok(())
    } else {
        Err(ApiVersionError)
    }
}

name!(
    /// A version of a Kubernetes API: `v1`, `v1beta2`, `v1alpha1`.
    ApiVersion,
    check_version,
    ApiVersionError,
    "^v[1-9][0-9]{0,8}((alpha|beta)[1-9][0-9]{0,8})?$",
    24
);

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

impl Default for ApiGeneration {
    /// `grid.praxis-proxy.io/v1alpha1` with the new names: what operators run whose release takes both.
    fn default() -> Self {
        Self {
            group: ObjectName::known("grid.praxis-proxy.io"),
            version: ApiVersion::known("v1alpha1"),
            field_names: FieldNames::New,
        }
    }
}

impl ObjectName {
    /// A name that is written in this house, and that a test holds to the rule.
    pub(crate) fn known(text: &'static str) -> Self {
        Self(text.into())
    }

    /// `grid-<mesh>-<what>`, for objects of which each mesh has one: a label between fixed labels is a name.
    #[must_use]
    pub(crate) fn of_mesh(mesh: &MeshName, what: &'static str) -> Self {
        Self(format!("grid-{mesh}-{what}").into())
    }
}

impl ApiVersion {
    fn known(text: &'static str) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_generation_follows_the_rules() {
        let usual = ApiGeneration::default();
        assert_eq!(ApiVersion::new(usual.version.as_str()), Ok(usual.version));
        assert_eq!(ObjectName::new(usual.group.as_str()), Ok(usual.group));
        let mesh = MeshName::new(&"a".repeat(63)).unwrap();
        let name = ObjectName::of_mesh(&mesh, "site");
        assert_eq!(ObjectName::new(name.as_str()), Ok(name));
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
