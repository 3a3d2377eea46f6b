//! What the tests of this room share: a store, a look at a tree that is not ours, and who runs them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use hallmark::base::{Cancel, Digest, Store};
use hallmark::image::{Compressor, Layer, PackRules, commit_tree};

/// A store and scratch in a folder that goes away.
pub(crate) struct Shop {
    _folder: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
        Self { _folder: folder, store }
    }

    /// A fresh folder in scratch that commit takes.
    pub(crate) fn tree(&self) -> PathBuf {
        self.store.scratch_dir("tree").unwrap().keep()
    }

    pub(crate) fn commit(&self, tree: PathBuf, rules: &PackRules) -> Layer {
        commit_tree(&self.store, tree, rules, &Cancel::new()).unwrap()
    }

    /// The uncompressed archive of a layer that was just committed.
    pub(crate) fn archive(&self, layer: &Layer) -> Vec<u8> {
        let cancel = Cancel::new();
        let blob =
            hallmark::image::compress(&self.store, layer, Compressor::default(), &cancel).unwrap();
        let bytes = self.store.read_blob(&blob.digest).unwrap();
        let archive = zstd::decode_all(&bytes[..]).unwrap();
        assert_eq!(Digest::of(&archive), layer.diff_id);
        assert_eq!(archive.len() as u64, layer.size);
        archive
    }
}

/// Everything that can be said of a tree, one line per path: made with the standard library alone.
pub(crate) fn listing(root: &Path) -> Vec<String> {
    let mut firsts: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut lines = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name =
            path.strip_prefix(root).unwrap().as_os_str().as_bytes().escape_ascii().to_string();
        let meta = fs_err::symlink_metadata(path).unwrap();
        let kind = meta.file_type();
        let mut line = format!(
            "{name} {:o} {}:{} {}.{}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.mtime(),
            meta.mtime_nsec()
        );
        if kind.is_symlink() {
            let target = fs_err::read_link(path).unwrap();
            write!(line, " -> {}", target.as_os_str().as_bytes().escape_ascii()).unwrap();
        } else if kind.is_file() {
            let bytes = fs_err::read(path).unwrap();
            write!(line, " {} {}", bytes.len(), Digest::of(&bytes).short()).unwrap();
        } else if kind.is_char_device() || kind.is_block_device() {
            write!(line, " {}", meta.rdev()).unwrap();
        }
        // Whiteouts are linked to each other by overlayfs, which nobody sees.
        if !kind.is_dir() && !kind.is_char_device() && meta.nlink() > 1 {
            let first = firsts.entry((meta.dev(), meta.ino())).or_insert_with(|| name.clone());
            write!(line, " ={first}").unwrap();
        }
        if kind.is_file() || kind.is_dir() {
            let attributes: BTreeMap<String, String> = xattr::list(path)
                .unwrap()
                .map(|attribute| {
                    let value = xattr::get(path, &attribute).unwrap().unwrap();
                    let attribute = attribute.as_bytes().escape_ascii().to_string();
                    (attribute, value.escape_ascii().to_string())
                })
                .filter(|(attribute, _)| attribute != "security.selinux")
                .collect();
            for (attribute, value) in attributes {
                write!(line, " {attribute}={value}").unwrap();
            }
        }
        lines.push(line);
    }
    lines
}

/// Whether the tests run as root; says so when not.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "needs root");
    }
    root
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn skip(test: &str, reason: &str) {
    eprintln!("skipped {test}: {reason}");
}
