//! `grid signals diff`: which sites a push would restart, and what must be reached first (DESIGN.md, section 7).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use serde_json::Value;
use support::Bench;
use support::schema::hold;

/// Three local machines that are sites, all pushed.
fn pushed(signals: &str) -> Bench {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    let node = |name: &str| format!("[nodes.{name}]\nroot = {:?}\n", bench.path(name));
    let text = format!(
        "[mesh]\nname = \"prod\"\n[signals]\ncheck = [\"true\"]\n{signals}\n[defaults]\ncourier = \"local\"\n{}{}{}\
         [services.pool]\nnode = \"atlas\"\n",
        node("atlas"),
        node("borealis"),
        node("cygnus")
    );
    bench.file("mesh.toml", &text);
    bench.grid(&["push", "--all"]).exits(0);
    bench
}

fn told(bench: &Bench) -> String {
    let seen = bench.grid(&["signals", "diff", "--json"]).exits(0);
    let view: Value = serde_json::from_slice(seen.raw()).unwrap();
    hold("signals-diff", &[view]);
    bench.grid(&["signals", "diff"]).exits(0).stdout()
}

#[test]
fn another_mode_restarts_every_site_and_what_changes_nothing_is_not_named() {
    let bench = pushed("");
    assert_eq!(told(&bench), "");
    bench.grid(&["signals", "diff", "--exit-code"]).exits(0);
    bench.edit(
        "[signals]\n",
        "[signals]\nmode = \"poll\"\nregion = \"eu\"\n",
    );
    insta::assert_snapshot!(told(&bench), @r#"
    atlas     restarts  mode = "poll" is declared
    borealis  restarts  mode = "poll" is declared
    cygnus    restarts  mode = "poll" is declared
    "#);
    bench.grid(&["signals", "diff", "--exit-code"]).exits(6);
    bench
        .grid(&["signals", "diff", "atlas", "--exit-code"])
        .exits(6);
    bench.grid(&["signals", "diff", "altas"]).exits(2);
    // Nothing was sent and nothing minted: the push has it all to do still.
    bench.grid(&["push", "--all"]).exits(0);
    assert_eq!(told(&bench), "");
}

#[test]
fn another_trust_is_taken_up_live_under_gossip_and_restarts_under_poll() {
    let bench = pushed("");
    bench.edit("[signals]\n", "[signals]\ntrust = \"spiffe\"\n");
    insta::assert_snapshot!(told(&bench), @r#"
    atlas     live      takes up live: trust = "spiffe", that its peers have no pins any more
    borealis  live      takes up live: trust = "spiffe", that its peers have no pins any more
    cygnus    live      takes up live: trust = "spiffe", that its peers have no pins any more
    "#);
    let bench = pushed("mode = \"poll\"");
    bench.edit(
        "[signals]\n",
        "[signals]\ntrust = \"spiffe\"\nport = 9191\n",
    );
    insta::assert_snapshot!(told(&bench), @r#"
    atlas     restarts  trust = "spiffe" is declared; port changed; takes up live: that its peers have no pins any more
    borealis  restarts  trust = "spiffe" is declared; port changed; takes up live: that its peers have no pins any more
    cygnus    restarts  trust = "spiffe" is declared; port changed; takes up live: that its peers have no pins any more
    "#);
}

#[test]
fn a_renewal_restarts_its_site_once_the_named_peers_know_it_and_changes_pins_live() {
    let bench = pushed("mode = \"poll\"");
    bench
        .grid(&["hold", "cygnus", "in the rack on Monday"])
        .exits(0);
    bench.grid(&["rotate", "--site", "atlas"]).exits(0);
    insta::assert_snapshot!(told(&bench), @"
    atlas     restarts  its identity is renewed; takes up live: its own pins, in the list of sites
                        first these have to acknowledge it: borealis, cygnus
    borealis  live      takes up live: pins of atlas
    cygnus    live      takes up live: pins of atlas; on hold: in the rack on Monday, so a push leaves it as it is
    ");
    bench.grid(&["unhold", "cygnus"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    assert_eq!(told(&bench), "");
    let bench = pushed("mode = \"poll\"\ntrust = \"spiffe\"");
    bench.grid(&["rotate", "--site", "atlas"]).exits(0);
    insta::assert_snapshot!(told(&bench), @r#"
    atlas  live      takes up live: its renewed certificate
    "#);
}

#[test]
fn sites_that_come_and_leave_and_what_is_scraped_are_told_apart() {
    let bench = pushed("mode = \"poll\"");
    bench.edit(
        "[services.pool]\n",
        "[services.pool]\nmetrics = \"http://127.0.0.1:9/metrics\"\n",
    );
    bench.edit("[nodes.cygnus]", "[nodes.delphi]");
    insta::assert_snapshot!(told(&bench), @r#"
    atlas     live      takes up live: what it scrapes, new peers delphi, peers that leave cygnus
    borealis  live      takes up live: new peers delphi, peers that leave cygnus
    delphi    comes
    "#);
    let pin = "ab".repeat(32);
    bench.edit(
        "[nodes.borealis]\n",
        &format!("[nodes.borealis]\npins = [\"{pin}\"]\n"),
    );
    let said = bench
        .grid(&["signals", "diff", "borealis"])
        .exits(0)
        .stdout();
    assert!(said.contains("leaves"), "{said}");
}

#[test]
fn a_site_whose_own_address_changes_is_told_too_and_a_mesh_without_sites_says_so() {
    let bench = pushed("mode = \"poll\"");
    bench.edit(
        "[nodes.borealis]\n",
        "[nodes.borealis]\naddress = \"10.0.0.2\"\n",
    );
    insta::assert_snapshot!(told(&bench), @"
    atlas     live      takes up live: addresses of borealis
    borealis  live      takes up live: its own address, in the list of sites
    cygnus    live      takes up live: addresses of borealis
    ");
    let bench = Bench::new("[mesh]\nname = \"prod\"\n[nodes.atlas]\n");
    let said = bench.grid(&["signals", "diff"]).exits(0).all();
    assert!(said.contains("there are no sites"), "{said}");
}
