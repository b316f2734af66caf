//! The courier `manifests`: a site without sshd, whose resources a push writes to a folder (DESIGN.md, section 7).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use support::Bench;

/// atlas is a local machine, eridanus a cluster that nobody reaches.
fn bench() -> Bench {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    let text = format!(
        "[mesh]\nname = \"prod\"\n[signals]\nmode = \"poll\"\ncheck = [\"true\"]\n[nodes.atlas]\ncourier = \"local\"\nroot = {:?}\n\
         address = \"10.0.0.1\"\n[nodes.eridanus]\ncourier = \"manifests\"\nfolder = \"gitops/eridanus\"\naddress = \"10.0.0.2\"\n",
        bench.path("atlas")
    );
    bench.file("mesh.toml", &text);
    bench
}

const FOLDER: &str = "gitops/eridanus";

fn documents(bench: &Bench, name: &str) -> Vec<Value> {
    let text = bench.read(&format!("{FOLDER}/{name}"));
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    documents
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect()
}

fn names(bench: &Bench) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(bench.path(FOLDER))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn pins(bench: &Bench) -> usize {
    let peers = bench.read("atlas/current/services/site/peers.toml");
    let (_, of_eridanus) = peers.split_once("name = \"eridanus\"").unwrap();
    let pins = of_eridanus.split("pins = ").nth(1).unwrap();
    pins.split(']').next().unwrap().matches('"').count() / 2
}

#[test]
fn a_push_writes_the_resources_and_says_that_nobody_observes_them() {
    let bench = bench();
    bench.file(&format!("{FOLDER}/kustomization.yaml"), "theirs");
    let pushed = bench.grid(&["push", "--all"]).exits(0).stdout();
    assert!(pushed.contains("rendered, not observed"), "{pushed}");
    assert_eq!(
        names(&bench),
        [
            ".grid.json",
            "kustomization.yaml",
            "resources.yaml",
            "secrets.yaml"
        ]
    );
    let kinds: Vec<Value> = documents(&bench, "resources.yaml")
        .into_iter()
        .map(|document| document["kind"].clone())
        .collect();
    assert_eq!(kinds, ["GridNetwork", "GridSite", "GridSite"]);
    let rendered = bench
        .grid(&["signals", "render", "--site", "eridanus"])
        .exits(0);
    assert_eq!(
        String::from_utf8_lossy(rendered.raw()),
        bench.read(&format!("{FOLDER}/resources.yaml"))
    );
    let mode = |name: &str| {
        let path = bench.path(&format!("{FOLDER}/{name}"));
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(
        (mode("secrets.yaml"), mode("resources.yaml")),
        (0o600, 0o644)
    );
    assert_eq!(documents(&bench, "secrets.yaml").len(), 2);
    let status = bench.grid(&["status"]).exits(0).stdout();
    let line = status
        .lines()
        .find(|line| line.contains("eridanus"))
        .unwrap();
    assert!(line.contains("rendered, not observed"), "{status}");
    let status = bench.grid(&["status", "--json"]).exits(0);
    let view: Value = serde_json::from_slice(status.raw()).unwrap();
    assert_eq!(view["machines"][1]["unobserved"], true);
    assert!(view["machines"][0]["unobserved"].is_null());

    // A second push has nothing to do; one that names it mends what somebody changed, and touches nothing of theirs.
    let again = bench.grid(&["push", "--behind"]).exits(0).stdout();
    assert!(again.contains("0 machines sent"), "{again}");
    let contacted = bench.grid(&["push", "eridanus"]).exits(0).stdout();
    assert!(!contacted.contains("mended"), "{contacted}");
    bench.file(&format!("{FOLDER}/resources.yaml"), "changed by hand");
    let probed = bench.grid(&["status", "--probe", "--exit-code"]).exits(6);
    let told = "1 file differs from what was sent: resources.yaml";
    assert!(probed.stdout().contains(told), "{}", probed.all());
    let mended = bench.grid(&["push", "eridanus"]).exits(0).stdout();
    assert!(
        mended.contains("resources.yaml was written again"),
        "{mended}"
    );
    assert_eq!(documents(&bench, "resources.yaml").len(), 3);
    assert_eq!(
        bench.read(&format!("{FOLDER}/kustomization.yaml")),
        "theirs"
    );
    let probed = bench.grid(&["status", "--probe", "--exit-code"]).exits(0);
    // Nobody was contacted for it.
    let told =
        "eridanus  current      rendered, not observed; its folder holds what was rendered\n";
    assert!(probed.stdout().contains(told), "{}", probed.all());
}

#[test]
fn a_file_that_grid_did_not_write_refuses_the_push_by_name() {
    let bench = bench();
    bench.file(&format!("{FOLDER}/resources.yaml"), "theirs");
    let refused = bench.grid(&["push", "--all"]).exits(4).all();
    assert!(
        refused.contains("resources.yaml is there, and grid did not write it"),
        "{refused}"
    );
    assert_eq!(bench.read(&format!("{FOLDER}/resources.yaml")), "theirs");
    assert!(!names(&bench).contains(&"secrets.yaml".to_owned()));
    std::fs::remove_file(bench.path(&format!("{FOLDER}/resources.yaml"))).unwrap();
    bench.grid(&["push", "--behind"]).exits(0);
}

#[test]
fn another_store_is_fenced_off_until_it_takes_over() {
    let bench = bench();
    bench.grid(&["push", "--all"]).exits(0);
    std::fs::remove_dir_all(bench.path(".grid")).unwrap();
    let before = bench.read(&format!("{FOLDER}/secrets.yaml"));
    let fenced = bench.grid(&["push", "eridanus"]).exits(8).all();
    assert!(fenced.contains("eridanus"), "{fenced}");
    assert_eq!(bench.read(&format!("{FOLDER}/secrets.yaml")), before);
    bench.grid(&["push", "--all", "--take-over"]).exits(0);
    assert_ne!(bench.read(&format!("{FOLDER}/secrets.yaml")), before);
}

#[test]
fn the_older_identity_of_a_site_that_nobody_observes_stays_admitted_until_the_next_renewal() {
    let bench = bench();
    bench.grid(&["push", "--all"]).exits(0);
    assert_eq!(pins(&bench), 1);
    for _ in 0..2 {
        bench.grid(&["rotate", "--site", "eridanus"]).exits(0);
        bench.grid(&["push", "--behind"]).exits(0);
        assert_eq!(pins(&bench), 2);
        bench.grid(&["push", "--all"]).exits(0);
        assert_eq!(pins(&bench), 2);
    }
    // An observed one gives its older pin up.
    bench.grid(&["rotate", "--site", "atlas"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    let sites = documents(&bench, "resources.yaml");
    let fingerprints = |index: usize| {
        let trust = &sites[index]["spec"]["trust"]["canonicalFingerprints"];
        trust.as_array().unwrap().len()
    };
    assert_eq!((fingerprints(1), fingerprints(2)), (1, 2));
}

#[test]
fn such_a_machine_is_its_site_and_nothing_else() {
    let bench = bench();
    bench.edit(
        "[nodes.atlas]\n",
        "[services.web]\nnode = \"eridanus\"\n[nodes.atlas]\nfolder = \"x\"\n",
    );
    bench.edit("folder = \"gitops/eridanus\"\n", "root = \"/x\"\n");
    let wrong = bench.grid(&["check"]).exits(3).all();
    for part in [
        "only a machine with `courier = \"manifests\"` has a folder",
        "has no releases, and no root",
        "it has to be said where the resources are written",
    ] {
        assert!(wrong.contains(part), "{part} is not in {wrong}");
    }
    bench.edit("root = \"/x\"\n", "folder = \"gitops/eridanus\"\n");
    bench.edit("folder = \"x\"\n", "");
    let wrong = bench.grid(&["check"]).exits(3).all();
    assert!(
        wrong.contains("web is on eridanus, where nobody runs a service"),
        "{wrong}"
    );
    bench.edit("[services.web]\nnode = \"eridanus\"\n", "");
    bench.edit("[signals]\nmode = \"poll\"\ncheck = [\"true\"]\n", "");
    let wrong = bench.grid(&["check"]).exits(3).all();
    assert!(wrong.contains("this mesh has no `[signals]`"), "{wrong}");
}

#[test]
fn what_nobody_reaches_shows_its_evidence_elsewhere() {
    let bench = bench();
    bench.grid(&["push", "--all"]).exits(0);
    for arguments in [
        &["evidence", "eridanus"][..],
        &["evidence", "clear", "eridanus", "--stale"],
    ] {
        let refused = bench.grid(arguments).exits(2).all();
        assert!(
            refused.contains("nobody reaches eridanus")
                && refused.contains("grid evidence --file FILE"),
            "{refused}"
        );
    }
}
