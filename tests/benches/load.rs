//! What it costs to bring 30 sibling images into a Docker daemon: `hallmark load`'s way, one stream of what is missing, against
//! `docker load` of one archive an image. Then what one more sibling costs. Run as root; the network is needed once, where the
//! tests did not fill their shared store before:
//!
//! ```text
//! cargo bench --bench load
//! ```
//!
//! Each side has a daemon of its own that is empty at first. A sibling is an image of the quickstart with a layer of 256 KiB on top. The
//! archives hold uncompressed layers, as `docker save` writes them; making them is not measured, and they are in the page cache.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use hallmark::base::clock::Stopwatch;
use hallmark::base::progress::Silent;
use hallmark::base::{Cancel, SharedReporter, Store};
use hallmark::dataset;
use hallmark::image::{Image, NamedImage, PackRules, Tarball, commit_tree};
use hallmark::net::{Client, Config};
use hallmark::pipeline::{Board, Goal, Locks, Pipeline, Project};
use hallmark::runtime::Workbench;
use hallmark::runtime::docker::{Endpoint, Engine};
use hallmark::runtime::embedded::Embedded;
use support::{Dockerd, Full, INSTANCES, copy_store, shared_folder};

const SIBLINGS: u8 = 30;
const OWN: usize = 256 << 10;
/// How many times faster.
const TARGET: f64 = 3.0;
/// Bytes sent for a sibling, in bytes of its own layer.
const MOST_SENT: f64 = 1.05;

fn main() {
    let Some(full) = Full::get() else { return };
    // On the disk of the shared store, whose files are linked.
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(shared_folder()).unwrap();
    let path = folder.path().join("store");
    copy_store(&full.store(), &path);
    let store = Store::open(&path, &folder.path().join("scratch")).unwrap();
    let image = build(&store);
    let siblings: Vec<(String, Image)> =
        (0..=SIBLINGS).map(|number| sibling(&store, &image, number)).collect();
    let (last, set) = siblings.split_last().unwrap();
    let Some(ours) = Dockerd::start(&[]) else {
        println!("skipped: dockerd is not installed, or this is not root");
        return;
    };
    let engine = Engine::connect(&[Endpoint::Unix(ours.socket())], &Cancel::new()).unwrap();
    println!("{}, an image of {} bytes and {SIBLINGS} siblings", engine.daemon(), size(&image));
    let load = |images: &[(String, Image)]| {
        let images: Vec<NamedImage<'_>> =
            images.iter().map(|(name, image)| NamedImage { name, image }).collect();
        let watch = Stopwatch::start();
        let report = engine.load(&images, &store, &silent(), &Cancel::new());
        assert!(report.failure.is_none(), "{:?}", report.failure);
        (watch.elapsed().as_secs_f64(), report)
    };
    let (one_stream, report) = load(set);
    println!(
        "hallmark load          {one_stream:7.1} s  {} layers, {} bytes sent",
        report.layers_sent, report.bytes_sent
    );
    let (one_more, report) = load(std::slice::from_ref(last));
    let own = last.1.layers.last().unwrap().size;
    let sent = ratio(report.bytes_sent, own);
    drop(ours);

    let theirs = Dockerd::start(&[]).unwrap();
    let singles: f64 = set.iter().map(|one| docker_load(&theirs, &store, one)).sum();
    println!("{SIBLINGS} times docker load   {singles:7.1} s");
    println!("ratio                  {:7.2} (target: at least {TARGET})", singles / one_stream);
    println!("one more sibling       {one_more:7.2} s");
    println!(
        "bytes sent for it      {sent:7.3} of its own layer's {own} (target: at most {MOST_SENT})"
    );
}

fn silent() -> SharedReporter {
    Arc::new(Silent)
}

#[expect(clippy::cast_precision_loss, reason = "figures of three digits")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

fn size(image: &Image) -> u64 {
    image.layers.iter().map(|layer| layer.size).sum()
}

/// An image of the quickstart, as the store has it.
fn build(store: &Store) -> Image {
    let runtime = Embedded::new(store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
    let (reporter, cancel) = (silent(), Cancel::new());
    let bench = Workbench { store, runtime: &runtime, reporter: &reporter, cancel: &cancel };
    let mut config = Config::from_host(&BTreeMap::new(), None).unwrap();
    config.offline = true;
    let client = Client::new(config, &cancel).unwrap();
    let project = Project::discover(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let pipeline = Pipeline {
        project: &project,
        bench,
        client: &client,
        jobs: 2,
        locks: Locks::Demand,
        mirrors: None,
    };
    let split = dataset::load(&project.split_path("quickstart")).unwrap();
    let board = Board::read(&project, split, &[INSTANCES[0].to_owned()]).unwrap();
    let done = pipeline.execute(&board, Goal::Build);
    assert!(done.failures.is_empty(), "{:?}", done.failures);
    let images = board.images();
    images.iter().find(|(name, _)| name.starts_with("instance/")).unwrap().1.clone()
}

/// The image with a small layer of its own on top.
fn sibling(store: &Store, image: &Image, number: u8) -> (String, Image) {
    let tree = store.scratch_dir("sibling").unwrap().keep();
    fs_err::write(tree.join("sibling"), vec![number; OWN]).unwrap();
    let layer = commit_tree(store, tree, &PackRules::root(1_000_000_000), &Cancel::new()).unwrap();
    (format!("bench/sibling-{number}:latest"), image.with_layer(layer, &number).unwrap())
}

/// Seconds of `docker load` of an archive with this image alone.
fn docker_load(dockerd: &Dockerd, store: &Store, (name, image): &(String, Image)) -> f64 {
    let all: BTreeSet<_> = image.layers.iter().map(|layer| layer.diff_id).collect();
    let named = [NamedImage { name, image }];
    let archive = Tarball::for_daemon(store, &named, &all, &Cancel::new()).unwrap();
    let mut file = tempfile::NamedTempFile::new_in(store.scratch()).unwrap();
    archive.write(store, &mut file, &silent(), &Cancel::new()).unwrap();
    let watch = Stopwatch::start();
    dockerd.ask(&["load", "--quiet", "--input", file.path().to_str().unwrap()]);
    watch.elapsed().as_secs_f64()
}
