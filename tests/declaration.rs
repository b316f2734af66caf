//! What a user sees of a declaration that is wrong, and that no text whatever makes the reader fall.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

use std::time::Duration;

use camino::Utf8Path;
use grid::mesh::{
    Become, CourierKind, DiagnosticKind, Diagnostics, Limits, Loaded, Move, Selector, load,
    set_nodes,
};
use grid::words::{NodeName, ServiceName};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A folder with a declaration, gone at the end of the test.
struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder };
        for (path, content) in files {
            this.write(path, content.as_bytes());
        }
        this
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn load(&self) -> Result<Loaded, Diagnostics> {
        load(self.path())
    }

    /// Puts the text of the declaration in place of the one before.
    fn with(text: &str) -> Self {
        Self::new(&[
            ("mesh.toml", text),
            ("templates/billing.toml.j2", "x"),
            ("secrets/redis-admin.age", "x"),
        ])
    }

    /// What is printed, without where the folder lies.
    fn errors(&self) -> String {
        let folder = format!("{}/", self.path());
        self.load().unwrap_err().to_string().replace(&folder, "")
    }
}

/// The errors of one file.
fn errors(text: &str) -> String {
    Folder::new(&[("mesh.toml", text)]).errors()
}

/// A head and two machines that are right.
const MACHINES: &str = r#"[mesh]
name = "prod"
[nodes.atlas]
tags = ["eu"]
[nodes.borealis]
tags = ["eu"]
"#;

/// The errors of services in a declaration whose head and machines are right.
fn errors_in(services: &str) -> String {
    errors(&format!("{MACHINES}{services}"))
}

/// Whether such services are right.
fn is_right(services: &str) {
    let folder = Folder::with(&format!("{MACHINES}{services}"));
    if let Err(wrong) = folder.load() {
        panic!("{wrong}");
    }
}

/// What the design shows, as far as this version has it.
const GOOD: &str = r#"
#:schema ./schemas/mesh.schema.json

[mesh]
name = "prod"
grid = ">=0.1"
store = "sled"
recipients = [{ name = "maria", key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" }]

[secrets.redis-admin]
file = "secrets/redis-admin.age"
[secrets.from-pass]
command = ["pass", "show", "redis"]
[secrets.from-env]
env = "REDIS"

[defaults]
user = "grid"
become = "sudo"

[nodes.atlas]
address = "10.0.0.1"
tags = ["eu"]

[nodes.borealis]
hold = { reason = "in the rack on Monday", until = 2026-12-01 }

[nodes.here]
courier = "local"
root = "machines/here"
hold = "for now"

[services.broker]
node = "atlas"
provides = { kind = "rabbitmq", port = 5673 }

[services.billing]
nodes = ["borealis", "@eu"]
consumes = { broker = { vhost = "billing", wait = false } }
test = ["billing", "--check-config", "{release}/billing.toml"]
apply = ["systemctl", "reload-or-restart", "billing"]
check = ["systemctl", "is-active", "billing"]
remove = ["systemctl", "disable", "--now", "billing"]
move = "start-first"
owner = "billing:billing"
limits = { test = "10s", apply = "2m" }

[[services.billing.files]]
path = "billing.toml"
template = "templates/billing.toml.j2"
mode = "0640"
owner = "billing:billing"

[[services.billing.files]]
path = "/etc/systemd/system/billing.service"
content = "[Service]"
"#;

fn good() -> Folder {
    Folder::with(GOOD)
}

#[test]
fn a_declaration_says_what_is_written_in_it() {
    let folder = good();
    let loaded = folder.load().unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(loaded.files, ["mesh.toml"]);
    let mesh = loaded.mesh;
    assert_eq!(mesh.name.as_str(), "prod");
    assert_eq!(mesh.recipients[0].name, "maria");
    assert_eq!(mesh.secrets.len(), 3);

    let atlas = &mesh.nodes["atlas"];
    assert_eq!(atlas.host(), "10.0.0.1");
    assert_eq!(atlas.user.as_deref(), Some("grid"));
    assert_eq!(atlas.root.as_str(), "/var/lib/grid/prod");
    assert_eq!(atlas.become_root, Some(Become::Sudo));
    let here = &mesh.nodes["here"];
    let folder = folder.path().canonicalize_utf8().unwrap();
    assert_eq!(here.root.as_str(), folder.join("machines/here"));
    assert_eq!(here.courier, CourierKind::Local);
    let hold = mesh.nodes["borealis"].hold.as_ref().unwrap();
    assert_eq!(hold.until, Some(jiff::civil::date(2026, 12, 1)));

    let broker = &mesh.services["broker"];
    assert_eq!(broker.provides.as_ref().unwrap().port, 5673);
    let billing = &mesh.services["billing"];
    let on: Vec<&str> = billing.nodes.iter().map(NodeName::as_str).collect();
    assert_eq!(on, ["atlas", "borealis"]);
    assert!(!billing.consumes["broker"].wait);
    assert_eq!(billing.moves, Move::StartFirst);
    assert_eq!(billing.limits.test, Duration::from_secs(10));
    assert_eq!(billing.limits.apply, Duration::from_secs(120));
    assert_eq!(billing.limits.check, Limits::default().check);
    assert_eq!(billing.owner.as_ref().unwrap().as_str(), "billing:billing");
    assert_eq!(billing.files.len(), 2);
    assert_eq!(mesh.longest_chain(), 2);
}

#[test]
fn a_folder_without_a_declaration_names_the_command_that_makes_one() {
    let folder = Folder::new(&[]);
    insta::assert_snapshot!(folder.errors(), @r"
    mesh.toml: there is no declaration here
      = `grid init` writes one to start from; `--mesh DIR` names another folder
    ");
    let wrong = folder.load().unwrap_err();
    assert_eq!(wrong.errors[0].kind, DiagnosticKind::Missing);
}

#[test]
fn what_is_not_toml_is_shown_with_what_was_expected() {
    insta::assert_snapshot!(errors("[mesh]\nname = \"prod\n[nodes.atlas]\nport 22\nuser = \"a\" \"b\"\n"), @r#"
    mesh.toml:2:13: this is not TOML: invalid basic string, expected `"`
      2 | name = "prod
        |             ^

    mesh.toml:4:6: this is not TOML: key with no value, expected `=`
      4 | port 22
        |      ^

    mesh.toml:5:12: this is not TOML: unexpected key or value, expected newline, `#`
      5 | user = "a" "b"
        |            ^
    "#);
}

#[test]
fn after_a_syntax_error_nothing_is_said_to_dangle() {
    let text = "[mesh]\nname = \"prod\"\n[nodes.atlas\n[services.a]\nnode = \"atlas\"\nfoo = 1\n";
    insta::assert_snapshot!(errors(text), @r"
    mesh.toml:3:13: this is not TOML: unclosed table, expected `]`
      3 | [nodes.atlas
        |             ^

    mesh.toml:6:1: there is no key `foo` here
      6 | foo = 1
        | ^^^
        = known here: `node`, `nodes`, `provides`, `consumes`, `owner`, `files`, `test`, `apply`, `check`, `remove`, `metrics`, `signals`, `move` and `limits`
    ");
}

#[test]
fn what_is_not_utf8_is_shown_by_line() {
    let folder = Folder::new(&[]);
    folder.write("mesh.toml", b"[mesh]\nname = \"pr\xffd\"\n");
    insta::assert_snapshot!(folder.errors(), @r#"
    mesh.toml:2:11: this is not UTF-8
      2 | name = "pr�d"
        |           ^
        = TOML is text in UTF-8; save the file as that
    "#);
}

#[test]
fn what_is_too_large_is_not_read() {
    let folder = Folder::new(&[("mesh.toml", "[mesh]\nname = \"prod\"\n")]);
    folder.write("mesh.d/big.toml", &vec![b'#'; 8 * 1024 * 1024 + 1]);
    std::fs::create_dir(folder.path().join("mesh.d/folder.toml")).unwrap();
    insta::assert_snapshot!(folder.errors(), @r"
    mesh.d/big.toml: is too large: a file of a declaration has at most 8 MiB

    mesh.d/folder.toml: is not a file
    ");
}

#[test]
fn a_name_declared_twice_names_both_places() {
    let head = "[mesh]\nname = \"prod\"\n";
    let folder = Folder::new(&[
        (
            "mesh.toml",
            &format!("{head}[nodes.atlas]\nport = 22\nport = 23\n[nodes.atlas]\n"),
        ),
        (
            "mesh.d/b.toml",
            "nodes.atlas.port = 1\n[mesh]\n[services.x]\n[defaults]\n",
        ),
        ("mesh.d/c.toml", "[defaults]\n[services]\nx = {}\n"),
        ("mesh.d/.hidden.toml", "not read"),
        ("mesh.d/README", "not read"),
    ]);
    insta::assert_snapshot!(folder.errors(), @r"
    mesh.toml:5:1: port is declared twice
      5 | port = 23
        | ^^^^
        = the other one is at mesh.toml:4

    mesh.toml:6:8: atlas is declared twice
      6 | [nodes.atlas]
        |        ^^^^^
        = the other one is at mesh.toml:3

    mesh.d/b.toml:1:7: atlas is declared twice
      1 | nodes.atlas.port = 1
        |       ^^^^^
        = the other one is at mesh.toml:6

    mesh.d/b.toml:2:2: mesh is declared twice
      2 | [mesh]
        |  ^^^^
        = the other one is at mesh.toml:1

    mesh.d/c.toml:1:2: defaults is declared twice
      1 | [defaults]
        |  ^^^^^^^^
        = the other one is at mesh.d/b.toml:4

    mesh.d/c.toml:3:1: x is declared twice
      3 | x = {}
        | ^
        = the other one is at mesh.d/b.toml:3
    ");
}

#[test]
fn another_version_of_grid_is_asked_for() {
    let folder = Folder::with("[mesh]\nname = \"prod\"\ngrid = \">=99\"\nnew-key = 1\n");
    let wrong = folder.load().unwrap_err();
    assert_eq!(wrong.errors[0].kind, DiagnosticKind::Version);
    let printed = folder
        .errors()
        .replace(env!("CARGO_PKG_VERSION"), "VERSION");
    insta::assert_snapshot!(printed, @r#"
    mesh.toml:3:8: this declaration asks for grid >=99, and this is grid VERSION
      3 | grid = ">=99"
        |        ^^^^^^
        = install a version that it asks for, or change `grid` if this one may push it
    "#);
}

#[test]
fn the_mesh_itself_is_read_with_care() {
    insta::assert_snapshot!(errors("[nodes.atlas]\n"), @r#"
    mesh.toml:1:1: the table `[mesh]` is missing
      1 | [nodes.atlas]
        | ^
        = add `[mesh]` and below it `name = "…"`
    "#);
    insta::assert_snapshot!(errors("mesh = 3\n"), @r"
    mesh.toml:1:8: `mesh` is a table
      1 | mesh = 3
        |        ^
        = write its keys in `{ … }`, or below a `[header]` of its own
    ");
    insta::assert_snapshot!(errors("[mesh]\n"), @r#"
    mesh.toml:1:2: the mesh has no name
      1 | [mesh]
        |  ^^^^
        = add `name = "…"` below `[mesh]`
    "#);
    let text = r#"
[mesh]
name = "Prod"
gird = ">=0.1"
grid = "newest"
store = "etcd://10.0.0.1:2379/prod"
recipients = [{ name = "maria" }, { name = "jo", key = "age1" }, "age1x", { name = "b", key = "AGE-SECRET-KEY-1X" }]
[sercets.x]
"#;
    insta::assert_snapshot!(errors(text), @r#"
    mesh.toml:3:8: `name`: a name has only lowercase letters, digits and hyphens, not 'P'
      3 | name = "Prod"
        |        ^^^^^^

    mesh.toml:4:1: there is no key `gird` here
      4 | gird = ">=0.1"
        | ^^^^
        = did you mean `grid`?

    mesh.toml:5:8: `grid`: unexpected character 'n' while parsing major version number; versions are written like ">=0.1" or ">=0.1, <0.3"
      5 | grid = "newest"
        |        ^^^^^^^^

    mesh.toml:6:9: `store`: this version of grid has only the embedded store: leave the key out, or write "sled"
      6 | store = "etcd://10.0.0.1:2379/prod"
        |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^

    mesh.toml:7:15: a recipient has a `name` and a `key`
      7 | recipients = [{ name = "maria" }, { name = "jo", key = "age1" }, "age1x", { name = "b", key = "AGE-SECRET-KEY-**" }]
        |               ^^^^^^^^^^^^^^^^^^
        = write `{ name = "maria", key = "age1…" }`

    mesh.toml:7:56: `key`: this is no age public key; `age-keygen -y` prints one, `age1…`
      7 | recipients = [{ name = "maria" }, { name = "jo", key = "age1" }, "age1x", { name = "b", key = "AGE-SECRET-KEY-**" }]
        |                                                        ^^^^^^

    mesh.toml:7:66: an element of `recipients` has to be a table, not a text
      7 | recipients = [{ name = "maria" }, { name = "jo", key = "age1" }, "age1x", { name = "b", key = "AGE-SECRET-KEY-**" }]
        |                                                                  ^^^^^^^
        = write `recipients = [{ name = "maria", key = "age1…" }]`

    mesh.toml:7:95: `key`: this is a secret key; what belongs here is its public key, `age1…`
      7 | recipients = [{ name = "maria" }, { name = "jo", key = "age1" }, "age1x", { name = "b", key = "AGE-SECRET-KEY-**" }]
        |                                                                                               ^^^^^^^^^^^^^^^^^^^

    mesh.toml:8:2: there is no `sercets` in a declaration
      8 | [sercets.x]
        |  ^^^^^^^
        = did you mean `secrets`?
    "#);
}

#[test]
fn what_is_no_list_of_tables_is_told_what_one_looks_like() {
    let text = r#"
[mesh]
name = "prod"
recipients = "age1x"
[services.a]
files = ["a.conf"]
[services.b]
files = "a.conf"
"#;
    insta::assert_snapshot!(errors(text), @r#"
    mesh.toml:4:14: `recipients` has to be a list in brackets, not a text
      4 | recipients = "age1x"
        |              ^^^^^^^
        = write `recipients = [{ name = "maria", key = "age1…" }]`

    mesh.toml:6:10: a file is a table
      6 | files = ["a.conf"]
        |          ^^^^^^^^
        = write its keys in `{ … }`, or below a `[header]` of its own

    mesh.toml:8:9: `files` is a list of tables
      8 | files = "a.conf"
        |         ^^^^^^^^
        = write each as `[[services.b.files]]`
    "#);
}

#[test]
fn a_secret_has_one_source() {
    let text = r#"
[mesh]
name = "prod"
[secrets.none]
[secrets.two]
file = "a.age"
env = "A"
[secrets.wrong]
env = "A-B"
[secrets.shell]
command = "pass show x"
[secrets.empty]
command = []
[secrets.Named]
env = "A"
[secrets.inline]
password = "hunter2"
[secrets]
text = "hunter2"
"#;
    insta::assert_snapshot!(errors(text), @r#"
    mesh.toml:4:10: a secret comes from exactly one of `file`, `command` and `env`
      4 | [secrets.none]
        |          ^^^^
        = write one of `file = "secrets/NAME.age"`, `command = ["pass", "show", "NAME"]` and `env = "NAME"`

    mesh.toml:5:10: a secret comes from exactly one of `file`, `command` and `env`
      5 | [secrets.two]
        |          ^^^
        = write one of `file = "secrets/NAME.age"`, `command = ["pass", "show", "NAME"]` and `env = "NAME"`

    mesh.toml:9:7: `env`: a variable's name has only letters, digits and underscores
      9 | env = …
        |       ^

    mesh.toml:11:11: `command` has to be a list in brackets, not a text
      11 | command = …
         |           ^
         = write each word in quotes of its own, like ["a", "b"]

    mesh.toml:13:11: `command`: a command names at least a program
      13 | command = …
         |           ^

    mesh.toml:14:10: a name has only lowercase letters, digits and hyphens, not 'N'
      14 | [secrets.Named]
         |          ^^^^^

    mesh.toml:17:1: there is no key `password` here
      17 | password = …
         | ^^^^^^^^
         = known here: `file`, `command` and `env`

    mesh.toml:19:8: a secret is a table
      19 | text = …
         |        ^
         = write its keys in `{ … }`, or below a `[header]` of its own
    "#);
}

#[test]
fn machines_are_read_with_care() {
    let text = r#"
[mesh]
name = "prod"
[defaults]
user = "-oProxyCommand=x"
root = "relative"
[nodes.a]
adress = "10.0.0.1"
[nodes.b]
address = "10.0.0.1:22"
port = 0
tags = ["eu", 5, "EU"]
[nodes.c]
address = "[fd00::1]"
courier = "shh"
become = "doas"
[nodes.d]
address = "root@d"
root = "/var/../etc"
hold = { until = 2026-12-01 }
[nodes.e]
hold = { reason = "rack", untill = 2026-12-01 }
[nodes.f]
hold = { reason = "rack", until = 2026-12-01T10:00:00Z }
[nodes.g]
hold = true
port = "22"
[nodes]
h = "10.0.0.8"
"#;
    insta::assert_snapshot!(errors(text), @r#"
    mesh.toml:5:8: `user`: a login does not begin with a dash
      5 | user = "-oProxyCommand=x"
        |        ^^^^^^^^^^^^^^^^^^

    mesh.toml:6:8: the root of a machine that is reached by ssh is an absolute path
      6 | root = "relative"
        |        ^^^^^^^^^^
        = only with `courier = "local"` may it be relative to the declaration

    mesh.toml:8:1: there is no key `adress` here
      8 | adress = "10.0.0.1"
        | ^^^^^^
        = did you mean `address`?

    mesh.toml:10:11: `address`: the port stands in `port`, not in the address
      10 | address = "10.0.0.1:22"
         |           ^^^^^^^^^^^^^

    mesh.toml:11:8: `port` has to be a port, from 1 to 65535, not 0
      11 | port = 0
         |        ^

    mesh.toml:12:15: an element of `tags` has to be a text in quotes, not 5
      12 | tags = ["eu", 5, "EU"]
         |               ^

    mesh.toml:12:18: an element of `tags`: a name has only lowercase letters, digits and hyphens, not 'E'
      12 | tags = ["eu", 5, "EU"]
         |                  ^^^^

    mesh.toml:14:11: `address`: an IPv6 address stands without brackets
      14 | address = "[fd00::1]"
         |           ^^^^^^^^^^^

    mesh.toml:15:11: `courier` cannot be "shh"
      15 | courier = "shh"
         |           ^^^^^
         = did you mean "ssh"?

    mesh.toml:16:10: `become` cannot be "doas"
      16 | become = "doas"
         |          ^^^^^^
         = it can be "sudo"

    mesh.toml:18:11: `address`: the login stands in `user`, not in the address
      18 | address = "root@d"
         |           ^^^^^^^^

    mesh.toml:19:8: `root`: a path has no empty, '.' or '..' part
      19 | root = "/var/../etc"
         |        ^^^^^^^^^^^^^

    mesh.toml:20:1: a hold has a reason
      20 | hold = { until = 2026-12-01 }
         | ^^^^
         = write `{ reason = "…", until = 2026-12-01 }`

    mesh.toml:22:27: there is no key `untill` here
      22 | hold = { reason = "rack", untill = 2026-12-01 }
         |                           ^^^^^^
         = did you mean `until`?

    mesh.toml:24:35: `until`: a day is written like 2026-12-01
      24 | hold = { reason = "rack", until = 2026-12-01T10:00:00Z }
         |                                   ^^^^^^^^^^^^^^^^^^^^

    mesh.toml:26:8: `hold` has to be a reason in quotes, or `{ reason = "…", until = 2026-12-01 }`, not true
      26 | hold = true
         |        ^^^^

    mesh.toml:27:8: `port` has to be a port, from 1 to 65535, not a text
      27 | port = "22"
         |        ^^^^

    mesh.toml:29:5: a machine is a table
      29 | h = "10.0.0.8"
         |     ^^^^^^^^^^
         = write its keys in `{ … }`, or below a `[header]` of its own
    "#);
}

#[test]
fn two_machines_cannot_be_one_folder() {
    let text = r#"
[mesh]
name = "prod"
[nodes.a]
address = "10.0.0.1"
[nodes.b]
address = "10.0.0.1"
[nodes.c]
address = "10.0.0.1"
port = 2222
[nodes.d]
courier = "local"
root = "here"
[nodes.e]
courier = "local"
root = "here"
"#;
    insta::assert_snapshot!(errors(text), @r"
    mesh.toml:6:8: b and a have the same address and the same root, /var/lib/grid/prod
      6 | [nodes.b]
        |        ^
        = give one of them another `root`, or take it away; a is at mesh.toml:4

    mesh.toml:14:8: e and d are the same folder of the controller, here
      14 | [nodes.e]
         |        ^
         = give one of them another `root`, or take it away; d is at mesh.toml:11
    ");
}

#[test]
fn no_machine_lies_in_the_root_of_another() {
    let text = r#"
[mesh]
name = "prod"
[nodes.a]
address = "10.0.0.1"
root = "/r/a"
[nodes.b]
address = "10.0.0.1"
root = "/r/a/releases/b"
courier = "openssh"
[nodes.c]
address = "10.0.0.1"
root = "/r/ab"
[nodes.d]
address = "10.0.0.2"
root = "/r/a/releases/b"
[nodes.e]
courier = "local"
root = "here/e/e"
[nodes.f]
courier = "local"
root = "here"
"#;
    insta::assert_snapshot!(errors(text), @"
    mesh.toml:7:8: the root of b, /r/a/releases/b, lies in the root of a, /r/a, at the same address: what is sent to a may delete it
      7 | [nodes.b]
        |        ^
        = give one of them a `root` that is not in the other's; a is at mesh.toml:4

    mesh.toml:17:8: the root of e, here/e/e, lies in the root of f, here, of the controller: what is sent to f may delete it
      17 | [nodes.e]
         |        ^
         = give one of them a `root` that is not in the other's; f is at mesh.toml:20
    ");
}

#[test]
fn a_folder_of_resources_between_two_roots_hides_neither_from_the_other() {
    let text = r#"
[mesh]
name = "prod"
[nodes.a]
courier = "local"
root = "here"
[nodes.b]
courier = "manifests"
folder = "here/b"
[nodes.c]
courier = "local"
root = "here/b/c"
[signals]
"#;
    insta::assert_snapshot!(errors(text), @"
    mesh.toml:10:8: the root of c, here/b/c, lies in the root of a, here, of the controller: what is sent to a may delete it
      10 | [nodes.c]
         |        ^
         = give one of them a `root` that is not in the other's; a is at mesh.toml:4
    ");
}

#[test]
fn what_a_provider_says_wrongly_is_shown_as_it_was_read_whatever_the_files_say_since() {
    let folder = Folder::with(
        "[mesh]\nname = \"prod\"\n[services.broker]\nprovides = { kind = \"rabbitmq\", port = 5672 }\n",
    );
    let loaded = folder.load().unwrap();
    std::fs::remove_file(folder.path().join("mesh.toml")).unwrap();
    let broker = ServiceName::new("broker").unwrap();
    let wrong = loaded.wrong_provides(&broker, "it is wrong".to_owned());
    insta::assert_snapshot!(wrong.to_string().replace(folder.path().as_str(), "DIR"), @r#"
    DIR/mesh.toml:4:1: it is wrong
      4 | provides = { kind = "rabbitmq", port = 5672 }
        | ^^^^^^^^
    "#);
}

#[test]
fn the_file_of_a_secret_exists_and_only_what_is_called_as_one_is_told() {
    let text = r#"
[mesh]
name = "prod"
[secrets.a]
file = "secrets/a.age"
[secrets.b]
file = "hunter2"
"#;
    let printed = errors(text);
    assert!(!printed.contains("hunter2"), "{printed}");
    insta::assert_snapshot!(printed, @r#"
    mesh.toml:5:8: `file` of a secret: there is no file "secrets/a.age"
      5 | file = …
        |        ^
        = it is named relative to the folder of mesh.toml; `age -r age1… -o NAME.age PLAIN` makes one of a file PLAIN, with one `-r` for everybody who pushes this mesh

    mesh.toml:7:8: `file` of a secret: it names no file that is there
      7 | file = …
        |        ^
        = it is named relative to the folder of mesh.toml; `age -r age1… -o NAME.age PLAIN` makes one of a file PLAIN, with one `-r` for everybody who pushes this mesh
    "#);
}

#[test]
fn a_url_is_no_host_and_one_machine_is_no_list() {
    let text = r#"
[mesh]
name = "prod"
[nodes.a]
address = "ssh://a"
[services.broker]
nodes = "a"
provides = { kind = "rabbitmq", host = "http://foo:1" }
"#;
    insta::assert_snapshot!(errors(text), @r#"
    mesh.toml:5:11: `address`: a name or an address stands here, without scheme and port
      5 | address = "ssh://a"
        |           ^^^^^^^^^

    mesh.toml:7:9: `nodes` has to be a list in brackets, not a text
      7 | nodes = "a"
        |         ^^^
        = write `node = "atlas"`, or `nodes = ["atlas", "@eu"]`

    mesh.toml:8:40: `host`: a name or an address stands here, without scheme and port
      8 | provides = { kind = "rabbitmq", host = "http://foo:1" }
        |                                        ^^^^^^^^^^^^^^
    "#);
}

#[test]
fn what_a_service_names_exists() {
    let text = r#"
[services.broker]
node = "atals"
provides = { kind = "rabbitmq" }
[services.a]
node = "atlas"
nodes = ["@ue", "@eu", "zeus", "@all"]
consumes = ["brokr", "a", "plain", "broker", "broker"]
[services.plain]
[services.b]
consumes = { broker = { vhots = "x", wait = "no" }, nobody = {}, plain = true, Broker = {} }
[services.c]
consumes = "broker"
[services.d]
node = 3
"#;
    insta::assert_snapshot!(errors_in(text), @r#"
    mesh.toml:9:8: there is no machine atals
      9 | node = "atals"
        |        ^^^^^^^
        = did you mean "atlas"? If atals is gone, take it out of `node` of broker

    mesh.toml:13:9: a service has either `node` or `nodes`
      13 | nodes = ["@ue", "@eu", "zeus", "@all"]
         |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
         = write all its machines into `nodes`

    mesh.toml:13:10: no machine carries the tag @ue
      13 | nodes = ["@ue", "@eu", "zeus", "@all"]
         |          ^^^^^
         = did you mean "@eu"?

    mesh.toml:13:24: there is no machine zeus
      13 | nodes = ["@ue", "@eu", "zeus", "@all"]
         |                        ^^^^^^
         = declare it as `[nodes.zeus]`, or take it out of `nodes` of a

    mesh.toml:13:32: no machine carries the tag @all
      13 | nodes = ["@ue", "@eu", "zeus", "@all"]
         |                                ^^^^^^
         = give a machine `tags = ["all"]`, or take it out of `nodes` of a

    mesh.toml:14:13: there is no service brokr
      14 | consumes = ["brokr", "a", "plain", "broker", "broker"]
         |             ^^^^^^^
         = did you mean "broker"?

    mesh.toml:14:22: a consumes itself
      14 | consumes = ["brokr", "a", "plain", "broker", "broker"]
         |                      ^^^
         = a service has its own accounts without grid; take it out of `consumes`

    mesh.toml:14:27: plain provides nothing
      14 | consumes = ["brokr", "a", "plain", "broker", "broker"]
         |                           ^^^^^^^
         = add `provides = { kind = "…" }` to it, or take it out of a's `consumes`

    mesh.toml:14:46: broker is consumed twice
      14 | consumes = ["brokr", "a", "plain", "broker", "broker"]
         |                                              ^^^^^^^^
         = name each provider once

    mesh.toml:17:25: there is no key `vhots` here
      17 | consumes = { broker = { vhots = "x", wait = "no" }, nobody = {}, plain = true, Broker = {} }
         |                         ^^^^^
         = did you mean `vhost`?

    mesh.toml:17:45: `wait` has to be `true` or `false`, not a text
      17 | consumes = { broker = { vhots = "x", wait = "no" }, nobody = {}, plain = true, Broker = {} }
         |                                             ^^^^

    mesh.toml:17:53: there is no service nobody
      17 | consumes = { broker = { vhots = "x", wait = "no" }, nobody = {}, plain = true, Broker = {} }
         |                                                     ^^^^^^
         = declare it as `[services.nobody]`, or take it out of b's `consumes`

    mesh.toml:17:74: a consumption is a table
      17 | consumes = { broker = { vhots = "x", wait = "no" }, nobody = {}, plain = true, Broker = {} }
         |                                                                          ^^^^
         = write `plain = {}`, or the list `consumes = ["plain"]`

    mesh.toml:17:80: a name has only lowercase letters, digits and hyphens, not 'B'
      17 | consumes = { broker = { vhots = "x", wait = "no" }, nobody = {}, plain = true, Broker = {} }
         |                                                                                ^^^^^^

    mesh.toml:19:12: `consumes` is a list of services, or a table
      19 | consumes = "broker"
         |            ^^^^^^^^
         = write `consumes = ["broker"]`, or `consumes = { broker = { … } }`

    mesh.toml:21:8: `node` has to be a machine's name, or "@tag", not 3
      21 | node = 3
         |        ^
    "#);
}

#[test]
fn a_provider_says_as_whom_and_through_what_its_list_is_loaded() {
    let text = r#"
[services.a]
provides = { kind = "rabbitmq", as = "rabbitmq", via = ["podman", "exec", "-i", "it's"] }
[services.b]
provides = { kind = "rabbitmq" }
"#;
    let folder = Folder::with(&format!("{MACHINES}{text}"));
    let mesh = folder.load().unwrap().mesh;
    let runs = |name: &str| {
        mesh.services[&ServiceName::new(name).unwrap()]
            .provides
            .as_ref()
            .unwrap()
            .runs
            .clone()
    };
    assert_eq!(runs("a").user.unwrap().as_str(), "rabbitmq");
    assert_eq!(
        runs("a").via.unwrap().words(),
        ["podman", "exec", "-i", "it's"]
    );
    assert_eq!(runs("b"), grid::kinds::Runs::default());
    let wrong = r#"
[services.a]
provides = { kind = "rabbitmq", as = "a b" }
[services.b]
provides = { kind = "rabbitmq", as = "a:b", via = "podman exec" }
[services.c]
provides = { kind = "rabbitmq", as = 5, via = [] }
[services.d]
provides = { kind = "rabbitmq", as = "$(id)", vai = ["x"] }
"#;
    insta::assert_snapshot!(errors_in(wrong), @r#"
    mesh.toml:9:38: `as`: a user's name is at most 32 letters, digits, dots, dashes and underscores
      9 | provides = { kind = "rabbitmq", as = "a b" }
        |                                      ^^^^^

    mesh.toml:11:38: `as`: a user's name is at most 32 letters, digits, dots, dashes and underscores
      11 | provides = { kind = "rabbitmq", as = "a:b", via = "podman exec" }
         |                                      ^^^^^

    mesh.toml:11:51: `via` has to be a list in brackets, not a text
      11 | provides = { kind = "rabbitmq", as = "a:b", via = "podman exec" }
         |                                                   ^^^^^^^^^^^^^
         = write each word in quotes of its own, like ["a", "b"]

    mesh.toml:13:38: `as` has to be the name of a user, in quotes, not 5
      13 | provides = { kind = "rabbitmq", as = 5, via = [] }
         |                                      ^

    mesh.toml:13:47: `via`: a command names at least a program
      13 | provides = { kind = "rabbitmq", as = 5, via = [] }
         |                                               ^^

    mesh.toml:15:38: `as`: a user's name is at most 32 letters, digits, dots, dashes and underscores
      15 | provides = { kind = "rabbitmq", as = "$(id)", vai = ["x"] }
         |                                      ^^^^^^^

    mesh.toml:15:47: there is no key `vai` here
      15 | provides = { kind = "rabbitmq", as = "$(id)", vai = ["x"] }
         |                                               ^^^
         = did you mean `via`?
    "#);
}

#[test]
fn a_provider_is_read_in_the_words_of_its_kind() {
    let text = r#"
[services.a]
provides = { kind = "rabitmq", port = 5672 }
[services.b]
provides = { port = 5672 }
[services.c]
provides = "rabbitmq"
[services.d]
provides = { kind = "rabbitmq", prot = 5672, host = "a b", port = 70000, via = "atlas" }
[services.e]
provides = { kind = "custom" }
[services.f]
nodes = ["@eu"]
provides = { kind = "rabbitmq" }
[services.g]
provides = { kind = "custom", template = "no/such.j2", load = ["a"], check = ["b"] }
[services.h]
consumes = ["a", "g"]
"#;
    insta::assert_snapshot!(errors_in(text), @r#"
    mesh.toml:9:21: there is no kind of provider "rabitmq"
      9 | provides = { kind = "rabitmq", port = 5672 }
        |                     ^^^^^^^^^
        = did you mean "rabbitmq"?

    mesh.toml:11:1: a provider has a `kind`
      11 | provides = { port = 5672 }
         | ^^^^^^^^
         = add `kind`: "rabbitmq" and "custom"

    mesh.toml:13:12: `provides` is a table
      13 | provides = "rabbitmq"
         |            ^^^^^^^^^^
         = write `provides = { kind = "…" }`

    mesh.toml:15:33: there is no key `prot` here
      15 | provides = { kind = "rabbitmq", prot = 5672, host = "a b", port = 70000, via = "atlas" }
         |                                 ^^^^
         = did you mean `port`?

    mesh.toml:15:53: `host`: a host name has only letters, digits, dots, hyphens and underscores
      15 | provides = { kind = "rabbitmq", prot = 5672, host = "a b", port = 70000, via = "atlas" }
         |                                                     ^^^^^

    mesh.toml:15:67: `port` has to be a port, from 1 to 65535, not 70000
      15 | provides = { kind = "rabbitmq", prot = 5672, host = "a b", port = 70000, via = "atlas" }
         |                                                                   ^^^^^

    mesh.toml:15:80: `via` has to be a list in brackets, not a text
      15 | provides = { kind = "rabbitmq", prot = 5672, host = "a b", port = 70000, via = "atlas" }
         |                                                                                ^^^^^^^
         = write each word in quotes of its own, like ["a", "b"]

    mesh.toml:17:1: the key `check` is missing
      17 | provides = { kind = "custom" }
         | ^^^^^^^^
         = add `check = ["sh", "{release}/x.sh", "check"]`: a command that reads the list from standard input

    mesh.toml:17:1: the key `load` is missing
      17 | provides = { kind = "custom" }
         | ^^^^^^^^
         = add `load = ["sh", "{release}/x.sh", "load"]`: a command that reads the list from standard input

    mesh.toml:17:1: the key `template` is missing
      17 | provides = { kind = "custom" }
         | ^^^^^^^^
         = add `template = "x.j2"`: a file beside mesh.toml, which makes the list

    mesh.toml:20:1: f is on 2 machines, and does not say at which host consumers reach it
      20 | provides = { kind = "rabbitmq" }
         | ^^^^^^^^
         = add `host = "…"`: a name or an address that leads to all of them

    mesh.toml:22:1: a provider of kind "custom" has no usual port
      22 | provides = { kind = "custom", template = "no/such.j2", load = ["a"], check = ["b"] }
         | ^^^^^^^^
         = add `port = …`

    mesh.toml:22:42: there is no file "no/such.j2"
      22 | provides = { kind = "custom", template = "no/such.j2", load = ["a"], check = ["b"] }
         |                                          ^^^^^^^^^^^^
         = sources are named relative to the folder of mesh.toml
    "#);
    is_right(
        "[services.f]\nnodes = [\"@eu\"]\nprovides = { kind = \"rabbitmq\", host = \"mq.example.org\" }\n",
    );
}

#[test]
fn commands_and_limits_are_read_with_care() {
    let text = r#"
[services.a]
apply = "systemctl restart a"
check = []
test = ["a", 5]
remove = [""]
move = "stopfirst"
owner = "a:b:c"
limits = { apply = "2h", lod = "1s", check = 30 }
provide = {}
"#;
    insta::assert_snapshot!(errors_in(text), @r#"
    mesh.toml:9:9: `apply` has to be a list in brackets, not a text
      9 | apply = "systemctl restart a"
        |         ^^^^^^^^^^^^^^^^^^^^^
        = write each word in quotes of its own, like ["a", "b"]

    mesh.toml:10:9: `check`: a command names at least a program
      10 | check = []
         |         ^^

    mesh.toml:11:14: an element of `test` has to be a text in quotes, not 5
      11 | test = ["a", 5]
         |              ^

    mesh.toml:12:10: `remove`: a command names at least a program
      12 | remove = [""]
         |          ^^^^

    mesh.toml:13:8: `move` cannot be "stopfirst"
      13 | move = "stopfirst"
         |        ^^^^^^^^^^^
         = did you mean "stop-first"?

    mesh.toml:14:9: `owner`: an owner is `user` or `user:group`, of letters, digits, `.`, `_` and `-`
      14 | owner = "a:b:c"
         |         ^^^^^^^

    mesh.toml:15:20: `apply`: a time is whole seconds or minutes, like "30s" or "2m"
      15 | limits = { apply = "2h", lod = "1s", check = 30 }
         |                    ^^^^

    mesh.toml:15:26: there is no key `lod` here
      15 | limits = { apply = "2h", lod = "1s", check = 30 }
         |                          ^^^
         = did you mean `load`?

    mesh.toml:15:46: `check` has to be a time in quotes, like "30s" or "2m", not 30
      15 | limits = { apply = "2h", lod = "1s", check = 30 }
         |                                              ^^

    mesh.toml:16:1: there is no key `provide` here
      16 | provide = {}
         | ^^^^^^^
         = did you mean `provides`?
    "#);
}

#[test]
fn files_are_read_with_care() {
    let text = r#"
[services.a]
[[services.a.files]]
path = "none"
[[services.a.files]]
path = "two"
content = "x"
source = "templates/billing.toml.j2"
[[services.a.files]]
content = "x"
[[services.a.files]]
path = "../up"
content = "x"
[[services.a.files]]
path = "/etc//x"
content = "x"
[[services.a.files]]
path = "mode"
content = "x"
mode = 640
[[services.a.files]]
path = "owner"
content = "x"
mode = "0999"
ower = "a"
[[services.a.files]]
path = "gone"
source = "files/gone"
[[services.a.files]]
path = "folder"
template = "templates"
[[services.a.files]]
path = "above"
source = "../above"
[[services.a.files]]
path = "absolute"
source = "/etc/passwd"
[services.b]
files = { path = "x" }
[services.c]
files = ["x"]
"#;
    let folder = Folder::with(&format!("{MACHINES}{text}"));
    insta::assert_snapshot!(folder.errors(), @r#"
    mesh.toml:10:8: a file's content is exactly one of `template`, `source` and `content`
      10 | path = "none"
         |        ^^^^^^
         = write one of `template = "…"`, `source = "…"` and `content = "…"`

    mesh.toml:12:8: a file's content is exactly one of `template`, `source` and `content`
      12 | path = "two"
         |        ^^^^^
         = write one of `template = "…"`, `source = "…"` and `content = "…"`

    mesh.toml:15:1: a file has a `path`
      15 | [[services.a.files]]
         | ^^^^^^^^^^^^^^^^^^^^
         = add `path = "…"`: relative, in the service's folder of the release; absolute, installed there

    mesh.toml:18:8: `path`: a path has no empty, '.' or '..' part
      18 | path = "../up"
         |        ^^^^^^^

    mesh.toml:21:8: `path`: a path has no empty, '.' or '..' part
      21 | path = "/etc//x"
         |        ^^^^^^^^^

    mesh.toml:26:8: `mode` has to be octal digits in quotes, like "0640", not 640
      26 | mode = 640
         |        ^^^

    mesh.toml:30:8: `mode`: a mode is octal digits, like "0640"
      30 | mode = "0999"
         |        ^^^^^^

    mesh.toml:31:1: there is no key `ower` here
      31 | ower = "a"
         | ^^^^
         = did you mean `owner`?

    mesh.toml:34:10: there is no file "files/gone"
      34 | source = "files/gone"
         |          ^^^^^^^^^^^^
         = sources are named relative to the folder of mesh.toml

    mesh.toml:37:12: "templates" is a folder; files are named one by one
      37 | template = "templates"
         |            ^^^^^^^^^^^
         = sources are named relative to the folder of mesh.toml

    mesh.toml:40:10: a source lies below the declaration's folder, and has no empty, `.` or `..` part
      40 | source = "../above"
         |          ^^^^^^^^^^
         = put the file below the declaration's folder, and write its path like "files/x.conf"

    mesh.toml:43:10: a source is a path relative to the declaration
      43 | source = "/etc/passwd"
         |          ^^^^^^^^^^^^^
         = put the file below the declaration's folder: a push from another checkout has to compose the same

    mesh.toml:45:9: `files` is a list of tables
      45 | files = { path = "x" }
         |         ^^^^^^^^^^^^^^
         = write each as `[[services.b.files]]`

    mesh.toml:47:10: a file is a table
      47 | files = ["x"]
         |          ^^^
         = write its keys in `{ … }`, or below a `[header]` of its own
    "#);
}

#[test]
fn no_two_files_go_to_one_path() {
    let text = r#"
[services.a]
node = "atlas"
[[services.a.files]]
path = "x"
content = ""
[[services.a.files]]
path = "x"
content = ""
[[services.a.files]]
path = "x/y"
content = ""
[[services.a.files]]
path = "/etc/app"
content = ""
[[services.a.files]]
path = "/etc/other.conf"
content = ""
[services.b]
nodes = ["@eu"]
[[services.b.files]]
path = "/etc/app"
content = ""
[[services.b.files]]
path = "/etc/other.conf/below"
content = ""
[services.elsewhere]
node = "borealis"
[[services.elsewhere.files]]
path = "/etc/other.conf"
content = ""
"#;
    insta::assert_snapshot!(errors_in(text), @r#"
    mesh.toml:14:8: a has two files x
      14 | path = "x"
         |        ^^^
         = the other one is at mesh.toml:11

    mesh.toml:17:8: x cannot be a file and the folder of x/y
      17 | path = "x/y"
         |        ^^^^^
         = the file is at mesh.toml:11

    mesh.toml:28:8: b and a both install /etc/app on atlas
      28 | path = "/etc/app"
         |        ^^^^^^^^^^
         = a's is at mesh.toml:20

    mesh.toml:31:8: on atlas /etc/other.conf cannot be a file of a and the folder of /etc/other.conf/below of b
      31 | path = "/etc/other.conf/below"
         |        ^^^^^^^^^^^^^^^^^^^^^^^
         = a's is at mesh.toml:23
    "#);
    is_right(
        "[services.a]\nnode = \"atlas\"\nfiles = [{ path = \"/etc/x\", content = \"\" }]\n\
         [services.b]\nnode = \"borealis\"\nfiles = [{ path = \"/etc/x\", content = \"\" }]\n",
    );
}

#[test]
fn no_file_goes_where_grid_writes_itself() {
    let text = r#"
[services.a]
node = "atlas"
provides = { kind = "rabbitmq" }
files = [{ path = "grants.json", content = "" }, { path = "bindings/x", content = "" }]
[services.b]
node = "borealis"
consumes = ["a"]
files = [
  { path = "grants.json", content = "" },
  { path = "bindings/x", content = "" },
  { path = "b.env", content = "" },
  { path = "/var/lib/grid/prod/current/x", content = "" },
  { path = "/var/lib", content = "" },
]
"#;
    insta::assert_snapshot!(errors_in(text), @r#"
    mesh.toml:11:19: grid itself writes grants.json here: the provider's grant list
      11 | files = [{ path = "grants.json", content = "" }, { path = "bindings/x", content = "" }]
         |                   ^^^^^^^^^^^^^
         = give the file another path

    mesh.toml:17:12: grid itself writes bindings here: the bindings of what the service consumes
      17 |   { path = "bindings/x", content = "" },
         |            ^^^^^^^^^^^^
         = give the file another path

    mesh.toml:18:12: grid itself writes b.env here: the environment file of what the service consumes
      18 |   { path = "b.env", content = "" },
         |            ^^^^^^^
         = give the file another path

    mesh.toml:19:12: /var/lib cannot be a file and the folder of /var/lib/grid/prod/current/x
      19 |   { path = "/var/lib/grid/prod/current/x", content = "" },
         |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
         = the file is at mesh.toml:20

    mesh.toml:19:12: /var/lib/grid/prod/current/x is where the machine's releases lie: its root is /var/lib/grid/prod
      19 |   { path = "/var/lib/grid/prod/current/x", content = "" },
         |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
         = a relative path goes into the release; install outside the root what has to stand elsewhere

    mesh.toml:20:12: /var/lib is where the machine's releases lie: its root is /var/lib/grid/prod
      20 |   { path = "/var/lib", content = "" },
         |            ^^^^^^^^^^
         = a relative path goes into the release; install outside the root what has to stand elsewhere
    "#);
}

#[test]
fn services_that_wait_for_each_other_are_a_circle() {
    let text = r#"
[services.a]
node = "atlas"
provides = { kind = "rabbitmq" }
consumes = ["c"]
[services.b]
provides = { kind = "rabbitmq" }
consumes = ["a"]
[services.c]
node = "atlas"
provides = { kind = "rabbitmq" }
consumes = ["b", "d"]
[services.d]
node = "borealis"
provides = { kind = "rabbitmq" }
"#;
    insta::assert_snapshot!(errors_in(text), @r#"
    mesh.toml:11:13: these services would wait for each other: a -> c -> b -> a
      11 | consumes = ["c"]
         |             ^^^
         = let one of them start without waiting, if it retries by itself: `consumes = { c = { wait = false } }`
    "#);
    is_right(&text.replace("[\"a\"]", "{ a = { wait = false } }"));
}

#[test]
fn machines_may_depend_on_each_other_in_a_circle() {
    is_right(
        r#"
[services.a]
node = "atlas"
provides = { kind = "rabbitmq" }
[services.b]
node = "borealis"
provides = { kind = "rabbitmq" }
[services.c]
node = "atlas"
consumes = ["b"]
[services.d]
node = "borealis"
consumes = ["a"]
"#,
    );
}

#[test]
fn all_errors_of_all_files_come_at_once_in_order() {
    let folder = Folder::new(&[
        (
            "mesh.toml",
            "[mesh]\nname = \"prod\"\nnmae = 1\n[services.a]\nnode = \"z\"\nconsumes = [\"b\"]\n",
        ),
        ("mesh.d/20.toml", "[services.b]\napply = 1\n"),
        (
            "mesh.d/10.toml",
            "[nodes.y]\nport = -1\n\n[[services.c.files]]\npath = \"x\"\nsource = \"s\"\n",
        ),
    ]);
    insta::assert_snapshot!(folder.errors(), @r#"
    mesh.toml:3:1: there is no key `nmae` here
      3 | nmae = 1
        | ^^^^
        = did you mean `name`?

    mesh.toml:5:8: there is no machine z
      5 | node = "z"
        |        ^^^
        = declare it as `[nodes.z]`, or take it out of `node` of a

    mesh.toml:6:13: b provides nothing
      6 | consumes = ["b"]
        |             ^^^
        = add `provides = { kind = "…" }` to it, or take it out of a's `consumes`

    mesh.d/10.toml:2:8: `port` has to be a port, from 1 to 65535, not -1
      2 | port = -1
        |        ^^

    mesh.d/10.toml:6:10: there is no file "s"
      6 | source = "s"
        |          ^^^
        = sources are named relative to the folder of mesh.toml

    mesh.d/20.toml:2:9: `apply` has to be a list in brackets, not 1
      2 | apply = 1
        |         ^
    "#);
}

#[test]
fn a_diagnostic_can_be_read_by_a_program() {
    let wrong = Folder::with("[mesh]\nname = \"prod\"\nnmae = 1\n")
        .load()
        .unwrap_err();
    let mut json = serde_json::to_value(&wrong).unwrap();
    json["errors"][0]["file"] = "mesh.toml".into();
    insta::assert_snapshot!(format!("{json:#}"), @r#"
    {
      "errors": [
        {
          "caret": 0,
          "column": 1,
          "excerpt": "nmae = 1",
          "file": "mesh.toml",
          "help": "did you mean `name`?",
          "kind": "declaration",
          "line": 3,
          "message": "there is no key `nmae` here",
          "width": 4
        }
      ]
    }
    "#);
}

#[test]
fn very_many_errors_are_counted_but_not_all_shown() {
    let text: String = (0..3000).map(|n| format!("k{n} = 1\n")).collect();
    let wrong = Folder::with(&text).load().unwrap_err();
    assert_eq!((wrong.errors.len(), wrong.omitted), (1000, 2001)); // and [mesh] is missing
}

#[test]
fn the_digest_is_of_every_byte_and_of_nothing_else() {
    let one = good();
    assert_eq!(one.load().unwrap().digest, good().load().unwrap().digest);
    one.write("mesh.d/x.toml", b"# nothing\n");
    let with_comment = one.load().unwrap();
    assert_eq!(with_comment.files, ["mesh.toml", "mesh.d/x.toml"]);
    assert_ne!(with_comment.digest, good().load().unwrap().digest);
}

/// Pieces of which wrong declarations are made.
const PIECES: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "\n",
    "\r\n",
    "\t",
    "@",
    "-",
    "0",
    "99999999999999999999",
    "1.5",
    "true",
    "2026-12-01",
    "nodes",
    "services",
    "mesh",
    "defaults",
    "secrets",
    "atlas",
    "broker",
    "billing",
    "files",
    "path",
    "provides",
    "consumes",
    "kind",
    "\u{0}",
    "\u{feff}",
    "ü",
    "\u{1f980}",
    "\\",
    "\\u00e9",
    "inf",
    "0x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_whatever_make_it_fall(bytes in vec(any::<u8>(), 0..400)) {
        let folder = Folder::new(&[]);
        folder.write("mesh.toml", &bytes);
        if let Err(wrong) = folder.load() {
            let _ = wrong.to_string();
        }
    }

    #[test]
    fn no_change_of_a_good_declaration_makes_it_fall(
        changes in vec((any::<Index>(), 0..60_usize, vec(select(PIECES), 0..3)), 1..6),
    ) {
        let mut text = GOOD.to_owned();
        for (at, cut, pieces) in changes {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let start = at.index(places.len());
            let end = (start + cut).min(places.len() - 1);
            text.replace_range(places[start]..places[end], &pieces.concat());
            if text.is_empty() {
                text.push('x');
            }
        }
        let folder = Folder::with(&text);
        if let Err(wrong) = folder.load() {
            let lines = text.split('\n').count();
            for error in &wrong.errors {
                prop_assert!(error.at.as_ref().is_none_or(|at| (1..=lines).contains(&at.line)));
            }
            let _ = wrong.to_string();
        }
        // Nor an edit of it, whichever way it ends; what it refuses is as it was.
        let service = ServiceName::new("billing").unwrap();
        let nodes = [Selector::Node("atlas".into()), Selector::Node("here".into())];
        if set_nodes(folder.path(), &service, &nodes).is_err() {
            prop_assert_eq!(std::fs::read_to_string(folder.path().join("mesh.toml")).unwrap(), text);
        }
    }
}

#[test]
fn signals_that_are_wrong_say_what_would_be_right() {
    let text = "[mesh]\nname = \"prod\"\n[signals]\nmode = \"swim\"\ntrust = \"pins\"\nport = 0\n[nodes.atlas]\n\
                pins = [\"ab\"]\n[services.site]\nnode = \"atlas\"\nmetrics = \"https://h/\"\n";
    let errors = errors(text);
    for part in [
        "SWIM membership runs in both modes",
        "a trust is pin or spiffe",
        "with `[signals]` every machine has a service `site`",
        "64 hexadecimal digits",
        "http:// only",
    ] {
        assert!(errors.contains(part), "{part} is not in {errors}");
    }
}

#[test]
fn settings_of_the_daemons_and_what_metrics_mean_say_what_would_be_right() {
    let text = "[mesh]\nname = \"prod\"\n[signals.settings]\npoll_interval_ms = 5\npoll_atempts = 2\n[nodes.atlas]\n\
                [services.broker]\nnode = \"atlas\"\nmetrics = \"http://h/\"\n\
                signals = { score = { by = \"queue\" }, map = { queue-dept = [\"a-b\"], ready = [\"a b\"] } }\n\
                [services.one]\nmetrics = \"http://h/\"\nsignals = { score = { by = \"queue-depth\" } }\n\
                [services.two]\nmetrics = \"http://h/\"\nsignals = { score = { capacity = 2 } }\n\
                [services.three]\nmetrics = \"http://h/\"\nsignals = { score = { by = \"kv-cache-pressure\", capacity = 0 } }\n\
                [services.four]\nmetrics = \"http://h/\"\nsignals = { score = { by = \"kv-cache-pressure\", capacity = 2 } }\n\
                [services.other.signals]\nmap = { ready = [\"q\"], queue-depth = [\"q\"] }\n";
    let errors = errors(text);
    for part in [
        "mesh.toml:4:20",
        "poll_interval_ms = 5 is not between 100 and 86400000",
        "did you mean `poll_attempts`?",
        "`queue-depth`",
        "did you mean `queue-depth`?",
        "the name of a metric is letters, digits",
        "`signals` says what a service's metrics mean, and this one shows none",
        "a score by queue depth is taken against how many may wait",
        "a score says by what a provider is scored",
        "a capacity is more than 0",
        "a score by KV-cache pressure has no capacity",
        "q is mapped to a queue depth",
    ] {
        assert!(errors.contains(part), "{part} is not in {errors}");
    }
}

const SITES: &str = "[mesh]\nname = \"prod\"\n[signals]\nmode = \"poll\"\n";

#[test]
fn what_no_site_can_be_is_told_with_its_place_all_at_once() {
    let pin = "ab".repeat(32);
    let colons = "AB:".repeat(31) + "AB";
    let text = format!(
        "{SITES}[nodes.a]\naddress = \"10.0.0.1\"\npins = [\"{pin}\"]\n\
         [nodes.b]\naddress = \"fe80::1%eth0\"\npins = [\"{colons}\"]\n\
         [nodes.c]\naddress = \"127.1\"\n[nodes.d]\naddress = \"10.0.0.256\"\n\
         [nodes.e]\naddress = \"::ffff:127.0.0.1\"\n[nodes.f]\naddress = \"0.0.0.0\"\n\
         [nodes.g]\naddress = \"169.254.169.254\"\n[nodes.h]\naddress = \"ff02::1\"\n\
         [nodes.i]\naddress = \"::ffff:10.0.0.1\"\n[nodes.j]\naddress = \"Atlas.example.org\"\n\
         [nodes.k]\naddress = \"atlas.example.org\"\n\
         [nodes.l]\naddress = \"10.0.0.9\"\npins = [\"{}\", \"{}\"]\n[nodes.10]\n",
        "cd".repeat(32),
        "CD".repeat(32)
    );
    insta::assert_snapshot!(errors(&text), @r#"
    mesh.toml:9:11: the other sites cannot reach b at "fe80::1%eth0"
      9 | address = "fe80::1%eth0"
        |           ^^^^^^^^^^^^^^
        = a zone is the name of an interface on one machine only: write an address that holds on all of them

    mesh.toml:10:9: b and a have the same pin, and a certificate is one site's
      10 | pins = ["AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB"]
         |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
         = write the SHA-256 of b's own certificate; a has it at mesh.toml:7

    mesh.toml:12:11: the other sites cannot reach c at "127.1"
      12 | address = "127.1"
         |           ^^^^^^^
         = write an IP address whole, four numbers up to 255 or an IPv6 address, or a DNS name, whose last part is no number

    mesh.toml:14:11: the other sites cannot reach d at "10.0.0.256"
      14 | address = "10.0.0.256"
         |           ^^^^^^^^^^^^
         = write an IP address whole, four numbers up to 255 or an IPv6 address, or a DNS name, whose last part is no number

    mesh.toml:16:11: ::ffff:127.0.0.1 is loopback, link-local, unspecified, of no one machine or of a cloud's metadata: no site polls e there
      16 | address = "::ffff:127.0.0.1"
         |           ^^^^^^^^^^^^^^^^^^
         = write the address at which the other sites reach it; for a trial, `special_addresses = true` in `[signals.settings]` admits this one

    mesh.toml:18:11: 0.0.0.0 is loopback, link-local, unspecified, of no one machine or of a cloud's metadata: no site polls f there
      18 | address = "0.0.0.0"
         |           ^^^^^^^^^
         = write the address at which the other sites reach it; for a trial, `special_addresses = true` in `[signals.settings]` admits this one

    mesh.toml:20:11: 169.254.169.254 is loopback, link-local, unspecified, of no one machine or of a cloud's metadata: no site polls g there
      20 | address = "169.254.169.254"
         |           ^^^^^^^^^^^^^^^^^
         = write the address at which the other sites reach it; for a trial, `special_addresses = true` in `[signals.settings]` admits this one

    mesh.toml:22:11: ff02::1 is loopback, link-local, unspecified, of no one machine or of a cloud's metadata: no site polls h there
      22 | address = "ff02::1"
         |           ^^^^^^^^^
         = write the address at which the other sites reach it; for a trial, `special_addresses = true` in `[signals.settings]` admits this one

    mesh.toml:24:11: i and a are sites at one address, ::ffff:10.0.0.1, and all sites of a mesh listen at one port
      24 | address = "::ffff:10.0.0.1"
         |           ^^^^^^^^^^^^^^^^^
         = give each the address of a machine of its own; a is at mesh.toml:6

    mesh.toml:28:11: k and j are sites at one address, atlas.example.org, and all sites of a mesh listen at one port
      28 | address = "atlas.example.org"
         |           ^^^^^^^^^^^^^^^^^^^
         = give each the address of a machine of its own; j is at mesh.toml:26

    mesh.toml:31:77: this pin stands here twice
      31 | …dcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd", "CDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCD"]
         |                                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
         = write it once: the second one is that of a certificate that is to come

    mesh.toml:32:8: the other sites cannot reach 10 at "10"
      32 | [nodes.10]
         |        ^^
         = write an IP address whole, four numbers up to 255 or an IPv6 address, or a DNS name, whose last part is no number
    "#);
}

#[test]
fn special_addresses_are_said_to_be_meant_or_are_nobodys_peers() {
    let right = |signals: &str, nodes: &str| {
        let text = format!("[mesh]\nname = \"prod\"\n[signals]\n{signals}\n{nodes}");
        let folder = Folder::new(&[("mesh.toml", &text)]);
        folder.load().unwrap_or_else(|wrong| panic!("{wrong}"));
    };
    let two = "[nodes.a]\naddress = \"127.0.0.1\"\n[nodes.b]\naddress = \"127.0.0.2\"\n";
    right(
        "mode = \"poll\"\nsettings = { special_addresses = true }",
        two,
    );
    right("mode = \"gossip\"", two);
    right("mode = \"poll\"", "[nodes.a]\naddress = \"127.0.0.1\"\n");
    // Without sites, an address is whatever ssh makes of it.
    let none = "[mesh]\nname = \"prod\"\n[nodes.a]\naddress = \"127.1\"\n[nodes.b]\naddress = \"fe80::1%eth0\"\n";
    Folder::new(&[("mesh.toml", none)]).load().unwrap();
}

#[test]
fn sites_that_listen_where_their_metrics_are_shown_anyway_are_refused() {
    let text = format!("{SITES}port = 9092\n[nodes.a]\naddress = \"10.0.0.1\"\n");
    insta::assert_snapshot!(errors(&text), @r"
    mesh.toml:5:8: the sites listen at port 9092, so that they cannot show their own metrics there
      5 | port = 9092
        |        ^^^^
        = write another `port` or `metrics_port`; left out, they are 9091 and 9092
    ");
}

#[test]
fn all_settings_that_contradict_each_other_or_the_contract_are_told_at_once() {
    let text = format!(
        "{SITES}state = \"/var/{{node}}\"\nport = 9092\nmetrics_port = 9092\n[signals.settings]\n\
         poll_interval_ms = 300000\nscrape_interval_ms = 600000\npoll_total_ms = 4000\n\
         scrape_timeout_ms = 700000\nsite_connections = 300\n[nodes.a]\naddress = \"10.0.0.1\"\n"
    );
    insta::assert_snapshot!(errors(&text), @r#"
    mesh.toml:5:9: `state` is the same on every machine: nothing in braces is filled in
      5 | state = "/var/{node}"
        |         ^^^^^^^^^^^^^
        = leave it out, for `/var/lib/grid-site/<mesh>`, or write the path whole

    mesh.toml:7:16: the sites listen at port 9092, so that they cannot show their own metrics there
      7 | metrics_port = 9092
        |                ^^^^
        = write another `port` or `metrics_port`; left out, they are 9091 and 9092

    mesh.toml:9:20: poll_interval_ms = 300000, and what is read lives 120000 ms: signals would be missing in between, so it is less than that
      9 | poll_interval_ms = 300000
        |                    ^^^^^^

    mesh.toml:10:22: scrape_interval_ms = 600000, and what is read lives 120000 ms: signals would be missing in between, so it is less than that
      10 | scrape_interval_ms = 600000
         |                      ^^^^^^

    mesh.toml:11:17: poll_attempt_ms = 5000 is more than poll_total_ms = 4000, within which it ends
      11 | poll_total_ms = 4000
         |                 ^^^^

    mesh.toml:12:21: scrape_timeout_ms = 700000 is more than scrape_interval_ms = 600000, within which it ends
      12 | scrape_timeout_ms = 700000
         |                     ^^^^^^

    mesh.toml:13:20: site_connections = 300 is more than peers have in all: connections = 256, 8 of them kept for local callers
      13 | site_connections = 300
         |                    ^^^
    "#);
    let text = format!(
        "{SITES}[signals.settings]\nhandshake_ms = 1\npoll_attempts = 0\nconnections = 8\n[nodes.a]\n"
    );
    insta::assert_snapshot!(errors(&text), @"
    mesh.toml:6:16: handshake_ms = 1 is not between 100 and 86400000
      6 | handshake_ms = 1
        |                ^

    mesh.toml:7:17: poll_attempts = 0 is not between 1 and 16
      7 | poll_attempts = 0
        |                 ^

    mesh.toml:8:15: local_connections = 8 leaves nothing of connections = 8 for peers
      8 | connections = 8
        |               ^
    ");
}

#[test]
fn names_that_nothing_fills_in_are_told_with_what_was_meant() {
    let text = "[mesh]\nname = \"prod\"\n[nodes.atlas]\n[services.db]\nnode = \"atlas\"\n[services.db.provides]\n\
                kind = \"custom\"\nport = 1\ntemplate = \"templates/billing.toml.j2\"\nload = [\"l\"]\ncheck = [\"c\"]\n\
                uri = \"db://{{ usrname }}:{{ password }}@{{ authority }}/{{ wants.any }}\"\n\
                entries = { \"a.b\" = \"{{ hostname }}\" }\nenv = { A = \"{{ nothing_like_it }}\" }\n";
    insta::assert_snapshot!(Folder::with(text).errors(), @r#"
    mesh.toml:12:1: `uri` of db says {{ usrname }}, which nothing fills in
      12 | uri = "db://{{ usrname }}:{{ password }}@{{ authority }}/{{ wants.any }}"
         | ^^^
         = did you mean `username`?

    mesh.toml:13:13: `entries.a.b` of db says {{ hostname }}, which nothing fills in
      13 | entries = { "a.b" = "{{ hostname }}" }
         |             ^^^^^
         = there are authority, consumer, generation, host, mesh, password, port, provider, username, wants

    mesh.toml:14:9: `env.A` of db says {{ nothing_like_it }}, which nothing fills in
      14 | env = { A = "{{ nothing_like_it }}" }
         |         ^
         = there are authority, consumer, generation, host, mesh, password, port, provider, username, wants
    "#);
    Folder::with(
        &text
            .replace("usrname", "username")
            .replace("hostname", "host")
            .replace("nothing_like_it", "port"),
    )
    .load()
    .unwrap();
}
