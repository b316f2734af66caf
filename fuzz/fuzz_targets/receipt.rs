#![no_main]

// What the parser, which is no part of the library's face, imports.
use grid::words;

#[path = "../checks/receipt.rs"]
mod receipt;

libfuzzer_sys::fuzz_target!(|data: &[u8]| receipt::check(data));
