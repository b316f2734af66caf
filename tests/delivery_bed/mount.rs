//! File systems of a test's own: a small one, and one that nobody can write to. Needs root, as CI has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::sshd::runs;

/// A small file system in memory; gone with this.
pub struct Mount {
    pub at: PathBuf,
}

impl Mount {
    /// One of this many KiB at `at`, which is made.
    pub fn new(at: &Path, kib: usize) -> Self {
        fs::create_dir(at).unwrap();
        let size = format!("size={kib}k");
        let path = at.to_str().unwrap();
        runs("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", path]);
        Self { at: at.to_owned() }
    }

    /// From now on nobody can write to it, root neither. The last commands of a send may still have a file open there for
    /// a moment: the system refuses until they have ended.
    pub fn read_only(&self) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let mut mount = Command::new("mount");
            let output = mount.args(["-o", "remount,ro"]).arg(&self.at).output();
            let output = output.unwrap();
            if output.status.success() {
                return;
            }
            assert!(Instant::now() < end, "{output:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// It can be written to again.
    pub fn writable(&self) {
        runs("mount", &["-o", "remount,rw", self.at.to_str().unwrap()]);
    }

    /// Fills it up but for so many KiB; what fills it is removed by [`Mount::empty`].
    pub fn fill(&self, leaving_kib: usize) {
        let filler = self.at.join("filler");
        let line = format!(
            "cat /dev/zero >\"$1\" 2>/dev/null; truncate -c -s \"$(($(stat -c %s \"$1\") - {leaving_kib} * 1024))\" \"$1\""
        );
        runs("sh", &["-c", &line, "sh", filler.to_str().unwrap()]);
    }

    /// Takes away what fills it.
    pub fn empty(&self) {
        fs::remove_file(self.at.join("filler")).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
