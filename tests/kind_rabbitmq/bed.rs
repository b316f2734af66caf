//! One mesh's provider on the broker, loaded in one way.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use grid::kinds::{Account, Endpoint, Owner, Script, Wants};
use grid::words::{Era, Generation, MeshName, Salt, Secret, ServiceName};

use super::broker::Broker;
use super::client::{Held, amqp};

/// A way of loading: which shell, whose tools, whether with the public commands only; and whether all of
/// the bed is to be done with it.
#[derive(Clone, Copy)]
pub struct Way {
    pub name: &'static str,
    pub shell: &'static [&'static str],
    pub applets: bool,
    pub public: bool,
    pub thorough: bool,
}

/// An entry of a list: consumer, generation, wants.
pub type Entry<'a> = (&'a str, u32, &'a str);

/// What an account is made of.
pub struct Minted {
    pub consumer: ServiceName,
    pub generation: u32,
    pub secret: Secret,
    pub wants: Wants,
}

/// One mesh's provider on the broker, loaded in one way.
pub struct Bed<'a> {
    pub broker: &'a Broker,
    pub way: Way,
    pub mesh: MeshName,
    pub service: ServiceName,
}

impl Bed<'_> {
    pub fn owner(&self) -> Owner<'_> {
        Owner {
            mesh: &self.mesh,
            provider: &self.service,
        }
    }

    /// Nothing of chance: a secret and a salt are a function of whose they are.
    pub fn secret(&self, consumer: &str, generation: u32) -> Secret {
        Secret::new(format!("planted-{}-{consumer}-{generation}", self.mesh))
    }

    pub fn minted(&self, entry: Entry<'_>) -> Minted {
        let (consumer, generation, wants) = entry;
        let wants = toml::de::Deserializer::parse(wants).unwrap();
        Minted {
            consumer: ServiceName::new(consumer).unwrap(),
            generation,
            secret: self.secret(consumer, generation),
            wants: self.broker.provider().read_wants(wants).unwrap(),
        }
    }

    pub fn account<'a>(&'a self, minted: &'a Minted) -> Account<'a> {
        Account {
            owner: self.owner(),
            consumer: &minted.consumer,
            generation: Generation {
                number: minted.generation,
                era: Era(1),
            },
            secret: &minted.secret,
            salt: Salt([u8::try_from(minted.generation).unwrap(); 16]),
            wants: &minted.wants,
        }
    }

    pub fn list(&self, entries: &[Entry<'_>]) -> String {
        let minted: Vec<Minted> = entries.iter().map(|&entry| self.minted(entry)).collect();
        let accounts: Vec<Account<'_>> = minted.iter().map(|m| self.account(m)).collect();
        let no_template = |path: &str| panic!("asks for {path}");
        let provider = self.broker.provider();
        let list = provider.kind().list(self.owner(), &accounts, &no_template);
        list.unwrap().content.expose().to_owned()
    }

    pub fn run(&self, script: &Script, list: &str) -> Output {
        let mut command = Command::new(self.way.shell[0]);
        if self.way.applets {
            let path = std::env::var("PATH").unwrap();
            let applets = self.broker.folder.join("applets");
            command.env("PATH", format!("{}:{path}", applets.display()));
        }
        if self.way.public {
            command.env("GRID_RABBITMQ", "public");
        }
        // As over ssh: no locale.
        command.env_remove("LANG").env_remove("LC_ALL");
        let mut child = command
            .args(&self.way.shell[1..])
            .args(["-c", &script.0])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(list.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = said(&output);
        for hash in hashes(list) {
            assert!(!said.contains(&hash), "a hash in: {said}");
        }
        output
    }

    pub fn load(&self, entries: &[Entry<'_>]) -> Output {
        let script = self.broker.provider().kind().load(self.owner());
        self.run(&script, &self.list(entries))
    }

    pub fn check(&self, entries: &[Entry<'_>]) -> Output {
        let script = self.broker.provider().kind().check(self.owner());
        self.run(&script, &self.list(entries))
    }

    /// Loads, and reads back.
    #[track_caller]
    pub fn loads(&self, entries: &[Entry<'_>], says: &str) {
        let output = self.load(entries);
        assert!(
            output.status.success(),
            "{}: {}",
            self.way.name,
            said(&output)
        );
        assert_eq!(said(&output), format!("{says}\n"), "{}", self.way.name);
        self.holds(entries);
    }

    #[track_caller]
    pub fn holds(&self, entries: &[Entry<'_>]) {
        let output = self.check(entries);
        assert!(
            output.status.success(),
            "{}: {}",
            self.way.name,
            said(&output)
        );
        assert_eq!(said(&output), "the broker admits exactly the list\n");
    }

    /// The check fails and says so; the load mends it.
    #[track_caller]
    pub fn mends(&self, entries: &[Entry<'_>], says: &str) {
        let output = self.check(entries);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{}: {}",
            self.way.name,
            said(&output)
        );
        assert_eq!(said(&output), format!("{says}\n"), "{}", self.way.name);
        let output = self.load(entries);
        assert!(
            output.status.success(),
            "{}: {}",
            self.way.name,
            said(&output)
        );
        self.holds(entries);
    }

    /// The load refuses and changes nothing; the check refuses the same.
    #[track_caller]
    pub fn refuses(&self, entries: &[Entry<'_>], says: &str) {
        let before = self.broker.definitions();
        for output in [self.load(entries), self.check(entries)] {
            assert_eq!(
                output.status.code(),
                Some(1),
                "{}: {}",
                self.way.name,
                said(&output)
            );
            assert_eq!(
                said(&output),
                format!("{says}\nnothing was changed\n"),
                "{}",
                self.way.name
            );
        }
        assert_eq!(self.broker.definitions(), before, "{}", self.way.name);
    }

    /// The folder that a consumer reads.
    pub fn binding(&self, entry: Entry<'_>) -> PathBuf {
        let folder = self
            .broker
            .folder
            .join(format!("binding-{}-{}-{}", self.mesh, entry.0, entry.1));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let endpoint = Endpoint {
            host: "127.0.0.1".into(),
            port: self.broker.port,
        };
        let minted = self.minted(entry);
        let provider = self.broker.provider();
        let binding = provider.kind().binding(&endpoint, &self.account(&minted));
        for file in binding.unwrap().entries {
            fs::write(folder.join(file.name), file.value.expose()).unwrap();
        }
        folder
    }

    pub fn login(&self, entry: Entry<'_>) -> String {
        let output = amqp(&["login"], &self.binding(entry)).output().unwrap();
        said(&output)
    }

    pub fn round_trip(&self, entry: Entry<'_>) {
        let mut command = amqp(&["round-trip"], &self.binding(entry));
        let output = command
            .args(["orders", "a text, ünïcode"])
            .output()
            .unwrap();
        assert_eq!(said(&output), "a text, ünïcode\n");
    }

    pub fn hold(&self, entry: Entry<'_>) -> Held {
        Held::open(&self.binding(entry))
    }
}

pub fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub fn hashes(list: &str) -> Vec<String> {
    let list: serde_json::Value = serde_json::from_str(list).unwrap();
    list["users"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| user["password_hash"].as_str().unwrap().to_owned())
        .collect()
}
