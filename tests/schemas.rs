//! The committed JSON Schemas are those that the types give. One that is out of date is rewritten by
//! `GRID_UPDATE=1 cargo test --test schemas`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers are tests too"
)]

use std::path::Path;

/// Compares `schemas/NAME` with a schema, or writes it where that is asked for.
fn is_current(name: &str, schema: &serde_json::Value) {
    is_current_text(name, &format!("{schema:#}\n"));
}

/// The same, of a text.
fn is_current_text(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("schemas")
        .join(name);
    if std::env::var_os("GRID_UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, now).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let first = committed
        .lines()
        .zip(now.lines())
        .position(|(old, new)| old != new);
    assert!(
        committed == now,
        "schemas/{name} is out of date, from line {}: run `GRID_UPDATE=1 cargo test --test schemas`",
        first.unwrap_or_else(|| committed.lines().count().min(now.lines().count())) + 1
    );
}

#[test]
fn the_schema_of_the_declaration_is_current() {
    is_current("mesh.schema.json", &grid::mesh::schema());
}

#[test]
fn the_schema_of_the_routing_overlay_is_current() {
    is_current(
        "overlay.schema.json",
        grid::signals::overlay::schema().as_value(),
    );
}

#[test]
fn the_definitions_of_the_resources_are_current() {
    use grid::signals::manifests::{definitions::definitions, yaml};
    use grid::words::ApiGeneration;
    let [network, site] = definitions(&ApiGeneration::default());
    is_current_text("gridnetworks.crd.yaml", &yaml::document(&network));
    is_current_text("gridsites.crd.yaml", &yaml::document(&site));
}
