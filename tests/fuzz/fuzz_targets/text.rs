//! Fuzzes `check::text`.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hallmark_fuzz::check::text(bytes));

#[cfg(not(fuzzing))]
fn main() {
    hallmark_fuzz::over_files(hallmark_fuzz::check::text);
}
