//! What test runners reported, read into an outcome per test id. Pure.
//!
//! The first source is the report of a runner of ours ([`RUNNER`], mounted read-only), which streams
//! lines that are authenticated by the run's nonce; the second is the text on standard output, used to
//! cross-check the totals.

mod check;
mod error;
mod instrument;
mod mac;
mod merge;
mod outcome;
mod report;
mod text;

pub use check::{Disagreement, cross_check};
pub use error::Error;
pub use instrument::{
    HARD_LIMIT_SIGNAL, NONCE_FILE, Options, REPORT_FILE, REPORT_FOLDER, RUNNER, RUNNER_FILE,
    RUNNER_FOLDER, instrument, runner_digest,
};
pub use outcome::{Outcome, TestResult};
pub use report::{Fault, Report, read_report};
pub use text::{TextReport, Totals, parse_text};
