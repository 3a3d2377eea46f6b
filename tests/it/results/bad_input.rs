//! Tests that behave as badly as they can, in real containers: each has its own outcome, and one line that says what
//! happened.

use hallmark::results::Outcome;
use hallmark::spec::Spec;
use hallmark::verify::{Phase, RunOutcome, RunRecord};

use crate::verify::support::{Bench, adds, spec};

const FILE: &str = "tests/test_bad.py";

struct Bad {
    bench: Bench,
}

impl Bad {
    fn new() -> Option<Self> {
        Bench::new(&[("lib.py", "VALUE = 1\n")]).map(|bench| Self { bench })
    }

    fn run(&self, tests: &str, repeat: u32, change: impl Fn(&mut Spec)) -> RunRecord {
        let mut spec = spec();
        change(&mut spec);
        self.bench.run(&spec, Phase::Pre, repeat, ["", &adds(FILE, tests)])
    }
}

fn outcome(record: &RunRecord, name: &str) -> Outcome {
    record.outcome_of(&format!("{FILE}::{name}"))
}

#[test]
fn online_a_test_that_forks_for_ever_fails() {
    let Some(bad) = Bad::new() else { return };
    let tests = "import os\n\n\ndef test_forks():\n    while True:\n        try:\n            os.fork()\n        \
                 except OSError:\n            pass\n";
    let record = bad.run(tests, 0, |spec| {
        spec.limits.test_timeout = 2.0;
        spec.limits.pids = 64;
    });
    assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
    assert_eq!(outcome(&record, "test_forks"), Outcome::Failed);
    // Its children leave it little time: it is the first limit or the second that ends it.
    let reason = record.tests[&format!("{FILE}::test_forks")].reason.as_deref().unwrap();
    assert!(reason.starts_with("timeout: "), "{reason}");
}

#[test]
fn online_binary_output_is_kept_as_it_is() {
    let Some(bad) = Bad::new() else { return };
    let tests = "import os\n\n\ndef test_binary():\n    os.write(1, bytes(range(256)))\n";
    let record = bad.run(tests, 0, |spec| spec.test.command.push("-s".to_owned()));
    assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
    let path = hallmark::verify::log_path(
        &bad.bench.store,
        &record.key,
        hallmark::verify::LogKind::Stdout,
    );
    let all: Vec<u8> = (0..=255).collect();
    let stdout = fs_err::read(path).unwrap();
    assert!(stdout.windows(256).any(|window| window == all));
}

#[test]
fn online_a_deleted_repository_is_whole_in_the_next_run() {
    let Some(bad) = Bad::new() else { return };
    let tests = "import os\nimport shutil\n\n\ndef test_a_is_there():\n    import lib\n\n\ndef test_b_deletes():\n    \
                 for name in os.listdir('/testbed'):\n        path = os.path.join('/testbed', name)\n        \
                 shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)\n\n\ndef test_c_is_gone():\n    \
                 assert os.path.exists('/testbed/lib.py')\n";
    for repeat in 0..2 {
        let record = bad.run(tests, repeat, |_| {});
        assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
        assert_eq!(outcome(&record, "test_a_is_there"), Outcome::Passed);
        assert_eq!(outcome(&record, "test_b_deletes"), Outcome::Passed);
        assert_eq!(outcome(&record, "test_c_is_gone"), Outcome::Failed);
    }
}

#[test]
fn online_who_kills_its_parent_lives_and_who_kills_itself_failed() {
    let Some(bad) = Bad::new() else { return };
    let tests = "import os\nimport signal\n\n\ndef test_parent():\n    os.kill(os.getppid(), signal.SIGKILL)\n\n\n\
                 def test_itself():\n    os.kill(os.getpid(), signal.SIGKILL)\n\n\ndef test_after():\n    pass\n";
    let record = bad.run(tests, 0, |_| {});
    assert_eq!(outcome(&record, "test_parent"), Outcome::Passed, "{record:?}");
    assert_eq!(outcome(&record, "test_itself"), Outcome::Failed);
    assert_eq!(outcome(&record, "test_after"), Outcome::Missing);
    let reason = record.tests[&format!("{FILE}::test_itself")].reason.as_deref();
    assert_eq!(reason, Some("unfinished: the process ended while the test ran"));
    assert!(!record.session_ended);
}

#[test]
fn online_nobody_changes_the_clock() {
    let Some(bad) = Bad::new() else { return };
    let tests =
        "import time\n\n\ndef test_clock():\n    time.clock_settime(time.CLOCK_REALTIME, 0)\n";
    let record = bad.run(tests, 0, |_| {});
    assert_eq!(outcome(&record, "test_clock"), Outcome::Failed, "{record:?}");
    let reason = record.tests[&format!("{FILE}::test_clock")].reason.as_deref().unwrap();
    assert!(reason.contains("PermissionError"), "{reason}");
}

#[test]
fn online_printed_results_are_no_results() {
    let Some(bad) = Bad::new() else { return };
    let forged = "print('=== short test summary info ===')\n    print('PASSED tests/test_bad.py::test_fails')\n    \
                  print('=== 2 passed in 0.01s ===')\n";
    let tests =
        format!("def test_prints():\n    {forged}\n\ndef test_fails():\n    assert False\n");
    let record = bad.run(&tests, 0, |spec| spec.test.command.push("-s".to_owned()));
    assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
    assert_eq!(outcome(&record, "test_fails"), Outcome::Failed);
    // Printed after pytest's own totals, they contradict the report.
    let tests = format!(
        "import atexit\n\n\ndef lie():\n    {forged}\n\natexit.register(lie)\n\n\ndef test_fails():\n    assert False\n"
    );
    let record = bad.run(&tests, 0, |_| {});
    assert_eq!(record.outcome.as_str(), "parser-error", "{record:?}");
    assert_eq!(
        record.outcome.explain(),
        "the results cannot be trusted: the report counts 0 passed, standard output says 2"
    );
}

#[test]
fn online_success_from_a_broken_collection_is_none() {
    let Some(bad) = Bad::new() else { return };
    let tests = "import nothing_of_this_name\n\n\ndef test():\n    pass\n";
    let plugin = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n";
    let patch = format!("{}{}", adds("conftest.py", plugin), adds(FILE, tests));
    let record = bad.bench.run(&spec(), Phase::Pre, 0, ["", &patch]);
    assert_eq!(record.status, Some(hallmark::runtime::ExitStatus::Exited(0)), "{record:?}");
    assert_eq!(record.outcome.as_str(), "env-error");
    assert_eq!(
        record.outcome.explain(),
        "broke before the first test: tests/test_bad.py could not be collected: E   \
         ModuleNotFoundError: No module named 'nothing_of_this_name'"
    );
}

#[test]
fn online_tests_that_name_themselves_by_the_time_are_other_tests_each_time() {
    let Some(bad) = Bad::new() else { return };
    let tests = "import time\nimport pytest\n\n\n@pytest.mark.parametrize('at', [1], ids=[str(time.time_ns())])\n\
                 def test_time(at):\n    pass\n";
    let [one, two] = [0, 1].map(|repeat| {
        let record = bad.run(tests, repeat, |_| {});
        assert_eq!((record.outcome, record.tests.len()), (RunOutcome::Completed, 1));
        record.tests.into_keys().next().unwrap()
    });
    assert_ne!(one, two);
}

#[test]
fn online_a_flood_of_lines_is_read_in_its_end() {
    let Some(bad) = Bad::new() else { return };
    let tests = "import sys\n\n\ndef test_floods():\n    for _ in range(40):\n        \
                 sys.stdout.write('t.py::x PASSED\\n' * (1 << 16))\n";
    let record = bad.run(tests, 0, |spec| spec.test.command.push("-s".to_owned()));
    assert_eq!(record.outcome, RunOutcome::Completed, "{record:?}");
    assert!(record.stdout.size > 32 << 20 && record.tests.len() == 1);
}
