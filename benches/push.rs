//! One push, against the least that could be done: grid, a bare ssh2 program, and xargs with ssh and tar, to 1, 16 and 64
//! machines that are addresses of one sshd. Each gets 20 files of 64 KiB in all, and one activation.
//!
//! `cargo bench --bench push`; needs root, openssh-server and tar.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a benchmark may fall, prints, and counts in floating point"
)]

#[path = "bed/bare.rs"]
mod bare;
mod bed;

use std::time::Instant;

use bed::{Operator, Sshd, Used, addresses, conditions, measure, middle, until};

/// Machines at a time, for all three.
const PARALLEL: usize = 16;
const FILES: usize = 20;
const BYTES: usize = 64 * 1024;

fn main() {
    if bed::measured() || bare::asked() {
        return;
    }
    conditions();
    println!(
        "{FILES} files of 64 KiB in all, one activation, {PARALLEL} machines at a time; the middle of the runs"
    );
    println!(
        "{:>8}  {:<22} {:>9} {:>12} {:>9} {:>9}",
        "machines", "", "wall ms", "CPU ms each", "peak MiB", "wall ×"
    );
    for (count, seconds) in [(1, 15), (16, 30), (64, 75)] {
        compare(count, until(seconds));
    }
}

fn compare(count: usize, until: Instant) {
    let operator = Operator::new();
    let addresses = addresses(count);
    let sshd = Sshd::start(&operator, &addresses);
    declare(&operator, &sshd, &addresses);
    let exe = std::env::current_exe().unwrap();
    let machines = operator.dir.path().join("machines");
    let (port, parallel) = (sshd.port.to_string(), PARALLEL.to_string());
    let mut bare = vec![
        bare::BARE,
        port.as_str(),
        parallel.as_str(),
        machines.to_str().unwrap(),
    ];
    bare.extend(addresses.iter().map(String::as_str));
    let xargs = format!(
        "printf '%s\\n' {} | xargs -P {PARALLEL} -I% sh -c 'tar -cf - -C {}/files . | ssh -q -o BatchMode=yes \
         -o KexAlgorithms=curve25519-sha256 -o UserKnownHostsFile={home}/.ssh/known_hosts \
         -i {home}/.ssh/id_ed25519 -p {port} root@% \"{}\"'",
        addresses.join(" "),
        operator.mesh.display(),
        bare::line(&machines.join("xargs-%")),
        home = operator.home.display(),
    );
    let mut runs: [Vec<Used>; 4] = Default::default();
    let mut run = 0;
    while run < 3 || (run < 15 && Instant::now() < until) {
        write_files(&operator, run);
        let used = [
            operator.grid(&["push", "--all", "--quiet"]),
            measure(&operator, &exe, &bare),
            measure(&operator, "sh".as_ref(), &["-c", &xargs]),
            // Named machines that are current are contacted, verified and checked.
            operator.grid(&["push", "--all", "--quiet"]),
        ];
        for (of, used) in runs.iter_mut().zip(used) {
            assert_eq!(used.code, 0, "{}", operator.printed());
            // The first run makes the store and the machines' folders.
            if run > 0 {
                of.push(used);
            }
        }
        run += 1;
    }
    let [grid, bare, xargs, contact] = runs.map(|runs| {
        let wall = middle(runs.clone(), |used| used.wall).wall;
        Used {
            wall,
            ..middle(runs, |used| used.cpu)
        }
    });
    for (name, used) in [
        ("grid push", grid),
        ("bare ssh2 program", bare),
        ("xargs, ssh and tar", xargs),
        ("grid push, nothing new", contact),
    ] {
        println!(
            "{count:>8}  {name:<22} {:>9.1} {:>12.2} {:>9.1} {:>9.2}",
            used.wall,
            used.cpu / count as f64,
            used.peak,
            used.wall / bare.wall,
        );
    }
    println!(
        "{count:>8}  CPU of grid: {:.2} × the bare program's, {:.2} × that of xargs",
        grid.cpu / bare.cpu,
        grid.cpu / xargs.cpu
    );
}

fn declare(operator: &Operator, sshd: &Sshd, addresses: &[String]) {
    let machines = operator.dir.path().join("machines");
    let key = operator.home.join(".ssh/id_ed25519");
    let mut text = format!(
        "[mesh]\nname = \"bench\"\n[defaults]\nuser = \"root\"\nport = {}\nidentity = \"{}\"\n",
        sshd.port,
        key.display()
    );
    for (n, address) in addresses.iter().enumerate() {
        let root = machines.join(format!("grid-{n}"));
        text.push_str(&format!(
            "[nodes.m{n}]\naddress = \"{address}\"\nroot = \"{}\"\ntags = [\"all\"]\n",
            root.display()
        ));
    }
    text.push_str("[services.app]\nnodes = [\"@all\"]\napply = [\"true\"]\n");
    for file in 0..FILES {
        text.push_str(&format!(
            "[[services.app.files]]\npath = \"f{file}\"\nsource = \"files/f{file}\"\n"
        ));
    }
    operator.write("mesh.toml", text);
    write_files(operator, 0);
}

/// Other bytes for every run, so that all is sent again.
fn write_files(operator: &Operator, run: usize) {
    for file in 0..FILES {
        let mut seed = (run * FILES + file) as u64 | 1 << 40;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed.to_le_bytes()[3]
        })
        .take(BYTES / FILES)
        .collect();
        operator.write(&format!("files/f{file}"), bytes);
    }
}
