//! Gold runs of the quickstart on the same images, two at once: the harness of SWE-bench (5.0.2, from PyPI) against
//! `hallmark verify --runs 1`, which also makes the runs before the fix. Run as root:
//!
//! ```text
//! cargo bench --bench harness
//! ```
//!
//! Needs Docker's `dockerd`, which is started for it with its state in a temporary folder, and, the first time, the network. The
//! images are built and loaded before; hallmark begins each round without any run or patched layer.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use hallmark::base::clock::Stopwatch;
use support::{Dockerd, Venv, copy_store, shared_folder};

const ROUNDS: usize = 3;
/// Of the harness's time.
const TARGET: f64 = 1.0 / 3.0;

fn main() {
    let Some(harness) = Venv::get("swebench-5.0.2") else { return };
    let Some(docker) = Dockerd::start(&[]) else {
        println!("there is no Docker daemon: it needs root and dockerd");
        return;
    };
    // On the disk of the shared stores, whose files are linked.
    let folder = tempfile::tempdir_in(shared_folder()).unwrap();
    let built = shared_folder().join("interop/built");
    hallmark(folder.path(), &built, &["build", "quickstart"]);
    hallmark(folder.path(), &built, &["load", "quickstart", "--docker-host", &docker.host()]);
    // Runs for the rows are made in a store of their own: `built` stays without.
    let judged = folder.path().join("judged");
    copy_store(&built, &judged);
    let rows = ["export", "swebench", "quickstart", "rows.jsonl", "--all", "--runs", "1"];
    hallmark(folder.path(), &judged, &rows);

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
        assert!(said.contains("Instances resolved: 13"), "{said}");

        let fresh = folder.path().join(&run);
        copy_store(&built, &fresh);
        let watch = Stopwatch::start();
        hallmark(folder.path(), &fresh, &["verify", "quickstart", "--runs", "1"]);
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
