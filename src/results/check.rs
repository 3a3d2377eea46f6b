//! Compares a report with the runner's own totals, in the stream and on standard output.

use serde::{Deserialize, Serialize};

use super::text::{Totals, printed_totals};
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
    /// The process ended with success and the report has no end.
    NoEnd,
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
            Self::NoEnd => {
                f.write_str("the process ended with status 0, and its report has no end")
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

fn count(totals: &Totals, word: &str) -> u64 {
    totals.get(word).copied().unwrap_or(0)
}

/// The words of which two count differently, with both counts. What passed is counted by pytest and not by
/// unittest, which counts what ran; parts of tests are counted differently from version to version.
fn differing(one: &Totals, other: &Totals, subtests: bool) -> Vec<(String, u64, u64)> {
    let words: &[&str] = if one.contains_key("run") { &WORDS[1..] } else { &WORDS[..6] };
    words
        .iter()
        .filter(|word| !(subtests && matches!(**word, "passed" | "failed" | "skipped" | "error")))
        .map(|word| ((*word).to_owned(), count(one, word), count(other, word)))
        .filter(|(_, one, other)| one != other)
        .collect()
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
    let is_stream = report.source == Source::Stream;
    // A test that ran says where the report ended: what was cut from it would be missing, which never passes.
    // Where none ran the process broke in its collection, which no result hides.
    let is_cut_short = is_stream && !report.tests.is_empty() && report.unfinished.is_empty();
    if is_cut_short
        && (status, report.process_exit) == (Some(0), None)
        && report.session_exit != Some(0)
    {
        found.push(Disagreement::NoEnd);
    }
    let printed =
        is_stream.then(|| printed_totals(parser, printed.stdout, printed.stderr)).flatten();
    let Some(totals) = &report.totals else {
        if !is_stream {
            found.push(Disagreement::NoTotals);
        }
        // The end of the report may have been taken away: its lines must still amount to what was printed.
        if let (Some(printed), true, None) = (printed, is_cut_short, report.session_exit) {
            for (word, actual, expected) in differing(&printed, &report.counted, report.subtests) {
                found.push(Disagreement::Stdout { word, expected, actual });
            }
        }
        return found;
    };
    for (word, expected, actual) in differing(totals, &report.counted, report.subtests) {
        found.push(Disagreement::Totals { word, expected, actual });
    }
    if let (Some(printed), Some(own)) = (printed, &report.printed) {
        for (word, expected, actual) in differing(own, &printed, false) {
            found.push(Disagreement::Stdout { word, expected, actual });
        }
    }
    let failures = count(totals, "failed").saturating_add(count(totals, "error"));
    let exit = match report.source {
        Source::Stream => report.session_exit,
        Source::Text => status,
    };
    if exit == Some(0) && failures > 0 {
        found.push(Disagreement::ExitStatus { failures });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Outcome, TestResult};

    fn cut_short() -> Report {
        Report {
            tests: [("t.py::b".to_owned(), TestResult::new(Outcome::Passed))].into(),
            counted: Totals::from([("passed".to_owned(), 1), ("run".to_owned(), 1)]),
            ..Report::default()
        }
    }

    fn check(report: &Report, stdout: &str, status: Option<i32>) -> Vec<Disagreement> {
        let printed = Printed { stdout: stdout.as_bytes(), stderr: b"" };
        cross_check(report, Parser::Pytest, printed, status)
    }

    #[test]
    fn a_report_without_its_end_is_held_against_what_was_printed() {
        let printed = "== 1 failed, 1 passed in 0.1s ==";
        let failed = Disagreement::Stdout { word: "failed".to_owned(), expected: 0, actual: 1 };
        let alone = check(&cut_short(), printed, Some(1));
        assert_eq!(alone, std::slice::from_ref(&failed));
        assert_eq!(check(&cut_short(), printed, Some(0)), [Disagreement::NoEnd, failed]);
        assert_eq!(check(&cut_short(), "", Some(0)), [Disagreement::NoEnd]);
        // It died before it printed any, and says so; or the test that ended it is known.
        assert_eq!(check(&cut_short(), "", None), []);
        let unfinished = vec!["t.py::a".to_owned()];
        assert_eq!(check(&Report { unfinished, ..cut_short() }, printed, Some(0)), []);
    }

    #[test]
    fn a_process_that_leaves_after_the_session_needs_its_status() {
        for (session, status, expected) in
            [(0, Some(0), vec![]), (1, Some(1), vec![]), (1, Some(0), vec![Disagreement::NoEnd])]
        {
            let report = Report { session_exit: Some(session), ..cut_short() };
            assert_eq!(check(&report, "", status), expected, "{session}");
        }
    }

    #[test]
    fn what_is_printed_may_differ_from_what_is_counted() {
        let one = Totals::from([("passed".to_owned(), 1)]);
        let report = Report {
            totals: Some(one.clone()),
            printed: Some(Totals::from([("xfailed".to_owned(), 1)])),
            counted: one,
            session_exit: Some(0),
            ..cut_short()
        };
        assert_eq!(check(&report, "== 1 xfailed in 0.1s ==", Some(0)), []);
        assert_eq!(check(&report, "== 1 passed in 0.1s ==", Some(0)).len(), 2);
    }
}
