//! A bench for tests of the program: a folder of its own with a home, a mesh of local machines, and no variable of
//! whoever runs the tests. What is printed is normalised, so that it can be a snapshot.
#![allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too, and no test uses all of them"
)]

pub mod schema;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with a mesh in it.
pub struct Bench {
    dir: tempfile::TempDir,
    /// The folder of the declaration.
    pub mesh: PathBuf,
}

/// What the program did.
pub struct Seen {
    typed: String,
    output: Output,
    dir: String,
}

impl Bench {
    /// A bench with an identity and these files beside `mesh.toml`.
    pub fn new(mesh_toml: &str) -> Self {
        let bench = Self::bare();
        bench.file("mesh.toml", mesh_toml);
        let home = tempfile::tempdir().unwrap();
        let made = bench.grid(&["init", home.path().to_str().unwrap(), "--name", "any"]);
        assert_eq!(made.code(), 0, "{}", made.all());
        bench
    }

    /// A bench without an identity and without a mesh.
    pub fn bare() -> Self {
        // Where lines are broken depends on how long its name is.
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let mesh = dir.path().join("mesh");
        for folder in ["mesh", "home", "config", "tmp"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir, mesh }
    }

    /// A path below the declaration's folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.mesh.join(path)
    }

    /// Writes a file below the declaration's folder.
    pub fn file(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Reads a file below the declaration's folder.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    /// Replaces a text of `mesh.toml`, which must be there.
    pub fn edit(&self, old: &str, new: &str) {
        let text = self.read("mesh.toml");
        assert!(text.contains(old), "{old:?} is not in mesh.toml");
        self.file("mesh.toml", &text.replacen(old, new, 1));
    }

    /// The program, in the declaration's folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grid"));
        let inherited = |name: &str| std::env::var_os(name).unwrap_or_default();
        command
            .args(arguments)
            .current_dir(&self.mesh)
            .env_clear()
            .env("PATH", inherited("PATH"))
            .env("HOME", self.dir.path().join("home"))
            .env("XDG_CONFIG_HOME", self.dir.path().join("config"))
            .env("TMPDIR", self.dir.path().join("tmp"))
            .env("USER", "maria")
            .env("LC_ALL", "C.UTF-8")
            // No repository above the temporary folder is asked.
            .env("GIT_CEILING_DIRECTORIES", self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Another program, which is to run this one: where and in what environment this one is run.
    pub fn around(&self, program: &str) -> Command {
        let grid = self.command(&[]);
        let mut outer = Command::new(program);
        outer
            .env_clear()
            .envs(
                grid.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(&self.mesh)
            .stdin(Stdio::null());
        outer
    }

    /// Copies a file or folder below the declaration's, in the place of what is there.
    pub fn copy(&self, from: &str, to: &str) {
        let _ = std::fs::remove_dir_all(self.path(to));
        let mut copied = Command::new("cp");
        copied.arg("-a").args([self.path(from), self.path(to)]);
        assert!(copied.status().unwrap().success());
    }

    /// Runs the program.
    pub fn grid(&self, arguments: &[&str]) -> Seen {
        self.run(self.command(arguments), arguments)
    }

    /// What somebody sees on a terminal that is so many columns wide: both streams as they come, without colour and
    /// without bars. `user` is `$USER`.
    pub fn on_a_terminal(&self, columns: u16, user: &str, arguments: &[&str]) -> String {
        let quoted: Vec<String> = std::iter::once(env!("CARGO_BIN_EXE_grid"))
            .chain(arguments.iter().copied())
            .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
            .collect();
        let typed = format!("stty cols {columns} rows 50; exec {}", quoted.join(" "));
        let mut terminal = self.around("script");
        terminal
            .args(["-qec", &typed, "/dev/null"])
            .env("USER", user)
            .env("SHELL", "/bin/sh")
            .env("TERM", "dumb");
        let output = terminal.output().expect("`script` of util-linux");
        let text = String::from_utf8(output.stdout).unwrap();
        let path = self.dir.path().to_str().unwrap();
        text.replace("\r\n", "\n").replace(path, "/home/maria/ops")
    }

    /// Runs the program with a variable.
    pub fn grid_with(&self, variable: (&str, &str), arguments: &[&str]) -> Seen {
        let mut command = self.command(arguments);
        command.env(variable.0, variable.1);
        self.run(command, arguments)
    }

    fn run(&self, mut command: Command, arguments: &[&str]) -> Seen {
        self.seen(command.output().unwrap(), arguments)
    }

    /// The program under a clock that is this far off, like "+300d".
    pub fn grid_at(&self, off: &str, arguments: &[&str]) -> Seen {
        let mut faked = self.around("faketime");
        faked
            .args(["-f", off, env!("CARGO_BIN_EXE_grid")])
            .args(arguments);
        let output = faked.output().expect("faketime is installed by tests/run");
        self.seen(output, arguments)
    }

    /// What a program that was started by the test did.
    pub fn seen(&self, output: Output, arguments: &[&str]) -> Seen {
        Seen {
            typed: arguments.join(" "),
            output,
            dir: self.dir.path().to_str().unwrap().to_owned(),
        }
    }

    /// Every file below the bench, with its content.
    pub fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    walk(&entry.path(), found);
                } else if kind.is_file() {
                    found.push((
                        entry.path(),
                        std::fs::read(entry.path()).unwrap_or_default(),
                    ));
                }
            }
        }
        let mut found = Vec::new();
        walk(self.dir.path(), &mut found);
        found
    }
}

impl Seen {
    pub fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }

    /// Fails the test unless it ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{}", self.all());
        self
    }

    pub fn stdout(&self) -> String {
        self.normal(&self.output.stdout)
    }

    pub fn stderr(&self) -> String {
        self.normal(&self.output.stderr)
    }

    /// Standard output as it was.
    pub fn raw(&self) -> &[u8] {
        &self.output.stdout
    }

    /// Both streams as they were.
    pub fn bytes(&self) -> Vec<u8> {
        [self.output.stdout.clone(), self.output.stderr.clone()].concat()
    }

    /// What was typed and what was seen: stdout, then stderr behind `! `, then an exit code that is not 0.
    pub fn all(&self) -> String {
        let mut text = format!(
            "$ grid {}\n{}",
            self.normal(self.typed.as_bytes()),
            self.stdout()
        );
        for line in self.stderr().lines() {
            text.push_str(&format!("! {line}\n"));
        }
        if self.code() != 0 {
            text.push_str(&format!("[exit {}]\n", self.code()));
        }
        text
    }

    fn normal(&self, bytes: &[u8]) -> String {
        normal(std::str::from_utf8(bytes).unwrap(), &self.dir)
    }
}

/// A text without what differs from run to run.
pub fn normal(text: &str, dir: &str) -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let text = text
        .replace(dir, "[DIR]")
        .replace(&format!("maria@{host}"), "maria@lap3")
        .replace(
            &format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            "version = \"[VERSION]\"",
        );
    let mut normal = String::new();
    for line in text.split_inclusive('\n') {
        normal.push_str(&words(line));
    }
    in_order(&normal)
}

/// Machines of one round settle in any order: their lines, each with its indented details, in order of name.
pub fn in_order(text: &str) -> String {
    let mut blocks: Vec<(Option<&str>, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let round = line
            .starts_with("round ")
            .then(|| line.split("  ").next().unwrap());
        match blocks.last_mut() {
            Some((Some(_), block)) if line.starts_with("         ") => block.push_str(line),
            _ => blocks.push((round, line.to_owned())),
        }
    }
    blocks
        .chunk_by_mut(|(a, _), (b, _)| a.is_some() && a == b)
        .for_each(<[_]>::sort);
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// Replaces what is a digest, a time or a number of a process by its name.
fn words(line: &str) -> String {
    let mut text = String::new();
    let mut word = String::new();
    let mut before = String::new();
    let mut end = |word: &mut String, text: &mut String| {
        if word.is_empty() {
            return;
        }
        text.push_str(&name(word, &before));
        before = std::mem::take(word);
    };
    for c in line.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_') {
            word.push(c);
        } else {
            end(&mut word, &mut text);
            text.push(c);
        }
    }
    end(&mut word, &mut text);
    text
}

fn name(word: &str, before: &str) -> String {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let bare = word.trim_end_matches([':', '.']);
    let rest = &word[bare.len()..];
    let hex = bare.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_time = bare.len() >= 20 && bare.starts_with("20") && bare.ends_with('Z');
    let named = match bare.len() {
        64 if hex => "[DIGEST]",
        16 if hex => "[STORE]",
        12 if hex => "[SHORT]",
        31.. if bare.starts_with("age1") => "[KEY]",
        _ if before == "sent" && bare.contains('.') && digits(&bare.replace('.', "")) => "[TIME]",
        _ if matches!(before, "process" | "kill") && digits(bare) => "[PID]",
        _ if is_time && bare.contains('T') => "[WHEN]",
        _ => bare,
    };
    format!("{named}{rest}")
}

/// What a command printed as JSON, one value a line.
pub fn events(seen: &Seen) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(seen.raw()).unwrap();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    events.collect()
}

/// What was typed and what was seen, one after the other.
pub fn told(seen: &[Seen]) -> String {
    seen.iter().map(Seen::all).collect()
}

/// Three local machines: a provider of accounts kept in a file, a consumer of it, and a third.
/// `billing` is declared, and on no machine.
pub fn three_machines() -> Bench {
    let bench = Bench::new(include_str!("../../examples/try/mesh.toml"));
    for (name, content) in [
        (
            "accounts.list.j2",
            include_str!("../../examples/try/accounts.list.j2"),
        ),
        (
            "accounts.sh",
            include_str!("../../examples/try/accounts.sh"),
        ),
        ("login.sh", include_str!("../../examples/try/login.sh")),
        ("notice.txt", include_str!("../../examples/try/notice.txt")),
    ] {
        bench.file(name, content);
    }
    bench
}

/// The same, with `billing` on borealis, and all of it pushed.
pub fn all_current() -> Bench {
    let bench = with_billing();
    bench.grid(&["push", "--all"]).exits(0);
    bench
}

/// The same, with `billing` declared to be on borealis.
pub fn with_billing() -> Bench {
    let bench = three_machines();
    bench.edit(
        "[services.billing]\n",
        "[services.billing]\nnode = \"borealis\"\n",
    );
    bench
}

/// A push of cygnus under way: it applies `notice` until [`go_on`].
pub fn a_push_that_applies(bench: &Bench) -> std::process::Child {
    bench.edit(
        "[services.notice]\n",
        "[services.notice]\napply = [\"sh\", \"-c\", \"touch ../../../../../applying; while [ ! -e ../../../../../go ]; do sleep 0.05; done\"]\n",
    );
    let mut push = bench.command(&["push", "cygnus"]).spawn().unwrap();
    while !bench.path("machines/cygnus/applying").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(push.try_wait().unwrap().is_none(), "the push ended early");
    }
    push
}

/// Lets what [`a_push_that_applies`] began go on.
pub fn go_on(bench: &Bench) {
    bench.file("machines/cygnus/go", "");
}

/// Leaves cygnus uncertain: its push is killed while it applies.
pub fn kill_a_push_of_cygnus(bench: &Bench) {
    let mut push = a_push_that_applies(bench);
    push.kill().unwrap();
    push.wait().unwrap();
    go_on(bench);
}
