//! A site's identity is renewed while its peer polls it: no poll fails after its retries, under both trusts.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use site_bed::{Authority, Site, until};

fn polls(site: &Site, outcome: &str) -> u64 {
    site.counter(&format!(
        "grid_peer_poll_total{{peer=\"atlas\",outcome=\"{outcome}\"}}"
    ))
}

/// Waits for some more successful polls, and holds that none failed since the pair was up.
fn no_poll_fails(borealis: &Site, before: &[u64]) {
    let succeeded = polls(borealis, "success");
    until("it is polled again and again", || {
        (polls(borealis, "success") >= succeeded + 4).then_some(())
    });
    assert_eq!(failures(borealis), before, "{}", borealis.log());
}

fn failures(site: &Site) -> Vec<u64> {
    [
        "timeout",
        "refused",
        "transport",
        "server_error",
        "status",
        "identity",
        "address",
        "too_large",
        "no_date",
    ]
    .map(|outcome| polls(site, outcome))
    .to_vec()
}

fn pair(authority: &Authority, trust: &'static str) -> (Site, Site) {
    let (mut atlas, mut borealis) = (
        Site::new("atlas", authority),
        Site::new("borealis", authority),
    );
    for site in [&mut atlas, &mut borealis] {
        site.trust = trust;
    }
    atlas.knows(&borealis);
    borealis.knows(&atlas);
    atlas.start();
    borealis.start();
    until("it is polled", || {
        (polls(&borealis, "success") >= 1).then_some(())
    });
    (atlas, borealis)
}

#[test]
fn under_spiffe_a_renewed_certificate_fails_no_poll() {
    let authority = Authority::new();
    let (mut atlas, borealis) = pair(&authority, "spiffe");
    let before = failures(&borealis);
    for _ in 0..3 {
        atlas.identity = authority.site("atlas");
        atlas.write();
        let pin = atlas.identity.pin();
        until("it is taken up", || {
            (atlas.json("status.json")?["certificate"] == pin).then_some(())
        });
        no_poll_fails(&borealis, &before);
    }
    assert!(atlas.runs());
}

#[test]
fn under_pin_both_pins_then_a_restart_then_one_pin_fails_no_poll() {
    let authority = Authority::new();
    let (mut atlas, mut borealis) = pair(&authority, "pin");
    let before = failures(&borealis);
    // All peers get the new pin beside the old, then the site gets the identity and is restarted, then the old pin goes.
    let renewed = authority.site("atlas");
    borealis.peers[0].2.push(renewed.pin());
    borealis.write();
    no_poll_fails(&borealis, &before);
    atlas.identity = renewed.clone();
    atlas.write();
    assert_eq!(atlas.ended().code(), Some(75));
    atlas.start();
    no_poll_fails(&borealis, &before);
    borealis.peers[0].2 = vec![renewed.pin()];
    borealis.write();
    no_poll_fails(&borealis, &before);
    assert!(borealis.runs());
}
