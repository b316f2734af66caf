//! How commands are run: their time, their output, what they leave behind.

use std::fs;
use std::path::Path;

use grid::delivery::{FailedStep, Progress};

use crate::delivery_bed::{Bed, Shell, name, service};
use crate::under_every_shell;

under_every_shell!(
    a_command_that_hangs_is_ended_by_its_limit,
    output_is_bounded_cleaned_and_shown,
    of_a_long_output_the_last_lines_are_shown_where_the_reason_stands,
    a_daemon_left_behind_holds_nothing_up,
    no_process_of_ours_stays_behind,
    a_check_is_repeated_until_it_holds,
);

fn a_command_that_hangs_is_ended_by_its_limit(shell: Shell) {
    let mut bed = Bed::new(shell);
    let hangs = service("app")
        .command("test", "echo waiting; exec sleep 600")
        .limit(1);
    let failure = bed.refused(&[hangs]);
    assert_eq!(failure.step, FailedStep::Test);
    assert_eq!(failure.cause, "it was not done within 1 s");
    assert_eq!(failure.output, ["waiting"]);
    // Each step ends alike, and what is there comes back.
    for (step, expected) in [
        ("load", FailedStep::Load),
        ("verify", FailedStep::Check),
        ("apply", FailedStep::Apply),
        ("check", FailedStep::Check),
    ] {
        let hangs = service("broker")
            .grants(&["app"], &bed)
            .without(step)
            .command(step, "echo waiting; exec sleep 600")
            .limit(1);
        let (failure, _) = bed.rolled_back(&[hangs]);
        assert_eq!(failure.step, expected, "{step}");
        assert!(failure.cause.contains("within 1 s"), "{step}: {failure:?}");
        assert_eq!(
            failure.output.last().map(String::as_str),
            Some("waiting"),
            "{step}"
        );
        assert!(!bed.current().exists(), "{step}");
    }
}

fn output_is_bounded_cleaned_and_shown(shell: Shell) {
    let mut bed = Bed::new(shell);
    let noisy = service("app")
        .command(
            "apply",
            "printf 'a\\033[31mred\\377\\n'; echo 'end applied'; yes 'a long line of output' | head -c 5000000; yes | tr -d '\\n' | head -c 5000000",
        );
    bed.applied(&[noisy]);
    let lines: Vec<&String> = bed
        .progress
        .iter()
        .filter_map(|p| match p {
            Progress::Output { line, .. } => Some(line),
            _ => None,
        })
        .collect();
    assert!(lines[0].starts_with("a\u{fffd}[31mred"), "{:?}", lines[0]);
    assert_eq!(lines[1], "end applied");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    assert!(lines.iter().map(|line| line.len()).sum::<usize>() < 70_000);
    assert!(lines.last().unwrap().contains("not shown"));
}

fn of_a_long_output_the_last_lines_are_shown_where_the_reason_stands(shell: Shell) {
    let mut bed = Bed::new(shell);
    let fails = service("app").command(
        "apply",
        "n=0; while [ $n -lt 12000 ]; do n=$((n + 1)); echo \"line $n of many\"; done; echo the reason; exit 3",
    );
    let (failure, _) = bed.rolled_back(&[fails]);
    assert_eq!(failure.cause, "it exited with 3");
    assert_eq!(failure.output.last().unwrap(), "the reason");
    let shown: Vec<&str> = bed
        .progress
        .iter()
        .filter_map(|p| match p {
            Progress::Output { line, .. } => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown[0], "line 1 of many");
    // What is left out is left out in one place, and said.
    let gap = shown.iter().position(|line| line.contains("left out"));
    let (first, last) = shown.split_at(gap.unwrap());
    assert_eq!(last.len(), 21);
    let lines = |from: usize, n: usize| (from..from + n).map(|n| format!("line {n} of many"));
    assert!(lines(1, first.len()).eq(first.iter().copied()));
    assert!(lines(11982, 19).eq(last[1..20].iter().copied()));
}

fn a_daemon_left_behind_holds_nothing_up(shell: Shell) {
    let mut bed = Bed::new(shell);
    let pid = bed.state().join("pid");
    let daemon = service("app").command(
        "apply",
        format!(
            "while :; do echo still here; sleep 0.1; done & echo $! >'{}'",
            pid.display()
        ),
    );
    bed.applied(&[daemon]);
    let pid = fs::read_to_string(pid).unwrap();
    let alive = || Path::new("/proc").join(pid.trim()).exists();
    assert!(alive());
    // Its output is drained, not broken: it would have died of it.
    let applied = bed.applied(&[service("other").file("a", "1")]);
    assert_eq!(applied.removed, [name("app")]);
    assert!(alive());
    let killed = std::process::Command::new("kill").arg(pid.trim()).status();
    assert!(killed.unwrap().success());
}

fn no_process_of_ours_stays_behind(shell: Shell) {
    let mut bed = Bed::new(shell);
    bed.applied(&[
        service("broker").grants(&["app"], &bed).logged(&bed),
        service("app").command("apply", "yes | head -c 300000"),
    ]);
    bed.ask();
    let root = bed.dir.path().display().to_string();
    let ours = || {
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok())
            .any(|line| String::from_utf8_lossy(&line).contains(&root))
    };
    // They end by themselves, a moment after the receipt.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while ours() {
        assert!(std::time::Instant::now() < deadline, "a process stays");
        std::thread::yield_now();
    }
}

fn a_check_is_repeated_until_it_holds(shell: Shell) {
    let mut bed = Bed::new(shell);
    let tries = bed.state().join("tries");
    let check = format!(
        "echo x >>'{0}'; [ \"$(wc -l <'{0}')\" -ge 3 ]",
        tries.display()
    );
    bed.applied(&[service("app").command("check", check)]);
    assert_eq!(fs::read_to_string(tries).unwrap().lines().count(), 3);
}
