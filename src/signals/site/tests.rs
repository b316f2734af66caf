use super::*;
use crate::words::{Digest, HostError, PeerHost, UrlError};

fn site() -> Site {
    Site::new(
        MeshName::new("prod").unwrap(),
        NodeName::new("atlas").unwrap(),
        AbsolutePath::new("/var/lib/grid/prod-site").unwrap(),
    )
}

fn watched(signal: Signal) -> Watched {
    Watched {
        provider: ProviderName::new("broker").unwrap(),
        score: Strategy::None,
        maps: vec![Map {
            signal,
            metric: MetricName::new("rabbitmq_queue_messages").unwrap(),
        }],
    }
}

fn refused(text: &str) -> String {
    Site::read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_site_with_the_contracts_values_is_short_and_reads_back() {
    let mut site = site();
    site.scrapes.push(Scrape {
        provider: ProviderName::new("broker").unwrap(),
        url: ScrapeUrl::new("http://127.0.0.1:15692/metrics").unwrap(),
    });
    site.watches.push(watched(Signal::QueueDepth));
    let written = site.write().unwrap();
    insta::assert_snapshot!(written, @r#"
    format = 1
    network = "prod"
    site = "atlas"
    mode = "gossip"
    trust = "pin"
    port = 9091
    state = "/var/lib/grid/prod-site"

    [[scrape]]
    provider = "broker"
    url = "http://127.0.0.1:15692/metrics"

    [[watch]]
    provider = "broker"

    [[watch.map]]
    signal = "queue-depth"
    metric = "rabbitmq_queue_messages"
    "#);
    assert_eq!(Site::read(written.as_bytes()), Ok(site));
}

#[test]
fn every_other_value_is_written_and_reads_back() {
    let mut site = site();
    site.mode = SignalMode::Poll;
    site.trust = PeerTrust::Spiffe;
    site.port = 9191;
    site.metrics = "[::1]:9000".parse().unwrap();
    site.peers = ReleasePath::new("others.toml").unwrap();
    site.identity.key = MachinePath::try_from("keys/own.key".to_owned()).unwrap();
    site.identity.certificate = MachinePath::try_from("/etc/pki/site.pem".to_owned()).unwrap();
    site.settings.poll_interval_ms = Milliseconds::new(1_000);
    site.settings.special_addresses = true;
    site.watches.push(Watched {
        score: Strategy::KvCachePressure,
        ..watched(Signal::QueueDepth)
    });
    let written = site.write().unwrap();
    assert_eq!(Site::read(written.as_bytes()), Ok(site));
}

const LEAST: &str = "format = 1\nnetwork = \"prod\"\nsite = \"atlas\"\nstate = \"/s\"\n";

#[test]
fn what_is_absent_has_the_contracts_value() {
    let read = Site::read(LEAST.as_bytes()).unwrap();
    assert_eq!(read.mode, SignalMode::Gossip);
    assert_eq!(read.trust, PeerTrust::Pin);
    assert_eq!(read.settings, Settings::default());
    assert_eq!(read.settings.poll_interval_ms.duration().as_secs(), 30);
}

#[test]
fn two_networks_are_refused_and_a_list_of_one_is_one() {
    let many = |list: &str| LEAST.replace("\"prod\"", list);
    assert!(Site::read(many("[\"prod\"]").as_bytes()).is_ok());
    assert!(
        refused(&many("[\"prod\", \"lab\"]"))
            .contains("it names 2 networks: one daemon serves one network")
    );
}

#[test]
fn without_a_network_a_site_is_gossip_and_pin() {
    for none in ["network = []\n", ""] {
        let of = |more: &str| LEAST.replace("network = \"prod\"\n", none) + more;
        let site = Site::read(of("").as_bytes()).unwrap();
        assert_eq!(site.network.mesh(), None);
        assert_eq!(
            (site.mode, site.trust),
            (SignalMode::Gossip, PeerTrust::Pin)
        );
        assert_eq!(Site::read(site.write().unwrap().as_bytes()), Ok(site));
        assert!(Site::read(of("mode = \"gossip\"\ntrust = \"pin\"\n").as_bytes()).is_ok());
        for other in ["mode = \"poll\"\n", "trust = \"spiffe\"\n"] {
            assert!(
                refused(&of(other)).contains("it names no network"),
                "{other}"
            );
        }
    }
}

#[test]
fn what_is_unknown_newer_or_past_a_bound_is_refused() {
    assert!(refused(&format!("{LEAST}modus = \"poll\"\n")).contains("unknown field `modus`"));
    assert_eq!(
        refused("format = 2\nnew = 1\n"),
        SiteError::Format(2).to_string()
    );
    assert!(refused("").contains("missing field `format`"));
    assert_eq!(
        Site::read(&vec![b'#'; LARGEST + 1]),
        Err(SiteError::TooLarge(LARGEST + 1))
    );
    assert_eq!(Site::read(b"\xff"), Err(SiteError::NotText));
    assert!(refused(&format!("{LEAST}port = 0\n")).contains("port is 0"));
    assert!(
        refused(&format!("{LEAST}metrics = \"10.0.0.1:9092\"\n")).contains("not on the loopback")
    );
    assert!(
        refused(&format!("{LEAST}[settings]\nhandshake_ms = 0\n")).contains("handshake_ms = 0")
    );
    assert!(
        refused(&format!("{LEAST}[settings]\nlocal_connections = 256\n"))
            .contains("leaves nothing")
    );
    let scrape = |n: usize| format!("[[scrape]]\nprovider = \"p{n}\"\nurl = \"http://h/\"\n");
    let many: String = (0..=MOST_SCRAPES).map(scrape).collect();
    assert!(refused(&format!("{LEAST}{many}")).contains("257 scrapes, and at most 256"));
    assert!(
        refused(&format!("{LEAST}{}{}", scrape(1), scrape(1)))
            .contains("provider p1 stands there twice")
    );
}

#[test]
fn a_pin_is_read_with_colons_and_in_any_case_and_written_plainly() {
    let digest = Digest::of(b"a certificate");
    let plain = digest.to_string();
    let colons: Vec<String> = plain
        .to_uppercase()
        .as_bytes()
        .chunks(2)
        .map(|pair| String::from_utf8(pair.to_vec()).unwrap())
        .collect();
    let text = format!(
        "format = 1\n[[peers]]\nname = \"atlas\"\nhost = \"Atlas.Example.COM.\"\npins = [\"{}\", \"{plain}\"]\n",
        colons.join(":")
    );
    let peers = Peers::read(text.as_bytes()).unwrap();
    let [peer] = peers.peers.as_slice() else {
        panic!("{peers:?}")
    };
    assert_eq!(peer.pins, Pins::new([digest]).unwrap());
    assert_eq!(peer.host.to_string(), "atlas.example.com");
    let written = peers.write().unwrap();
    assert!(
        written.contains(&format!("pins = [\"{plain}\"]")),
        "{written}"
    );
    assert_eq!(Peers::read(written.as_bytes()), Ok(peers));
}

#[test]
fn peers_past_a_bound_or_twice_are_refused() {
    let peer = |name: &str, pins: &str| {
        format!("[[peers]]\nname = \"{name}\"\nhost = \"10.0.0.1\"\npins = [{pins}]\n")
    };
    let read = |peers: &str| {
        Peers::read(format!("format = 1\n{peers}").as_bytes()).map_err(|e| e.to_string())
    };
    let pin = |n: u8| format!("\"{}\"", Digest::of(&[n]));
    assert!(read("").unwrap().peers.is_empty());
    let three = [pin(1), pin(2), pin(3)].join(",");
    assert!(
        read(&peer("a", &three))
            .unwrap_err()
            .contains("at most 2 pins")
    );
    assert!(read(&peer("a", "\"ab\"")).unwrap_err().contains("SHA-256"));
    assert!(
        read(&(peer("a", "") + &peer("a", "")))
            .unwrap_err()
            .contains("peer a stands there twice")
    );
    assert!(
        read(&(peer("a", &pin(1)) + &peer("b", &pin(1))))
            .unwrap_err()
            .contains("the pin")
    );
    let many: String = (0..=MOST_PEERS)
        .map(|n| peer(&format!("p{n}"), ""))
        .collect();
    assert!(read(&many).unwrap_err().contains("10001 peers"));
}

#[test]
fn a_host_is_an_address_or_a_name_without_a_port() {
    for good in [
        "10.0.0.1",
        "::1",
        "fe80::1",
        "atlas",
        "a-b.example.com",
        "xn--bcher-kva.example",
    ] {
        assert!(PeerHost::new(good).is_ok(), "{good}");
    }
    for wrong in [
        "",
        ".",
        "a:1",
        "[::1]",
        "10.0.0",
        "1.2.3.4.5",
        "a b",
        "-a",
        "a-",
        "a..b",
        "http://a",
        "é",
        "0x7f.1",
    ] {
        assert_eq!(PeerHost::new(wrong), Err(HostError), "{wrong}");
    }
}

#[test]
fn a_url_of_metrics_is_plain_http() {
    for (good, shown) in [
        (
            "http://127.0.0.1:15692/metrics",
            "http://127.0.0.1:15692/metrics",
        ),
        ("http://broker", "http://broker:80/"),
        ("http://[::1]:9/m?x=1", "http://[::1]:9/m?x=1"),
        ("http://h?x=1", "http://h:80/?x=1"),
    ] {
        assert_eq!(ScrapeUrl::new(good).unwrap().to_string(), shown);
    }
    assert_eq!(ScrapeUrl::new("https://h/"), Err(UrlError::Scheme));
    for wrong in [
        "http://",
        "http:///m",
        "http://h:0/",
        "http://h:/",
        "http://h:+1/",
        "http://h:65536/",
        "http://u@h/",
        "http://[::1",
        "http://h/ x",
        "http://h/#f",
        "http://h/\n",
    ] {
        assert_eq!(ScrapeUrl::new(wrong), Err(UrlError::Form), "{wrong:?}");
    }
}

#[test]
fn what_is_mapped_is_taken_of_peers_and_a_metric_has_one_scale() {
    let mut site = site();
    site.watches.push(watched(Signal::QueueDepth));
    let accepted = site.accepted();
    assert_eq!(
        accepted.scale("rabbitmq_queue_messages"),
        Some(Signal::QueueDepth.scale())
    );
    assert!(site.watches().contains_key("broker"));
    site.watches.push(Watched {
        provider: ProviderName::new("other").unwrap(),
        ..watched(Signal::Ready)
    });
    assert!(matches!(site.write(), Err(SiteError::Scales(_))));
    site.watches[1] = site.watches[0].clone();
    assert!(matches!(site.write(), Err(SiteError::Twice { .. })));
}
