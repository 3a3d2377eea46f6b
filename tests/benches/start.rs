//! What starting a container costs: `/bin/true` over 20 layers, with cgroups and seccomp, against
//! `bwrap` and `runc run` on a plain root file system, all interleaved. Run as root:
//!
//! ```text
//! cargo bench --bench start
//! ```
//!
//! The same as a user, where one has subordinate ids: hallmark in its user namespace against the user's own `bwrap`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../it/runtime/scaffold.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod scaffold;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use hallmark::base::Cancel;
use hallmark::base::clock::Stopwatch;
use hallmark::runtime::embedded::{Embedded, Hole, Options};
use hallmark::runtime::{Network, Root, RunSpec, Runtime};
use scaffold::Scaffold;

/// Interleaved rounds; the 10th percentile tells what the work costs, not what the neighbours do.
const ROUNDS: usize = 200;

const LAYERS: usize = 20;

/// The argument that makes this binary the part that runs in a user's namespace.
const ROOTLESS: &str = "rootless";

/// Times by what was timed.
type Times = BTreeMap<&'static str, Vec<Duration>>;

fn main() {
    if std::env::args().any(|argument| argument == ROOTLESS) {
        return serve();
    }
    let Some(scaffold) = layered() else { return };
    let plain = scaffold.folder.path().join("plain");
    fs_err::create_dir(&plain).unwrap();
    scaffold::fill(&plain);
    for folder in ["proc", "dev", "sys"] {
        fs_err::create_dir(plain.join(folder)).unwrap();
    }
    let launcher = || env!("CARGO_BIN_EXE_hallmark").into();
    let with = |options| Embedded::with_options(&scaffold.store, launcher(), options).unwrap();
    let tun = with(Options { black_holes: &[Hole::Tun], ..Options::default() });
    let bare = with(Options { cgroups: false, ..Options::default() });
    let run = |runtime: &Embedded, spec: &RunSpec| {
        runtime.run(Root::Layers(&scaffold.layers), spec, &Cancel::new()).unwrap().success()
    };
    let bundle = runc_bundle(scaffold.folder.path(), &plain);
    let mut user = User::start(&plain);
    if user.is_none() {
        println!("skipped: rootless, since no user with subordinate ids could start a container");
    }

    let (spec, with_hole) = specs(&scaffold);
    let mut times = Times::new();
    for _ in 0..ROUNDS {
        let mut measure = |name, run: &mut dyn FnMut() -> bool| {
            let watch = Stopwatch::start();
            let good = run();
            let elapsed = watch.elapsed();
            if good {
                times.entry(name).or_default().push(elapsed);
            }
        };
        measure("hallmark", &mut || scaffold.run(&spec).success());
        measure("bwrap", &mut || quiet(&mut bwrap(&plain)));
        measure("hallmark, black hole", &mut || scaffold.run(&with_hole).success());
        measure("hallmark, TUN hole", &mut || run(&tun, &with_hole));
        measure("hallmark, no cgroups", &mut || run(&bare, &spec));
        if let Some(bundle) = &bundle {
            measure("runc run", &mut || {
                let name = format!("hallmark-bench-{}", std::process::id());
                quiet(Command::new("runc").arg("run").arg("-b").arg(bundle).arg(name))
            });
        }
        if let Some(user) = &mut user {
            measure("rootless bwrap", &mut || quiet(bwrap(&plain).uid(user.id).gid(user.id)));
            for (name, what) in
                [("rootless hallmark", "plain"), ("rootless hallmark, black hole", "hole")]
            {
                times.entry(name).or_default().push(user.run(what));
            }
        }
    }
    print(&mut times);
}

fn print(times: &mut Times) {
    for (name, times) in times.iter_mut() {
        times.sort();
        let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e3;
        println!(
            "{name:30} p10 {:6.2} ms  median {:6.2} ms  ({} runs)",
            at(10),
            at(50),
            times.len()
        );
    }
    let p10 = |name| {
        times.get(name).filter(|times| times.len() == ROUNDS).map(|times| times[ROUNDS / 10])
    };
    for (above, below, target) in [
        ("hallmark", "bwrap", "at most 1.8"),
        ("rootless hallmark", "rootless bwrap", "at most 2.5"),
        ("runc run", "hallmark", "at least 3"),
    ] {
        let name = format!("{above} / {below}");
        match (p10(above), p10(below)) {
            (Some(above), Some(below)) => {
                let ratio = above.as_secs_f64() / below.as_secs_f64();
                println!("{name:38} {ratio:5.2} (target: {target})");
            }
            _ => println!("{name:38} not measured (target: {target})"),
        }
    }
    for (name, with, own) in [
        ("the black hole", "hallmark, black hole", "hallmark"),
        ("the black hole, rootless", "rootless hallmark, black hole", "rootless hallmark"),
    ] {
        if let (Some(with), Some(own)) = (p10(with), p10(own)) {
            println!("{name:38} {:5.2} ms", (with.as_secs_f64() - own.as_secs_f64()) * 1e3);
        }
    }
}

/// The scaffold with as many layers as are measured.
fn layered() -> Option<Scaffold> {
    let mut scaffold = scaffold::scaffold()?;
    for number in 1..LAYERS {
        let layer = scaffold.add_layer(&format!("{number}"), |root| {
            fs_err::write(root.join(format!("f{number}")), "").unwrap();
        });
        scaffold.layers.push(layer);
    }
    Some(scaffold)
}

/// `/bin/true` without and with the black hole.
fn specs(scaffold: &Scaffold) -> (RunSpec, RunSpec) {
    let mut spec = scaffold.sh("");
    spec.argv = vec!["/bin/true".to_owned()];
    spec.network = Network::Unreachable;
    let mut with_hole = spec.clone();
    with_hole.network = Network::None;
    (spec, with_hole)
}

fn bwrap(root: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--bind"]).arg(root);
    command.args(["/", "--proc", "/proc", "--dev", "/dev", "/bin/true"]);
    command
}

fn quiet(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

/// A process in a user's namespace that runs what it is told, so that its rounds interleave with the others.
struct User {
    id: u32,
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
    /// Its store and layers.
    _folder: tempfile::TempDir,
}

impl User {
    fn start(plain: &Path) -> Option<Self> {
        let id = user_with_ids()?;
        if !quiet(bwrap(plain).uid(id).gid(id)) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(id), Some(id)).unwrap();
        fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_hallmark"))
            .arg("@enter")
            .arg(fs_err::read_link("/proc/self/exe").unwrap())
            .arg(ROOTLESS)
            .uid(id)
            .gid(id)
            .env(scaffold::LAYERS, folder.path())
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ask = child.stdin.take().unwrap();
        let mut answer = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        (line == "ready\n").then_some(Self { id, child, ask, answer, _folder: folder })
    }

    fn run(&mut self, what: &str) -> Duration {
        writeln!(self.ask, "{what}").unwrap();
        let mut line = String::new();
        self.answer.read_line(&mut line).unwrap();
        Duration::from_nanos(line.trim().parse().unwrap())
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Ends the process, which then removes its store.
        let _ = writeln!(self.ask, "end");
        let _ = self.child.wait();
    }
}

/// The other side of [`User`].
fn serve() {
    let Some(scaffold) = layered() else { return };
    let (plain, with_hole) = specs(&scaffold);
    println!("ready");
    for line in std::io::stdin().lines() {
        let spec = match line.unwrap().as_str() {
            "plain" => &plain,
            "hole" => &with_hole,
            _ => return,
        };
        let watch = Stopwatch::start();
        assert!(scaffold.run(spec).success());
        println!("{}", watch.elapsed().as_nanos());
    }
}

/// A user with subordinate ids: from 1,000 up, so that no service's is taken.
fn user_with_ids() -> Option<u32> {
    let passwd = fs_err::read_to_string("/etc/passwd").ok()?;
    let ids = fs_err::read_to_string("/etc/subuid").ok()?;
    ids.lines().find_map(|line| {
        let name = line.split(':').next()?;
        let entry = passwd.lines().find(|entry| entry.split(':').next() == Some(name))?;
        entry.split(':').nth(2)?.parse().ok().filter(|uid| (1000..65_534).contains(uid))
    })
}

/// A bundle with runc's own default configuration, less the terminal.
fn runc_bundle(folder: &Path, root: &Path) -> Option<PathBuf> {
    let bundle = folder.join("bundle");
    fs_err::create_dir(&bundle).unwrap();
    if !quiet(Command::new("runc").args(["spec", "-b"]).arg(&bundle)) {
        return None;
    }
    let path = bundle.join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    config["process"]["terminal"] = false.into();
    config["process"]["args"] = serde_json::json!(["/bin/true"]);
    config["root"]["path"] = root.to_str().unwrap().into();
    // Never raised above what this host allows.
    config["process"]["rlimits"] = serde_json::json!([]);
    fs_err::write(&path, config.to_string()).unwrap();
    Some(bundle)
}
