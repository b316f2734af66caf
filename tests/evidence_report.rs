//! `grid evidence report` against the real daemon: lost answers, killed reporters, and sites that do not acknowledge. Needs
//! root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;
mod site_bed;
mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use delivery_bed::mount::Mount;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use site_bed::{Authority, Certified, Site, until};
use support::schema::hold;
use support::{Bench, Seen};

/// A gateway: a bench with a state file.
struct Gateway {
    bench: Bench,
    state: &'static str,
    to: Vec<String>,
}

impl Gateway {
    fn of(site: &Site) -> Self {
        Self {
            bench: Bench::bare(),
            state: "gw.json",
            to: vec!["--config".to_owned(), site.config().display().to_string()],
        }
    }

    /// One that dials `at` with this certificate.
    fn at(at: SocketAddr, identity: &Certified) -> Self {
        let bench = Bench::bare();
        bench.file("gw.pem", &identity.pem);
        bench.file("gw.key", &identity.key);
        let mut gateway = Self {
            bench,
            state: "gw.json",
            to: Vec::new(),
        };
        gateway.dials(at);
        gateway
    }

    fn dials(&mut self, at: SocketAddr) {
        let (host, port) = (at.ip().to_string(), at.port().to_string());
        self.to = [
            "--certificate",
            "gw.pem",
            "--key",
            "gw.key",
            "--host",
            &host,
            "--port",
            &port,
        ]
        .map(str::to_owned)
        .to_vec();
    }

    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["evidence", "report", "--state", self.state];
        all.extend(self.to.iter().map(String::as_str));
        all.extend(more);
        all
    }

    fn command(&self, more: &[&str]) -> Command {
        self.bench.command(&self.arguments(more))
    }

    #[track_caller]
    fn reports(&self, more: &[&str], exit: i32) -> Seen {
        self.bench.grid(&self.arguments(more)).exits(exit)
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.bench.read(self.state)).unwrap()
    }
}

/// What the site holds of each epoch: sequence, count, standing.
fn held(site: &Site) -> Vec<(String, String, String)> {
    let document = site.json("evidence.json").unwrap();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    let epochs = document["epochs"].as_array().unwrap();
    epochs
        .iter()
        .map(|entry| {
            (
                text(entry, "sequence"),
                text(entry, "rejected"),
                text(entry, "standing"),
            )
        })
        .collect()
}

fn one(sequence: &str, rejected: &str, standing: &str) -> Vec<(String, String, String)> {
    vec![(
        sequence.to_owned(),
        rejected.to_owned(),
        standing.to_owned(),
    )]
}

fn site() -> Site {
    let mut site = Site::new("atlas", &Authority::new());
    site.start();
    site
}

#[test]
fn a_script_reports_and_the_site_holds_it() {
    let site = site();
    let gateway = Gateway::of(&site);
    let seen = gateway.reports(&["--clean"], 2).all();
    assert!(seen.contains("needs --replica"), "{seen}");
    let seen = gateway.reports(&[], 2).all();
    assert!(seen.contains("nothing waits to be acknowledged"), "{seen}");
    gateway.reports(&["--add", "1"], 2);
    gateway.reports(&["--clean", "--not-clean"], 2);
    assert!(!gateway.bench.path("gw.json").exists());

    gateway.reports(&["--clean", "--replica", "gw-0"], 0);
    assert_eq!(held(&site), one("1", "0", "clean"));
    gateway.reports(&["--add", "2", "--not-clean"], 0);
    assert_eq!(held(&site), one("2", "2", "rejected"));
    gateway.reports(&["--rejected", "3", "--clean"], 0);
    assert_eq!(held(&site), one("3", "3", "rejected"));
    let seen = gateway.reports(&["--rejected", "3", "--clean", "--json"], 0);
    assert_eq!(held(&site), one("4", "3", "clean"));
    let view: Value = serde_json::from_slice(seen.raw()).unwrap();
    assert_eq!(view["reports"][0]["what"], "acknowledged");
    hold("evidence-report", &[view]);
    hold("evidence-reporter", &[gateway.state()]);
    let seen = gateway.reports(&["--rejected", "2", "--clean"], 2).all();
    assert!(seen.contains("--new-process"), "{seen}");
    let seen = gateway.reports(&[], 0).all();
    assert!(seen.contains("nothing waits"), "{seen}");
    assert_eq!(held(&site), one("4", "3", "clean"));

    gateway.reports(&["--new-process", "--not-clean"], 0);
    let mut both = held(&site);
    both.sort();
    assert_eq!(
        both,
        [one("1", "0", "rejected"), one("4", "3", "clean")].concat()
    );
    let mode = std::fs::metadata(gateway.bench.path("gw.json"))
        .unwrap()
        .permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
}

/// Stands between a gateway and its site. As long as it is told to, it carries the request and loses the answer.
fn lossy(to: SocketAddr, loses: &Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let loses = Arc::clone(loses);
    std::thread::spawn(move || {
        for gateway in listener.incoming() {
            let (Ok(gateway), loses) = (gateway, loses.load(Ordering::SeqCst)) else {
                return;
            };
            std::thread::spawn(move || carry(gateway, to, loses));
        }
    });
    at
}

fn carry(mut gateway: TcpStream, to: SocketAddr, loses: bool) {
    let mut site = TcpStream::connect(to).unwrap();
    let (mut from, mut into) = (site.try_clone().unwrap(), gateway.try_clone().unwrap());
    let back = std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        // What is not the answer is the handshake: a few kilobytes before the request.
        let mut carried = 0;
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            let is_answer = carried > 0 && loses;
            carried += n;
            if is_answer || into.write_all(&buffer[..n]).is_err() {
                let _ = into.shutdown(std::net::Shutdown::Both);
                let _ = from.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
        let _ = into.shutdown(std::net::Shutdown::Write);
    });
    let mut buffer = [0; 16 * 1024];
    while let Ok(n @ 1..) = gateway.read(&mut buffer) {
        if site.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = site.shutdown(std::net::Shutdown::Write);
    let _ = back.join();
}

#[test]
fn a_report_whose_answer_was_lost_is_repeated_as_it_was_and_what_came_after_follows_it() {
    let site = site();
    let loses = Arc::new(AtomicBool::new(true));
    let gateway = Gateway::at(lossy(site.socket(), &loses), &site.identity);
    let seen = gateway
        .reports(
            &[
                "--replica",
                "gw-0",
                "--add",
                "1",
                "--not-clean",
                "--timeout",
                "1s",
            ],
            4,
        )
        .all();
    assert!(seen.contains("waits"), "{seen}");
    assert!(seen.contains("next: it is kept in gw.json"), "{seen}");
    assert_eq!(held(&site), one("1", "1", "rejected"));
    let sent = gateway.state()["current"]["sent"].clone();
    assert_eq!(sent["rejected"], "1");
    // Clean again, and that is not sent before the former is acknowledged.
    gateway.reports(&["--clean", "--timeout", "1s"], 4);
    assert_eq!(gateway.state()["current"]["sent"], sent);
    hold("evidence-reporter", &[gateway.state()]);
    let seen = gateway.reports(&["--clean", "--timeout", "1s", "--json"], 4);
    hold(
        "evidence-report",
        &[serde_json::from_slice(seen.raw()).unwrap()],
    );
    assert_eq!(held(&site), one("1", "1", "rejected"));
    loses.store(false, Ordering::SeqCst);
    gateway.reports(&[], 0);
    assert_eq!(held(&site), one("2", "1", "clean"));
    assert_eq!(
        site.counter("grid_gateway_feedback_events_total{event=\"conflict\"}"),
        0
    );
}

#[test]
fn without_a_listener_reports_are_kept_until_there_is_one() {
    let mut site = Site::new("atlas", &Authority::new());
    site.mode = "gossip";
    site.start();
    let gateway = Gateway::of(&site);
    let seen = gateway
        .reports(&["--replica", "gw-0", "--add", "1", "--not-clean"], 4)
        .all();
    assert!(seen.contains("the site gossips"), "{seen}");
    site.kill();
    site.mode = "poll";
    site.write();
    let seen = gateway.reports(&["--clean", "--timeout", "4s"], 4).all();
    assert!(seen.contains("nobody listens at"), "{seen}");
    site.start();
    gateway.reports(&[], 0);
    assert_eq!(held(&site), one("2", "1", "clean"));
}

#[test]
fn a_home_that_cannot_be_written_is_tried_again_with_the_identical_report() {
    let site = site();
    let path = site.state("evidence.json");
    until("there is a document", || path.exists().then_some(()));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, "{\"format\":2}").unwrap();
    let gateway = Gateway::of(&site);
    let mut child = gateway
        .command(&["--replica", "gw-0", "--clean", "--timeout", "60s"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let failures = "grid_gateway_feedback_events_total{event=\"write_failure\"}";
    until("it was refused twice", || {
        (site.counter(failures) > 1).then_some(())
    });
    std::fs::write(&path, whole).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(held(&site), one("1", "0", "clean"));
}

#[test]
fn reporters_at_once_take_turns_and_killed_ones_lose_nothing() {
    let site = site();
    let gateway = Gateway::of(&site);
    gateway.reports(&["--replica", "gw-0", "--clean"], 0);
    let many: Vec<_> = (0..6)
        .map(|_| {
            let more = ["--add", "1", "--not-clean", "--timeout", "60s"];
            let mut command = gateway.command(&more);
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut one in many {
        assert!(one.wait().unwrap().success());
    }
    assert_eq!(held(&site), one("7", "6", "rejected"));
    // Killed at a moment of its own each.
    for count in 7..=26 {
        let count = count.to_string();
        let more = ["--rejected", &count, "--not-clean"];
        let mut command = gateway.command(&more);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(
            3 * count.parse::<u64>().unwrap(),
        ));
        let _ = child.kill();
        child.wait().unwrap();
    }
    gateway.reports(&["--rejected", "26", "--not-clean"], 0);
    let (_, rejected, standing) = held(&site).remove(0);
    assert_eq!((rejected.as_str(), standing.as_str()), ("26", "rejected"));
    gateway.reports(&["--clean"], 0);
    assert_eq!(held(&site)[0].2, "clean");
    assert!(gateway.state()["current"].get("sent").is_none());
}

/// Answers every request so, with this certificate; says how many came.
fn answers(certified: &Certified, answer: &'static str) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.key_der.clone()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.der.clone().into()], key)
        .unwrap();
    let (config, heard) = (Arc::new(config), Arc::clone(&asked));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut head = Vec::new();
            let mut buffer = [0; 4096];
            while !head.windows(4).any(|part| part == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(n @ 1..) => head.extend_from_slice(&buffer[..n]),
                    _ => break,
                }
            }
            if head.is_empty() {
                continue;
            }
            heard.store(true, Ordering::SeqCst);
            let _ = stream.write_all(answer.as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (at, asked)
}

#[test]
fn only_an_acknowledgement_of_this_very_report_is_one() {
    let authority = Authority::new();
    let identity = authority.site("atlas");
    for (answer, exit, why) in [
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            4,
            "an older one: 404",
        ),
        (
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n",
            4,
            "an older one: 405",
        ),
        (
            "HTTP/1.1 204 No Content\r\n\r\n",
            4,
            "does not echo the report",
        ),
        (
            "HTTP/1.1 204 No Content\r\nx-grid-ingest-epoch: 00000000000000000000000000000000\r\nx-grid-ingest-sequence: 1\r\n\r\n",
            4,
            "does not echo the report",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            4,
            "does not acknowledge it: 200",
        ),
        (
            "HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 5\r\n\r\nfull\n",
            4,
            "no room",
        ),
        (
            "HTTP/1.1 409 Conflict\r\nContent-Length: 9\r\n\r\nno\x1b[2Jno\n",
            1,
            "refuses the report",
        ),
        (
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
            1,
            "refuses the report",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
            1,
            "its own certificate only",
        ),
        ("garbage\r\n\r\n", 4, "invalid HTTP"),
    ] {
        let (at, _) = answers(&identity, answer);
        let gateway = Gateway::at(at, &identity);
        let more = [
            "--replica",
            "gw-0",
            "--add",
            "1",
            "--not-clean",
            "--timeout",
            "4s",
        ];
        let seen = gateway.reports(&more, exit);
        assert!(!seen.bytes().contains(&0x1b));
        let text = seen.all();
        assert!(text.contains(why), "{answer}: {text}");
        // It is kept, and repeated as it is.
        assert_eq!(
            gateway.state()["current"]["sent"]["rejected"],
            "1",
            "{answer}"
        );
        let site = site();
        let mut gateway = Gateway {
            bench: gateway.bench,
            state: "gw.json",
            to: Vec::new(),
        };
        gateway.bench.file("gw.pem", &site.identity.pem);
        gateway.bench.file("gw.key", &site.identity.key);
        gateway.dials(site.socket());
        gateway.reports(&[], 0);
        assert_eq!(held(&site), one("1", "1", "rejected"), "{answer}");
    }
}

#[test]
fn who_does_not_hold_the_sites_key_is_told_nothing() {
    let authority = Authority::new();
    let (own, other) = (authority.site("atlas"), authority.site("atlas"));
    let (at, asked) = answers(&other, "HTTP/1.1 204 No Content\r\n\r\n");
    let gateway = Gateway::at(at, &own);
    let more = ["--replica", "gw-0", "--clean", "--timeout", "4s"];
    let seen = gateway.reports(&more, 4).all();
    assert!(
        seen.contains("does not show the certificate that was given here"),
        "{seen}"
    );
    assert!(!asked.load(Ordering::SeqCst));
    // And the site takes no report with another certificate than its own.
    let site = site();
    let gateway = Gateway::at(site.socket(), &authority.site("atlas"));
    gateway.reports(&more, 4);
    assert!(held(&site).is_empty());
}

#[test]
fn a_state_that_is_no_state_is_refused_with_what_to_do() {
    let site = site();
    let gateway = Gateway::of(&site);
    for text in ["", "{}", "{\"format\": 2}"] {
        gateway.bench.file("gw.json", text);
        let seen = gateway.reports(&["--clean", "--replica", "gw-0"], 1).all();
        let does = seen.contains("use that one") || seen.contains("move it away");
        assert!(does && seen.contains("gw.json cannot be read"), "{seen}");
        assert_eq!(gateway.bench.read("gw.json"), text);
    }
    let copy = Path::new("/proc/gw.json");
    let mut elsewhere = gateway.command(&["--clean", "--replica", "gw-0"]);
    elsewhere.args(["--timeout", "1s"]);
    let arguments: Vec<_> = elsewhere.get_args().map(ToOwned::to_owned).collect();
    let arguments: Vec<_> = arguments
        .into_iter()
        .map(|word| if word == "gw.json" { copy.into() } else { word })
        .collect();
    let mut command = gateway.bench.command(&[]);
    let output = command.args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(held(&site).is_empty());
}

#[test]
fn a_copied_state_is_refused_and_another_process_goes_on() {
    let site = site();
    let gateway = Gateway::of(&site);
    gateway.reports(&["--replica", "gw-0", "--clean"], 0);
    let copy = gateway.bench.read("gw.json");
    gateway.reports(&["--add", "1", "--not-clean"], 0);
    gateway.bench.file("gw.json", &copy);
    let seen = gateway.reports(&["--add", "2", "--not-clean"], 1).all();
    assert!(
        seen.contains("refuses the report") && seen.contains("409"),
        "{seen}"
    );
    assert!(seen.contains("--new-process"), "{seen}");
    gateway.reports(&[], 1);
    let seen = gateway.reports(&["--new-process", "--clean"], 1).all();
    assert!(
        seen.contains("given up") && seen.contains("acknowledged"),
        "{seen}"
    );
    gateway.reports(&[], 0);
    let mut both = held(&site);
    both.sort();
    assert_eq!(
        both,
        [one("1", "0", "clean"), one("2", "1", "rejected")].concat()
    );
}

#[test]
fn what_a_process_that_is_gone_left_is_sent_as_its_own() {
    let mut site = Site::new("atlas", &Authority::new());
    // Every address, as a daemon listens unless it is told otherwise.
    let port = TcpListener::bind("[::]:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    site.listens = Some(("::", port));
    site.write();
    let gateway = Gateway::of(&site);
    gateway.reports(
        &[
            "--replica",
            "gw-0",
            "--add",
            "1",
            "--not-clean",
            "--timeout",
            "1s",
        ],
        4,
    );
    gateway.reports(&["--new-process", "--clean", "--timeout", "1s"], 4);
    hold("evidence-reporter", &[gateway.state()]);
    site.start();
    gateway.reports(&[], 0);
    let mut both = held(&site);
    both.sort();
    assert_eq!(
        both,
        [one("1", "0", "clean"), one("1", "1", "rejected")].concat()
    );
}

#[test]
fn what_cannot_be_kept_is_not_sent() {
    let site = site();
    let mut gateway = Gateway::of(&site);
    let disk = Mount::new(&gateway.bench.path("disk"), 64);
    gateway.state = "disk/gw.json";
    gateway.reports(&["--replica", "gw-0", "--clean"], 0);
    let before = gateway.state();
    disk.fill(0);
    let seen = gateway.reports(&["--add", "1", "--not-clean"], 1).all();
    assert!(seen.contains("no room to write"), "{seen}");
    assert!(seen.contains("nothing more was sent"), "{seen}");
    assert_eq!(
        (gateway.state(), held(&site)),
        (before, one("1", "0", "clean"))
    );
    disk.empty();
    gateway.reports(&["--add", "1", "--not-clean"], 0);
    assert_eq!(held(&site), one("2", "1", "rejected"));
}
