//! `GridSite`, field by field.

use serde_json::{Value, json};

use super::{column, name, root, text};
use crate::signals::manifests::gateway_endpoint;
use crate::words::ApiGeneration;

pub(super) fn columns() -> Value {
    json!([
        column("Network", ".spec.gridNetworkRef", "string"),
        column("Region", ".spec.region", "string"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ])
}

/// A host and a port.
const HOST_AND_PORT: &str = "^(\\[[0-9a-fA-F:.]+\\]|[^:/\\s]+):[0-9]{1,5}$";

pub(super) fn schema(generation: &ApiGeneration) -> Value {
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
            gateway_endpoint(generation.field_names): endpoint,
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
