//! The pytest runner against real pytest, and reading its stream.
//!
//! Tests named `online_*` make a virtual environment with pytest once; without Python 3 or PyPI they say so
//! and pass. `HALLMARK_TEST_PYTHONS` (a list as in `PATH`) names interpreters with other pytest versions to try.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hallmark::results::{
    Disagreement, Fault, HARD_LIMIT_SIGNAL, NONCE_FILE, Options, Outcome, Place, Printed,
    REPORT_FILE, Report, cross_check, instrument, read_report, runner_files,
};
use hallmark::spec::Parser;

mod bad_input;
mod containers;
mod corpus;
mod edges;
mod family;
mod hostile;
mod network;
mod order;
mod text;

const NONCE: &[u8] = b"00112233445566778899aabbccddeeff";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results")
}

/// A virtual environment of this host's Python with `packages`, made once; `None` where that cannot be.
fn environment(name: &str, packages: &[&str]) -> Option<PathBuf> {
    let folder = crate::support::shared_folder().join(name);
    let python = folder.join("bin/python");
    let ready = folder.join("ready");
    let lock = folder.with_extension("lock");
    let cancel = hallmark::base::Cancel::new();
    let _lock = hallmark::base::flock::FileLock::exclusive(&lock, &cancel).unwrap();
    if !ready.exists() {
        let run = |program: &Path, words: &[&str]| {
            Command::new(program)
                .args(words)
                .env_remove("PIP_FIND_LINKS")
                .output()
                .is_ok_and(|output| output.status.success())
        };
        let install = [&["-m", "pip", "install", "-q"], packages].concat();
        let made = run(Path::new("python3"), &["-m", "venv", folder.to_str().unwrap()])
            && run(&python, &install);
        if !made {
            crate::support::say_skipped("no Python 3 with venv, or PyPI cannot be reached");
            return None;
        }
        fs_err::write(&ready, "").unwrap();
    }
    Some(python)
}

/// Interpreters with pytest, made once.
fn pythons() -> &'static [PathBuf] {
    static PYTHONS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PYTHONS.get_or_init(|| {
        #[expect(clippy::disallowed_methods, reason = "tests choose interpreters by it")]
        if let Some(list) = std::env::var_os("HALLMARK_TEST_PYTHONS") {
            return std::env::split_paths(&list).collect();
        }
        let packages = [
            "pytest==8.3.5",
            "pytest-xdist==3.6.1",
            "pytest-rerunfailures==15.0",
            "pytest-subtests==0.14.1",
        ];
        environment("pytest-8.3.5", &packages).into_iter().collect()
    })
}

/// An interpreter that has pip.
pub(crate) fn python_with_pip() -> Option<&'static Path> {
    pythons().last().map(PathBuf::as_path)
}

struct Run {
    report: Report,
    parser: Parser,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    status: std::process::ExitStatus,
    python: String,
    bytes: Vec<u8>,
    folder: tempfile::TempDir,
}

impl Run {
    /// A file that the tests wrote into their folder.
    fn file(&self, name: &str) -> Option<Vec<u8>> {
        fs_err::read(self.folder.path().join("work").join(name)).ok()
    }

    fn outcome(&self, id: &str) -> Outcome {
        self.report.tests.get(id).map_or(Outcome::Missing, |result| result.outcome)
    }

    fn reason(&self, id: &str) -> &str {
        self.report.tests[id].reason.as_deref().unwrap_or_default()
    }

    fn check(&self) -> Vec<Disagreement> {
        let printed = Printed { stdout: &self.stdout, stderr: &self.stderr };
        cross_check(&self.report, self.parser, printed, self.status.code())
    }
}

/// Runs `words` as the test command over a copy of a fixture folder, once per interpreter.
fn runs(fixture: &str, limit: f64, words: &[&str], prepare: impl Fn(&Path)) -> Vec<Run> {
    runs_with(fixture, &Options { test_timeout: limit, ..Options::default() }, words, prepare)
}

/// The same with other options.
fn runs_with(
    fixture: &str,
    options: &Options,
    words: &[&str],
    prepare: impl Fn(&Path),
) -> Vec<Run> {
    let launch = |python: &PathBuf| {
        Launch { python, parser: Parser::Pytest, fixture, options, words }.run(&prepare)
    };
    pythons().iter().map(launch).collect()
}

/// What is run.
struct Launch<'a> {
    python: &'a Path,
    parser: Parser,
    fixture: &'a str,
    options: &'a Options,
    words: &'a [&'a str],
}

impl Launch<'_> {
    fn run(&self, prepare: impl Fn(&Path)) -> Run {
        let scratch = tempfile::tempdir().unwrap();
        let [work, runner, report] =
            ["work", "hallmark-runner", "hallmark-report"].map(|name| scratch.path().join(name));
        for folder in [&work, &runner, &report] {
            fs_err::create_dir(folder).unwrap();
        }
        let from = fixtures().join(self.fixture);
        for entry in walkdir::WalkDir::new(&from).min_depth(1) {
            let entry = entry.unwrap();
            let to = work.join(entry.path().strip_prefix(&from).unwrap());
            if entry.file_type().is_dir() {
                fs_err::create_dir(to).unwrap();
            } else {
                fs_err::copy(entry.path(), to).unwrap();
            }
        }
        prepare(&work);
        for (name, bytes) in runner_files(self.options) {
            fs_err::write(runner.join(name), bytes).unwrap();
        }
        fs_err::write(report.join(NONCE_FILE), NONCE).unwrap();
        fs_err::write(report.join(REPORT_FILE), "").unwrap();
        let command: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        let place = Place {
            runner_folder: runner.to_str().unwrap().to_owned(),
            report_folder: report.to_str().unwrap().to_owned(),
        };
        let argv = instrument(&command, self.parser, &place).unwrap().argv;
        let bin = self.python.parent().unwrap().to_str().unwrap();
        let output = Command::new("env")
            .args(&argv)
            .current_dir(&work)
            .env_clear()
            .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
            .env("LC_ALL", "C.UTF-8")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        let bytes = fs_err::read(report.join(REPORT_FILE)).unwrap();
        assert!(!report.join(NONCE_FILE).exists(), "the nonce is removed");
        let errors = String::from_utf8_lossy(&output.stderr);
        Run {
            report: read_report(&bytes, NONCE).unwrap(),
            parser: self.parser,
            python: format!("{}: {errors}", self.python.display()),
            stdout: output.stdout,
            stderr: output.stderr,
            status: output.status,
            bytes,
            folder: scratch,
        }
    }
}

const PYTEST: [&str; 5] = ["python", "-m", "pytest", "-p", "no:cacheprovider"];

fn pytest(words: &[&'static str]) -> Vec<&'static str> {
    [&PYTEST, words].concat()
}

#[test]
fn online_every_way_to_end_is_read() {
    for run in runs("outcomes", 60.0, &pytest(&["--doctest-modules", "-rA"]), |_| {}) {
        let python = &run.python;
        let module = "test_outcomes.py::";
        for (name, outcome) in [
            ("test_passes", Outcome::Passed),
            ("test_fails", Outcome::Failed),
            ("test_error_in_setup", Outcome::Error),
            ("test_error_in_teardown", Outcome::Error),
            ("test_fails_and_error_in_teardown", Outcome::Failed),
            ("test_skips", Outcome::Skipped),
            ("test_marked_skip", Outcome::Skipped),
            ("test_xfails", Outcome::Xfailed),
            ("test_xfail_not_run", Outcome::Xfailed),
            ("test_xpasses", Outcome::Xpassed),
            ("test_strict_xpass", Outcome::Failed),
            ("test_strange_ids[a b]", Outcome::Passed),
            ("test_strange_ids[c - d]", Outcome::Passed),
            ("test_strange_ids[e::f]", Outcome::Passed),
            ("test_strange_ids[g[h]i]", Outcome::Passed),
            ("test_strange_ids[j]k]", Outcome::Passed),
            ("test_strange_ids[l\\nm]", Outcome::Passed),
            ("test_strange_ids[n\\\\o]", Outcome::Passed),
            ("test_strange_ids[\\xe4\\u6f22]", Outcome::Passed),
            ("test_strange_ids[]", Outcome::Passed),
            ("test_strange_ids[p\\x00q]", Outcome::Passed),
            ("test_strange_ids[ r ]", Outcome::Passed),
            ("test_strange_ids[\\U0001f600]", Outcome::Passed),
            ("test_same_ids[same0]", Outcome::Passed),
            ("test_same_ids[same1]", Outcome::Passed),
            ("TestUnit::test_unit", Outcome::Passed),
            ("TestUnit::test_expected_failure", Outcome::Xfailed),
            ("TestUnit::test_sub_fails", Outcome::Failed),
            ("TestUnit::test_sub_passes", Outcome::Passed),
            ("test_prints_what_a_summary_looks_like", Outcome::Passed),
            ("test_prints_binary", Outcome::Passed),
            ("test_closes_every_descriptor", Outcome::Passed),
            ("test_forks_a_child_that_goes_on", Outcome::Passed),
            ("test_nothing_leaks", Outcome::Passed),
            ("test_spawned_children_work", Outcome::Passed),
        ] {
            assert_eq!(run.outcome(&format!("{module}{name}")), outcome, "{name} {python}");
        }
        assert_eq!(run.outcome("documented.py::documented.one"), Outcome::Passed, "{python}");
        assert_eq!(run.outcome("documented.py::documented.two"), Outcome::Failed, "{python}");
        assert_eq!(run.report.tests.len(), 37, "{python}");
        assert_eq!(run.report.collected.as_ref().unwrap().len(), 37, "{python}");
        assert!(run.reason("test_outcomes.py::test_fails").contains("one is not two"));
        assert!(run.report.collection_skips.contains_key("test_skipped_module.py"), "{python}");
        assert_eq!(run.check(), [], "{python}");
        assert_eq!((run.report.session_exit, run.report.process_exit), (Some(1), Some(1)));
        assert_eq!(run.status.code(), Some(1));
        assert!(run.report.unfinished.is_empty());
    }
}

#[test]
fn online_ids_with_raw_unicode_and_a_script() {
    let ini = |work: &Path| {
        fs_err::write(
            work.join("pytest.ini"),
            "[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n",
        )
        .unwrap();
        // What `pytest` does not put on sys.path and `python -m pytest` does.
        fs_err::write(
            work.join("test_path.py"),
            "import os, sys\ndef test_path():\n    assert sys.path[0] != os.getcwd()\n",
        )
        .unwrap();
    };
    let words = ["pytest", "-p", "no:cacheprovider", "--import-mode=append"];
    for run in runs("outcomes", 60.0, &words, ini) {
        if run.report.pytest.as_deref().is_some_and(|version| version < "5") {
            continue;
        }
        let python = &run.python;
        for id in ["\u{e4}\u{6f22}", "l\nm", "\u{1f600}"] {
            let id = format!("test_outcomes.py::test_strange_ids[{id}]");
            assert_eq!(run.outcome(&id), Outcome::Passed, "{id:?} {python}");
        }
        assert_eq!(run.outcome("test_path.py::test_path"), Outcome::Passed, "{python}");
        assert_eq!(run.outcome("test_outcomes.py::test_nothing_leaks"), Outcome::Passed);
        assert_eq!(run.check(), [], "{python}");
    }
}

#[test]
fn online_xdist_reports_through_the_controller() {
    for run in runs("outcomes", 60.0, &pytest(&["-n", "2"]), |_| {}) {
        if run.stdout.is_empty() || run.report.collected.is_none() {
            continue; // No xdist there.
        }
        let python = &run.python;
        assert_eq!(run.report.tests.len(), 35, "{python}");
        assert_eq!(run.outcome("test_outcomes.py::test_fails"), Outcome::Failed, "{python}");
        assert_eq!(
            run.outcome("test_outcomes.py::test_nothing_leaks"),
            Outcome::Passed,
            "{python}"
        );
        assert_eq!(run.report.collected.as_ref().unwrap().len(), 35, "{python}");
        assert_eq!(run.check(), [], "{python}");
    }
}

#[test]
fn online_reruns_settle_on_the_last_attempt() {
    let flaky = |work: &Path| {
        fs_err::write(
            work.join("test_rerun.py"),
            "seen = []\ndef test_second_time():\n    seen.append(1)\n    assert len(seen) == 2\n\
             def test_never():\n    assert False\n",
        )
        .unwrap();
    };
    for run in runs("empty", 60.0, &pytest(&["--reruns", "2"]), flaky) {
        if run.report.collected.is_none() {
            continue; // No rerunfailures there.
        }
        let python = &run.python;
        let second = &run.report.tests["test_rerun.py::test_second_time"];
        assert_eq!((second.outcome, second.reruns), (Outcome::Passed, 1), "{python}");
        let never = &run.report.tests["test_rerun.py::test_never"];
        assert_eq!((never.outcome, never.reruns), (Outcome::Failed, 2), "{python}");
        assert_eq!(run.check(), [], "{python}");
    }
}

#[test]
fn online_a_test_over_its_limit_fails_and_the_run_goes_on() {
    for run in runs("limits", 1.0, &pytest(&["test_limits.py"]), |_| {}) {
        let python = &run.python;
        for (name, outcome) in [
            ("test_before", Outcome::Passed),
            ("test_sleeps", Outcome::Failed),
            ("test_swallows_the_exception", Outcome::Failed),
            ("test_swallows_and_skips", Outcome::Failed),
            ("test_loops", Outcome::Failed),
            ("test_tears_down_slowly", Outcome::Error),
            ("test_after", Outcome::Passed),
        ] {
            let id = format!("test_limits.py::{name}");
            assert_eq!(run.outcome(&id), outcome, "{name} {python}");
            if !outcome.satisfies() {
                assert!(run.reason(&id).starts_with("timeout: "), "{name} {}", run.reason(&id));
            }
        }
        assert_eq!(run.check(), [], "{python}");
        assert_eq!(run.status.code(), Some(1));
    }
}

#[test]
fn online_a_test_over_its_limit_ends_its_worker_and_the_run_goes_on() {
    let more = |work: &Path| {
        // It was made for the limit of one process, whose tear-down gets time of its own.
        fs_err::remove_file(work.join("test_limits.py")).unwrap();
        fs_err::write(
            work.join("test_workers.py"),
            "import time\ndef test_before(): pass\ndef test_sleeps():\n    time.sleep(600)\n\
             def test_between(): pass\ndef test_loops():\n    while True:\n        try:\n            \
             time.sleep(600)\n        except BaseException: pass\ndef test_after(): pass\n",
        )
        .unwrap();
    };
    for run in runs("limits", 2.0, &pytest(&["-n", "2", "test_workers.py"]), more) {
        if run.report.collected.is_none() {
            continue; // No xdist there.
        }
        let python = &run.python;
        for (name, outcome) in [
            ("test_before", Outcome::Passed),
            ("test_sleeps", Outcome::Failed),
            ("test_between", Outcome::Passed),
            ("test_loops", Outcome::Failed),
            ("test_after", Outcome::Passed),
        ] {
            let id = format!("test_workers.py::{name}");
            assert_eq!(run.outcome(&id), outcome, "{name} {python}");
            if !outcome.satisfies() {
                assert!(run.reason(&id).starts_with("timeout: "), "{name} {}", run.reason(&id));
            }
        }
        assert_eq!(run.check(), [], "{python}");
        assert_eq!(run.status.code(), Some(1));
    }
}

#[test]
fn online_a_hang_in_c_ends_the_process_and_keeps_the_rest() {
    use std::os::unix::process::ExitStatusExt as _;
    for run in runs("limits", 1.0, &pytest(&["test_zz_hard.py"]), |_| {}) {
        let python = &run.python;
        assert_eq!(run.status.signal(), Some(HARD_LIMIT_SIGNAL), "{python}");
        assert_eq!(run.report.unfinished, ["test_zz_hard.py::test_ends_the_process"]);
        assert_eq!(run.outcome("test_zz_hard.py::test_ends_the_process"), Outcome::Failed);
        assert_eq!(run.outcome("test_zz_hard.py::test_never_reached"), Outcome::Missing);
        assert_eq!(run.report.collected.as_ref().unwrap().len(), 2);
        assert_eq!(run.report.session_exit, None);
    }
}

#[test]
fn online_a_test_that_leaves_with_success_does_not_pass() {
    for run in runs("hostile", 60.0, &pytest(&["test_exits.py"]), |_| {}) {
        assert_eq!(run.status.code(), Some(0));
        assert_eq!(run.outcome("test_exits.py::test_before"), Outcome::Passed);
        assert_eq!(run.outcome("test_exits.py::test_leaves"), Outcome::Failed);
        assert_eq!(run.outcome("test_exits.py::test_never_reached"), Outcome::Missing);
        assert_eq!((run.report.session_exit, run.report.process_exit), (None, None));
    }
}

#[test]
fn online_forged_lines_are_not_taken_and_are_named() {
    for run in runs("hostile", 60.0, &pytest(&["test_forges.py"]), |_| {}) {
        let python = &run.python;
        assert_eq!(run.outcome("test_forges.py::test_the_nonce_is_gone"), Outcome::Passed);
        assert_eq!(run.outcome("test_forges.py::test_forges"), Outcome::Passed, "{python}");
        assert_eq!(run.outcome("test_forges.py::test_fails"), Outcome::Failed, "{python}");
        // What the runner writes after the forged lines is still read.
        assert_eq!(run.outcome("test_forges.py::test_last"), Outcome::Passed, "{python}");
        let foreign: Vec<_> = run.report.faults.iter().collect();
        assert!(
            matches!(foreign[..], [Fault::Foreign { line: a }, Fault::Foreign { line: b }] if *b == a + 1),
            "{foreign:?}"
        );
        assert_eq!(run.check().len(), 2);
    }
}

#[test]
fn online_forged_totals_disagree_with_the_report() {
    for run in runs("hostile", 60.0, &pytest(&["test_totals.py"]), |_| {}) {
        assert_eq!(run.outcome("test_totals.py::test_fails"), Outcome::Failed);
        assert_eq!(
            run.check(),
            [
                Disagreement::Stdout { word: "passed".to_owned(), expected: 1, actual: 2 },
                Disagreement::Stdout { word: "failed".to_owned(), expected: 1, actual: 0 },
            ]
        );
    }
}

#[test]
fn online_a_broken_collection_is_no_success() {
    for run in runs("broken", 60.0, &pytest(&["-p", "conftest_exits_zero"]), |_| {}) {
        let python = &run.python;
        assert_eq!(run.outcome("test_whole.py::test_passes"), Outcome::Missing, "{python}");
        let reason = &run.report.collection_errors["test_broken.py"];
        assert!(reason.contains("a_module_that_nobody_has"), "{reason}");
        assert_eq!(run.report.counted, BTreeMap::from([("error".to_owned(), 1)]));
    }
    let options = Options { continue_on_collection_errors: true, ..Options::default() };
    for run in runs_with("broken", &options, &pytest(&[]), |_| {}) {
        assert_eq!(run.outcome("test_whole.py::test_passes"), Outcome::Passed, "{}", run.python);
        assert!(run.report.collection_errors.contains_key("test_broken.py"));
        assert_eq!(run.check(), []);
    }
}

#[test]
fn online_no_test_at_all() {
    for run in runs("empty", 60.0, &pytest(&[]), |_| {}) {
        assert_eq!(run.report.tests, BTreeMap::new());
        assert_eq!(run.report.session_exit, Some(5), "{}", run.python);
        assert_eq!(run.check(), []);
    }
}

#[test]
fn online_any_change_of_a_stream_is_seen() {
    for run in runs("broken", 60.0, &pytest(&["test_whole.py"]), |_| {}) {
        let lines: Vec<&[u8]> = run.bytes.split_inclusive(|byte| *byte == b'\n').collect();
        assert!(run.report.faults.is_empty() && lines.len() > 6);
        let read = |lines: Vec<&[u8]>| read_report(&lines.concat(), NONCE).unwrap();
        for at in 0..lines.len() {
            let mut dropped = lines.clone();
            dropped.remove(at);
            // Only the end can be cut unseen; it is then missing from the report itself.
            let report = read(dropped);
            if at + 1 == lines.len() {
                assert_eq!((report.process_exit, run.report.process_exit), (None, Some(0)));
            } else {
                assert!(!report.faults.is_empty(), "line {at} dropped");
            }
            let mut doubled = lines.clone();
            doubled.insert(at, lines[at]);
            assert!(!read(doubled).faults.is_empty(), "line {at} doubled");
            let changed = String::from_utf8(lines[at].to_vec()).unwrap().replacen(": ", ":  ", 1);
            let mut edited = lines.clone();
            edited[at] = changed.as_bytes();
            assert!(!read(edited).faults.is_empty(), "line {at} changed");
        }
        let cut = &run.bytes[..run.bytes.len() - 3];
        let report = read_report(cut, NONCE).unwrap();
        assert!(report.cut && report.faults.is_empty());
        assert_eq!(report.tests, run.report.tests);
        let foreign = read_report(&run.bytes, b"another nonce").unwrap();
        assert_eq!(foreign.faults.len(), lines.len());
        assert!(foreign.tests.is_empty());
    }
}
