//! Gold runs of the same rows on the same images, two at once: the harness of SWE-bench (5.0.2, from PyPI) against
//! `hallmark verify --runs 1`, which also makes the runs before the fix. Run as root:
//!
//! ```text
//! cargo bench --bench harness
//! ```
//!
//! The rows are the quickstart's 13, and 12 real ones where `HALLMARK_CORPUS` and `HALLMARK_MIRRORS` are set: those with the shortest
//! tests, since in the long ones there is nothing but tests to be measured, and hallmark runs them twice as often.
//!
//! Needs Docker's `dockerd`, which is started for it with its state in a temporary folder, and, the first time, the network. The
//! images are built and loaded before; hallmark begins each round without any run or patched layer.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hallmark::base::clock::Stopwatch;
use support::{Dockerd, Venv, copy_store, shared_folder};

/// Real rows, by how long their tests take.
const REAL: [&str; 12] = [
    "pallets__flask-5063",
    "psf__requests-6028",
    "pytest-dev__pytest-10051",
    "pallets__flask-4992",
    "psf__requests-3362",
    "pytest-dev__pytest-7205",
    "pydata__xarray-3677",
    "pydata__xarray-4629",
    "pydata__xarray-7393",
    "sphinx-doc__sphinx-9281",
    "sphinx-doc__sphinx-9320",
    "pytest-dev__pytest-10356",
];

const ROUNDS: usize = 3;
/// Of the harness's time.
const TARGET: f64 = 1.0 / 3.0;

fn main() {
    let Some(harness) = Venv::get("swebench-5.0.2") else { return };
    // Tests of connect timeouts need a network that swallows what they send; hallmark's own runs have it.
    let Some(docker) = Dockerd::swallowing() else { return };
    // On the disk of the shared stores, whose files are linked.
    let folder = tempfile::tempdir_in(shared_folder()).unwrap();
    let (split, count) = split(folder.path());
    let split = split.to_str().unwrap();
    let built = shared_folder().join(format!("interop/built-{count}"));
    hallmark(folder.path(), &built, &["build", split]);
    hallmark(folder.path(), &built, &["load", split, "--docker-host", &docker.host()]);
    // Runs for the rows are made in a store of their own: `built` stays without.
    let judged = folder.path().join("judged");
    copy_store(&built, &judged);
    let rows = ["export", "swebench", split, "rows.jsonl", "--all", "--runs", "1"];
    hallmark(folder.path(), &judged, &rows);
    println!("{count} rows");

    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let run = format!("round-{round}");
        let watch = Stopwatch::start();
        let output = harness
            .python()
            .args(["-m", "swebench.harness.run_evaluation", "-d", "rows.jsonl", "-p", "gold"])
            .args(["-id", &run, "--max_workers", "2"])
            .env("DOCKER_HOST", docker.host())
            .env("HF_HUB_OFFLINE", "1")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        theirs.push(watch.elapsed().as_secs_f64());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(&format!("Instances resolved: {count}\n")), "{said}");

        let fresh = folder.path().join(&run);
        copy_store(&built, &fresh);
        let watch = Stopwatch::start();
        hallmark(folder.path(), &fresh, &["verify", split, "--runs", "1"]);
        ours.push(watch.elapsed().as_secs_f64());
    }
    let line = |name: &str, seconds: &[f64]| {
        let fastest = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let slowest = seconds.iter().copied().fold(0.0, f64::max);
        println!("{name:10} fastest {fastest:6.1} s, slowest {slowest:6.1} s of {ROUNDS}");
        fastest
    };
    let theirs = line("harness", &theirs);
    let ours = line("hallmark", &ours);
    println!("ratio      {:.3} (target: at most {TARGET:.3})", ours / theirs);
}

/// Writes the rows into a file; it and their number.
#[expect(clippy::disallowed_methods, reason = "settings of whoever runs the benchmark")]
fn split(folder: &Path) -> (PathBuf, usize) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/quickstart.rows.jsonl");
    let mut rows = fs_err::read_to_string(own).unwrap();
    let given = ["HALLMARK_CORPUS", "HALLMARK_MIRRORS"].map(std::env::var_os);
    if let [Some(corpus), Some(_)] = given {
        let corpus = Path::new(&corpus).join("swebench-rows.jsonl");
        for row in fs_err::read_to_string(corpus).unwrap().lines() {
            let described: serde_json::Value = serde_json::from_str(row).unwrap();
            if REAL.contains(&described["instance_id"].as_str().unwrap()) {
                rows += &format!("{row}\n");
            }
        }
    }
    let path = folder.join("split.jsonl");
    fs_err::write(&path, &rows).unwrap();
    (path, rows.lines().count())
}

/// Runs the program, two jobs at once; it must succeed.
fn hallmark(folder: &Path, store: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_hallmark"))
        .args(arguments)
        .args(["-j", "2", "--project", env!("CARGO_MANIFEST_DIR"), "--store"])
        .arg(store)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
