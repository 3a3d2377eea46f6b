//! How busy `hallmark verify` keeps its slots, and how many runs a stable instance costs: 30 instances of stable tests by
//! the preset `benchmark`, with two slots. Run as root:
//!
//! ```text
//! cargo bench --bench occupancy
//! ```
//!
//! `-- N` takes N instances instead: a look at whether it works.
//!
//! A slot is busy while it works on a run: from the start of its container to its stored record. Time counts from the begin of the
//! first run to the end of the last. The rest of what is printed says where slots' time goes.

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

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use corpus::{Tree, stable_files};
use hallmark::base::clock::Stopwatch;
use land::{Instance, Land};

const INSTANCES: usize = 30;
const SLOTS: usize = 2;
const RUNS: u64 = 29 + 11;
const OCCUPIED: f64 = 0.95;

fn main() {
    // cargo adds `--bench`.
    let asked = std::env::args().find_map(|argument| argument.parse().ok());
    let count: usize = asked.unwrap_or(INSTANCES);
    let Some(land) = Land::new() else { return };
    let files = stable_files();
    let instances: Vec<Instance> = (0..count)
        .map(|number| {
            // Two files each, so that runs differ in length; the note makes instances of equal files different.
            let tree = Tree::land()
                .with_stable(&[
                    &files[number % files.len()],
                    &files[(number * 7 + 1) % files.len()],
                ])
                .with_file("NOTE", &format!("{number}\n"), &[]);
            Instance::new(format!("stable-{number:02}"), tree)
        })
        .collect();
    land.settle(&instances, "");
    let built = land.call(&["build", "flaky", "--quiet"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let slots = SLOTS.to_string();
    let mut child = land
        .command(&["verify", "flaky", "--json", "--policy", "benchmark", "-j", &slots])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let clock = Stopwatch::start();
    let mut begun: BTreeMap<u64, f64> = BTreeMap::new();
    let (mut busy, mut runs, mut first, mut last) = (0.0, 0_u64, f64::INFINITY, 0.0_f64);
    let (mut inside, mut most, mut refused) = (0.0, 0, Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let value = &record["value"];
        let now = clock.elapsed().as_secs_f64();
        if record["kind"] == "verdict" {
            let verdict = &value["verdict"];
            inside += verdict["cost"]["wall"].as_f64().unwrap();
            most = most.max(verdict["cost"]["runs"].as_u64().unwrap());
            if verdict["status"] != "admitted" {
                refused.push(format!("{}: {}", value["instance"], verdict["reasons"][0]["text"]));
            }
        }
        let Some(task) = value["task"].as_u64() else { continue };
        if value["event"] == "started" && value["stage"] == "run" {
            begun.insert(task, now);
            first = first.min(now);
        } else if value["event"] == "finished"
            && let Some(start) = begun.remove(&task)
        {
            busy += now - start;
            last = last.max(now);
            runs += 1;
        }
    }
    assert!(child.wait().unwrap().success());
    #[expect(clippy::cast_precision_loss, reason = "numbers of runs are small")]
    let (mean, wall) = (busy / runs as f64, (last - first) * SLOTS as f64);
    println!(
        "{count} instances, {SLOTS} slots, {runs} runs of {mean:.3} s in {:.1} s",
        last - first
    );
    println!(
        "slots busy with runs       {:.1} % (target: at least {:.0} %)",
        busy / wall * 100.0,
        OCCUPIED * 100.0
    );
    println!("inside containers          {:.1} %", inside / wall * 100.0);
    println!("most runs of an instance   {most} (target: at most {RUNS})");
    println!("instances not admitted     {} (target: 0)", refused.len());
    for line in refused {
        println!("    {line}");
    }
}
