//! Runs in real containers, and the judge over records.

mod climbing;
mod conditions;
mod judging;
mod policy;
mod simulation;
mod statistics;
mod orders;
pub(crate) mod support;
mod world;

use hallmark::base::Event;
use hallmark::base::progress;
use hallmark::results::Outcome;
use hallmark::runtime::{ExitStatus, Gap};
use hallmark::verify::{
    LogKind, PatchName, Phase, Policy, Rule, RunOutcome, Status, derive_lists, judge, load,
};

use support::{Bench, adds, spec};

const LIB: &str = "def add(a, b):\n    return a - b\n";
const GOLD: &str = "diff --git a/lib.py b/lib.py\n--- a/lib.py\n+++ b/lib.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n";

fn tests() -> String {
    adds(
        "tests/test_lib.py",
        "import lib\ndef test_add():\n    assert lib.add(1, 2) == 3\ndef test_zero():\n    assert lib.add(0, 0) == 0\n",
    )
}

#[test]
fn online_gold_flow_from_runs_to_a_verdict() {
    let Some(bench) = Bench::new(&[("lib.py", LIB)]) else { return };
    let (spec, test) = (spec(), tests());
    let runs = |phase: Phase| -> Vec<_> {
        (0..3).map(|repeat| bench.run(&spec, phase, repeat, [GOLD, &test])).collect()
    };
    let (pre, post) = (runs(Phase::Pre), runs(Phase::Post));
    for run in pre.iter().chain(&post) {
        let stderr = bench.log(run, LogKind::Stderr);
        assert_eq!(run.outcome, RunOutcome::Completed, "{stderr}");
        assert!(run.session_ended);
    }
    assert_eq!(pre[0].status, Some(ExitStatus::Exited(1)));
    assert_eq!(post[0].status, Some(ExitStatus::Exited(0)));
    assert_eq!(pre[0].outcome_of("tests/test_lib.py::test_add"), Outcome::Failed);
    // The patches became one layer, shared by the runs of a phase.
    assert_eq!(pre[0].layers, pre[2].layers);
    assert_ne!(pre[0].layers, post[0].layers);
    let derived = derive_lists(&pre, &post).unwrap();
    assert_eq!(derived.lists.fail_to_pass, ["tests/test_lib.py::test_add"]);
    assert_eq!(derived.lists.pass_to_pass, ["tests/test_lib.py::test_zero"]);
    let verdict = judge(&derived.lists, &[pre, post.clone()].concat(), &Policy::default());
    assert_eq!((verdict.status, verdict.runs, verdict.failures), (Status::Provisional, 3, 0));
    assert!(verdict.reasons.iter().any(|reason| reason.rule == Rule::TooFewRuns));

    // An existing record is found and nothing runs again.
    let (again, events) = bench.run_recorded(&spec, Phase::Post, 1, [GOLD, &test]);
    assert_eq!(again, post[1]);
    assert!(matches!(
        events[..],
        [
            Event::Started { stage: "run", .. },
            Event::Finished { outcome: progress::Outcome::Cached, .. }
        ]
    ));
    // A record that was cut off is made again.
    let path = bench.store.run_path(&again.key).join("record.json");
    let bytes = fs_err::read(&path).unwrap();
    fs_err::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(load(&bench.store, &again.key).unwrap(), None);
    let made = bench.run(&spec, Phase::Post, 1, [GOLD, &test]);
    assert_eq!((made.tests.len(), made.layers), (2, again.layers));
    // One of a newer version is refused.
    fs_err::write(&path, "{\"version\": 3}").unwrap();
    let error = load(&bench.store, &again.key).unwrap_err().to_string();
    assert!(error.contains("has version 3"), "{error}");
}

#[test]
fn online_a_patch_that_does_not_apply_names_file_and_hunk() {
    let text: String = (1..=60).map(|number| format!("line = {number}\n")).collect();
    let Some(bench) = Bench::new(&[("lib.py", &text), ("tests/test_x.py", "def test(): pass\n")])
    else {
        return;
    };
    let test = adds("tests/test_lib.py", "def test_it(): pass\n");
    let stale = "diff --git a/lib.py b/lib.py\n--- a/lib.py\n+++ b/lib.py\n\
        @@ -1,2 +1,2 @@\n-line = 1\n+line = 0\n line = 2\n\
        @@ -50,2 +50,2 @@\n-line = nothing\n+line = 0\n line = 51\n";
    let run = bench.run(&spec(), Phase::Post, 0, [stale, &test]);
    let RunOutcome::PatchError { patch, file, hunk, message } = &run.outcome else {
        panic!("{:?}", run.outcome)
    };
    assert_eq!(
        (*patch, file.as_deref(), *hunk),
        (PatchName::Gold, Some("lib.py"), Some(2)),
        "{message}"
    );
    assert!(run.layers.is_empty() && run.tests.is_empty());
    assert!(bench.log(&run, LogKind::Stderr).contains("patch failed"));
    // The file is there already.
    let planted = adds("tests/test_x.py", "def test_other(): pass\n");
    let run = bench.run(&spec(), Phase::Pre, 0, ["", &planted]);
    let RunOutcome::PatchError { patch, file, .. } = &run.outcome else {
        panic!("{:?}", run.outcome)
    };
    assert_eq!((*patch, file.as_deref()), (PatchName::Test, Some("tests/test_x.py")));
    // A missing last newline is added, and said.
    let clipped = test.trim_end();
    let run = bench.run(&spec(), Phase::Pre, 0, ["", clipped]);
    assert_eq!((run.outcome.clone(), run.patches[0].normalised), (RunOutcome::Completed, true));
}

#[test]
fn online_what_is_built_is_built_again_after_the_patch() {
    let Some(bench) = Bench::new(&[("lib.py", LIB), ("built.py", LIB)]) else { return };
    let mut spec = spec();
    // As make does: only what is newer than its product.
    spec.commands.rebuild =
        vec!["if [ lib.py -nt built.py ]; then cp lib.py built.py; fi".to_owned()];
    let test = adds(
        "tests/test_built.py",
        "import built\ndef test_add():\n    assert built.add(1, 2) == 3\n",
    );
    let pre = bench.run(&spec, Phase::Pre, 0, [GOLD, &test]);
    let post = bench.run(&spec, Phase::Post, 0, [GOLD, &test]);
    let id = "tests/test_built.py::test_add";
    assert_eq!(pre.outcome_of(id), Outcome::Failed, "{:?}", pre.outcome);
    assert_eq!(post.outcome_of(id), Outcome::Passed, "{:?}", post.outcome);
    assert_eq!(post.layers.len(), 2);
    spec.commands.rebuild = vec!["echo first".to_owned(), "echo broken >&2; exit 3".to_owned()];
    let post = bench.run(&spec, Phase::Post, 0, [GOLD, &test]);
    assert_eq!(
        post.outcome,
        RunOutcome::BuildFailed { how: "exit code 3".to_owned(), tail: "broken".to_owned() }
    );
    assert!(bench.log(&post, LogKind::Stdout).contains("first"));
}

#[test]
fn online_what_is_built_again_has_the_same_bytes_each_time() {
    let Some(bench) = Bench::new(&[("lib.py", LIB)]) else { return };
    let mut spec = spec();
    // What installers do: compile, look at the work tree, leave temporary files.
    spec.commands.rebuild = vec![
        "python3 -m compileall -q lib.py && python3 -c 'import lib, this' > /dev/null".to_owned(),
        "python3 -c '\n\
         import os, tempfile, time\n\
         os.makedirs(\"/root/.cache\", exist_ok=True)\n\
         for place in \"/root/.cache/x\", \"/run/x\", tempfile.mktemp():\n    \
         print(time.time_ns(), file=open(place, \"w\"))'"
            .to_owned(),
        "git status > /dev/null; echo $SOURCE_DATE_EPOCH > built".to_owned(),
    ];
    let run = || bench.run(&spec, Phase::Post, 0, [GOLD, &tests()]);
    let first = run();
    assert_eq!(first.outcome, RunOutcome::Completed);
    let built = bench.store.layer_path(&first.layers[1].diff_id);
    let mut left = walkdir::WalkDir::new(&built).into_iter().map(|entry| entry.unwrap());
    assert!(built.join("testbed/built").exists());
    assert!(left.all(|entry| entry.file_name() != "__pycache__" && entry.file_name() != "x"));
    for layer in &first.layers {
        fs_err::remove_dir_all(bench.store.layer_path(&layer.diff_id)).unwrap();
    }
    fs_err::remove_dir_all(bench.store.run_path(&first.key)).unwrap();
    // Source times in compiled files have whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let second = run();
    assert_eq!(second.layers, first.layers);
}

#[test]
fn online_runs_that_break_have_their_own_outcome() {
    let Some(bench) = Bench::new(&[("lib.py", LIB)]) else { return };
    let run = |text: &str, change: &dyn Fn(&mut hallmark::spec::Spec)| {
        let mut spec = spec();
        change(&mut spec);
        bench.run(&spec, Phase::Pre, 0, ["", &adds("tests/test_lib.py", text)])
    };
    let id = |name: &str| format!("tests/test_lib.py::{name}");
    // A hang: the test is lost, and no other.
    let hang = "import time\ndef test_hang():\n    time.sleep(600)\ndef test_after(): pass\n";
    let record = run(hang, &|spec| spec.limits.test_timeout = 1.0);
    assert_eq!(record.outcome, RunOutcome::Completed);
    assert_eq!(record.outcome_of(&id("test_hang")), Outcome::Failed);
    assert_eq!(record.outcome_of(&id("test_after")), Outcome::Passed);
    // The wall limit ends the run, and what was streamed is kept.
    let slow = "import time\ndef test_before(): pass\ndef test_hang():\n    time.sleep(600)\n";
    let record = run(slow, &|spec| spec.limits.timeout = 20.0);
    assert_eq!(record.outcome, RunOutcome::Timeout);
    assert_eq!(record.outcome_of(&id("test_before")), Outcome::Passed);
    assert_eq!(record.outcome_of(&id("test_hang")), Outcome::Failed);
    // Nothing could be imported.
    let record = run("import nothing_of_this_name\ndef test(): pass\n", &|_| {});
    let RunOutcome::EnvError { reason } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert!(reason.contains("nothing_of_this_name"), "{reason}");
    // No test.
    let record = run("x = 1\n", &|_| {});
    assert_eq!(record.outcome, RunOutcome::EnvError { reason: "no test was collected".to_owned() });
    // The interpreter cannot be started.
    let record = run("def test(): pass\n", &|spec| spec.test.command[0] = "python3.99".to_owned());
    assert!(matches!(record.outcome, RunOutcome::EnvError { .. }), "{:?}", record.outcome);
    // The process leaves with success in the middle.
    let record = run("import os\ndef test_out():\n    os._exit(0)\ndef test_b(): pass\n", &|_| {});
    assert_eq!(record.outcome_of(&id("test_out")), Outcome::Failed);
    assert_eq!(record.outcome_of(&id("test_b")), Outcome::Missing);
    assert!(!record.session_ended);
    // Lines that somebody else wrote.
    let forged = "def test():\n    open('/run/hallmark-report/report', 'a').write('PASSED x\\n')\n";
    let record = run(forged, &|_| {});
    assert!(matches!(record.outcome, RunOutcome::ParserError { .. }), "{:?}", record.outcome);
    // Another file in the report's place is not read.
    let replaced = "import os\ndef test():\n    os.rename('/run/hallmark-report/report', '/run/hallmark-report/x')\n    open('/run/hallmark-report/report', 'w').close()\n";
    let record = run(replaced, &|_| {});
    assert_eq!(record.outcome_of(&id("test")), Outcome::Passed, "{:?}", record.outcome);
    // Memory.
    let hog = "def test_before(): pass\ndef test_hog():\n    x = [bytearray(64 << 20) for _ in range(64)]\n";
    let record = run(hog, &|spec| spec.limits.memory = 256 << 20);
    if !record.gaps.contains(&Gap::MemoryLimit) {
        assert_eq!(record.outcome, RunOutcome::Oom);
        assert_eq!(record.outcome_of(&id("test_before")), Outcome::Passed);
    }
    assert!(bench.folder.path().exists());
}
