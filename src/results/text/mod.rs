//! Reads what test runners print: the second source of results, the only one of programs that cannot be given a
//! runner of ours, and the runner's own totals for the cross-check.
//!
//! Everything works on bytes: ANSI sequences are removed, lines end at LF or CRLF, what a lone CR overwrote is
//! dropped, and bytes that are not UTF-8 are replaced after lines are cut. A test can print lines that look like
//! results; that is why the text is the second source.

mod compat;
mod junit;
mod lines;
mod model;
mod parse;
mod pytest;
mod sympy;
mod unittest;

pub use compat::{compat, test_output};
pub use model::{TextReport, Totals};
pub(super) use parse::printed_totals;
pub use parse::{parse, telling, text_report};
