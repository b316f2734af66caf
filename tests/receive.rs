//! The receiving script, under three shells, over the courier `local`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // a test may fall

#[path = "receive/commands.rs"]
mod commands;
mod delivery_bed;
#[path = "receive/failing.rs"]
mod failing;
#[path = "receive/installing.rs"]
mod installing;
#[path = "receive/mending.rs"]
mod mending;
#[path = "receive/providers.rs"]
mod providers;
#[path = "receive/sending.rs"]
mod sending;

use std::path::Path;

#[test]
fn the_scripts_are_clean_under_shellcheck() {
    for script in ["src/delivery/receive.sh", "tests/beds/sshd.sh"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        match std::process::Command::new("shellcheck")
            .args(["--shell=sh", "--severity=style"])
            .arg(path)
            .output()
        {
            Ok(output) => assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stdout)
            ),
            Err(error) => assert!(std::env::var_os("CI").is_none(), "{error}"),
        }
    }
}
