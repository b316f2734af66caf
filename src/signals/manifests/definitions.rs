//! The resource definitions, `grid signals crd`: structural OpenAPI v3 schemas of what is rendered, and the status that the
//! ingest feedback needs.
//!
//! What is rendered is described and checked field by field. `spec` and `status` keep fields that are not described: these
//! resources are not ours alone, and a definition that pruned what another operator wrote there would lose it; nor may a
//! definition of today prune what a later format of the evidence says.

mod network_definition;
mod site_definition;
mod status;

use serde_json::{Value, json};

use super::{MANAGED_BY, network, site};
use crate::words::ApiGeneration;

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
            network_definition::schema(generation),
            network_definition::columns(),
        ),
        definition(
            generation,
            &Names {
                kind: site::KIND,
                plural: "gridsites",
                singular: "gridsite",
                short: "gs",
            },
            site_definition::schema(generation),
            site_definition::columns(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::FieldNames;

    fn usual() -> [Value; 2] {
        definitions(&ApiGeneration::default())
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
        let generation = ApiGeneration::default();
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
                ..ApiGeneration::default()
            };
            let [network, site] = definitions(&generation);
            let spec = |of: &Value| schema(of)["properties"]["spec"]["properties"].clone();
            assert!(spec(&network)["tls"]["properties"][key].is_object());
            assert!(spec(&site)[endpoint].is_object());
        }
    }
}
