//! Names are completed from the declaration, in bash, zsh and fish as people run them (DESIGN.md, section 9).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::Bench;

/// How long a shell may take for one line, in seconds; it takes a tenth of one.
const DEADLINE: &str = "120";

/// Two machines, a provider and its consumer; pushed once.
fn bench() -> Bench {
    let bench = Bench::new("[mesh]\nname = \"prod\"\n");
    bench.file(
        "mesh.toml",
        "[mesh]\nname = \"prod\"\n[defaults]\ncourier = \"local\"\n\
         [nodes.atlas]\nroot = \"/nonexistent/atlas\"\ntags = [\"eu\"]\n[nodes.borealis]\nroot = \"/nonexistent/borealis\"\n\
         [services.broker]\nprovides = { kind = \"rabbitmq\", host = \"10.0.0.1\" }\n\
         [services.billing]\nconsumes = [\"broker\"]\n",
    );
    // It reaches nothing and has no number 2.
    let _ = bench.grid(&["push", "--all"]);
    bench.file(
        "other/mesh.toml",
        "[mesh]\nname = \"other\"\n[nodes.cygnus]\n",
    );
    bench
}

/// What the shell makes of these keys: the arguments with which grid was run in the end, or all that is `wanted`.
fn typed(bench: &Bench, shell: &str, keys: &str, wanted: &[&str]) -> String {
    // A command of that name that says what it was told; the real one answers only where a shell asks.
    let real = env!("CARGO_BIN_EXE_grid");
    bench.file(
        "bin/grid",
        &format!("#!/bin/sh\n[ -z \"$GRID_COMPLETE\" ] || exec {real} \"$@\"\nprintf 'RAN'\nprintf '[%s]' \"$@\"\necho .\n"),
    );
    std::fs::set_permissions(bench.path("bin/grid"), PermissionsExt::from_mode(0o755)).unwrap();
    let lines = bench.grid(&["completions", shell]).exits(0).stdout();
    let here = bench.mesh.to_str().unwrap();
    let command: Vec<String> = match shell {
        "bash" => {
            bench.file(
                "shell/bashrc",
                &format!("PS1='READY> '\nbind 'set bell-style none'\n{lines}"),
            );
            [
                "bash",
                "--noprofile",
                "--rcfile",
                &format!("{here}/shell/bashrc"),
                "-i",
            ]
            .map(str::to_owned)
            .to_vec()
        }
        "zsh" => {
            bench.file("shell/functions/_grid", &lines);
            bench.file(
                "shell/.zshrc",
                &format!("fpath=({here}/shell/functions $fpath)\nautoload -U compinit\ncompinit -u -D\nPS1='READY> '\n"),
            );
            ["zsh", "-d", "-i"].map(str::to_owned).to_vec()
        }
        _ => {
            bench.file("shell/fish/completions/grid.fish", &lines);
            bench.file(
                "shell/fish/config.fish",
                "set -g fish_greeting\nfunction fish_prompt\n    echo 'READY> '\nend\n",
            );
            ["fish", "-i"].map(str::to_owned).to_vec()
        }
    };
    let grid = bench.command(&[]);
    let path = format!("{here}/bin:{}", std::env::var("PATH").unwrap());
    let mut terminal = Command::new("python3");
    terminal
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/complete.py"))
        .args([DEADLINE, keys])
        .args(wanted)
        .arg("--")
        .args(command)
        .env_clear()
        .envs(
            grid.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .envs([("PATH", path.as_str()), ("TERM", "xterm"), ("HISTFILE", "")])
        .env("ZDOTDIR", bench.path("shell"))
        .env("XDG_CONFIG_HOME", bench.path("shell"))
        .env("XDG_DATA_HOME", bench.path("shell"))
        .current_dir(&bench.mesh);
    let output = terminal.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shell}: {keys:?}: {shown}");
    shown
}

/// A line that ends in one key press, and what grid is then told.
const LINES: [(&str, &str); 13] = [
    (r"grid pus\tatl\t", "[push][atlas]"),
    (r"grid push @\t", "[push][@eu]"),
    (r"grid push --beh\t", "[push][--behind]"),
    (r"grid assign billing bor\t", "[assign][billing][borealis]"),
    (r"grid unassign bi\t", "[unassign][billing]"),
    (r"grid revoke broker/\t", "[revoke][broker/billing]"),
    (r"grid rotate bro\t", "[rotate][broker/billing]"),
    (r"grid rotate --site bor\t", "[rotate][--site][borealis]"),
    (r"grid rotate --site=bor\t", "[rotate][--site=borealis]"),
    (r"grid signals ge\tatl\t", "[signals][get][atlas]"),
    (r"grid history \t", "[history][1]"),
    (
        r"grid --mesh other push \t",
        "[--mesh][other][push][cygnus]",
    ),
    (
        r"grid --mesh=other push c\t",
        "[--mesh=other][push][cygnus]",
    ),
];

fn completes(shell: &str) {
    let bench = bench();
    for (keys, told) in LINES {
        let told = format!("RAN{told}.");
        let shown = typed(&bench, shell, &format!(r"{keys}\r"), &["RAN", ".\r\n"]);
        assert!(
            shown.contains(&told),
            "{shell}: {keys:?} is not {told}: {shown}"
        );
    }
    // Several: all are shown, and no option among them.
    let shown = typed(
        &bench,
        shell,
        r"grid push \t\t",
        &["atlas", "borealis", "@eu"],
    );
    assert!(!shown.contains("--behind"), "{shell}: {shown}");
    // Where nothing fits, nothing is said.
    let shown = typed(&bench, shell, r"grid push x\t\r", &["RAN", ".\r\n"]);
    assert!(shown.contains("RAN[push][x]."), "{shell}: {shown}");
    std::fs::remove_file(bench.path("mesh.toml")).unwrap();
    let shown = typed(&bench, shell, r"grid push a\t\r", &["RAN", ".\r\n"]);
    assert!(shown.contains("RAN[push][a]."), "{shell}: {shown}");
    assert!(!shown.contains("error"), "{shell}: {shown}");
}

#[test]
fn bash_completes_names_from_the_declaration() {
    completes("bash");
}

#[test]
fn zsh_completes_names_from_the_declaration() {
    completes("zsh");
}

#[test]
fn fish_completes_names_from_the_declaration() {
    completes("fish");
}

/// What the program answers a shell.
fn answers(bench: &Bench, words: &[&str]) -> String {
    let mut command = bench.command(&["--", "grid"]);
    command.args(words).env("GRID_COMPLETE", "fish");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_goes_wrong_is_not_told_to_somebody_who_types() {
    let bench = bench();
    assert_eq!(answers(&bench, &["push", "a"]), "atlas\t@eu\n");
    // Half written, in another folder, for another grid, and not there at all.
    let whole = bench.read("mesh.toml");
    bench.file("mesh.toml", &format!("{whole}[nodes.eri"));
    assert_eq!(answers(&bench, &["push", "a"]), "atlas\t@eu\n");
    bench.file(
        "mesh.toml",
        &whole.replace("name = \"prod\"", "name = \"prod\"\ngrid = \">=9\""),
    );
    assert_eq!(answers(&bench, &["push", "a"]), "atlas\t@eu\n");
    assert_eq!(answers(&bench, &["--mesh", "nowhere", "push", "a"]), "");
    std::fs::write(bench.path("mesh.toml"), b"\xff\xfe\0[[[").unwrap();
    assert_eq!(answers(&bench, &["push", "a"]), "");
    // No words at all, and more than a command takes.
    let mut bare = bench.command(&[]);
    let output = bare.env("GRID_COMPLETE", "bash").output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            output.stdout.len(),
            output.stderr.len()
        ),
        (Some(0), 0, 0)
    );
    let _ = answers(&bench, &["check", "a", "b", ""]);
    // A damaged store.
    std::fs::write(bench.path(".grid/witness"), "torn").unwrap();
    assert_eq!(answers(&bench, &["history", "1"]), "");
}

#[test]
fn completion_takes_no_lock_writes_nothing_and_contacts_nobody() {
    let bench = bench();
    let mut traced = Command::new("strace");
    let grid = bench.command(&[]);
    traced
        .args(["-f", "-qq", "-e", "signal=none", "-e"])
        .arg("trace=network,flock,fcntl,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,chmod,fchmod,execve,fork,vfork")
        .arg("-o")
        .arg(bench.path("trace"))
        .arg(env!("CARGO_BIN_EXE_grid"))
        .env_clear()
        .envs(grid.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("GRID_COMPLETE", "fish")
        .current_dir(&bench.mesh);
    for words in [["push", ""], ["revoke", ""], ["history", ""]] {
        let mut command = Command::new(traced.get_program());
        command
            .args(traced.get_args())
            .args(["--", "grid"])
            .args(words)
            .env_clear()
            .envs(
                traced
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(&bench.mesh);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(!output.stdout.is_empty(), "{words:?}");
        let trace = bench.read("trace");
        let calls: Vec<&str> = trace
            .lines()
            .filter(|call| !call.contains("O_RDONLY"))
            .collect();
        let calls: Vec<&str> = calls
            .into_iter()
            .filter(|call| !call.contains("execve(") && !call.contains("F_GETFD"))
            .collect();
        assert!(
            trace.contains("mesh.toml") || trace.contains("witness"),
            "{trace}"
        );
        assert_eq!(calls, Vec::<&str>::new(), "{words:?}");
        assert_eq!(trace.matches("execve(").count(), 1, "{trace}");
    }
}
