//! A machine that is a folder, and bundles to send to it.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part of it

pub mod mount;
pub mod sshd;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use grid::compose::Release;
use grid::compose::bundle::{Bundle, Content};
use grid::compose::manifest::{
    FORMAT, FileEntry, Grant, Grants, Manifest, ServiceManifest, StepSeconds,
};
use grid::delivery::{
    Answer, Applied, CourierSettings, Couriers, Dispatch, FailedStep, Failure, Heard, Holding,
    Manner, Outcome, Parcel, Progress, Question, Secrets, Target,
};
use grid::kinds::{CustomWants, Wants};
use grid::mesh::{CourierKind, Node};
use grid::words::{
    AbsolutePath, Digest, Era, Generation, MeshName, NodeName, ReleasePath, ServiceName, StoreId,
    Token,
};
use zeroize::Zeroizing;

/// Which shell runs the receiving script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Dash,
    Bash,
    Busybox,
}

pub fn name(text: &str) -> ServiceName {
    ServiceName::new(text).unwrap()
}

/// A service as a test writes it.
#[derive(Debug, Clone)]
pub struct Service {
    pub name: &'static str,
    pub files: Vec<(String, u16, Vec<u8>, Option<String>)>,
    pub commands: Vec<(&'static str, String)>,
    pub grants: Option<Vec<&'static str>>,
    pub binds: Vec<&'static str>,
    pub limit: u64,
    pub owner: Option<&'static str>,
    pub kept: bool,
}

pub fn service(name: &'static str) -> Service {
    Service {
        name,
        files: vec![],
        commands: vec![],
        grants: None,
        binds: vec![],
        limit: 20,
        owner: None,
        kept: false,
    }
}

impl Service {
    pub fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = format!("services/{}/{path}", self.name);
        self.files
            .push((path, 0o644, content.as_ref().to_vec(), None));
        self
    }

    pub fn install(mut self, at: &Path, content: &str) -> Self {
        let at = at.to_str().unwrap().to_owned();
        let path = format!("installs/{}{at}", self.name);
        self.files
            .push((path, 0o640, content.as_bytes().to_vec(), Some(at)));
        self
    }

    pub fn command(mut self, step: &'static str, text: impl Into<String>) -> Self {
        self.commands.push((step, text.into()));
        self
    }

    /// Its list, which `load` puts into `STATE/NAME.list`.
    pub fn grants(mut self, consumers: &[&'static str], bed: &Bed) -> Self {
        let (state, service) = (bed.state().display().to_string(), self.name);
        self.grants = Some(consumers.to_vec());
        self.command("empty", "nobody\n")
            .command(
                "load",
                format!("cat >'{state}/{service}.list' && echo load {service} >>'{state}/log'"),
            )
            .command(
                "verify",
                format!("[ \"$(cat)\" = \"$(cat '{state}/{service}.list')\" ]"),
            )
    }

    /// Writes each step it goes through to `STATE/log`.
    pub fn logged(self, bed: &Bed) -> Self {
        let (log, name) = (bed.state().join("log").display().to_string(), self.name);
        self.command("apply", format!("echo apply {name} >>'{log}'"))
            .command("check", format!("echo check {name} >>'{log}'"))
            .command("remove", format!("echo remove {name} >>'{log}'"))
    }

    pub fn without(mut self, step: &str) -> Self {
        self.commands.retain(|(s, _)| *s != step);
        self
    }

    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = seconds;
        self
    }
}

pub fn grants(consumers: &[&str]) -> Grants {
    consumers
        .iter()
        .map(|consumer| Grant {
            consumer: name(consumer),
            generation: Generation {
                number: 1,
                era: Era(1),
            },
            wants: Wants::Custom(CustomWants::default()),
        })
        .collect()
}

/// Composes a bundle of `services`.
pub fn bundle(services: &[Service]) -> Bundle {
    let mut contents = BTreeMap::new();
    let mut all = BTreeMap::new();
    for service in services {
        let mut files = service.files.clone();
        if let Some(consumers) = &service.grants {
            let list = consumers.join("\n").into_bytes();
            files.push((
                format!("services/{}/grants.txt", service.name),
                0o600,
                list,
                None,
            ));
        }
        for (step, text) in &service.commands {
            files.push((
                format!("commands/{}/{step}", service.name),
                0o600,
                text.clone().into_bytes(),
                None,
            ));
        }
        let entries = files
            .into_iter()
            .map(|(path, mode, content, install)| {
                let sha256 = Digest::of(&content);
                let size = content.len() as u64;
                if !service.kept {
                    contents.insert(sha256, Content::Bytes(Arc::new(Zeroizing::new(content))));
                }
                FileEntry {
                    owner: service
                        .owner
                        .filter(|_| !path.starts_with("commands/"))
                        .map(str::to_owned),
                    path: ReleasePath::new(&path).unwrap(),
                    mode,
                    sha256,
                    size,
                    install: install.map(|at| AbsolutePath::new(&at).unwrap()),
                }
            })
            .collect();
        let bindings = service
            .binds
            .iter()
            .map(|provider| {
                let bound = grid::compose::manifest::Bound {
                    generation: Generation {
                        number: 1,
                        era: Era(1),
                    },
                    wants: Wants::Custom(CustomWants::default()),
                    nodes: BTreeSet::new(),
                };
                (name(provider), bound)
            })
            .collect();
        let limit = service.limit;
        all.insert(
            name(service.name),
            ServiceManifest {
                bindings,
                unwaited: BTreeSet::new(),
                provides: None,
                endpoint: None,
                grants: service.grants.as_deref().map(grants),
                files: entries,
                limits: StepSeconds {
                    test: limit,
                    load: limit,
                    apply: limit,
                    check: limit,
                    remove: limit,
                },
            },
        );
    }
    let manifest = Manifest {
        format: FORMAT,
        mesh: MeshName::new("prod").unwrap(),
        node: NodeName::new("atlas").unwrap(),
        services: all,
        site: None,
    };
    let release = Release::of(manifest);
    Bundle {
        digest: release.digest(),
        manifest: Arc::new(release),
        contents,
        goes_on: BTreeSet::new(),
        said_gone: BTreeSet::new(),
    }
}

pub fn token(number: u64) -> Token {
    Token {
        store: StoreId([7; 8]),
        era: Era(1),
        push: number,
        random: [1; 8],
    }
}

/// A machine that is a folder, and what a controller remembers of it.
pub struct Bed {
    pub dir: tempfile::TempDir,
    pub shell: Shell,
    pub base: Option<Arc<Release>>,
    pub held: Option<Token>,
    pub pushes: u64,
    pub progress: Vec<Progress>,
    pub timeout: Duration,
    /// The name of the place in the script where all of it is killed.
    pub stop: Option<&'static str>,
    /// Programs that the machine does not have.
    pub lacks: Vec<&'static str>,
    /// Programs that are others there.
    pub instead: Vec<(&'static str, PathBuf)>,
    pub root: PathBuf,
    /// Reached by ssh instead: the address and port, and the operator's home.
    pub ssh: Option<(String, u16, PathBuf)>,
    /// By the system's `ssh`.
    pub openssh: bool,
    pub become_root: Option<grid::mesh::Become>,
    /// Who logs in, where it is reached by ssh.
    pub user: String,
}

impl Bed {
    pub fn new(shell: Shell) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        let root = dir.path().join("the root's \"own\" -ü");
        Self {
            dir,
            shell,
            base: None,
            held: None,
            pushes: 0,
            progress: vec![],
            timeout: Duration::from_secs(20),
            stop: None,
            lacks: vec![],
            instead: vec![],
            root,
            ssh: None,
            openssh: false,
            become_root: None,
            user: "root".to_owned(),
        }
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn current(&self) -> PathBuf {
        self.root.join("current")
    }

    /// What commands wrote to the log since the last look.
    pub fn log(&self) -> Vec<String> {
        let path = self.state().join("log");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        text.lines().map(str::to_owned).collect()
    }

    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.current().join(path)).ok()
    }

    fn local_shell(&self) -> Vec<String> {
        let wrapper = self.dir.path().join("shell");
        let mut text = String::from("#!/bin/sh\n");
        let tools = self.dir.path().join("tools");
        if self.shell == Shell::Busybox || !self.lacks.is_empty() || !self.instead.is_empty() {
            // A machine of its own: busybox alone, or only what coreutils, tar and a shell are.
            let _ = fs::remove_dir_all(&tools);
            fs::create_dir(&tools).unwrap();
            let busybox = self.shell == Shell::Busybox;
            for tool in TOOLS
                .iter()
                .filter(|tool| !self.lacks.contains(tool))
                .filter(|tool| {
                    let is_other = self.instead.iter().any(|(name, _)| name == *tool);
                    !busybox || is_other || !OF_ROOT.contains(tool)
                })
            {
                let other = self.instead.iter().find(|(name, _)| name == tool);
                let from = if let Some((_, other)) = other {
                    other.clone()
                } else if busybox {
                    PathBuf::from("/bin/busybox")
                } else {
                    ["/usr/bin", "/bin", "/usr/sbin"]
                        .iter()
                        .map(|dir| Path::new(dir).join(tool))
                        .find(|path| path.exists())
                        .unwrap()
                };
                std::os::unix::fs::symlink(from, tools.join(tool)).unwrap();
            }
            // The script adds the folders of a superuser's programs; here they are out of reach.
            text.push_str(&format!("PATH='{}'\nexport PATH\n", tools.display()));
        }
        let shell = match self.shell {
            Shell::Dash => "/usr/bin/dash",
            Shell::Bash => "/usr/bin/bash",
            Shell::Busybox => "/bin/busybox sh",
        };
        if let Some(stop) = self.stop {
            let source = fs::read_to_string(
                Path::new(env!("CARGO_MANIFEST_DIR")).join("src/delivery/receive.sh"),
            )
            .unwrap();
            let place = format!("#@ {stop}");
            assert!(
                source.lines().any(|line| line.trim() == place),
                "{stop} is no place in the script"
            );
            let script: String = source
                .lines()
                .map(|line| {
                    if line.trim() == place {
                        "kill -9 0\n".to_owned()
                    } else {
                        format!("{line}\n")
                    }
                })
                .collect();
            let file = self.dir.path().join("script");
            fs::write(&file, script).unwrap();
            text.push_str(&format!(
                "shift 3\nexec {shell} '{}' \"$@\"\n",
                file.display()
            ));
        } else {
            text.push_str(&format!("exec {shell} \"$@\"\n"));
        }
        fs::write(&wrapper, text).unwrap();
        vec!["/bin/sh".to_owned(), wrapper.display().to_string()]
    }

    fn couriers(&self) -> Couriers {
        let mut settings =
            CourierSettings::new(Utf8PathBuf::from_path_buf(self.dir.path().into()).unwrap());
        settings.local_shell = self.local_shell();
        settings.timeout = self.timeout;
        settings.ask_waits = Duration::from_secs(10);
        if let Some((_, _, home)) = &self.ssh {
            settings.home = Some(home.clone());
        }
        Couriers::new(settings)
    }

    pub fn target(&self) -> Target {
        Target {
            mesh: MeshName::new("prod").unwrap(),
            node: Arc::new(Node {
                name: NodeName::new("atlas").unwrap(),
                address: self.ssh.as_ref().map(|(address, ..)| address.clone()),
                port: self.ssh.as_ref().map(|(_, port, _)| *port),
                user: self.ssh.as_ref().map(|_| self.user.clone()),
                identity: None,
                root: AbsolutePath::new(self.root.to_str().unwrap()).unwrap(),
                become_root: self.become_root,
                courier: match self.ssh {
                    Some(_) if self.openssh => CourierKind::Openssh,
                    Some(_) => CourierKind::Ssh,
                    None => CourierKind::Local,
                },
                tags: BTreeSet::new(),
                hold: None,
                pins: BTreeSet::new(),
                site: None,
                location: Default::default(),
                gateway: None,
            }),
        }
    }

    pub fn parcel(&mut self, bundle: Bundle) -> Parcel {
        self.pushes += 1;
        Parcel {
            awaited: false,
            secrets: Secrets::default(),
            target: self.target(),
            bundle: Arc::new(bundle),
            token: token(self.pushes),
            replaces: self.held.into_iter().collect(),
            take_over: false,
            base: self.base.clone(),
            sender: format!("maria@laptop push {}", self.pushes),
        }
    }

    pub fn deliver(&mut self, parcel: Parcel) -> Outcome {
        let mut outcome = None;
        let mut couriers = self.couriers();
        self.progress.clear();
        let progress = &mut self.progress;
        couriers.send(vec![parcel], &mut |_, heard| match heard {
            Heard::Progress(step) => progress.push(step),
            Heard::Lull => {}
            Heard::Settled(end) => assert!(outcome.replace(end).is_none()),
            Heard::Answered(_) => panic!("an answer to a send"),
        });
        outcome.unwrap()
    }

    /// Sends, and remembers what a controller would.
    pub fn send(&mut self, services: &[Service]) -> Outcome {
        let parcel = self.parcel(bundle(services));
        let (token, manifest) = (parcel.token, Arc::clone(&parcel.bundle.manifest));
        let outcome = self.deliver(parcel);
        match &outcome {
            Outcome::Applied(_) => {
                self.held = Some(token);
                self.base = Some(manifest);
            }
            Outcome::RolledBack { .. } => self.held = Some(token),
            _ => {}
        }
        outcome
    }

    pub fn applied(&mut self, services: &[Service]) -> Applied {
        match self.send(services) {
            Outcome::Applied(applied) => applied,
            other => panic!("{other:?}"),
        }
    }

    pub fn refused(&mut self, services: &[Service]) -> Failure {
        match self.send(services) {
            Outcome::Refused(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    pub fn rolled_back(&mut self, services: &[Service]) -> (Failure, Vec<String>) {
        match self.send(services) {
            Outcome::RolledBack { failure, lists } => {
                (failure, lists.iter().map(ToString::to_string).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn answer(&mut self) -> Answer {
        let question = Question {
            target: self.target(),
            manner: Manner::Settle,
            secrets: Secrets::default(),
        };
        let mut answer = None;
        let mut couriers = self.couriers();
        couriers.ask(vec![question], &mut |_, heard| match heard {
            Heard::Progress(_) | Heard::Lull => {}
            Heard::Answered(end) => assert!(answer.replace(end).is_none()),
            Heard::Settled(_) => panic!("an outcome of a question"),
        });
        answer.unwrap()
    }

    pub fn ask(&mut self) -> Holding {
        match self.answer() {
            Answer::Holds(holding) => holding,
            other => panic!("{other:?}"),
        }
    }

    pub fn mode(&self, path: impl AsRef<Path>) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    /// The releases there are, rubbish included.
    pub fn releases(&self) -> usize {
        fs::read_dir(self.root.join("releases")).unwrap().count()
    }
}

/// What a busybox machine may lack, and which of our scripts can do without.
const OF_ROOT: &[&str] = &["su", "sudo"];

const TOOLS: &[&str] = &[
    "sh",
    "tar",
    "sha256sum",
    "mv",
    "ln",
    "rm",
    "rmdir",
    "cp",
    "cat",
    "head",
    "tail",
    "mkdir",
    "chmod",
    "chown",
    "stat",
    "timeout",
    "mkfifo",
    "dd",
    "date",
    "wc",
    "readlink",
    "sleep",
    "true",
    "false",
    "env",
    "yes",
    "tr",
    "cut",
    "id",
    "su",
    "setpriv",
    "chroot",
    "sudo",
];

pub fn failure(outcome: &Outcome) -> (FailedStep, Option<String>, String) {
    match outcome {
        Outcome::NotReached(f) | Outcome::Refused(f) | Outcome::Uncertain(f) => (
            f.step,
            f.service.as_ref().map(ToString::to_string),
            f.cause.clone(),
        ),
        Outcome::RolledBack { failure: f, .. } => (
            f.step,
            f.service.as_ref().map(ToString::to_string),
            f.cause.clone(),
        ),
        other => panic!("{other:?}"),
    }
}

/// Runs every named test under dash, bash and busybox.
#[macro_export]
macro_rules! under_every_shell {
    ($($test:ident),* $(,)?) => {
        mod dash { $(#[test] fn $test() { super::$test($crate::delivery_bed::Shell::Dash); })* }
        mod bash { $(#[test] fn $test() { super::$test($crate::delivery_bed::Shell::Bash); })* }
        mod busybox { $(#[test] fn $test() { super::$test($crate::delivery_bed::Shell::Busybox); })* }
    };
}
