//! A source of 1 GiB through the courier ssh: how much memory grid has at most, and whether the file is sent again
//! when another one of that machine changes.
//!
//! `cargo bench --bench large`; needs root, openssh-server, and 3 GiB below the temporary folder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark may fall and prints"
)]

mod bed;

use std::fs::File;
use std::io::Write as _;

use bed::{Operator, Sshd, Used, addresses, conditions};

const MIB: usize = 1024 * 1024;

fn main() {
    if bed::measured() {
        return;
    }
    conditions();
    let operator = Operator::new();
    let addresses = addresses(1);
    let sshd = Sshd::start(&operator, &addresses);
    operator.write(
        "mesh.toml",
        format!(
            "[mesh]\nname = \"bench\"\n[nodes.m]\naddress = \"{}\"\nuser = \"root\"\nport = {}\nidentity = \"{}\"\nroot = \"{}\"\n\
             [services.app]\nnode = \"m\"\napply = [\"true\"]\n\
             [[services.app.files]]\npath = \"large\"\nsource = \"large\"\n\
             [[services.app.files]]\npath = \"small\"\nsource = \"small\"\n",
            addresses.concat(),
            sshd.port,
            operator.home.join(".ssh/id_ed25519").display(),
            operator.dir.path().join("machine").display(),
        ),
    );
    operator.write("small", "one");
    let mut large = File::create(operator.mesh.join("large")).unwrap();
    for n in 0..1024_usize {
        large.write_all(&vec![n.to_le_bytes()[0]; MIB]).unwrap();
    }
    drop(large);
    let first = push(&operator, "1 GiB and a small file, new");
    operator.write("small", "two");
    let second = push(&operator, "the small file changes");
    println!(
        "peak {:.1} MiB of 150; the second push sends {:.6} × the first's bytes",
        first.0.peak,
        second.1 / first.1
    );
}

/// Pushes; what it used, and how many bytes it says it sent.
fn push(operator: &Operator, what: &str) -> (Used, f64) {
    let used = operator.grid(&["push", "m", "--json"]);
    let printed = operator.printed();
    let bytes: f64 = printed
        .split("\"bytes\":")
        .skip(1)
        .filter_map(|rest| rest.split([',', '}']).next()?.trim().parse::<f64>().ok())
        .sum();
    println!(
        "{what:<28} {:>9.0} ms {:>9.0} ms CPU {:>7.1} MiB peak {bytes:>12} bytes sent",
        used.wall, used.cpu, used.peak
    );
    (used, bytes)
}
