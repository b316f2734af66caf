//! A planted secret is searched for in the argument lists and environments of all processes while a push goes on, on
//! both sides, and in what is printed at `-vv`. The search is proven by finding planted words that are no secrets.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod delivery_bed;
mod secret_search;
mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use delivery_bed::sshd::Sshd;
use secret_search::{Haystacks, base64, holds, look};

#[test]
fn no_secret_is_in_any_argument_list_or_environment_while_a_push_goes_on() {
    let bench = support::three_machines();
    // The load, which reads the list, waits until it was looked at.
    let script = bench.read("accounts.sh");
    let gate = bench.path("gate");
    bench.file(
        "accounts.sh",
        &script.replace(
            "load)",
            &format!(
                "load)\n\tsh -c 'until [ -e \"$1\" ]; do sleep 0.05; done' planted-argument-7291 {}",
                gate.display()
            ),
        ),
    );
    bench.grid(&["assign", "billing", "borealis"]).exits(0);
    let shown = bench
        .grid(&["provisions", "--show-secrets", "--json"])
        .exits(0);
    let view: serde_json::Value = serde_json::from_slice(shown.raw()).unwrap();
    let secret = view["provisions"][0]["generations"][0]["secret"]
        .as_str()
        .unwrap();
    assert!(holds(shown.raw(), secret), "the search finds what is there");

    let words = [secret, "planted-argument-7291", "planted-variable-7291"];
    let mut found = [false; 3];
    let arguments = ["push", "--all", "-vv"];
    let mut child = bench
        .command(&arguments)
        .env("PLANTED", "planted-variable-7291")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        look(&words, &mut found);
        if found[1] && found[2] {
            std::fs::write(&gate, "").unwrap();
        }
    }
    let seen = bench
        .seen(child.wait_with_output().unwrap(), &arguments)
        .exits(0);
    assert_eq!(found, [false, true, true], "{}", seen.all());
    assert!(!holds(&seen.bytes(), secret));
    assert!(holds(&seen.bytes(), "load of accounts"), "{}", seen.all());
}

#[test]
fn the_search_for_a_secret_finds_it_in_every_form() {
    let secret = "pl4nted-Secret_91";
    for around in ["", "a", "ab", "abc"] {
        let mut haystacks = Haystacks::default();
        let text = format!("{around}{secret}{around}");
        haystacks.add("plain", text.clone().into_bytes());
        haystacks.add("base64", base64(text.as_bytes()).into_bytes());
        haystacks.add(
            "hex",
            text.bytes()
                .map(|b| format!("{b:02x}"))
                .collect::<String>()
                .into_bytes(),
        );
        haystacks.add("without", b"planted-Secret_91".to_vec());
        let all = ["base64", "hex", "plain"].map(str::to_owned);
        assert_eq!(haystacks.with(&[secret]), BTreeSet::from(all), "{around}");
    }
}

/// Two machines behind a real sshd whose every command line is kept, and an operator's secret in a template.
struct Two {
    sshd: Sshd,
    bench: support::Bench,
    commands: PathBuf,
}

impl Two {
    fn new() -> Self {
        Self::with("", SERVICES)
    }

    /// With these keys of the first machine, and these services.
    fn with(keys: &str, services: &str) -> Self {
        let sshd = Sshd::start();
        let folder = sshd.dir.path();
        let machine = |name: &str, last: u8, keys: &str| {
            format!(
                "[nodes.{name}]\n{keys}address = \"127.0.0.{last}\"\nport = {}\nuser = \"root\"\nidentity = \"{}\"\nroot = \"{}\"\n\n",
                sshd.port,
                sshd.home().join(".ssh/id_ed25519").display(),
                folder.join(name).join("a/b/c").display(),
            )
        };
        let bench = support::Bench::new(&format!(
            "[mesh]\nname = \"try\"\n\n[secrets.admin]\ncommand = [\"cat\", \"{}\"]\n\n{}{}{services}",
            folder.join("admin-secret").display(),
            machine("atlas", 2, keys),
            machine("borealis", 3, ""),
        ));
        let three = support::three_machines();
        for file in ["accounts.list.j2", "accounts.sh", "login.sh"] {
            bench.file(file, &three.read(file));
        }
        bench.file("app.conf.j2", "token = {{ secrets.admin }}\n");
        std::fs::copy(sshd.known_hosts(), bench.path("known_hosts")).unwrap();
        std::fs::create_dir_all(folder.join("machines")).unwrap();
        // Each command is written down before it is run: what a process list shows of it for a moment.
        let commands = folder.join("commands");
        let keeper = folder.join("keeper");
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$SSH_ORIGINAL_COMMAND\" >>'{0}'\nenv >>'{0}'\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
            commands.display()
        );
        std::fs::write(&keeper, text).unwrap();
        let made = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&keeper, made).unwrap();
        sshd.authorize(&format!("command=\"{}\" ", keeper.display()));
        Self {
            sshd,
            bench,
            commands,
        }
    }
}

const SERVICES: &str = r#"
[services.accounts]
node = "atlas"

[services.accounts.provides]
kind = "custom"
port = 7000
template = "accounts.list.j2"
load = ["sh", "{release}/accounts.sh", "load"]
check = ["sh", "{release}/accounts.sh", "check"]

[[services.accounts.files]]
path = "accounts.sh"
source = "accounts.sh"

[services.billing]
node = "borealis"
consumes = ["accounts"]
test = ["sh", "-c", "echo tested"]
apply = ["sh", "-c", "GATE"]
check = ["sh", "-c", "echo checked"]

[[services.billing.files]]
path = "app.conf"
template = "app.conf.j2"
mode = "0600"
"#;

#[test]
fn a_secret_stands_nowhere_but_where_it_must_on_both_sides_of_ssh() {
    let two = Two::new();
    let folder = two.sshd.dir.path().to_owned();
    let bench = &two.bench;
    let operators = "operators-own-Secret_4711-xyzzy";
    std::fs::write(folder.join("admin-secret"), format!("{operators}\n")).unwrap();
    let gate = bench.path("gate");
    bench.edit(
        "GATE",
        &format!(
            "sh -c 'until [ -e {} ]; do sleep 0.05; done' planted-argument-7291",
            gate.display()
        ),
    );

    // What is minted is known once it is stored, before anything is sent.
    let minted = || {
        let arguments = ["provisions", "--show-secrets", "--json"];
        let shown = bench.grid(&arguments).exits(0);
        let view: serde_json::Value = serde_json::from_slice(shown.raw()).unwrap();
        let generations = view["provisions"][0]["generations"].as_array().unwrap();
        let secret = generations.iter().find_map(|g| g["secret"].as_str());
        secret.unwrap().to_owned()
    };
    bench.grid(&["issue", "accounts/billing"]).exits(0);
    let first = minted();

    let mut printed = Haystacks::default();
    let words = [
        first.as_str(),
        operators,
        "planted-argument-7291",
        "planted-variable-7291",
    ];
    let mut found = [false; 4];
    let arguments = ["push", "--all", "-vv"];
    let mut child = bench
        .command(&arguments)
        .env("PLANTED", "planted-variable-7291")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        look(&words, &mut found);
        if found[2] && found[3] {
            std::fs::write(&gate, "").unwrap();
        }
    }
    let seen = bench
        .seen(child.wait_with_output().unwrap(), &arguments)
        .exits(0);
    assert!(holds(&seen.bytes(), "tested"), "{}", seen.all());
    assert_eq!(
        found,
        [false, false, true, true],
        "in an argument list or environment"
    );
    printed.add("push -vv", seen.bytes());

    // A rotation, a failure, and every command that shows something.
    bench.grid(&["rotate", "accounts/billing"]).exits(0);
    let second = minted();
    assert_ne!(first, second);
    bench.edit(
        "echo checked",
        "echo not yet; cat bindings/accounts/password app.conf; exit 1",
    );
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nlimits = { check = \"1s\" }\n",
    );
    for arguments in [
        &["push", "--behind", "-vv"][..],
        &["push", "borealis", "-vv", "--json"],
        &["check"],
        &["status", "-vv"],
        &["status", "--json", "--probe"],
        &["history"],
        &["history", "--json"],
        &["provisions"],
        &["provisions", "--json"],
        &["compose", "borealis"],
        &["compose", "atlas"],
        &["compose", "borealis", "--json"],
        &["push", "--all", "--dry-run", "-vv"],
    ] {
        let seen = bench.grid(arguments);
        assert!(matches!(seen.code(), 0 | 4), "{}", seen.all());
        printed.add(&arguments.join(" "), seen.bytes());
    }
    bench.edit(
        "echo not yet; cat bindings/accounts/password app.conf; exit 1",
        "echo checked",
    );
    let seen = bench.grid(&["push", "borealis", "-vv"]).exits(0);
    printed.add("push borealis", seen.bytes());
    let secrets = [first.as_str(), second.as_str(), operators];
    assert_eq!(printed.with(&secrets), BTreeSet::new(), "printed");
    // Its own check printed both.
    let all: Vec<u8> = printed
        .0
        .iter()
        .flat_map(|(_, bytes)| bytes.clone())
        .collect();
    assert!(
        holds(&all, "[redacted]token = [redacted]"),
        "{}",
        String::from_utf8_lossy(&all)
    );

    // The controller's files: all of the mesh, the home, the configuration, the temporary folder.
    let mut ours = Haystacks::default();
    ours.add_tree(bench.mesh.parent().unwrap());
    assert!(ours.0.iter().any(|(name, _)| name.contains("/.grid/db/")));
    assert_eq!(ours.with(&secrets), BTreeSet::new(), "on the controller");

    // The machines' files, sshd's own log, and every command line that came in.
    let mut theirs = Haystacks::default();
    theirs.add_tree(&folder);
    let commands = std::fs::read(&two.commands).unwrap();
    assert!(holds(&commands, "grid-receive 1") && holds(&commands, "SSH_CONNECTION="));
    let release = std::fs::canonicalize(folder.join("borealis/a/b/c/current")).unwrap();
    let app = release.join("services/billing");
    let may = |name: &str| app.join(name).display().to_string();
    let expected = BTreeSet::from([
        folder.join("admin-secret").display().to_string(),
        may("app.conf"),
        may("bindings/accounts/password"),
        may("billing.env"),
        may("bindings/accounts/uri"),
    ]);
    let mut left = theirs.with(&secrets);
    // The release before is kept, to be rolled back to.
    let releases = folder.join("borealis/a/b/c/releases").display().to_string();
    left.retain(|name| !name.starts_with(&releases) || name.starts_with(release.to_str().unwrap()));
    assert!(left.is_subset(&expected), "on a machine: {left:?}");
    for must in ["app.conf", "bindings/accounts/password"] {
        assert!(
            left.contains(&may(must)),
            "the search does not find it in {must}: {left:?}"
        );
    }
    for name in left.iter().filter(|name| !name.ends_with("admin-secret")) {
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(name).unwrap().permissions(),
        );
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }

    // Planted where it must not be, it is found.
    let places = [
        (folder.join("borealis/a/b/c/log"), first.clone()),
        (two.commands.clone(), second.clone()),
        (bench.path(".grid/db/db"), base64(operators.as_bytes())),
        (folder.join("log"), operators.to_owned()),
    ];
    for (place, secret) in places {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&place)
            .unwrap();
        writeln!(file, "{secret}").unwrap();
        let mut all = Haystacks::default();
        all.add_tree(&folder);
        all.add_tree(bench.mesh.parent().unwrap());
        let found = all.with(&secrets);
        assert!(
            found.contains(place.to_str().unwrap()),
            "{}: {found:?}",
            place.display()
        );
    }
    printed.add("planted", format!("password {second}!").into_bytes());
    assert_eq!(
        printed.with(&secrets),
        BTreeSet::from(["planted".to_owned()])
    );
}

/// Every machine is a site, whose check prints its key and waits until it was looked at.
const SITES: &str = r#"
[signals]
mode = "poll"
trust = "pin"
apply = ["true"]
check = ["sh", "-c", "GATE; cat identity.key; echo checked"]

[signals.settings]
special_addresses = true
"#;

#[test]
fn a_sites_key_stands_nowhere_but_on_its_machine_whichever_courier_brings_it() {
    let two = Two::with("courier = \"openssh\"\n", SITES);
    let (folder, bench) = (two.sshd.dir.path().to_owned(), &two.bench);
    let gate = bench.path("gate");
    let wait = "until [ -e \"$1\" ]; do sleep 0.05; done";
    let wait = format!("sh -c '{wait}' planted-argument-7291 {}", gate.display());
    bench.edit("GATE", &wait.replace('"', "\\\""));
    std::fs::write(folder.join("admin-secret"), "operators-own-Secret_4711").unwrap();

    let arguments = ["push", "--all", "-vv"];
    let mut child = bench
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both keys are there before any check runs, and the processes are looked at until both pushes are done.
    let key = |machine: &str| {
        let file = folder
            .join(machine)
            .join("a/b/c/current/services/site/identity.key");
        std::fs::read_to_string(&file).map_or_else(|_| Vec::new(), |text| body(&text))
    };
    let (mut found, mut planted) = ([false], [false]);
    let end = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        look(&["planted-argument-7291"], &mut planted);
        for machine in ["atlas", "borealis"] {
            if let [line, ..] = key(machine).as_slice() {
                look(&[line], &mut found);
            }
        }
        if planted[0] && !key("atlas").is_empty() && !key("borealis").is_empty() {
            std::fs::write(&gate, "").unwrap();
        }
    }
    let seen = bench.seen(child.wait_with_output().unwrap(), &arguments);
    let seen = seen.exits(0);
    for shown in ["checked", "[redacted]"] {
        assert!(holds(&seen.bytes(), shown), "{}", seen.all());
    }
    assert_eq!(found, [false], "in an argument list or environment");
    let keys = [key("atlas"), key("borealis")].concat();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert!(keys.len() >= 2 && keys.iter().all(|line| line.len() >= 16));

    let mut printed = Haystacks::default();
    printed.add("push -vv", seen.bytes());
    for arguments in [
        &["rotate", "--site", "atlas"][..],
        &["push", "--behind", "-vv", "--json"],
        &["status", "-vv", "--probe"],
        &["history", "-v"],
        &["compose", "atlas"],
        &["signals", "diff"],
        &["signals", "render"],
    ] {
        let seen = bench.grid(arguments).exits(0);
        printed.add(&arguments.join(" "), seen.bytes());
    }
    let renewed = [key("atlas"), key("borealis")].concat();
    let keys: Vec<&str> = keys
        .iter()
        .copied()
        .chain(renewed.iter().map(String::as_str))
        .collect();
    assert_eq!(printed.with(&keys), BTreeSet::new(), "printed");
    let mut ours = Haystacks::default();
    ours.add_tree(bench.mesh.parent().unwrap());
    assert_eq!(ours.with(&keys), BTreeSet::new(), "on the controller");
    let mut theirs = Haystacks::default();
    theirs.add_tree(&folder);
    let left = theirs.with(&keys);
    assert!(left.len() >= 2, "the search finds them: {left:?}");
    for name in left {
        assert!(name.ends_with("/services/site/identity.key"), "{name}");
    }
}

/// The lines of a PEM text between its marks.
fn body(pem: &str) -> Vec<String> {
    let lines = pem.lines().filter(|line| !line.starts_with("-----"));
    lines.map(str::to_owned).collect()
}
