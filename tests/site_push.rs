//! A push delivers a site, and its check waits until the daemon runs as declared; what the declaration changes, the
//! daemon takes up through its supervisor (DESIGN.md, section 7). One site: the daemon's ports are the machine's.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use support::Bench;

/// Stands for systemd: starts the daemon, and again on 75, until its folder is gone.
const SUPERVISE: &str = "setsid sh -c 'while [ -d \"$0\" ]; do \"$1\" site run --config \"$0/current/services/site/site.toml\"; \
                         [ $? = 75 ] || sleep 0.2; done' \"$0\" \"$1\" >/dev/null 2>&1 &";

fn declaration(bench: &Bench, signals: &str) -> String {
    let grid = env!("CARGO_BIN_EXE_grid");
    let root = bench.path("machine");
    let state = bench.path("state");
    let supervise = serde_json::to_string(SUPERVISE).unwrap();
    format!(
        "[mesh]\nname = \"prod\"\n[signals]\n{signals}\nstate = {state:?}\n\
         apply = [\"sh\", \"-c\", {supervise}, {root:?}, {grid:?}]\n\
         check = [{grid:?}, \"site\", \"check\", \"--config\", \"{{release}}/site.toml\"]\n\
         [nodes.atlas]\naddress = \"127.0.0.1\"\ncourier = \"local\"\nroot = {root:?}\n"
    )
}

/// Has the supervisor end, and its daemon with it.
struct Stop<'a>(&'a Bench);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let status = std::fs::read(self.0.path("state").join("status.json"));
        let _ = std::fs::remove_dir_all(self.0.path("machine"));
        let status: Option<serde_json::Value> = status
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(pid) = status.and_then(|status| status["pid"].as_u64()) {
            let _ = std::process::Command::new("kill")
                .arg(pid.to_string())
                .status();
        }
    }
}

#[test]
fn a_push_waits_until_the_daemon_runs_as_declared_and_a_changed_mode_is_taken_up() {
    let port = {
        let socket = std::net::TcpListener::bind("[::]:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    let status = || -> serde_json::Value {
        let bytes = std::fs::read(bench.path("state").join("status.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    let stop = Stop(&bench);
    bench.file(
        "mesh.toml",
        &declaration(&bench, &format!("mode = \"poll\"\nport = {port}")),
    );
    let pushed = bench.grid(&["push", "atlas"]).exits(0).all();
    assert!(pushed.contains("identity of the site atlas"), "{pushed}");
    assert_eq!(status()["mode"], "poll");
    assert!(status()["listens"].is_string());
    bench.grid(&["push", "--all"]).exits(0);

    bench.file("mesh.toml", &declaration(&bench, &format!("port = {port}")));
    bench.edit("apply = [\"sh\", \"-c\",", "apply = [\"true\",");
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(status()["mode"], "gossip");
    assert!(status()["listens"].is_null());
    drop(stop);
}

/// Two machines of this host as sites whose daemons nobody runs.
fn two_sites() -> Bench {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    let declaration = format!(
        "[mesh]\nname = \"prod\"\n[signals]\ncheck = [\"true\"]\n[defaults]\ncourier = \"local\"\n\
         [nodes.atlas]\nroot = {:?}\n[nodes.borealis]\nroot = {:?}\n",
        bench.path("atlas"),
        bench.path("borealis")
    );
    bench.file("mesh.toml", &declaration);
    bench
}

#[test]
fn a_sites_identity_and_the_authority_are_rotated_by_hand_one_renewal_at_a_time() {
    let bench = two_sites();
    let root = |node: &str| bench.path(node);
    let refused = bench.grid(&["rotate", "--site", "atlas"]).exits(1).all();
    assert!(
        refused.contains("atlas has no identity that this mesh made"),
        "{refused}"
    );
    bench.grid(&["rotate", "--ca"]).exits(1);
    bench.grid(&["push", "--all"]).exits(0);

    let file = |node: &str, name: &str| {
        std::fs::read_to_string(root(node).join("current/services/site").join(name)).unwrap()
    };
    let before = file("atlas", "identity.pem");
    bench.grid(&["rotate", "--site", "atlas"]).exits(0);
    let refused = bench.grid(&["rotate", "--site", "atlas"]).exits(1).all();
    assert!(refused.contains("still under way"), "{refused}");
    let pushed = bench.grid(&["push", "--behind"]).exits(0).all();
    for told in [
        "its site hears of renewed identities",
        "its site gets identity 2",
        "its site's list of sites changed",
    ] {
        assert!(pushed.contains(told), "{told}: {pushed}");
    }
    assert!(!pushed.contains("of site changed"), "{pushed}");
    assert_ne!(file("atlas", "identity.pem"), before);
    assert_eq!(file("atlas", "peers.toml"), file("borealis", "peers.toml"));
    assert_eq!(file("borealis", "peers.toml").matches("pins").count(), 2);

    let before = file("borealis", "identity.pem");
    bench.grid(&["rotate", "--ca"]).exits(0);
    let pushed = bench.grid(&["push", "--behind"]).exits(0).all();
    assert!(
        pushed.contains("its site's certificate authorities changed"),
        "{pushed}"
    );
    assert!(!pushed.contains("of site changed"), "{pushed}");
    assert_ne!(file("borealis", "identity.pem"), before);
    let authorities = |node: &str| file(node, "authorities.pem").matches("BEGIN").count();
    assert_eq!((authorities("atlas"), authorities("borealis")), (1, 1));
    let key = std::fs::metadata(root("atlas").join("current/services/site/identity.key")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777,
        0o600
    );
}

#[test]
fn status_says_when_an_identity_expires_and_for_whom_its_renewal_waits() {
    let bench = two_sites();
    bench.grid(&["push", "--all"]).exits(0);
    let status = bench.grid(&["status", "--exit-code"]).exits(0).all();
    assert!(!status.contains("identity"), "{status}");
    let status = bench.grid(&["status", "-v"]).exits(0).all();
    assert!(status.contains("its identity expires on "), "{status}");
    let gossip = "nothing crosses sites yet";
    for told in [&["check"][..], &["status"], &["push", "--behind"]] {
        let told = bench.grid(told).exits(0).all();
        assert!(told.contains(gossip), "{told}");
    }

    // A dry run knows the identities, and what a rotation made of them.
    let dry = bench.grid(&["push", "--all", "--dry-run"]).exits(0).all();
    assert!(dry.contains("0 machines to send"), "{dry}");
    assert!(!dry.contains("to mint"), "{dry}");
    bench.grid(&["rotate", "--site", "atlas"]).exits(0);
    let dry = bench
        .grid(&["push", "--behind", "--dry-run"])
        .exits(0)
        .all();
    assert!(dry.contains("2 machines to send"), "{dry}");
    assert!(!dry.contains("to mint"), "{dry}");
    bench.grid(&["push", "--behind"]).exits(0);

    let status = bench.grid_at("+280d", &["status", "--exit-code"]).exits(6);
    let shown = status.stdout();
    assert!(
        shown.contains("its site's identity is to be renewed; its identity expires on "),
        "{shown}"
    );
    bench.edit(
        "[nodes.borealis]\n",
        "[nodes.borealis]\nhold = \"in the rack\"\n",
    );
    let pushed = bench.grid_at("+280d", &["push", "--behind"]).exits(0).all();
    let waits = "its renewed identity waits until borealis knows of it; from ";
    assert!(pushed.contains(waits), "{pushed}");
    let status = bench.grid_at("+281d", &["status"]).exits(0).all();
    assert!(status.contains(waits), "{status}");
    let status = bench.grid_at("+281d", &["status", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(status.raw()).unwrap();
    let identity = &view["machines"][0]["identity"];
    assert_eq!(identity["number"], 2);
    assert_eq!(identity["renewal"]["number"], 3);
    assert_eq!(view["signals_cross"], false);
    assert_eq!(identity["renewal"]["waits_for"][0], "borealis");

    let status = bench.grid_at("+400d", &["status"]).exits(0).all();
    assert!(status.contains("its identity expired on "), "{status}");
}

#[test]
fn an_authority_that_ends_is_told_and_minted_anew_by_a_push_while_identities_still_hold() {
    let bench = two_sites();
    bench.grid(&["push", "--all"]).exits(0);
    let status = bench.grid_at("+3190d", &["status"]).exits(0).all();
    assert!(!status.contains("certificate authority"), "{status}");
    // Ten years less a year, less the 90 days from which on identities are renewed.
    let at = |arguments: &[&str], exit| bench.grid_at("+3200d", arguments).exits(exit);
    let status = at(&["status", "--exit-code"], 6).all();
    assert!(
        status.contains("note: the mesh's certificate authority 1 expires on ")
            && status.contains("the next push mints another one"),
        "{status}"
    );
    let view: serde_json::Value =
        serde_json::from_slice(at(&["status", "--json"], 0).raw()).unwrap();
    assert_eq!(view["authority"]["number"], 1);
    assert_eq!(view["authority"]["due"], true);
    let dry = at(&["push", "--behind", "--dry-run"], 0).all();
    assert!(dry.contains("to mint  certificate authority 2"), "{dry}");
    let diff = at(&["signals", "diff"], 0).all();
    assert!(diff.contains("the mesh's authorities"), "{diff}");

    // By hand, long after: who issues is minted first.
    let rotated = at(&["rotate", "--site", "atlas"], 0).all();
    assert!(
        rotated.contains("minted the identity of the site atlas, number 2")
            && rotated.contains("minted certificate authority 2"),
        "{rotated}"
    );
    let pushed = at(&["push", "--behind"], 0).all();
    assert!(
        !pushed.contains("minted   certificate authority"),
        "{pushed}"
    );
    let status = at(&["status", "--exit-code"], 0).all();
    assert!(!status.contains("certificate authority"), "{status}");
    for name in ["atlas", "borealis"] {
        let site = bench.path(name).join("current/services/site");
        let verified = std::process::Command::new("openssl")
            .args(["verify", "-attime", "2095200000", "-CAfile"])
            .arg(site.join("authorities.pem"))
            .arg(site.join("identity.pem"))
            .output()
            .unwrap();
        assert!(verified.status.success(), "{verified:?}");
    }
}

#[test]
fn what_the_shipped_unit_cannot_do_is_noted_by_check() {
    let bench = two_sites();
    let check = bench.grid(&["check"]).exits(0).all();
    assert!(!check.contains("grid-site.service"), "{check}");
    bench.edit(
        "[signals]\n",
        "[signals]\nport = 443\nmetrics_port = 92\nstate = \"/srv/site\"\n",
    );
    let check = bench.grid(&["check"]).exits(0).all();
    for told in [
        "`port` is 443",
        "`metrics_port` is 92",
        "`state` is /srv/site",
    ] {
        assert!(check.contains(told), "{told}: {check}");
    }
}
