//! Connections and their bounds, on the wire.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

use site_bed::client::{Caller, get, post, report};
use site_bed::{Authority, Certified, METRICS, Site, until};

const SIGNALS: &str = "/v1/site/signals";

fn site(peers: u32) -> (Site, Vec<Certified>) {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    let peers: Vec<Certified> = (0..peers)
        .map(|n| authority.site(&format!("site-{n}")))
        .collect();
    for (n, peer) in peers.iter().enumerate() {
        site.knows_caller(&format!("site-{n}"), peer);
    }
    site.settings
        .push(("poll_interval_ms", "3600000".to_owned()));
    site.settings
        .retain(|(key, value)| *key != "poll_interval_ms" || value == "3600000");
    (site, peers)
}

fn serves_ten_local_callers(site: &Site) {
    for sequence in 1..=10 {
        let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
        assert_eq!(local.get(SIGNALS).unwrap().status, 200);
        let report = report("00000000000000000000000000000001", sequence, 0, true);
        let status = local.ask(&post(&report)).unwrap().status;
        assert_eq!(status, 204);
    }
}

/// Eight places are kept for local callers: the ninth waits for one of them.
fn serves_nine_at_once(site: &Site) {
    let locals: Vec<_> = (0..9)
        .map(|_| {
            let (to, identity) = (site.socket(), site.identity.clone());
            std::thread::spawn(move || get(to, &identity, SIGNALS).unwrap().status)
        })
        .collect();
    for local in locals {
        assert_eq!(local.join().unwrap(), 200);
    }
}

#[test]
fn a_site_past_its_share_gets_one_503_and_is_closed() {
    let (mut site, peers) = site(1);
    site.start();
    let connect = || Caller::connect(site.socket(), Some(&peers[0])).unwrap();
    let mut held: Vec<Caller> = (0..8).map(|_| connect()).collect();
    for caller in &mut held {
        assert_eq!(caller.get(SIGNALS).unwrap().status, 200);
    }
    let mut past = connect();
    let answer = past.get(SIGNALS).unwrap();
    assert_eq!(
        (answer.status, answer.header("connection")),
        (503, Some("close"))
    );
    assert!(past.is_closed());
    drop(held);
    until("its share is free again", || {
        (connect().get(SIGNALS).ok()?.status == 200).then_some(())
    });
}

#[test]
fn local_callers_are_served_while_peers_hold_all_that_they_may() {
    let (mut site, peers) = site(38);
    // Long enough that none is closed for asking nothing before the last one is there.
    site.settings.push(("head_ms", "300000".to_owned()));
    site.start();
    let mut held = Vec::new();
    for n in 0..304 {
        if let Ok(mut caller) = Caller::connect(site.socket(), Some(&peers[n / 8]))
            && caller.get(SIGNALS).is_ok_and(|answer| answer.status == 200)
        {
            held.push(caller);
        }
    }
    assert_eq!(held.len(), 248);
    assert_eq!(site.counter("grid_signals_connections{kind=\"peer\"}"), 248);
    serves_ten_local_callers(&site);
    serves_nine_at_once(&site);
}

#[test]
fn local_callers_are_served_while_300_stall_in_handshakes() {
    let (mut site, _) = site(0);
    // Long enough that they stall until all callers were served.
    site.settings.push(("handshake_ms", "10000".to_owned()));
    site.start();
    let stalled: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(site.socket()).unwrap())
        .collect();
    serves_ten_local_callers(&site);
    serves_nine_at_once(&site);
    // Each is closed when its time is up, without a byte.
    for mut stream in stalled {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
    until("their places are free", || {
        (site.counter("grid_signals_connections{kind=\"own_handshake\"}") == 0).then_some(())
    });
}

#[test]
fn a_head_that_does_not_end_and_a_connection_that_is_old_are_closed() {
    let (mut site, _) = site(0);
    site.settings.push(("head_ms", "300".to_owned()));
    site.settings.push(("connection_ms", "1500".to_owned()));
    site.start();
    let mut slow = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    slow.send(b"GET /v1/site/signals HTTP/1.1\r\nHost:")
        .unwrap();
    assert!(slow.is_closed());
    let mut old = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let mut answers = 0;
    while old.get(SIGNALS).is_ok() {
        answers += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(answers > 0);
    assert_eq!(
        get(site.socket(), &site.identity, SIGNALS).unwrap().status,
        200
    );
}

#[test]
fn a_caller_that_does_not_read_is_closed() {
    let (mut site, _) = site(0);
    let rows: String = (0..8_000)
        .map(|n| format!("a_metric_with_quite_a_name{{number=\"{n}\"}} 1\n"))
        .collect();
    let provider = site_bed::Provider::new(&rows);
    site.scrapes.push(("pool", provider.url.clone()));
    site.settings.push(("write_ms", "500".to_owned()));
    site.settings.push(("head_ms", "300000".to_owned()));
    site.start();
    until("rows are served", || {
        let page = get(site.socket(), &site.identity, SIGNALS).unwrap();
        (!page.body.is_empty()).then_some(())
    });
    let mut deaf = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    // Answers of some 60 MiB in all: no buffer between the two takes that.
    let asks = format!("GET {SIGNALS} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(64);
    deaf.send(asks.as_bytes()).unwrap();
    let held = "grid_signals_connections{kind=\"local\"}";
    until("it is closed", || (site.counter(held) == 0).then_some(()));
    assert!(site.counter("grid_signals_requests_total{code=\"200\"}") < 64);
}

#[test]
fn the_listener_is_bound_for_ipv6_and_ipv4() {
    let (mut site, _) = site(0);
    let port = 20_000 + u16::try_from(std::process::id() % 8_000).unwrap();
    site.listens = Some(("::", port));
    site.start();
    for address in ["127.0.0.1", "::1"] {
        let to = std::net::SocketAddr::new(address.parse().unwrap(), port);
        if to.is_ipv6() && std::net::TcpListener::bind("[::1]:0").is_err() {
            continue; // a machine without IPv6
        }
        assert_eq!(get(to, &site.identity, SIGNALS).unwrap().status, 200);
    }
}

#[test]
fn many_local_callers_that_come_at_once_are_all_served() {
    let (mut site, _) = site(0);
    site.start();
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let (to, identity) = (site.socket(), site.identity.clone());
            std::thread::spawn(move || get(to, &identity, SIGNALS).map(|answer| answer.status))
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.join().unwrap().unwrap(), 200);
    }
}

#[test]
fn connections_that_say_nothing_do_not_hide_the_metrics() {
    let mut site = Site::new("atlas", &Authority::new());
    site.start();
    // Those that were there first are closed, and the last is still waited for when the metrics are shown: so none of them
    // had to run out of time. A machine that stalls for as long as that gets another try.
    until("the metrics are shown beside those that are idle", || {
        let idle: Vec<_> = (0..150)
            .map(|_| TcpStream::connect((site.address, METRICS)).unwrap())
            .collect();
        assert!(site.metrics().contains("grid_site_info{"));
        let (mut first, mut last) = (idle.first().unwrap(), idle.last().unwrap());
        last.set_nonblocking(true).unwrap();
        let read = last.read(&mut [0; 1]);
        let is_held = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        // As many as there may be are held, and no more.
        first
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let is_closed = matches!(first.read(&mut [0; 1]), Ok(0));
        (is_held && is_closed).then_some(())
    });
}
