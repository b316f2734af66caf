//! Whatever grid prints as JSON is what its schema under `schemas/` says.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod support;

use serde_json::Value;
use support::schema::hold;
use support::{Bench, three_machines};

fn printed(bench: &Bench, arguments: &[&str], exit: i32) -> Vec<Value> {
    let output = bench.grid(&[arguments, &["--json"]].concat()).exits(exit);
    let values = serde_json::Deserializer::from_slice(output.raw()).into_iter();
    values.map(Result::unwrap).collect()
}

#[test]
fn what_is_printed_as_json_is_what_the_schemas_say() {
    let bench = three_machines();
    let print = |schema, arguments: &[&str], exit| hold(schema, &printed(&bench, arguments, exit));
    print("status", &["status"], 0);
    print("push", &["push", "--all", "--dry-run"], 0);
    print("push", &["push", "--all"], 0);
    print("signals-diff", &["signals", "diff"], 0);
    print("change", &["assign", "billing", "borealis"], 0);
    print("status", &["status"], 0);
    print("push", &["push", "borealis"], 0);
    print("change", &["hold", "cygnus", "in the rack on Monday"], 0);
    print("change", &["rotate", "accounts/billing"], 0);
    print("provisions", &["provisions", "--show-secrets"], 0);
    print("push", &["push", "--behind"], 0);
    print("change", &["revoke", "accounts/billing"], 0);
    print("status", &["status"], 0);
    print("push", &["push", "atlas", "borealis"], 0);
    print("history", &["history"], 0);
    print("compose", &["compose", "atlas"], 0);
    print("check", &["check"], 0);
    bench.edit(
        "load = [\"sh\", \"{release}/accounts.sh\", \"load\"]",
        "load = [\"false\"]",
    );
    print("push", &["push", "atlas"], 4);
    bench.edit("[services.notice]", "[services.notice]\nnod = 1");
    print("check", &["check"], 3);
}

#[test]
fn what_no_schema_says_is_found_out() {
    let caught = std::panic::catch_unwind(|| hold("status", &[serde_json::json!({ "mesh": 1 })]));
    assert!(caught.is_err());
}
