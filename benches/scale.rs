//! Large meshes, without a machine: `push --behind` with nothing behind at 1,000 machines, `status` at 5,000 and 10,000
//! machines with five accounts each, `--version`.
//!
//! `cargo bench --bench scale`. The state is made by real pushes through the library, to machines that take everything.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark may fall, prints, and counts in floating point"
)]

mod bed;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bed::{Operator, Used, conditions, middle};
use camino::Utf8PathBuf;
use grid::cli::sources::FsSources;
use grid::delivery::Gate;
use grid::push::{Named, Orders, Ports, Pretend, Verdict, push};
use grid::store::{Holder, Identity, MeshLock, Place, SledStore, SystemChance};
use jiff::Timestamp;

/// Accounts of each machine.
const ACCOUNTS: usize = 5;
/// Machines for each group of providers: so long are their lists.
const GROUP: usize = 200;

fn main() {
    if bed::measured() {
        return;
    }
    conditions();
    println!(
        "{:<44} {:>9} {:>9} {:>9}",
        "", "wall ms", "CPU ms", "peak MiB"
    );
    let behind = of_machines(1_000);
    show(
        "push --behind, nothing behind, 1,000 machines",
        several(&behind, &["push", "--behind", "--quiet"], 9),
    );
    show("--version", several(&behind, &["--version"], 21));
    let half = several(&of_machines(5_000), &["status", "--quiet"], 3);
    show("status, 5,000 machines, 25,000 accounts", half);
    let whole = several(&of_machines(10_000), &["status", "--quiet"], 3);
    show("status, 10,000 machines, 50,000 accounts", whole);
    println!(
        "twice the machines: {:.2} × the CPU, {:.2} × the wall, {:.2} × the memory",
        whole.cpu / half.cpu,
        whole.wall / half.wall,
        whole.peak / half.peak
    );
}

fn several(operator: &Operator, arguments: &[&str], times: usize) -> Used {
    let runs: Vec<Used> = (0..times).map(|_| operator.grid(arguments)).collect();
    middle(runs, |used| used.wall)
}

fn show(what: &str, used: Used) {
    println!(
        "{what:<44} {:>9.1} {:>9.1} {:>9.1}",
        used.wall, used.cpu, used.peak
    );
}

/// A mesh of so many machines, a consumer of five providers on each; all of it is current.
fn of_machines(count: usize) -> Operator {
    let operator = Operator::new();
    operator.write("mesh.toml", declaration(count));
    let folder = Utf8PathBuf::from_path_buf(operator.mesh.clone()).unwrap();
    let mesh = grid::mesh::load(&folder).unwrap().mesh;
    let identity = Identity::find(None, None, Some(operator.home.as_os_str())).unwrap();
    let now = Timestamp::now();
    let holder = Holder::here("bench", "push 1", now);
    let lock = MeshLock::take(&Place::beside(&operator.mesh), holder, Duration::ZERO).unwrap();
    let mut store = SledStore::open_or_create(lock, identity, &[], now).unwrap();
    let orders = Orders {
        named: Named::Behind,
        max_rounds: None,
        max_failures: None,
        take_over: false,
        sender: "bench".to_owned(),
        today: jiff::civil::date(2026, 1, 1),
    };
    let ports = Ports {
        store: &mut store,
        couriers: &mut Pretend,
        sources: Arc::new(FsSources::new(
            folder,
            mesh.secrets.clone(),
            Box::new(|| Err("none is needed".to_owned())),
        )),
        chance: &mut SystemChance,
        gate: Gate::default(),
        hear: &mut |_| {},
    };
    let report = push(&mesh, &orders, ports).unwrap();
    assert_eq!(report.verdict(), Verdict::Done);
    assert_eq!(report.minted, (count - providers(count)) * ACCOUNTS);
    operator
}

/// How many machines are there for providers; each has five of them.
fn providers(count: usize) -> usize {
    count / GROUP
}

fn declaration(count: usize) -> String {
    let providers = providers(count);
    let mut text = "[mesh]\nname = \"bench\"\n[defaults]\nuser = \"grid\"\n".to_owned();
    for n in 0..count {
        let _ = writeln!(
            text,
            "[nodes.m{n}]\naddress = \"10.{}.{}.{}\"",
            n >> 16,
            (n >> 8) & 255,
            n & 255
        );
        if n < providers {
            for broker in 0..ACCOUNTS {
                let _ = writeln!(
                    text,
                    "[services.broker-{n}-{broker}]\nnode = \"m{n}\"\nprovides = {{ kind = \"rabbitmq\", port = {} }}",
                    5672 + broker
                );
            }
        } else {
            let of: Vec<String> = (0..ACCOUNTS)
                .map(|broker| format!("\"broker-{}-{broker}\"", n % providers))
                .collect();
            let _ = writeln!(
                text,
                "[services.app-{n}]\nnode = \"m{n}\"\nconsumes = [{}]\napply = [\"systemctl\", \"reload\", \"app\"]\n\
                 files = [{{ path = \"app.toml\", content = \"listen = {n}\" }}]",
                of.join(", ")
            );
        }
    }
    text
}
