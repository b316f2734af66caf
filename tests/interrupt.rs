//! What keeps a push from going on: Ctrl-C, `--timeout`, `--max-failures`. On machines that are folders of this one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::Bench;

/// Two machines, one service on each; its apply says that it began, and waits until it may go on.
fn two_machines() -> Bench {
    let bench = Bench::new(
        r#"
[mesh]
name = "try"

[defaults]
courier = "local"

[nodes.atlas]
root = "machines/atlas"

[nodes.borealis]
root = "machines/borealis"

[services.slow]
node = "atlas"
apply = ["sh", "-c", "exec 3<>\"$GATE/began\"; echo >&3; read line <\"$GATE/go\""]

[services.quick]
node = "borealis"
"#,
    );
    let gate = bench.path("gate");
    std::fs::create_dir(&gate).unwrap();
    for pipe in ["began", "go"] {
        let made = Command::new("mkfifo")
            .arg(gate.join(pipe))
            .status()
            .unwrap();
        assert!(made.success());
    }
    bench.edit("$GATE/began", gate.join("began").to_str().unwrap());
    bench.edit("$GATE/go", gate.join("go").to_str().unwrap());
    bench
}

fn pushing(bench: &Bench, arguments: &[&str]) -> Child {
    let mut command = bench.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // As from a terminal: a signal is for grid alone here.
    command.process_group(0).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Blocks until the apply has begun.
fn began(bench: &Bench) {
    let pipe = std::fs::File::open(bench.path("gate/began")).unwrap();
    BufReader::new(pipe).read_line(&mut String::new()).unwrap();
}

fn let_go(bench: &Bench) {
    std::fs::write(bench.path("gate/go"), "\n").unwrap();
}

/// Waits for a line on standard error, and then for the end. What was read is part of the output.
fn end_after(mut child: Child, line: &str, then: impl FnOnce()) -> Output {
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains(line) {
        assert!(err.read_line(&mut text).unwrap() > 0, "{text}");
    }
    then();
    err.read_to_string(&mut text).unwrap();
    let mut output = child.wait_with_output().unwrap();
    output.stderr = text.into_bytes();
    output
}

#[test]
fn the_first_ctrl_c_finishes_the_sends_under_way_and_names_who_is_behind() {
    for name in ["INT", "TERM"] {
        let bench = two_machines();
        let arguments = ["push", "--all", "--parallel", "1"];
        let child = pushing(&bench, &arguments);
        began(&bench);
        signal(&child, name);
        let output = end_after(child, "interrupted", || let_go(&bench));
        let seen = bench.seen(output, &arguments).exits(130);
        insta::allow_duplicates! {
            insta::assert_snapshot!(seen.all(), @r#"
        $ grid push --all --parallel 1
        try  push 1  maria@lap3
        round 0  atlas     named    never sent                            sent [TIME] s, applied slow
        interrupted: 1 machine sent, 0 failed, 0 already current, 1 behind
        behind      borealis  never sent; kept back, since this was interrupted
        ! interrupted: no further machine is sent to, and the sends under way are finished; once more to quit at once, which leaves those uncertain until the next push asks them
        ! exit 130: interrupted
        ! next: `grid push --behind` goes on from here
        [exit 130]
        "#); }
        assert!(Path::new(&bench.path("machines/atlas/current")).exists());
        assert!(!bench.path("machines/borealis").exists());
        bench.grid(&["push", "--behind"]).exits(0);
        bench.grid(&["status", "--exit-code"]).exits(0);
    }
}

#[test]
fn a_second_ctrl_c_quits_at_once_and_the_next_push_converges() {
    let bench = two_machines();
    let child = pushing(&bench, &["push", "--all", "--parallel", "1"]);
    began(&bench);
    signal(&child, "INT");
    let id = child.id();
    let output = end_after(child, "interrupted", || {
        let again = Command::new("kill")
            .args(["-INT", &id.to_string()])
            .status()
            .unwrap();
        assert!(again.success());
    });
    assert_eq!(output.status.signal(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    insta::assert_snapshot!(said.lines().last().unwrap(), @"quit: nobody knows what atlas, borealis hold, whose sends were under way: the next push asks them first; `grid push --behind` goes on from here");
    let status = bench.grid(&["status", "--exit-code"]).exits(6);
    assert!(status.stdout().contains("uncertain"), "{}", status.all());
    // The machine went on without its controller.
    let_go(&bench);
    let pushed = bench.grid(&["push", "--behind"]).exits(0);
    assert!(pushed.stdout().contains("settled"), "{}", pushed.all());
    // Nobody died: it was quit.
    assert_eq!(pushed.stderr(), "");
    bench.grid(&["status", "--exit-code"]).exits(0);
}

#[test]
fn a_second_ctrl_c_leaves_no_progress_on_the_terminal() {
    let bench = two_machines();
    let file = bench.path("seen");
    let grid = bench.command(&[]);
    let typed = format!("{} push --all --parallel 1", env!("CARGO_BIN_EXE_grid"));
    let mut terminal = Command::new("script");
    terminal
        .args(["-qfec", &typed, file.to_str().unwrap()])
        .env_clear()
        .envs(
            grid.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .current_dir(&bench.mesh)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut terminal = terminal.spawn().unwrap();
    began(&bench);
    let seen = || String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
    let until = |what: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        while !seen().contains(what) {
            assert!(Instant::now() < end, "{what} is not in {}", seen());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("apply of slow");
    let lock = bench.read(".grid/lock");
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    let interrupt = || {
        let pid = lock["pid"].to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(sent.success());
    };
    interrupt();
    until("interrupted: ");
    interrupt();
    terminal.wait().unwrap();
    let seen = seen();
    let (_, last) = seen.split_once("quit: ").unwrap();
    assert!(!last.contains("apply of slow"), "{last:?}");
    let_go(&bench);
}

#[test]
fn what_is_ignored_from_the_start_stays_ignored() {
    let bench = two_machines();
    let grid = bench.command(&["push", "--all"]);
    let line = "trap '' INT; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).arg(grid.get_program());
    shell.args(grid.get_args()).current_dir(&bench.mesh);
    shell.env_clear();
    for (name, value) in grid.get_envs() {
        shell.env(name, value.unwrap());
    }
    let child = shell
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    began(&bench);
    signal(&child, "INT");
    let_go(&bench);
    let output = child.wait_with_output().unwrap();
    bench.seen(output, &["push", "--all"]).exits(0);
}

#[test]
fn a_send_that_is_not_done_in_time_is_uncertain_and_the_next_push_asks() {
    let bench = two_machines();
    let begun = Instant::now();
    let pushed = bench.grid(&["push", "--all", "--timeout", "1s"]).exits(4);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(
        pushed
            .stdout()
            .contains("it was not done within 1 s (--timeout)"),
        "{}",
        pushed.all()
    );
    began(&bench);
    let_go(&bench);
    bench.grid(&["push", "--behind"]).exits(0);
    bench.grid(&["push", "--all", "--timeout", "0s"]).exits(2);
}

/// A provider on the last of five machines; a consumer, and three machines that fail.
fn failing() -> Bench {
    let mut text = String::from(
        r#"
[mesh]
name = "try"

[defaults]
courier = "local"

[nodes.omega]
root = "machines/omega"

[services.accounts]
node = "omega"
provides = { kind = "custom", host = "127.0.0.1", port = 1, template = "accounts.j2", load = ["sh", "-c", "cat >/dev/null"], check = ["true"] }

[services.billing]
node = "atlas"
consumes = ["accounts"]
"#,
    );
    for node in ["atlas", "borealis", "cygnus", "delphinus"] {
        text.push_str(&format!(
            "\n[nodes.{node}]\nroot = \"machines/{node}\"\n[services.fails-on-{node}]\nnode = \"{node}\"\ntest = [\"false\"]\n"
        ));
    }
    let bench = Bench::new(&text);
    bench.file("accounts.j2", "");
    bench
}

#[test]
fn after_so_many_failures_nobody_is_sent_to_but_a_provider_that_somebody_waits_for() {
    let bench = failing();
    let pushed = bench
        .grid(&["push", "--all", "--parallel", "1", "--max-failures", "2"])
        .exits(4);
    insta::assert_snapshot!(pushed.all(), @"
    $ grid push --all --parallel 1 --max-failures 2
    try  push 1  maria@lap3
    minted   accounts/billing, generation 1
    round 0  atlas      named    never sent; billing waits for accounts on omega  failed at test of fails-on-atlas: it exited with 1
             nothing was changed there
    round 0  borealis   named    never sent                                       failed at test of fails-on-borealis: it exited with 1
             nothing was changed there
    round 0  omega      named    never sent                                       sent [TIME] s, loaded accounts
    incomplete: 1 machine sent, 2 failed, 0 already current, 2 behind
    failed      atlas      failed at test of fails-on-atlas: it exited with 1
    failed      borealis   failed at test of fails-on-borealis: it exited with 1
    behind      cygnus     never sent; kept back, since too many machines failed (--max-failures)
    behind      delphinus  never sent; kept back, since too many machines failed (--max-failures)
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: atlas: `test` of [services.fails-on-atlas] printed nothing: have it say why it fails
    ! next: borealis: `test` of [services.fails-on-borealis] printed nothing: have it say why it fails
    ! next: mend what is wrong on atlas, borealis, then `grid push --behind` finishes this
    [exit 4]
    ");
    assert!(!bench.path("machines/delphinus").exists());
    assert!(bench.path("machines/omega/current").exists());
}

#[test]
fn a_probe_tells_who_answers_who_does_not_and_who_holds_what_another_sent() {
    let bench = support::three_machines();
    bench.grid(&["push", "--all"]).exits(0);
    bench.grid(&["status", "--probe", "--exit-code"]).exits(0);
    std::fs::remove_dir_all(bench.path("machines/borealis")).unwrap();
    let (path, token) = bench
        .everything()
        .into_iter()
        .find(|(path, _)| path.ends_with("cygnus/grid/token"))
        .unwrap();
    let mut other = String::from_utf8(token).unwrap().trim().to_owned();
    other.replace_range(other.len() - 4.., "0000");
    std::fs::write(path, format!("{other}\n")).unwrap();
    bench.edit(
        "[nodes.atlas]",
        "[nodes.dorado]\naddress = \"127.0.0.1\"\nport = 1\ncourier = \"ssh\"\nroot = \"/nowhere\"\n\n[nodes.atlas]",
    );
    let before = bench.everything().len();
    let seen = bench.grid(&["status", "--probe", "--exit-code"]).exits(6);
    insta::assert_snapshot!(seen.all().replace(&other, "[TOKEN]"), @r#"
    $ grid status --probe --exit-code
    try  last push 1
    atlas     current      it answers
    borealis  emptied      it holds nothing, though it was sent to
    cygnus    fenced       it holds what an earlier push of this store, or of a copy of it, sent ([TOKEN])
    dorado    never sent   it cannot be asked: connecting: 127.0.0.1:1: connection refused: nobody listens there
    4 machines: 1 current, 1 never sent, 1 emptied, 1 fenced
    ! next: dorado: is it up, does sshd run there, are its `address` and `port` right? `grid hold NODE "why"` keeps pushes from it meanwhile
    ! next: `grid push borealis` sends all of it to borealis again
    ! next: `grid push cygnus` changes nothing there, and says who sent that and what to do
    ! next: `grid push --behind` sends to every machine that is behind
    [exit 6]
    "#);
    assert_eq!(bench.everything().len(), before, "a probe changes nothing");
    let json = bench.grid(&["status", "--probe", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    let answers: Vec<&str> = view["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|machine| machine["probe"]["answer"].as_str().unwrap())
        .collect();
    assert_eq!(answers, ["known", "empty", "other-token", "unreached"]);
}
