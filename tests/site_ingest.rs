//! Gateways' reports over the wire: acknowledged once persisted, from the site's own certificate only.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use site_bed::client::{Caller, is_cut, post, report};
use site_bed::{Authority, Certified, Site, until};

const EPOCH: &str = "0123456789abcdef0123456789abcdef";

fn site(trust: &'static str) -> (Site, Certified) {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    site.trust = trust;
    let peer = authority.site("borealis");
    site.knows_caller("borealis", &peer);
    site.start();
    (site, peer)
}

fn reason(site: &Site) -> String {
    let document = site.json("evidence.json").unwrap_or_default();
    let text = document.to_string();
    let known = ["NoReports", "Rejected", "Clean", "Stale"];
    known
        .into_iter()
        .find(|reason| text.contains(&format!("\"reason\":\"{reason}\"")))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_report_is_echoed_once_it_is_persisted_under_both_trusts() {
    for trust in ["pin", "spiffe"] {
        let (site, _) = site(trust);
        until("there is a condition", || {
            (reason(&site) == "NoReports").then_some(())
        });
        let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
        for (sequence, rejected, clean, status, condition) in [
            (1, 0, true, 204, "Clean"),
            (1, 0, true, 204, "Clean"),
            (1, 0, false, 409, "Clean"),
            (2, 1, true, 204, "Rejected"),
            (1, 0, true, 409, "Rejected"),
            (3, 1, true, 204, "Clean"),
            (4, 0, true, 409, "Clean"),
            (u64::MAX, 1, true, 400, "Clean"),
            (u64::MAX, 1, false, 204, "Rejected"),
        ] {
            let answer = local
                .ask(&post(&report(EPOCH, sequence, rejected, clean)))
                .unwrap();
            assert_eq!(
                answer.status, status,
                "{sequence} {rejected} {clean}: {answer:?}"
            );
            assert_eq!(reason(&site), condition, "{sequence} {rejected} {clean}");
            if status == 204 {
                assert_eq!(answer.header("x-grid-ingest-epoch"), Some(EPOCH));
                assert_eq!(
                    answer.header("x-grid-ingest-sequence"),
                    Some(sequence.to_string().as_str())
                );
            }
        }
    }
}

#[test]
fn a_peer_gets_403_before_its_headers_are_judged_and_is_counted() {
    for trust in ["pin", "spiffe"] {
        let (site, peer) = site(trust);
        let mut caller = Caller::connect(site.socket(), Some(&peer)).unwrap();
        assert_eq!(caller.ask(&post("")).unwrap().status, 403);
        assert_eq!(
            caller
                .ask(&post(&report(EPOCH, 1, 0, true)))
                .unwrap()
                .status,
            403
        );
        assert_eq!(
            site.counter("grid_gateway_feedback_events_total{event=\"unauthorized\"}"),
            2
        );
        assert!(
            !site
                .json("evidence.json")
                .unwrap_or_default()
                .to_string()
                .contains(EPOCH)
        );
    }
}

#[test]
fn bad_metadata_is_refused_over_the_wire() {
    let (site, _) = site("pin");
    let good = report(EPOCH, 7, 0, true);
    let line = |name: &str| {
        good.lines()
            .find(|line| line.contains(name))
            .unwrap()
            .to_owned()
    };
    let with = |name: &str, value: &str| {
        good.replace(&line(name), &format!("x-grid-ingest-{name}: {value}"))
    };
    let mut cases = Vec::new();
    for name in [
        "version", "epoch", "sequence", "rejected", "clean", "replica",
    ] {
        let own = line(name);
        let value = own.split_once(": ").unwrap().1.to_owned();
        cases.push((
            format!("{name} missing"),
            good.replace(&format!("{own}\r\n"), ""),
            400,
        ));
        cases.push((format!("{name} repeated"), format!("{good}{own}\r\n"), 400));
        cases.push((
            format!("{name} comma-joined"),
            with(name, &format!("{value}, {value}")),
            400,
        ));
        cases.push((format!("{name} empty"), with(name, ""), 400));
        cases.push((
            format!("{name} oversized"),
            with(name, &"1".repeat(200)),
            431,
        ));
    }
    // Each header of numbers, and each other one as far as the same can be said of it.
    for name in ["version", "sequence", "rejected"] {
        for (what, value) in [
            ("signed", "+1"),
            ("negative", "-1"),
            ("hexadecimal", "0x1"),
            ("with a leading zero", "01"),
            ("padded within", "1 1"),
            ("with a fraction", "1.0"),
            ("with an exponent", "1e1"),
            ("in other digits", "\u{661}"),
            ("in quotes", "\"1\""),
            ("past u64", "18446744073709551616"),
            ("far past u64", "99999999999999999999999999999999"),
        ] {
            cases.push((format!("{name} {what}"), with(name, value), 400));
        }
    }
    for (name, values) in [
        ("version", &["2", "0", "11", "1;q=1"][..]),
        (
            "epoch",
            &[
                "0123456789ABCDEF0123456789ABCDEF",
                "0123456789abcdef0123456789abcde",
                "0123456789abcdef0123456789abcdef0",
                "0x23456789abcdef0123456789abcdef",
                "+123456789abcdef0123456789abcdef",
                "01234567-89ab-cdef-0123-456789abcdef",
                "0123456789abcdef 123456789abcdef",
                "0123456789abcdef0123456789abcdeg",
            ],
        ),
        (
            "clean",
            &["TRUE", "True", "1", "yes", "true false", "\"true\""],
        ),
        (
            "replica",
            &[
                "gw.0", "GW-0", "-gw", "gw-", "gw 0", "gw_0", "+1", "g\u{fc}",
            ],
        ),
    ] {
        for value in values {
            cases.push((format!("{name} {value}"), with(name, value), 400));
        }
    }
    let longest = "a".repeat(64);
    cases.push(("a long replica".to_owned(), with("replica", &longest), 400));
    for (what, more) in [
        ("in capitals", "X-GRID-INGEST-SEQUENCE: 7\r\n"),
        ("with another value", "x-grid-ingest-sequence: 8\r\n"),
        ("empty the second time", "x-grid-ingest-sequence:\r\n"),
        ("on a line of its own", " 8\r\n"),
    ] {
        cases.push((format!("repeated {what}"), format!("{good}{more}"), 400));
    }
    cases.push(("too many headers".to_owned(), "x: y\r\n".repeat(200), 431));
    cases.push((
        "a huge head".to_owned(),
        format!("x: {}\r\n", "y".repeat(64 * 1024)),
        431,
    ));
    for (what, headers, status) in cases {
        let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
        let answer = local
            .ask(&post(&headers))
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
    }
    assert!(
        !site
            .json("evidence.json")
            .unwrap_or_default()
            .to_string()
            .contains(EPOCH)
    );
}

#[test]
fn a_body_is_refused_and_a_slow_one_ends_with_the_budget() {
    let authority = Authority::new();
    let mut site = Site::new("atlas", &authority);
    site.settings.push(("ingest_ms", "700".to_owned()));
    site.start();
    let answer = |head: &str, body: &str| {
        let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
        let good = report(EPOCH, 1, 0, true);
        local.ask(&format!("{}{body}", post(&format!("{good}{head}"))))
    };
    let ask = |head: &str, body: &str| answer(head, body).unwrap().status;
    assert_eq!(ask("Content-Length: 1\r\n", "x"), 413);
    assert_eq!(
        ask("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n"),
        413
    );
    // An endless one is not waited for: its first byte is one too many.
    assert_eq!(
        ask(
            "Transfer-Encoding: chunked\r\n",
            &"5\r\nxxxxx\r\n".repeat(100)
        ),
        413
    );
    // Neither is one that has no byte and no end: what comes before its end is bounded too.
    for endless in [
        format!("0;{}", "x".repeat(64 * 1024)),
        format!("0\r\n{}", "x: y\r\n".repeat(16 * 1024)),
    ] {
        match answer("Transfer-Encoding: chunked\r\n", &endless) {
            Ok(answer) => {
                assert_eq!(answer.status, 413);
                assert!(answer.body.contains("larger than is read"), "{answer:?}");
            }
            // Who is still writing when that answer comes may lose it.
            Err(error) => assert!(is_cut(&error), "{error}"),
        }
    }
    // Neither is one that is framed as nothing is: to say the same again is of no use.
    for malformed in ["zz\r\n", "-1\r\n", "\r\n", "0\rx", "0\r\nno header\r\n\r\n"] {
        assert_eq!(
            ask("Transfer-Encoding: chunked\r\n", malformed),
            400,
            "{malformed:?}"
        );
    }
    // A length beside chunks does not count, and nothing is read behind it.
    for (first, second) in [
        ("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"),
        ("Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n"),
    ] {
        let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
        let smuggled = "GET /v1/site/signals HTTP/1.1\r\nHost: x\r\n\r\n";
        let other = report("fedcba9876543210fedcba9876543210", 1, 0, true);
        let request = format!(
            "{}0\r\n\r\n{smuggled}",
            post(&format!("{other}{first}{second}"))
        );
        let answer = local.ask(&request).unwrap();
        assert_eq!(answer.status, 204);
        assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
        assert!(local.is_closed());
    }
    // One whose length is said twice, or in two ways, is nobody's guess.
    for ambiguous in [
        "Content-Length: 0\r\nContent-Length: 1\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +0\r\n",
        "Transfer-Encoding: gzip\r\n",
    ] {
        assert_eq!(ask(ambiguous, ""), 400, "{ambiguous}");
    }
    // One that does not come is unknown when the time is up.
    assert_eq!(ask("Transfer-Encoding: chunked\r\n", ""), 503);
    assert!(
        !site
            .json("evidence.json")
            .unwrap_or_default()
            .to_string()
            .contains(EPOCH)
    );
    assert_eq!(ask("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), 204);
    assert_eq!(ask("Content-Length: 0\r\n", ""), 204);
}

#[test]
fn a_home_that_cannot_be_written_is_503_and_the_same_report_is_taken_later() {
    let (mut site, _) = site("pin");
    let path = site.state("evidence.json");
    until("there is a document", || path.exists().then_some(()));
    std::fs::write(&path, "{\"format\":2}").unwrap();
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let request = post(&report(EPOCH, 1, 0, true));
    assert_eq!(local.ask(&request).unwrap().status, 503);
    assert!(site.counter("grid_gateway_feedback_events_total{event=\"write_failure\"}") >= 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"format\":2}");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(local.ask(&request).unwrap().status, 204);
    assert!(site.runs());
}

#[test]
fn spaces_around_a_value_are_not_part_of_it() {
    let (site, _) = site("pin");
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let padded = report(EPOCH, 7, 0, true).replace(": 7\r\n", ": \t 7 \t \r\n");
    let answer = local.ask(&post(&padded)).unwrap();
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("x-grid-ingest-sequence"), Some("7"));
    assert_eq!(held(&site), Some(7));
}

#[test]
fn sigterm_in_mid_report_gives_the_answer_first() {
    let (mut site, _) = site("pin");
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let headers = "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n";
    let request = post(&format!("{}{headers}", report(EPOCH, 1, 0, true)));
    // The daemon waits for the body, which it says.
    assert_eq!(local.ask(&request).unwrap().status, 100);
    site.terminate();
    local.send(b"0\r\n\r\n").unwrap();
    assert_eq!(local.answer().unwrap().status, 204);
    assert!(site.ended().success());
    assert_eq!(self::held(&site), Some(1));
}

/// The sequence that is held for the one epoch.
fn held(site: &Site) -> Option<u64> {
    let text = site.json("evidence.json")?.to_string();
    let (_, rest) = text.split_once("\"sequence\":")?;
    let digits: String = rest
        .trim_matches('"')
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[test]
fn a_65th_epoch_is_507_and_counted_and_eight_in_parallel_all_get_their_answer() {
    let (site, _) = site("pin");
    let epoch = |n: u64| format!("{n:032x}");
    let reporters: Vec<_> = (0..8)
        .map(|first| {
            let (to, identity) = (site.socket(), site.identity.clone());
            std::thread::spawn(move || {
                let mut local = Caller::connect(to, Some(&identity)).unwrap();
                for n in (first..64).step_by(8) {
                    for sequence in 1..=3 {
                        let request = post(&report(&epoch(n), sequence, 1, false));
                        assert_eq!(local.ask(&request).unwrap().status, 204);
                    }
                }
            })
        })
        .collect();
    for reporter in reporters {
        reporter.join().unwrap();
    }
    let mut local = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let past = post(&report(&epoch(64), 1, 0, true));
    assert_eq!(local.ask(&past).unwrap().status, 507);
    let overflows = "grid_gateway_feedback_events_total{event=\"overflow\"}";
    assert_eq!(site.counter(overflows), 1);
    assert_eq!(reason(&site), "Rejected");
}
