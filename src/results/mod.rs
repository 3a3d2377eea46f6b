//! What test runners reported, read into an outcome per test id. Pure.
//!
//! The first source is the report of a runner of ours (mounted read-only), which streams
//! lines that are authenticated by the run's nonce; the second is the text on standard output, used to
//! cross-check the totals.

mod check;
mod error;
mod instrument;
mod mac;
mod merge;
mod options;
mod order;
mod outcome;
mod report;
pub mod text;

pub use check::{Disagreement, Printed, cross_check};
pub use error::Error;
pub use instrument::{Instrumented, Place, Source, instrument};
pub use options::{
    HARD_LIMIT_SIGNAL, JUNIT_FILE, NONCE_FILE, Options, REPORT_FILE, REPORT_FOLDER, RUNNER_FOLDER,
    runner_digest, runner_files,
};
pub use order::{file_of, reversed_files, shuffled};
pub use outcome::{NetworkUse, Outcome, TestResult};
pub use report::{Fault, Report, read_report};
pub use text::text_report;
