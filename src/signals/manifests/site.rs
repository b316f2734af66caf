//! `GridSite`: a site, as the others' operators read it. The object's name is the site's.

use serde_json::{Value, json};

use super::{gateway_endpoint, put, resource};
use crate::words::{
    ApiGeneration, Digest, EndpointTls, GatewayEndpoint, MeshName, NodeName, Region, Zone,
};

/// The resource's kind.
pub const KIND: &str = "GridSite";

/// The pins of a site: SHA-256 of its leaf's DER. Two while a renewal is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pins {
    /// The leaf's.
    One(Digest),
    /// The leaf's, and that of the one which takes its place.
    Two(Digest, Digest),
}

impl Pins {
    fn value(self) -> Value {
        match self {
            Self::One(pin) => json!([pin]),
            Self::Two(first, second) if first == second => json!([first]),
            Self::Two(first, second) => json!([first, second]),
        }
    }
}

fn endpoint_value(endpoint: &GatewayEndpoint) -> Value {
    let mut value = json!({ "address": endpoint.address.to_string() });
    let tls = endpoint.tls.as_ref().map(|tls| match tls {
        EndpointTls::Mutual { server_name } => {
            json!({ "mode": "Mutual", "serverName": server_name.as_str() })
        }
        EndpointTls::Plaintext => json!({ "mode": "Plaintext" }),
    });
    put(&mut value, "tls", tls);
    value
}

/// What a site's resource is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteInput {
    /// The site.
    pub name: NodeName,
    /// Where its gateway is reached, if it has one.
    pub gateway: Option<GatewayEndpoint>,
    /// Its pins. A site without pins is trusted by nobody under `pin`.
    pub pins: Option<Pins>,
    /// Where it is.
    pub region: Option<Region>,
    /// Where in the region it is.
    pub zone: Option<Zone>,
}

/// The `GridSite` of one site of `mesh`.
#[must_use]
pub fn site(input: &SiteInput, mesh: &MeshName, generation: &ApiGeneration) -> Value {
    let mut spec = json!({ "gridNetworkRef": mesh.as_str() });
    let endpoint = input.gateway.as_ref().map(endpoint_value);
    let field = gateway_endpoint(generation.field_names);
    put(&mut spec, field, endpoint);
    let trust = input
        .pins
        .map(|pins| json!({ "canonicalFingerprints": pins.value() }));
    put(&mut spec, "trust", trust);
    put(
        &mut spec,
        "region",
        input.region.as_ref().map(Region::as_str),
    );
    put(&mut spec, "zone", input.zone.as_ref().map(Zone::as_str));
    resource(generation, KIND, input.name.as_str(), spec)
}

#[cfg(test)]
pub(super) mod sample {
    use super::*;
    use crate::words::{ObjectName, Seed};

    pub(super) fn input() -> SiteInput {
        SiteInput {
            name: NodeName::new("atlas").unwrap(),
            gateway: Some(GatewayEndpoint {
                address: Seed::parse("gateway.atlas.example.net:8443", 443).unwrap(),
                tls: Some(EndpointTls::Mutual {
                    server_name: ObjectName::new("atlas.grid.internal").unwrap(),
                }),
            }),
            pins: Some(Pins::Two(Digest::of(b"old"), Digest::of(b"new"))),
            region: Region::new("eu").ok(),
            zone: Zone::new("eu-1").ok(),
        }
    }

    /// A site that says everything.
    pub(in crate::signals::manifests) fn whole(generation: &ApiGeneration) -> Value {
        site(&input(), &MeshName::new("prod").unwrap(), generation)
    }
}

#[cfg(test)]
mod tests {
    use super::sample::input;
    use super::*;
    use crate::signals::manifests::yaml;
    use crate::words::{FieldNames, Seed};

    fn rendered(input: &SiteInput, field_names: FieldNames) -> Value {
        let generation = ApiGeneration {
            field_names,
            ..ApiGeneration::default()
        };
        site(input, &MeshName::new("prod").unwrap(), &generation)
    }

    #[test]
    fn a_site_in_renewal_has_both_pins() {
        let site = rendered(&input(), FieldNames::New);
        insta::assert_snapshot!(yaml::document(&site), @r#"
        apiVersion: grid.praxis-proxy.io/v1alpha1
        kind: GridSite
        metadata:
          labels:
            app.kubernetes.io/managed-by: grid
          name: atlas
        spec:
          gatewayEndpoint:
            address: "gateway.atlas.example.net:8443"
            tls:
              mode: Mutual
              serverName: atlas.grid.internal
          gridNetworkRef: prod
          region: eu
          trust:
            canonicalFingerprints:
            - cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4
            - "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"
          zone: eu-1
        "#);
    }

    #[test]
    fn a_site_of_which_little_is_known_says_little() {
        let bare = SiteInput {
            gateway: None,
            pins: Some(Pins::Two(Digest::of(b"one"), Digest::of(b"one"))),
            region: None,
            zone: None,
            ..input()
        };
        let site = rendered(&bare, FieldNames::New);
        assert_eq!(
            site["spec"],
            json!({
                "gridNetworkRef": "prod",
                "trust": { "canonicalFingerprints": [Digest::of(b"one").to_string()] }
            })
        );
        let without = rendered(&SiteInput { pins: None, ..bare }, FieldNames::New);
        assert_eq!(without["spec"], json!({ "gridNetworkRef": "prod" }));
    }

    #[test]
    fn an_older_operator_reads_the_endpoint_under_its_older_name() {
        let plain = SiteInput {
            gateway: Some(GatewayEndpoint {
                address: Seed::parse("[::1]:80", 443).unwrap(),
                tls: Some(EndpointTls::Plaintext),
            }),
            ..input()
        };
        let site = rendered(&plain, FieldNames::Old);
        assert_eq!(
            site["spec"]["egress"],
            json!({ "address": "[::1]:80", "tls": { "mode": "Plaintext" } })
        );
        assert!(site["spec"]["gatewayEndpoint"].is_null());
    }
}
