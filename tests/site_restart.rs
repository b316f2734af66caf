//! What a running daemon takes up, and what makes it exit with 75.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use site_bed::client::{Caller, get, post, report};
use site_bed::{Ask, Authority, Provider, Site, until};

const SIGNALS: &str = "/v1/site/signals";

fn site(mode: &'static str, trust: &'static str) -> (Authority, Site) {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    (site.mode, site.trust) = (mode, trust);
    (authority, site)
}

fn says(site: &Site, key: &str, value: &str) {
    until(&format!("status.json says {key} {value}"), || {
        (site.json("status.json")?[key] == value).then_some(())
    });
}

#[test]
fn another_mode_exits_75_both_ways() {
    for (from, to) in [("poll", "gossip"), ("gossip", "poll")] {
        let (_, mut site) = site(from, "pin");
        site.start();
        site.mode = to;
        site.write();
        assert_eq!(
            site.ended().code(),
            Some(75),
            "{from} to {to}\n{}",
            site.log()
        );
        site.start();
        says(&site, "mode", to);
    }
}

#[test]
fn another_trust_exits_75_under_poll_only() {
    for (from, to) in [("pin", "spiffe"), ("spiffe", "pin")] {
        let (_, mut polling) = site("poll", from);
        polling.start();
        polling.trust = to;
        polling.write();
        assert_eq!(polling.ended().code(), Some(75), "{from} to {to}");

        let (_, mut gossiping) = site("gossip", from);
        gossiping.start();
        gossiping.trust = to;
        gossiping.write();
        says(&gossiping, "trust", to);
        assert!(gossiping.runs());
    }
}

#[test]
fn under_gossip_a_switch_to_pin_stops_the_take_up_of_certificates_and_spiffe_resumes_it() {
    let (authority, mut site) = site("gossip", "spiffe");
    site.start();
    says(&site, "certificate", &site.identity.pin());
    site.identity = authority.site("atlas");
    site.write();
    says(&site, "certificate", &site.identity.pin());

    let taken = site.identity.pin();
    site.trust = "pin";
    site.write();
    says(&site, "trust", "pin");
    site.identity = authority.site("atlas");
    site.write();
    until("it says that it does not take it up", || {
        site.json("status.json")?["waits_for"]
            .to_string()
            .contains("not taken up")
            .then_some(())
    });
    says(&site, "certificate", &taken);

    site.trust = "spiffe";
    site.write();
    says(&site, "certificate", &site.identity.pin());
    assert!(site.runs());
}

#[test]
fn under_gossip_the_metrics_follow_what_is_taken_up() {
    let (authority, mut site) = site("gossip", "spiffe");
    let expires = |year| {
        authority.issue(&Ask {
            uris: &["spiffe://grid.internal/site/atlas"],
            until: year,
            usages: &[],
        })
    };
    let shows = |site: &Site, line: &str| {
        until(line, || site.metrics().contains(line).then_some(()));
    };
    let expiry = "grid_site_certificate_expiry_timestamp_seconds";
    site.identity = expires(2001);
    site.start();
    shows(&site, &format!("{expiry} 978307200\n"));
    site.identity = expires(2030);
    site.write();
    shows(&site, &format!("{expiry} 1893456000\n"));
    // Under pin one that is not taken up is not spoken of.
    site.trust = "pin";
    site.write();
    shows(&site, ",trust=\"pin\",");
    assert!(!site.metrics().contains("trust=\"spiffe\""));
    site.identity = expires(2040);
    site.write();
    says(&site, "trust", "pin");
    shows(&site, &format!("{expiry} 1893456000\n"));
}

#[test]
fn under_gossip_there_is_no_listener_and_the_status_says_that_nothing_crosses() {
    let (_, mut site) = site("gossip", "pin");
    let provider = Provider::new("grid_provider_ready 1\n");
    site.scrapes.push(("pool", provider.url.clone()));
    site.start();
    assert!(Caller::connect(site.socket(), Some(&site.identity)).is_err());
    let status = site.json("status.json").unwrap();
    assert_eq!(status["crosses"], false);
    assert!(
        status["waits_for"]
            .to_string()
            .contains("nothing crosses sites")
    );
    // It scrapes all the same.
    until("the overlay has it", || {
        let rows = site.json("overlay.json")?["rows"].clone();
        (rows[0]["signals"]["ready"]["value"] == 1.0).then_some(())
    });
}

#[test]
fn under_poll_and_spiffe_a_renewed_certificate_is_taken_up_live() {
    let (authority, mut site) = site("poll", "spiffe");
    site.start();
    let old = site.identity.clone();
    site.identity = authority.site("atlas");
    site.write();
    says(&site, "certificate", &site.identity.pin());
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    assert_eq!(local.get(SIGNALS).unwrap().status, 200);
    assert_eq!(local.shown(), site.identity.der);
    // The old leaf is the own SPIFFE id on another leaf now.
    assert!(get(site.socket(), &old, SIGNALS).is_err());
    assert!(site.runs());
}

/// How the check of a push ends, and what it says.
fn check(site: &Site) -> (Option<i32>, String) {
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_grid"))
        .args(["site", "check", "--config"])
        .arg(site.config())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    (checked.status.code(), said)
}

#[test]
fn a_push_waits_until_delivered_pins_are_taken_up_so_that_no_renewed_peer_is_refused() {
    let (authority, mut slow) = site("poll", "pin");
    // Within this test it does not look at its files again.
    slow.settings.retain(|(key, _)| *key != "reread_ms");
    slow.settings.push(("reread_ms", "60000".to_owned()));
    let peer = Site::new("borealis", &authority);
    slow.knows(&peer);
    slow.start();
    assert_eq!(check(&slow), (Some(0), String::new()));
    let renewed = authority.site("borealis");
    slow.peers[0].2.push(renewed.pin());
    slow.write();
    let (code, said) = check(&slow);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("has not taken up yet what was delivered"),
        "{said}"
    );

    let (_, mut quick) = site("poll", "pin");
    quick.start();
    quick.knows(&peer);
    quick.write();
    until("the check holds", || {
        (check(&quick).0 == Some(0)).then_some(())
    });
    assert_eq!(quick.json("status.json").unwrap()["peers"], 1);
}

#[test]
fn under_poll_and_pin_a_new_identity_exits_75() {
    let (authority, mut site) = site("poll", "pin");
    site.start();
    site.identity = authority.site("atlas");
    site.write();
    assert_eq!(site.ended().code(), Some(75));
}

#[test]
fn two_networks_are_refused_with_3() {
    let (_, site) = site("poll", "pin");
    site.write();
    let mut command = site.command();
    command.arg("--config").arg(site.config());
    assert_eq!(command.status().unwrap().code(), Some(3));
    assert!(
        site.log().contains("one daemon serves one network"),
        "{}",
        site.log()
    );
    let text = std::fs::read_to_string(site.config()).unwrap();
    std::fs::write(
        site.config(),
        text.replace("\"prod\"", "[\"prod\", \"lab\"]"),
    )
    .unwrap();
    assert_eq!(site.command().status().unwrap().code(), Some(3));
    assert!(site.log().contains("it names 2 networks"), "{}", site.log());
}

#[test]
fn without_a_network_a_daemon_runs_as_gossip_and_pin_and_one_that_comes_restarts_it() {
    let (_, site) = site("gossip", "pin");
    site.write();
    let with = std::fs::read_to_string(site.config()).unwrap();
    let named = "network = \"prod\"\nsite = \"atlas\"\nmode = \"gossip\"\ntrust = \"pin\"\n";
    assert!(with.contains(named), "{with}");
    for none in ["", "network = []\n"] {
        let without = with.replace(named, &format!("{none}site = \"atlas\"\n"));
        std::fs::write(site.config(), &without).unwrap();
        let mut daemon = site.command().spawn().unwrap();
        until("it runs", || {
            (site.json("status.json")?["pid"] == daemon.id()).then_some(())
        });
        let status = site.json("status.json").unwrap();
        assert_eq!(status.get("network"), None);
        assert_eq!(
            (&status["mode"], &status["trust"]),
            (&"gossip".into(), &"pin".into())
        );
        until("its overlay is that of no mesh", || {
            let overlay = site.json("overlay.json")?;
            overlay.get("mesh").is_none().then_some(())
        });
        assert!(site.metrics().contains(",network=\"\","));
        std::fs::write(site.config(), &with).unwrap();
        assert_eq!(daemon.wait().unwrap().code(), Some(75));
    }
    // One that speaks of what only a network has is refused.
    let without = with.replace(named, "site = \"atlas\"\nmode = \"poll\"\n");
    std::fs::write(site.config(), without).unwrap();
    assert_eq!(site.command().status().unwrap().code(), Some(3));
    assert!(site.log().contains("it names no network"), "{}", site.log());
}

#[test]
fn files_that_are_wrong_change_nothing_and_are_named() {
    let (_, mut site) = site("poll", "pin");
    site.start();
    let taken_up = |site: &Site| site.counter("grid_site_files_taken_up");
    assert_eq!(taken_up(&site), 1);
    let good = std::fs::read_to_string(site.config()).unwrap();
    std::fs::write(site.config(), "format = 1\nnonsense").unwrap();
    until("the status names it", || {
        site.json("status.json")?["waits_for"]
            .to_string()
            .contains("site.toml")
            .then_some(())
    });
    assert_eq!(taken_up(&site), 0);
    assert_eq!(
        get(site.socket(), &site.identity, SIGNALS).unwrap().status,
        200
    );
    std::fs::write(site.config(), good).unwrap();
    until("all is well again", || {
        site.json("status.json")?
            .get("waits_for")
            .is_none()
            .then_some(())
    });
    assert_eq!(taken_up(&site), 1);
    site.terminate();
    assert!(site.ended().success());
}

#[test]
fn systemd_is_told_when_it_runs_and_when_it_ends() {
    let (_, mut site) = site("poll", "pin");
    let socket = site.folder().join("notify");
    let listener = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    listener
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    site.variables
        .push(("NOTIFY_SOCKET", socket.display().to_string()));
    site.start();
    let told = || {
        let mut bytes = [0; 64];
        let length = listener.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!(told(), "READY=1");
    site.terminate();
    assert_eq!(told(), "STOPPING=1");
    assert!(site.ended().success());
}

#[test]
fn a_daemon_that_is_stopping_is_not_one_that_runs_as_declared() {
    let (_, mut site) = site("poll", "pin");
    site.start();
    let check = |site: &Site| {
        std::process::Command::new(env!("CARGO_BIN_EXE_grid"))
            .args(["site", "check", "--config"])
            .arg(site.config())
            .output()
            .unwrap()
    };
    assert!(check(&site).status.success());
    // A report in the middle keeps it for a while.
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let headers = "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n";
    let epoch = "0123456789abcdef0123456789abcdef";
    let request = post(&format!("{}{headers}", report(epoch, 1, 0, true)));
    assert_eq!(local.ask(&request).unwrap().status, 100);
    site.terminate();
    until("its port is shut", || {
        std::net::TcpStream::connect(site.socket())
            .is_err()
            .then_some(())
    });
    assert!(site.runs());
    let checked = check(&site);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(said.contains("the site daemon is ending"), "{said}");
    local.send(b"0\r\n\r\n").unwrap();
    assert_eq!(local.answer().unwrap().status, 204);
    assert!(site.ended().success());
    assert!(!check(&site).status.success());
    site.start();
    assert!(check(&site).status.success());
}
