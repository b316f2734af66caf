//! The mesh as Kubernetes resources, `grid signals render` and `crd`, as somebody types them (DESIGN.md, section 7). That an
//! API server takes them is tests/beds/kube-signals.sh.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use base64::Engine as _;
use grid::words::Digest;
use serde_json::Value;
use support::Bench;

/// Two local machines, of which atlas says all that a resource has room for.
fn bench(signals: &str) -> Bench {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    let root = |node: &str| bench.path(node);
    let text = format!(
        "[mesh]\nname = \"prod\"\n{signals}\n[defaults]\ncourier = \"local\"\n[nodes.atlas]\naddress = \"10.0.0.1\"\nroot = {:?}\n\
         region = \"us\"\nzone = \"us-1\"\ngateway = {{ address = \"gateway.example.net\", tls = \"mutual\", serverName = \"atlas.grid.internal\" }}\n\
         [nodes.borealis]\naddress = \"10.0.0.2\"\nroot = {:?}\ngateway = \"[2001:db8::1]:8443\"\n",
        root("atlas"),
        root("borealis")
    );
    bench.file("mesh.toml", &text);
    bench
}

const POLL: &str = "[signals]\nmode = \"poll\"\ncheck = [\"true\"]\ngridId = \"e10\"\nregion = \"eu\"\nzone = \"no\"\nseeds = [\"seed.example.net\", \"10.0.0.1:7000\"]";

/// What was printed, document by document, as kubectl would read it.
fn documents(bench: &Bench, arguments: &[&str]) -> Vec<Value> {
    let seen = bench.grid(arguments).exits(0);
    let text = std::str::from_utf8(seen.raw()).unwrap();
    let documents = serde_yaml_ng::Deserializer::from_str(text);
    documents
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect()
}

/// With `--json` there are the same objects, as one list.
fn same_as_json(bench: &Bench, arguments: &[&str]) {
    let seen = bench.grid(&[arguments, &["--json"]].concat()).exits(0);
    let list: Value = serde_json::from_slice(seen.raw()).unwrap();
    assert_eq!(
        (&list["apiVersion"], &list["kind"]),
        (&"v1".into(), &"List".into())
    );
    assert_eq!(
        list["items"].as_array().unwrap(),
        &documents(bench, arguments)
    );
}

fn of<'a>(documents: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_meant =
        |document: &&Value| document["kind"] == kind && document["metadata"]["name"] == name;
    documents.iter().find(is_meant).unwrap()
}

fn certificate(bench: &Bench, node: &str) -> Vec<u8> {
    let pem = bench.read(&format!("{node}/current/services/site/identity.pem"));
    pem::parse(pem).unwrap().into_contents()
}

#[test]
fn what_is_rendered_is_what_the_declaration_says_with_the_pins_that_a_push_minted() {
    let bench = bench(POLL);
    bench.grid(&["push", "--all"]).exits(0);
    let rendered = documents(&bench, &["signals", "render"]);
    assert_eq!(rendered.len(), 3);
    let network = of(&rendered, "GridNetwork", "prod");
    let spec = serde_json::to_string_pretty(&network["spec"]).unwrap();
    insta::assert_snapshot!(spec, @r#"
    {
      "gridId": "e10",
      "region": "eu",
      "seeds": [
        "seed.example.net:7946",
        "10.0.0.1:7000"
      ],
      "signalTransport": {
        "mode": "poll"
      },
      "tls": {
        "caSecretRef": {
          "key": "ca.crt",
          "name": "grid-prod-ca",
          "namespace": "grid-system"
        },
        "siteSecretRef": {
          "name": "grid-prod-site",
          "namespace": "grid-system"
        }
      },
      "zone": "no"
    }
    "#);
    let atlas = &of(&rendered, "GridSite", "atlas")["spec"];
    assert_eq!(atlas["gridNetworkRef"], "prod");
    assert_eq!(
        (&atlas["region"], &atlas["zone"]),
        (&"us".into(), &"us-1".into())
    );
    assert_eq!(
        atlas["gatewayEndpoint"],
        serde_json::json!({
            "address": "gateway.example.net:443",
            "tls": { "mode": "Mutual", "serverName": "atlas.grid.internal" },
        })
    );
    let borealis = &of(&rendered, "GridSite", "borealis")["spec"];
    assert_eq!(
        (&borealis["region"], &borealis["zone"]),
        (&"eu".into(), &"no".into())
    );
    assert_eq!(borealis["gatewayEndpoint"]["address"], "[2001:db8::1]:8443");
    for (spec, node) in [(atlas, "atlas"), (borealis, "borealis")] {
        let pin = Digest::of(&certificate(&bench, node)).to_string();
        assert_eq!(
            spec["trust"]["canonicalFingerprints"],
            serde_json::json!([pin])
        );
    }
}

#[test]
fn for_one_cluster_the_network_is_where_its_site_is_and_settings_are_flags_over_the_declaration() {
    let declared = format!(
        "{POLL}\n[signals.resources]\ngroup = \"grid.praxis.fast\"\nversion = \"v1beta1\"\nfieldNames = \"old\"\nnamespace = \"elsewhere\""
    );
    let bench = bench(&declared);
    bench.grid(&["push", "--all"]).exits(0);
    let rendered = documents(&bench, &["signals", "render", "--site", "atlas"]);
    let network = of(&rendered, "GridNetwork", "prod");
    assert_eq!(network["apiVersion"], "grid.praxis.fast/v1beta1");
    assert_eq!(network["spec"]["region"], "us");
    assert_eq!(
        network["spec"]["tls"]["siteSecretRef"]["namespace"],
        "elsewhere"
    );
    assert!(of(&rendered, "GridSite", "atlas")["spec"]["egress"].is_object());
    let flags = [
        "signals",
        "render",
        "--group",
        "a.example",
        "--version",
        "v2",
        "--field-names",
        "new",
        "--namespace",
        "b",
    ];
    let rendered = documents(&bench, &flags);
    let network = of(&rendered, "GridNetwork", "prod");
    assert_eq!(network["apiVersion"], "a.example/v2");
    assert_eq!(network["spec"]["tls"]["caSecretRef"]["namespace"], "b");
    assert!(of(&rendered, "GridSite", "atlas")["spec"]["gatewayEndpoint"].is_object());
    bench
        .grid(&["signals", "render", "--version", "1"])
        .exits(2);
    bench
        .grid(&["signals", "render", "--site", "altas"])
        .exits(2);
    same_as_json(&bench, &["signals", "render"]);
    same_as_json(&bench, &["signals", "crd"]);
}

#[test]
fn secrets_are_the_sites_own_and_never_an_authoritys_key_and_the_journal_keeps_that_they_were_shown()
 {
    let bench = bench(POLL);
    bench.grid(&["push", "--all"]).exits(0);
    let without = bench
        .grid(&["signals", "render", "--site", "atlas"])
        .exits(0);
    assert!(!String::from_utf8_lossy(without.raw()).contains("Secret\n"));
    same_as_json(
        &bench,
        &["signals", "render", "--site", "atlas", "--secrets"],
    );
    let rendered = documents(
        &bench,
        &["signals", "render", "--site", "atlas", "--secrets"],
    );
    assert_eq!(rendered.len(), 5);
    let text = |name: &str, key: &str| {
        let data = &of(&rendered, "Secret", name)["data"][key];
        let bytes = base64::engine::general_purpose::STANDARD.decode(data.as_str().unwrap());
        String::from_utf8(bytes.unwrap()).unwrap()
    };
    let held = |name: &str| bench.read(&format!("atlas/current/services/site/{name}"));
    assert_eq!(text("grid-prod-ca", "ca.crt"), held("authorities.pem"));
    assert_eq!(text("grid-prod-site", "tls.crt"), held("identity.pem"));
    assert_eq!(text("grid-prod-site", "tls.key"), held("identity.key"));
    let kinds: Vec<&Value> = rendered.iter().map(|document| &document["type"]).collect();
    assert_eq!(kinds[..2], ["Opaque", "kubernetes.io/tls"]);
    let whole = rendered.iter().map(ToString::to_string).collect::<String>();
    assert_eq!(whole.matches("tls.key").count(), 1);
    assert!(!rendered[0].to_string().contains("PRIVATE"));
    let history = bench.grid(&["history"]).exits(0).stdout();
    assert!(
        history.contains("signals render --site atlas --secrets"),
        "{history}"
    );
    // All clusters' secrets at once would be one file that opens every site.
    bench.grid(&["signals", "render", "--secrets"]).exits(2);
    let shown = bench.on_a_terminal(
        100,
        "maria",
        &["signals", "render", "--site", "atlas", "--secrets"],
    );
    assert!(
        shown.contains("secrets are not written to a terminal"),
        "{shown}"
    );
    assert!(!shown.contains("tls.key"), "{shown}");
}

#[test]
fn rendering_mints_nothing_and_names_the_sites_that_their_peers_would_refuse() {
    let bench = bench(POLL);
    let refused = bench.grid(&["signals", "render"]).exits(1);
    insta::assert_snapshot!(refused.stderr(), @r#"
    error: no identity was minted yet for atlas, borealis: under trust "pin" its peers would refuse it
    next: the next push mints one for every site of the mesh, whichever machine it names: `grid push --behind`
    "#);
    assert!(!bench.path(".grid").exists());
    // Where the authority vouches for sites, and where grid configures none, nothing is missing.
    bench.edit("[signals]\n", "[signals]\ntrust = \"spiffe\"\n");
    let rendered = documents(&bench, &["signals", "render"]);
    let spec = &of(&rendered, "GridNetwork", "prod")["spec"];
    assert_eq!(spec["peerTrust"]["mode"], "spiffe");
    assert!(spec["tls"].is_null());
}

#[test]
fn without_signals_no_transport_is_rendered_and_pins_are_those_that_are_declared() {
    let bench = bench("");
    let pin = "ab".repeat(32);
    bench.edit(
        "[nodes.borealis]\n",
        &format!("[nodes.borealis]\npins = [\"{pin}\"]\n"),
    );
    let rendered = documents(&bench, &["signals", "render"]);
    assert_eq!(
        of(&rendered, "GridNetwork", "prod")["spec"],
        serde_json::json!({})
    );
    assert!(of(&rendered, "GridSite", "atlas")["spec"]["trust"].is_null());
    let pins = &of(&rendered, "GridSite", "borealis")["spec"]["trust"]["canonicalFingerprints"];
    assert_eq!(pins, &serde_json::json!([pin]));
    bench.edit("[defaults]", "[signals]\n[defaults]");
    let absent = bench.grid(&["signals", "render"]).exits(1).stderr();
    assert!(
        absent.contains("atlas:") && !absent.contains("borealis"),
        "{absent}"
    );
}

#[test]
fn a_site_whose_identity_is_made_elsewhere_has_no_secret_of_ours() {
    let bench = bench(POLL);
    let pin = "ab".repeat(32);
    bench.edit(
        "[nodes.borealis]\n",
        &format!("[nodes.borealis]\npins = [\"{pin}\"]\n"),
    );
    bench.grid(&["push", "--all"]).exits(0);
    let arguments = ["signals", "render", "--site", "borealis", "--secrets"];
    let rendered = documents(&bench, &arguments);
    assert_eq!(rendered.len(), 4);
    assert!(of(&rendered, "GridNetwork", "prod")["spec"]["tls"]["siteSecretRef"].is_null());
    let told = bench.grid(&arguments).exits(0).stderr();
    assert!(told.contains("its Secret is yours to make"), "{told}");
}

#[test]
fn definitions_are_printed_without_a_mesh_and_are_those_that_are_committed() {
    let bench = Bench::bare();
    let seen = bench.grid(&["signals", "crd"]).exits(0);
    let schema = |name: &str| {
        let path = format!("{}/schemas/{name}.crd.yaml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    let committed = format!("{}---\n{}", schema("gridnetworks"), schema("gridsites"));
    assert_eq!(String::from_utf8_lossy(seen.raw()), committed);
    let other = bench
        .grid(&[
            "signals",
            "crd",
            "--group",
            "a.example",
            "--field-names",
            "old",
        ])
        .exits(0);
    let text = String::from_utf8_lossy(other.raw()).into_owned();
    assert!(text.contains("name: gridnetworks.a.example") && text.contains("swimKeyRef:"));
    bench
        .grid(&["signals", "crd", "--mesh", "/nowhere"])
        .exits(2);
}

#[test]
fn what_a_resource_has_no_room_for_is_wrong_in_the_declaration() {
    let bench = bench(
        "[signals]\ngrid_id = \"e10\"\nregion = \"e u\"\nseeds = [\"seed\", \"seed:0\"]\n[signals.resources]\nversion = \"1\"\nnamespaces = \"x\"",
    );
    bench.edit(
        "tls = \"mutual\", serverName",
        "tls = \"plaintext\", serverName",
    );
    bench.edit("[2001:db8::1]:8443", "2001:db8::1");
    let wrong = bench.grid(&["check"]).exits(3).all();
    for part in [
        "did you mean `gridId`?",
        "only printable ASCII without spaces, not ' '",
        "is no port: a number from 1 to 65535",
        "a version is written as v1, v1beta2 or v1alpha1",
        "did you mean `namespace`?",
        "there is none without mutual TLS",
        "\"2001\" is no host",
    ] {
        assert!(wrong.contains(part), "{part} is not in {wrong}");
    }
}
