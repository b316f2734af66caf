//! Real servers and real logins: an sshd of the test's own, and users that are made for it. Needs root, as CI has.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Bed, Shell};

/// A running sshd; stopped when it goes.
pub struct Sshd {
    pub dir: tempfile::TempDir,
    pub port: u16,
}

fn bed_script(line: &str) -> bool {
    let bed = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/beds/sshd.sh");
    Command::new("sh")
        .args(["-c", &format!(". '{bed}'; {line}")])
        .status()
        .unwrap()
        .success()
}

impl Sshd {
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..5 {
            let port = free_port();
            if bed_script(&format!("sshd_start '{}' {port}", dir.path().display())) {
                return Self { dir, port };
            }
        }
        panic!(
            "sshd does not start: {}",
            fs::read_to_string(dir.path().join("log")).unwrap_or_default()
        );
    }

    /// The machine is made anew, and shows another key at the same address.
    pub fn set_up_anew(&self) {
        let dir = self.dir.path();
        let stop = format!("sshd_stop '{}'", dir.display());
        assert!(bed_script(&stop));
        for key in ["host_key", "host_key.pub"] {
            fs::remove_file(dir.join(key)).unwrap();
        }
        let start = format!("sshd_start '{}' {}", dir.display(), self.port);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        // The old one may hold the port a moment longer.
        while !bed_script(&start) {
            assert!(std::time::Instant::now() < end, "sshd does not start again");
        }
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn known_hosts(&self) -> PathBuf {
        self.home().join(".ssh/known_hosts")
    }

    pub fn bed(&self, address: &str) -> Bed {
        let mut bed = Bed::new(Shell::Dash);
        bed.ssh = Some((address.to_owned(), self.port, self.home()));
        bed
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        bed_script(&format!("sshd_stop '{}'", self.dir.path().display()));
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

impl Sshd {
    /// What the system's `ssh` needs to be told, since it looks for the home of the login and not at `HOME`.
    pub fn config(&self, more: &str) {
        let ssh = self.home().join(".ssh");
        let text = format!(
            "{more}\nHost *\n IdentityFile {0}/id_ed25519\n UserKnownHostsFile {0}/known_hosts\n Port {1}\n",
            ssh.display(),
            self.port
        );
        fs::write(ssh.join("config"), text).unwrap();
    }

    pub fn authorize(&self, options: &str) {
        let key = fs::read_to_string(self.home().join(".ssh/id_ed25519.pub")).unwrap();
        fs::write(
            self.dir.path().join("authorized_keys"),
            format!("{options}{key}"),
        )
        .unwrap();
    }

    /// How often somebody logged in.
    pub fn logins(&self) -> usize {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.matches("Accepted publickey").count()
    }
}

/// Runs a program that must end well.
#[track_caller]
pub fn runs(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A user of this system, made for a test and gone with it. No password, so only a key lets it in.
pub struct Login {
    pub name: String,
    pub home: PathBuf,
}

impl Login {
    /// A login below `folder`, which everybody must be able to enter.
    pub fn new(folder: &Path, shell: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("grid{}x{number}", std::process::id());
        let home = folder.join(&name);
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        runs(
            "/usr/sbin/useradd",
            &[
                "-m",
                "-k",
                "/nowhere",
                "-p",
                "*",
                "-d",
                home.to_str().unwrap(),
                "-s",
                shell,
                &name,
            ],
        );
        Self { name, home }
    }

    /// Writes a file of the login's home.
    pub fn file(&self, path: &str, content: &str) {
        let path = self.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Lets it use sudo, by this line after its name in sudoers.
    pub fn sudoer(&self, rule: &str) {
        let file = self.sudoers();
        fs::write(&file, format!("{} {rule}\n", self.name)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
        runs("/usr/sbin/visudo", &["-cqf", file.to_str().unwrap()]);
    }

    fn sudoers(&self) -> PathBuf {
        Path::new("/etc/sudoers.d").join(&self.name)
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.sudoers());
        let _ = Command::new("/usr/sbin/userdel")
            .args(["-f", &self.name])
            .output();
    }
}
