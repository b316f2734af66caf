//! The kind `rabbitmq` against a real broker: `tests/run beds kind-rabbitmq`.
//!
//! One broker, started by `tests/beds/rabbitmq.sh` in a folder and with ports of its own; lists and scripts
//! of the library; clients that know nothing but a binding's folder. Each way of loading gets a mesh of its
//! own on that broker, so that meshes share one all along.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test's helpers are tests too"
)]

mod bed;
mod broker;
mod client;
mod patience;

use std::fs;
use std::process::Command;
use std::time::Instant;

use grid::kinds::{Provider, Script};
use grid::words::{MeshName, ServiceName};

use bed::{Bed, Entry, Way, said};
use broker::Broker;
use client::hold_as_guest;

/// A step of the bed.
type Step = fn(&Bed<'_>);

const EXACTLY: &str = "the broker admits exactly the list";

/// What stands on the lists of one bed: two consumers of one vhost, whose name is not ASCII, and a second
/// generation of one of them.
struct Cast {
    billing: String,
    shop: String,
    cron: String,
    shared: String,
    wants: String,
}

impl Cast {
    fn of(bed: &Bed<'_>) -> Self {
        let name = bed.way.name;
        Self {
            billing: format!("billing-{name}"),
            shop: format!("shop-{name}"),
            cron: format!("cron-{name}"),
            shared: format!("ünder {name}"),
            wants: format!("vhost = 'ünder {name}'"),
        }
    }

    fn first(&self) -> Entry<'_> {
        (&self.billing, 1, &self.wants)
    }

    fn second(&self) -> Entry<'_> {
        (&self.billing, 2, &self.wants)
    }

    fn other(&self) -> Entry<'_> {
        (&self.shop, 1, &self.wants)
    }
}

fn user(bed: &Bed<'_>, entry: Entry<'_>) -> String {
    format!("{}.{}.{}", bed.mesh, entry.0, entry.1)
}

/// What every way of loading does, as it is seen by what it says.
fn a_list_is_added_rotated_revoked_and_emptied(bed: &Bed<'_>) {
    let cast = Cast::of(bed);
    let output = bed.check(&[cast.first()]);
    assert_eq!(output.status.code(), Some(1));
    let missing = format!("user {} is missing", user(bed, cast.first()));
    assert!(said(&output).starts_with(&missing), "{}", said(&output));
    bed.loads(
        &[cast.first(), cast.other()],
        "users: 2 written, 0 closed; vhosts: 1 made; permissions: 2 set, 0 taken back",
    );
    bed.loads(&[cast.first(), cast.other()], EXACTLY);
    bed.loads(
        &[cast.first(), cast.second()],
        "users: 1 written, 1 closed; vhosts: 0 made; permissions: 1 set, 0 taken back",
    );
    bed.loads(
        &[],
        "users: 0 written, 2 closed; vhosts: 0 made; permissions: 0 set, 0 taken back",
    );
}

/// The same, as clients see it. Leaves the second generation and the other consumer loaded.
fn clients_see_what_the_list_says_and_keep_their_connections(bed: &Bed<'_>) {
    let cast = Cast::of(bed);
    let (first, second, other) = (cast.first(), cast.second(), cast.other());
    bed.loads(
        &[first, other],
        "users: 2 written, 0 closed; vhosts: 0 made; permissions: 2 set, 0 taken back",
    );
    bed.round_trip(first);
    assert_eq!(bed.login(other), "open\n");

    // Loaded again: nothing is written, nobody is cut.
    let mut of_first = bed.hold(first);
    let mut of_other = bed.hold(other);
    let before = bed.broker.definitions();
    bed.loads(&[first, other], EXACTLY);
    assert_eq!(bed.broker.definitions(), before);
    of_first.lives();
    of_other.lives();

    // Rotated: both generations log in.
    bed.loads(
        &[first, second, other],
        "users: 1 written, 0 closed; vhosts: 0 made; permissions: 1 set, 0 taken back",
    );
    assert_eq!(bed.login(first), "open\n");
    assert_eq!(bed.login(second), "open\n");
    of_first.lives();
    let mut of_second = bed.hold(second);

    // Revoked: no login, its connection closed, the others alive.
    bed.loads(
        &[second, other],
        "users: 0 written, 1 closed; vhosts: 0 made; permissions: 0 set, 0 taken back",
    );
    let refused = "refused: ProbableAuthenticationError";
    assert!(bed.login(first).starts_with(refused));
    of_first.is_cut();
    of_second.lives();
    of_other.lives();

    // Wants that changed: both vhosts while both are in use, then one.
    let moved: Entry<'_> = (&cast.billing, 2, "read = '^orders$'");
    bed.loads(
        &[second, moved, other],
        "users: 0 written, 0 closed; vhosts: 1 made; permissions: 1 set, 0 taken back",
    );
    bed.round_trip(moved);
    bed.loads(
        &[moved, other],
        "users: 0 written, 0 closed; vhosts: 0 made; permissions: 0 set, 1 taken back",
    );
    assert!(bed.login(second).starts_with("refused: "));
    bed.loads(
        &[second, other],
        "users: 0 written, 0 closed; vhosts: 0 made; permissions: 1 set, 1 taken back",
    );

    // The empty list cuts the rest of the mesh, and nobody else.
    let mut neighbour = hold_as_guest(bed.broker);
    let of_second = bed.hold(second);
    bed.loads(
        &[],
        "users: 0 written, 2 closed; vhosts: 0 made; permissions: 0 set, 0 taken back",
    );
    of_second.is_cut();
    of_other.is_cut();
    neighbour.lives();
}

fn what_drifted_is_named_and_mended(bed: &Bed<'_>) {
    let cast = Cast::of(bed);
    let mark = bed.owner().mark();
    let entries = [cast.second(), cast.other()];
    let [second, other] = entries.map(|entry| user(bed, entry));
    let (shared, stray) = (&cast.shared, format!("stray-{}", bed.way.name));
    let hand = |arguments: &[&str]| {
        bed.broker.by_hand(arguments);
    };
    bed.loads(
        &entries,
        "users: 2 written, 0 closed; vhosts: 0 made; permissions: 2 set, 0 taken back",
    );
    hand(&["change_password", &second, "by-hand"]);
    hand(&["set_user_tags", &other, &mark, "administrator"]);
    hand(&[
        "set_permissions",
        "-p",
        shared,
        &second,
        "",
        "^a\\.\"{2}",
        ".*",
    ]);
    hand(&["set_permissions", "-p", "/", &second, "", "", ""]);
    hand(&["add_user", &stray, "by-hand"]);
    hand(&["set_user_tags", &stray, &mark]);
    bed.mends(
        &entries,
        &format!(
            "user {second} has another password\n\
             user {other} has other tags\n\
             user {second} has other permissions on vhost {shared}\n\
             user {stray} is not on the list\n\
             user {second} has permissions on vhost /, which is not on the list"
        ),
    );
    hand(&["delete_user", &second]);
    hand(&["clear_permissions", "-p", shared, &other]);
    bed.mends(
        &entries,
        &format!(
            "user {second} is missing\n\
             user {second} has no permissions on vhost {shared}\n\
             user {other} has no permissions on vhost {shared}"
        ),
    );
}

fn what_was_made_by_hand_is_refused_by_name_or_taken_as_it_is(bed: &Bed<'_>) {
    let cast = Cast::of(bed);
    let mark = bed.owner().mark();
    let (second, other, cron) = (cast.second(), cast.other(), &cast.cron);
    let foreign = user(bed, (cron, 1, ""));
    bed.broker.by_hand(&["add_user", &foreign, "by-hand"]);
    let tags = ["set_user_tags", &foreign, "monitoring"];
    bed.broker.by_hand(&tags);
    bed.broker.by_hand(&["add_vhost", cron]);
    bed.refuses(
        &[second, (cron, 1, "")],
        &format!(
            "user {foreign} exists, but without the mark {mark}\n\
             vhost {cron} exists, but without the mark {mark}; existing = true takes it as it is"
        ),
    );
    bed.broker.by_hand(&["delete_user", &foreign]);
    bed.refuses(
        &[second, (cron, 1, "existing = true\nvhost = 'nowhere'")],
        "vhost nowhere is wanted as an existing one, but is not there",
    );
    let taken: Entry<'_> = (cron, 1, "existing = true");
    let default: Entry<'_> = (cron, 2, "existing = true\nvhost = '/'");
    bed.loads(
        &[second, other, taken, default],
        "users: 2 written, 0 closed; vhosts: 0 made; permissions: 2 set, 0 taken back",
    );
    bed.round_trip(taken);
    bed.round_trip(default);
    bed.loads(
        &[],
        "users: 0 written, 4 closed; vhosts: 0 made; permissions: 0 set, 0 taken back",
    );
    // No vhost was deleted, and of those made by hand none was marked.
    let vhosts = bed.broker.by_hand(&["list_vhosts", "name", "tags"]);
    let tags = |name: &str| {
        let mut lines = vhosts.lines().filter_map(|line| line.split_once('\t'));
        let (_, tags) = lines.find(|(vhost, _)| *vhost == name).unwrap();
        tags.trim_matches(['[', ']']).to_owned()
    };
    assert_eq!(tags(&cast.shared), mark);
    assert_eq!(tags(&cast.billing), mark);
    assert_eq!(tags(cron), "");
    assert_eq!(tags("/"), "");
    assert!(!bed.broker.by_hand(&["list_users"]).contains(&mark));
}

/// Ten consumers to a vhost: a vhost costs the broker some 80 ms of its own, however it is made.
fn three_hundred_users_load_at_once(bed: &Bed<'_>) {
    let name = bed.way.name;
    let accounts: Vec<(String, String)> = (0..300)
        .map(|n| {
            (
                format!("many-{name}-{n}"),
                format!("vhost = '{name}-{}'", n / 10),
            )
        })
        .collect();
    let entries: Vec<Entry<'_>> = accounts
        .iter()
        .map(|(consumer, wants)| (consumer.as_str(), 1, wants.as_str()))
        .collect();
    let began = Instant::now();
    let output = bed.load(&entries);
    let took = began.elapsed();
    assert_eq!(
        said(&output),
        "users: 300 written, 0 closed; vhosts: 30 made; permissions: 300 set, 0 taken back\n"
    );
    bed.holds(&entries);
    // No test fails on a clock: what a machine has for a load is for whoever reads this.
    eprintln!("{name}: 300 users loaded in {took:.1?}; by default a load has 60 s");
    // By the public commands each account that is closed takes a process of its own.
    assert!(bed.way.public || bed.load(&[]).status.success());
}

/// A permission that is no regular expression: told before anything changes, or, by the public commands,
/// while importing.
fn a_permission_that_is_no_expression_fails_by_name(bed: &Bed<'_>) {
    let name = format!("wrong-{}", bed.way.name);
    let entry: Entry<'_> = (&name, 1, "read = '('");
    if bed.way.public {
        let output = bed.load(&[entry]);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains("missing )"), "{}", said(&output));
    } else {
        let user = format!("{}.{name}.1", bed.mesh);
        bed.refuses(
            &[entry],
            &format!(
                "the read permission of {user} on vhost {name} is no regular expression: missing )"
            ),
        );
    }
}

/// A broker that lacks a function is loaded by the public commands, without being told to.
fn a_broker_of_another_version_is_loaded_by_the_public_commands(bed: &Bed<'_>) {
    if bed.way.public {
        return; // what it would come to is what all steps do
    }
    let Script(text) = bed.broker.provider().kind().load(bed.owner());
    let changed = text.replace("{rabbit, is_running, 0}", "{rabbit, is_not_there, 0}");
    assert_ne!(text, changed);
    let arguments = bed.broker.folder.join("arguments");
    let called = || {
        let text = fs::read_to_string(&arguments).unwrap();
        text.matches("export_definitions").count()
    };
    let before = called();
    let name = format!("fallen-{}", bed.way.name);
    let output = bed.run(&Script(changed), &bed.list(&[(&name, 1, "")]));
    assert_eq!(
        said(&output),
        "users: 1 written, 0 closed; vhosts: 1 made; permissions: 1 set, 0 taken back\n"
    );
    assert_eq!(called(), before + 2);
    assert!(bed.load(&[]).status.success());
}

/// While the broker starts, a load waits for it.
fn a_load_waits_for_a_broker_that_is_starting(bed: &Bed<'_>) {
    let name = format!("early-{}", bed.way.name);
    bed.broker.by_hand(&["stop_app"]);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| bed.load(&[(&name, 1, "")]));
        bed.broker.by_hand(&["start_app"]);
        let output = load.join().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    });
    assert!(bed.load(&[]).status.success());
}

/// What a load says where it does not reach the broker, tried once, and what is to be done about it.
fn unreached(bed: &Bed<'_>, rabbitmqctl: &[&str]) -> (String, String) {
    let settings = serde_json::json!({ "rabbitmqctl": rabbitmqctl });
    let provider = Provider::read("rabbitmq", settings).unwrap().unwrap();
    let Script(text) = provider.kind().load(bed.owner());
    let once = text.replace("pauses='1 2 3 4 5 5 5'", "pauses=''");
    assert_ne!(text, once);
    let output = bed.run(&Script(once), &bed.list(&[]));
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(!said.to_lowercase().contains("cookie hash"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
    let lines: Vec<String> = said.lines().map(str::to_owned).collect();
    assert!(lines.len() <= 22, "{said}");
    let hint = grid::kinds::rabbitmq::remedy(&bed.service, &lines);
    (said.clone(), hint.unwrap_or_else(|| panic!("{said}")))
}

#[track_caller]
fn holds_all(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// No such node on a host that has others.
fn a_node_that_does_not_run_is_told_with_its_name(bed: &Bed<'_>) {
    let noting = bed.broker.folder.join("noting");
    let (said, hint) = unreached(bed, &[noting.to_str().unwrap(), "-n", "nobody@localhost"]);
    let told = [
        "unable to perform an operation on node 'nobody@localhost'",
        "epmd reports: node 'nobody' not running at all",
        "other nodes on localhost: ['bed-",
        "rabbitmqctl failed (exit 69); nothing was changed\n",
    ];
    holds_all(&said, &told);
    holds_all(
        &hint,
        &["as the node nobody@localhost", "RABBITMQ_NODENAME="],
    );
}

/// With the cookie that a user gets who has none.
fn another_cookie_is_told_with_the_user_who_has_it(bed: &Bed<'_>) {
    let home = bed.broker.folder.join("other-home");
    fs::create_dir_all(&home).unwrap();
    let text = format!(
        ". '{}'; HOME='{}'; exec rabbitmqctl \"$@\"",
        bed.broker.folder.join("env").display(),
        home.display()
    );
    let (said, hint) = unreached(bed, &["sh", "-c", &text, "sh"]);
    holds_all(&said, &["Erlang distribution failed", "Erlang cookie"]);
    holds_all(&hint, &["cookie", "`as = \"rabbitmq\"`"]);
}

/// The command in PATH, which Debian's package puts there, run by a login that is neither root nor rabbitmq.
fn a_login_that_the_package_refuses_is_told_which_it_takes(bed: &Bed<'_>) {
    let mut words = vec!["/usr/sbin/rabbitmqctl"];
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout == b"0\n" {
        let nobody = [
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "env",
            "HOME=/",
        ];
        words.splice(0..0, nobody);
    }
    let (said, hint) = unreached(bed, &words);
    holds_all(
        &said,
        &["lines are left out\n", "Only root or rabbitmq should run"],
    );
    holds_all(&hint, &["`as = \"rabbitmq\"`", "`become = \"sudo\"`"]);
}

/// It takes long where no name server answers.
fn a_host_that_does_not_resolve_is_told_with_what_does(bed: &Bed<'_>) {
    if bed.way.public {
        return;
    }
    let noting = bed.broker.folder.join("noting");
    let (said, hint) = unreached(
        bed,
        &[noting.to_str().unwrap(), "-n", "rabbit@no-such-host"],
    );
    holds_all(&said, &["unable to connect to epmd", "on no-such-host: "]);
    holds_all(&hint, &["rabbit@no-such-host", "itself resolves"]);
}

#[test]
#[ignore = "starts a broker: tests/run beds kind-rabbitmq"]
fn a_real_broker_admits_exactly_the_list() {
    let installed = Command::new("bash")
        .args(["-c", "command -v rabbitmqctl busybox dash >/dev/null && . tests/beds/client.sh && client_install"])
        .status()
        .unwrap();
    assert!(
        installed.success(),
        "rabbitmq-server, busybox, dash, python3 with venv, and pika"
    );
    let broker = Broker::start();
    let way = |name, shell, applets, public, thorough| Way {
        name,
        shell,
        applets,
        public,
        thorough,
    };
    let dash: &'static [&'static str] = &["dash"];
    let busybox: &'static [&'static str] = &["busybox", "sh"];
    let bash: &'static [&'static str] = &["bash", "--posix"];
    for (n, way) in [
        way("eval-dash", dash, false, false, true),
        way("eval-bash", bash, false, false, false),
        way("eval-busybox", busybox, true, false, false),
        way("public-dash", dash, false, true, false),
        way("public-bash", bash, false, true, false),
        way("public-busybox", busybox, true, true, true),
    ]
    .into_iter()
    .enumerate()
    {
        let bed = Bed {
            broker: &broker,
            way,
            mesh: MeshName::new(&format!("mesh-{n}")).unwrap(),
            service: ServiceName::new("broker").unwrap(),
        };
        let thorough: &[(&str, Step)] = &[
            (
                "clients",
                clients_see_what_the_list_says_and_keep_their_connections,
            ),
            ("drift", what_drifted_is_named_and_mended),
            (
                "by hand",
                what_was_made_by_hand_is_refused_by_name_or_taken_as_it_is,
            ),
            (
                "no expression",
                a_permission_that_is_no_expression_fails_by_name,
            ),
            ("starting", a_load_waits_for_a_broker_that_is_starting),
            ("300 users", three_hundred_users_load_at_once),
            (
                "no host",
                a_host_that_does_not_resolve_is_told_with_what_does,
            ),
        ];
        let steps: &[(&str, Step)] = &[
            ("list", a_list_is_added_rotated_revoked_and_emptied),
            ("no node", a_node_that_does_not_run_is_told_with_its_name),
            (
                "another cookie",
                another_cookie_is_told_with_the_user_who_has_it,
            ),
            (
                "login",
                a_login_that_the_package_refuses_is_told_which_it_takes,
            ),
            (
                "other version",
                a_broker_of_another_version_is_loaded_by_the_public_commands,
            ),
        ];
        for (name, step) in steps
            .iter()
            .chain(if way.thorough { thorough } else { &[] })
        {
            let began = Instant::now();
            step(&bed);
            eprintln!("{}, {name}: {:.1?}", way.name, began.elapsed());
        }
    }
    let arguments = fs::read_to_string(broker.folder.join("arguments")).unwrap();
    assert!(arguments.contains("-q eval\n") && arguments.contains("delete_user mesh-3."));
    assert!(!arguments.contains("planted-"), "a secret in an argument");
    let hash = |word: &str| {
        word.len() >= 40
            && word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
    };
    assert!(
        !arguments.split_whitespace().any(hash),
        "a hash in an argument"
    );
}
