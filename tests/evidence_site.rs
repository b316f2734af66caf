//! `grid evidence SITE` and `grid evidence clear SITE` from the controller, over a real sshd and beside a real daemon. Needs
//! root, as CI has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

mod delivery_bed;
mod site_bed;
mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use delivery_bed::sshd::{Login, Sshd};
use serde_json::Value;
use site_bed::client::{Caller, post, report};
use site_bed::{Authority, Site, until};
use support::schema::hold;
use support::{Bench, Seen};

const EPOCH: &str = "0123456789abcdef0123456789abcdef";

/// A controller, the sshd of a machine, and the site's daemon on it.
struct Controller {
    bench: Bench,
    sshd: Sshd,
    site: Site,
}

impl Controller {
    fn new() -> Self {
        let mut site = Site::new("atlas", &Authority::new());
        site.start();
        let controller = Self {
            bench: Bench::new("[mesh]\nname = \"prod\"\n"),
            sshd: Sshd::start(),
            site,
        };
        controller.sshd.config("");
        controller.declare("ssh", "user = \"root\"");
        controller
    }

    fn declare(&self, courier: &str, login: &str) {
        let grid = env!("CARGO_BIN_EXE_grid");
        let state = self.site.folder().join("state");
        let text = format!(
            "[mesh]\nname = \"prod\"\n[signals]\nmode = \"poll\"\nstate = {state:?}\nsettings = {{ special_addresses = true }}\n\
             check = [{grid:?}, \"site\", \"check\", \"--config\", \"{{release}}/site.toml\"]\n\
             [nodes.atlas]\naddress = \"127.0.0.1\"\nport = {}\ncourier = {courier:?}\n{login}\n\
             [nodes.borealis]\naddress = \"127.0.0.2\"\nport = 1\nuser = \"root\"\n",
            self.sshd.port
        );
        self.bench.file("mesh.toml", &text);
    }

    #[track_caller]
    fn grid(&self, arguments: &[&str], exit: i32) -> Seen {
        let home = self.sshd.home();
        let home = ("HOME", home.to_str().unwrap());
        self.bench.grid_with(home, arguments).exits(exit)
    }

    fn json(&self, arguments: &[&str], exit: i32) -> Value {
        let all = [arguments, &["--json"]].concat();
        let view: Value = serde_json::from_slice(self.grid(&all, exit).raw()).unwrap();
        let schema = if arguments.contains(&"clear") {
            "evidence-clear"
        } else {
            "evidence"
        };
        hold(schema, std::slice::from_ref(&view));
        view
    }

    fn says(&self, sequence: u64, rejected: u64, clean: bool) -> u16 {
        let mut local = Caller::connect(self.site.socket(), Some(&self.site.identity)).unwrap();
        let request = post(&report(EPOCH, sequence, rejected, clean));
        local.ask(&request).unwrap().status
    }
}

#[test]
fn a_sites_evidence_is_shown_and_cleared_over_every_courier_while_its_daemon_runs() {
    let controller = Controller::new();
    until("there is a document", || {
        controller.site.json("evidence.json")
    });
    let view = controller.json(&["evidence", "atlas"], 0);
    assert_eq!(
        (&view["site"], &view["condition"]["reason"]),
        (&"atlas".into(), &"NoReports".into())
    );
    for (round, courier) in [(1, "ssh"), (2, "openssh"), (3, "local")] {
        controller.declare(courier, "user = \"root\"");
        assert_eq!(controller.says(2 * round, round, false), 204);
        let seen = controller
            .grid(&["evidence", "atlas", "--exit-code"], 6)
            .all();
        assert!(
            seen.contains("atlas  GatewayIngest  False  Rejected"),
            "{seen}"
        );
        assert!(seen.contains(&format!("epoch {EPOCH}")), "{seen}");
        let clear = ["evidence", "clear", "atlas", "--epoch", EPOCH];
        let view = controller.json(&clear, 0);
        assert_eq!(
            (&view["site"], &view["cleared"][0]),
            (&"atlas".into(), &EPOCH.into())
        );
        controller.grid(&["evidence", "atlas", "--exit-code"], 0);
        // The daemon's next write is held against what was cleared, and does not undo it.
        assert_eq!(controller.says(2 * round, round, false), 204);
        assert_eq!(controller.says(2 * round + 1, round, true), 204);
        let view = controller.json(&["evidence", "atlas"], 0);
        assert_eq!(view["processes"][0]["rejected"], round.to_string());
        let seen = controller.grid(&clear, 0).all();
        assert!(seen.contains("nothing was changed"), "{seen}");
    }
    let history = controller.grid(&["history", "-v"], 0).all();
    assert_eq!(
        history.matches("evidence clear atlas --epoch").count(),
        6,
        "{history}"
    );
    assert_eq!(
        history
            .matches(&format!("cleared: atlas (epoch {EPOCH})"))
            .count(),
        3,
        "{history}"
    );
    assert!(!history.contains("killed or lost"), "{history}");
}

#[test]
fn who_is_misspelt_down_or_no_site_is_told_and_the_journal_has_it() {
    let controller = Controller::new();
    let seen = controller.grid(&["evidence", "atlsa"], 2).all();
    assert!(seen.contains("did you mean atlas?"), "{seen}");
    let seen = controller
        .grid(&["evidence", "clear", "atlsa", "--stale"], 2)
        .all();
    assert!(seen.contains("did you mean atlas?"), "{seen}");
    let unknown = ["evidence", "clear", "atlas", "--epoch", EPOCH];
    let seen = controller.grid(&unknown, 2).all();
    assert!(seen.contains("no process with epoch"), "{seen}");

    for arguments in [
        &["evidence", "borealis"][..],
        &["evidence", "clear", "borealis", "--stale"],
    ] {
        let seen = controller.grid(arguments, 4).all();
        assert!(
            seen.contains("borealis: connecting: ") && seen.contains("refused"),
            "{seen}"
        );
        assert!(seen.contains("! next: "), "{seen}");
    }
    let history = controller.grid(&["history", "-v"], 0).all();
    assert!(history.contains("not reached: borealis"), "{history}");
    assert!(history.contains("refused: atlas"), "{history}");

    controller.bench.edit(
        "check = [",
        "check = [\"/nowhere/grid\", \"site\", \"check\"] #",
    );
    let seen = controller
        .grid(&["evidence", "clear", "atlas", "--stale"], 4)
        .all();
    assert!(seen.contains("/nowhere/grid is not there"), "{seen}");
    let state = format!("state = {:?}", controller.site.folder().join("state"));
    controller.bench.edit(&state, "state = \"/nowhere\"");
    let seen = controller.grid(&["evidence", "atlas"], 4);
    let told = seen.stderr();
    assert!(
        told.contains("there is no /nowhere/evidence.json there"),
        "{told}"
    );
    assert!(told.contains("next: the site daemon writes it"), "{told}");
    // To clear says the same, and what to do.
    let check = "check = [\"/nowhere/grid\", \"site\", \"check\"] #";
    controller.bench.edit(check, "check = [");
    let clear = controller.grid(&["evidence", "clear", "atlas", "--stale"], 4);
    assert_eq!(clear.stderr(), told);
    controller.bench.file(
        "mesh.toml",
        "[mesh]\nname = \"prod\"\n[nodes.atlas]\naddress = \"127.0.0.1\"\n",
    );
    let seen = controller.grid(&["evidence", "atlas"], 2).all();
    assert!(seen.contains("atlas is no site"), "{seen}");
}

#[test]
fn an_evidence_that_could_not_be_cleared_says_nothing_of_what_was_pushed() {
    let bench = Bench::new(
        "[mesh]\nname = \"prod\"\n[signals]\nmode = \"poll\"\n[nodes.borealis]\naddress = \"127.0.0.2\"\nport = 1\nuser = \"root\"\n",
    );
    bench.grid(&["push", "borealis"]).exits(4);
    let before = bench.grid(&["status"]).exits(0).all();
    assert!(
        before.contains("push 1: not reached, connecting: "),
        "{before}"
    );
    let clear = ["evidence", "clear", "borealis", "--stale"];
    bench.grid(&clear).exits(4);
    let history = bench.grid(&["history", "-v"]).exits(0).all();
    assert!(history.contains("evidence clear borealis"), "{history}");
    assert_eq!(bench.grid(&["status"]).exits(0).all(), before);
}

#[test]
fn a_login_that_may_not_read_it_is_told_so_and_becomes_root_where_that_is_declared() {
    let controller = Controller::new();
    until("there is a document", || {
        controller.site.json("evidence.json")
    });
    let open = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(controller.site.folder());
    let folder = tempfile::tempdir().unwrap();
    // A shell that reads its start-up file also for a command that comes over ssh.
    let login = Login::new(folder.path(), "/bin/bash");
    controller.declare("ssh", &format!("user = {:?}", login.name));
    let seen = controller.grid(&["evidence", "atlas"], 4).all();
    assert!(seen.contains("its login may not read"), "{seen}");
    assert!(seen.contains("become = \"sudo\""), "{seen}");
    // A start-up file that prints does not get into the document.
    login.file(".profile", "echo welcome\n");
    login.file(".bashrc", "echo welcome\n");
    let by_sudo = format!("user = {:?}\nbecome = \"sudo\"", login.name);
    controller.declare("ssh", &by_sudo);
    let seen = controller.grid(&["evidence", "atlas"], 4).all();
    assert!(seen.contains("NOPASSWD"), "{seen}");
    login.sudoer("ALL=(ALL) NOPASSWD: ALL");
    let view = controller.json(&["evidence", "atlas"], 0);
    assert_eq!(view["condition"]["reason"], "NoReports");
    controller.grid(&["evidence", "clear", "atlas", "--stale"], 0);
    // A damaged one is the machine's matter.
    std::fs::write(controller.site.state("evidence.json"), "{").unwrap();
    let seen = controller.grid(&["evidence", "atlas"], 4).all();
    assert!(seen.contains("it is damaged"), "{seen}");
}
