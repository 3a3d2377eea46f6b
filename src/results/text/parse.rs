//! Chooses who reads a text, and makes a report of it.

use super::super::{Report, Source, TestResult};
use super::model::{TextReport, Totals};
use super::{junit, pytest, sympy, unittest};
use crate::spec::Parser;

/// Reads what a runner printed.
pub fn parse(parser: Parser, bytes: &[u8]) -> TextReport {
    match parser {
        Parser::Pytest => pytest::parse(bytes),
        Parser::Unittest | Parser::Django => unittest::parse(bytes),
        Parser::Sympy => sympy::parse(bytes),
        Parser::Junit => junit::parse(bytes),
        // Whoever printed its totals is the one that ran.
        Parser::Tox => [pytest::parse, unittest::parse, sympy::parse]
            .into_iter()
            .map(|read| read(bytes))
            .max_by_key(|report| (report.totals.is_some(), report.tests.len()))
            .unwrap_or_default(),
    }
}

/// Of the two streams of a program's output, the one that the results are read from: where the totals are, or more
/// tests.
pub fn telling<'a>(parser: Parser, stdout: &'a [u8], stderr: &'a [u8]) -> &'a [u8] {
    let weight = |bytes| {
        let report = parse(parser, bytes);
        (report.totals.is_some(), report.tests.len())
    };
    if !stderr.is_empty() && weight(stderr) > weight(stdout) { stderr } else { stdout }
}

/// The results of a run whose command could not be instrumented, from what it printed or wrote. There is no
/// collection to compare with, and no time of a test.
pub fn text_report(parser: Parser, bytes: &[u8]) -> Report {
    let text = parse(parser, bytes);
    let mut tests: std::collections::BTreeMap<_, _> =
        text.tests.into_iter().map(|(id, outcome)| (id, TestResult::new(outcome))).collect();
    for id in &text.unfinished {
        let failed = super::super::Outcome::Failed;
        tests.entry(id.clone()).or_insert_with(|| TestResult {
            reason: Some("unfinished: the output has no result".to_owned()),
            ..TestResult::new(failed)
        });
    }
    for (id, description) in text.descriptions {
        if let Some(result) = tests.get_mut(&id) {
            result.description = Some(description);
        }
    }
    Report {
        source: Source::Text,
        tests,
        collection_errors: text
            .collection_errors
            .into_iter()
            .map(|id| (id, "see the output".to_owned()))
            .collect(),
        unfinished: text.unfinished.into_iter().collect(),
        totals: text.totals,
        counted: text.counted,
        subtests: text.subtests,
        ..Report::default()
    }
}

/// The totals that a runner of ours has to agree with.
pub(in super::super) fn printed_totals(
    parser: Parser,
    stdout: &[u8],
    stderr: &[u8],
) -> Option<Totals> {
    match parser {
        Parser::Pytest | Parser::Sympy => parse(parser, stdout).totals,
        Parser::Unittest | Parser::Django => parse(parser, stderr).totals,
        Parser::Tox | Parser::Junit => None,
    }
}
