//! What a user sees of a declaration that is wrong, and that no text whatever makes the reader fall.

use std::time::Duration;

use camino::Utf8Path;
use grid::mesh::{Become, CourierKind, DiagnosticKind, Diagnostics, Limits, Loaded, Move, load};
use grid::words::NodeName;

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

/// The errors of a declaration whose head and machines are right.
fn errors_in(services: &str) -> String {
    errors(&format!(
        "[mesh]\nname = \"prod\"\n[nodes.atlas]\ntags = [\"eu\"]\n[nodes.borealis]\ntags = [\"eu\"]\n{services}"
    ))
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
    Folder::new(&[("mesh.toml", GOOD), ("templates/billing.toml.j2", "x")])
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
