//! The mesh's signals as Kubernetes resources: `GridNetwork`, `GridSite`, the Secrets they refer to, and the resource
//! definitions (the contract's section Resources).
//!
//! Pure functions from what the declaration says to JSON values, which [`yaml`] prints. What is absent is not rendered:
//! a default belongs to whoever reads the resource, and without `signalTransport` that is gossip. A Secret is no JSON
//! value but a text that redacts itself ([`secret`]).
//!
//! Under which group, version and names of fields: [`ApiGeneration`].

pub mod definitions;
pub mod network;
pub mod secret;
pub mod site;
pub mod yaml;

use serde_json::{Value, json};

use crate::words::{ApiGeneration, FieldNames};

fn swim_key(names: FieldNames) -> &'static str {
    match names {
        FieldNames::Old => "swimKeyRef",
        FieldNames::New => "swimKeySecretRef",
    }
}

fn gateway_endpoint(names: FieldNames) -> &'static str {
    match names {
        FieldNames::Old => "egress",
        FieldNames::New => "gatewayEndpoint",
    }
}

fn api_version(generation: &ApiGeneration) -> String {
    format!("{}/{}", generation.group, generation.version)
}

/// The label by which what grid rendered is found, and pruned: `kubectl apply --prune -l …`.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "grid");

/// A resource of ours that has no namespace.
fn resource(generation: &ApiGeneration, kind: &str, name: &str, spec: Value) -> Value {
    let (label, value) = MANAGED_BY;
    json!({
        "apiVersion": api_version(generation),
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
