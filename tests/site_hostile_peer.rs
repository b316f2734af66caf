//! Peers that answer what they may not: what is kept is within its bounds, and counted is why the rest is not.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use site_bed::client::get;
use site_bed::{Authority, Certified, PORT, Site, address, until};

/// A peer that answers every request with the same bytes.
struct Peer {
    address: Ipv4Addr,
    asked: Arc<AtomicUsize>,
}

impl Peer {
    fn new(certified: &Certified, authority: &Authority, answer: Vec<u8>) -> Self {
        let address = address();
        let listener = TcpListener::bind((address, PORT)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(authority.der.clone().into()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.key_der.clone()));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![certified.der.clone().into()], key)
            .unwrap();
        let config = Arc::new(config);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let mut stream =
                    StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                if stream.read(&mut [0; 4096]).is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                    let _ = stream.write_all(&answer);
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        Self { address, asked }
    }
}

/// An answer with the `Date` of now.
fn answer(status: &str, body: &str) -> Vec<u8> {
    let date = DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&Timestamp::now())
        .unwrap();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nDate: {date}\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// A site that polls borealis, which answers that.
fn polls(answer: Vec<u8>) -> (Site, Peer) {
    let authority = Authority::new();
    let certified = authority.site("borealis");
    let peer = Peer::new(&certified, &authority, answer);
    let mut site = Site::new("atlas", &authority);
    site.trust = "spiffe";
    site.peers
        .push(("borealis".to_owned(), peer.address, vec![certified.pin()]));
    site.start();
    (site, peer)
}

/// What atlas holds of its peers.
fn rows(site: &Site) -> String {
    get(site.socket(), &site.identity, "/v1/site/signals")
        .unwrap()
        .body
}

fn polled(site: &Site, outcome: &str) -> u64 {
    site.counter(&format!(
        "grid_peer_poll_total{{peer=\"borealis\",outcome=\"{outcome}\"}}"
    ))
}

fn refused(site: &Site, reason: &str) -> u64 {
    site.counter(&format!(
        "grid_peer_signals_refused_total{{peer=\"borealis\",reason=\"{reason}\"}}"
    ))
}

#[test]
fn rows_of_another_site_and_values_and_stamps_that_cannot_be_are_dropped_and_counted() {
    let now = Timestamp::now().as_millisecond();
    let ready = |labels: &str, value: &str, stamp: i64| {
        format!("grid_provider_ready{{{labels}}} {value} {stamp}\n")
    };
    let own = "grid_provider=\"pool\"";
    let body = [
        ready(&format!("{own},grid_site=\"borealis\""), "1", now),
        ready(&format!("{own},grid_site=\"cygnus\""), "1", now),
        ready("grid_provider=\"a\"", "NaN", now),
        ready("grid_provider=\"b\"", "-1", now),
        ready("grid_provider=\"c\"", "1", now + 3_600_000),
        ready("grid_provider=\"d\"", "1", now - 90_000_000),
        ready("grid_provider=\"e\",grid_provider=\"f\"", "1", now),
        "\u{fffd}\n".to_owned(),
    ]
    .concat();
    let mut body = answer("200 OK", &body);
    // Invalid UTF-8 in place of the last line, of the same length.
    let end = body.len() - 4;
    body[end..end + 3].copy_from_slice(&[0xff, 0xfe, 0xff]);
    let (site, _peer) = polls(body);
    until("it is polled", || {
        (polled(&site, "success") >= 1).then_some(())
    });
    let kept = rows(&site);
    assert_eq!(kept.lines().count(), 1, "{kept}");
    assert!(
        kept.starts_with("grid_provider_ready{grid_provider=\"pool\",grid_site=\"borealis\"} 1 "),
        "{kept}"
    );
    for (reason, least) in [
        ("site", 1),
        ("value", 2),
        ("future", 1),
        ("old", 1),
        ("repeated_label", 1),
        ("not_utf8", 1),
    ] {
        assert!(
            refused(&site, reason) >= least,
            "{reason}\n{}",
            site.metrics()
        );
    }
}

#[test]
fn of_ten_thousand_providers_the_first_64_are_kept() {
    let now = Timestamp::now().as_millisecond();
    let lines: String = (0..10_000)
        .map(|n| format!("grid_provider_ready{{grid_provider=\"p{n:05}\"}} 1 {now}\n"))
        .collect();
    let (site, _peer) = polls(answer("200 OK", &lines));
    until("it is polled", || {
        (polled(&site, "success") >= 1).then_some(())
    });
    let kept = rows(&site);
    assert_eq!(kept.lines().count(), 64);
    assert!(kept.contains("p00063") && !kept.contains("p00064"));
    assert!(refused(&site, "too_many_providers") >= 9_936);
}

#[test]
fn ten_mebibytes_are_refused_unread_and_not_asked_for_again_before_the_next_turn() {
    let (site, peer) = polls(answer("200 OK", &"# \n".repeat(10 * 1024 * 1024 / 3)));
    until("it is refused", || {
        (polled(&site, "too_large") >= 2).then_some(())
    });
    // One request a poll, perhaps one under way, and perhaps a first knock that took too long to be counted: no retry.
    let asked = u64::try_from(peer.asked.load(Ordering::Relaxed)).unwrap();
    assert!(asked <= polled(&site, "too_large") + 2, "{asked}");
    assert_eq!(rows(&site), "");
}

#[test]
fn an_answer_that_does_not_say_how_long_it_is_is_cut_off_at_the_bound() {
    let date = String::from_utf8(answer("200 OK", "")).unwrap();
    let date = date.lines().find(|line| line.starts_with("Date")).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\n{date}\r\n");
    let chunk = format!("{:x}\r\n{}\r\n", 60_000, "# \n".repeat(20_000));
    let chunks = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{}",
        chunk.repeat(180)
    );
    let until_closed = format!("{head}\r\n{}", "# \n".repeat(10 * 1024 * 1024 / 3));
    for endless in [chunks, until_closed] {
        let (site, _peer) = polls(endless.into_bytes());
        until("it is refused", || {
            (polled(&site, "too_large") >= 2).then_some(())
        });
        assert_eq!(rows(&site), "");
    }
}

#[test]
fn an_answer_without_a_date_is_refused() {
    let (site, _peer) = polls(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec());
    until("it is refused", || {
        (polled(&site, "no_date") >= 1).then_some(())
    });
}

#[test]
fn an_error_of_the_servers_is_tried_three_times_and_another_status_once() {
    let (site, peer) = polls(answer("503 Service Unavailable", ""));
    until("it is counted", || {
        (polled(&site, "server_error") >= 1).then_some(())
    });
    assert!(peer.asked.load(Ordering::Relaxed) >= 3);
    let (site, peer) = polls(answer("404 Not Found", ""));
    until("it is counted", || {
        (polled(&site, "status") >= 2).then_some(())
    });
    let asked = u64::try_from(peer.asked.load(Ordering::Relaxed)).unwrap();
    assert!(asked <= polled(&site, "status") + 2);
}

#[test]
fn a_peer_that_falls_silent_is_tried_within_its_time_and_hinders_no_other() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    let silent = authority.site("silent");
    let nobody = address();
    // It takes connections, and never says a word.
    let _listener = TcpListener::bind((nobody, PORT)).unwrap();
    site.settings.push(("poll_attempt_ms", "300".to_owned()));
    site.settings.push(("poll_total_ms", "2000".to_owned()));
    site.peers
        .push(("silent".to_owned(), nobody, vec![silent.pin()]));
    let mut other = Site::new("borealis", &authority);
    site.knows(&other);
    other.knows(&site);
    other.start();
    site.start();
    until("the other is polled", || {
        (polled(&site, "success") >= 1).then_some(())
    });
    let timeouts = "grid_peer_poll_total{peer=\"silent\",outcome=\"timeout\"}";
    until("it is given up", || {
        (site.counter(timeouts) >= 1).then_some(())
    });
}

#[test]
fn a_hundred_and_ten_silent_peers_make_no_other_neutral() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    let mut live = Site::new("z", &authority);
    // They take connections and never say a word; their names come first.
    let mut listeners = Vec::new();
    for n in 0..110 {
        let address = address();
        listeners.push(TcpListener::bind((address, PORT)).unwrap());
        let pins = vec![format!("{n:064x}")];
        site.peers.push((format!("a{n:03}"), address, pins));
    }
    site.knows(&live);
    live.knows(&site);
    live.start();
    site.start();
    let answered = "grid_peer_poll_total{peer=\"z\",outcome=\"success\"}";
    until("whoever answers is polled again and again", || {
        (site.counter(answered) >= 20).then_some(())
    });
    // By then not all that are silent have had a turn of theirs, which takes five seconds.
    let metrics = site.metrics();
    let silent = metrics
        .lines()
        .filter(|line| line.starts_with("grid_peer_poll_total{peer=\"a"))
        .count();
    assert!(silent < 110, "{silent}");
}
