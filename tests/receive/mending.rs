//! What somebody changed on the machine, or another store sent there.

use std::fs;

use grid::delivery::{FailedStep, Outcome};

use crate::delivery_bed::{Bed, Shell, bundle, name, service};
use crate::under_every_shell;

under_every_shell!(
    what_was_edited_by_hand_is_mended_at_a_contact,
    a_list_that_was_lost_is_loaded_again_at_a_contact,
    what_was_loaded_is_told_apart_from_what_took_its_files,
    a_service_whose_file_was_edited_is_applied_again_by_a_send_too,
    a_current_that_is_a_folder_is_left_alone,
    what_is_taken_over_is_applied_though_its_release_lies_there_still,
    a_contact_that_takes_over_looks_at_what_the_other_store_left_alone,
);

fn what_was_edited_by_hand_is_mended_at_a_contact(shell: Shell) {
    let mut bed = Bed::new(shell);
    let services = [
        service("app").file("a", "1").file("b", "2").logged(&bed),
        service("other").file("a", "1").logged(&bed),
    ];
    bed.applied(&services);
    bed.log();
    let folder = bed.current().join("services/app");
    fs::write(folder.join("a"), "edited").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(folder.join("b"), open).unwrap();
    let applied = bed.applied(&services);
    assert_eq!(
        applied.mended,
        [
            "services/app/a was not as sent",
            "services/app/b was not as sent"
        ]
    );
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    assert_eq!(bed.mode(folder.join("b")), 0o644);
    assert_eq!(bed.log(), ["apply app", "check app", "check other"]);
    let applied = bed.applied(&services);
    assert!(applied.mended.is_empty(), "{:?}", applied.mended);
}

fn a_list_that_was_lost_is_loaded_again_at_a_contact(shell: Shell) {
    let mut bed = Bed::new(shell);
    let services = [service("broker").grants(&["app"], &bed)];
    bed.applied(&services);
    fs::write(bed.state().join("broker.list"), "somebody else").unwrap();
    bed.log();
    let applied = bed.applied(&services);
    assert_eq!(
        applied.mended,
        ["broker: it did not admit exactly its list"]
    );
    assert_eq!(bed.log(), ["load broker"]);
    let loaded = fs::read_to_string(bed.state().join("broker.list")).unwrap();
    assert_eq!(loaded, "app");
}

fn what_was_loaded_is_told_apart_from_what_took_its_files(shell: Shell) {
    let mut bed = Bed::new(shell);
    let broker = |consumers, a| service("broker").grants(consumers, &bed).file("a", a);
    let (first, listed, edited) = (
        broker(&["app"], "1"),
        broker(&["app", "more"], "1"),
        broker(&["app", "more"], "2"),
    );
    let told = |applied: grid::delivery::Applied| (applied.loaded.len(), applied.applied.len());
    assert_eq!(told(bed.applied(&[first])), (1, 1));
    assert_eq!(told(bed.applied(&[listed])), (1, 0));
    assert_eq!(told(bed.applied(std::slice::from_ref(&edited))), (1, 1));
    fs::write(bed.state().join("broker.list"), "somebody else").unwrap();
    let applied = bed.applied(&[edited]);
    assert_eq!(applied.loaded, [name("broker")]);
    assert!(applied.applied.is_empty(), "{:?}", applied.applied);
}

fn a_service_whose_file_was_edited_is_applied_again_by_a_send_too(shell: Shell) {
    let mut bed = Bed::new(shell);
    let at = bed.dir.path().join("etc/app.conf");
    let log = &bed.state().join("log").display().to_string();
    let services = |other: &str| {
        let app = service("app").file("a", "1").file("b", "2");
        let installs = service("installs").install(&at, "1");
        let logs = |name: &str| format!("echo apply {name} >>'{log}'");
        [
            app.command("apply", logs("app")),
            installs.command("apply", logs("installs")),
            service("other")
                .file("a", other)
                .command("apply", logs("other")),
        ]
    };
    bed.applied(&services("1"));
    bed.log();
    bed.applied(&services("2"));
    assert_eq!(bed.log(), ["apply other"]);
    fs::write(bed.current().join("services/app/a"), "edited").unwrap();
    fs::write(&at, "edited").unwrap();
    let applied = bed.applied(&services("3"));
    assert_eq!(
        applied.mended,
        [
            "app: a file of it was not as sent",
            "installs: a file of it was not as sent"
        ]
    );
    assert_eq!(bed.log(), ["apply app", "apply installs", "apply other"]);
    assert_eq!(bed.read("services/app/a").unwrap(), "1");
    assert_eq!(fs::read_to_string(&at).unwrap(), "1");
    let applied = bed.applied(&services("4"));
    assert!(applied.mended.is_empty(), "{:?}", applied.mended);
    assert_eq!(bed.log(), ["apply other"]);
}

fn a_current_that_is_a_folder_is_left_alone(shell: Shell) {
    let mut bed = Bed::new(shell);
    fs::create_dir_all(bed.current().join("somebody's")).unwrap();
    let failure = bed.refused(&[service("app").file("a", "1")]);
    assert_eq!(failure.step, FailedStep::Switch);
    assert!(
        failure.cause.ends_with("current is not a symbolic link"),
        "{failure:?}"
    );
    assert!(bed.current().join("somebody's").exists());
    assert!(matches!(bed.answer(), grid::delivery::Answer::Unknown(_)));
}

fn what_is_taken_over_is_applied_though_its_release_lies_there_still(shell: Shell) {
    let mut bed = Bed::new(shell);
    let app = |a: &str, bed: &Bed| [service("app").file("a", a).logged(bed)];
    let (first, second) = (bundle(&app("1", &bed)), bundle(&app("2", &bed)));
    bed.applied(&app("1", &bed));
    let base = bed.base.clone();
    let mut take_over = |bundle, base| {
        let mut parcel = bed.parcel(bundle);
        parcel.take_over = true;
        parcel.base = base;
        bed.log();
        let outcome = bed.deliver(parcel);
        assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
        (bed.log(), bed.read("services/app/a").unwrap())
    };
    // Another store takes it over, and the first one takes it back: its release is there still, and not in force.
    let (log, text) = take_over(second, None);
    assert_eq!(
        (log.join(", "), text),
        ("apply app, check app".into(), "2".into())
    );
    let (log, text) = take_over(first, base);
    assert_eq!(
        (log.join(", "), text),
        ("apply app, check app".into(), "1".into())
    );
}

fn a_contact_that_takes_over_looks_at_what_the_other_store_left_alone(shell: Shell) {
    let mut bed = Bed::new(shell);
    let all = |a: &str, bed: &Bed| {
        [
            service("app").file("a", a).logged(bed),
            service("broker").grants(&["app"], bed).logged(bed),
        ]
    };
    let list = bed.state().join("broker.list");
    bed.applied(&all("1", &bed));
    let (held, base) = (bed.held, bed.base.clone());
    let mut other = bed.parcel(bundle(&all("2", &bed)));
    other.base = None;
    other.take_over = true;
    assert!(matches!(bed.deliver(other), Outcome::Applied(_)));
    fs::write(&list, "somebody").unwrap();
    bed.log();
    // The first store has the machine for current, so that it only contacts it: of the list both stores say the same.
    let mut contact = bed.parcel(bundle(&all("1", &bed)));
    (contact.token, contact.base, contact.take_over) = (held.unwrap(), base, true);
    match bed.deliver(contact) {
        Outcome::Applied(applied) => {
            assert_eq!(applied.applied, [name("app")]);
            assert_eq!(applied.loaded, [name("broker")]);
            assert_eq!(
                applied.mended,
                ["broker: it did not admit exactly its list"]
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&list).unwrap(), "app");
    assert_eq!(bed.ask().token, held);
    assert_eq!(
        bed.log(),
        [
            "apply app",
            "check app",
            "check app",
            "check broker",
            "load broker"
        ]
    );
}
