//! A site under poll serves its own gateways and its peers, and nobody else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use site_bed::client::{Answer, Caller, get};
use site_bed::{Ask, Authority, Certified, Provider, Site, until};

const SIGNALS: &str = "/v1/site/signals";

/// A site that scrapes one provider and knows one peer, whose certificate comes with it.
fn site(authority: &Authority, trust: &'static str) -> (Site, Certified, Provider) {
    let provider =
        Provider::new("# TYPE queue gauge\nqueue 3\nsent_total 9\n# TYPE sent_total counter\n");
    let mut site = Site::new("atlas", authority);
    site.trust = trust;
    site.scrapes.push(("broker", provider.url.clone()));
    let peer = authority.site("borealis");
    site.knows_caller("borealis", &peer);
    site.start();
    (site, peer, provider)
}

/// Waits until the site serves rows to a caller.
fn served(site: &Site, caller: &Certified) -> Answer {
    until("rows are served", || {
        let answer = get(site.socket(), caller, SIGNALS).unwrap();
        (!answer.body.is_empty()).then_some(answer)
    })
}

/// Whether a caller is closed before HTTP.
fn is_nobody(site: &Site, caller: Option<&Certified>) -> bool {
    Caller::connect(site.socket(), caller)
        .and_then(|mut caller| caller.get(SIGNALS))
        .is_err()
}

#[test]
fn a_site_serves_its_gateways_and_its_peers_under_both_trusts() {
    let authority = Authority::new();
    for trust in ["pin", "spiffe"] {
        let (site, peer, _provider) = site(&authority, trust);
        for caller in [&site.identity, &peer] {
            let answer = served(&site, caller);
            assert_eq!(answer.status, 200);
            assert_eq!(
                answer.header("content-type"),
                Some("text/plain; version=0.0.4; charset=utf-8")
            );
            assert!(answer.header("age").unwrap().parse::<u64>().unwrap() < 120);
            assert!(answer.header("date").unwrap().ends_with(" GMT"));
            let line = answer.body.trim_end();
            assert!(
                line.starts_with("queue{grid_provider=\"broker\",grid_site=\"atlas\"} 3 "),
                "{line}"
            );
            assert_eq!(line.lines().count(), 1);
        }
        let picked =
            |query: &str| get(site.socket(), &peer, &format!("{SIGNALS}?{query}")).unwrap();
        assert_eq!(
            picked("target=broker&collect[]=queue").body.lines().count(),
            1
        );
        assert_eq!(picked("target=other").body, "");
        assert_eq!(picked("target=%zz").status, 400);
        let mut caller = Caller::connect(site.socket(), Some(&peer)).unwrap();
        assert_eq!(caller.get("/").unwrap().status, 404);
        let refused = caller
            .ask("DELETE /v1/site/signals HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        assert_eq!(
            (refused.status, refused.header("allow")),
            (405, Some("GET, HEAD"))
        );
        let mut older = Caller::with(site.socket(), Some(&peer), &rustls::version::TLS12).unwrap();
        assert_eq!(older.get(SIGNALS).unwrap().status, 200);
        assert_eq!(older.shown(), site.identity.der);
    }
}

#[test]
fn a_stranger_is_closed_before_http_under_both_trusts() {
    let authority = Authority::new();
    let elsewhere = Authority::new();
    let both = [ServerAuth, ClientAuth];
    for trust in ["pin", "spiffe"] {
        let (site, peer, _provider) = site(&authority, trust);
        let ask = |uris: &[&str], until| {
            authority.issue(&Ask {
                uris,
                until,
                usages: &both,
            })
        };
        let own_id = "spiffe://grid.internal/site/atlas";
        let peers_id = "spiffe://grid.internal/site/borealis";
        for (who, stranger) in [
            ("another mesh's", elsewhere.site("borealis")),
            ("an undeclared site", authority.site("cygnus")),
            ("the own SPIFFE id on another leaf", authority.site("atlas")),
            ("two SPIFFE ids", ask(&[peers_id, own_id], 2999)),
            ("the same SPIFFE id twice", ask(&[peers_id, peers_id], 2999)),
            ("no SPIFFE id", ask(&[], 2999)),
            ("an expired one", ask(&[peers_id], 2001)),
            (
                "another trust domain",
                ask(&["spiffe://example.org/site/borealis"], 2999),
            ),
        ] {
            assert!(is_nobody(&site, Some(&stranger)), "{who} under {trust}");
        }
        let usage = authority.issue(&Ask {
            uris: &[peers_id],
            until: 2999,
            usages: &[ServerAuth],
        });
        assert!(
            is_nobody(&site, Some(&usage)),
            "a server's certificate under {trust}"
        );
        assert!(is_nobody(&site, None), "no certificate under {trust}");
        assert_eq!(get(site.socket(), &peer, SIGNALS).unwrap().status, 200);
        assert!(site.counter("grid_signals_handshakes_failed_total{reason=\"failed\"}") >= 10);
    }
}

#[test]
fn an_expired_peer_is_refused_under_pin_too() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    let expired = authority.issue(&Ask {
        uris: &["spiffe://grid.internal/site/borealis"],
        until: 2001,
        usages: &[ServerAuth, ClientAuth],
    });
    site.knows_caller("borealis", &expired);
    site.start();
    assert!(is_nobody(&site, Some(&expired)));
}

#[test]
fn a_pin_that_is_taken_away_ends_the_connection_of_its_peer() {
    let authority = Authority::new();
    let (mut site, peer, _provider) = site(&authority, "pin");
    let mut caller = Caller::connect(site.socket(), Some(&peer)).unwrap();
    assert_eq!(caller.get(SIGNALS).unwrap().status, 200);
    let renewed = authority.site("borealis");
    site.peers[0].2 = vec![renewed.pin().to_uppercase()];
    site.write();
    until("the new pin is known", || {
        get(site.socket(), &renewed, SIGNALS).ok()
    });
    assert!(caller.get(SIGNALS).is_err());
    assert!(is_nobody(&site, Some(&peer)));
    assert!(site.runs());
}

#[test]
fn a_provider_that_shows_nothing_to_read_is_not_one_that_was_scraped() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    let nothing = [
        ("none", ""),
        ("page", "<html>\n<h1>Welcome</h1>\n</html>\n"),
        ("windows", "# TYPE queue gauge\r\nqueue 3\r\n"),
    ];
    let providers = nothing.map(|(_, body)| Provider::new(body));
    for ((name, _), provider) in nothing.iter().zip(&providers) {
        site.scrapes.push((name, provider.url.clone()));
    }
    site.start();
    let scrapes = |name: &str, outcome: &str| {
        site.counter(&format!(
            "grid_provider_scrape_total{{provider=\"{name}\",outcome=\"{outcome}\"}}"
        ))
    };
    for ((name, _), provider) in nothing.iter().zip(&providers) {
        until("it is counted", || {
            (scrapes(name, "empty") >= 2).then_some(())
        });
        assert_eq!(scrapes(name, "success"), 0);
        let told = format!("a provider shows nothing that is a sample provider={name}");
        assert_eq!(site.log().matches(&told).count(), 1, "{}", site.log());
        // A counter is not served, and is a sample all the same.
        provider.shows("# TYPE sent counter\nsent 3\n");
        until("it is scraped", || {
            (scrapes(name, "success") >= 1).then_some(())
        });
    }
}

#[test]
fn head_is_answered_as_get_is_without_a_body() {
    let authority = Authority::new();
    let (site, peer, _provider) = site(&authority, "pin");
    let body = served(&site, &peer).body;
    let mut caller = Caller::connect(site.socket(), Some(&peer)).unwrap();
    caller
        .send(b"HEAD /v1/site/signals HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let head = caller.head().unwrap();
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(
        head.header("content-length"),
        Some(&*body.len().to_string())
    );
    assert!(head.header("age").is_some() && head.header("date").is_some());
    // Nothing of a body is left on the connection.
    assert_eq!(caller.get(SIGNALS).unwrap().status, 200);
}

#[test]
fn a_request_without_a_host_or_with_two_is_400() {
    let authority = Authority::new();
    let (site, _, _provider) = site(&authority, "pin");
    for (version, hosts, status) in [
        ("1.1", "", 400),
        ("1.1", "Host: x\r\nHost: x\r\n", 400),
        ("1.1", "Host: x\r\nHost: y\r\n", 400),
        ("1.1", "Host: x\r\n", 200),
        ("1.0", "", 200),
    ] {
        let mut caller = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
        let answer = caller.ask(&format!("GET {SIGNALS} HTTP/{version}\r\n{hosts}\r\n"));
        assert_eq!(answer.unwrap().status, status, "{version} {hosts:?}");
    }
}
