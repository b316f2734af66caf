//! `GridNetwork`, field by field.

use serde_json::{Value, json};

use super::{column, name, root, status, text};
use crate::signals::manifests::network::RefreshInterval;
use crate::signals::manifests::swim_key;
use crate::words::ApiGeneration;

pub(super) fn columns() -> Value {
    let ingest = |field: &str| format!(".status.conditions[?(@.type==\"GatewayIngest\")].{field}");
    json!([
        column("Mode", ".spec.signalTransport.mode", "string"),
        column("Trust", ".spec.peerTrust.mode", "string"),
        column("Ingest", &ingest("status"), "string"),
        column("Reason", &ingest("reason"), "string"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ])
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

pub(super) fn schema(generation: &ApiGeneration) -> Value {
    let tls = json!({
        "type": "object",
        "description": "Where the network's secrets lie.",
        "properties": {
            "caSecretRef": secret_reference("The certificate of the network's authority."),
            "siteSecretRef": secret_reference("The site's own certificate and key."),
            swim_key(generation.field_names): secret_reference("The key, of 32 bytes, that seals SWIM's frames."),
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
        status::network(),
    )
}
