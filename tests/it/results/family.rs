//! The unittest family through its runners of ours: unittest of this host's Python, Django, SymPy.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hallmark::results::{Options, Outcome, reversed_files};
use hallmark::spec::Parser;

use super::{Launch, Run, environment};

const WAYS: &str = "package.test_ways.Ways";

/// This host's Python, with Django and SymPy.
fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || environment("family-2", &["django==4.2.11", "tblib==3.0.0", "sympy==1.13.3"]);
    PYTHON.get_or_init(make).as_deref()
}

pub(super) fn run(parser: Parser, fixture: &str, options: &Options, words: &[&str]) -> Option<Run> {
    Some(Launch { python: python()?, parser, fixture, options, words }.run(|_| {}))
}

fn unittest(options: &Options, words: &[&str]) -> Option<Run> {
    run(Parser::Unittest, "unittest", options, &[&["python", "-m", "unittest"], words].concat())
}

impl Run {
    /// The id of a test as this Python prints it.
    pub(super) fn id(&self, name: &str, class: &str) -> String {
        let version = self.report.python.as_deref().unwrap();
        let minor: u32 = version.split('.').nth(1).unwrap().parse().unwrap();
        if minor >= 11 { format!("{name} ({class}.{name})") } else { format!("{name} ({class})") }
    }

    fn ran(&self) -> Vec<String> {
        let text = self.file("ran.txt").unwrap_or_default();
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }
}

#[test]
fn online_unittest_every_way_to_end_is_read() {
    let options = Options { test_timeout: 60.0, ..Options::default() };
    for words in [&["-v", "package.test_ways"][..], &["discover", "-v", "-t", "."]] {
        let Some(run) = unittest(&options, words) else { return };
        for (name, outcome) in [
            ("test_passes", Outcome::Passed),
            ("test_fails", Outcome::Failed),
            ("test_raises", Outcome::Error),
            ("test_skips", Outcome::Skipped),
            ("test_skipped", Outcome::Skipped),
            ("test_expected_failure", Outcome::Xfailed),
            ("test_unexpected_success", Outcome::Xpassed),
            ("test_parts_fail", Outcome::Failed),
            ("test_parts_pass", Outcome::Passed),
            ("test_writes_in_between", Outcome::Passed),
            ("test_runs_tests_itself", Outcome::Passed),
            ("test_starts_another_run", Outcome::Passed),
            ("test_forks_a_run", Outcome::Passed),
            ("test_nothing_leaks", Outcome::Passed),
        ] {
            assert_eq!(run.outcome(&run.id(name, WAYS)), outcome, "{name} {}", run.python);
        }
        let twice = run.id("test_fails_twice", "package.test_ways.BrokenTearDown");
        assert_eq!(run.outcome(&twice), Outcome::Failed);
        let never = run.id("test_never", "package.test_ways.BrokenClass");
        assert_eq!(run.outcome(&never), Outcome::Missing);
        let broken = &run.report.collection_errors["setUpClass (package.test_ways.BrokenClass)"];
        assert_eq!(broken, "RuntimeError: class");
        assert_eq!(run.report.tests.len(), 17, "{:?}", run.report.tests);
        assert_eq!(run.report.collected.as_ref().unwrap().len(), 18);
        let described = &run.report.tests[&run.id("test_passes", WAYS)];
        assert_eq!(described.description.as_deref(), Some("Says what it does."));
        assert_eq!(run.reason(&run.id("test_raises", WAYS)), "ValueError: boom");
        assert_eq!(run.check(), [], "{}", run.python);
        assert_eq!((run.report.session_exit, run.report.process_exit), (Some(1), Some(1)));
        assert_eq!(run.status.code(), Some(1));
    }
}

#[test]
fn online_unittest_obeys_orders_and_selections() {
    let Some(plain) = unittest(&Options::default(), &["-v", "package.test_ways.Ways"]) else {
        return;
    };
    let collected = plain.report.collected.clone().unwrap();
    let mut order = collected.clone();
    order.reverse();
    // A test that is skipped by its mark sets nothing up.
    let skipped = plain.id("test_skipped", WAYS);
    let without = |ids: &[String]| -> Vec<String> {
        ids.iter().filter(|id| **id != skipped).cloned().collect()
    };
    let options = Options { order: Some(order.clone()), ..Options::default() };
    let run = unittest(&options, &["-v", "package.test_ways.Ways"]).unwrap();
    assert_eq!(run.ran(), without(&order));
    assert_eq!((run.report.collected.as_ref(), run.check()), (Some(&order), vec![]));

    let alone = vec![plain.id("test_passes", WAYS)];
    let options = Options { order: Some(alone.clone()), only: true, ..Options::default() };
    let run = unittest(&options, &["-v", "package.test_ways.Ways"]).unwrap();
    assert_eq!((run.ran(), run.status.code()), (alone, Some(0)));
    assert_eq!(run.report.tests.len(), 1);

    let options = Options { collect_only: true, ..Options::default() };
    let run = unittest(&options, &["-v", "package.test_ways.Ways"]).unwrap();
    assert_eq!((run.report.collected.as_ref(), run.ran()), (Some(&collected), vec![]));
    assert!(run.report.tests.is_empty());
    assert_eq!(reversed_files(&collected), collected, "one file");
}

#[test]
fn online_unittest_a_test_over_its_limit_fails_and_the_run_goes_on() {
    let options = Options { test_timeout: 1.0, ..Options::default() };
    let words = ["env", "SLEEP=1", "python", "-m", "unittest", "-v", "package.test_ways.Limits"];
    let Some(run) = run(Parser::Unittest, "unittest", &options, &words) else { return };
    for name in ["test_sleeps", "test_swallows"] {
        let id = run.id(name, "package.test_ways.Limits");
        assert_eq!(run.outcome(&id), Outcome::Failed, "{name} {}", run.python);
        assert!(run.reason(&id).starts_with("timeout: "), "{}", run.reason(&id));
    }
    assert_eq!((run.check(), run.status.code()), (vec![], Some(1)));
}

#[test]
fn online_unittest_a_module_that_does_not_import_is_named() {
    let Some(run) = unittest(&Options::default(), &["-v", "package.nowhere"]) else { return };
    let errors: Vec<_> = run.report.collection_errors.iter().collect();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].0.contains("_FailedTest"), "{errors:?}");
    assert_eq!(run.check(), [], "{}", run.python);
}

#[test]
fn online_unittest_as_a_script() {
    let words = ["python", "-B", "package/test_ways.py", "-v", "Ways"];
    let Some(run) = run(Parser::Unittest, "unittest", &Options::default(), &words) else { return };
    assert_eq!(run.outcome(&run.id("test_nothing_leaks", "__main__.Ways")), Outcome::Passed);
    assert_eq!(run.check(), [], "{}", run.python);
}

#[test]
fn online_django_with_and_without_workers() {
    for more in [&["--verbosity", "2"][..], &["--parallel", "2"], &["--reverse", "-v", "2"]] {
        let words = [&["./manage.py", "test", "--no-color"], more].concat();
        let options = Options { test_timeout: 60.0, ..Options::default() };
        let Some(run) = run(Parser::Django, "django", &options, &words) else { return };
        for (name, class, outcome) in [
            ("test_stores", "Database", Outcome::Passed),
            ("test_starts_empty", "Database", Outcome::Passed),
            ("test_fails", "Database", Outcome::Failed),
            ("test_prints_in_between", "Other", Outcome::Passed),
            ("test_skips", "Other", Outcome::Skipped),
            ("test_flushes", "Transactions", Outcome::Passed),
            ("test_raises", "Transactions", Outcome::Error),
        ] {
            let id = run.id(name, &format!("app.tests.{class}"));
            assert_eq!(run.outcome(&id), outcome, "{more:?} {name} {}", run.python);
        }
        assert_eq!(run.report.tests.len(), 7);
        assert_eq!(run.report.collected.as_ref().unwrap().len(), 7);
        assert_eq!(run.check(), [], "{more:?} {}", run.python);
        let described = &run.report.tests[&run.id("test_starts_empty", "app.tests.Database")];
        let said = "The docstring is what the field calls it.";
        assert_eq!(described.description.as_deref(), Some(said));
    }
}

#[test]
fn online_django_obeys_orders_without_workers() {
    let words = ["./manage.py", "test", "--parallel", "2"];
    let Some(plain) = run(Parser::Django, "django", &Options::default(), &words) else { return };
    let mut order = plain.report.collected.clone().unwrap();
    order.rotate_left(3);
    let options = Options { order: Some(order.clone()), ..Options::default() };
    let run = run(Parser::Django, "django", &options, &words).unwrap();
    assert_eq!(run.report.collected, Some(order), "{}", run.python);
    let [one, two] = [&plain, &run].map(|run| {
        run.report.tests.iter().map(|(id, r)| (id.clone(), r.outcome)).collect::<Vec<_>>()
    });
    assert_eq!((one, run.check()), (two, vec![]));
}

#[test]
fn online_sympy_every_way_to_end_is_read() {
    let words = ["bin/test", "-v", "sympy/tests/test_ways.py"];
    let options = Options { test_timeout: 1.0, ..Options::default() };
    let Some(run) = run(Parser::Sympy, "sympy", &options, &words) else { return };
    for (name, outcome) in [
        ("test_passes", Outcome::Passed),
        ("test_fails", Outcome::Failed),
        ("test_raises", Outcome::Error),
        ("test_skips", Outcome::Skipped),
        ("test_marked", Outcome::Skipped),
        ("test_xfails", Outcome::Xfailed),
        ("test_xpasses", Outcome::Xpassed),
        ("test_prints", Outcome::Passed),
        ("test_sleeps", Outcome::Failed),
        ("test_nothing_leaks", Outcome::Passed),
    ] {
        assert_eq!(run.outcome(name), outcome, "{name} {}", run.python);
    }
    assert!(run.reason("test_sleeps").starts_with("timeout: "), "{}", run.reason("test_sleeps"));
    assert_eq!(run.report.tests.len(), 10);
    assert_eq!((run.check(), run.status.code()), (vec![], Some(1)), "{}", run.python);
}

#[test]
fn online_sympy_obeys_selections_and_says_that_it_has_no_order() {
    let words = ["bin/test", "-v", "sympy/tests/test_ways.py"];
    let order = Some(vec!["test_xfails".to_owned(), "test_passes".to_owned()]);
    let options = Options { order, only: true, ..Options::default() };
    let Some(one) = run(Parser::Sympy, "sympy", &options, &words) else { return };
    let ran: Vec<_> = one.report.tests.keys().collect();
    assert_eq!(ran, ["test_passes", "test_xfails"], "{}", one.python);
    assert_eq!(one.report.disobeyed, ["order"]);
    let options = Options { collect_only: true, ..Options::default() };
    let all = run(Parser::Sympy, "sympy", &options, &words).unwrap();
    assert_eq!(all.report.collected.as_ref().unwrap().len(), 10, "{}", all.python);
    assert!(all.report.tests.is_empty() && all.report.disobeyed.is_empty());
}
