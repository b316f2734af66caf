//! The usage that an error of the argument parser ends with.
//!
//! Of arguments that contradict each other, or lack one that belongs to them, the parser writes a line of just these: it shows
//! what was refused as what would be right, and `--mesh` where only $GRID_MESH was set. So the command's own line stands there.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Global options that take the next word as their value.
const TAKE_A_VALUE: [&str; 2] = ["--mesh", "--color"];

/// The error with the usage of the command that was typed.
pub(super) fn of_the_command(mut error: Error, arguments: &[OsString]) -> Error {
    let contradicts = matches!(
        error.kind(),
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument
    );
    if contradicts && error.get(ContextKind::Usage).is_some() {
        let usage = ContextValue::StyledStr(usage(arguments));
        error.insert(ContextKind::Usage, usage);
    }
    error
}

fn usage(arguments: &[OsString]) -> clap::builder::StyledStr {
    let mut tree = super::tree();
    tree.build();
    let mut command = &tree;
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if TAKE_A_VALUE.contains(&&*word) {
            words.next();
        } else if let Some(further) = command.find_subcommand(&*word) {
            command = further;
        } else if !word.starts_with('-') {
            break;
        }
    }
    command.clone().render_usage()
}
