//! The broker: started by `tests/beds/rabbitmq.sh`, in a folder and with ports of its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use grid::kinds::Provider;

/// The busybox applets that stand for what the scripts call.
pub const APPLETS: [&str; 10] = [
    "sh", "cat", "sed", "sort", "tr", "uniq", "wc", "base64", "sleep", "date",
];

/// A broker, until it is dropped. A shell holds it, which stops it when its standard input ends: then
/// nothing is left behind, even where the test is killed.
pub struct Broker {
    pub folder: PathBuf,
    pub port: u16,
    pub shell: Child,
    pub stdin: Option<ChildStdin>,
    pub _temporary: tempfile::TempDir,
}

impl Broker {
    pub fn start() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("broker");
        let port = (0..200)
            .map(|n| 27_000 + n * 20)
            .find(|base| (0..20).all(|n| TcpListener::bind(("127.0.0.1", base + n)).is_ok()))
            .expect("twenty free ports in a row");
        let mut shell = Command::new("bash")
            .arg("-c")
            .arg(
                ". tests/beds/rabbitmq.sh && rabbitmq_start \"$1\" \"$2\" && echo up
                 read -r _ || rabbitmq_stop \"$1\"",
            )
            .args(["bash", folder.to_str().unwrap(), &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = shell.stdin.take();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "up\n", "the broker did not start");
        // Notes each call's arguments, to be searched for secrets.
        let noting = folder.join("noting");
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{0}/arguments'\nexec '{0}/rabbitmqctl' \"$@\"\n",
            folder.display()
        );
        fs::write(&noting, text).unwrap();
        Command::new("chmod")
            .arg("755")
            .arg(&noting)
            .status()
            .unwrap();
        let applets = folder.join("applets");
        fs::create_dir(&applets).unwrap();
        for applet in APPLETS {
            std::os::unix::fs::symlink("/bin/busybox", applets.join(applet)).unwrap();
        }
        Self {
            folder,
            port,
            shell,
            stdin,
            _temporary: temporary,
        }
    }

    /// By hand, as the broker's own operator would.
    pub fn by_hand(&self, arguments: &[&str]) -> String {
        let output = Command::new(self.folder.join("rabbitmqctl"))
            .arg("-q")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that the broker holds, as it says it.
    pub fn definitions(&self) -> String {
        self.by_hand(&["export_definitions", "-"])
    }

    pub fn provider(&self) -> Provider {
        let settings = serde_json::json!({ "rabbitmqctl": [self.folder.join("noting")] });
        Provider::read("rabbitmq", settings).unwrap().unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.shell.wait();
    }
}
