//! The example of three sites, as it stands under `examples/sites`: it is right as it is, and on machines of a test's own a push
//! delivers what its README says (DESIGN.md, section 7).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use std::path::Path;

use support::Bench;

fn bench() -> Bench {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sites");
    Bench::new(&std::fs::read_to_string(folder.join("mesh.toml")).unwrap())
}

/// The example on this machine: no sshd, no systemd and no RabbitMQ; what a site is given is the same.
fn on_this_machine(bench: &Bench) {
    for node in ["atlas", "borealis"] {
        let root = bench.path(node);
        bench.edit(
            &format!("[nodes.{node}]\n"),
            &format!("[nodes.{node}]\ncourier = \"local\"\nroot = {root:?}\n"),
        );
    }
    bench.edit(
        "apply = [\"systemctl\", \"enable\", \"--now\", \"grid-site\"]\n",
        "apply = [\"true\"]\ncheck = [\"true\"]\n",
    );
    bench.file("list.j2", "{{ accounts | tojson }}\n");
    bench.edit(
        "provides = { kind = \"rabbitmq\", port = 5672 }",
        "provides = { kind = \"custom\", port = 5672, template = \"list.j2\", load = [\"true\"], check = [\"true\"] }",
    );
}

#[test]
fn the_example_of_sites_is_right_as_it_is() {
    let bench = bench();
    let said = bench.grid(&["check"]).exits(0).all();
    assert!(!said.contains("warning"), "{said}");
    bench.grid(&["push", "--all", "--dry-run"]).exits(0);
}

#[test]
fn a_push_of_the_example_gives_every_site_its_peers_and_one_the_brokers_metrics() {
    let bench = bench();
    on_this_machine(&bench);
    let pushed = bench.grid(&["push", "--all"]).exits(0).all();
    assert!(pushed.contains("rendered, not observed"), "{pushed}");
    let site = |node: &str, file: &str| bench.read(&format!("{node}/current/services/site/{file}"));
    assert!(site("atlas", "site.toml").contains("mode = \"poll\""));
    assert!(site("atlas", "site.toml").contains("http://127.0.0.1:15692/metrics"));
    assert!(!site("borealis", "site.toml").contains("15692"));
    for (node, peers) in [
        ("atlas", ["borealis", "eridanus"]),
        ("borealis", ["atlas", "eridanus"]),
    ] {
        let text = site(node, "peers.toml");
        for peer in peers {
            assert!(text.contains(&format!("name = {peer:?}")), "{text}");
        }
    }
    let resources = bench.read("gitops/eridanus/resources.yaml");
    assert_eq!(
        resources.matches("kind: GridSite\n").count(),
        3,
        "{resources}"
    );
    assert!(resources.contains("mode: poll"), "{resources}");
    assert!(
        bench
            .read("gitops/eridanus/secrets.yaml")
            .contains("kind: Secret")
    );
    // As the README says: nothing is left to do, and no site would be restarted.
    bench.grid(&["signals", "diff", "--exit-code"]).exits(0);
    bench.grid(&["status", "--exit-code"]).exits(0);
}
