//! Whether JSON is what a schema under `schemas/` says.

use serde_json::Value;

/// Holds each document to the schema of that name.
pub fn hold(schema: &str, documents: &[Value]) {
    let file = format!(
        "{}/schemas/{schema}.schema.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let text: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema.json", text).unwrap();
    let compiled = compiler.compile("schema.json", &mut schemas).unwrap();
    assert!(!documents.is_empty());
    for document in documents {
        if let Err(error) = schemas.validate(document, compiled) {
            panic!("{schema}: {error:#}\n{document:#}");
        }
    }
}
