//! What the benchmarks stand on: measured children, a real sshd on every address of 127.0.0.0/8, and a folder of
//! an operator's own.
//!
//! Nothing here fails on a clock: what is printed are figures of one run on one machine, and their ratios.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark may fall, prints, and counts in floating point; no benchmark uses all of this"
)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// What a program used, its children included.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    /// From its start to its end, in ms.
    pub wall: f64,
    /// Processor time of its own and of all its children, in ms.
    pub cpu: f64,
    /// The most memory that it, or one of its children, had at a time, in MiB.
    pub peak: f64,
    /// Its exit code.
    pub code: i32,
}

/// The first argument that makes a benchmark run another program and say what that used: only a process without other
/// children can tell.
const MEASURE: &str = "--measure";

/// If this process was started to measure: does so, and returns true. Every benchmark calls this first.
pub fn measured() -> bool {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_none_or(|first| first != MEASURE) {
        return false;
    }
    let began = Instant::now();
    let status = Command::new(&arguments[3])
        .args(&arguments[4..])
        .status()
        .unwrap();
    let wall = began.elapsed().as_secs_f64() * 1e3;
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let ms =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
    let cpu = ms(used.user_time()) + ms(used.system_time());
    let peak = used.max_rss() as f64 / 1024.0;
    let code = status.code().unwrap_or(-1);
    fs::write(&arguments[2], format!("{wall} {cpu} {peak} {code}")).unwrap();
    true
}

/// Runs `program`, which inherits the environment and folder of `like`, and says what it used.
pub fn measure(operator: &Operator, program: &Path, arguments: &[&str]) -> Used {
    let out = operator.dir.path().join("used");
    let log = fs::File::create(operator.dir.path().join("out")).unwrap();
    let status = operator
        .command(&std::env::current_exe().unwrap())
        .arg(MEASURE)
        .arg(&out)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .status()
        .unwrap();
    assert!(status.success());
    let text = fs::read_to_string(out).unwrap();
    let n: Vec<f64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
    Used {
        wall: n[0],
        cpu: n[1],
        peak: n[2],
        code: n[3] as i32,
    }
}

/// The middle one by `of`.
pub fn middle(mut all: Vec<Used>, of: fn(&Used) -> f64) -> Used {
    all.sort_by(|a, b| of(a).total_cmp(&of(b)));
    all[all.len() / 2]
}

/// The binary that is measured.
pub fn grid() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_grid"))
}

/// An operator with a home, an identity and a mesh; nothing of whoever runs the benchmark.
pub struct Operator {
    pub dir: tempfile::TempDir,
    pub home: PathBuf,
    pub mesh: PathBuf,
}

impl Operator {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (home, mesh) = (dir.path().join("home"), dir.path().join("mesh"));
        fs::create_dir_all(&home).unwrap();
        let operator = Self { home, mesh, dir };
        let mesh = operator.mesh.to_str().unwrap();
        let made = operator
            .command(grid())
            .current_dir(operator.dir.path())
            .args(["init", mesh, "--name", "bench"])
            .output();
        let made = made.unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        operator
    }

    /// A program in the folder of the mesh, with this operator's environment.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("USER", "root")
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CEILING_DIRECTORIES", self.dir.path());
        if self.mesh.exists() {
            command.current_dir(&self.mesh);
        }
        command
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.mesh.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// What the last measured program printed.
    pub fn printed(&self) -> String {
        fs::read_to_string(self.dir.path().join("out")).unwrap_or_default()
    }

    /// Measures grid; it must end with 0.
    pub fn grid(&self, arguments: &[&str]) -> Used {
        let used = measure(self, grid(), arguments);
        assert_eq!(used.code, 0, "grid {arguments:?}: {}", self.printed());
        used
    }
}

/// One sshd that answers on all of 127.0.0.0/8, as root; stopped when it goes.
pub struct Sshd {
    pub dir: tempfile::TempDir,
    pub port: u16,
}

impl Sshd {
    /// Starts it, and makes `operator` know it under `addresses` and able to log in.
    pub fn start(operator: &Operator, addresses: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..5 {
            let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = socket.local_addr().unwrap().port();
            drop(socket);
            if bed(&format!("sshd_start '{}' {port}", dir.path().display())) {
                let sshd = Self { dir, port };
                sshd.introduce(operator, addresses);
                return sshd;
            }
        }
        panic!("sshd does not start: it needs root, openssh-server and ssh-keygen");
    }

    fn introduce(&self, operator: &Operator, addresses: &[String]) {
        let ssh = operator.home.join(".ssh");
        fs::create_dir_all(&ssh).unwrap();
        let from = self.dir.path().join("home/.ssh");
        for file in ["id_ed25519", "id_ed25519.pub"] {
            fs::copy(from.join(file), ssh.join(file)).unwrap();
        }
        let key = fs::read_to_string(self.dir.path().join("host_key.pub")).unwrap();
        let key: Vec<&str> = key.split_whitespace().take(2).collect();
        let known: String = addresses
            .iter()
            .map(|address| format!("[{address}]:{} {}\n", self.port, key.join(" ")))
            .collect();
        fs::write(ssh.join("known_hosts"), known).unwrap();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        bed(&format!("sshd_stop '{}'", self.dir.path().display()));
    }
}

fn bed(line: &str) -> bool {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/beds/sshd.sh");
    let status = Command::new("sh")
        .args(["-c", &format!(". '{script}'; {line}")])
        .status();
    status.is_ok_and(|status| status.success())
}

/// The addresses of so many machines.
pub fn addresses(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| format!("127.0.{}.{}", 1 + n / 200, 1 + n % 200))
        .collect()
}

/// Until when a benchmark may begin a further repetition.
pub fn until(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

/// The machine's load, which the figures depend on.
pub fn conditions() {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores, load {load}");
}
