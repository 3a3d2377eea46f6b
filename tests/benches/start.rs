//! What starting a container costs: `/bin/true` over 20 layers, with cgroups and seccomp, against
//! `bwrap` and `runc run` on a plain root file system, all interleaved. Run as root:
//!
//! ```text
//! cargo bench --bench start
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../it/runtime/scaffold.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod scaffold;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hallmark::base::Cancel;
use hallmark::base::clock::Stopwatch;
use hallmark::runtime::embedded::{Embedded, Hole, Options};
use hallmark::runtime::{Network, Root, RunSpec, Runtime};

/// Interleaved rounds; the 10th percentile tells what the work costs, not what the neighbours do.
const ROUNDS: usize = 200;

fn main() {
    let Some(mut scaffold) = scaffold::scaffold() else { return };
    for number in 1..20 {
        let layer = scaffold::add_layer(&scaffold.store, &format!("{number}"), |root| {
            fs_err::write(root.join(format!("f{number}")), "").unwrap();
        });
        scaffold.layers.push(layer);
    }
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

    let mut spec = scaffold.sh("");
    spec.argv = vec!["/bin/true".to_owned()];
    spec.network = Network::Unreachable;
    let mut with_hole = spec.clone();
    with_hole.network = Network::None;
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut measure = |name, run: &dyn Fn() -> bool| {
            let watch = Stopwatch::start();
            let good = run();
            let elapsed = watch.elapsed();
            if good {
                times.entry(name).or_default().push(elapsed);
            }
        };
        measure("hallmark", &|| scaffold.run(&spec).success());
        measure("hallmark, black hole", &|| scaffold.run(&with_hole).success());
        measure("hallmark, TUN hole", &|| run(&tun, &with_hole));
        measure("hallmark, no cgroups", &|| run(&bare, &spec));
        measure("bwrap", &|| {
            let root = plain.to_str().unwrap();
            quiet(Command::new("bwrap").args([
                "--unshare-all",
                "--bind",
                root,
                "/",
                "--proc",
                "/proc",
                "--dev",
                "/dev",
                "/bin/true",
            ]))
        });
        if let Some(bundle) = &bundle {
            measure("runc run", &|| {
                let name = format!("hallmark-bench-{}", std::process::id());
                quiet(Command::new("runc").arg("run").arg("-b").arg(bundle).arg(name))
            });
        }
    }
    for (name, times) in &mut times {
        times.sort();
        let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e3;
        println!(
            "{name:22} p10 {:6.2} ms  median {:6.2} ms  ({} runs)",
            at(10),
            at(50),
            times.len()
        );
    }
    let p10 = |name| times.get(name).map(|times: &Vec<_>| times[times.len() / 10].as_secs_f64());
    if let (Some(own), Some(bwrap)) = (p10("hallmark"), p10("bwrap")) {
        println!("hallmark / bwrap       {:.2} (at most 1.8 wanted)", own / bwrap);
    }
    if let (Some(own), Some(runc)) = (p10("hallmark"), p10("runc run")) {
        println!("runc run / hallmark    {:.2} (at least 3 wanted)", runc / own);
    }
    if let (Some(with), Some(own)) = (p10("hallmark, black hole"), p10("hallmark")) {
        println!("the black hole         {:.2} ms", (with - own) * 1e3);
    }
}

fn quiet(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

/// A bundle with runc's own default configuration, less the terminal.
fn runc_bundle(folder: &Path, root: &Path) -> Option<std::path::PathBuf> {
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
