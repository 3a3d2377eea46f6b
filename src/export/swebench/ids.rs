//! The lists of expected tests as the harness's parser names them.
//!
//! Each expected test is printed as its runner prints it and read as the parser reads it ([`text::compat`]): what comes out is its name
//! there, or nothing. A name that an unstable or failing test may share is left out: the parser keeps one outcome a name.

use std::collections::{BTreeMap, BTreeSet};

use super::runner::{Prints, Runner};
use crate::results::{Outcome, TestResult, text};
use crate::verify::{Lists, Verdict};

/// The lists, and what is not in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) fail_to_pass: Vec<String>,
    pub(super) pass_to_pass: Vec<String>,
    /// Expected tests that are left out, by reason.
    pub(super) left_out: BTreeMap<&'static str, Vec<String>>,
}

const QUARANTINED: &str = "quarantined";
const NOT_READ: &str = "not read by the harness's parser";
const SHARED: &str = "of the same name, for the harness, as a test that is unstable or fails";

/// `tests` are the outcomes of a run after the gold patch.
pub(super) fn named(
    runner: &Runner,
    lists: &Lists,
    verdict: &Verdict,
    tests: &BTreeMap<String, TestResult>,
) -> Named {
    let quarantined: BTreeSet<&str> = verdict.quarantined.iter().map(String::as_str).collect();
    let taken_for: BTreeMap<&str, &str> = verdict
        .missing
        .iter()
        .filter_map(|test| Some((test.id.as_str(), test.taken_for.as_deref()?)))
        .collect();
    let passed = TestResult::new(Outcome::Passed);
    let spoiled: BTreeSet<String> = tests
        .iter()
        .filter(|(id, result)| {
            quarantined.contains(id.as_str())
                || matches!(result.outcome, Outcome::Failed | Outcome::Error)
        })
        .filter_map(|(id, result)| read(runner, id, result).or_else(|| read(runner, id, &passed)))
        .map(|(name, _)| name)
        .collect();
    let mut named = Named::default();
    let mut seen = BTreeSet::new();
    for (expected, may_skip, fails) in
        [(&lists.fail_to_pass, false, true), (&lists.pass_to_pass, true, false)]
    {
        for id in expected {
            let own = taken_for.get(id.as_str()).copied().unwrap_or(id);
            let reason = if quarantined.contains(id.as_str()) || quarantined.contains(own) {
                QUARANTINED
            } else {
                let result = tests.get(own).unwrap_or(&passed);
                match read(runner, own, result) {
                    Some((name, _)) if spoiled.contains(&name) => SHARED,
                    Some((name, status)) if counts(&status, may_skip) => {
                        if seen.insert(name.clone()) {
                            let list = if fails {
                                &mut named.fail_to_pass
                            } else {
                                &mut named.pass_to_pass
                            };
                            list.push(name);
                        }
                        continue;
                    }
                    _ => NOT_READ,
                }
            };
            named.left_out.entry(reason).or_default().push(id.clone());
        }
    }
    named
}

/// Whether the harness counts a status as kept.
fn counts(status: &str, may_skip: bool) -> bool {
    matches!(status, "PASSED" | "XFAIL") || may_skip && status == "SKIPPED"
}

/// The name and status that the parser reads from what the runner prints of a test.
fn read(runner: &Runner, id: &str, result: &TestResult) -> Option<(String, String)> {
    let lines = printed(runner.prints, id, result);
    text::compat(runner.log_parser, &lines)?.into_iter().next()
}

fn printed(prints: Prints, id: &str, result: &TestResult) -> String {
    use Outcome::{Error, Failed, Missing, Passed, Skipped, Xfailed, Xpassed};
    let outcome = result.outcome;
    match prints {
        Prints::Pytest => match outcome {
            Passed => format!("PASSED {id}"),
            Xfailed => format!("XFAIL {id}"),
            Xpassed => format!("XPASS {id}"),
            Skipped => "SKIPPED [1] file.py:1: reason".to_owned(),
            Failed => format!("FAILED {id} - reason"),
            Error => format!("ERROR {id} - reason"),
            Missing => String::new(),
        },
        Prints::Unittest => {
            let word = match outcome {
                Passed => "ok",
                Xfailed => "expected failure",
                Xpassed => "unexpected success",
                Skipped => "skipped 'reason'",
                Failed => "FAIL",
                Error => "ERROR",
                Missing => return String::new(),
            };
            match &result.description {
                Some(description) => format!("{id}\n{description} ... {word}"),
                None => format!("{id} ... {word}"),
            }
        }
        Prints::Sympy => {
            let word = match outcome {
                Passed => "ok",
                Xfailed => "f",
                Xpassed => "X",
                Skipped => "s",
                Failed => "F",
                Error => "E",
                Missing => return String::new(),
            };
            format!("{id} {word}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Policy, judge};

    fn runner(prints: Prints, log_parser: &'static str) -> Runner {
        Runner { command: Vec::new(), prints, log_parser }
    }

    fn list(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn outcomes(pairs: &[(&str, Outcome)]) -> BTreeMap<String, TestResult> {
        pairs.iter().map(|(id, outcome)| ((*id).to_owned(), TestResult::new(*outcome))).collect()
    }

    #[test]
    fn ids_are_cut_as_the_parser_cuts_them_and_shared_ones_left_out() {
        let tests = outcomes(&[
            ("t.py::a[x y]", Outcome::Passed),
            ("t.py::a[x z]", Outcome::Passed),
            ("t.py::b[1 2]", Outcome::Passed),
            ("t.py::b[1 3]", Outcome::Failed),
            ("t.py::c", Outcome::Skipped),
            ("t.py::d", Outcome::Xfailed),
            ("t.py::e", Outcome::Xpassed),
            ("t.py::q", Outcome::Passed),
        ]);
        let lists = Lists {
            fail_to_pass: list(&["t.py::a[x y]"]),
            pass_to_pass: list(&[
                "t.py::a[x z]",
                "t.py::b[1 2]",
                "t.py::c",
                "t.py::d",
                "t.py::e",
                "t.py::q",
            ]),
        };
        let mut verdict = judge(&lists, &[], &Policy::default());
        verdict.missing.clear();
        verdict.quarantined = list(&["t.py::q"]);
        let named = |parser| named(&runner(Prints::Pytest, parser), &lists, &verdict, &tests);
        let cut = named("parse_log_pytest");
        assert_eq!(cut.fail_to_pass, ["t.py::a[x"]);
        assert_eq!(cut.pass_to_pass, ["t.py::d"]);
        assert_eq!(
            cut.left_out,
            [
                (QUARANTINED, list(&["t.py::q"])),
                (NOT_READ, list(&["t.py::c", "t.py::e"])),
                (SHARED, list(&["t.py::b[1 2]"])),
            ]
            .into()
        );
        let whole = named("parse_log_pytest_v2");
        assert_eq!(whole.fail_to_pass, ["t.py::a[x y]"]);
        assert_eq!(whole.pass_to_pass, ["t.py::a[x z]", "t.py::b[1 2]", "t.py::d"]);
    }

    #[test]
    fn a_test_of_unittest_goes_by_its_docstring() {
        let runner = runner(Prints::Unittest, "parse_log_django");
        let mut described = TestResult::new(Outcome::Passed);
        described.description = Some("Words of the test.".to_owned());
        let name = |result: &TestResult| read(&runner, "test_a (m.C)", result);
        let pair = |name: &str, status: &str| Some((name.to_owned(), status.to_owned()));
        assert_eq!(name(&described), pair("Words of the test.", "PASSED"));
        assert_eq!(name(&TestResult::new(Outcome::Passed)), pair("test_a (m.C)", "PASSED"));
        assert_eq!(name(&TestResult::new(Outcome::Skipped)), pair("test_a (m.C)", "SKIPPED"));
        assert_eq!(name(&TestResult::new(Outcome::Xfailed)), None);
    }
}
