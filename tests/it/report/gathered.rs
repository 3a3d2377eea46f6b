//! A real manifest and store, in the library and on the command line: what is shown, and what is said where the store lacks something.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use hallmark::base::progress::Silent;
use hallmark::base::{Digest, SharedReporter, canon};
use hallmark::cli::exit;
use hallmark::manifest::{Manifest, RunEntry, write};
use hallmark::report::{Gathering, Part, gather, html};
use hallmark::results::Outcome;
use hallmark::verify::{LogKind, Phase, RunRecord, log_path};

use crate::manifest::Made;
use crate::support::say_skipped;
use crate::verify::support::adds;

const WRONG: &str =
    "diff --git a/lib.py b/lib.py\n--- a/lib.py\n+++ b/lib.py\n@@ -1 +1 @@\n-x = 1\n+x = 3\n";
const LOUD: &str = "import lib, sys\ndef test_x():\n    sys.stdout.buffer.write(b'</pre><script>\\x1b[31mred\\xff\\n')\n    assert lib.x == 2\ndef test_p(): pass\n";

/// A manifest with a run that failed, beside four that went well.
fn failing(made: &Made) -> (Manifest, RunRecord) {
    let run = made.bench.run(&made.spec, Phase::Post, 7, [WRONG, &adds("tests/test_x.py", LOUD)]);
    assert_eq!(run.outcome_of("tests/test_x.py::test_x"), Outcome::Failed);
    let mut manifest = made.manifest();
    let outcomes: std::collections::BTreeMap<_, _> =
        run.tests.iter().map(|(id, result)| (id.clone(), result.outcome)).collect();
    let path = made.bench.store.run_path(&run.key).join("record.json");
    let entry = RunEntry {
        key: run.key,
        phase: run.phase,
        series: run.series.clone(),
        repeat: run.repeat,
        alone: run.alone,
        profile: run.profile.clone(),
        outcome: run.outcome.as_str().to_owned(),
        outcomes: canon::digest(&outcomes).unwrap(),
        record: Digest::of(fs_err::read(path).unwrap()),
        stdout: run.stdout,
        stderr: run.stderr,
        report: run.report,
    };
    manifest.evidence.instances.values_mut().next().unwrap().runs.push(entry);
    (manifest, run)
}

#[test]
fn online_a_report_shows_what_the_store_has_and_says_what_it_lacks() {
    let Some(made) = Made::new() else { return };
    let (manifest, run) = failing(&made);
    let store = &made.bench.store;
    let reporter: SharedReporter = Arc::new(Silent);
    let cancel = &made.bench.cancel;
    let gathering = Gathering { store, jobs: 2, reporter: &reporter, cancel };
    let report = || gather(gathering, &manifest).unwrap();
    let input = report();
    let instance = &input.instances[0];
    assert_eq!(instance.runs.len(), 5);
    assert_eq!(instance.facts.absent, []);
    let failed: Vec<usize> = instance.runs.iter().map(|run| run.failed).collect();
    assert_eq!(failed, [1, 1, 0, 0, 1]);
    assert_eq!(instance.rows[0].tests, ["tests/test_x.py::test_x"]);
    assert_eq!(instance.rows[0].cells, ["FF", "..F"]);
    let layers = &instance.facts.layers;
    assert_eq!(layers.len(), 2);
    assert!(layers.iter().all(|layer| layer.part == Part::Instance && layer.compressed.is_some()));
    // Escapes of the log are gone or shown; its bytes are checked.
    assert_eq!(instance.excerpts[0].run, 5);
    let text = instance.excerpts[0].text.as_ref().unwrap();
    assert!(text.contains("\n</pre><script>red") && !text.contains('\u{1b}'), "{text}");
    let page = html(&input);
    assert!(page.contains("\n&lt;/pre&gt;&lt;script&gt;red"));
    assert_eq!(page, html(&report()), "the same store gives the same bytes");

    // Another log; none.
    let log = log_path(store, &run.key, LogKind::Stdout);
    fs_err::write(&log, "planted").unwrap();
    let said = report().instances[0].excerpts[0].text.clone();
    assert_eq!(said, Err("the log in this store is not the recorded one".to_owned()));
    fs_err::remove_file(&log).unwrap();
    assert!(html(&report()).contains("the log is not in this store"));
    // Another record; none; one that is no record although its digest is the manifest's cannot be.
    let record = store.run_path(&run.key).join("record.json");
    let bytes = fs_err::read(&record).unwrap();
    fs_err::write(&record, [&bytes[..], b" "].concat()).unwrap();
    let input = report();
    assert_eq!(input.instances[0].runs.len(), 4);
    let why = "its record in this store is not the manifest's".to_owned();
    assert_eq!(input.instances[0].facts.absent, [(run.key, why)]);
    fs_err::remove_dir_all(store.root().join("runs")).unwrap();
    let input = report();
    assert_eq!((input.instances[0].runs.len(), input.instances[0].facts.absent.len()), (0, 5));
    let page = html(&input);
    assert!(page.contains(
        "5 runs are not shown below: its record is not in this store (the first of them)."
    ));
    // The end can be asked for.
    made.bench.cancel.cancel();
    assert!(gather(gathering, &manifest).is_err());
}

/// The binary, in `folder`, on the bench's store.
fn call(made: &Made, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hallmark"))
        .args(arguments)
        .arg("--store")
        .arg(made.bench.store.root())
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn online_the_verb_writes_the_page_and_prints_the_table() {
    let Some(made) = Made::new() else { return };
    let (manifest, _) = failing(&made);
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("s.manifest.json"), write(&manifest).unwrap()).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();

    // By the split's name.
    let output = call(&made, folder.path(), &["report", "s"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(i32::from(exit::OK)), "{said}");
    assert!(said.ends_with("1 instance, 5 runs\nwrote s.report.html\n"), "{said}");
    let table = text(&output.stdout);
    assert!(table.starts_with("instance       verdict      pre+post"), "{table}");
    assert!(table.contains("owner__name-1  provisional"), "{table}");
    assert!(!table.contains('\u{1b}'), "{table}");
    let page = fs_err::read_to_string(folder.path().join("s.report.html")).unwrap();
    assert!(page.contains("Gold runs of s"));

    // By the file's name, to another place, for programs: the same bytes.
    let output = call(
        &made,
        folder.path(),
        &["report", "s.manifest.json", "--output", "x.html", "--json", "--quiet"],
    );
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (told, lines): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| line["kind"] == "progress");
    assert_eq!(told.len(), 2);
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["verdict", "report"]);
    assert_eq!(lines[0]["value"]["instance"], "owner__name-1");
    assert_eq!(lines[0]["value"]["verdict"]["status"], "provisional");
    assert_eq!(
        lines[1]["value"],
        serde_json::json!({ "path": "x.html", "bytes": page.len(), "absent-runs": 0 })
    );
    assert_eq!(fs_err::read_to_string(folder.path().join("x.html")).unwrap(), page);
    assert!(output.stderr.is_empty());

    // No such file; no manifest.
    let output = call(&made, folder.path(), &["report", "other"]);
    assert_eq!(output.status.code(), Some(i32::from(exit::BAD_INPUT)));
    assert!(text(&output.stderr).contains("there is no file"), "{}", text(&output.stderr));
    let output = call(&made, folder.path(), &["report", "x.html"]);
    assert_eq!(output.status.code(), Some(i32::from(exit::BAD_INPUT)));
    assert!(text(&output.stderr).contains("is not a manifest"), "{}", text(&output.stderr));

    // A terminal of 60 columns, with colours and without.
    let Ok(_) = Command::new("script").arg("--version").output() else {
        say_skipped("`script` is not installed: no terminal to print to");
        return;
    };
    for (no_color, expected) in [("", true), ("1", false)] {
        let command = format!(
            "stty cols 60; exec {} report s --quiet --store {}",
            env!("CARGO_BIN_EXE_hallmark"),
            made.bench.store.root().display()
        );
        let output = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("TERM", "xterm")
            .env("NO_COLOR", no_color)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let table = text(&output.stdout);
        assert_eq!(table.contains("\u{1b}[33mprovisional\u{1b}[0m"), expected, "{table}");
        assert_eq!(table.contains('\u{1b}'), expected, "{table}");
        if !expected {
            assert!(table.lines().all(|line| line.chars().count() <= 60), "{table}");
            assert!(table.contains('…'), "{table}");
        }
    }
}
