//! Clients: `tests/beds/amqp.py`, which knows nothing but a binding's folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::broker::Broker;

/// No wait is longer.
pub const LONGEST: Duration = Duration::from_secs(60);

/// `tests/beds/amqp.py`.
pub fn amqp(arguments: &[&str], binding: &Path) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["-c", ". tests/beds/client.sh && amqp \"$@\"", "bash"])
        .args(arguments)
        .arg(binding);
    command
}

/// A client's connection, until it is dropped.
pub struct Held {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    pub lines: Receiver<String>,
}

impl Held {
    pub fn open(binding: &Path) -> Self {
        let mut child = amqp(&["hold"], binding)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        let held = Self {
            stdin: child.stdin.take(),
            child,
            lines,
        };
        assert_eq!(held.next(), "open");
        held
    }

    pub fn next(&self) -> String {
        self.lines.recv_timeout(LONGEST).expect("a line in time")
    }

    #[track_caller]
    pub fn lives(&mut self) {
        writeln!(self.stdin.as_mut().unwrap(), "still here").unwrap();
        assert_eq!(self.next(), "still here");
    }

    #[track_caller]
    pub fn is_cut(&self) {
        let line = self.next();
        assert!(
            line.starts_with("cut: ConnectionClosedByBroker (320") && line.contains("is deleted"),
            "{line}"
        );
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// Somebody who has nothing to do with any mesh.
pub fn hold_as_guest(broker: &Broker) -> Held {
    let folder = broker.folder.join("binding-guest");
    let _ = fs::create_dir(&folder);
    let port = broker.port.to_string();
    for (name, value) in [
        ("type", "rabbitmq"),
        ("host", "127.0.0.1"),
        ("port", &port),
        ("username", "guest"),
        ("password", "guest"),
        ("virtual-host", "/"),
    ] {
        fs::write(folder.join(name), value).unwrap();
    }
    Held::open(&folder)
}
