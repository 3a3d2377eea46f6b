//! Collection, and runs in other orders than the collected one.

use hallmark::results::Outcome::{Failed, Missing, Passed};
use hallmark::verify::{Phase, Profile, RunOutcome, Setting, TestOrder};

use super::support::{Bench, adds, spec};

/// The last test fails when the one in the first file ran before it; the one before it fails without the first.
const TESTS: [(&str, &str); 3] = [
    ("tests/test_a.py", "import os\ndef test_sets():\n    os.environ['SET'] = '1'\n"),
    ("tests/test_b.py", "import os\ndef test_needs():\n    assert 'SET' in os.environ\n"),
    (
        "tests/test_c.py",
        "import os\ndef test_first():\n    pass\ndef test_polluted():\n    assert 'SET' not in os.environ\n",
    ),
];

#[test]
fn online_tests_are_collected_and_run_in_the_order_asked_for() {
    let Some(bench) = Bench::new(&[("lib.py", "")]) else { return };
    let spec = spec();
    let test = TESTS.map(|(path, text)| adds(path, text)).concat();
    let run = |phase, settings: Vec<Setting>, collected: &[String]| {
        bench.run_under(&spec, phase, ["", &test], &Profile::of(settings), collected)
    };
    let collect = run(Phase::Collect, Vec::new(), &[]);
    assert_eq!(collect.outcome, RunOutcome::Completed);
    let ids = [
        "tests/test_a.py::test_sets",
        "tests/test_b.py::test_needs",
        "tests/test_c.py::test_first",
        "tests/test_c.py::test_polluted",
    ];
    assert_eq!(collect.ids, ids);
    assert!(collect.tests.is_empty());

    let only =
        |at: &[usize]| TestOrder::Only { tests: at.iter().map(|at| ids[*at].into()).collect() };
    for (order, expected) in [
        (None, [Passed, Passed, Passed, Failed]),
        (Some(TestOrder::ReversedFiles), [Passed, Failed, Passed, Passed]),
        (Some(only(&[3])), [Missing, Missing, Missing, Passed]),
        (Some(only(&[3, 0, 1])), [Passed, Passed, Missing, Passed]),
        (Some(only(&[1])), [Missing, Failed, Missing, Missing]),
    ] {
        let settings = order.clone().map(|order| Setting::Order { order }).into_iter().collect();
        let record = run(Phase::Post, settings, &collect.ids);
        assert_eq!(record.outcome, RunOutcome::Completed, "{order:?}");
        assert_eq!(ids.map(|id| record.outcome_of(id)), expected, "{order:?}");
        assert!(record.ids.is_empty());
    }
    // One seed, one order; and every test runs.
    let shuffled = |seed| vec![Setting::Order { order: TestOrder::Shuffled { seed } }];
    let record = run(Phase::Post, shuffled(1), &collect.ids);
    assert_eq!(record.tests.len(), ids.len());
}
