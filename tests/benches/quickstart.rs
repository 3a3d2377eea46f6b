//! What `hallmark run quickstart` costs: cold in an empty store, then warm, with what each stage took and the peak
//! memory of hallmark itself.
//!
//! `cargo bench --bench quickstart` needs the network; `cargo bench --bench quickstart -- FOLDER` keeps the store in a new
//! FOLDER. Seconds of stages are summed over what ran at once, so they add up to more than the whole. Memory is
//! the high-water mark of hallmark's own process, looked at 50 times a second: its containers are not it.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hallmark::base::clock::Stopwatch;

const COLD_SECONDS: f64 = 240.0;
const WARM_SECONDS: f64 = 1.0;
const PEAK_MIB: u64 = 300;
const WARM_ROUNDS: usize = 5;

/// What was seen of one `hallmark`.
struct Seen {
    seconds: f64,
    peak_kib: u64,
    /// User and system time of hallmark and of everything that it waited for.
    cpu_seconds: f64,
    /// Per stage: how many pieces of work ran, their seconds, the longest of them with its name.
    stages: BTreeMap<String, (usize, f64, f64, String)>,
    subject: Option<String>,
}

fn main() {
    // cargo adds `--bench`.
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let store = folder.join("store");
    assert!(!store.exists(), "{} exists: a cold run needs an empty store", store.display());
    fs_err::create_dir_all(&folder).unwrap();

    let cold = hallmark(&folder, &["run", "quickstart", "--manifest", "manifest.json"]);
    println!("cold: where the time went (seconds of work, summed over cores)");
    let mut stages: Vec<_> = cold.stages.iter().collect();
    stages.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (stage, (count, seconds, longest, name)) in stages {
        println!("  {stage:12} {count:4} x  {seconds:7.1} s  longest {longest:5.1} s  {name}");
    }
    println!("  processor time {:.1} s", cold.cpu_seconds);
    let warm: Vec<Seen> = (0..WARM_ROUNDS)
        .map(|_| hallmark(&folder, &["run", "quickstart", "--manifest", "manifest.json"]))
        .collect();
    let audit = hallmark(&folder, &["audit", "manifest.json", "--offline"]);
    for seen in &warm {
        assert_eq!(seen.subject, cold.subject, "a warm run has another subject");
        // Looking for files that are all there is work that ends, too.
        let ran: Vec<&String> = seen
            .stages
            .keys()
            .filter(|stage| !["file", "fetch"].contains(&stage.as_str()))
            .collect();
        assert!(ran.is_empty(), "a warm run did {ran:?} again");
    }
    let fastest = warm.iter().map(|seen| seen.seconds).fold(f64::INFINITY, f64::min);
    let slowest = warm.iter().map(|seen| seen.seconds).fold(0.0, f64::max);
    let peak = warm.iter().map(|seen| seen.peak_kib).chain([cold.peak_kib]).max().unwrap() >> 10;
    println!(
        "cold    {:7.1} s (target: at most {COLD_SECONDS}), {:.2} of it",
        cold.seconds,
        cold.seconds / COLD_SECONDS
    );
    println!(
        "warm    {fastest:7.2} s, slowest {slowest:.2} s of {WARM_ROUNDS} (target: at most {WARM_SECONDS}), {:.2} of it",
        fastest / WARM_SECONDS
    );
    println!("audit   {:7.2} s", audit.seconds);
    println!(
        "peak    {peak:7} MiB (target: below {PEAK_MIB}; audit {} MiB), {:.2} of it",
        audit.peak_kib >> 10,
        f64::from(u32::try_from(peak).unwrap()) / f64::from(u32::try_from(PEAK_MIB).unwrap())
    );
    println!("subject {}", cold.subject.unwrap());
}

/// Runs hallmark on this project with a store in `folder`.
fn hallmark(folder: &Path, arguments: &[&str]) -> Seen {
    let watch = Stopwatch::start();
    let before = cpu_of_children();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hallmark"))
        .args(["--json", "--project", env!("CARGO_MANIFEST_DIR")])
        .arg("--store")
        .arg(folder.join("store"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let out = BufReader::new(child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        let mut running: BTreeMap<u64, (String, String, Stopwatch)> = BTreeMap::new();
        let mut stages: BTreeMap<String, (usize, f64, f64, String)> = BTreeMap::new();
        let mut subject = None;
        for line in out.lines() {
            let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let value = &record["value"];
            if record["kind"] == "manifest" {
                subject = value["subject"].as_str().map(str::to_owned);
            }
            let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
            let Some(task) = value["task"].as_u64() else { continue };
            if value["event"] == "started" {
                running.insert(task, (text("stage"), text("name"), Stopwatch::start()));
            } else if value["event"] == "finished"
                && let Some((stage, name, start)) = running.remove(&task)
                && value["outcome"] == "done"
            {
                let seconds = start.elapsed().as_secs_f64();
                let sum = stages.entry(stage).or_default();
                sum.0 += 1;
                sum.1 += seconds;
                if seconds > sum.2 {
                    (sum.2, sum.3) = (seconds, name);
                }
            }
        }
        (stages, subject)
    });
    let mut peak_kib = 0;
    let ended = loop {
        // A process that has just ended has a status without memory.
        let text = fs_err::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        peak_kib = kib.unwrap_or(0).max(peak_kib);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let seconds = watch.elapsed().as_secs_f64();
    assert!(ended.success(), "hallmark {arguments:?}: {ended}");
    let (stages, subject) = reading.join().unwrap();
    let cpu_seconds = cpu_of_children() - before;
    Seen { seconds, peak_kib, cpu_seconds, stages, subject }
}

/// Fields 16 and 17 of stat, in hundredths of a second.
fn cpu_of_children() -> f64 {
    let stat = fs_err::read_to_string("/proc/self/stat").unwrap();
    // The second field, in brackets, may hold spaces.
    let rest = stat.rsplit_once(") ").unwrap().1;
    let ticks: f64 =
        rest.split(' ').skip(13).take(2).map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}
