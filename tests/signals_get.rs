//! `grid signals get` against real daemons: who is asked, as whom, and what is said where nobody can be (DESIGN.md, section 7).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod site_bed;
mod support;

use serde_json::Value;
use site_bed::{Authority, Certified, PORT, Provider, Site, until};
use support::Bench;
use support::schema::hold;

/// A mesh of one local machine, at the address of a daemon that the test runs.
fn bench(daemon: &Site, signals: &str, node: &str) -> Bench {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    let text = format!(
        "[mesh]\nname = \"prod\"\n[signals]\nport = {PORT}\ncheck = [\"true\"]\n{signals}\n[nodes.atlas]\ncourier = \"local\"\n\
         address = \"{}\"\nroot = {:?}\n{node}\n",
        daemon.address,
        bench.path("atlas")
    );
    bench.file("mesh.toml", &text);
    bench
}

/// The identity that a push delivered.
fn delivered(bench: &Bench) -> Certified {
    let file = |name: &str| bench.read(&format!("atlas/current/services/site/{name}"));
    let (pem, key) = (file("identity.pem"), file("identity.key"));
    Certified {
        der: pem::parse(&pem).unwrap().into_contents(),
        key_der: pem::parse(&key).unwrap().into_contents(),
        pem,
        key,
    }
}

fn rows(bench: &Bench, arguments: &[&str]) -> Option<Value> {
    let seen = bench.grid(&[arguments, &["--json"]].concat()).exits(0);
    let view: Value = serde_json::from_slice(seen.raw()).unwrap();
    hold("signals", std::slice::from_ref(&view));
    let has_rows = !view["signals"].as_array().unwrap().is_empty();
    has_rows.then_some(view)
}

#[test]
fn a_site_is_read_with_the_identity_that_the_store_keeps_of_it_under_both_trusts() {
    for trust in ["pin", "spiffe"] {
        let mut site = Site::new("atlas", &Authority::new());
        let provider =
            Provider::new("llm_d_epp_average_queue_size 3\nanything{m=\"\u{1b}[31m\"} 0.5\n");
        let bench = bench(&site, &format!("mode = \"poll\"\ntrust = \"{trust}\""), "");
        let before = bench.grid(&["signals", "get", "atlas"]).exits(1).all();
        assert!(before.contains("atlas is no site yet"), "{before}");
        bench.grid(&["push", "--all"]).exits(0);
        site.trust = trust;
        site.identity = delivered(&bench);
        site.authorities = bench.read("atlas/current/services/site/authorities.pem");
        site.scrapes.push(("pool", provider.url.clone()));
        site.start();
        let view = until("the site shows what it scrapes", || {
            rows(&bench, &["signals", "get", "atlas"])
        });
        assert_eq!(view["signals"][1]["metric"], "llm_d_epp_average_queue_size");
        assert_eq!(view["signals"][1]["value"], 3.0);
        let told = bench.grid(&["signals", "get", "atlas"]).exits(0).stdout();
        assert!(
            told.contains("llm_d_epp_average_queue_size  3      "),
            "{told}"
        );
        assert!(!told.contains('\u{1b}'), "{told}");
        let other = ["signals", "get", "atlas", "--target", "other"];
        assert_eq!(rows(&bench, &other), None);

        // A peer with something to scrape, of which the site knows nothing yet.
        let silent = "nothing of borealis: atlas has not polled them yet";
        let said = bench.grid(&["signals", "get", "atlas"]).exits(0).all();
        assert!(!said.contains("has not polled"), "{said}");
        bench.edit(
            "[signals]\n",
            "[nodes.borealis]\naddress = \"10.0.0.2\"\n[services.broker]\nnode = \"borealis\"\n\
             metrics = \"http://127.0.0.1:9/metrics\"\n[signals]\nsettings = { special_addresses = true }\n",
        );
        let said = bench.grid(&["signals", "get", "atlas"]).exits(0).all();
        assert!(said.contains(silent), "{said}");

        // Another site answers there, with a certificate of an authority that nobody here trusts.
        site.kill();
        site.identity = Authority::new().site("atlas");
        site.start();
        let refused = bench.grid(&["signals", "get", "atlas"]).exits(4).all();
        let why = match trust {
            "pin" => "no peer is pinned to its certificate",
            _ => "no authority of the mesh issued its certificate",
        };
        assert!(refused.contains(why), "{refused}");
        site.kill();
        let refused = bench.grid(&["signals", "get", "atlas"]).exits(4).all();
        assert!(refused.contains("connection refused"), "{refused}");
    }
}

#[test]
fn a_site_with_an_identity_of_its_own_is_read_with_a_certificate_that_is_named() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    let provider = Provider::new("llm_d_epp_average_queue_size 3\n");
    site.scrapes.push(("pool", provider.url.clone()));
    let pins = format!("pins = [\"{}\"]", site.identity.pin());
    let bench = bench(&site, "mode = \"poll\"", &pins);
    site.start();
    let refused = bench.grid(&["signals", "get", "atlas"]).exits(2).all();
    assert!(
        refused.contains("--certificate FILE --key FILE"),
        "{refused}"
    );
    bench.file("own.pem", &site.identity.pem);
    bench.file("own.key", &site.identity.key);
    let named = [
        "signals",
        "get",
        "atlas",
        "--certificate",
        "own.pem",
        "--key",
        "own.key",
    ];
    until("the site shows what it scrapes", || rows(&bench, &named));
    // The site does not know this one: it ends the connection, and says why only to its own log.
    let stranger = authority.site("cygnus");
    bench.file("own.pem", &stranger.pem);
    bench.file("own.key", &stranger.key);
    let refused = bench.grid(&named).exits(4).all();
    assert!(
        refused.contains("does not know the certificate"),
        "{refused}"
    );
    bench.file("own.pem", &"x".repeat(64 * 1024 + 1));
    let refused = bench.grid(&named).exits(2).all();
    assert!(
        refused.contains("it is larger than 65536 bytes"),
        "{refused}"
    );
    bench.file("own.pem", "");
    let refused = bench.grid(&named).exits(4).all();
    assert!(
        refused.contains("it holds no certificate in PEM"),
        "{refused}"
    );
    bench.grid(&named[..5]).exits(2);
}

#[test]
fn under_gossip_there_is_nobody_to_ask_and_it_says_so() {
    let site = Site::new("atlas", &Authority::new());
    let bench = bench(&site, "", "");
    bench.grid(&["push", "--all"]).exits(0);
    let refused = bench.grid(&["signals", "get", "atlas"]).exits(1).all();
    assert!(
        refused.contains("under gossip a site has no listener"),
        "{refused}"
    );
    // What is declared and was not pushed yet changes nothing at the site.
    bench.edit("[signals]\n", "[signals]\nmode = \"poll\"\n");
    let refused = bench.grid(&["signals", "get", "atlas"]).exits(1).all();
    assert!(
        refused.contains("under gossip a site has no listener"),
        "{refused}"
    );
    bench.grid(&["signals", "get", "altas"]).exits(2);
}

#[test]
fn a_site_whose_identity_was_minted_and_not_delivered_is_told_apart_from_one_without() {
    let site = Site::new("atlas", &Authority::new());
    let bench = bench(&site, "mode = \"poll\"", "");
    let get = ["signals", "get", "atlas"];
    let before = bench.grid(&get).exits(1);
    // Where its folder would be there is a file.
    std::fs::write(bench.path("atlas"), "").unwrap();
    bench.grid(&["push", "atlas"]).exits(4);
    let after = bench.grid(&get).exits(1);
    insta::assert_snapshot!(support::told(&[before, after]), @"
    $ grid signals get atlas
    ! error: atlas is no site yet: no push has given it an identity
    ! next: `grid push atlas` does
    [exit 1]
    $ grid signals get atlas
    ! error: atlas is no site yet: an identity was minted for it, and no push has delivered that
    ! next: `grid push atlas` sends it
    [exit 1]
    ");
}
