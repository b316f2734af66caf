//! Clients of other make read a site: curl, and Python's ssl.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use std::process::{Command, Output};

use site_bed::client::get;
use site_bed::{Authority, PORT, Provider, Site, until};

const PYTHON: &str = r#"
import http.client, ssl, sys
host, port, ca, cert, key, name = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.check_hostname = False
context.load_cert_chain(cert, key)
connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
connection.request("GET", "/v1/site/signals")
answer = connection.getresponse()
body = answer.read().decode()
print(answer.status, answer.getheader("content-type"), int(answer.getheader("age")) >= 0)
print(body, end="")
connection.request("POST", "/v1/site/signals/ingest", headers={
    "x-grid-ingest-version": "1",
    "x-grid-ingest-epoch": "0123456789abcdef0123456789abcdef",
    "x-grid-ingest-sequence": "1",
    "x-grid-ingest-rejected": "0",
    "x-grid-ingest-clean": "true",
    "x-grid-ingest-replica": name,
})
answer = connection.getresponse()
answer.read()
print(answer.status, answer.getheader("x-grid-ingest-sequence"))
"#;

/// What a command prints; nothing where it is not installed, which CI does not allow.
fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{command:?}: {error}");
            None
        }
    }
}

#[test]
fn curl_and_python_read_a_site_and_report_to_it() {
    let authority = Authority::new();
    let provider = Provider::new("queue{q=\"a\\\"b\"} 3\n");
    let mut site = Site::new("atlas", &authority);
    site.scrapes.push(("broker", provider.url.clone()));
    site.start();
    until("rows are served", || {
        let page = get(site.socket(), &site.identity, "/v1/site/signals").unwrap();
        (!page.body.is_empty()).then_some(())
    });
    let file = |name: &str| site.folder().join(name);
    let row = "queue{grid_provider=\"broker\",grid_site=\"atlas\",q=\"a\\\"b\"} 3 ";

    let name = format!("x.grid.internal:{PORT}");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "30"]);
    curl.arg("--cacert").arg(file("authorities.pem"));
    curl.arg("--cert")
        .arg(file("identity.pem"))
        .arg("--key")
        .arg(file("identity.key"));
    curl.arg("--resolve")
        .arg(format!("{name}:{}", site.address));
    curl.arg(format!("https://{name}/v1/site/signals"));
    if let Some(output) = run(&mut curl) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.starts_with(row),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    let mut python = Command::new("python3");
    python
        .arg("-c")
        .arg(PYTHON)
        .arg(site.address.to_string())
        .arg(PORT.to_string());
    python
        .args(["authorities.pem", "identity.pem", "identity.key"].map(file))
        .arg("gw-0");
    if let Some(output) = run(&mut python) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines.len(),
            3,
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            lines[0],
            "200 text/plain; version=0.0.4; charset=utf-8 True"
        );
        assert!(lines[1].starts_with(row), "{text}");
        assert_eq!(lines[2], "204 1");
    }
}
