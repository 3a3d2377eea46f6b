//! What suites do beside testing, which runners must bear and not show in.

use std::path::Path;

use hallmark::results::{Disagreement, Options, Outcome};
use hallmark::spec::Parser;

use super::{Launch, Run, pytest, pythons, runs};

fn unittest(options: &Options, words: &[&str], file: &str, code: &str) -> Vec<Run> {
    let write = |work: &Path| fs_err::write(work.join(file), code).unwrap();
    let launch = |python| {
        Launch { python, parser: Parser::Unittest, fixture: "empty", options, words }.run(write)
    };
    pythons().iter().map(|python| launch(python)).collect()
}

const EDGES: &str = "import gc, unittest, weakref
class Edges(unittest.TestCase):
    def test_case(self): pass
    def test_part_skipped(self):
        with self.subTest(i=1):
            self.skipTest('no')
class First(unittest.TestCase):
    def test_lives(self):
        Last.first = weakref.ref(self)
class Last(unittest.TestCase):
    def test_first_is_gone(self):
        gc.collect()
        self.assertIsNone(self.first())
";

#[test]
fn online_unittest_a_test_has_any_name_and_goes_when_it_ran() {
    let words = ["python", "-m", "unittest", "-v", "test_edges"];
    let plain = unittest(&Options::default(), &words, "test_edges.py", EDGES);
    let order = plain.first().and_then(|run| run.report.collected.clone());
    let ordered = Options { order, test_timeout: 60.0, ..Options::default() };
    for run in plain.iter().chain(&unittest(&ordered, &words, "test_edges.py", EDGES)) {
        for (name, class, outcome) in [
            ("test_case", "Edges", Outcome::Passed),
            ("test_part_skipped", "Edges", Outcome::Skipped),
            ("test_lives", "First", Outcome::Passed),
            ("test_first_is_gone", "Last", Outcome::Passed),
        ] {
            let id = run.id(name, &format!("test_edges.{class}"));
            assert_eq!(run.outcome(&id), outcome, "{name} {}", run.python);
        }
        assert_eq!((run.check(), run.report.tests.len()), (vec![], 4), "{}", run.python);
        // The text tells the same.
        let text = hallmark::results::text_report(Parser::Unittest, &run.stderr);
        let same = text.tests.iter().map(|(id, one)| (id, one.outcome));
        assert!(same.eq(run.report.tests.iter().map(|(id, one)| (id, one.outcome))), "{text:?}");
        let printed = hallmark::results::Printed { stdout: &run.stderr, stderr: b"" };
        let checked = hallmark::results::cross_check(&text, Parser::Unittest, printed, Some(0));
        assert_eq!(checked, []);
    }
}

#[test]
fn online_unittest_one_runner_may_run_two_suites_of_a_plain_script() {
    let code = "import os, sys, unittest
class A(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): pass
class B(unittest.TestCase):
    def test_plain(self):
        self.assertIs(type(sys.modules['__main__'].__builtins__), type(sys))
        self.assertEqual(os.path.isabs(__file__), sys.version_info >= (3, 9))
        self.assertEqual(sys.argv, ['two.py'])
runner = unittest.TextTestRunner()
load = unittest.defaultTestLoader.loadTestsFromTestCase
sys.exit(not all([runner.run(load(kind)).wasSuccessful() for kind in (A, B)]))
";
    for run in unittest(&Options::default(), &["python", "two.py"], "two.py", code) {
        assert_eq!(run.outcome(&run.id("test_plain", "__main__.B")), Outcome::Passed);
        assert_eq!((run.check(), run.report.counted["run"]), (vec![], 3), "{}", run.python);
    }
}

#[test]
fn online_categories_of_a_suite_are_counted_by_their_outcomes() {
    let write = |work: &Path| {
        let conftest = "def pytest_report_teststatus(report):\n    if report.passed and report.when == 'call':\n        \
                        return 'good', 'g', 'GOOD'\n";
        fs_err::write(work.join("conftest.py"), conftest).unwrap();
        let tests = "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n\
                     @pytest.mark.xfail\ndef test_c(): assert 0\n";
        fs_err::write(work.join("test_words.py"), tests).unwrap();
    };
    for run in runs("empty", 60.0, &pytest(&[]), write) {
        assert_eq!(run.check(), [], "{}", run.python);
        let totals = run.report.totals.as_ref().unwrap();
        assert_eq!((totals["passed"], totals["failed"], totals["xfailed"]), (1, 1, 1));
        assert!(!totals.contains_key("good"), "{totals:?}");
    }
}

#[test]
fn online_a_report_whose_end_was_taken_away_is_not_trusted() {
    let code = "import atexit, os, sys
def cut():
    sys.stdout.flush()
    for name in os.listdir('/proc/self/fd'):
        path = os.path.realpath('/proc/self/fd/' + name)
        if path.endswith('/report'):
            with open(path, 'rb') as file:
                read = file.read()
            begin = read.rindex(b'\"begin\"')
            os.truncate(path, read.rindex(b'\\n', 0, begin) + 1)
    os._exit(0)
def test_passes(): atexit.register(cut)
def test_fails(): assert 0
";
    let write = |work: &Path| fs_err::write(work.join("test_cuts.py"), code).unwrap();
    for run in runs("empty", 60.0, &pytest(&[]), write) {
        let failed = Disagreement::Stdout { word: "failed".to_owned(), expected: 0, actual: 1 };
        assert_eq!(run.check(), [Disagreement::NoEnd, failed], "{}", run.python);
    }
}

#[test]
fn online_the_limit_is_not_the_tests_alarm() {
    let code = "import signal, time
def test_sees_no_timer():
    assert signal.alarm(0) == 0
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
def test_uses_alarm():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.alarm(1)
    while True:
        time.sleep(1)
def test_keeps_signals_away():
    kept = set(range(1, 65)) - {signal.SIGXCPU}
    signal.pthread_sigmask(signal.SIG_BLOCK, kept)
    time.sleep(1.5)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, kept)
def test_after(): pass
";
    let write = |work: &Path| fs_err::write(work.join("test_alarm.py"), code).unwrap();
    for run in runs("empty", 1.0, &pytest(&[]), write) {
        for (name, outcome) in [
            ("test_sees_no_timer", Outcome::Passed),
            ("test_uses_alarm", Outcome::Failed),
            ("test_keeps_signals_away", Outcome::Failed),
            ("test_after", Outcome::Passed),
        ] {
            let id = format!("test_alarm.py::{name}");
            assert_eq!(run.outcome(&id), outcome, "{name} {}", run.python);
            let late = run.report.tests[&id].reason.as_deref().unwrap_or_default();
            assert_eq!(late.starts_with("timeout: "), outcome == Outcome::Failed, "{late}");
        }
        assert_eq!(run.check(), [], "{}", run.python);
    }
}

#[test]
fn online_a_limit_that_does_not_hold_is_said() {
    let write = |work: &Path| {
        let conftest = "try:\n    import pytest_forked\nexcept ImportError:\n    def pytest_addoption(parser):\n        \
                        parser.addoption('--forked', action='store_true')\n";
        fs_err::write(work.join("conftest.py"), conftest).unwrap();
        fs_err::write(work.join("test_a.py"), "def test_a(): pass\n").unwrap();
    };
    for (limit, words, disobeyed) in [
        (60.0, &["--forked"][..], &["test-timeout"][..]),
        (0.0, &["--forked"], &[]),
        (60.0, &[], &[]),
    ] {
        for run in runs("empty", limit, &pytest(words), write) {
            assert_eq!(run.report.disobeyed, disobeyed, "{words:?} {}", run.python);
        }
    }
}

#[test]
fn online_modules_of_the_repository_do_not_read_the_nonce() {
    let thief = "import sys\ntry:\n    open(sys.argv[1] + '/nonce').close()\n    open('stolen', 'w').close()\n\
                 except (IOError, IndexError):\n    pass\nraise ImportError('not the one')\n";
    let write = |work: &Path| {
        fs_err::create_dir(work.join("lib")).unwrap();
        for name in ["hmac.py", "hashlib.py", "json.py"] {
            fs_err::write(work.join("lib").join(name), thief).unwrap();
        }
        let test = "import os, sys\ndef test_path():\n    assert sys.path.count(os.path.dirname(os.__file__)) == 1\n    \
                    assert os.path.abspath('lib') in sys.path\n";
        fs_err::write(work.join("test_a.py"), test).unwrap();
    };
    let words = ["env", "PYTHONPATH=lib", "python", "-m", "pytest", "-p", "no:cacheprovider"];
    for run in runs("empty", 60.0, &words, write) {
        assert_eq!(run.file("stolen"), None, "{}", run.python);
        assert_eq!(run.outcome("test_a.py::test_path"), Outcome::Passed, "{}", run.python);
        assert_eq!(run.check(), []);
    }
}
