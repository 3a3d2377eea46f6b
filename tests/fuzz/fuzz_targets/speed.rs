//! Says how fast each parser reads the files that are named: `cargo run --release --bin speed -- FILE ...`.

use std::time::Instant;

use hallmark::results::text::{compat, parse};
use hallmark::spec::Parser;

fn main() {
    let mut bytes = Vec::new();
    for file in std::env::args_os().skip(1) {
        bytes.extend(
            std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        );
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let megabytes = bytes.len() as f64 / 1e6;
    let say = |name: &str, read: &dyn Fn() -> usize| {
        let start = Instant::now();
        let tests = read();
        let seconds = start.elapsed().as_secs_f64();
        println!("{name}: {megabytes:.1} MB, {tests} tests, {:.0} MB/s", megabytes / seconds);
    };
    for parser in Parser::ALL {
        say(parser.as_str(), &|| parse(parser, &bytes).tests.len());
    }
    for parser in ["parse_log_pytest", "parse_log_pytest_v2", "parse_log_django", "parse_log_sympy"]
    {
        say(parser, &|| compat(parser, &text).map_or(0, |read| read.len()));
    }
}
