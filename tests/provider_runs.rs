//! `as` and `via` of a provider: a list is loaded and checked as a real user, through a real other root, under every
//! shell, by every way of becoming that user. Needs root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use delivery_bed::sshd::{Login, Sshd, runs};
use delivery_bed::{Bed, Service, Shell, service};
use grid::delivery::FailedStep;
use grid::kinds::{Runs, Script, UserName};
use grid::words::Command;

under_every_shell!(
    a_list_is_loaded_and_checked_as_the_user_that_is_named,
    a_user_that_the_machine_does_not_have_is_named,
    a_list_is_loaded_and_checked_through_what_leads_there,
);

/// A folder that everybody may enter, and a user who writes to its home.
fn user(bed: &Bed) -> Login {
    fs::set_permissions(bed.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Login::new(bed.dir.path(), "/usr/sbin/nologin")
}

/// A provider whose list lies in the user's home, and who says as whom it was loaded.
fn provider(runs: &Runs, home: &Path, consumers: &[&'static str], bed: &Bed) -> Service {
    let home = home.display();
    let load = format!(
        "cat >'{home}/list' && id -un >'{home}/who' && echo \"$HOME\" >'{home}/home' && echo \"$GRID_RELEASE\" >'{home}/release'\n"
    );
    let check =
        format!("[ \"$(cat)\" = \"$(cat '{home}/list')\" ] && echo checked >>'{home}/who'\n");
    let script = |text: String| runs.of(Script(text)).0;
    service("broker")
        .grants(consumers, bed)
        .without("load")
        .without("verify")
        .command("load", script(load))
        .command("verify", script(check))
}

fn as_user(name: &str) -> Runs {
    Runs {
        user: UserName::parse(name),
        via: None,
    }
}

fn read(home: &Path, file: &str) -> String {
    fs::read_to_string(home.join(file)).unwrap()
}

/// What a load as this user leaves behind.
fn was_loaded_as(login: &Login, bed: &Bed, list: &str) {
    assert_eq!(read(&login.home, "list"), list);
    assert_eq!(
        read(&login.home, "who"),
        format!("{}\nchecked\n", login.name)
    );
    assert_eq!(
        read(&login.home, "home").trim(),
        login.home.to_str().unwrap()
    );
    let release = read(&login.home, "release");
    assert!(release.starts_with(bed.root.to_str().unwrap()), "{release}");
    let owner = fs::metadata(login.home.join("list")).unwrap().uid();
    assert_eq!(owner, fs::metadata(&login.home).unwrap().uid());
}

fn a_list_is_loaded_and_checked_as_the_user_that_is_named(shell: Shell) {
    let mut bed = Bed::new(shell);
    let login = user(&bed);
    let runs = as_user(&login.name);
    // Its shell is nologin, its password none, and the list is a file that only root can read.
    let ways: &[&[&'static str]] = match shell {
        // Its own setpriv knows no users.
        Shell::Busybox => &[&[]],
        _ => &[&[], &["setpriv"]],
    };
    if shell == Shell::Busybox {
        bed.instead = vec![("su", PathBuf::from("/usr/bin/su"))];
    }
    for (number, lacks) in ways.iter().enumerate() {
        bed.lacks = lacks.to_vec();
        let consumers: &[&str] = if number == 0 { &["a"] } else { &["a", "b"] };
        let service = provider(&runs, &login.home, consumers, &bed);
        bed.applied(std::slice::from_ref(&service));
        was_loaded_as(&login, &bed, &consumers.join("\n"));
        assert_eq!(
            bed.mode(bed.current().join("services/broker/grants.txt")),
            0o600
        );
        // It leaves again: the empty list goes the same way.
        fs::remove_file(login.home.join("who")).unwrap();
        let applied = bed.applied(&[service_of_another()]);
        assert_eq!(applied.removed.len(), 1);
        was_loaded_as(&login, &bed, "nobody\n");
    }
}

fn service_of_another() -> Service {
    service("other").file("a", "1")
}

fn a_user_that_the_machine_does_not_have_is_named(shell: Shell) {
    let mut bed = Bed::new(shell);
    let runs = as_user("nosuchuser");
    let home = bed.dir.path().to_owned();
    let service = provider(&runs, &home, &["a"], &bed);
    let (failure, _) = bed.rolled_back(&[service]);
    assert_eq!(failure.step, FailedStep::Load);
    assert_eq!(failure.output, ["this machine has no user nosuchuser"]);
    assert!(!home.join("list").exists());
}

/// Another root with a shell and a few tools in it, as a container has.
fn container(bed: &Bed) -> PathBuf {
    let root = bed.dir.path().join("it's a container");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir(root.join("data")).unwrap();
    let line = format!(
        "cp /bin/busybox '{0}/bin/busybox'; ldd /bin/busybox | grep -o '/[^ ]*' | xargs -r cp --parents -L -t '{0}'",
        root.display().to_string().replace('\'', "'\\''")
    );
    runs("sh", &["-c", &line]);
    for tool in ["sh", "cat", "env"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(tool)).unwrap();
    }
    root
}

fn a_list_is_loaded_and_checked_through_what_leads_there(shell: Shell) {
    let mut bed = Bed::new(shell);
    let root = container(&bed);
    let words = ["chroot", root.to_str().unwrap(), "/bin/env", "PATH=/bin"];
    let runs = Runs {
        user: None,
        via: Some(Command::new(words.map(str::to_owned).to_vec()).unwrap()),
    };
    // Its paths are those of the container.
    let load = "cat >/data/list && echo \"$GRID_RELEASE\" >/data/release && ls / >/dev/null 2>&1 || echo no ls here\n";
    let check = "[ \"$(cat)\" = \"$(cat /data/list)\" ] || { echo other; exit 1; }\n";
    let script = |text: &str| runs.of(Script(text.into())).0;
    let broker = |load: &str, consumers| {
        service("broker")
            .grants(consumers, &bed)
            .without("load")
            .without("verify")
            .limit(1)
            .command("load", script(load))
            .command("verify", script(check))
    };
    let (good, bad) = (
        broker(load, &["a"]),
        broker("cat >/dev/null; exit 65\n", &["a", "b"]),
    );
    bed.applied(std::slice::from_ref(&good));
    assert_eq!(read(&root, "data/list"), "a");
    assert!(read(&root, "data/release").starts_with(bed.root.to_str().unwrap()));
    // Its exit code comes through; and what was lost there is found missing.
    let (failure, _) = bed.rolled_back(&[bad]);
    assert_eq!(
        (failure.step, failure.cause.as_str()),
        (FailedStep::Load, "it exited with 65")
    );
    fs::write(root.join("data/list"), "lost").unwrap();
    let applied = bed.applied(&[good]);
    assert_eq!(
        applied.mended,
        ["broker: it did not admit exactly its list"]
    );
    assert_eq!(read(&root, "data/list"), "a");
}

#[test]
fn a_machine_side_that_is_not_root_becomes_the_user_by_sudo() {
    let sshd = Sshd::start();
    let mut bed = sshd.bed("127.0.0.1");
    let login = user(&bed);
    let folder = tempfile::tempdir().unwrap();
    let deploy = Login::new(folder.path(), "/bin/sh");
    bed.user.clone_from(&deploy.name);
    bed.root = deploy.home.join("grid");
    let runs = as_user(&login.name);
    let one = provider(&runs, &login.home, &["a"], &bed);
    let (failure, _) = bed.rolled_back(std::slice::from_ref(&one));
    assert_eq!(failure.step, FailedStep::Load);
    assert!(
        failure.output[0].contains("a password is required"),
        "{failure:?}"
    );
    deploy.sudoer(&format!("ALL=({}) NOPASSWD: ALL", login.name));
    bed.applied(&[one]);
    was_loaded_as(&login, &bed, "a");
    // As itself, it needs nothing.
    let own = provider(&as_user(&deploy.name), &deploy.home, &["b"], &bed);
    bed.applied(&[own]);
    assert_eq!(
        read(&deploy.home, "who"),
        format!("{}\nchecked\n", deploy.name)
    );
}
