//! Every way in which a machine cannot be reached, at once, on a real sshd with real users: each its own message, exit 4,
//! and the others are still sent. Needs root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;
mod support;

use std::fs;
use std::path::Path;

use delivery_bed::sshd::{Login, Sshd, free_port, runs};
use support::{Bench, Seen};

/// A mesh with one file on every machine, whose machines are those of `sshd`.
struct Field {
    sshd: Sshd,
    bench: Bench,
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new(
            "[mesh]\nname = \"try\"\n\n[services.app]\nnodes = [\"@all\"]\n\n[[services.app.files]]\npath = \"a\"\ncontent = \"here\"\n",
        );
        Self {
            sshd: Sshd::start(),
            bench,
        }
    }

    /// Declares a machine; what `more` says comes first and wins.
    fn machine(&self, name: &str, user: &str, root: &Path, more: &str) {
        let mut keys = vec![
            format!("port = {}", self.sshd.port),
            "address = \"127.0.0.2\"".to_owned(),
            format!("identity = \"{}\"", self.key().display()),
            format!("user = \"{user}\""),
            format!("root = \"{}\"", root.display()),
            "tags = [\"all\"]".to_owned(),
        ];
        let first = |line: &str| line.split(' ').next().unwrap().to_owned();
        let said: Vec<String> = more.lines().map(first).collect();
        keys.retain(|line| !said.contains(&first(line)));
        let text = self.bench.read("mesh.toml");
        let keys = keys.join("\n");
        let table = format!("\n[nodes.{name}]\n{more}\n{keys}\n");
        self.bench.file("mesh.toml", &(text + &table));
    }

    fn key(&self) -> std::path::PathBuf {
        self.sshd.home().join(".ssh/id_ed25519")
    }

    fn host_key(&self) -> String {
        let key = fs::read_to_string(self.sshd.dir.path().join("host_key.pub")).unwrap();
        key.trim().to_owned()
    }

    /// Another key, of the test's own.
    fn another_key(&self, name: &str, passphrase: &str) -> std::path::PathBuf {
        let file = self.bench.path(name);
        let arguments = ["-q", "-t", "ed25519", "-C", "", "-N", passphrase, "-f"];
        runs(
            "ssh-keygen",
            &[&arguments[..], &[file.to_str().unwrap()]].concat(),
        );
        file
    }

    /// Who is known, a line each; `%p` is the port.
    fn known(&self, lines: &str) {
        let lines = lines.replace("%p", &self.sshd.port.to_string());
        self.bench.file("known_hosts", &lines);
    }

    fn fingerprint(&self) -> String {
        let key = self.sshd.dir.path().join("host_key.pub");
        let shown = runs("ssh-keygen", &["-lf", key.to_str().unwrap()]);
        shown.split_whitespace().nth(1).unwrap().to_owned()
    }

    /// What was seen, without what differs from run to run.
    fn told(&self, seen: &Seen) -> String {
        seen.all()
            .replace(&self.fingerprint(), "[FINGERPRINT]")
            .replace(&self.sshd.port.to_string(), "[PORT]")
            .replace(self.sshd.dir.path().to_str().unwrap(), "[SSHD]")
    }
}

/// A port that takes no further connection, and does not refuse any either: its queue is full.
struct Full {
    port: u16,
    _listener: std::os::fd::OwnedFd,
    _waiting: Vec<std::net::TcpStream>,
}

impl Full {
    fn new() -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let any: std::net::SocketAddrV4 = "127.0.0.1:0".parse().unwrap();
        bind(&listener, &any).unwrap();
        listen(&listener, 0).unwrap();
        let bound = getsockname(&listener).unwrap();
        let bound = std::net::SocketAddrV4::try_from(bound).unwrap();
        let soon = std::time::Duration::from_millis(300);
        let mut waiting = vec![];
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&bound.into(), soon) {
            waiting.push(stream);
        }
        Self {
            port: bound.port(),
            _listener: listener,
            _waiting: waiting,
        }
    }
}

/// The line that begins with these words, whatever space is between them.
#[track_caller]
fn line<'a>(text: &'a str, begins: &str) -> &'a str {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let found = text.lines().find(|line| words(line).starts_with(begins));
    found.unwrap_or_else(|| panic!("no line begins with {begins}: {text}"))
}

/// What is to be done on a machine, and perhaps on others that are told the same.
#[track_caller]
fn to_do_on<'a>(text: &'a str, machine: &str) -> &'a str {
    let told = text
        .lines()
        .filter_map(|line| line.strip_prefix("! next: "));
    let mut told = told.filter_map(|told| told.split_once(": "));
    let found = told.find(|(nodes, _)| nodes.split(", ").any(|node| node == machine));
    let (_, hint) = found.unwrap_or_else(|| panic!("nothing is to be done on {machine}: {text}"));
    hint
}

#[test]
fn each_way_not_to_reach_a_machine_has_its_own_message_and_the_others_are_sent() {
    let field = Field::new();
    let folder = tempfile::tempdir().unwrap();
    let root = |name: &str| folder.path().join(name);
    let login = |shell: &str| Login::new(folder.path(), shell);
    let [nologin, no, asked] = ["/usr/sbin/nologin", "/bin/false", "/bin/sh"].map(login);
    asked.sudoer("ALL=(ALL) ALL");
    // sshd says so, on a line after what the shell says.
    fs::remove_dir_all(&nologin.home).unwrap();
    let full = Full::new();
    let mine = field.another_key("mine", "");
    let locked = field.another_key("locked", "a passphrase");

    let machine = |name: &str, more: &str| field.machine(name, "root", &root(name), more);
    let absent = "identity = \"../key3\"";
    machine("absent", absent);
    machine("absent-too", &format!("{absent}\ncourier = \"openssh\""));
    machine("atlas", "");
    machine("changed", "address = \"127.0.0.3\"");
    machine(
        "full",
        &format!("address = \"127.0.0.1\"\nport = {}", full.port),
    );
    machine("locked", &format!("identity = \"{}\"", locked.display()));
    field.machine("no-shell", &no.name, &no.home, "");
    field.machine("nologin", &nologin.name, &nologin.home, "");
    machine("refused", &format!("port = {}", free_port()));
    machine("revoked", "address = \"127.0.0.4\"");
    machine("stranger", &format!("identity = \"{}\"", mine.display()));
    field.machine("sudo", &asked.name, &asked.home, "become = \"sudo\"");
    machine("unknown", "address = \"127.0.0.5\"");
    machine("unresolvable", "address = \"nowhere.invalid\"");
    machine("zeus", "");

    let ours = field.host_key();
    let other = fs::read_to_string(mine.with_extension("pub")).unwrap();
    let other = other.trim();
    field.known(&format!(
        "[127.0.0.2]:%p {ours}\n[127.0.0.3]:%p {other}\n@revoked [127.0.0.4]:%p {ours}\n[127.0.0.4]:%p {ours}\n"
    ));
    let home = field.bench.mesh.parent().unwrap().join("home/.ssh");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("config"), "ConnectTimeout 1\n").unwrap();

    // No error, where the key is only not on this machine.
    let checked = field.bench.grid(&["check"]).exits(0).all();
    assert!(
        checked.contains("note: `identity` of absent, absent-too: ")
            && checked.contains("/key3 does not exist"),
        "{checked}"
    );
    let pushed = field.bench.grid(&["push", "--all"]).exits(4);
    let told = field.told(&pushed);
    let expected = [
        (
            "absent",
            "was not let in; there is no agent; [DIR]/mesh/../key3 does not exist",
            "put the key there, or name the file where it is: `identity` of the machine",
        ),
        (
            "absent-too",
            "; [DIR]/mesh/../key3 does not exist",
            "put the key there, or name the file where it is: `identity` of the machine",
        ),
        (
            "changed",
            "has changed: it shows ssh-ed25519 [FINGERPRINT], but known_hosts:2 has another",
            "grid trust changed [FINGERPRINT], which takes the place of the old one",
        ),
        ("full", "no answer within 1 s", "is it up"),
        (
            "locked",
            "mesh/locked has a passphrase, and no agent holds it",
            "ssh-add ",
        ),
        (
            "no-shell",
            "the machine side did not start: exit status: 1",
            "POSIX shell",
        ),
        (
            "nologin",
            "This account is currently not available.",
            "POSIX shell",
        ),
        (
            "refused",
            "connection refused: nobody listens there",
            "does sshd run there",
        ),
        (
            "revoked",
            "is revoked at known_hosts:3: [FINGERPRINT]",
            "a new host key",
        ),
        (
            "stranger",
            "was not let in; there is no agent; tried [DIR]/mesh/mine",
            "does `authorized_keys` of that login have the key",
        ),
        ("sudo", "sudo: a password is required", "NOPASSWD"),
        (
            "unknown",
            "is not known: ssh-ed25519 [FINGERPRINT]",
            "grid trust unknown [FINGERPRINT]",
        ),
        (
            "unresolvable",
            "nowhere.invalid has no address",
            "set `address` of the machine",
        ),
    ];
    for (machine, cause, hint) in expected {
        let failed = line(&told, &format!("failed {machine} "));
        assert!(failed.contains(cause), "{failed}");
        let next = to_do_on(&told, machine);
        assert!(next.contains(hint), "{next}");
    }
    // What came of the push is not told once only: whoever asks later reads the same.
    let status = field.told(&field.bench.grid(&["status"]).exits(0));
    for (machine, cause, _) in expected {
        let stands = line(&status, &format!("{machine} "));
        assert!(stands.contains("never sent"), "{stands}");
        assert!(
            stands.contains("; push 1: ") || stands.contains("  push 1: "),
            "{stands}"
        );
        assert!(stands.contains(cause), "{stands}");
        assert_eq!(to_do_on(&status, machine), to_do_on(&told, machine));
    }
    // A probe says the same to do.
    let probe = ["status", "--probe", "changed", "refused"];
    let probed = field.told(&field.bench.grid(&probe).exits(0));
    for machine in ["changed", "refused"] {
        assert_eq!(to_do_on(&probed, machine), to_do_on(&told, machine));
    }
    assert!(told.contains("2 machines sent, 13 failed"), "{told}");
    for sent in ["atlas", "zeus"] {
        let file = root(sent).join("current/services/app/a");
        assert_eq!(fs::read_to_string(file).unwrap(), "here");
    }
    for nothing in [&nologin.home, &no.home, &asked.home] {
        assert!(!nothing.join("current").exists() && !nothing.join("lock").exists());
    }
}

#[test]
fn a_login_with_fish_is_sent_to_and_so_is_one_whose_start_up_file_prints() {
    let field = Field::new();
    let folder = tempfile::tempdir().unwrap();
    let fish = Login::new(folder.path(), runs("sh", &["-c", "command -v fish"]).trim());
    let bash = Login::new(folder.path(), "/bin/bash");
    let flood = Login::new(folder.path(), "/bin/bash");
    fish.file(".config/fish/config.fish", "echo Welcome to fish\n");
    // What it prints looks like the protocol, which has not begun yet.
    bash.file(
        ".bashrc",
        "echo Welcome; echo 'end applied'; echo to standard error >&2\n",
    );
    flood.file(".bashrc", "yes Welcome | head -n 100000\n");
    let odd = |login: &Login| login.home.join("it's \\\"odd\\\" -ü $HOME");
    for (name, login) in [("fish", &fish), ("bash", &bash), ("flood", &flood)] {
        runs("chown", &["-R", &login.name, login.home.to_str().unwrap()]);
        field.machine(name, &login.name, &odd(login), "");
    }
    field.known(&format!("[127.0.0.2]:%p {}\n", field.host_key()));
    let pushed = field.bench.grid(&["push", "--all"]).exits(4);
    let told = field.told(&pushed);
    let failed = line(&told, "failed flood ");
    assert!(
        failed.contains("came before the machine side spoke"),
        "{failed}"
    );
    let next = line(&told, "! next: flood: ");
    assert!(
        next.contains("a start-up file of the login's shell prints"),
        "{next}"
    );
    assert!(told.contains("2 machines sent, 1 failed"), "{told}");
    for login in [&fish, &bash] {
        let root = login.home.join("it's \"odd\" -ü $HOME");
        let file = root.join("current/services/app/a");
        assert_eq!(fs::read_to_string(file).unwrap(), "here");
    }
    field
        .bench
        .grid(&["status", "--probe", "fish", "bash", "--exit-code"])
        .exits(0);
    fs::remove_file(flood.home.join(".bashrc")).unwrap();
    field.bench.grid(&["push", "--behind"]).exits(0);
}

#[test]
fn sudo_without_a_password_makes_root_and_sudo_with_one_is_told() {
    let field = Field::new();
    let folder = tempfile::tempdir().unwrap();
    let login = Login::new(folder.path(), "/bin/sh");
    let root = folder.path().join("of root");
    field.machine("atlas", &login.name, &root, "become = \"sudo\"");
    field.known(&format!("[127.0.0.2]:%p {}\n", field.host_key()));
    login.sudoer("ALL=(ALL) ALL");
    let refused = field.bench.grid(&["push", "atlas"]).exits(4).all();
    assert!(
        refused.contains("sudo: a password is required"),
        "{refused}"
    );
    assert!(refused.contains("NOPASSWD"), "{refused}");
    assert!(!root.exists());
    login.sudoer("ALL=(ALL) NOPASSWD: ALL");
    field.bench.grid(&["push", "--behind"]).exits(0);
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(root.join("releases")).unwrap());
    assert_eq!(owner, 0);
    // Without it the machine's root belongs to somebody else.
    field.bench.edit("become = \"sudo\"\n", "");
    let refused = field.bench.grid(&["push", "atlas"]).exits(4).all();
    assert!(
        refused.contains("cannot be") && refused.contains("Permission denied"),
        "{refused}"
    );
    field.bench.edit("user = ", "become = \"sudo\"\nuser = ");
    field.bench.grid(&["push", "--behind"]).exits(0);
    field.bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_machine_that_was_set_up_anew_shows_another_key_and_once_it_is_trusted_is_sent_all_of_it() {
    let field = Field::new();
    let root = field.sshd.dir.path().join("machine");
    field.machine("atlas", "root", &root, "");
    field.machine("zeus", "root", &field.sshd.dir.path().join("zeus"), "");
    let before = field.host_key();
    field.known(&format!("[127.0.0.2]:%p {before}\n"));
    field.bench.grid(&["push", "--all"]).exits(0);

    fs::remove_dir_all(&root).unwrap();
    field.sshd.set_up_anew();
    let fingerprint = field.fingerprint();
    let refused = field.bench.grid(&["push", "atlas"]).exits(4);
    let told = field.told(&refused);
    assert!(
        line(&told, "failed atlas ").contains("has changed: it shows ssh-ed25519 [FINGERPRINT]")
    );
    assert!(
        line(&told, "! next: atlas: ")
            .contains("trust the new key, once you have compared it there")
    );
    // As it says: the key is trusted, and takes the place of the old one.
    field.bench.grid(&["trust", "atlas", &fingerprint]).exits(0);
    field.bench.grid(&["push", "atlas"]).exits(0);
    let file = root.join("current/services/app/a");
    assert_eq!(fs::read_to_string(file).unwrap(), "here");
    field
        .bench
        .grid(&["status", "--probe", "--exit-code"])
        .exits(0);
}

/// An agent of the test's own; it ends with the test.
struct Agent(std::process::Child, std::path::PathBuf);

impl Agent {
    fn with(keys: &[std::path::PathBuf], socket: std::path::PathBuf) -> Self {
        let mut agent = std::process::Command::new("ssh-agent");
        let agent = agent.args(["-D", "-a"]).arg(&socket);
        let agent = agent.stdout(std::process::Stdio::null()).spawn().unwrap();
        let this = Self(agent, socket);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !this.1.exists() {
            assert!(std::time::Instant::now() < end, "the agent does not start");
            std::thread::yield_now();
        }
        for key in keys {
            let added = std::process::Command::new("ssh-add")
                .arg("-q")
                .arg(key)
                .env("SSH_AUTH_SOCK", &this.1)
                .status();
            assert!(added.unwrap().success());
        }
        this
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_agent_with_more_keys_than_sshd_takes_is_told_and_the_named_one_is_offered_first() {
    let field = Field::new();
    let mut keys: Vec<_> = (0..7)
        .map(|n| field.another_key(&format!("other{n}"), ""))
        .collect();
    keys.push(field.key());
    let agent = Agent::with(&keys, field.bench.path("agent"));
    let root = field.sshd.dir.path().join("atlas");
    field.machine("atlas", "root", &root, "");
    let named = format!("identity = \"{}\"\n", field.key().display());
    field.bench.edit(&named, "");
    field.known(&format!("[127.0.0.2]:%p {}\n", field.host_key()));
    let push = |code| {
        let socket = agent.1.to_str().unwrap();
        let seen = field
            .bench
            .grid_with(("SSH_AUTH_SOCK", socket), &["push", "atlas"]);
        field.told(&seen.exits(code))
    };
    let told = push(4);
    assert!(
        line(&told, "failed atlas ").contains("keys of the agent were tried"),
        "{told}"
    );
    assert!(to_do_on(&told, "atlas").contains("MaxAuthTries"), "{told}");
    // The key itself is only in the agent: beside its name lies what tells which it is.
    let public = format!("{}.pub", field.key().display());
    fs::copy(public, field.bench.path("mine.pub")).unwrap();
    field
        .bench
        .edit("[nodes.atlas]\n", "[nodes.atlas]\nidentity = \"mine\"\n");
    push(0);
    assert!(root.join("current/services/app/a").exists());
}
