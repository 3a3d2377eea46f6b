//! The harness of SWE-bench.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::thread;

use serde_json::Value;

use super::place::Place;
use crate::support::{Dockerd, Venv};

/// What the harness's own parser reads from its own log.
const STATUSES: &str = "
import json, sys
from swebench.harness.grading import get_logs_eval
from swebench.harness.utils import make_test_spec
row = next(r for r in map(json.loads, open('rows.jsonl')) if r['instance_id'] == sys.argv[1])
print(json.dumps(get_logs_eval(make_test_spec(row), sys.argv[2])[0]))
";

/// Grades candidates by the harness; its reports by instance.
pub(super) fn grade(
    place: &Place,
    harness: &Venv,
    docker: &Dockerd,
    run: &str,
    predictions: &str,
    more: &[&str],
) -> BTreeMap<String, Value> {
    let output = harness
        .python()
        .args(["-m", "swebench.harness.run_evaluation", "-d", "rows.jsonl", "-p", predictions])
        .args(["-id", run, "--max_workers", "2"])
        .args(more)
        .env("DOCKER_HOST", docker.host())
        .env("HF_HUB_OFFLINE", "1")
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let logs = place.path().join("logs/run_evaluation").join(run);
    let mut reports = BTreeMap::new();
    for entry in walkdir::WalkDir::new(logs).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.file_name() == "report.json" {
            let report: Value =
                serde_json::from_slice(&fs_err::read(entry.path()).unwrap()).unwrap();
            for (id, report) in report.as_object().unwrap() {
                reports.insert(id.clone(), report.clone());
            }
        }
    }
    reports
}

/// The outcomes that the harness read in one of its runs.
fn statuses(
    place: &Place,
    harness: &Venv,
    run: &str,
    model: &str,
    id: &str,
) -> BTreeMap<String, String> {
    let log = format!("logs/run_evaluation/{run}/{model}/{id}/test_output.txt");
    let output = harness
        .python()
        .args(["-c", STATUSES, id, &log])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Which outcomes are compared.
#[derive(Clone, Copy)]
pub(super) enum Compared {
    /// Of every test that either of both knows.
    Everything,
    /// Of the expected tests: the parsers of some repositories cut names, or read more or less than the runner reports.
    Expected,
}

/// Gold is resolved, a patch that does nothing is not, and each test ends as in our own runs, before the fix and after it.
pub(super) fn agrees(
    place: &Place,
    harness: &Venv,
    docker: &Dockerd,
    rows: &[Value],
    what: Compared,
) {
    let images = place.build();
    place.write_nothing(rows);
    let (gold_run, nothing_run) = (place.run_name("gold"), place.run_name("nothing"));
    // Most of an instance's time is the harness waiting for the container to stop.
    let (gold, nothing) = thread::scope(|scope| {
        let gold = scope.spawn(|| grade(place, harness, docker, &gold_run, "gold", &[]));
        let nothing = grade(place, harness, docker, &nothing_run, "nothing.jsonl", &[]);
        (gold.join().unwrap(), nothing)
    });
    assert_eq!((gold.len(), nothing.len()), (rows.len(), rows.len()));
    for row in rows {
        let id = row["instance_id"].as_str().unwrap();
        let report = &gold[id];
        assert_eq!(report["resolved"], true, "{id}: {report:#}");
        assert_eq!(report["tests_status"]["PASS_TO_PASS"]["success"], row["PASS_TO_PASS"], "{id}");
        assert_eq!(report["tests_status"]["FAIL_TO_PASS"]["success"], row["FAIL_TO_PASS"], "{id}");
        let report = &nothing[id];
        assert_eq!(report["resolved"], false, "{id}: {report:#}");
        assert_eq!(report["patch_successfully_applied"], true, "{id}: {report:#}");
        let image = &images[format!("instance/{id}")]["key"];
        for (run, model, phase) in [(&gold_run, "gold", "post"), (&nothing_run, "nothing", "pre")] {
            let theirs = statuses(place, harness, run, model, id);
            let ours = place.outcomes(image, phase);
            match what {
                Compared::Everything => assert_eq!(theirs, ours, "{id} {phase}"),
                Compared::Expected => same_where_expected(row, &theirs, &ours),
            }
        }
    }
}

/// Each expected test that goes by the same name in both ended alike. Names that the dataset's parser cut are no names of ours.
fn same_where_expected(
    row: &Value,
    theirs: &BTreeMap<String, String>,
    ours: &BTreeMap<String, String>,
) {
    let passes = |status: &String| matches!(status.as_str(), "PASSED" | "XFAIL");
    for list in ["FAIL_TO_PASS", "PASS_TO_PASS"] {
        for test in row[list].as_array().unwrap() {
            let test = test.as_str().unwrap();
            if let Some(ours) = ours.get(test) {
                let theirs = theirs.get(test);
                assert_eq!(theirs.is_some_and(passes), passes(ours), "{test}: {theirs:?} {ours}");
            }
        }
    }
}

#[test]
fn the_harness_finds_what_we_found() {
    let Some(harness) = Venv::get("swebench-5.0.2") else { return };
    let Some(docker) = Dockerd::shared() else { return };
    let Some(place) = Place::two() else { return };
    let rows = place.rows(&[]);
    place.load(docker, &[]);
    agrees(&place, &harness, docker, &rows, Compared::Everything);
}
