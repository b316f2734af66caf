//! Identities through random histories with faults: whatever fails, no site is given an identity that a peer which knew it
//! refuses, and in the end one push leaves every site with its newest one (DESIGN.md, section 7).
//!
//! What machines hold is looked at by itself: pins against certificates, not by what the store thinks.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use camino::Utf8PathBuf;
use grid::cli::sources::FsSources;
use grid::compose::Release;
use grid::compose::bundle::Content;
use grid::compose::identities::in_use;
use grid::delivery::{
    Answer, Applied, Dispatch, FailedStep, Failure, Gate, Heard, Holding, Outcome, Parcel, Question,
};
use grid::mesh::Mesh;
use grid::provision::Need;
use grid::push::{Event, Named, Orders, Ports, Report, Verdict, push};
use grid::signals::site::Peers;
use grid::store::{Change, MemoryStore, Store as _, SystemChance};
use grid::words::{Digest, Era, NodeName, StoreId, Token};
use jiff::ToSpan as _;
use jiff::civil::{Date, date};
use proptest::prelude::*;

/// The machines, in order of name; the last ones come later.
const NAMES: [&str; 4] = ["atlas", "borealis", "cygnus", "draco"];
const BEGIN: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Op {
    Push,
    Days(i64),
    RotateSite(usize),
    RotateAuthority,
    Hold(usize),
    Unhold(usize),
    Down(usize),
    Up(usize),
    /// A machine is declared.
    Come,
    /// What becomes of the nth send from now.
    Fault(usize, Fate),
}

/// What becomes of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is put back, and its token stays.
    RolledBack,
    /// It is applied, and nobody hears of it.
    ReceiptLost,
    /// It never arrives, and nobody knows.
    Lost,
}

fn op() -> impl Strategy<Value = Op> {
    let site = 0..NAMES.len();
    prop_oneof![
        6 => Just(Op::Push),
        3 => prop_oneof![4 => 1_i64..40, 4 => 250_i64..360, 1 => 360_i64..4200].prop_map(Op::Days),
        3 => site.clone().prop_map(Op::RotateSite),
        1 => Just(Op::RotateAuthority),
        1 => site.clone().prop_map(Op::Hold),
        1 => site.clone().prop_map(Op::Unhold),
        1 => site.clone().prop_map(Op::Down),
        1 => site.prop_map(Op::Up),
        1 => Just(Op::Come),
        4 => (0_usize..6, prop_oneof![Just(Fate::RolledBack), Just(Fate::ReceiptLost), Just(Fate::Lost)])
            .prop_map(|(nth, fate)| Op::Fault(nth, fate)),
    ]
}

/// What a machine holds.
#[derive(Default)]
struct Machine {
    token: Option<Token>,
    release: Option<Arc<Release>>,
    files: BTreeMap<String, Vec<u8>>,
    /// The number of the first identity that it ever had.
    first: Option<u32>,
}

impl Machine {
    /// The pin of its certificate.
    fn pin(&self) -> Option<Digest> {
        let pem = self.files.get("services/site/identity.pem")?;
        Some(Digest::of(pem::parse(pem).unwrap().contents()))
    }

    fn number(&self) -> Option<u32> {
        self.release.as_ref()?.site.as_ref()?.identity
    }

    /// Who issued its certificate.
    fn issuer(&self) -> Vec<u8> {
        let pem = pem::parse(&self.files["services/site/identity.pem"]).unwrap();
        let (_, leaf) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();
        leaf.issuer().as_raw().to_vec()
    }

    /// Whether its certificate ends no later than the authority that issued it.
    fn ends_with_its_issuer(&self) -> bool {
        let pem = pem::parse(&self.files["services/site/identity.pem"]).unwrap();
        let (_, leaf) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();
        let pems = pem::parse_many(&self.files["services/site/authorities.pem"]).unwrap();
        pems.iter().any(|pem| {
            let (_, one) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();
            one.subject() == leaf.issuer() && leaf.validity().not_after <= one.validity().not_after
        })
    }

    /// Whether it trusts an authority.
    fn trusts(&self, authority: &[u8]) -> bool {
        let pems = pem::parse_many(&self.files["services/site/authorities.pem"]).unwrap();
        pems.iter().any(|pem| {
            let (_, one) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();
            one.subject().as_raw() == authority
        })
    }

    fn admits(&self, site: &NodeName) -> BTreeSet<Digest> {
        let peers = Peers::read(&self.files["services/site/peers.toml"]).unwrap();
        let peer = peers.peers.iter().find(|peer| peer.name == *site);
        peer.map(|peer| peer.pins.iter().copied().collect())
            .unwrap_or_default()
    }
}

/// What is seen of a history.
#[derive(Default)]
struct Seen {
    wrong: Vec<String>,
    /// Identities that went on although somebody did not know them.
    went_on: BTreeSet<(NodeName, u32)>,
}

#[derive(Default)]
struct Machines {
    held: BTreeMap<NodeName, Machine>,
    down: BTreeSet<NodeName>,
    fates: BTreeMap<usize, Fate>,
    sends: usize,
    by_spiffe: bool,
    seen: Rc<RefCell<Seen>>,
}

impl Machines {
    /// Whoever had been known to a peer is admitted by it: with the identity that it has now.
    fn look(&self) {
        for (site, machine) in &self.held {
            let (Some(pin), Some(number)) = (machine.pin(), machine.number()) else {
                continue;
            };
            if !machine.ends_with_its_issuer() {
                let wrong = format!("identity {number} of {site} outlives its authority");
                self.seen.borrow_mut().wrong.push(wrong);
            }
            // A first identity waits for nobody.
            if machine.first == Some(number)
                || self.seen.borrow().went_on.contains(&(site.clone(), number))
            {
                continue;
            }
            for (peer, other) in &self.held {
                if peer == site || other.release.is_none() {
                    continue;
                }
                let is_admitted = match self.by_spiffe {
                    true => other.trusts(&machine.issuer()),
                    false => other.admits(site).contains(&pin),
                };
                if !is_admitted {
                    let wrong = format!("{peer} refuses identity {number} of {site}");
                    self.seen.borrow_mut().wrong.push(wrong);
                }
            }
        }
    }

    fn arrive(&mut self, parcel: &Parcel) -> Outcome {
        let node = &parcel.target.node.name;
        let fate = self.fates.remove(&self.sends);
        self.sends += 1;
        if self.down.contains(node) {
            return Outcome::NotReached(failure(FailedStep::Connect));
        }
        if fate == Some(Fate::Lost) {
            return Outcome::Uncertain(failure(FailedStep::Receipt));
        }
        let machine = self.held.entry(node.clone()).or_default();
        let expected = match machine.token {
            Some(token) => parcel.replaces.contains(&token),
            None => parcel.replaces.is_empty() || machine.release.is_none(),
        };
        if !expected {
            let wrong = format!("{node} is sent what does not follow on what it holds");
            self.seen.borrow_mut().wrong.push(wrong);
        }
        machine.token = Some(parcel.token);
        if fate == Some(Fate::RolledBack) {
            return Outcome::RolledBack {
                failure: failure(FailedStep::Check),
                lists: BTreeSet::new(),
            };
        }
        let before = std::mem::take(&mut machine.files).into_values();
        let before: BTreeMap<Digest, Vec<u8>> = before.map(|b| (Digest::of(&b), b)).collect();
        for file in parcel.bundle.manifest.files() {
            let bytes = match parcel.bundle.contents.get(&file.sha256) {
                Some(Content::Bytes(bytes)) => bytes.to_vec(),
                _ => before[&file.sha256].clone(),
            };
            machine.files.insert(file.path.to_string(), bytes);
        }
        machine.release = Some(Arc::clone(&parcel.bundle.manifest));
        machine.first = machine.first.or(machine.number());
        self.look();
        match fate {
            Some(Fate::ReceiptLost) => Outcome::Uncertain(failure(FailedStep::Receipt)),
            _ => Outcome::Applied(Applied::default()),
        }
    }
}

fn failure(step: FailedStep) -> Failure {
    Failure {
        step,
        service: None,
        cause: "so it was planned".to_owned(),
        output: Vec::new(),
        hint: None,
    }
}

impl Dispatch for Machines {
    fn send(&mut self, parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for parcel in parcels {
            let outcome = self.arrive(&parcel);
            hear(&parcel.target.node.name, Heard::Settled(outcome));
        }
    }

    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for question in questions {
            let node = &question.target.node.name;
            let answer = if self.down.contains(node) {
                Answer::Unknown(failure(FailedStep::Connect))
            } else {
                let machine = self.held.entry(node.clone()).or_default();
                Answer::Holds(Holding {
                    token: machine.token,
                    manifest: machine.release.clone(),
                    lists: BTreeMap::new(),
                    log: Vec::new(),
                })
            };
            hear(node, Heard::Answered(answer));
        }
    }
}

struct History {
    _dir: tempfile::TempDir,
    folder: Utf8PathBuf,
    trust: &'static str,
    store: MemoryStore,
    machines: Machines,
    today: Date,
    declared: usize,
    hold: BTreeSet<usize>,
}

impl History {
    fn new(trust: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        Self {
            _dir: dir,
            folder,
            trust,
            store: MemoryStore::new(StoreId([3; 8]), Era(1)),
            machines: Machines {
                by_spiffe: trust == "spiffe",
                ..Machines::default()
            },
            today: date(2026, 1, 1),
            declared: BEGIN,
            hold: BTreeSet::new(),
        }
    }

    fn mesh(&self) -> Mesh {
        let mut text = format!(
            "[mesh]\nname = \"prod\"\n[signals]\nmode = \"poll\"\ntrust = \"{}\"\n",
            self.trust
        );
        for (index, name) in NAMES.iter().enumerate().take(self.declared) {
            text.push_str(&format!("[nodes.{name}]\naddress = \"10.0.0.{index}\"\n"));
            if self.hold.contains(&index) {
                text.push_str("hold = \"in the rack\"\n");
            }
        }
        std::fs::write(self.folder.join("mesh.toml"), text).unwrap();
        grid::mesh::load(&self.folder).unwrap().mesh
    }

    fn push(&mut self) -> Report {
        let mesh = self.mesh();
        let orders = Orders {
            named: Named::Behind,
            max_rounds: None,
            max_failures: None,
            take_over: false,
            sender: "test".to_owned(),
            today: self.today,
        };
        let seen = Rc::clone(&self.machines.seen);
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
            hear: &mut |event| {
                if let Event::MintedIdentity { site, number, need } = event
                    && need == Need::GoesOn
                {
                    seen.borrow_mut().went_on.insert((site, number));
                }
            },
        };
        push(&mesh, &orders, ports).unwrap()
    }

    /// As `grid rotate --site` does it: one renewal at a time.
    fn rotate_site(&mut self, index: usize) {
        let (mesh, node) = (self.mesh(), node(index));
        let state = self.store.load().unwrap();
        let mut identities = state.identities.clone();
        let Some(identity) = identities.of(&node) else {
            return;
        };
        let used = state.fleet.get(&node).map(in_use).unwrap_or_default();
        let newest = identity.newest().number;
        if !used.is_empty() && used != BTreeSet::from([newest]) {
            return;
        }
        let name = &mesh.name;
        identities
            .renew(name, &node, self.today, &mut SystemChance)
            .unwrap();
        let changes = [
            Change::Identity(node.clone(), identities.of(&node).unwrap().clone()),
            Change::Authorities(identities.authorities().clone()),
        ];
        self.store.commit(&changes).unwrap();
    }

    fn rotate_authority(&mut self) {
        let mesh = self.mesh();
        let mut identities = self.store.load().unwrap().identities.clone();
        if identities.authorities().all().len() == 1 {
            identities
                .renew_authority(&mesh.name, self.today, &mut SystemChance)
                .unwrap();
            let changes = [Change::Authorities(identities.authorities().clone())];
            self.store.commit(&changes).unwrap();
        }
    }

    fn happens(&mut self, op: Op) {
        match op {
            Op::Push => drop(self.push()),
            Op::Days(days) => self.today = self.today.checked_add(days.days()).unwrap(),
            Op::RotateSite(index) => self.rotate_site(index),
            Op::RotateAuthority => self.rotate_authority(),
            Op::Hold(index) => drop(self.hold.insert(index)),
            Op::Unhold(index) => drop(self.hold.remove(&index)),
            Op::Down(index) => drop(self.machines.down.insert(node(index))),
            Op::Up(index) => drop(self.machines.down.remove(&node(index))),
            Op::Come => self.declared = NAMES.len(),
            Op::Fault(nth, fate) => {
                let at = self.machines.sends + nth;
                self.machines.fates.insert(at, fate);
            }
        }
    }

    /// All is repaired: one push is enough, and the next one sends nothing.
    fn ends_well(&mut self) {
        self.hold.clear();
        self.machines.down.clear();
        self.machines.fates.clear();
        // What was rolled back is not tried again unless it is named, or has changed.
        let rolled_back = self.push();
        let report = match rolled_back.verdict() {
            Verdict::Incomplete if !rolled_back.rolled_back.is_empty() => self.push(),
            _ => rolled_back,
        };
        assert_eq!(report.verdict(), Verdict::Done, "{report:?}");
        let sends = self.machines.sends;
        assert_eq!(self.push().verdict(), Verdict::Done);
        assert_eq!(self.machines.sends, sends, "a second push sends again");
        let state = self.store.load().unwrap();
        let authorities = state.identities.authorities();
        assert_eq!(authorities.all().len(), 1);
        assert!(!authorities.are_due(self.today));
        for index in 0..self.declared {
            let site = node(index);
            let identity = state.identities.of(&site).unwrap();
            let machine = &self.machines.held[&site];
            assert_eq!(machine.number(), Some(identity.newest().number));
            assert_eq!(identity.generations().count(), 1);
            assert!(authorities.end_of(identity.newest()) > self.today);
            for peer in (0..self.declared).filter(|peer| *peer != index && !self.machines.by_spiffe)
            {
                let admitted = self.machines.held[&node(peer)].admits(&site);
                assert_eq!(admitted, BTreeSet::from([machine.pin().unwrap()]));
            }
        }
    }
}

fn node(index: usize) -> NodeName {
    NodeName::new(NAMES[index]).unwrap()
}

fn cases() -> u32 {
    let asked = std::env::var("GRID_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_renewal_makes_a_peer_refuse_a_site_that_it_knew_and_in_the_end_all_have_their_newest_identity(
        by_spiffe in proptest::bool::weighted(0.4),
        ops in proptest::collection::vec(op(), 1..24),
    ) {
        let mut history = History::new(if by_spiffe { "spiffe" } else { "pin" });
        history.push();
        for op in ops {
            history.happens(op);
            let wrong = history.machines.seen.borrow().wrong.clone();
            prop_assert!(wrong.is_empty(), "{:?}: {}", op, wrong.join("; "));
        }
        history.ends_well();
        let wrong = history.machines.seen.borrow().wrong.clone();
        prop_assert!(wrong.is_empty(), "at the end: {}", wrong.join("; "));
    }
}
