//! Orders, selections and collections, through real pytest.

use std::path::Path;

use hallmark::results::{Options, Outcome, reversed_files, shuffled};

use super::{Run, pytest, runs_with};

const COLLECTED: [&str; 8] = [
    "test_a.py::test_first[one]",
    "test_a.py::test_first[two]",
    "test_a.py::test_second[one]",
    "test_a.py::test_second[two]",
    "test_a.py::test_third[\\xe4]",
    "test_a.py::test_third[a b]",
    "test_b.py::test_fails",
    "test_b.py::test_first",
];

fn collected() -> Vec<String> {
    COLLECTED.map(str::to_owned).to_vec()
}

/// The order that tests were run in, by the fixture's own word and by the report's.
fn order_of(run: &Run) -> Vec<String> {
    let written = String::from_utf8(run.file("ran.txt").unwrap_or_default()).unwrap();
    let ran: Vec<String> = written.lines().map(str::to_owned).collect();
    let begun: Vec<String> = String::from_utf8(run.bytes.clone())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(&line[65..]).unwrap())
        .filter(|event| event["event"] == "begin")
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ran, begun, "{}", run.python);
    ran
}

fn run_in(order: &[String], only: bool, words: &[&'static str]) -> Vec<Run> {
    let options = Options { order: Some(order.to_vec()), only, ..Options::default() };
    runs_with("order", &options, &pytest(words), |_: &Path| {})
}

#[test]
fn online_without_an_order_the_collections_holds() {
    for run in runs_with("order", &Options::default(), &pytest(&[]), |_| {}) {
        assert_eq!(order_of(&run), COLLECTED, "{}", run.python);
        assert_eq!(run.report.collected.as_deref(), Some(&collected()[..]));
    }
}

#[test]
fn online_an_order_is_obeyed_to_the_byte() {
    for order in [reversed_files(&collected()), shuffled(&collected(), 7)] {
        assert_ne!(order, collected());
        for run in run_in(&order, false, &[]) {
            assert_eq!(order_of(&run), order, "{}", run.python);
            assert_eq!(run.report.collected, Some(order.clone()));
            assert_eq!(run.check(), [], "{}", run.python);
        }
    }
}

#[test]
fn online_the_rest_follows_in_its_own_order() {
    let order =
        ["test_b.py::test_first", "test_nowhere.py::test_gone", COLLECTED[3]].map(str::to_owned);
    for run in run_in(&order, false, &[]) {
        let expected: Vec<&str> = [COLLECTED[7], COLLECTED[3]]
            .into_iter()
            .chain(COLLECTED.into_iter().filter(|id| ![COLLECTED[7], COLLECTED[3]].contains(id)))
            .collect();
        assert_eq!(order_of(&run), expected, "{}", run.python);
    }
}

#[test]
fn online_a_test_alone() {
    for run in run_in(&[COLLECTED[5].to_owned()], true, &[]) {
        assert_eq!(order_of(&run), [COLLECTED[5]], "{}", run.python);
        assert_eq!(run.report.collected.as_deref(), Some(&[COLLECTED[5].to_owned()][..]));
        assert_eq!(run.report.tests.len(), 1);
        assert_eq!(run.check(), [], "{}", run.python);
    }
    // Nothing is left: pytest's own status for that.
    for run in run_in(&["test_b.py::test".to_owned()], true, &[]) {
        assert_eq!((run.report.tests.len(), run.report.session_exit), (0, Some(5)));
    }
}

#[test]
fn online_tests_that_share_an_id_are_taken_one_by_one() {
    let twice = ["--keep-duplicates", "test_b.py", "test_b.py"];
    let (first, fails) = (COLLECTED[7], COLLECTED[6]);
    for (order, expected) in [
        (vec![first, fails, first], vec![first, fails, fails, first]),
        (vec![first], vec![first, first, fails, fails]),
        (vec![fails, first, fails, first], vec![fails, first, fails, first]),
    ] {
        let order: Vec<String> = order.into_iter().map(str::to_owned).collect();
        for run in run_in(&order, false, &twice) {
            assert_eq!(order_of(&run), expected, "{}", run.python);
            assert_eq!(run.check(), [], "{}", run.python);
        }
    }
}

#[test]
fn online_an_order_has_no_workers() {
    let order = shuffled(&collected(), 3);
    for run in run_in(&order, false, &["-n", "2"]) {
        if run.report.collected.is_none() {
            continue; // No xdist there.
        }
        assert_eq!(order_of(&run), order, "{}", run.python);
    }
}

#[test]
fn online_a_collection_runs_nothing() {
    let options = Options { collect_only: true, ..Options::default() };
    for run in runs_with("order", &options, &pytest(&[]), |_| {}) {
        assert_eq!(run.report.collected.as_deref(), Some(&collected()[..]), "{}", run.python);
        assert_eq!(order_of(&run), Vec::<String>::new());
        assert!(run.report.tests.is_empty());
        assert_eq!(run.outcome(COLLECTED[0]), Outcome::Missing);
        assert_eq!((run.report.process_exit, run.check()), (Some(0), vec![]), "{}", run.python);
    }
}
