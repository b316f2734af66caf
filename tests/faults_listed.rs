//! Holds that every test that `tests/FAULTS.md` names exists.
#![allow(clippy::unwrap_used, reason = "a test may fall")]

use std::collections::BTreeSet;
use std::path::Path;

/// Every function, and every bed by its name, below a folder.
fn there_are(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            there_are(&path, found);
            continue;
        }
        let stem = path.file_stem().unwrap().to_str().unwrap();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => {
                let text = std::fs::read_to_string(&path).unwrap();
                let names = text
                    .lines()
                    .filter_map(|line| line.trim_start().strip_prefix("fn "));
                found.extend(names.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
            }
            Some("sh") => {
                found.insert(stem.to_owned());
            }
            _ => {}
        }
    }
}

#[test]
fn every_test_of_a_fault_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for folder in ["src", "tests"] {
        there_are(&root.join(folder), &mut found);
    }
    let list = std::fs::read_to_string(root.join("tests/FAULTS.md")).unwrap();
    let mut seen = 0;
    for line in list.lines().filter(|line| line.starts_with("| ")) {
        let (_, tests) = line.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        if tests == "test" {
            continue;
        }
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(
            !names.is_empty() || tests == "none yet",
            "no test, and it does not say so: {line}"
        );
        for name in names {
            assert!(found.contains(name), "there is no {name}: {line}");
            seen += 1;
        }
    }
    assert!(seen > 40, "only {seen} tests were found");
}
