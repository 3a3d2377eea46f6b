//! Pushing the images of a split to an empty registry on this machine, beside `skopeo copy --all` of the same images from a
//! layout; and pushing them again. Run as root:
//!
//! ```text
//! cargo bench --bench push
//! cargo bench --bench push -- STORE
//! ```
//!
//! The split is built first, in STORE (a new folder by default): that needs the network once. Both push the same zstd layers, from files that were
//! just read; each round has a registry (Debian's docker-registry) of its own.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hallmark::base::clock::Stopwatch;
use hallmark::base::{Cancel, SharedReporter, Store, progress};
use hallmark::image::registry::{PushOptions, PushReport};
use hallmark::image::{Compressor, NameTemplate};
use hallmark::net::{Client, Config};
use hallmark::pipeline::{Board, Goal, Locks, Pipeline, Project};
use hallmark::runtime::Workbench;
use hallmark::runtime::embedded::Embedded;
use support::registry::Registry;

const SPLIT: &str = "quickstart";
const ROUNDS: usize = 5;
const MOST_REQUESTS: f64 = 2.0;

fn main() {
    // cargo adds `--bench`.
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = tempfile::tempdir().unwrap();
    let root = given.map_or_else(|| folder.path().join("store"), PathBuf::from);
    let store = Store::open(&root, &folder.path().join("scratch")).unwrap();
    let runtime = Embedded::new(&store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
    let reporter: SharedReporter = Arc::new(progress::Silent);
    let cancel = Cancel::new();
    #[expect(clippy::disallowed_methods, reason = "a benchmark runs where its user is")]
    let env = std::env::vars().collect();
    let client = Client::new(Config::from_host(&env, None).unwrap(), &cancel).unwrap();
    let project = Project::discover(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let bench =
        Workbench { store: &store, runtime: &runtime, reporter: &reporter, cancel: &cancel };
    let pipeline = Pipeline {
        project: &project,
        bench,
        client: &client,
        jobs,
        locks: Locks::Demand,
        mirrors: None,
    };
    let board = Board::read(&project, project.split(SPLIT).unwrap(), &[]).unwrap();
    let done = pipeline.execute(&board, Goal::Build);
    assert!(done.failures.is_empty(), "{:?}", done.failures);
    let layout = folder.path().join("layout");
    pipeline.export_layout(&board, &layout, hallmark::image::Compressor::default()).unwrap();
    let ids: Vec<String> = board
        .images()
        .into_iter()
        .filter_map(|(name, _)| Some(name.strip_prefix("instance/")?.to_owned()))
        .collect();

    let options = PushOptions { compressor: Compressor::default(), index: false, jobs };
    let push = |registry: &Registry| -> (f64, PushReport) {
        let template = format!("{}/set/{{id_1776}}:v1", registry.host());
        let clock = Stopwatch::start();
        let report =
            pipeline.push(&board, &NameTemplate::parse(&template).unwrap(), None, options).unwrap();
        (clock.elapsed().as_secs_f64(), report)
    };
    let (mut own, mut others, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let (mut requests, mut uploads) = (0, 0);
    let mut report = PushReport::default();
    for _ in 0..ROUNDS {
        let Some(registry) = Registry::start() else { return };
        let (seconds, first) = push(&registry);
        own.push(seconds);
        report = first;
        let before = registry.accesses().len();
        again.push(push(&registry).0);
        let accesses = registry.accesses();
        let second = &accesses[before..];
        requests = second.len();
        uploads = second
            .iter()
            .filter(|access| !matches!(access.method.as_str(), "GET" | "HEAD"))
            .count();

        let Some(registry) = Registry::start() else { return };
        let clock = Stopwatch::start();
        for id in &ids {
            skopeo(&layout, &id.replace("__", "--"), registry.host(), &id.replace("__", "_1776_"));
        }
        others.push(clock.elapsed().as_secs_f64());
    }
    let (own, others) = (Sample::of(own), Sample::of(others));
    println!(
        "{} images: {} blobs of {} bytes sent, {} mounted",
        ids.len(),
        report.sent.blobs,
        report.sent.bytes,
        report.mounted.blobs
    );
    println!("hallmark push       fastest {:.3} s, median {:.3} s", own.fastest, own.median);
    println!("skopeo copy --all   fastest {:.3} s, median {:.3} s", others.fastest, others.median);
    println!(
        "ratio               {:.2}, {:.2} (target: at most 1)",
        own.fastest / others.fastest,
        own.median / others.median
    );
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let per_image = requests as f64 / ids.len() as f64;
    println!(
        "second push         fastest {:.3} s, {per_image:.2} requests an image (target: at most {MOST_REQUESTS}), {uploads} uploads (target: 0)",
        Sample::of(again).fastest
    );
}

struct Sample {
    fastest: f64,
    median: f64,
}

impl Sample {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self { fastest: seconds[0], median: seconds[seconds.len() / 2] }
    }
}

fn skopeo(layout: &Path, name: &str, host: &str, repository: &str) {
    let output = Command::new("skopeo")
        .args(["copy", "--all", "--quiet", "--dest-tls-verify=false"])
        .arg(format!("oci:{}:instance/{name}", layout.display()))
        .arg(format!("docker://{host}/set/{repository}:v1"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
