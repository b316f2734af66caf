//! People who come and go: who may open the stored secrets, and who not any more.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall"
)]

mod support;

use std::path::PathBuf;

use support::{Bench, Seen, all_current, told};

/// Somebody with an identity of their own.
struct Person {
    _home: Bench,
    identity: PathBuf,
    key: String,
}

impl Person {
    fn new() -> Self {
        let home = Bench::new("[mesh]\nname = \"other\"\n");
        let identity = home.path("../config/grid/identity.txt");
        let key = public_key(&identity);
        Self {
            _home: home,
            identity,
            key,
        }
    }

    fn grid(&self, bench: &Bench, arguments: &[&str]) -> Seen {
        bench.grid_with(
            ("GRID_IDENTITY", self.identity.to_str().unwrap()),
            arguments,
        )
    }
}

fn public_key(identity: &std::path::Path) -> String {
    let text = std::fs::read_to_string(identity).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix("# public key: "));
    line.unwrap().to_owned()
}

fn name_them(bench: &Bench, people: &[(&str, &str)]) {
    let all: Vec<String> = people
        .iter()
        .map(|(name, key)| format!("{{ name = \"{name}\", key = \"{key}\" }}"))
        .collect();
    let text = bench.read("mesh.toml");
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("recipients"))
        .map(str::to_owned)
        .collect();
    let head = lines.iter().position(|line| line == "[mesh]").unwrap();
    lines.insert(head + 1, format!("recipients = [{}]", all.join(", ")));
    bench.file("mesh.toml", &(lines.join("\n") + "\n"));
}

#[test]
fn somebody_who_was_taken_out_of_the_recipients_opens_nothing_after_the_next_push() {
    let bench = all_current();
    let (carol, otto) = (Person::new(), Person::new());
    name_them(&bench, &[("otto", &otto.key), ("carol", &carol.key)]);
    let before = carol.grid(&bench, &["provisions"]);
    assert_eq!(before.code(), 8, "{}", before.all());
    // With nothing to send, too.
    bench.grid(&["push", "--behind"]).exits(0);
    carol
        .grid(&bench, &["provisions", "--show-secrets"])
        .exits(0);

    name_them(&bench, &[("otto", &otto.key)]);
    let status = bench.grid(&["status"]).exits(0);
    let json = bench.grid(&["status", "--json"]).exits(0);
    let view: serde_json::Value = serde_json::from_slice(json.raw()).unwrap();
    assert_eq!(view["to_be_taken_out"], serde_json::json!([carol.key]));
    let planned = bench.grid(&["push", "--behind", "--dry-run"]).exits(0);
    carol.grid(&bench, &["provisions"]).exits(0);
    let pushed = bench.grid(&["push", "--behind"]).exits(0);
    let hers = carol.grid(&bench, &["provisions"]).exits(8);
    otto.grid(&bench, &["provisions"]).exits(0);
    // Said once; and it is in the journal.
    let again = bench.grid(&["push", "--behind"]).exits(0);
    assert!(!again.all().contains("carol"), "{}", again.all());
    let history = bench.grid(&["history", "--last", "3"]).exits(0);
    carol.grid(&bench, &["provisions"]).exits(8);
    insta::assert_snapshot!(told(&[status, planned, pushed, hers, history]), @"
    $ grid status
    try  last push 2
    atlas     current
    borealis  current
    cygnus    current
    3 machines: 3 current
    ! note: carol opens the store although `recipients` in mesh.toml does not name that key: the next push seals it anew without it
    $ grid push --behind --dry-run
    try  dry run of push 3  maria@lap3
    dry run: 0 machines to send, 0 failed, 3 already current
    ! note: carol opens the store although `recipients` in mesh.toml does not name that key: the next push seals it anew without it
    ! nothing was minted, sent or written
    $ grid push --behind
    try  push 3  maria@lap3
    done: 0 machines sent, 0 failed, 3 already current
    ! note: carol opens the store no more: all of it was sealed anew, under another key. What it held until now carol may know, and a copy of its folder from before still opens for that key: `grid rotate --all` and a push renew the accounts
    $ grid provisions
    ! error: the store at ./.grid is sealed for somebody else (maria@lap3 [KEY], otto [KEY]), and your identity is [KEY]
    ! next: if one of these keys was yours: put the backup of that identity back in its place, or name it with $GRID_IDENTITY
    ! next: if they are others': `recipients` in mesh.toml has to name your key too, and then one of them to push
    ! next: if nobody has such a key any more: move ./.grid away, then `grid push --all --take-over` makes all accounts anew
    [exit 8]
    $ grid history --last 3
    [WHEN]  ok          maria@lap3  the store was sealed anew, as `grid push --behind` began
          taken out of who may open the store: carol [KEY]
    [WHEN]  ok  push 3  maria@lap3  grid push --behind
    [WHEN]  ok  push 4  maria@lap3  grid push --behind
    ");
}

#[test]
fn any_command_that_writes_takes_out_who_is_named_no_more() {
    let bench = all_current();
    let carol = Person::new();
    let all = [
        (&["rotate", "accounts/billing"][..], 0),
        (&["hold", "atlas", "in the rack"], 0),
        // Refused after it, and told by the journal all the same.
        (&["rotate", "accounts/biling"], 2),
    ];
    for (nth, (arguments, code)) in all.into_iter().enumerate() {
        name_them(&bench, &[("carol", &carol.key)]);
        bench.grid(&["push", "--behind"]);
        carol.grid(&bench, &["provisions"]).exits(0);
        name_them(&bench, &[]);
        let seen = bench.grid(arguments).exits(code);
        let told = seen.stderr().contains("carol opens the store no more");
        assert!(told, "{}", seen.all());
        let history = bench.grid(&["history"]).exits(0);
        let told = history.all().matches("the store: carol").count();
        assert_eq!(told, nth + 1, "{}", history.all());
        carol.grid(&bench, &["provisions"]).exits(8);
    }
}

#[test]
fn who_made_the_store_stays_when_another_operator_pushes_and_one_named_no_more_is_told() {
    let bench = all_current();
    let otto = Person::new();
    let maria = public_key(&bench.path("../config/grid/identity.txt"));
    name_them(&bench, &[("otto", &otto.key)]);
    bench.grid(&["push", "--behind"]).exits(0);
    let his = otto.grid(&bench, &["push", "--behind"]).exits(0);
    assert!(!his.all().contains("store"), "{}", his.all());
    bench.grid(&["status"]).exits(0);
    // He takes himself out, and is told that it is not done yet.
    name_them(&bench, &[]);
    let his = otto.grid(&bench, &["push", "--behind"]).exits(0);
    otto.grid(&bench, &["status"]).exits(0);
    bench.grid(&["push", "--behind"]).exits(0);
    otto.grid(&bench, &["status"]).exits(8);
    // Once she is named like the others, she goes like the others.
    name_them(&bench, &[("otto", &otto.key), ("maria", &maria)]);
    bench.grid(&["push", "--behind"]).exits(0);
    name_them(&bench, &[("otto", &otto.key)]);
    let hers = otto.grid(&bench, &["push", "--behind"]).exits(0);
    assert!(
        hers.stderr().contains("maria opens the store no more"),
        "{}",
        hers.all()
    );
    bench.grid(&["status"]).exits(8);
    insta::assert_snapshot!(his.all(), @r#"
    $ grid push --behind
    try  push 4  maria@lap3
    done: 0 machines sent, 0 failed, 3 already current
    ! note: your identity, [KEY], opens this store until somebody else writes to it: `recipients` in mesh.toml does not name it
    "#);
}

#[test]
fn a_secret_that_is_not_sealed_yet_is_to_be_sealed_for_whoever_made_the_store_too() {
    let bench = all_current();
    let maker = public_key(&bench.path("../config/grid/identity.txt"));
    let (carol, otto) = (Person::new(), Person::new());
    name_them(&bench, &[("otto", &otto.key), ("carol", &carol.key)]);
    bench.grid(&["push", "--behind"]).exits(0);
    // Also by the command that takes somebody out.
    name_them(&bench, &[("otto", &otto.key)]);
    bench.edit("source = \"notice.txt\"", "template = \"notice.j2\"");
    bench.edit(
        "[services.notice]\n",
        "[secrets.api]\nfile = \"api.age\"\n\n[services.notice]\n",
    );
    bench.file("api.age", "hunter2\n");
    bench.file("notice.j2", "{{ secrets.api }}\n");
    let raw = |seen: &Seen| String::from_utf8(seen.bytes()).unwrap();
    let seal = format!(
        "next: seal what is in it with `age -r {maker} -r {} -o NEW api.age` and put NEW in its place",
        otto.key
    );
    for pushed in [
        otto.grid(&bench, &["push", "cygnus"]),
        bench.grid(&["push", "cygnus"]),
    ] {
        let next = format!("{seal}, then `grid push --behind` finishes this");
        assert!(raw(&pushed).contains(&next), "{}", pushed.all());
    }
    let status = otto.grid(&bench, &["status"]);
    assert!(raw(&status).contains(&seal), "{}", status.all());
    let composed = otto.grid(&bench, &["compose", "cygnus"]);
    assert!(raw(&composed).contains(&seal), "{}", composed.all());
    let planned = otto.grid(&bench, &["push", "cygnus", "--dry-run"]);
    assert!(raw(&planned).contains(&seal), "{}", planned.all());
}
