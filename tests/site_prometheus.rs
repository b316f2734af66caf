//! What Prometheus makes of a site: promtool accepts what it serves and what it shows of itself, and the alerts and the
//! dashboard in `packaging/` speak of metrics that a daemon really shows.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

mod site_bed;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use site_bed::client::{Caller, get, post, report};
use site_bed::{Authority, PORT, Provider, Site, until};

/// What promtool ends with where nothing is but lint.
const LINT: i32 = 3;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What a command makes of `input`; nothing where it is not installed, which CI does not allow.
fn run(command: &mut Command, input: &str) -> Option<Output> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match command.spawn() {
        Ok(mut child) => {
            // All of them are small enough for a pipe, or read before they write.
            child
                .stdin
                .take()
                .unwrap()
                .write_all(input.as_bytes())
                .unwrap();
            Some(child.wait_with_output().unwrap())
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{command:?}: {error}");
            None
        }
    }
}

fn promtool(arguments: &[&str], input: &str) -> Option<(i32, String)> {
    let output = run(Command::new("promtool").args(arguments), input)?;
    let mut said = String::from_utf8(output.stdout).unwrap();
    said += &String::from_utf8(output.stderr).unwrap();
    Some((output.status.code().unwrap(), said))
}

/// A site of which every family has a series: one that polls a peer, scrapes, is reported to and called by strangers.
fn busy() -> (Site, Site) {
    let authority = Authority::new();
    let provider = Provider::new(
        "# TYPE llm_d_epp_average_queue_size gauge\nllm_d_epp_average_queue_size{pool=\"a\\\"\\\\b\"} 3\nqueue NaN\nqueue{q=\"1\"} 2.5e-3\ngrid_provider_ready 7\n",
    );
    let mut site = Site::new("atlas", &authority);
    let mut peer = Site::new("borealis", &authority);
    site.knows(&peer);
    peer.knows(&site);
    peer.scrapes.push(("pool", provider.url.clone()));
    site.scrapes.push(("broker", provider.url.clone()));
    site.start();
    peer.start();
    let epoch = "0123456789abcdef0123456789abcdef";
    let mut caller = Caller::connect(site.socket(), Some(&site.identity)).unwrap();
    let answer = caller.ask(&post(&report(epoch, 1, 0, true))).unwrap();
    assert_eq!(answer.status, 204);
    let stranger = Authority::new().site("borealis");
    assert!(get(site.socket(), &stranger, "/v1/site/signals").is_err());
    until("the site scraped, polled and refused rows", || {
        let page = get(site.socket(), &site.identity, "/v1/site/signals").unwrap();
        (page.body.contains("grid_site=\"borealis\"")
            && site.counter("grid_peer_poll_total{peer=\"borealis\",outcome=\"success\"}") > 0
            && site
                .metrics()
                .contains("grid_peer_signals_refused_total{peer"))
        .then_some(())
    });
    (site, peer)
}

/// The page of the daemon's own metrics, without its HTTP.
fn shown(site: &Site) -> String {
    let metrics = site.metrics();
    metrics.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Of every family that is shown: its labels, and their values.
fn families(page: &str) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut families: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for line in page.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let name = typed.split(' ').next().unwrap();
            families.entry(name.to_owned()).or_default();
        } else if !line.starts_with('#') {
            let series = line.rsplit_once(' ').unwrap().0;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let family = families.get_mut(name).unwrap();
            for label in labels
                .trim_end_matches('}')
                .split(',')
                .filter(|l| !l.is_empty())
            {
                let (label, value) = label.split_once('=').unwrap();
                let values = family.entry(label.to_owned()).or_default();
                values.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    families
}

/// A selector of an expression: a metric, and its matchers but those of `job` and `instance`, which Prometheus adds.
struct Selector {
    metric: String,
    matchers: Vec<(String, bool, String)>,
}

/// Every selector of a metric of the daemon's in an expression.
fn selectors(expression: &str) -> Vec<Selector> {
    let mut found = Vec::new();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = expression;
    while let Some(at) = rest.find("grid_") {
        rest = &rest[at..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (metric, after) = rest.split_at(end);
        rest = after;
        let inner = after.strip_prefix('{').map(|r| r.split_once('}').unwrap());
        let mut matchers = Vec::new();
        for matcher in inner
            .iter()
            .flat_map(|(inner, _)| inner.split(','))
            .filter(|m| !m.is_empty())
        {
            let (label, value) = matcher.split_once('"').unwrap();
            let name = label.trim_end_matches(['=', '~', '!']);
            if name != "job" && name != "instance" {
                let excludes = label.contains('!');
                matchers.push((
                    name.to_owned(),
                    excludes,
                    value.trim_matches('"').to_owned(),
                ));
            }
        }
        found.push(Selector {
            metric: metric.to_owned(),
            matchers,
        });
    }
    found
}

/// What an expression asks for has to be there: the metric, its labels and their values.
fn holds(expression: &str, families: &BTreeMap<String, BTreeMap<String, BTreeSet<String>>>) {
    for selector in selectors(expression) {
        let family = families.get(&selector.metric);
        let family =
            family.unwrap_or_else(|| panic!("no such metric: {} in {expression}", selector.metric));
        for (label, _, values) in &selector.matchers {
            let known = family.get(label);
            let known =
                known.unwrap_or_else(|| panic!("{} has no {label}: {expression}", selector.metric));
            for value in values.split('|') {
                assert!(
                    known.contains(value),
                    "{label} of {} is never {value}: {expression}",
                    selector.metric
                );
            }
        }
    }
}

fn alerts() -> Vec<Value> {
    let text = std::fs::read_to_string(file("packaging/alerts.yml")).unwrap();
    let rules: Value = serde_yaml_ng::from_str(&text).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

fn dashboard() -> Value {
    let text = std::fs::read(file("packaging/grafana-dashboard.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Every query of the dashboard's panels.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    targets
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn promtool_reads_what_a_site_serves_and_shows_of_itself() {
    let (site, _peer) = busy();
    let path = |name: &str| site.folder().join(name);

    // Its own metrics: without an error and without lint.
    let page = shown(&site);
    if let Some((status, said)) = promtool(&["check", "metrics"], &page) {
        assert_eq!((status, said.as_str()), (0, ""), "{page}");
    }

    // What it serves, read by curl as a gateway of the site's would. By the contract there is neither HELP nor TYPE in
    // it, and the names are the providers': promtool reads it all, and what it says is lint.
    let name = format!("x.grid.internal:{PORT}");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "30"]);
    curl.arg("--cacert").arg(path("authorities.pem"));
    curl.arg("--cert").arg(path("identity.pem"));
    curl.arg("--key").arg(path("identity.key"));
    curl.arg("--resolve")
        .arg(format!("{name}:{}", site.address));
    curl.arg(format!("https://{name}/v1/site/signals"));
    let Some(output) = run(&mut curl, "") else {
        return;
    };
    let served = String::from_utf8(output.stdout).unwrap();
    assert_eq!(served.lines().count(), 4, "{served}");
    let Some((status, said)) = promtool(&["check", "metrics"], &served) else {
        return;
    };
    assert_eq!(status, LINT, "{said}\n{served}");
    insta::assert_snapshot!(said, @"
    grid_provider_ready no help text
    llm_d_epp_average_queue_size metric names should not contain abbreviated units
    llm_d_epp_average_queue_size no help text
    queue no help text
    ");
    // What is not in the format is no lint: promtool can tell, and so can this test.
    let broken = served.replacen("\"} ", "} ", 1);
    let (status, said) = promtool(&["check", "metrics"], &broken).unwrap();
    assert!(
        status == 1 && said.contains("text format parsing error"),
        "{said}"
    );
}

#[test]
fn alerts_and_dashboard_speak_of_metrics_that_a_daemon_shows() {
    let (site, _peer) = busy();
    let page = shown(&site);
    let families = families(&page);

    let alerts = alerts();
    assert!(alerts.len() >= 10);
    for alert in &alerts {
        holds(alert["expr"].as_str().unwrap(), &families);
    }
    let dashboard = dashboard();
    let queries = queries(&dashboard);
    for query in &queries {
        holds(query, &families);
    }

    // Nothing that a daemon shows is missing in the dashboard.
    let on_it: BTreeSet<String> = queries
        .iter()
        .flat_map(|query| selectors(query))
        .map(|selector| selector.metric)
        .collect();
    let shown: BTreeSet<String> = families.keys().cloned().collect();
    assert_eq!(on_it, shown);
}

#[test]
fn the_alerts_are_rules_that_fire_when_they_should() {
    let alerts = file("packaging/alerts.yml");
    let cases = file("tests/fixtures/alerts.yml");
    for arguments in [["check", "rules"], ["test", "rules"]] {
        let of = if arguments[0] == "check" {
            &alerts
        } else {
            &cases
        };
        let arguments = [arguments[0], arguments[1], of.to_str().unwrap()];
        if let Some((status, said)) = promtool(&arguments, "") {
            assert_eq!(status, 0, "{said}");
        }
    }
    let text = std::fs::read_to_string(cases).unwrap();
    for alert in self::alerts() {
        let text_of = |what: &Value| what.as_str().unwrap_or_default().to_owned();
        assert!(["critical", "warning"].contains(&text_of(&alert["labels"]["severity"]).as_str()));
        assert!(!text_of(&alert["annotations"]["summary"]).is_empty());
        assert!(text_of(&alert["annotations"]["description"]).len() > 40);
        // Every alert has its case, but for those that are built as another one is.
        let name = text_of(&alert["alert"]);
        let is_like_another = [
            "GridEvidenceOverflows",
            "GridReportsOfStrangers",
            "GridProviderScrapesFailing",
            "GridSignalsLeftOut",
            "GridListenerFull",
        ];
        assert!(
            text.contains(&name) != is_like_another.contains(&name.as_str()),
            "{name}"
        );
    }
}

#[test]
fn the_dashboard_is_one_that_grafana_loads() {
    let dashboard = dashboard();
    assert_eq!(dashboard["uid"], "grid-site");
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36));
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!(variables[0]["name"], "datasource");
    assert_eq!(variables[0]["type"], "datasource");
    assert_eq!(variables[0]["query"], "prometheus");
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let place = &panel["gridPos"];
        let of = |key: &str| place[key].as_u64().unwrap();
        assert!(of("x") + of("w") <= 24, "{panel}");
        for x in of("x")..of("x") + of("w") {
            for y in of("y")..of("y") + of("h") {
                assert!(taken.insert((x, y)), "two panels at {x}, {y}");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(!panel["title"].as_str().unwrap().is_empty());
        let mut refs = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            assert!(refs.insert(target["refId"].as_str().unwrap()), "{panel}");
        }
        assert!(!refs.is_empty(), "{panel}");
    }

    // Every query is one: as recording rules, promtool reads them all.
    let mut rules = "groups:\n- name: queries\n  rules:\n".to_owned();
    for (n, query) in queries(&dashboard).iter().enumerate() {
        let query = query
            .replace("$__rate_interval", "5m")
            .replace("$job", ".*")
            .replace("$instance", ".*");
        assert!(!query.contains('$'), "{query}");
        rules += &format!(
            "  - record: query:{n}\n    expr: {}\n",
            serde_json::to_string(&query).unwrap()
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queries.yml");
    std::fs::write(&path, rules).unwrap();
    if let Some((status, said)) = promtool(&["check", "rules", path.to_str().unwrap()], "") {
        assert_eq!(status, 0, "{said}");
    }
}

#[test]
fn the_manual_of_the_daemon_names_every_metric_that_it_shows_with_its_labels_and_no_other() {
    let (site, _peer) = busy();
    let shown = families(&shown(&site));
    let page = std::fs::read_to_string(file("man/grid-site-run.1")).unwrap();
    let (_, section) = page.split_once(".SH METRICS\n").unwrap();
    let mut told = BTreeMap::new();
    for line in section.lines().filter_map(|line| line.strip_prefix("\\fB")) {
        let (name, rest) = line.split_once("\\fR").unwrap();
        let labels = rest
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'));
        let labels = labels.map_or("", |(labels, _)| labels).split(',');
        let labels: BTreeSet<String> = labels
            .filter(|l| !l.is_empty())
            .map(str::to_owned)
            .collect();
        told.insert(name.to_owned(), labels);
    }
    let shown: BTreeMap<String, BTreeSet<String>> = shown
        .into_iter()
        .map(|(name, labels)| (name, labels.into_keys().collect()))
        .collect();
    assert_eq!(told, shown);
}
