//! Files that go elsewhere than into the release, and files that become folders.

use std::fs;
use std::path::Path;

use grid::delivery::FailedStep;

use crate::delivery_bed::{Bed, Service, Shell, service};
use crate::under_every_shell;

under_every_shell!(
    a_file_that_becomes_a_folder_and_the_reverse_is_delivered_and_rolled_back,
    installed_files_are_saved_restored_and_removed,
);

fn a_file_that_becomes_a_folder_and_the_reverse_is_delivered_and_rolled_back(shell: Shell) {
    let mut bed = Bed::new(shell);
    let etc = bed.dir.path().join("the etc");
    let (x, part, other) = (etc.join("x"), etc.join("x/a/part"), etc.join("x/other"));
    // Before grid there was a file.
    fs::create_dir(&etc).unwrap();
    fs::write(&x, "theirs").unwrap();
    let file = || service("app").install(&x, "file");
    let folder = || {
        service("app")
            .install(&part, "part")
            .install(&other, "other")
    };
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    bed.applied(&[file()]);
    // What was there before stands in the way, and is nobody's to take away.
    let (failure, _) = bed.rolled_back(&[folder()]);
    assert_eq!(failure.step, FailedStep::Install);
    assert_eq!(text(&x), "file");
    bed.applied(&[service("app").file("a", "1")]);
    assert_eq!(text(&x), "theirs");
    fs::remove_file(&x).unwrap();
    bed.applied(&[file()]);
    let ill = |service: Service| service.command("apply", "exit 1");
    bed.rolled_back(&[ill(folder())]);
    assert_eq!(text(&x), "file");
    bed.applied(&[folder()]);
    assert_eq!((text(&part), text(&other)), ("part".into(), "other".into()));
    bed.rolled_back(&[ill(file())]);
    assert_eq!((text(&part), text(&other)), ("part".into(), "other".into()));
    bed.applied(&[file()]);
    assert_eq!(text(&x), "file");
    bed.applied(&[]);
    assert!(!x.exists());
}

fn installed_files_are_saved_restored_and_removed(shell: Shell) {
    let mut bed = Bed::new(shell);
    let etc = bed.dir.path().join("etc dir");
    fs::create_dir(&etc).unwrap();
    let (old, fresh, link) = (
        etc.join("it's old"),
        etc.join("deep/fresh"),
        etc.join("link"),
    );
    fs::write(&old, "before grid").unwrap();
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    let app = |text| {
        service("app")
            .install(&old, text)
            .install(&fresh, text)
            .install(&link, text)
    };
    bed.applied(&[app("1")]);
    let read = |path: &Path| fs::read_to_string(path).ok();
    for path in [&old, &fresh, &link] {
        assert_eq!(read(path).as_deref(), Some("1"));
        assert_eq!(bed.mode(path), 0o640);
    }
    bed.applied(&[app("2")]);
    assert_eq!(read(&old).as_deref(), Some("2"));
    // Edited ones are put back at a contact.
    fs::write(&fresh, "edited").unwrap();
    let applied = bed.applied(&[app("2")]);
    assert_eq!(
        applied.mended,
        [format!("{} was not as installed", fresh.display())]
    );
    assert_eq!(read(&fresh).as_deref(), Some("2"));
    // A failing send takes its own away again, and puts the others back.
    let more = etc.join("more");
    let bad = service("app")
        .install(&old, "3")
        .install(&more, "3")
        .command("apply", "grep -q 3 services/app/x; exit 1");
    bed.rolled_back(&[bad]);
    assert_eq!(read(&old).as_deref(), Some("2"));
    assert_eq!(read(&fresh).as_deref(), Some("2"));
    assert!(!more.exists());
    // What left gives way to what stood there before.
    bed.applied(&[service("app").install(&fresh, "2")]);
    assert_eq!(read(&old).as_deref(), Some("before grid"));
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/nowhere"));
    bed.applied(&[service("other")]);
    assert!(!fresh.exists());
    // A folder is in the way.
    let (failure, _) = bed.rolled_back(&[service("app").install(&etc, "x")]);
    assert_eq!(failure.step, FailedStep::Install);
    assert!(failure.cause.contains("is a folder"), "{failure:?}");
}
