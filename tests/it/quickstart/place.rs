//! Projects, stores and calls of the program.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hallmark::base::Cancel;
use hallmark::base::flock::FileLock;

/// This repository.
pub(super) fn own_project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(super) fn say_skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs the program.
pub(super) fn hallmark(project: &Path, store: &Path, arguments: &[&str]) -> Output {
    call(Command::new(env!("CARGO_BIN_EXE_hallmark")), project, store, arguments)
}

/// Runs the program as a user.
pub(super) fn hallmark_as(
    user: &str,
    program: &Path,
    project: &Path,
    store: &Path,
    arguments: &[&str],
) -> Output {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", user, "--regid", user, "--init-groups", "env"])
        .arg(format!("HOME={}", store.display()))
        .arg(program);
    call(command, project, store, arguments)
}

fn call(mut command: Command, project: &Path, store: &Path, arguments: &[&str]) -> Output {
    command
        .args(arguments)
        .arg("--project")
        .arg(project)
        .arg("--store")
        .arg(store)
        .current_dir(store)
        .env_remove("HALLMARK_SCRATCH")
        .output()
        .unwrap()
}

pub(super) fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).join("\n")
}

/// The values of one kind among JSON lines.
pub(super) fn records(output: &Output, kind: &str) -> Vec<serde_json::Value> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["kind"] == kind)
        .map(|line| line["value"].clone())
        .collect()
}

/// Puts the locked files of `instances` into `store`, from a store that test runs share and that holds nothing else. Needs the
/// network where that one is incomplete; `false`, and a word about it, where there is none.
pub(super) fn provide(project: &Path, split: &str, instances: &[&str], store: &Path) -> bool {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quickstart-bundle");
    fs_err::create_dir_all(&shared).unwrap();
    let lock = FileLock::exclusive(&shared.join("test-lock"), &Cancel::new()).unwrap();
    let mut arguments = vec!["bundle", "fetch", split];
    arguments.extend(instances.iter().flat_map(|id| ["-i", id]));
    let output = hallmark(project, &shared, &arguments);
    drop(lock);
    if output.status.code() == Some(i32::from(hallmark::cli::exit::FETCH_FAILED)) {
        say_skipped(&text(&output));
        return false;
    }
    assert!(output.status.success(), "{}", text(&output));
    let blobs = store.join("blobs/sha256");
    fs_err::create_dir_all(&blobs).unwrap();
    for entry in fs_err::read_dir(shared.join("blobs/sha256")).unwrap() {
        let entry = entry.unwrap();
        let to = blobs.join(entry.file_name());
        if std::fs::hard_link(entry.path(), &to).is_err() {
            fs_err::copy(entry.path(), to).unwrap();
        }
    }
    true
}

/// A copy of this repository's specs, locks and images below `folder`.
pub(super) fn copy_project(folder: &Path) -> PathBuf {
    let project = folder.join("project");
    for part in ["specs", "lockfiles", "images"] {
        copy(&own_project().join(part), &project.join(part));
    }
    project
}

pub(super) fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target).unwrap();
        } else {
            fs_err::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A user with subordinate ids: `hallmark`, as continuous integration makes it.
pub(super) fn user() -> Option<(&'static str, u32)> {
    let text = fs_err::read_to_string("/etc/subuid").unwrap_or_default();
    let home = fs_err::metadata("/home/hallmark").ok()?;
    text.lines().any(|line| line.starts_with("hallmark:")).then(|| ("hallmark", home.uid()))
}
