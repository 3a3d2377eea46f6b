//! Where shared stores are, and copies of them.

use std::path::{Path, PathBuf};

use hallmark::base::Cancel;
use hallmark::base::flock::FileLock;

/// The folder of all shared stores.
#[expect(clippy::disallowed_methods, reason = "the setting of whoever runs the tests")]
pub(crate) fn shared_folder() -> PathBuf {
    std::env::var_os("HALLMARK_TEST_STORE")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared"), PathBuf::from)
}

/// Held while the shared thing of that name is made.
pub(crate) fn shared_lock(name: &str) -> FileLock {
    FileLock::exclusive(&shared_folder().join(format!("{name}.lock")), &Cancel::new()).unwrap()
}

/// Copies a store without copying its files: blobs, layers and trees are hard links, the small files of steps and runs real
/// copies.
pub(crate) fn copy_store(from: &Path, to: &Path) {
    for folder in ["blobs/sha256", "layers", "trees", "steps", "runs", "locks"] {
        fs_err::create_dir_all(to.join(folder)).unwrap();
    }
    for entry in entries(&from.join("blobs/sha256")) {
        fs_err::hard_link(&entry, to.join("blobs/sha256").join(entry.file_name().unwrap()))
            .unwrap();
    }
    for folder in ["layers", "trees"] {
        copy(&from.join(folder), to, "-al");
    }
    for folder in ["runs", "steps"] {
        copy(&from.join(folder), to, "-a");
    }
}

/// Copies a file or a folder into a folder: `-a` really, `-al` by hard links.
pub(crate) fn copy(from: &Path, into: &Path, how: &str) {
    let status = std::process::Command::new("cp").arg(how).arg(from).arg(into).status().unwrap();
    assert!(status.success(), "{}", from.display());
}

/// What is in a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}
