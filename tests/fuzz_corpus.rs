//! What fuzzing starts from and what it found, through the checks of the fuzz targets themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers are tests too"
)]

// What the parser of receipts, which is no part of the library's face, imports.
use grid::words;

#[path = "../fuzz/checks/exposition.rs"]
mod exposition;
#[path = "../fuzz/checks/headers.rs"]
mod headers;
#[path = "../fuzz/checks/receipt.rs"]
mod receipt;

/// Runs a target's corpus, of which at least so much was written by hand.
fn run(target: &str, least: usize, check: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let (mut files, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(folder.join(target)).unwrap() {
        let body = std::fs::read(entry.unwrap().path()).unwrap();
        files += 1;
        bytes += body.len();
        check(&body);
    }
    assert!(files >= least, "{files} files");
    assert!(
        files < 100 && bytes < 100_000,
        "{files} files, {bytes} bytes: minimize them"
    );
}

#[test]
fn what_was_found_in_headers_holds() {
    run("headers", 15, headers::check);
}

#[test]
fn what_was_found_in_expositions_holds() {
    run("exposition", 20, exposition::check);
}

#[test]
fn what_was_found_in_receipts_holds() {
    run("receipt", 10, receipt::check);
}
