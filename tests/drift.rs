//! What `grid status --probe` says of a machine on which somebody changed what was sent, and that a push puts it back. Over a
//! real sshd. Needs root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test may fall"
)]

mod delivery_bed;
mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use delivery_bed::sshd::Sshd;
use support::Bench;
use support::schema::hold;

/// A machine behind sshd with two files in its release and one that is installed.
struct Field {
    bench: Bench,
    sshd: Sshd,
}

impl Field {
    fn new() -> Self {
        let sshd = Sshd::start();
        let bench = Bench::new(&format!(
            r#"
[mesh]
name = "prod"

[nodes.atlas]
address = "127.0.0.1"
port = {}
user = "root"
identity = "{}"
root = "{}"

[services.notice]
node = "atlas"

[[services.notice.files]]
path = "notice.txt"
content = "here"

[[services.notice.files]]
path = "more.txt"
content = "more"

[[services.notice.files]]
path = "{}"
content = "installed"
"#,
            sshd.port,
            sshd.home().join(".ssh/id_ed25519").display(),
            sshd.dir.path().join("root").display(),
            sshd.dir.path().join("etc/notice").display(),
        ));
        fs::copy(sshd.known_hosts(), bench.path("known_hosts")).unwrap();
        let field = Self { bench, sshd };
        field.bench.grid(&["push", "--all"]).exits(0);
        field
    }

    fn root(&self) -> PathBuf {
        self.sshd.dir.path().join("root")
    }

    fn installed(&self) -> PathBuf {
        self.sshd.dir.path().join("etc/notice")
    }

    fn sent(&self, path: &str) -> PathBuf {
        self.root().join("current/services/notice").join(path)
    }

    /// Everything on the machine: paths, links, modes, times.
    fn everything(&self) -> String {
        delivery_bed::sshd::runs(
            "find",
            &[
                self.root().to_str().unwrap(),
                "-printf",
                "%p %l %m %s %T@ %C@\n",
            ],
        )
    }

    /// A probe, which changes nothing.
    fn probe(&self, code: i32) -> String {
        let before = self.everything();
        let seen = self
            .bench
            .grid(&["status", "--probe", "--exit-code"])
            .exits(code);
        assert_eq!(self.everything(), before, "a probe changes nothing");
        let dir = self.sshd.dir.path().to_str().unwrap();
        seen.all().replace(dir, "[MACHINE]")
    }

    fn push(&self, code: i32) -> String {
        let seen = self.bench.grid(&["push", "atlas"]).exits(code);
        let dir = self.sshd.dir.path().to_str().unwrap();
        seen.all().replace(dir, "[MACHINE]")
    }
}

#[test]
fn files_that_were_edited_or_removed_by_hand_are_told_and_a_push_puts_them_back() {
    let field = Field::new();
    insta::assert_snapshot!(field.probe(0), @r#"
    $ grid status --probe --exit-code
    prod  last push 1
    atlas  current      it answers
    1 machine: 1 current
    "#);
    fs::write(field.sent("notice.txt"), "there").unwrap();
    fs::remove_file(field.sent("more.txt")).unwrap();
    fs::set_permissions(field.installed(), fs::Permissions::from_mode(0o600)).unwrap();
    insta::assert_snapshot!(field.probe(6), @r#"
    $ grid status --probe --exit-code
    prod  last push 1
    atlas  drifted      3 files differ from what was sent: services/notice/more.txt, services/notice/notice.txt, [MACHINE]/etc/notice
    1 machine: 1 drifted
    ! next: `grid push atlas` puts back what was sent to atlas
    [exit 6]
    "#);
    insta::assert_snapshot!(field.push(0), @r#"
    $ grid push atlas
    prod  push 2  maria@lap3
    contact  atlas  named    mended
             services/notice/more.txt was not as sent
             services/notice/notice.txt was not as sent
             [MACHINE]/etc/notice was not as installed
    done: 0 machines sent, 0 failed, 1 already current
    "#);
    assert_eq!(
        fs::read_to_string(field.sent("notice.txt")).unwrap(),
        "here"
    );
    field.probe(0);
    fs::remove_file(field.installed()).unwrap();
    insta::assert_snapshot!(field.probe(6), @r#"
    $ grid status --probe --exit-code
    prod  last push 2
    atlas  drifted      1 file differs from what was sent: [MACHINE]/etc/notice
    1 machine: 1 drifted
    ! next: `grid push atlas` puts back what was sent to atlas
    [exit 6]
    "#);
    field.push(0);
    field.probe(0);
    // What says what was sent is watched too.
    fs::write(field.root().join("current/manifest.json"), "{}").unwrap();
    insta::assert_snapshot!(field.probe(6), @r#"
    $ grid status --probe --exit-code
    prod  last push 3
    atlas  drifted      1 file differs from what was sent: manifest.json
    1 machine: 1 drifted
    ! next: `grid push atlas` puts back what was sent to atlas
    [exit 6]
    "#);
    field.push(0);
    field.probe(0);
}

#[test]
fn a_current_that_is_gone_or_leads_elsewhere_is_told_and_a_push_puts_it_back() {
    let field = Field::new();
    let current = field.root().join("current");
    let first = fs::read_link(&current).unwrap();
    fs::remove_file(&current).unwrap();
    insta::assert_snapshot!(field.probe(6), @r#"
    $ grid status --probe --exit-code
    prod  last push 1
    atlas  drifted      its `current` is gone
    1 machine: 1 drifted
    ! next: `grid push atlas` puts back what was sent to atlas
    [exit 6]
    "#);
    insta::assert_snapshot!(field.push(0), @r#"
    $ grid push atlas
    prod  push 2  maria@lap3
    contact  atlas  named    mended
             current did not lead to what was sent
    done: 0 machines sent, 0 failed, 1 already current
    "#);
    field.probe(0);
    // Turned back to the release before.
    field.bench.edit("\"more\"", "\"more of it\"");
    field.push(0);
    let second = fs::read_link(&current).unwrap();
    fs::remove_file(&current).unwrap();
    symlink(&first, &current).unwrap();
    insta::assert_snapshot!(field.probe(6), @r#"
    $ grid status --probe --exit-code
    prod  last push 3
    atlas  drifted      its `current` leads to another release than was sent ([SHORT])
    1 machine: 1 drifted
    ! next: `grid push atlas` puts back what was sent to atlas
    [exit 6]
    "#);
    field.push(0);
    assert_eq!(fs::read_link(&current).unwrap(), second);
    field.probe(0);
    // The release itself is gone: all of it is sent again.
    fs::remove_dir_all(field.root().join(&second)).unwrap();
    insta::assert_snapshot!(field.probe(6), @r#"
    $ grid status --probe --exit-code
    prod  last push 4
    atlas  drifted      its `current` is gone
    1 machine: 1 drifted
    ! next: `grid push atlas` puts back what was sent to atlas
    [exit 6]
    "#);
    field.push(0);
    assert_eq!(
        fs::read_to_string(field.sent("more.txt")).unwrap(),
        "more of it"
    );
    field.probe(0);
}

#[test]
fn what_stands_in_the_place_of_current_is_told_and_no_push_takes_it_away() {
    let field = Field::new();
    let current = field.root().join("current");
    fs::remove_file(&current).unwrap();
    fs::create_dir(&current).unwrap();
    fs::write(current.join("mine"), "").unwrap();
    insta::assert_snapshot!(field.probe(6), @r#"
    $ grid status --probe --exit-code
    prod  last push 1
    atlas  drifted      [MACHINE]/root/current is not a symbolic link
    1 machine: 1 drifted
    ! next: move what stands there on atlas away, then `grid push atlas` puts in force again what was sent
    [exit 6]
    "#);
    let json = field.bench.grid(&["status", "--probe", "--json"]).exits(0);
    hold("status", &[serde_json::from_slice(json.raw()).unwrap()]);
    insta::assert_snapshot!(field.push(4), @r#"
    $ grid push atlas
    prod  push 2  maria@lap3
    contact  atlas  named    failed at switching: [MACHINE]/root/current is not a symbolic link
             it holds what it held; mending it was tried, and came as far as that
    incomplete: 0 machines sent, 1 failed, 0 already current
    failed      atlas  failed at switching: [MACHINE]/root/current is not a symbolic link
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: atlas: move it away on the machine; `grid push` of the machine then puts in force again what was sent
    ! next: mend what is wrong on atlas, then `grid push atlas` finishes this
    [exit 4]
    "#);
    fs::rename(&current, field.root().join("mine")).unwrap();
    field.push(0);
    field.probe(0);
}

#[test]
fn a_file_that_becomes_a_folder_of_files_and_one_again_is_delivered() {
    let field = Field::new();
    let at = field.installed();
    let path = at.to_str().unwrap().to_owned();
    field.bench.edit(&path, &format!("{path}/deep/part"));
    field.push(0);
    assert_eq!(
        fs::read_to_string(at.join("deep/part")).unwrap(),
        "installed"
    );
    field.probe(0);
    field.bench.edit(&format!("{path}/deep/part"), &path);
    field.push(0);
    assert_eq!(fs::read_to_string(&at).unwrap(), "installed");
    field.probe(0);
    // What somebody else has there stays, and is told.
    fs::remove_file(&at).unwrap();
    field.bench.edit(&path, &format!("{path}/deep/part"));
    field.push(0);
    fs::write(at.join("deep/theirs"), "").unwrap();
    field.bench.edit(&format!("{path}/deep/part"), &path);
    insta::assert_snapshot!(field.push(4), @r#"
    $ grid push atlas
    prod  push 5  maria@lap3
    round 0  atlas  named    2 files of notice changed             failed at installing of notice: [MACHINE]/etc/notice is a folder
             put back: the previous release is in force again
    incomplete: 0 machines sent, 1 failed, 0 already current
    failed      atlas  failed at installing of notice: [MACHINE]/etc/notice is a folder
    ! exit 4: some machine could not be sent to, applied or checked, or waits for one
    ! next: atlas: something that grid did not put there stands in the way: move it away on the machine, or give the file another path
    ! next: mend what is wrong on atlas, then `grid push --behind` finishes this
    [exit 4]
    "#);
    assert!(at.join("deep/theirs").exists());
    assert_eq!(
        fs::read_to_string(at.join("deep/part")).unwrap(),
        "installed"
    );
}
