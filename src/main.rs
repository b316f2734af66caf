//! The program: everything is in the library, see `grid::cli`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// A push allocates many small texts from many threads, which glibc's allocator is slow at.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    grid::cli::run(std::env::args_os().collect()).into()
}
