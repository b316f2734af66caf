//! A site whose own certificate is one that its peers refuse: said by its status, its log, its metrics and the check of a
//! push; and a site that its peers admit, whatever is replaced.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use std::process::Output;

use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use site_bed::client::{Caller, post, report};
use site_bed::{Ask, Authority, Certified, Site, until};

const ADMITTED: &str = "grid_site_certificate_admitted";
const EPOCH: &str = "0123456789abcdef0123456789abcdef";

fn check(site: &Site) -> Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_grid"))
        .args(["site", "check", "--config"])
        .arg(site.config())
        .output()
        .unwrap()
}

fn waits(site: &Site) -> String {
    let status = site.json("status.json");
    status.map_or(String::new(), |status| status["waits_for"].to_string())
}

/// Holds that a site with this identity is told to be refused by its peers for this reason, and takes reports.
fn is_refused(site: &mut Site, identity: Certified, why: &str) {
    site.identity = identity;
    site.start();
    let checked = check(site);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    for part in [
        why,
        "the site's peers refuse its certificate",
        "grid rotate --site",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    until("the status says it", || {
        let waits = waits(site);
        (waits.contains(why) && waits.contains("a certificate that its peers admit")).then_some(())
    });
    until("the log says it, once", || {
        let log = site.log();
        (log.matches("the site's peers refuse its certificate")
            .count()
            == 1)
            .then_some(())
    });
    assert!(site.metrics().contains(&format!("{ADMITTED} 0\n")));
    // Its own gateways know it all the same.
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let answer = local.ask(&post(&report(EPOCH, 1, 0, true))).unwrap();
    assert_eq!(answer.status, 204);
}

fn is_admitted(site: &Site) {
    until("it is admitted", || {
        (check(site).status.success() && site.counter(ADMITTED) == 1 && waits(site) == "null")
            .then_some(())
    });
}

fn issued(authority: &Authority, uris: &[&str], until: i32) -> Certified {
    let usages = &[ServerAuth, ClientAuth];
    authority.issue(&Ask {
        uris,
        until,
        usages,
    })
}

#[test]
fn under_spiffe_a_certificate_that_its_peers_refuse_is_said_and_fails_the_check() {
    let authority = Authority::new();
    let own = "spiffe://grid.internal/site/atlas";
    let wrong = [
        (
            authority.site("borealis"),
            "it is that of the site borealis, and this one is atlas",
        ),
        (
            issued(&authority, &[], 2999),
            "it does not have exactly one SPIFFE name",
        ),
        (
            issued(&authority, &[own, own], 2999),
            "it does not have exactly one SPIFFE name",
        ),
        (
            issued(&authority, &["spiffe://example.org/site/atlas"], 2999),
            "exactly one SPIFFE name",
        ),
        (issued(&authority, &[own], 2001), "it expired on 2001-01-01"),
        (
            Authority::new().site("atlas"),
            "no authority of authorities.pem issued it",
        ),
        (
            authority.issue(&Ask {
                uris: &[own],
                until: 2999,
                usages: &[ServerAuth],
            }),
            "no authority of authorities.pem issued it",
        ),
    ];
    for (identity, why) in wrong {
        let mut site = Site::new("atlas", &authority);
        site.trust = "spiffe";
        is_refused(&mut site, identity, why);
        // One that is right is taken up live.
        site.identity = authority.site("atlas");
        site.write();
        is_admitted(&site);
        assert!(site.runs());
        assert!(site.log().contains("admit its certificate again"));
    }
}

#[test]
fn under_pin_a_certificate_that_is_none_of_its_own_pins_is_said_and_fails_the_check() {
    let authority = Authority::new();
    let (right, wrong) = (authority.site("atlas"), authority.site("atlas"));
    let expired = issued(&authority, &["spiffe://grid.internal/site/atlas"], 2001);
    for (pins, identity, why) in [
        (
            vec![right.pin()],
            wrong.clone(),
            "its SHA-256 is not among the pins of atlas",
        ),
        (
            vec![],
            right.clone(),
            "its SHA-256 is not among the pins of atlas",
        ),
        (
            vec![expired.pin()],
            expired.clone(),
            "it expired on 2001-01-01",
        ),
    ] {
        let mut site = Site::new("atlas", &authority);
        site.peers.push(("atlas".to_owned(), site.address, pins));
        is_refused(&mut site, identity.clone(), why);
        if identity.pin() != expired.pin() {
            // Its pin is put beside the other, as in a renewal, and the other goes.
            for pins in [vec![right.pin(), identity.pin()], vec![identity.pin()]] {
                site.peers[0].2 = pins;
                site.peers[0].2.dedup();
                site.write();
                is_admitted(&site);
            }
        }
        assert!(site.runs());
    }
}

#[test]
fn under_gossip_nobody_is_there_to_refuse_a_site() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    (site.mode, site.trust) = ("gossip", "spiffe");
    site.identity = issued(&authority, &["spiffe://grid.internal/site/atlas"], 2001);
    site.start();
    assert!(check(&site).status.success());
    let metrics = site.metrics();
    assert!(!metrics.contains(&format!("\n{ADMITTED} ")), "{metrics}");
}
