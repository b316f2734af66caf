//! What goes wrong on a machine and on the way to it, on real file systems and a real sshd: nothing is lost, and the next
//! send goes on. Needs root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use delivery_bed::mount::Mount;
use delivery_bed::sshd::{Sshd, runs};
use delivery_bed::{Bed, Shell, failure, service, token};
use grid::delivery::{Answer, FailedStep, Outcome};

under_every_shell!(
    a_root_that_is_read_only_is_told_and_the_next_send_goes_on,
    a_mv_that_cannot_replace_a_link_is_told,
);

fn a_root_that_is_read_only_is_told_and_the_next_send_goes_on(shell: Shell) {
    let mut bed = Bed::new(shell);
    let mount = Mount::new(&bed.dir.path().join("disk"), 4096);
    bed.root = mount.at.join("deep/root");
    let app = |a: &str| service("app").file("a", a);
    mount.read_only();
    let refused = bed.refused(&[app("1")]);
    assert_eq!(refused.step, FailedStep::Start);
    assert!(
        refused.cause.contains("Read-only file system"),
        "{refused:?}"
    );
    assert!(
        refused.cause.contains("deep/root cannot be used"),
        "{refused:?}"
    );
    mount.writable();
    bed.applied(&[app("1")]);
    // It was mounted anew after an error of the disk, as file systems do by themselves.
    mount.read_only();
    let refused = bed.refused(&[app("2")]);
    assert!(
        refused.cause.contains("Read-only file system"),
        "{refused:?}"
    );
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    // Nobody else sends there: the lock cannot be written, and that is what the hint is about.
    assert_eq!(refused.step, FailedStep::Lock);
    let hint = refused.hint.unwrap();
    assert!(
        hint.contains("its login must be able to write there"),
        "{hint}"
    );
    let answer = bed.answer();
    let Answer::Unknown(failure) = answer else {
        panic!("{answer:?}");
    };
    assert!(
        failure.cause.contains("Read-only file system"),
        "{failure:?}"
    );
    mount.writable();
    assert_eq!(bed.ask().token, bed.held);
    // The disk is full to the last byte, before anything is sent.
    let filler = mount.at.join("filler");
    let _ = fs::write(&filler, vec![0; 8 << 20]);
    let refused = bed.refused(&[app("2")]);
    let hint = refused.hint.as_deref().unwrap();
    assert!(hint.contains("is there space left"), "{refused:?}");
    fs::remove_file(&filler).unwrap();
    bed.applied(&[app("2")]);
    assert_eq!(bed.read("services/app/a").unwrap(), "2");
}

fn a_mv_that_cannot_replace_a_link_is_told(shell: Shell) {
    let mut bed = Bed::new(shell);
    let app = |a: &str| service("app").file("a", a);
    bed.applied(&[app("1")]);
    let mv = bed.dir.path().join("mv");
    fs::write(
        &mv,
        "#!/bin/sh\ncase $1 in -T) echo \"mv: unknown option -- T\" >&2; exit 1;; esac\nexec /bin/mv \"$@\"\n",
    )
    .unwrap();
    fs::set_permissions(&mv, fs::Permissions::from_mode(0o755)).unwrap();
    bed.instead = vec![("mv", mv)];
    let refused = bed.refused(&[app("2")]);
    assert_eq!(refused.step, FailedStep::Start);
    assert!(
        refused
            .cause
            .starts_with("the mv of this machine has no -T"),
        "{refused:?}"
    );
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    assert_eq!(bed.releases(), 1);
    bed.instead.clear();
    assert_eq!(bed.ask().token, bed.held);
    bed.applied(&[app("2")]);
}

#[test]
fn each_tool_that_a_machine_lacks_is_named() {
    for tool in ["tar", "sha256sum", "mv", "mkfifo", "timeout", "stat"] {
        let mut bed = Bed::new(Shell::Dash);
        bed.lacks = vec![tool];
        let refused = bed.refused(&[service("app").file("a", "1")]);
        assert_eq!(refused.step, FailedStep::Start);
        assert_eq!(refused.cause, format!("this machine lacks: {tool}"));
        assert!(!bed.root.exists());
        bed.lacks.clear();
        bed.applied(&[service("app").file("a", "1")]);
    }
}

/// Passes bytes on to sshd both ways, until it is told to cut.
struct Cutter {
    port: u16,
    cut: mpsc::Sender<()>,
}

impl Cutter {
    fn new(sshd: &Sshd) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, told) = mpsc::channel();
        let to = sshd.port;
        thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            for (from, into) in [(&client, &server), (&server, &client)] {
                let (mut from, mut into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                thread::spawn(move || std::io::copy(&mut from, &mut into));
            }
            let _ = told.recv();
            for stream in [client, server] {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        let key = fs::read_to_string(sshd.dir.path().join("host_key.pub")).unwrap();
        let mut known = fs::read_to_string(sshd.known_hosts()).unwrap();
        known.push_str(&format!("[127.0.0.1]:{port} {key}"));
        fs::write(sshd.known_hosts(), known).unwrap();
        Self { port, cut }
    }
}

/// A command that says it began, and waits until it may go on; then what it does besides.
fn gated(bed: &Bed, then: &str) -> String {
    let gate = bed.state();
    format!(
        "exec 3<>'{0}/began'; echo >&3; read line <'{0}/go'; {then}",
        gate.display()
    )
}

fn gate(bed: &Bed) {
    for pipe in ["began", "go"] {
        runs("mkfifo", &[bed.state().join(pipe).to_str().unwrap()]);
    }
}

fn wait_at(gate: &Path) {
    let pipe = fs::File::open(gate.join("began")).unwrap();
    BufReader::new(pipe).read_line(&mut String::new()).unwrap();
}

#[test]
fn a_connection_that_is_cut_after_the_switch_or_in_mid_apply_is_uncertain_and_the_machine_finishes()
{
    for step in ["load", "apply"] {
        let sshd = Sshd::start();
        let mut bed = sshd.bed("127.0.0.1");
        gate(&bed);
        let broker = |consumers| service("broker").grants(consumers, &bed).logged(&bed);
        let app = |a: &str| service("app").file("a", a).logged(&bed);
        let (old, mut new) = ([broker(&["a"]), app("1")], [broker(&["a", "b"]), app("2")]);
        let log = bed.state().join("log").display().to_string();
        let list = bed.state().join("broker.list").display().to_string();
        let (at, then) = match step {
            "load" => (0, format!("cat >'{list}'; echo load broker >>'{log}'")),
            _ => (1, format!("echo apply app >>'{log}'")),
        };
        new[at] = new[at]
            .clone()
            .without(step)
            .command(step, gated(&bed, &then));
        bed.applied(&old);
        bed.log();
        let cutter = Cutter::new(&sshd);
        bed.ssh = Some(("127.0.0.1".into(), cutter.port, sshd.home()));
        let state = bed.state();
        let outcome = thread::scope(|scope| {
            let sending = scope.spawn(|| bed.send(&new));
            wait_at(&state);
            cutter.cut.send(()).unwrap();
            sending.join().unwrap()
        });
        let (failed, _, cause) = failure(&outcome);
        assert!(
            matches!(outcome, Outcome::Uncertain(_)),
            "{step}: {outcome:?}"
        );
        assert_eq!(failed, FailedStep::Receipt, "{step}");
        assert!(cause.contains("connection"), "{step}: {cause}");
        // The machine did not notice.
        fs::write(state.join("go"), "\n").unwrap();
        bed.ssh = Some(("127.0.0.1".into(), sshd.port, sshd.home()));
        let holding = bed.ask();
        assert_eq!(holding.token, Some(token(2)), "{step}");
        assert_eq!(
            holding.manifest,
            Some(delivery_bed::bundle(&new).manifest),
            "{step}"
        );
        let log = bed.log();
        let times = |what: &str| log.iter().filter(|line| *line == what).count();
        assert_eq!(
            (times("load broker"), times("apply app")),
            (1, 1),
            "{step}: {log:?}"
        );
        (bed.held, bed.base) = (holding.token, holding.manifest);
        bed.applied(&[broker_after(&bed)]);
    }
}

fn broker_after(bed: &Bed) -> delivery_bed::Service {
    service("broker").grants(&["c"], bed).logged(bed)
}

#[test]
fn a_hostile_receipt_is_bounded_cleaned_and_not_believed() {
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    let app = [service("app").file("a", "1")];
    bed.applied(&app);
    let held = bed.ask();
    let script = sshd.dir.path().join("hostile");
    let hello = "printf '\\ngrid-receive 1\\n'; ";
    let digest = "a".repeat(64);
    let sends: &[(&str, &str, &str)] = &[
        ("", "yes", "came before the machine side spoke"),
        ("", "yes | tr -d '\\n'", "a line is longer than 8192 bytes"),
        ("", "yes >&2", "nothing was heard for"),
        ("", "sleep 100", "nothing was heard for"),
        (hello, "sleep 100", "nothing was heard for"),
        (hello, "yes 'note x'", "it says more than 1048576 bytes"),
        (hello, "cat /dev/zero", "a line is longer than 8192 bytes"),
        (
            hello,
            "echo end applied twice",
            "not understood: end applied twice",
        ),
        (
            hello,
            "echo end rolled-back",
            "its receipt contradicts itself",
        ),
        (hello, "echo end refused", "its receipt contradicts itself"),
        (hello, "echo end answered", "its receipt contradicts itself"),
        (
            hello,
            "echo fail apply ../../etc/passwd x",
            "not understood",
        ),
        (
            hello,
            "echo out app x; echo applied ../app",
            "not understood",
        ),
        (
            hello,
            "echo frame manifest - 99999999999",
            "a frame is longer",
        ),
        (
            hello,
            "echo step apply app 18446744073709551616",
            "not understood",
        ),
        (
            hello,
            "echo want all; echo want all; cat >/dev/null",
            "it asks for the same again",
        ),
        (
            hello,
            "printf 'fail apply app \\033]0;owned\\007\\302\\233\\377\\342\\200\\256x\\nend refused\\n'",
            "\u{fffd}]0;owned\u{fffd}\u{fffd}\u{fffd}\u{fffd}x",
        ),
        (hello, "kill -9 $$", "SIGKILL"),
    ];
    let answers: &[(&str, &str)] = &[
        ("echo token '../../x'", "what it holds is no token"),
        (
            "echo current $D; echo 'frame manifest - 2'; echo '{}'; echo end answered",
            "is not what was sent",
        ),
        ("echo current $D; echo end answered", "contradicts itself"),
        (
            "echo 'frame list app 2'; echo '{}'; echo end answered",
            "cannot be read",
        ),
        ("echo end applied", "contradicts itself"),
        ("while :; do echo 'log x'; done", "it says more than"),
    ];
    let install = |text: &str| {
        // It does not mind that its terminal is gone; the test must not leave it behind.
        let text = format!("#!/bin/sh\nD={digest}\n{text}\n");
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        sshd.authorize(&format!("command=\"{}\" ", script.display()));
    };
    let changed = [service("app").file("a", "2")];
    for (hello, text, expected) in sends {
        install(&format!("{hello}{text}"));
        // Who says nothing is waited for; who says too much has time to say it.
        let is_silent = expected.starts_with("nothing was heard");
        bed.timeout = Duration::from_secs(if is_silent { 1 } else { 30 });
        let begun = Instant::now();
        let outcome = bed.send(&changed);
        assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
        let (_, _, cause) = failure(&outcome);
        assert!(cause.contains(expected), "{text}: {outcome:?}");
        assert!(
            !format!("{outcome:?}").contains('\u{1b}'),
            "{text}: {outcome:?}"
        );
        bed.held = held.token;
    }
    bed.timeout = Duration::from_secs(30);
    for (text, expected) in answers {
        install(&format!("{hello}{text}"));
        let Answer::Unknown(failure) = bed.answer() else {
            panic!("{text}: it was believed");
        };
        assert!(failure.cause.contains(expected), "{text}: {failure:?}");
    }
    sshd.authorize("");
    let after = bed.ask();
    assert_eq!((after.token, after.manifest), (held.token, held.manifest));
    bed.applied(&changed);
}
