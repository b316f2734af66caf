#![no_main]

#[path = "../checks/exposition.rs"]
mod exposition;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exposition::check(data));
