//! The status of a `GridNetwork`: conditions, and the evidence of which `GatewayIngest` is made.

use serde_json::{Value, json};

pub(super) fn network() -> Value {
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
