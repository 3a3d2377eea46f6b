//! What a hallmark left behind: processes, mounts, cgroups, scratch folders.

use std::time::Duration;

use hallmark::base::clock::Stopwatch;

use super::context::TestContext;

/// Long enough for a launcher to end what it watched, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until nothing of the context's folder and of these processes is left but for what is in scratch.
#[track_caller]
pub(super) fn assert_nothing_runs(context: &TestContext, killed: &[u32]) {
    let watch = Stopwatch::start();
    loop {
        let mut left = processes(context);
        left.extend(cgroups(killed));
        if left.is_empty() {
            return;
        }
        assert!(watch.elapsed() < PATIENCE, "left over: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Scratch is empty.
#[track_caller]
pub(super) fn assert_scratch_is_empty(context: &TestContext) {
    let left: Vec<_> = fs_err::read_dir(context.scratch())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "left in scratch: {left:?}");
}

/// Processes that were started with the folder's name or that have something mounted from it, and such mounts of our own.
fn processes(context: &TestContext) -> Vec<String> {
    let name = context.path().file_name().unwrap().to_str().unwrap().to_owned();
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc").unwrap() {
        let Some(pid) = entry.unwrap().file_name().to_str().and_then(|pid| pid.parse::<u32>().ok())
        else {
            continue;
        };
        // A process that ends while it is looked at is not left over.
        let read = |file: &str| fs_err::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let files: &[&str] =
            if pid == own { &["mountinfo"] } else { &["environ", "cmdline", "mountinfo"] };
        for file in files {
            if String::from_utf8_lossy(&read(file)).contains(&name) {
                let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
                found.push(format!("{pid} {file}: {words}"));
            }
        }
    }
    found
}

/// Cgroups that these processes made.
fn cgroups(killed: &[u32]) -> Vec<String> {
    walkdir::WalkDir::new("/sys/fs/cgroup")
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy();
            name.starts_with("hallmark-run-")
                && killed.iter().any(|pid| name.contains(&format!("-{pid}-")))
        })
        .map(|entry| entry.path().display().to_string())
        .collect()
}
