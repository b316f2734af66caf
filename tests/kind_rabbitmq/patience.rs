//! How long a load waits for a broker, and what it says meanwhile: in every shell, with a clock that the test moves and a
//! `rabbitmqctl` that answers as the real one was seen to.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use grid::kinds::{Owner, Provider, Script};
use grid::words::{MeshName, ServiceName};

const SHELLS: [&[&str]; 3] = [&["dash"], &["bash", "--posix"], &["busybox", "sh"]];

/// What 3.10 prints where no such node runs, and the number of the call in its own name.
const NOT_RUNNING: &str = r#"
cat <<END
Error: unable to perform an operation on node 'rabbit@atlas'. Please see diagnostics information and suggestions below.

Most common reasons for this are:

 * Target node is unreachable (e.g. due to hostname resolution, TCP connection or firewall issues)
 * CLI tool fails to authenticate with the server (e.g. due to CLI tool's Erlang cookie not matching that of the server)
 * Target node is not running

In addition to the diagnostics info below:

 * See the CLI, clustering and networking guides on https://rabbitmq.com/documentation.html to learn more
 * Consult server logs on node rabbit@atlas
 * If target node is configured to use long node names, don't forget to use --longnames with CLI tools

DIAGNOSTICS
===========

attempted to contact: [rabbit@atlas]

rabbit@atlas:
  * connected to epmd (port 4369) on atlas
  * epmd reports: node 'rabbit' not running at all
                  no other nodes on atlas
  * suggestion: start the node

Current node details:
 * node name: 'rabbitmqcli-$calls-rabbit@atlas'
 * effective user's home directory: /var/lib/rabbitmq
 * Erlang cookie hash: j4j4nIVVIuzTtezhN+mjnA==

END
exit 69
"#;

/// How a load is run.
#[derive(Clone, Copy)]
struct Run<'a> {
    /// What each call of `rabbitmqctl` does. It knows `$calls`, how many there were, and `$folder`, where `err` is what was
    /// said so far.
    answer: &'a str,
    /// Seconds by which each look at the clock moves it.
    step: u32,
    /// By the public commands only.
    public: bool,
    /// For how many seconds it tries.
    patience: u32,
}

fn answering(answer: &str) -> Run<'_> {
    Run {
        answer,
        step: 10,
        public: false,
        patience: 25,
    }
}

/// Loads the empty list in each shell that is there. Hands what was said, and how many calls there were, to `look`.
fn each_load(load: Run<'_>, look: impl Fn(&str, usize)) {
    let mesh = MeshName::new("prod").unwrap();
    let service = ServiceName::new("broker").unwrap();
    let owner = Owner {
        mesh: &mesh,
        provider: &service,
    };
    for shell in SHELLS {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let told = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        let text = format!(
            "folder='{}'\ncat >/dev/null\necho x >>\"$folder/calls\"\ncalls=$(wc -l <\"$folder/calls\")\n{}",
            folder.display(),
            load.answer
        );
        let settings = serde_json::json!({ "rabbitmqctl": ["sh", "-c", text] });
        let provider = Provider::read("rabbitmq", settings).unwrap().unwrap();
        let Script(text) = provider.kind().load(owner);
        let at_once = text.replace("pauses='1 2 3 4 5 5 5'", "pauses='0 0 0 0 0 0 0'");
        assert_ne!(text, at_once);
        let patient = at_once.replace("patience=25", &format!("patience={}", load.patience));
        assert_eq!(at_once == patient, load.patience == 25);
        let script = clocked(folder, load.step, &patient);
        if !run(shell, &script, folder, load.public) {
            assert!(std::env::var_os("CI").is_none(), "{shell:?} is needed");
            continue;
        }
        look(&told("err"), told("calls").lines().count());
    }
}

/// The script, with a clock in a file.
fn clocked(folder: &Path, step: u32, script: &str) -> String {
    let clock = folder.join("clock");
    fs::write(&clock, "1000\n").unwrap();
    format!(
        "date() {{ now=$(($(cat '{0}') + {step})); echo $now >'{0}'; echo $now; }}\n{script}",
        clock.display()
    )
}

/// Whether the shell is there.
fn run(shell: &[&str], script: &str, folder: &Path, public: bool) -> bool {
    let mut command = Command::new(shell[0]);
    if public {
        command.env("GRID_RABBITMQ", "public");
    }
    let child = command
        .args(&shell[1..])
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::create(folder.join("err")).unwrap())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    let list = br#"{"users":[],"vhosts":[],"permissions":[]}"#;
    child.stdin.take().unwrap().write_all(list).unwrap();
    assert!(!child.wait().unwrap().success());
    true
}

#[test]
fn a_node_that_does_not_run_is_told_of_once_and_tried_until_the_time_is_up() {
    for public in [false, true] {
        each_load(
            Run {
                public,
                ..answering(NOT_RUNNING)
            },
            |said, calls| {
                insta::allow_duplicates! {
                    insta::assert_snapshot!(said, @"
                Error: unable to perform an operation on node 'rabbit@atlas'.
                rabbit@atlas:
                  * connected to epmd (port 4369) on atlas
                  * epmd reports: node 'rabbit' not running at all
                                  no other nodes on atlas
                  * suggestion: start the node
                 * effective user's home directory: /var/lib/rabbitmq
                it is tried again
                rabbitmqctl failed (exit 69); nothing was changed
                ");
                }
                assert_eq!(calls, 3);
            },
        );
    }
}

#[test]
fn a_clock_that_stands_still_ends_the_tries_all_the_same() {
    each_load(
        Run {
            step: 0,
            ..answering(NOT_RUNNING)
        },
        |_, calls| assert_eq!(calls, 8),
    );
}

#[test]
fn the_first_answer_is_told_before_the_next_try() {
    let answer = format!(
        "[ $calls -lt 2 ] || grep -q 'not running at all' \"$folder/err\" || {{ echo too late; exit 1; }}\n{NOT_RUNNING}"
    );
    each_load(answering(&answer), |said, calls| {
        assert_eq!(calls, 3, "{said}");
    });
}

#[test]
fn a_broker_that_answers_later_is_told_too() {
    let answer = format!("[ $calls -lt 2 ] || {{ echo no such command; exit 64; }}\n{NOT_RUNNING}");
    each_load(answering(&answer), |said, _| {
        assert!(!said.contains("the broker answers now"), "{said}");
        assert!(
            said.ends_with("no such command\nrabbitmqctl failed (exit 64); nothing was changed\n"),
            "{said}"
        );
    });
    let refusal = "echo 'grid-says: user a exists, but without the mark b'; echo grid-verdict: refused; exit 0";
    let answer = format!("[ $calls -lt 2 ] || {{ {refusal}; }}\n{NOT_RUNNING}");
    each_load(answering(&answer), |said, _| {
        assert!(said.ends_with("it is tried again\nthe broker answers now\nuser a exists, but without the mark b\nnothing was changed\n"), "{said}");
    });
}

#[test]
fn a_broker_that_does_not_start_is_told_in_words() {
    each_load(answering("echo grid-verdict: starting"), |said, calls| {
        assert_eq!(
            said,
            "the node runs, but RabbitMQ has not started in it\nit is tried again\nRabbitMQ did not start in time; nothing was changed\n"
        );
        assert_eq!(calls, 3);
    });
}

/// The call ends only once it was told that it takes long.
#[test]
fn a_call_that_takes_long_is_told_of_while_it_does() {
    let wait = "n=0; until grep -q '^rabbitmqctl has not answered for 0 s$' \"$folder/err\" || [ $n = 600 ]; do n=$((n + 1)); sleep 0.1; done";
    let answer = format!("{wait}\n{NOT_RUNNING}");
    for public in [false, true] {
        let load = Run {
            public,
            patience: 0,
            ..answering(&answer)
        };
        each_load(load, |said, calls| {
            assert!(
                said.starts_with("rabbitmqctl has not answered for 0 s\nError: "),
                "{said}"
            );
            assert_eq!(calls, 1);
        });
    }
}

#[test]
fn of_a_long_answer_the_beginning_and_the_end_are_told_without_escape_sequences() {
    let answer = "n=0; while [ $n -lt 159 ]; do n=$((n + 1)); printf '\\033[1mline\\033[0;38;5;1m %s\\n\\n' $n; done
        echo 'Only root or rabbitmq should run rabbitmqctl'; exit 1";
    each_load(answering(answer), |said, calls| {
        insta::allow_duplicates! {
            insta::assert_snapshot!(said, @"
            line 1
            line 2
            line 3
            line 4
            line 5
            line 6
            140 lines are left out
            line 147
            line 148
            line 149
            line 150
            line 151
            line 152
            line 153
            line 154
            line 155
            line 156
            line 157
            line 158
            line 159
            Only root or rabbitmq should run rabbitmqctl
            rabbitmqctl failed (exit 1); nothing was changed
            ");
        }
        assert_eq!(calls, 1);
    });
}
