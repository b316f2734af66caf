//! Identities of sites through whole pushes: who is given which, who admits whom, and who blocks a renewal (DESIGN.md,
//! section 7). The machines take everything; the rules are the real ones.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use grid::cli::sources::FsSources;
use grid::compose::identities::blocking;
use grid::delivery::{Dispatch, Gate, Heard, Parcel, Question};
use grid::mesh::Mesh;
use grid::provision::days_left;
use grid::push::{Event, Named, Orders, Ports, Pretend, Report, Verdict, push};
use grid::signals::site::{Peers, Site};
use grid::store::{Change, MemoryStore, Store as _, SystemChance};
use grid::words::{Digest, Era, NodeName, StoreId};
use jiff::ToSpan as _;
use jiff::civil::{Date, date};

const TODAY: Date = date(2026, 1, 1);

/// Machines that take everything, and what they hold of it.
#[derive(Default)]
struct Machines(BTreeMap<NodeName, BTreeMap<String, Vec<u8>>>);

impl Dispatch for Machines {
    fn send(&mut self, parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for parcel in &parcels {
            let held = self.0.entry(parcel.target.node.name.clone()).or_default();
            let before = std::mem::take(held);
            let by_digest: BTreeMap<Digest, Vec<u8>> =
                before.into_values().map(|b| (Digest::of(&b), b)).collect();
            for file in parcel.bundle.manifest.files() {
                let bytes = match parcel.bundle.contents.get(&file.sha256) {
                    Some(grid::compose::bundle::Content::Bytes(bytes)) => bytes.to_vec(),
                    _ => by_digest[&file.sha256].clone(),
                };
                held.insert(file.path.to_string(), bytes);
            }
        }
        Pretend.send(parcels, hear);
    }
    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        Pretend.ask(questions, hear);
    }
}

struct Bed {
    _dir: tempfile::TempDir,
    folder: Utf8PathBuf,
    store: MemoryStore,
    machines: Machines,
}

impl Bed {
    fn new(signals: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let bed = Self {
            _dir: dir,
            folder,
            store: MemoryStore::new(StoreId([3; 8]), Era(1)),
            machines: Machines::default(),
        };
        bed.declare(signals, "");
        bed
    }

    fn declare(&self, signals: &str, more: &str) {
        let text = format!(
            "[mesh]\nname = \"prod\"\n{signals}\n[nodes.atlas]\naddress = \"10.0.0.1\"\n[nodes.borealis]\n\
             address = \"10.0.0.2\"\n[nodes.cygnus]\naddress = \"10.0.0.3\"\n{more}\n"
        );
        std::fs::write(self.folder.join("mesh.toml"), text).unwrap();
    }

    fn mesh(&self) -> Mesh {
        let loaded = grid::mesh::load(&self.folder);
        loaded.unwrap_or_else(|wrong| panic!("{wrong:?}")).mesh
    }

    /// Pushes whoever is behind; the machines that were sent to, by round.
    fn push(&mut self, today: Date) -> (Vec<BTreeSet<String>>, Report) {
        let mesh = self.mesh();
        let orders = Orders {
            named: Named::Behind,
            max_rounds: None,
            max_failures: None,
            take_over: false,
            sender: "test".to_owned(),
            today,
        };
        let mut rounds: Vec<BTreeSet<String>> = Vec::new();
        let mut hear = |event: Event| {
            if let Event::Sent { node, round, .. } = event {
                rounds.resize(rounds.len().max(round + 1), BTreeSet::new());
                rounds[round].insert(node.to_string());
            }
        };
        let ports = Ports {
            store: &mut self.store,
            couriers: &mut self.machines,
            sources: Arc::new(FsSources::new(
                self.folder.clone(),
                mesh.secrets.clone(),
                Box::new(|| Err("none is needed".to_owned())),
            )),
            chance: &mut SystemChance,
            gate: Gate::default(),
            hear: &mut hear,
        };
        let report = push(&mesh, &orders, ports).unwrap();
        (rounds, report)
    }

    fn file(&self, on: &str, name: &str) -> Vec<u8> {
        self.machines.0[&node(on)][&format!("services/site/{name}")].clone()
    }

    fn pins(&self, on: &str, of: &str) -> usize {
        self.pin_list(on, of).len()
    }

    fn pin_list(&self, on: &str, of: &str) -> Vec<String> {
        let peers = Peers::read(&self.file(on, "peers.toml")).unwrap();
        let peer = peers.peers.iter().find(|peer| peer.name == node(of));
        let pins = peer.unwrap().pins.iter();
        pins.map(ToString::to_string).collect()
    }

    /// The number of the identity that a machine has.
    fn identity(&mut self, on: &str) -> u32 {
        let state = self.store.load().unwrap();
        let sent = state.fleet[&node(on)].sent.as_ref().unwrap();
        sent.manifest.site.as_ref().unwrap().identity.unwrap()
    }

    fn blocking(&mut self, site: &str) -> Vec<String> {
        let state = self.store.load().unwrap();
        let mesh = self.mesh();
        let blocking = blocking(&state.world(&mesh), &node(site));
        blocking.iter().map(ToString::to_string).collect()
    }
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn all() -> BTreeSet<String> {
    ["atlas", "borealis", "cygnus"].map(str::to_owned).into()
}

const POLL: &str = "[signals]\nmode = \"poll\"";

#[test]
fn a_first_push_gives_every_site_its_identity_and_everybody_elses_pin_in_one_send() {
    let mut bed = Bed::new(POLL);
    let (rounds, report) = bed.push(TODAY);
    assert_eq!(rounds, [all()]);
    assert_eq!(report.verdict(), Verdict::Done);
    let site = Site::read(&bed.file("atlas", "site.toml")).unwrap();
    assert_eq!(
        (site.mode.as_str(), site.trust.as_str(), site.port),
        ("poll", "pin", 9091)
    );
    for on in all() {
        for of in all() {
            assert_eq!(bed.pins(&on, &of), 1);
        }
    }
    let certificate = String::from_utf8(bed.file("atlas", "identity.pem")).unwrap();
    let der = pem::parse(certificate).unwrap();
    let peers = Peers::read(&bed.file("borealis", "peers.toml")).unwrap();
    assert_eq!(
        peers.peers[0].pins.iter().next(),
        Some(&Digest::of(der.contents()))
    );
    let (rounds, _) = bed.push(TODAY);
    assert!(rounds.is_empty());
}

#[test]
fn writing_down_what_holds_anyway_sends_nothing() {
    let mut bed = Bed::new("[signals]");
    bed.push(TODAY);
    bed.declare(
        "[signals]\nmode = \"gossip\"\ntrust = \"pin\"\nport = 9091",
        "",
    );
    let (rounds, report) = bed.push(TODAY);
    assert!(rounds.is_empty());
    assert_eq!(report.verdict(), Verdict::Done);
}

#[test]
fn in_a_renewal_all_peers_admit_the_new_identity_before_a_site_has_it_and_the_old_pin_goes_last() {
    let mut bed = Bed::new(POLL);
    bed.push(TODAY);
    let later = TODAY.checked_add(300.days()).unwrap();
    let (rounds, report) = bed.push(later);
    assert_eq!(rounds, [all(), all(), all()]);
    assert_eq!(report.verdict(), Verdict::Done);
    for on in all() {
        assert_eq!(bed.identity(&on), 2);
        assert_eq!(bed.pins(&on, "atlas"), 1);
    }
    assert_eq!(bed.push(later).0, []);
}

#[test]
fn a_peer_on_hold_blocks_a_renewal_by_name_until_fourteen_days_before_the_old_identity_expires() {
    let mut bed = Bed::new(POLL);
    bed.push(TODAY);
    let (days, held) = (365, "hold = \"in the rack\"");
    let at = |left: i64| TODAY.checked_add((days - left).days()).unwrap();
    bed.declare(POLL, held);
    let (_, report) = bed.push(at(60));
    assert_eq!(bed.identity("atlas"), 1);
    assert_eq!(bed.pins("borealis", "atlas"), 2);
    assert_eq!(bed.blocking("atlas"), ["cygnus"]);
    let renewal = &report.renewals[&node("atlas")];
    assert_eq!(renewal.waits_for, BTreeSet::from([node("cygnus")]));
    assert_eq!(renewal.goes_on, at(13));
    assert!(report.on_hold.contains_key(&node("cygnus")));
    let (rounds, _) = bed.push(at(14));
    assert!(rounds.is_empty());
    bed.push(at(13));
    assert_eq!(bed.identity("atlas"), 2);
    assert!(bed.blocking("atlas").is_empty());
    // The one on hold has what it had, and the others admit it.
    assert_eq!(bed.identity("cygnus"), 1);
    assert_eq!(bed.pins("atlas", "cygnus"), 2);
    assert_eq!(days_left(at(0), at(13)), 13);
}

#[test]
fn under_spiffe_a_renewal_waits_for_nobody_and_no_pin_is_written() {
    let mut bed = Bed::new("[signals]\nmode = \"poll\"\ntrust = \"spiffe\"");
    bed.push(TODAY);
    assert_eq!(bed.pins("atlas", "borealis"), 0);
    let (rounds, _) = bed.push(TODAY.checked_add(300.days()).unwrap());
    assert_eq!(rounds, [all()]);
    assert_eq!(bed.identity("cygnus"), 2);
}

#[test]
fn under_spiffe_a_renewal_waits_until_all_trust_the_authority_that_issued_it() {
    let mut bed = Bed::new("[signals]\nmode = \"poll\"\ntrust = \"spiffe\"");
    bed.push(TODAY);
    let mesh = bed.mesh();
    let mut identities = bed.store.load().unwrap().identities.clone();
    identities
        .renew_authority(&mesh.name, TODAY, &mut SystemChance)
        .unwrap();
    bed.store
        .commit(&[Change::Authorities(identities.authorities().clone())])
        .unwrap();
    // A renewal falls due before anybody heard of the new authority.
    let (rounds, report) = bed.push(TODAY.checked_add(300.days()).unwrap());
    assert_eq!(rounds.len(), 3, "{rounds:?}");
    assert_eq!(report.verdict(), Verdict::Done);
    assert_eq!(bed.identity("cygnus"), 2);
}

#[test]
fn in_twenty_years_of_pushes_no_identity_outlives_its_authority_and_no_push_is_more_than_one() {
    for trust in ["pin", "spiffe"] {
        let mut bed = Bed::new(&format!("[signals]\nmode = \"poll\"\ntrust = \"{trust}\""));
        let mut today = TODAY;
        for _ in 0..100 {
            let (_, report) = bed.push(today);
            assert_eq!(report.verdict(), Verdict::Done);
            assert_eq!(bed.push(today).0, [], "{trust} {today}");
            let state = bed.store.load().unwrap();
            let authorities = state.identities.authorities();
            assert!(!authorities.are_due(today));
            assert_eq!(authorities.all().len(), 1);
            let issuer = authorities.newest().unwrap();
            for (site, identity) in state.identities.iter() {
                assert_eq!(identity.newest().authority, issuer.number);
                assert!(identity.newest().until <= issuer.until, "{site} {today}");
                assert!(
                    days_left(identity.newest().until, today) >= 90,
                    "{site} {today}"
                );
            }
            today = today.checked_add(75.days()).unwrap();
        }
        let authorities = bed.store.load().unwrap();
        let newest = authorities.identities.authorities().newest().unwrap();
        assert_eq!(
            newest.number, 3,
            "ten years each, fifteen months before the end"
        );
    }
}

#[test]
fn a_due_authority_is_minted_by_a_push_and_issues_once_the_machine_on_hold_knows_it_too() {
    let mut bed = Bed::new("[signals]\nmode = \"poll\"\ntrust = \"spiffe\"");
    // Identities that are not due themselves when their authority is.
    bed.push(TODAY);
    let until = bed.store.load().unwrap().identities.authorities().all()[0].until;
    let at = |left: i64| until.checked_sub(left.days()).unwrap();
    bed.push(at(365 + 95));
    assert_eq!(bed.identity("atlas"), 2);
    let signals = "[signals]\nmode = \"poll\"\ntrust = \"spiffe\"";
    bed.declare(signals, "hold = \"in the rack\"");
    let (rounds, report) = bed.push(at(365 + 89));
    let others: BTreeSet<String> = ["atlas", "borealis"].map(str::to_owned).into();
    assert_eq!(rounds, [others]);
    assert!(report.on_hold.contains_key(&node("cygnus")));
    assert_eq!(bed.identity("atlas"), 2, "the old authority's is good");
    let held = String::from_utf8(bed.file("atlas", "authorities.pem")).unwrap();
    assert_eq!(held.matches("BEGIN CERTIFICATE").count(), 2);
    assert_eq!(bed.push(at(365 + 80)).0, []);

    bed.declare(signals, "");
    let (rounds, report) = bed.push(at(365 + 80));
    assert_eq!(report.verdict(), Verdict::Done, "{rounds:?}");
    let state = bed.store.load().unwrap();
    let newest = state.identities.authorities().newest().unwrap();
    assert_eq!(
        (newest.number, state.identities.authorities().all().len()),
        (2, 1)
    );
    for on in all() {
        let identity = state.identities.of(&node(&on)).unwrap();
        assert_eq!(identity.newest().authority, 2);
        let held = String::from_utf8(bed.file(&on, "authorities.pem")).unwrap();
        assert_eq!(held.matches("BEGIN CERTIFICATE").count(), 1);
    }
}

#[test]
fn a_site_with_an_identity_of_its_own_is_listed_by_its_pins_and_given_nothing() {
    let mut bed = Bed::new(POLL);
    let pin = "AB:".repeat(31) + "AB";
    bed.declare(POLL, &format!("pins = [\"{pin}\"]"));
    bed.push(TODAY);
    let peers = Peers::read(&bed.file("atlas", "peers.toml")).unwrap();
    let pins: Vec<String> = peers.peers[2]
        .pins
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(pins, ["ab".repeat(32)]);
    assert!(bed.machines.0[&node("cygnus")].is_empty());
}

#[test]
fn a_site_whose_identity_lies_on_the_machine_is_sent_the_rest_of_it_and_renewals_wait_for_it() {
    let mut bed = Bed::new(POLL);
    bed.push(TODAY);
    let grids = bed.pin_list("atlas", "cygnus");
    let pin = "ab".repeat(32);
    let site = "site = { certificate = \"/etc/pki/site.pem\", key = \"/etc/pki/site.key\" }";
    bed.declare(POLL, &format!("pins = [\"{pin}\"]\n{site}"));
    let mesh = bed.mesh();
    let state = bed.store.load().unwrap();
    // Until it has its own, its peers admit what it was given.
    let (pins, _) = grid::compose::identities::pins(&state.world(&mesh), &mesh.nodes["cygnus"]);
    assert_eq!(pins.len(), 2);
    assert!(pins.iter().any(|pin| grids.contains(&pin.to_string())));
    bed.push(TODAY);
    let held = &bed.machines.0[&node("cygnus")];
    assert!(
        !held.keys().any(|path| path.contains("identity")),
        "{:?}",
        held.keys()
    );
    let written = Site::read(&bed.file("cygnus", "site.toml")).unwrap();
    assert_eq!(written.identity.certificate.as_str(), "/etc/pki/site.pem");
    assert_eq!(written.identity.key.as_str(), "/etc/pki/site.key");
    assert_eq!(bed.pin_list("atlas", "cygnus"), std::slice::from_ref(&pin));
    assert_eq!(bed.store.load().unwrap().identities.iter().count(), 2);

    // It admits what it was sent, so a renewal of another waits for it.
    bed.declare(
        POLL,
        &format!("pins = [\"{pin}\"]\n{site}\nhold = \"in the rack\""),
    );
    bed.push(TODAY.checked_add(300.days()).unwrap());
    assert_eq!(bed.blocking("atlas"), ["cygnus"]);
}

#[test]
fn authorities_from_elsewhere_are_trusted_beside_the_meshs_own() {
    let mut bed =
        Bed::new("[signals]\nmode = \"poll\"\ntrust = \"spiffe\"\nauthorities = \"ca.pem\"");
    let other = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
    std::fs::write(
        bed.folder.join("ca.pem"),
        other.cert.pem().replace('\n', "\r\n"),
    )
    .unwrap();
    bed.push(TODAY);
    let held = String::from_utf8(bed.file("atlas", "authorities.pem")).unwrap();
    assert_eq!(held.matches("BEGIN CERTIFICATE").count(), 2);
    assert!(held.ends_with(&other.cert.pem()), "{held}");

    // One that is past the bound is refused whole, although it begins with certificates.
    let past = other.cert.pem().repeat(200);
    std::fs::write(bed.folder.join("ca.pem"), past).unwrap();
    let refused = grid::mesh::load(&bed.folder).unwrap_err().to_string();
    assert!(
        refused.contains("it is larger than 65536 bytes"),
        "{refused}"
    );
    for wrong in ["", "x", &other.signing_key.serialize_pem()] {
        std::fs::write(bed.folder.join("ca.pem"), wrong).unwrap();
        let refused = grid::mesh::load(&bed.folder).unwrap_err().to_string();
        assert!(
            refused.contains("ca.pem: it holds certificates"),
            "{refused}"
        );
    }
}

#[test]
fn an_identity_made_elsewhere_is_declared_whole() {
    let bed = Bed::new(POLL);
    let refused = |more: &str| {
        bed.declare(POLL, more);
        grid::mesh::load(&bed.folder).unwrap_err().to_string()
    };
    let without = refused("site = { certificate = \"/a\", key = \"/b\" }");
    assert!(without.contains("add `pins = "), "{without}");
    let half = refused("site = { certificate = \"/a\" }");
    assert!(
        half.contains("an identity is a certificate and a key"),
        "{half}"
    );
    let relative = refused("site = { certificate = \"a\", key = \"/b\" }");
    assert!(
        relative.contains("an absolute path starts with /"),
        "{relative}"
    );
}

#[test]
fn who_takes_signals_out_of_the_declaration_takes_the_sites_off_and_their_identities_go() {
    let mut bed = Bed::new(POLL);
    bed.push(TODAY);
    bed.declare("", "");
    let (rounds, report) = bed.push(TODAY);
    assert_eq!(rounds, [all()]);
    assert_eq!(report.verdict(), Verdict::Done);
    assert!(bed.machines.0.values().all(BTreeMap::is_empty));
    assert_eq!(bed.store.load().unwrap().identities.iter().count(), 0);
}

#[test]
fn settings_and_what_metrics_mean_go_to_every_site() {
    let mut bed = Bed::new(POLL);
    bed.push(TODAY);
    let usual = Site::read(&bed.file("borealis", "site.toml")).unwrap();
    bed.declare(
        POLL,
        "[signals.settings]\npoll_interval_ms = 500\n[services.broker]\nnode = \"atlas\"\n\
         metrics = \"http://127.0.0.1:15692/metrics\"\n[services.broker.signals]\n\
         score = { by = \"queue-depth\", capacity = 100 }\nmap = { queue-depth = [\"rabbitmq_queue_messages\"] }",
    );
    bed.push(TODAY);
    for site in ["atlas", "borealis", "cygnus"] {
        let read = Site::read(&bed.file(site, "site.toml")).unwrap();
        assert_eq!(read.settings.poll_interval_ms.duration().as_millis(), 500);
        assert_eq!(read.settings.poll_attempts, usual.settings.poll_attempts);
        assert_eq!(read.scrapes.len(), usize::from(site == "atlas"));
        let [watched] = &read.watches[..] else {
            panic!("{:?}", read.watches)
        };
        assert_eq!(watched.provider.as_str(), "broker");
        assert_eq!(watched.maps[0].metric.as_str(), "rabbitmq_queue_messages");
        assert_eq!(
            watched.score.to_owned(),
            grid::words::Strategy::QueueDepth {
                capacity: grid::words::Capacity::new(100.0).unwrap()
            }
        );
    }
}
