//! The resource definitions, `grid signals crd`: structural OpenAPI v3 schemas of what is rendered, and the status that the
//! ingest feedback needs.
//!
//! What is rendered is described and checked field by field. `spec` and `status` keep fields that are not described: these
//! resources are not ours alone, and a definition that pruned what another operator wrote there would lose it; nor may a
//! definition of today prune what a later format of the evidence says.

use serde_json::{Value, json};

use super::network::{self, RefreshInterval};
use super::{ApiGeneration, MANAGED_BY, site};

/// The definitions of `GridNetwork` and `GridSite`.
#[must_use]
pub fn definitions(generation: &ApiGeneration) -> [Value; 2] {
    [
        definition(
            generation,
            &Names {
                kind: network::KIND,
                plural: "gridnetworks",
                singular: "gridnetwork",
                short: "gnw",
            },
            network_schema(generation),
            network_columns(),
        ),
        definition(
            generation,
            &Names {
                kind: site::KIND,
                plural: "gridsites",
                singular: "gridsite",
                short: "gs",
            },
            site_schema(generation),
            site_columns(),
        ),
    ]
}

struct Names {
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static str,
}

fn definition(generation: &ApiGeneration, names: &Names, schema: Value, columns: Value) -> Value {
    let (label, value) = MANAGED_BY;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", names.plural, generation.group),
            "labels": { label: value },
        },
        "spec": {
            "group": generation.group.as_str(),
            "scope": "Cluster",
            "names": {
                "kind": names.kind,
                "listKind": format!("{}List", names.kind),
                "plural": names.plural,
                "singular": names.singular,
                "shortNames": [names.short],
            },
            "versions": [{
                "name": generation.version.as_str(),
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn column(name: &str, path: &str, kind: &str) -> Value {
    json!({ "name": name, "jsonPath": path, "type": kind })
}

fn network_columns() -> Value {
    let ingest = |field: &str| format!(".status.conditions[?(@.type==\"GatewayIngest\")].{field}");
    json!([
        column("Mode", ".spec.signalTransport.mode", "string"),
        column("Trust", ".spec.peerTrust.mode", "string"),
        column("Ingest", &ingest("status"), "string"),
        column("Reason", &ingest("reason"), "string"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ])
}

fn site_columns() -> Value {
    json!([
        column("Network", ".spec.gridNetworkRef", "string"),
        column("Region", ".spec.region", "string"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ])
}

/// A resource: its spec, and its status if it has one.
fn root(description: &str, spec: Value, status: Value) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": { "spec": spec, "status": status },
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description, "maxLength": 253 })
}

fn name(description: &str) -> Value {
    json!({
        "type": "string",
        "description": description,
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    })
}

fn choice(description: &str, what: &str, words: [&str; 2]) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": ["mode"],
        "properties": {
            "mode": { "type": "string", "description": what, "enum": words },
        },
    })
}

fn secret_reference(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": ["name", "namespace"],
        "properties": {
            "name": name("The Secret's name."),
            "namespace": name("The Secret's namespace."),
            "key": {
                "type": "string",
                "description": "The key in it; absent: what its kind of Secret has.",
                "pattern": "^[-._a-zA-Z0-9]+$",
                "minLength": 1,
                "maxLength": 253,
            },
        },
    })
}

fn seconds(description: &str) -> Value {
    json!({
        "type": "string",
        "description": description,
        "pattern": "^[1-9][0-9]*s$",
        "maxLength": 11,
    })
}

/// A host and a port.
const HOST_AND_PORT: &str = "^(\\[[0-9a-fA-F:.]+\\]|[^:/\\s]+):[0-9]{1,5}$";

fn network_schema(generation: &ApiGeneration) -> Value {
    let tls = json!({
        "type": "object",
        "description": "Where the network's secrets lie.",
        "properties": {
            "caSecretRef": secret_reference("The certificate of the network's authority."),
            "siteSecretRef": secret_reference("The site's own certificate and key."),
            generation.field_names.swim_key(): secret_reference("The key, of 32 bytes, that seals SWIM's frames."),
        },
    });
    let spec = json!({
        "type": "object",
        "description": "What the network should be.",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "signalTransport": choice(
                "How provider load crosses sites. SWIM membership runs in both modes. Absent: gossip.",
                "gossip: samples ride the SWIM and CRDT overlay; poll: each site serves its signals and pulls its peers'. \
                 Read once, at start.",
                ["gossip", "poll"],
            ),
            "peerTrust": choice(
                "By what sites know each other. Absent: pin.",
                "pin: by the fingerprints of a GridSite; spiffe: by chain and SPIFFE identity.",
                ["pin", "spiffe"],
            ),
            "seeds": {
                "type": "array",
                "description": "Where SWIM begins: host:port, [v6]:port, or a DNS name.",
                "maxItems": 1024,
                "items": { "type": "string", "minLength": 1, "maxLength": 260 },
            },
            "gridId": text("The network's own id."),
            "region": text("Where the site is."),
            "zone": text("Where in the region it is."),
            "swim": {
                "type": "object",
                "description": "SWIM's settings.",
                "properties": {
                    "gossipNodes": {
                        "type": "integer",
                        "format": "int64",
                        "description": "How many members probe indirectly.",
                        "minimum": 0,
                        "maximum": 4_294_967_295_u32,
                    },
                    "probeInterval": seconds("How often a member probes."),
                    "suspicionTimeout": seconds("How long a member is suspected before it counts as dead."),
                },
            },
            "tls": tls,
            "metricsRefreshInterval": {
                "type": "string",
                "description": "How often metrics are refreshed: whole seconds, or 1000 ms or more.",
                "pattern": RefreshInterval::PATTERN,
                "maxLength": 13,
            },
        },
    });
    root(
        "A mesh of sites, and how provider load crosses them.",
        spec,
        network_status(),
    )
}

fn network_status() -> Value {
    json!({
        "type": "object",
        "description": "What was observed.",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "The generation of the spec that the status is about.",
                "minimum": 0,
            },
            "conditions": {
                "type": "array",
                "description": "GatewayIngest: False/Rejected while any gateway process has rejected ingests, \
                                Unknown/NoReports or Stale while none reports, else True/Clean.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "maxItems": 64,
                "items": condition(),
            },
            "gatewayIngest": evidence(),
        },
    })
}

/// The evidence document (its own schema says more). Numbers are decimal texts: they reach past the signed 64 bits that a
/// schema of Kubernetes knows.
fn evidence() -> Value {
    let decimal = |description: &str| {
        json!({
            "type": "string",
            "description": description,
            "pattern": "^(0|[1-9][0-9]{0,19})$",
        })
    };
    json!({
        "type": "object",
        "description": "The evidence of which GatewayIngest was made: per gateway process what it reported last.",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "format": {
                "type": "integer",
                "format": "int64",
                "description": "The document's format.",
                "minimum": 1,
            },
            "epochs": {
                "type": "array",
                "description": "What is held of each epoch.",
                "maxItems": 64,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["epoch"],
                "items": {
                    "type": "object",
                    "description": "What is held of one run of a gateway's process.",
                    "required": ["epoch", "sequence", "rejected", "clean"],
                    "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {
                        "epoch": {
                            "type": "string",
                            "description": "The run: drawn at the process's start.",
                            "pattern": "^[0-9a-f]{32}$",
                        },
                        "sequence": decimal("The sequence of its last accepted report."),
                        "rejected": decimal("How many ingests it has rejected since its start."),
                        "clean": {
                            "type": "boolean",
                            "description": "Whether that report called itself clean.",
                        },
                    },
                },
            },
        },
    })
}

/// A condition, as Kubernetes has them (`metav1.Condition`).
fn condition() -> Value {
    json!({
        "type": "object",
        "description": "One aspect of the state.",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": {
                "type": "string",
                "description": "Which aspect.",
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            },
            "status": {
                "type": "string",
                "description": "Whether it holds.",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "type": "string",
                "description": "Why, for programs.",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {
                "type": "string",
                "description": "Why, for people.",
                "maxLength": 32_768,
            },
            "lastTransitionTime": {
                "type": "string",
                "format": "date-time",
                "description": "When the status last changed.",
            },
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "The generation of the spec that it is about.",
                "minimum": 0,
            },
        },
    })
}

fn site_schema(generation: &ApiGeneration) -> Value {
    let endpoint = json!({
        "type": "object",
        "description": "Where the site's gateway is reached.",
        "required": ["address"],
        "properties": {
            "address": {
                "type": "string",
                "description": "Its host and port.",
                "pattern": HOST_AND_PORT,
                "maxLength": 262,
            },
            "tls": {
                "type": "object",
                "description": "How it is spoken to.",
                "properties": {
                    "mode": {
                        "type": "string",
                        "description": "Mutual TLS, or none.",
                        "enum": ["Mutual", "Plaintext"],
                    },
                    "serverName": {
                        "type": "string",
                        "description": "The name in the server's certificate; no address.",
                        "minLength": 1,
                        "maxLength": 253,
                    },
                },
            },
        },
    });
    let spec = json!({
        "type": "object",
        "description": "What the site is to its peers.",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["gridNetworkRef"],
        "properties": {
            "gridNetworkRef": name("The GridNetwork that the site is of."),
            generation.field_names.gateway_endpoint(): endpoint,
            "trust": {
                "type": "object",
                "description": "By what peers know the site.",
                "properties": {
                    "canonicalFingerprints": {
                        "type": "array",
                        "description": "SHA-256 of the DER of the site's leaf certificate: the present one's, and while \
                                        a renewal is under way the next one's.",
                        "minItems": 1,
                        "maxItems": 2,
                        "items": { "type": "string", "pattern": "^[0-9a-f]{64}$" },
                    },
                },
            },
            "region": text("Where the site is."),
            "zone": text("Where in the region it is."),
        },
    });
    let status = json!({
        "type": "object",
        "description": "What was observed.",
        "x-kubernetes-preserve-unknown-fields": true,
    });
    root("A site of the mesh, as its peers know it.", spec, status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::manifests::FieldNames;

    fn usual() -> [Value; 2] {
        definitions(&ApiGeneration::usual().unwrap())
    }

    #[test]
    fn a_definition_is_named_after_its_group_and_has_a_status() {
        let [network, site] = usual();
        assert_eq!(
            network["metadata"]["name"],
            "gridnetworks.grid.praxis-proxy.io"
        );
        assert_eq!(site["metadata"]["name"], "gridsites.grid.praxis-proxy.io");
        for definition in [&network, &site] {
            let version = &definition["spec"]["versions"][0];
            assert!(version["subresources"]["status"].is_object());
            assert_eq!(version["name"], "v1alpha1");
        }
    }

    #[test]
    fn what_is_rendered_has_no_field_that_is_not_described() {
        fn described(value: &Value, schema: &Value, path: &str) {
            for (key, member) in value.as_object().into_iter().flatten() {
                let property = &schema["properties"][key];
                assert!(property.is_object(), "{path}.{key}");
                described(member, property, &format!("{path}.{key}"));
            }
        }
        let generation = ApiGeneration::usual().unwrap();
        let [network, site] = usual();
        for (definition, rendered) in [
            (network, network::sample::whole(&generation)),
            (site, site::sample::whole(&generation)),
        ] {
            let spec = &schema(&definition)["properties"]["spec"];
            assert!(rendered["spec"].as_object().unwrap().len() > 3);
            described(&rendered["spec"], spec, "spec");
        }
    }

    /// Every schema of a definition, with its path.
    fn visit(schema: &Value, path: &str, with: &mut impl FnMut(&str, &Value)) {
        with(path, schema);
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, property) in properties {
            visit(property, &format!("{path}.{name}"), with);
        }
        if schema["items"].is_object() {
            visit(&schema["items"], &format!("{path}[]"), with);
        }
    }

    fn schema(definition: &Value) -> &Value {
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    }

    #[test]
    fn every_schema_is_structural_and_says_what_it_is() {
        for definition in &usual() {
            let mut seen = 0;
            visit(schema(definition), "", &mut |path, schema| {
                seen += 1;
                assert!(schema["type"].is_string(), "{path}");
                assert!(
                    schema["description"].is_string() || path.ends_with("[]"),
                    "{path}"
                );
                for key in schema["required"].as_array().into_iter().flatten() {
                    let key = key.as_str().unwrap();
                    assert!(schema["properties"][key].is_object(), "{path}: {key}");
                }
            });
            assert!(seen > 10);
            assert!(!definition.to_string().contains("$ref"));
        }
    }

    #[test]
    fn the_names_of_fields_are_those_of_the_generation() {
        for (field_names, key, endpoint) in [
            (FieldNames::Old, "swimKeyRef", "egress"),
            (FieldNames::New, "swimKeySecretRef", "gatewayEndpoint"),
        ] {
            let generation = ApiGeneration {
                field_names,
                ..ApiGeneration::usual().unwrap()
            };
            let [network, site] = definitions(&generation);
            let spec = |of: &Value| schema(of)["properties"]["spec"]["properties"].clone();
            assert!(spec(&network)["tls"]["properties"][key].is_object());
            assert!(spec(&site)[endpoint].is_object());
        }
    }
}
