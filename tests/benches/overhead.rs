//! What a run costs beyond the time of its command: a gold run (`verify::execute`, to the stored record) in the embedded runtime
//! against `docker run` of the same command in the same image, interleaved. Run as root:
//!
//! ```text
//! cargo bench --bench overhead
//! ```
//!
//! A Docker engine of our own is started where `dockerd` is installed (Debian: docker.io), with its socket, data and state in
//! a temporary folder and no network of its own, and stopped at the end. Both sides run without a network. Hallmark's time inside
//! is what its launcher measured; Docker's is from the command's first moment in the container to its last, by the clock.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../it/flaky/corpus.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod corpus;
#[path = "../it/flaky/land.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod land;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use corpus::{Tree, gold_patch, test_patch};
use hallmark::base::clock::Stopwatch;
use hallmark::base::progress::Silent;
use hallmark::base::{Cancel, SharedReporter, Store};
use hallmark::dataset;
use hallmark::image::Image;
use hallmark::net::{Client, Config};
use hallmark::pipeline::{Board, Goal, Locks, Pipeline, Project};
use hallmark::runtime::Workbench;
use hallmark::runtime::embedded::Embedded;
use hallmark::spec::{self, Spec};
use hallmark::verify::{Phase, Profile, RunPlan, conditions::Tools, execute};
use land::{Instance, Land};

const ROUNDS: u32 = 40;
/// Of Docker's.
const TARGET: f64 = 0.1;
/// The test command between two readings of the clock.
const TIMED: &str = "date +%s.%N; python3 -m pytest -p no:cacheprovider -q >/dev/null; date +%s.%N";

fn main() {
    let Some(land) = Land::new() else { return };
    let tree = Tree::land().with_stable(&["test_ledgers.py"]);
    land.settle(&[Instance::new("overhead", tree)], "");
    let store = Store::open(&land.store(), &land.store().join("scratch")).unwrap();
    let runtime = Embedded::new(&store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
    let reporter: SharedReporter = Arc::new(Silent);
    let cancel = Cancel::new();
    let bench =
        Workbench { store: &store, runtime: &runtime, reporter: &reporter, cancel: &cancel };
    let project = Project::discover(&land.project()).unwrap();
    let image = build(&project, bench);
    let spec = spec::load(&project.root().join("specs"), "acme/flakyland", "1").unwrap();
    // Patches are applied once for all runs.
    gold_run(bench, &image, &spec, 0);

    let Some(docker) = Docker::start() else {
        println!("skipped: dockerd is not installed or does not start");
        return;
    };
    docker.import(&store, &image);
    docker.run();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        ours.push(gold_run(bench, &image, &spec, round));
        theirs.push(docker.run());
    }
    let middle = |times: &mut Vec<(f64, f64)>| {
        let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = times.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        (median(&|(all, inside)| all - inside), median(&|(_, inside)| *inside))
    };
    let ((ours, inside), (theirs, docker_inside)) = (middle(&mut ours), middle(&mut theirs));
    println!("{ROUNDS} rounds, medians");
    println!("hallmark    {:7.1} ms beyond a command of {:.1} ms", ours * 1e3, inside * 1e3);
    println!(
        "docker run  {:7.1} ms beyond a command of {:.1} ms",
        theirs * 1e3,
        docker_inside * 1e3
    );
    println!("ratio       {:7.3} (target: at most {TARGET})", ours / theirs);
}

/// Builds the instance's image.
fn build(project: &Project, bench: Workbench<'_>) -> Image {
    let mut config = Config::from_host(&std::collections::BTreeMap::new(), None).unwrap();
    config.offline = true;
    let client = Client::new(config, bench.cancel).unwrap();
    let pipeline =
        Pipeline { project, bench, client: &client, jobs: 2, locks: Locks::Demand, mirrors: None };
    let split = dataset::load(&project.split_path("flaky")).unwrap();
    let board = Board::read(project, split, &[]).unwrap();
    let done = pipeline.execute(&board, Goal::Build);
    assert!(done.failures.is_empty(), "{:?}", done.failures);
    let images = board.images();
    images.iter().find(|(name, _)| name.starts_with("instance/")).unwrap().1.clone()
}

/// A gold run: seconds in all, and of its command.
fn gold_run(bench: Workbench<'_>, image: &Image, spec: &Spec, repeat: u32) -> (f64, f64) {
    let (gold, test) = (gold_patch(), test_patch());
    let id = "acme__flakyland-overhead".to_owned().try_into().unwrap();
    let plan = RunPlan {
        instance: &id,
        spec,
        phase: Phase::Post,
        series: "",
        repeat,
        profile: &Profile::plain(),
        alone: false,
        collected: &[],
        test_patch: test.as_bytes(),
        gold_patch: gold.as_bytes(),
        slots: 1,
        tools: &Tools::default(),
    };
    let clock = Stopwatch::start();
    let record = execute(bench, image, &plan).unwrap();
    let all = clock.elapsed().as_secs_f64();
    assert!(record.tests.values().all(|test| test.outcome.satisfies()), "{:?}", record.outcome);
    (all, record.wall)
}

/// A Docker engine of our own, stopped when dropped.
struct Docker {
    folder: tempfile::TempDir,
    engine: Child,
}

impl Docker {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let log = fs_err::File::create(path("log")).unwrap().into_parts().0;
        let engine = Command::new("dockerd")
            .arg(format!("--host=unix://{}", path("socket").display()))
            .arg("--data-root")
            .arg(path("data"))
            .arg("--exec-root")
            .arg(path("exec"))
            .arg("--pidfile")
            .arg(path("pid"))
            .args(["--bridge=none", "--iptables=false", "--ip-forward=false"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .ok()?;
        let docker = Self { folder, engine };
        for _ in 0..100 {
            if docker.docker(&["version"]).output().is_ok_and(|answer| answer.status.success()) {
                return Some(docker);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        println!("{}", fs_err::read_to_string(docker.folder.path().join("log")).unwrap());
        None
    }

    fn docker(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("docker");
        let socket = self.folder.path().join("socket");
        command.arg("-H").arg(format!("unix://{}", socket.display())).args(arguments);
        command
    }

    /// The image's layers, merged, with both patches applied.
    fn import(&self, store: &Store, image: &Image) {
        let merged = self.folder.path().join("merged");
        for layer in &image.layers {
            copy_tree(&store.layer_path(&layer.diff_id), &merged);
        }
        for (name, text) in [("gold", gold_patch()), ("test", test_patch())] {
            let path = self.folder.path().join(name);
            fs_err::write(&path, text).unwrap();
            let mut apply = Command::new("git");
            apply.args(["-c", "safe.directory=*", "apply"]).arg(&path);
            assert!(apply.current_dir(merged.join("testbed")).status().unwrap().success());
        }
        let mut tar = Command::new("tar")
            .args(["-C", merged.to_str().unwrap(), "-c", "."])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let import = self
            .docker(&["import", "-", "hallmark-overhead"])
            .stdin(tar.stdout.take().unwrap())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(import.success() && tar.wait().unwrap().success());
    }

    /// `docker run`: seconds in all, and of the command.
    fn run(&self) -> (f64, f64) {
        let arguments =
            ["run", "--rm", "--network=none", "--workdir=/testbed", "--memory=4g", "--cpus=1"];
        let mut command = self.docker(&arguments);
        command.args(["-e", "PYTHONHASHSEED=0", "-e", "LC_ALL=C.UTF-8"]);
        command.args(["-e", &format!("PATH={PATH}"), "hallmark-overhead", "sh", "-c", TIMED]);
        let clock = Stopwatch::start();
        let output = command.output().unwrap();
        let all = clock.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let text = String::from_utf8(output.stdout).unwrap();
        let times: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
        (all, times[1] - times[0])
    }
}

const PATH: &str = "/opt/testbed/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Drop for Docker {
    fn drop(&mut self) {
        let id = i32::try_from(self.engine.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        // Asked to end, it takes its containers and mounts along.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.engine.wait();
    }
}

/// Lays a layer over what is there. Layers of the corpus delete nothing.
fn copy_tree(from: &Path, to: &PathBuf) {
    fs_err::create_dir_all(to).unwrap();
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success());
}
