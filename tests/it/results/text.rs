//! The text of real runs against their streams: both say the same.

use std::collections::BTreeMap;

use hallmark::results::text::{parse, telling, text_report};
use hallmark::results::{Disagreement, Options, Outcome, Printed, cross_check};
use hallmark::spec::Parser;

use super::{Run, pytest, runs};

fn stream(run: &Run) -> BTreeMap<String, Outcome> {
    run.report.tests.iter().map(|(id, result)| (id.clone(), result.outcome)).collect()
}

fn text(run: &Run) -> BTreeMap<String, Outcome> {
    parse(run.parser, &run.stdout).tests
}

#[test]
fn online_pytests_text_says_what_its_stream_says() {
    for words in [&["-v"][..], &["-v", "-rA"], &["-v", "-n", "2", "-rA"], &["-v", "--color=yes"]] {
        let words = pytest(&[words, &["--doctest-modules"]].concat());
        for run in runs("outcomes", 60.0, &words, |_| {}) {
            if run.report.collected.is_none() {
                continue; // No xdist there.
            }
            let mut expected = stream(&run);
            // Before there is a plug-in for them, parts of tests are named without their test.
            if !run.report.subtests {
                expected.retain(|id, _| !id.contains("test_sub"));
            }
            let mut found = text(&run);
            if !run.report.subtests {
                found.retain(|id, _| !id.contains("test_sub"));
            }
            if run.report.subtests && words.contains(&"-v") && !words.contains(&"-rA") {
                // A part that failed has no id in older versions' lines.
                let id = "test_outcomes.py::TestUnit::test_sub_fails";
                expected.remove(id);
                found.remove(id);
            }
            assert_eq!(found, expected, "{words:?} {}", run.python);
        }
    }
}

#[test]
fn online_pytests_summary_is_enough_but_for_what_it_does_not_name() {
    for run in runs("outcomes", 60.0, &pytest(&["-rA"]), |_| {}) {
        if run.report.pytest.as_deref().is_some_and(|version| version.starts_with(['3', '4'])) {
            continue; // -A did not mean what passed.
        }
        let mut expected = stream(&run);
        expected.retain(|_, outcome| *outcome != Outcome::Skipped);
        assert_eq!(text(&run), expected, "{}", run.python);
    }
}

#[test]
fn online_a_run_that_is_read_as_text_is_cross_checked() {
    let check = |run: &Run, words: &str| {
        let report = text_report(Parser::Tox, telling(Parser::Tox, &run.stdout, &run.stderr));
        let printed = Printed { stdout: &run.stdout, stderr: &run.stderr };
        let problems = cross_check(&report, Parser::Tox, printed, run.status.code());
        (report, problems, format!("{words} {}", run.python))
    };
    for run in runs("order", 60.0, &pytest(&["-v"]), |_| {}) {
        let (report, problems, python) = check(&run, "-v");
        assert_eq!((report.tests.len(), problems), (8, vec![]), "{python}");
    }
    // Only dots: no test is known, and the totals say so.
    for run in runs("order", 60.0, &pytest(&[]), |_| {}) {
        let (report, problems, python) = check(&run, "");
        assert!(!report.tests.values().any(|result| result.outcome.satisfies()), "{python}");
        assert!(
            problems.contains(&Disagreement::Totals {
                word: "passed".to_owned(),
                expected: 7,
                actual: 0
            }),
            "{python} {problems:?}"
        );
    }
}

#[test]
fn text_without_totals_is_no_result() {
    let report = text_report(Parser::Tox, b"t.py::a PASSED\nt.py::b PASS");
    let printed = Printed { stdout: b"", stderr: b"" };
    assert_eq!(cross_check(&report, Parser::Tox, printed, Some(0)), [Disagreement::NoTotals]);
}

#[test]
fn success_after_failures_is_no_success() {
    let report = text_report(Parser::Tox, b"t.py::a FAILED\n== 1 failed in 0.1s ==\n");
    let printed = Printed { stdout: b"", stderr: b"" };
    let expected = [Disagreement::ExitStatus { failures: 1 }];
    assert_eq!(cross_check(&report, Parser::Tox, printed, Some(0)), expected);
    assert_eq!(cross_check(&report, Parser::Tox, printed, Some(1)), []);
}

#[test]
fn online_unittests_text_says_what_its_stream_says() {
    for (parser, fixture, words) in [
        (
            Parser::Unittest,
            "unittest",
            &["python", "-m", "unittest", "-v", "package.test_ways"][..],
        ),
        (Parser::Django, "django", &["./manage.py", "test", "-v", "2"]),
        (Parser::Sympy, "sympy", &["bin/test", "-v", "sympy/tests/test_ways.py"]),
    ] {
        let options = Options { test_timeout: 60.0, ..Options::default() };
        let Some(run) = super::family::run(parser, fixture, &options, words) else { return };
        let report = text_report(parser, telling(parser, &run.stdout, &run.stderr));
        let found: BTreeMap<_, _> =
            report.tests.iter().map(|(id, result)| (id.clone(), result.outcome)).collect();
        assert_eq!(found, stream(&run), "{}", run.python);
        let printed = Printed { stdout: &run.stdout, stderr: &run.stderr };
        assert_eq!(cross_check(&report, parser, printed, run.status.code()), [], "{}", run.python);
        let broken = |report: &hallmark::results::Report| {
            report.collection_errors.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(broken(&report), broken(&run.report));
        for (id, result) in &run.report.tests {
            assert_eq!(report.tests[id].description, result.description, "{id}");
        }
    }
}
