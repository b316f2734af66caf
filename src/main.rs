//! The program: everything is in the library, see `grid::cli`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    grid::cli::run(std::env::args_os().collect()).into()
}
