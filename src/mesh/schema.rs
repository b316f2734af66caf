//! The JSON Schema of the declaration, from the types that read it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::raw::{ConsumptionCommon, Declaration, ProvidesCommon};
use crate::kinds;
use crate::words::ServiceName;

/// The JSON Schema (2020-12) of `mesh.toml` and of every `mesh.d/*.toml`. The same on every machine.
#[must_use]
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Declaration>().to_value();
    without_null(&mut schema);
    without_unused(&mut schema);
    schema
}

/// The keys that a provider of a kind has to have, besides those that all kinds share.
pub(super) fn required_keys(kind: &str) -> Vec<String> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let kinds = kinds::schemas(&mut generator);
    let settings = kinds.into_iter().find(|(name, _, _)| *name == kind);
    let keys = settings.and_then(|(_, settings, _)| {
        let keys = resolved(settings, &generator).remove("required")?;
        serde_json::from_value(keys).ok()
    });
    keys.unwrap_or_default()
}

/// TOML has no null: what may be absent is absent.
fn without_null(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(Value::Array(words)) = object.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice != &json!({ "type": "null" }));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
            object.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Takes away definitions that nothing refers to: a kind's, once its keys stand beside those that all
/// kinds share.
fn without_unused(schema: &mut Value) {
    loop {
        let text = schema.to_string();
        let Some(Value::Object(definitions)) = schema.get_mut("$defs") else {
            return;
        };
        let before = definitions.len();
        definitions.retain(|name, _| text.contains(&format!("\"#/$defs/{name}\"")));
        if definitions.len() == before {
            return;
        }
    }
}

/// `provides`: the keys that all kinds share, and those of one kind.
pub(super) struct Provides;

impl JsonSchema for Provides {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Provides".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let common = ProvidesCommon::json_schema(generator);
        let kinds = kinds::schemas(generator);
        let choices: Vec<Value> = kinds
            .into_iter()
            .map(|(name, settings, _)| {
                let mut kind = resolved(settings, generator);
                let description = format!("What it is: \"{name}\".");
                join(&mut kind, &common);
                property(
                    &mut kind,
                    "kind",
                    json!({ "const": name, "description": description }),
                );
                require(&mut kind, "kind");
                Value::Object(kind)
            })
            .collect();
        json_schema!({
            "description": "What a service gives others an account on.",
            "oneOf": choices
        })
    }
}

/// `consumes`: a list of services, or a table with what is wanted of each.
pub(super) struct Consumes;

impl JsonSchema for Consumes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Consumes".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let service = generator.subschema_for::<ServiceName>();
        let common = ConsumptionCommon::json_schema(generator);
        let kinds = kinds::schemas(generator);
        let choices: Vec<Value> = kinds
            .into_iter()
            .map(|(name, _, wants)| {
                let mut wants = resolved(wants, generator);
                join(&mut wants, &common);
                wants
                    .entry("title")
                    .or_insert(format!("of a provider of kind \"{name}\"").into());
                Value::Object(wants)
            })
            .collect();
        json_schema!({
            "anyOf": [
                {
                    "description": "The services, by name.",
                    "type": "array",
                    "items": service,
                    "uniqueItems": true
                },
                {
                    "description": "What is wanted of each, in the words of its kind.",
                    "type": "object",
                    "propertyNames": service,
                    "additionalProperties": {
                        "description": "What is wanted of this provider.",
                        "anyOf": choices
                    }
                }
            ]
        })
    }
}

/// The schema itself, where it is a reference to a definition.
fn resolved(schema: Schema, generator: &SchemaGenerator) -> Map<String, Value> {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let definition = reference
        .and_then(|path| path.rsplit('/').next())
        .and_then(|name| generator.definitions().get(name));
    match definition.cloned().unwrap_or_else(|| schema.to_value()) {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Adds the properties of another table.
fn join(object: &mut Map<String, Value>, common: &Schema) {
    let properties = common.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        property(object, name, schema.clone());
    }
}

fn property(object: &mut Map<String, Value>, name: &str, schema: Value) {
    let properties = object
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        properties.insert(name.to_owned(), schema);
    }
}

fn require(object: &mut Map<String, Value>, name: &str) {
    let required = object
        .entry("required")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        required.insert(0, name.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::raw::TOP;

    fn visit(value: &Value, path: &str, with: &mut impl FnMut(&str, &Map<String, Value>)) {
        match value {
            Value::Object(object) => {
                with(path, object);
                for (key, value) in object {
                    visit(value, &format!("{path}/{key}"), with);
                }
            }
            Value::Array(items) => {
                for item in items {
                    visit(item, path, with);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_key_has_a_description_and_none_may_be_null() {
        let schema = schema();
        let mut seen = 0;
        visit(&schema, "", &mut |path, object| {
            for (name, property) in object
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                seen += 1;
                assert!(
                    property.get("description").is_some_and(Value::is_string),
                    "{path}: {name} has no description"
                );
            }
        });
        assert!(seen > 50, "{seen}");
        assert!(!schema.to_string().contains("\"null\""));
    }

    #[test]
    fn the_schema_knows_the_tables_that_the_reader_knows() {
        let schema = schema();
        let known: Vec<&str> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(known, TOP);
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn each_kind_is_an_alternative_with_the_keys_that_all_share() {
        let schema = schema();
        let kinds = schema["$defs"]["Provides"]["oneOf"].as_array().unwrap();
        let names: Vec<&str> = kinds
            .iter()
            .map(|kind| kind["properties"]["kind"]["const"].as_str().unwrap())
            .collect();
        assert_eq!(names, crate::kinds::NAMES);
        for kind in kinds {
            assert!(kind["properties"]["port"].is_object());
            assert_eq!(kind["additionalProperties"], false);
            assert_eq!(kind["required"][0], "kind");
        }
    }
}
