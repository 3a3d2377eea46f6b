//! Runs in real containers whose results come another way than from pytest's plug-in.

use hallmark::results::{Outcome, Source};
use hallmark::spec::{Parser, Spec};
use hallmark::verify::{Phase, RunOutcome, RunRecord};

use crate::verify::support::{Bench, adds, spec};

const PYTEST: &str = "def test_passes():\n    pass\n\n\ndef test_fails():\n    assert False\n";

const UNITTEST: &str = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_passes(self):\n        \
                        pass\n\n    def test_fails(self):\n        self.fail('no')\n";

fn with(parser: Parser, words: &[&str]) -> Spec {
    let mut spec = spec();
    spec.test.parser = parser;
    spec.test.command = words.iter().map(|word| (*word).to_owned()).collect();
    spec
}

fn run(spec: &Spec, script: &str, phase: Phase, tests: &str) -> Option<RunRecord> {
    let bench = Bench::new(&[("run.sh", script)])?;
    Some(bench.run(spec, phase, 0, ["", &adds("test_a.py", tests)]))
}

fn outcomes(record: &RunRecord) -> Vec<(&str, Outcome)> {
    record.tests.iter().map(|(id, result)| (id.as_str(), result.outcome)).collect()
}

const EXPECTED: [(&str, Outcome); 2] =
    [("test_a.py::test_fails", Outcome::Failed), ("test_a.py::test_passes", Outcome::Passed)];

#[test]
fn online_a_wrapper_of_pytest_is_read_as_text() {
    let script = "exec python3 -m pytest -p no:cacheprovider -v --color=yes \"$@\"";
    let spec = with(Parser::Tox, &["sh", "run.sh"]);
    let Some(record) = run(&spec, script, Phase::Pre, PYTEST) else { return };
    assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
    assert_eq!((record.source, outcomes(&record)), (Source::Text, EXPECTED.to_vec()));
    assert_eq!(record.disobeyed, ["test-timeout"]);
    assert_eq!(record.command, ["sh", "run.sh", "test_a.py"]);
    let text = serde_json::to_string(&record).unwrap();
    assert!(text.contains("\"source\":\"text\""), "{text}");
}

#[test]
fn online_a_wrapper_that_prints_no_ids_is_a_parsers_error() {
    let script = "exec python3 -m pytest -p no:cacheprovider -q \"$@\"";
    let spec = with(Parser::Tox, &["sh", "run.sh"]);
    let Some(record) = run(&spec, script, Phase::Pre, PYTEST) else { return };
    assert!(matches!(record.outcome, RunOutcome::ParserError { .. }), "{:?}", record.outcome);
}

#[test]
fn online_a_wrapper_that_runs_nothing_is_an_environments_error() {
    let spec = with(Parser::Tox, &["sh", "run.sh"]);
    let Some(record) = run(&spec, "echo nothing here", Phase::Pre, PYTEST) else { return };
    assert!(matches!(record.outcome, RunOutcome::EnvError { .. }), "{:?}", record.outcome);
}

#[test]
fn online_junit_xml_is_read_from_the_reports_folder() {
    let script = "exec python3 -m pytest -p no:cacheprovider --junitxml=/run/hallmark-report/junit.xml \"$@\"";
    let spec = with(Parser::Junit, &["sh", "run.sh"]);
    let Some(record) = run(&spec, script, Phase::Pre, PYTEST) else { return };
    assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
    assert_eq!((record.source, outcomes(&record)), (Source::Text, EXPECTED.to_vec()));
}

#[test]
fn online_a_link_in_place_of_junit_xml_is_not_followed() {
    let script = "ln -s /etc/passwd /run/hallmark-report/junit.xml; echo done";
    let spec = with(Parser::Junit, &["sh", "run.sh"]);
    let Some(record) = run(&spec, script, Phase::Pre, PYTEST) else { return };
    assert_eq!((record.report.size, outcomes(&record)), (0, vec![]));
}

#[test]
fn online_unittest_streams() {
    let spec = with(Parser::Unittest, &["python3", "-m", "unittest"]);
    for phase in [Phase::Pre, Phase::Collect] {
        let Some(record) = run(&spec, "", phase, UNITTEST) else { return };
        assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
        assert_eq!((record.source, record.disobeyed.len()), (Source::Stream, 0));
        assert_eq!(record.collected, Some(2));
        match phase {
            Phase::Collect => assert_eq!((record.ids.len(), record.tests.len()), (2, 0)),
            _ => assert_eq!(record.tests.len(), 2),
        }
    }
}
