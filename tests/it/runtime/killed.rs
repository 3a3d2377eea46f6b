//! Hallmark is killed in the middle of a run: nothing stays.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hallmark::base::Store;
use hallmark::base::clock::Stopwatch;
use hallmark::runtime::embedded::Embedded;

use super::scaffold::{Scaffold, scaffold, scaffold_at};

/// Where the child keeps its store.
const FOLDER: &str = "HALLMARK_TEST_FOLDER";

/// Not a test: the process that the tests below kill.
#[test]
#[ignore = "the body of a process that other tests start"]
#[expect(clippy::disallowed_methods, reason = "how a test tells its child where to work")]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let Some(scaffold) = scaffold_at(Path::new(&folder)) else { return };
    let log = scaffold.run(&scaffold.sh("setsid sleep 31337 & echo started; sleep 31337"));
    unreachable!("{log:?}");
}

/// Starts the child and waits until its run has started. Its id and that of its launcher.
fn start(scaffold: &Scaffold) -> (std::process::Child, u32) {
    let folder = scaffold.folder.path().join("child");
    fs_err::create_dir(&folder).unwrap();
    let own = fs_err::read_link("/proc/self/exe").unwrap();
    let child = Command::new(own)
        .args(["--ignored", "--exact", "runtime::killed::child", "--nocapture"])
        .env(FOLDER, &folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let launcher = until("the run starts", || {
        let started =
            walkdir::WalkDir::new(&folder).into_iter().filter_map(Result::ok).any(|entry| {
                entry.path().ends_with("stdout")
                    && fs_err::read_to_string(entry.path()).is_ok_and(|text| text == "started\n")
            });
        started.then(|| children(child.id()).first().copied()).flatten()
    });
    (child, launcher)
}

fn until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let watch = Stopwatch::start();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(watch.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let parent = format!("\nPPid:\t{pid}\n");
    fs_err::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|child| {
            fs_err::read_to_string(format!("/proc/{child}/status"))
                .is_ok_and(|status| status.contains(&parent))
        })
        .collect()
}

fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    walkdir::WalkDir::new("/sys/fs/cgroup")
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy();
            name.starts_with("hallmark-run-") && name.contains(&format!("-{pid}-"))
        })
        .map(walkdir::DirEntry::into_path)
        .collect()
}

fn scratch(scaffold: &Scaffold) -> PathBuf {
    scaffold.folder.path().join("child/scratch")
}

fn runs(scratch: &Path) -> usize {
    walkdir::WalkDir::new(scratch)
        .max_depth(2)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("run-"))
        .count()
}

#[test]
fn the_launcher_cleans_up_after_a_killed_hallmark() {
    let Some(scaffold) = scaffold() else { return };
    let (mut child, launcher) = start(&scaffold);
    let inside = children(launcher);
    assert_eq!(inside.len(), 1);
    assert_eq!(runs(&scratch(&scaffold)), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the launcher ends", || {
        (!Path::new(&format!("/proc/{launcher}")).exists()).then_some(())
    });
    assert!(!Path::new(&format!("/proc/{}", inside[0])).exists());
    assert_eq!(cgroups_of(child.id()), Vec::<PathBuf>::new());
    assert_eq!(runs(&scratch(&scaffold)), 0);
}

#[test]
fn the_next_start_sweeps_what_nobody_could() {
    let Some(scaffold) = scaffold() else { return };
    let (mut child, launcher) = start(&scaffold);
    let inside = children(launcher);
    let pid = |id: u32| rustix::process::Pid::from_raw(id.cast_signed()).unwrap();
    // Both at once, as a machine short of memory might: stopped, so that neither sees the other die.
    rustix::process::kill_process(pid(launcher), rustix::process::Signal::STOP).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    rustix::process::kill_process(pid(launcher), rustix::process::Signal::KILL).unwrap();
    until("pid 1 ends", || (!Path::new(&format!("/proc/{}", inside[0])).exists()).then_some(()));
    assert_eq!(runs(&scratch(&scaffold)), 1, "the launcher had no chance");

    let store = Store::open(&scaffold.folder.path().join("child/store"), &scratch(&scaffold));
    let embedded = Embedded::new(&store.unwrap(), env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
    assert_eq!(cgroups_of(child.id()), Vec::<PathBuf>::new());
    assert_eq!(runs(&scratch(&scaffold)), 0);
    drop(embedded);
    assert_eq!(fs_err::read_dir(scratch(&scaffold)).unwrap().count(), 0);
}
