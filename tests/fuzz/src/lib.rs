//! Fuzz targets of the parsers of results. The invariants are those of the normal suite (`check.rs`, which it
//! includes); here they meet more input.
//!
//! ```sh
//! cargo install cargo-fuzz
//! cargo +nightly fuzz run --fuzz-dir tests/fuzz text        # or compat, report
//! ```
//!
//! Without a nightly compiler the same programs run over files, or over standard input:
//!
//! ```sh
//! cargo run --manifest-path tests/fuzz/Cargo.toml --bin text -- FILE ...
//! ```

pub mod check;

/// Runs a check over the files that are named, or over standard input.
pub fn over_files(check: fn(&[u8])) {
    let mut files = std::env::args_os().skip(1).peekable();
    if files.peek().is_none() {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)
            .expect("standard input is read");
        check(&bytes);
    }
    for file in files {
        check(&std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
}
