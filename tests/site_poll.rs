//! Two sites: what one scrapes is served, pulled by the other and written to its overlay; what a peer may not say is not.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use serde_json::Value;
use site_bed::client::get;
use site_bed::{Authority, Provider, Site, until};

const SIGNALS: &str = "/v1/site/signals";

/// The row of a provider at a site, in a site's overlay.
fn row(of: &Site, site: &str, provider: &str) -> Option<Value> {
    let overlay = of.json("overlay.json")?;
    let rows = overlay["rows"].as_array()?.clone();
    rows.into_iter()
        .find(|row| row["site"] == site && row["provider"] == provider)
}

fn depth(of: &Site, site: &str, provider: &str) -> Option<f64> {
    row(of, site, provider)?["signals"]["queue_depth"]["value"].as_f64()
}

fn two(trust: &'static str) -> (Authority, Site, Site, Provider) {
    let authority = Authority::new();
    let provider = Provider::new("llm_d_epp_average_queue_size 3\nunknown_to_peers 1\n");
    let (mut atlas, mut borealis) = (
        Site::new("atlas", &authority),
        Site::new("borealis", &authority),
    );
    for site in [&mut atlas, &mut borealis] {
        site.trust = trust;
    }
    atlas.scrapes.push(("pool", provider.url.clone()));
    atlas.knows(&borealis);
    borealis.knows(&atlas);
    atlas.start();
    borealis.start();
    (authority, atlas, borealis, provider)
}

#[test]
fn what_a_site_scrapes_is_in_the_overlays_of_both_under_both_trusts() {
    for trust in ["pin", "spiffe"] {
        let (_authority, atlas, borealis, provider) = two(trust);
        for site in [&atlas, &borealis] {
            until("the load is in the overlay", || {
                (depth(site, "atlas", "pool") == Some(3.0)).then_some(())
            });
            let row = row(site, "atlas", "pool").unwrap();
            assert!(row.get("score").is_none(), "nothing is scored under poll");
            assert_eq!(row["signals"]["ready"]["state"], "missing");
        }
        // Local sees the peer's rows, under the peer's name; what is not accepted is left out, and is no fault of the peer's.
        let seen = get(borealis.socket(), &borealis.identity, SIGNALS)
            .unwrap()
            .body;
        assert!(
            seen.contains(
                "llm_d_epp_average_queue_size{grid_provider=\"pool\",grid_site=\"atlas\"} 3 "
            ),
            "{seen}"
        );
        assert!(!seen.contains("unknown_to_peers"));
        assert!(borealis.counter("grid_peer_poll_total{peer=\"atlas\",outcome=\"success\"}") >= 1);
        let metrics = borealis.metrics();
        assert!(
            !metrics.contains("grid_peer_signals_refused_total{"),
            "{metrics}"
        );
        // A peer is not shown what was pulled from others.
        let shown = get(borealis.socket(), &atlas.identity, SIGNALS)
            .unwrap()
            .body;
        assert_eq!(shown, "");
        provider.shows("llm_d_epp_average_queue_size 8\n");
        until("the new load crossed", || {
            (depth(&borealis, "atlas", "pool") == Some(8.0)).then_some(())
        });
    }
}

#[test]
fn a_site_that_is_not_the_one_that_was_dialled_is_not_read() {
    for trust in ["pin", "spiffe"] {
        let (authority, atlas, mut borealis, _provider) = two(trust);
        // Cygnus is declared at the address of atlas.
        let cygnus = authority.site("cygnus");
        borealis.peers = vec![("cygnus".to_owned(), atlas.address, vec![cygnus.pin()])];
        borealis.write();
        let refused = "grid_peer_poll_total{peer=\"cygnus\",outcome=\"identity\"}";
        until("it is refused", || {
            (borealis.counter(refused) >= 2).then_some(())
        });
        assert!(row(&borealis, "cygnus", "pool").is_none());
        assert!(
            row(&borealis, "atlas", "pool").is_none(),
            "a peer that left is forgotten"
        );
    }
}

#[test]
fn a_peer_without_pins_is_refused_both_ways() {
    let authority = Authority::new();
    let (mut atlas, mut borealis) = (
        Site::new("atlas", &authority),
        Site::new("borealis", &authority),
    );
    atlas.knows(&borealis);
    borealis.knows(&atlas);
    borealis.peers[0].2.clear();
    atlas.start();
    borealis.start();
    let polled = "grid_peer_poll_total{peer=\"atlas\",outcome=\"identity\"}";
    until("it is not read", || {
        (borealis.counter(polled) >= 1).then_some(())
    });
    assert!(get(borealis.socket(), &atlas.identity, SIGNALS).is_err());
    let log = borealis.log();
    assert!(
        log.contains("error=no peer is pinned to its certificate"),
        "{log}"
    );
}

#[test]
fn an_address_of_the_machine_itself_is_not_dialled() {
    let authority = Authority::new();
    let (mut atlas, borealis) = (
        Site::new("atlas", &authority),
        Site::new("borealis", &authority),
    );
    atlas.settings[0].1 = "false".to_owned();
    atlas.knows(&borealis);
    atlas.start();
    let refused = "grid_peer_poll_total{peer=\"borealis\",outcome=\"address\"}";
    until("it is refused", || {
        (atlas.counter(refused) >= 1).then_some(())
    });
}

#[test]
fn a_mapped_metric_of_the_declaration_crosses_as_a_queue() {
    let authority = Authority::new();
    let provider = Provider::new(
        "# TYPE rabbitmq_queue_messages gauge\nrabbitmq_queue_messages{queue=\"a\"} 4\nrabbitmq_queue_messages{queue=\"b\"} 5\n",
    );
    let (mut atlas, mut borealis) = (
        Site::new("atlas", &authority),
        Site::new("borealis", &authority),
    );
    atlas.scrapes.push(("broker", provider.url.clone()));
    for site in [&mut atlas, &mut borealis] {
        site.more = "[[watch]]\nprovider = \"broker\"\n[[watch.map]]\nsignal = \"queue-depth\"\nmetric = \"rabbitmq_queue_messages\"\n";
    }
    atlas.knows(&borealis);
    borealis.knows(&atlas);
    atlas.start();
    borealis.start();
    until("the queues crossed", || {
        (depth(&borealis, "atlas", "broker") == Some(9.0)).then_some(())
    });
}
