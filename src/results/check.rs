//! Compares a report with the runner's own totals, in the stream and on standard output.

use serde::{Deserialize, Serialize};

use super::text::printed_totals;
use super::{Fault, Report, Source};
use crate::spec::Parser;

/// The words that are compared: every test is counted under one of them.
const WORDS: [&str; 7] = ["passed", "failed", "error", "skipped", "xfailed", "xpassed", "run"];

/// Two sources that should say the same do not: the results are not to be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Disagreement {
    /// The stream itself is at fault.
    Stream {
        /// How.
        fault: Fault,
    },
    /// The runner counted something else than its lines amount to.
    Totals {
        /// The outcome.
        word: String,
        /// The runner's own count.
        expected: u64,
        /// What its lines amount to.
        actual: u64,
    },
    /// The totals on standard output are not those of the report.
    Stdout {
        /// The outcome.
        word: String,
        /// The report's count.
        expected: u64,
        /// What standard output says.
        actual: u64,
    },
    /// The results are read from text, and it has no totals to compare with: it broke off, or was another runner's.
    NoTotals,
    /// The session counted failures and ended with success.
    ExitStatus {
        /// Failures and errors counted.
        failures: u64,
    },
    /// The process ended with another status than the one that the runner was about to end with.
    ProcessExit {
        /// The runner's.
        expected: i32,
        /// The process's.
        actual: i32,
    },
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stream { fault } => write!(f, "{fault}"),
            Self::Totals { word, expected, actual } => {
                write!(f, "the runner counted {expected} {word}, its report holds {actual}")
            }
            Self::Stdout { word, expected, actual } => {
                write!(f, "the report counts {expected} {word}, standard output says {actual}")
            }
            Self::NoTotals => {
                f.write_str("the output has no line of totals of a test runner that hallmark knows")
            }
            Self::ExitStatus { failures } => {
                write!(f, "the session ended with status 0 after {failures} failures")
            }
            Self::ProcessExit { expected, actual } => {
                write!(f, "the runner ended with status {expected}, its process with {actual}")
            }
        }
    }
}

/// What a test command printed, or the end of it.
#[derive(Debug, Clone, Copy)]
pub struct Printed<'a> {
    /// On standard output.
    pub stdout: &'a [u8],
    /// On standard error.
    pub stderr: &'a [u8],
}

/// Everything that two sources disagree about; empty in an honest run. What a source does not say (no
/// totals printed with `-qq`, a process that died) is no disagreement.
///
/// `status` is the exit code of the process, where it was not killed.
pub fn cross_check(
    report: &Report,
    parser: Parser,
    printed: Printed<'_>,
    status: Option<i32>,
) -> Vec<Disagreement> {
    let mut found: Vec<Disagreement> =
        report.faults.iter().map(|fault| Disagreement::Stream { fault: fault.clone() }).collect();
    if let (Some(expected), Some(actual)) = (report.process_exit, status)
        && expected != actual
    {
        found.push(Disagreement::ProcessExit { expected, actual });
    }
    let Some(totals) = &report.totals else {
        if report.source == Source::Text {
            found.push(Disagreement::NoTotals);
        }
        return found;
    };
    let count = |map: &std::collections::BTreeMap<String, u64>, word: &str| {
        map.get(word).copied().unwrap_or(0)
    };
    // What passed is counted by pytest and not by unittest, which counts what ran.
    let words: &[&str] = if totals.contains_key("run") { &WORDS[1..] } else { &WORDS[..6] };
    for word in words.iter().copied() {
        // Parts of tests are counted differently from version to version.
        if report.subtests && matches!(word, "passed" | "failed" | "skipped" | "error") {
            continue;
        }
        let (expected, actual) = (count(totals, word), count(&report.counted, word));
        if expected != actual {
            found.push(Disagreement::Totals { word: word.to_owned(), expected, actual });
        }
    }
    let printed = match report.source {
        Source::Stream => printed_totals(parser, printed.stdout, printed.stderr),
        Source::Text => None,
    };
    if let Some(printed) = printed {
        for word in words.iter().copied() {
            let (expected, actual) = (count(totals, word), count(&printed, word));
            if expected != actual {
                found.push(Disagreement::Stdout { word: word.to_owned(), expected, actual });
            }
        }
    }
    let failures = count(totals, "failed") + count(totals, "error");
    let exit = match report.source {
        Source::Stream => report.session_exit,
        Source::Text => status,
    };
    if exit == Some(0) && failures > 0 {
        found.push(Disagreement::ExitStatus { failures });
    }
    found
}
