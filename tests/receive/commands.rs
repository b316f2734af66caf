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
    one_long_line_is_cut_and_the_reason_after_it_is_shown,
    a_long_line_of_one_command_silences_no_other,
    after_much_output_a_command_that_fails_still_says_why,
    of_a_check_that_is_tried_again_the_last_words_are_shown,
    lines_are_whole_whatever_pieces_they_come_in,
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

/// A line of so many bytes, as a command prints it.
fn line_of(bytes: usize) -> String {
    format!("yes | tr -d '\\n' | head -c {bytes}; echo")
}

fn one_long_line_is_cut_and_the_reason_after_it_is_shown(shell: Shell) {
    let mut bed = Bed::new(shell);
    let fails = service("app").command(
        "apply",
        format!(
            "echo first; {}; echo the reason; exit 3",
            line_of(2_000_000)
        ),
    );
    let (failure, _) = bed.rolled_back(&[fails]);
    assert_eq!(failure.cause, "it exited with 3");
    assert_eq!(
        failure.output,
        ["first", &"y".repeat(500), "the reason"].map(String::from)
    );
}

fn a_long_line_of_one_command_silences_no_other(shell: Shell) {
    let mut bed = Bed::new(shell);
    let noisy = service("app").command("apply", line_of(800_000));
    let fails = service("web").command("apply", "echo more; echo the reason; exit 3");
    let (failure, _) = bed.rolled_back(&[noisy, fails]);
    assert_eq!(failure.service, Some(name("web")));
    assert_eq!(failure.output, ["more", "the reason"]);
}

fn after_much_output_a_command_that_fails_still_says_why(shell: Shell) {
    let mut bed = Bed::new(shell);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let noise = "yes \"$(printf %0480d 0)\" | head -n 150";
    let mut all: Vec<_> = names
        .iter()
        .map(|&name| service(name).command("apply", noise))
        .collect();
    all.push(service("web").command("apply", format!("{noise}; echo the reason; exit 3")));
    let (failure, _) = bed.rolled_back(&all);
    assert_eq!(failure.service, Some(name("web")));
    assert_eq!(failure.output.last().unwrap(), "the reason");
    let shown: usize = bed
        .progress
        .iter()
        .map(|p| match p {
            Progress::Output { line, .. } => line.len(),
            _ => 0,
        })
        .sum();
    assert!(shown > 500_000 && shown < 1_000_000, "{shown}");
}

fn of_a_check_that_is_tried_again_the_last_words_are_shown(shell: Shell) {
    let mut bed = Bed::new(shell);
    let tries = bed.state().join("tries");
    // More each time than is shown of a command, and a long line first.
    let check = format!(
        "echo x >>'{0}'; n=$(wc -l <'{0}'); echo \"try $((n)) begins\"; [ $n -gt 1 ] || {{ {1}; }}; yes \"try $((n)) $(printf %0480d 0)\" | head -n 150; echo \"try $((n)) ends\"; exit 1",
        tries.display(),
        line_of(800_000),
    );
    let (failure, _) = bed.rolled_back(&[service("app").command("check", check).limit(4)]);
    let made = fs::read_to_string(tries).unwrap().lines().count();
    // The very last may have been ended by the time before it said anything.
    let last = failure.output.last().unwrap();
    let said = |n: usize| last.starts_with(&format!("try {n} "));
    assert!(said(made) || said(made - 1), "{made}: {failure:?}");
}

fn lines_are_whole_whatever_pieces_they_come_in(shell: Shell) {
    let mut bed = Bed::new(shell);
    let slow = service("app").command(
        "apply",
        "printf 'in '; sleep 0.1; printf 'two\\n\\n\\nends with a stop.'; sleep 0.1; printf '\\n\\0'; sleep 0.1; printf 'after\\n.\\n'; \
         sleep 0.1; printf 'no end'; exit 3",
    );
    let (failure, _) = bed.rolled_back(&[slow]);
    assert_eq!(
        failure.output,
        ["in two", "ends with a stop.", "?after", ".", "no end"]
    );
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
